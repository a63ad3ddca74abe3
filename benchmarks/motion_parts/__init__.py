"""Paths of ``motion_limits.py``."""
