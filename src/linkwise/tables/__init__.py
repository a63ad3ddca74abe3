"""Tables of numbers in files: one reader for text, NPZ, Parquet, MATLAB, HDF5, Excel and rosbags, and one writer.

Everything that takes a recording, a motion or torques from a file reads it with ``read``. What a file may take is
bounded before it is taken: see ``bounds``.
"""

from linkwise.tables.reader import read
from linkwise.tables.states import read_states
from linkwise.tables.table import NumberTable, TableError
from linkwise.tables.writer import finite, numbered, render

__all__ = ["NumberTable", "TableError", "finite", "numbered", "read", "read_states", "render"]
