"""Studies of papers: claims and printed values, the table of records, the Riccati recursion as a scan over time.

Not a part of the installed package.
"""
