"""The table of records: published operation counts (``linkwise.records``) beside what this library needs.

* ``counts``: ours, counted live from the programs that run;
* ``verdicts``: the counts that had to be beaten, and by how much they are;
* ``papers``: the papers' own tables row by row, with our trace of the same algorithm;
* ``crossovers``: from how many joints on one method is cheaper than another;
* ``page``: all of it as ``docs/records.md``; ``python -m research.records`` writes that page.
"""
