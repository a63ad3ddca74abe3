"""What a file is: by its first bytes, and by its ending where these say nothing."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import IO

from linkwise.files.tables.table import TableError

ROSBAG = b"#ROSBAG V"
MCAP = b"\x89MCAP0\r\n"
SQLITE = b"SQLite format 3\0"
HDF5 = b"\x89HDF\r\n\x1a\n"
HDF5_STARTS = (0, 512, 1024, 2048)  # a block of the user may be before it: 512 bytes in MATLAB files
MATLAB = b"MATLAB 5.0 MAT-file"
OLD_EXCEL = b"\xd0\xcf\x11\xe0"
BAG_ENDINGS = tuple(f".{kind}{packed}" for kind in ("bag", "db3", "mcap") for packed in ("", ".zstd", ".zst"))
ENDINGS = {
    ".npz": "npz",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".mat": "mat",
    ".h5": "hdf5",
    ".hdf5": "hdf5",
    ".hdf": "hdf5",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
}


def kind_of(path: Path) -> str:
    """One of text, npz, parquet, mat, hdf5, xlsx, bag, folder."""
    if path.is_dir():
        return "bag" if bag_files(path) else "folder"
    ending = "bag" if path.name.lower().endswith(BAG_ENDINGS) else ENDINGS.get(path.suffix.lower(), "text")
    if not path.is_file():  # a pipe, which can be read once only, or nothing
        return ending
    with path.open("rb") as stream:
        head = stream.read(32)
        if head.startswith((ROSBAG, MCAP, SQLITE)):
            return "bag"
        if _is_hdf5(stream):
            return "hdf5"
    if head.startswith(MATLAB):
        return "mat"
    if head.startswith(OLD_EXCEL):
        raise TableError(f"{path}: an Excel file of the old format (.xls); save it as .xlsx or CSV")
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"PK\x03\x04") and ending == "text" and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
        if "xl/workbook.xml" in names:
            return "xlsx"
        return "npz" if any(name.endswith(".npy") for name in names) else ending
    return ending


def bag_files(folder: Path) -> list[Path]:
    """The files of a rosbag 2 in a folder, in the order in which they were recorded."""
    found = [path for path in folder.iterdir() if path.name.endswith(BAG_ENDINGS) and path.is_file()]
    return sorted(found, key=lambda path: [part.zfill(20) for part in re.split("([0-9]+)", path.name)])


def _is_hdf5(stream: IO[bytes]) -> bool:
    for start in HDF5_STARTS:
        stream.seek(start)
        if stream.read(len(HDF5)) == HDF5:
            return True
    return False
