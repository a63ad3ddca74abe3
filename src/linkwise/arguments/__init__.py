"""Arguments of public functions: flags, shared descriptions, errors that name the argument, what to type instead
of names of other libraries. The errors themselves are in ``linkwise.errors``.
"""
