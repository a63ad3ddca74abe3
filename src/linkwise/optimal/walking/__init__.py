"""Walking robots: predictive control of a gait in world time, followed by whole-body control."""
