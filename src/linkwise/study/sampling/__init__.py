"""Which points a study has, and the numbers at each: grids, distributions, random and quasi-random sequences."""
