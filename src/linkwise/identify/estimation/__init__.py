"""From signals to parameters: the regression, its independent columns, estimators, physical consistency, friction."""
