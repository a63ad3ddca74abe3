"""Lists of what users of other libraries type first, for ``benchmarks/habits.py``."""
