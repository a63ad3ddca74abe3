"""Dynamics under constraints: points and poses that are held, their derivatives, the filter with
measurements, and a solver that finds the rank.
"""
