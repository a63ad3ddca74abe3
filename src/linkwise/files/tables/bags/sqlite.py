"""Messages of a rosbag 2 in an SQLite file."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from linkwise.files.tables.bags.message import JOINT_STATE, Contents, Message
from linkwise.files.tables.packed import ZSTD_MAGIC, unpacked
from linkwise.files.tables.table import TableError

LARGEST = 1 << 26  # bytes of one message
_NAME = r"""(?:\w+|"\w+")"""
_INDEX = re.compile(rf"\s*CREATE (?:UNIQUE )?INDEX {_NAME}\s+ON\s+{_NAME}\s*\([\w\s,\"]*\)\s*", re.IGNORECASE)
"""An index of columns. One of expressions is computed for every row when SQLite compares its pages."""


def sqlite(path: Path, where: str, contents: Contents) -> Iterator[Message]:
    """Messages of joint states. The file is not changed, and only stored tables are read: views could run for ever."""
    try:
        address = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
        with closing(sqlite3.connect(address, uri=True)) as base:
            base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST)
            base.execute("PRAGMA trusted_schema=OFF")
            base.execute(
                "PRAGMA ignore_check_constraints=ON"
            )  # expressions of the file that integrity_check would run
            _check_tables(where, base)
            _check_pages(where, base)
            wanted: dict[int, str] = {}
            topics: set[int] = set()
            lost = 0
            for number, topic, kind in base.execute("SELECT id, name, type FROM topics"):
                contents.topics[str(topic)] = str(kind)
                topics.add(int(number))
                if kind in JOINT_STATE:
                    wanted[int(number)] = str(topic)
            rows = base.execute("SELECT topic_id, timestamp, data FROM messages ORDER BY timestamp, rowid")
            for number, received, data in rows:
                if number not in topics or not isinstance(data, bytes):
                    lost += 1
                elif number in wanted:
                    if data.startswith(ZSTD_MAGIC):
                        data = unpacked(data, "zstd", where)
                    yield Message(wanted[number], int(received), "cdr", data)
            if lost:
                contents.notes.append(
                    f"{lost} damaged messages, or of topics that are not listed, were left out"
                )
    except sqlite3.Error as error:
        raise TableError(f"{where}: not a rosbag in an SQLite file, or damaged ({error})") from None


def _check_pages(where: str, base: sqlite3.Connection) -> None:
    """SQLite has no checksums; it compares its pages with each other, and rows with their indices."""
    answer = base.execute("PRAGMA integrity_check(1)").fetchone()
    if answer is None or answer[0] != "ok":
        raise TableError(f"{where}: a damaged SQLite file ({answer[0] if answer else 'no answer'})")


def _check_tables(where: str, base: sqlite3.Connection) -> None:
    for name in ("topics", "messages"):
        found = base.execute("SELECT type, sql FROM sqlite_master WHERE name = ?", (name,)).fetchall()
        plain = [
            sql for kind, sql in found if kind == "table" and str(sql).upper().startswith("CREATE TABLE")
        ]
        if not plain:
            raise TableError(f"{where}: an SQLite file without a table {name!r}; expected a rosbag 2")
        if any(column[6] for column in base.execute(f"PRAGMA table_xinfo({name})")):
            raise TableError(
                f"{where}: its table {name!r} has columns that are computed; expected a rosbag 2"
            )
    for (sql,) in base.execute("SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"):
        if not _INDEX.fullmatch(str(sql)):
            raise TableError(f"{where}: it has an index of expressions; expected a rosbag 2")
