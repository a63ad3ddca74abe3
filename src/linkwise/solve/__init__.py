"""Numerical methods over scalars and small matrices: factors, block systems, quadratic programmes, the Riccati step.

Each method is written once, as in its book, with the loops of ``linkwise.language``; it runs on numbers and inside
traced functions of any size. Robots, costs and dynamics are not known here.
"""
