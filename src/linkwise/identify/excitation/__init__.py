"""Motions that excite every parameter: their families, criteria and limits."""
