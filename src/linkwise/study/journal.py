"""What has been done so far: one record per chunk, appended to a file as results arrive.

A record is its length, a checksum and its bytes. A writer that dies leaves at most a torn record at the end, which the
next one cuts off. Only one process at a time may hold a journal.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

from linkwise.study.errors import StudyError

_HEAD = struct.Struct("<4sII")
_MAGIC = b"LWj1"
SYNC_SECONDS = 1.0


class Journal:
    """An open journal; made if it is not there."""

    def __init__(self, path: Path):
        self.path = path
        self._file = path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise StudyError(f"{path.parent}: another process is running this study") from None
        self._synced = time.monotonic()

    def records(self) -> Iterator[bytes]:
        """All whole records; what comes after them is cut off."""
        self._file.seek(0)
        end = 0
        while True:
            head = self._file.read(_HEAD.size)
            if len(head) < _HEAD.size:
                break
            magic, length, checksum = _HEAD.unpack(head)
            data = self._file.read(length)
            if magic != _MAGIC or len(data) < length or zlib.crc32(data) != checksum:
                break
            end = self._file.tell()
            yield data
        self._file.truncate(end)
        self._file.seek(0, os.SEEK_END)

    def append(self, data: bytes) -> None:
        """Keep a record. It survives this process at once, and a loss of power after a second."""
        self._file.write(_HEAD.pack(_MAGIC, len(data), zlib.crc32(data)) + data)
        self._file.flush()
        if time.monotonic() - self._synced > SYNC_SECONDS:
            self.sync()

    def sync(self) -> None:
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()

    def rewrite(self, records: list[bytes]) -> None:
        """Replace all records."""
        self._file.seek(0)
        self._file.truncate()
        for data in records:
            self._file.write(_HEAD.pack(_MAGIC, len(data), zlib.crc32(data)) + data)
        self._file.flush()
        self.sync()

    def remove(self) -> None:
        """It is not needed any more."""
        self.path.unlink()
        self.close()

    def close(self) -> None:
        self._file.close()
