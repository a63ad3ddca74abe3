"""What the interpreter calls when a kernel or a method of a robot is called: from Python objects to machine code.

Written in the subset of Python that ``emit.routines`` turns into machine code: every value is a 64-bit integer, an
address or a number. ``calls.call_kernel`` and ``calls.call_method`` have the signature of CPython's vectorcall. They
recognise arrays, lists and tuples of numbers, arrays of CuPy and PyTorch on a GPU, the options a method was called with
before, ``out`` and ``threads``; a call that is anything else (or wrong) is given unchanged to a function in Python,
which also has all error messages.
"""
