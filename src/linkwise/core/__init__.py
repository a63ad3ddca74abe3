"""What every part may use and that knows nothing of robots: child processes, text of strangers, the operating
system, locks, digests, products of small arrays, how results are printed.
"""
