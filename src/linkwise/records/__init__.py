"""Published operation counts as data, and polynomials of the number of joints; tables of a page.

What this library needs beside them, and the page ``docs/records.md``: ``research/records`` of the repository.
"""
