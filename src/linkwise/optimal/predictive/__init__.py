"""Predictive control: a plan that every sample improves, what stands between it and the motors, and which
measurements it believes.
"""
