"""What is kept of the columns of a study: statistics, quantiles, histograms, tables."""
