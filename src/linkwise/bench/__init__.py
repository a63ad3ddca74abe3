"""Linkwise beside other libraries: the same robot, the same states, the same results first, then the time."""
