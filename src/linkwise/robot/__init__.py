"""The class ``Robot``: from a function's name and options to compiled code and results. What a robot is, as data,
is in ``linkwise.model``; its files are in ``linkwise.formats``.
"""
