"""How good a model is, and why a robot does not explain a recording."""
