"""Damaged recordings: random changes of files in every format, and what reading them gives.

    python benchmarks/damaged_recordings.py [--count 600] [--seed 0] [--quick]

A changed file is refused (one line), read with a note about what is missing, read to the same numbers (the change hit
something that is not read), or read to other numbers or names without a word. The last must not happen in formats with
checksums; the status is 1 if it does. Formats without checksums are shown beside them.
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from linkwise.files import tables
from linkwise.files.tables import TableError

T = np.arange(40) / 100.0
COLUMNS = {
    "t": T,
    **{
        f"{quantity}{joint}": np.sin((joint + place) * T + place)
        for place, quantity in enumerate(("q", "qd", "tau"), 1)
        for joint in (1, 2)
    },
}


# -- files ------------------------------------------------------------------------------------------------------------


def npz(path: Path) -> None:
    np.savez_compressed(path, **COLUMNS)


def parquet(checksums: bool) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.table(COLUMNS), path, write_page_checksum=checksums)

    return write


def hdf5(checksums: bool) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        import h5py

        with h5py.File(path, "w") as file:
            for name, values in COLUMNS.items():
                file.create_dataset(name, data=values, chunks=(len(values),), fletcher32=checksums)

    return write


def matlab(path: Path) -> None:
    from scipy.io import savemat

    savemat(path, COLUMNS, do_compression=True)


def excel(path: Path) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(list(COLUMNS))
    for row in np.column_stack(list(COLUMNS.values())).tolist():
        book.active.append(row)
    book.save(path)


def _cdr(row: int) -> bytes:
    """sensor_msgs/JointState in CDR."""
    data = bytearray()

    def add(part: bytes, size: int) -> None:
        data.extend(b"\0" * (-len(data) % size) + part)

    def text(letters: str) -> None:
        add(struct.pack("<I", len(letters) + 1), 4)
        data.extend(letters.encode() + b"\0")

    add(struct.pack("<iI", 100, round(T[row] * 1e9)), 4)
    text("base")
    add(struct.pack("<I", 2), 4)
    text("joint1")
    text("joint2")
    for quantity in ("q", "qd", "tau"):
        add(struct.pack("<I", 2), 4)
        add(struct.pack("<2d", *(COLUMNS[f"{quantity}{joint}"][row] for joint in (1, 2))), 8)
    return b"\0\1\0\0" + bytes(data)


def mcap(checksums: bool) -> Callable[[Path], None]:
    """Two chunks, an attachment and a summary, by the specification of MCAP."""

    def record(kind: int, body: bytes) -> bytes:
        return struct.pack("<BQ", kind, len(body)) + body

    def text(letters: str) -> bytes:
        return struct.pack("<I", len(letters)) + letters.encode()

    def checksum(data: bytes) -> bytes:
        return struct.pack("<I", zlib.crc32(data) if checksums else 0)

    def write(path: Path) -> None:
        schema = record(
            3, struct.pack("<H", 1) + text("sensor_msgs/msg/JointState") + text("ros2msg") + text("")
        )
        channel = record(4, struct.pack("<HH", 1, 1) + text("/joint_states") + text("cdr") + text(""))
        data = b"\x89MCAP0\r\n" + record(1, text("ros2") + text("writer"))
        attached = (
            struct.pack("<QQ", 1, 1) + text("note") + text("text/plain") + struct.pack("<Q", 5) + b"hello"
        )
        data += record(9, attached + checksum(attached))
        for rows in (range(20), range(20, len(T))):
            inside = schema + channel
            for row in rows:
                inside += record(5, struct.pack("<HIQQ", 1, row, row, row) + _cdr(row))
            head = struct.pack("<QQQ", rows[0], rows[-1], len(inside)) + checksum(inside)
            data += record(6, head + text("") + struct.pack("<Q", len(inside)) + inside)
        data += record(15, checksum(data))
        statistics = struct.pack("<QHIIIIQQ", len(T), 1, 1, 1, 0, 2, 0, len(T)) + struct.pack(
            "<IHQ", 10, 1, len(T)
        )
        summary = schema + channel + record(11, statistics)
        footer = struct.pack("<BQQQ", 2, 20, len(data), 0)
        path.write_bytes(data + summary + footer + checksum(summary + footer) + b"\x89MCAP0\r\n")

    return write


def sqlite(path: Path) -> None:
    import sqlite3

    base = sqlite3.connect(path)
    base.execute(
        "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format TEXT)"
    )
    base.execute(
        "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB)"
    )
    base.execute("CREATE INDEX timestamp_idx ON messages (timestamp ASC)")
    base.execute("INSERT INTO topics VALUES (1, '/joint_states', 'sensor_msgs/msg/JointState', 'cdr')")
    for row in range(len(T)):
        base.execute("INSERT INTO messages VALUES (?, 1, ?, ?)", (row + 1, row, _cdr(row)))
    base.commit()
    base.close()


def rosbag1(path: Path) -> None:
    from rosbags.rosbag1 import Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC)
    types = store.types
    with Writer(path) as writer:
        topic = writer.add_connection("/joint_states", "sensor_msgs/msg/JointState", typestore=store)
        for row in range(len(T)):
            stamp = types["builtin_interfaces/msg/Time"](sec=100, nanosec=round(T[row] * 1e9))
            header = types["std_msgs/msg/Header"](seq=row, stamp=stamp, frame_id="base")
            values = [np.array([COLUMNS[f"{name}{k}"][row] for k in (1, 2)]) for name in ("q", "qd", "tau")]
            message = types["sensor_msgs/msg/JointState"](header, ["joint1", "joint2"], *values)
            writer.write(topic, row, store.serialize_ros1(message, "sensor_msgs/msg/JointState"))


FORMATS: dict[str, tuple[str, Callable[[Path], None], bool]] = {
    "MCAP with checksums": (".mcap", mcap(True), True),
    "NPZ": (".npz", npz, True),
    "Excel": (".xlsx", excel, True),
    "HDF5 with fletcher32": (".h5", hdf5(True), False),
    "Parquet with page checksums": (".parquet", parquet(True), False),
    "MATLAB, compressed": (".mat", matlab, False),
    "MCAP without checksums": (".mcap", mcap(False), False),
    "Parquet without checksums": (".parquet", parquet(False), False),
    "HDF5 without fletcher32": (".h5", hdf5(False), False),
    "rosbag 2 in SQLite": (".db3", sqlite, False),
    "rosbag 1": (".bag", rosbag1, False),
}
"""(ending, writer, whether checksums cover all that is read: then nothing may be misread)."""


# -- changes ----------------------------------------------------------------------------------------------------------


def changed(data: bytes, draw: random.Random) -> bytes:
    """One random change: a bit, a byte, a word, a part that is lost, doubled, exchanged or zeroed, the end cut off."""
    found, place = bytearray(data), draw.randrange(len(data))
    size = draw.randrange(1, 64)
    match draw.randrange(8):
        case 0 | 1:
            found[place] ^= 1 << draw.randrange(8)
        case 2:
            found[place] = draw.randrange(256)
        case 3:
            found[place : place + 8] = draw.randbytes(8)
        case 4:
            del found[place : place + size]
        case 5:
            found[place:place] = found[place : place + size]
        case 6:
            found[place : place + size] = bytes(size)
        case 7:
            del found[place:]
    return bytes(found)


def tried(path: Path, whole: tables.NumberTable) -> str:
    """What reading a file gives, beside the table of the unchanged one."""
    try:
        table = tables.read(path)
    except TableError:
        return "refused"
    if table.names == whole.names and np.array_equal(table.values, whole.values, equal_nan=True):
        return "same"
    if table.notes != whole.notes or table.unusable != whole.unusable or table.faults != whole.faults:
        return "noted"
    return "other"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=600, help="changed files of each format")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="40 files of each format")
    options = parser.parse_args()
    count = 40 if options.quick else options.count
    wrong = 0
    print(f"{count} changed files each{'':18}  refused  noted   same  other numbers or names")
    with tempfile.TemporaryDirectory() as folder:
        for name, (ending, write, covered) in FORMATS.items():
            path, damaged = Path(folder) / f"whole{ending}", Path(folder) / f"damaged{ending}"
            try:
                write(path)
            except ImportError as error:
                print(f"{name:40} not tried: {error}")
                continue
            whole, data, draw = tables.read(path), path.read_bytes(), random.Random(options.seed)
            tally = dict.fromkeys(("refused", "noted", "same", "other"), 0)
            for _ in range(count):
                damaged.write_bytes(changed(data, draw))
                tally[tried(damaged, whole)] += 1
            print(f"{name:40}" + "".join(f"{number:7}" for number in tally.values()))
            wrong += tally["other"] if covered else 0
    if wrong:
        print(f"{wrong} files were misread although their format has checksums of all that is read")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
