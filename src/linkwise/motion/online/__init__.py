"""Jerk-limited moves from any state to a new target at any moment."""
