"""Tables of numbers in files: one reader for text, NPZ, Parquet, MATLAB, HDF5, Excel and rosbags, and one writer.

Everything that takes a recording, a motion or torques from a file reads it with ``read``. What a file may take is
bounded before it is taken: see ``bounds``.
"""

from linkwise.files.tables.reader import read
from linkwise.files.tables.states import read_states
from linkwise.files.tables.table import NumberTable, TableError
from linkwise.files.tables.writer import finite, numbered, render

__all__ = ["NumberTable", "TableError", "finite", "numbered", "read", "read_states", "render"]
