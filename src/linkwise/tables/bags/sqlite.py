"""Messages of a rosbag 2 in an SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from linkwise.tables.bags.message import JOINT_STATE, Contents, Message
from linkwise.tables.packed import ZSTD_MAGIC, unpacked
from linkwise.tables.table import TableError

LARGEST = 1 << 26  # bytes of one message


def sqlite(path: Path, where: str, contents: Contents) -> Iterator[Message]:
    """Messages of joint states. The file is not changed, and only stored tables are read: views could run for ever."""
    try:
        address = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
        with closing(sqlite3.connect(address, uri=True)) as base:
            base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST)
            base.execute("PRAGMA trusted_schema=OFF")
            _check_tables(where, base)
            wanted: dict[int, str] = {}
            for number, topic, kind in base.execute("SELECT id, name, type FROM topics"):
                contents.topics[str(topic)] = str(kind)
                if kind in JOINT_STATE:
                    wanted[int(number)] = str(topic)
            rows = base.execute("SELECT topic_id, timestamp, data FROM messages ORDER BY timestamp, rowid")
            for number, received, data in rows:
                if number in wanted and isinstance(data, bytes):
                    if data.startswith(ZSTD_MAGIC):
                        data = unpacked(data, "zstd", where)
                    yield Message(wanted[number], int(received), "cdr", data)
    except sqlite3.Error as error:
        raise TableError(f"{where}: not a rosbag in an SQLite file, or damaged ({error})") from None


def _check_tables(where: str, base: sqlite3.Connection) -> None:
    for name in ("topics", "messages"):
        found = base.execute("SELECT type, sql FROM sqlite_master WHERE name = ?", (name,)).fetchall()
        plain = [
            sql
            for kind, sql in found
            if kind == "table"
            and str(sql).upper().startswith("CREATE TABLE")
            and "GENERATED" not in sql.upper()
        ]
        if not plain:
            raise TableError(f"{where}: an SQLite file without a table {name!r}; expected a rosbag 2")
