"""What has been done so far: records appended to a file as results arrive.

A record is a head (its length, a checksum of its bytes, a checksum of the head) and its bytes. A writer that dies
leaves at most a torn record at the end, which the next one cuts off. A record that was damaged later is found by its
checksums and left out; those after it count. Only one process at a time may hold a journal.
"""

from __future__ import annotations

import errno
import os
import struct
import time
import zlib
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import Any

from linkwise.core import system
from linkwise.study.errors import StudyError
from linkwise.study.store import files

_HEAD = struct.Struct("<4sIII")
_CHECKSUM = struct.Struct("<I")
_MAGIC = b"LWj2"
SYNC_SECONDS = 1.0


LOCK_SECONDS = 0.5
"""How long a lock is tried for: who looks whether a study is running holds it for a moment."""
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


def lock(file: FileIO, path: Path) -> None:
    """Lock the open journal of a path for this process; ``StudyError`` says why that cannot be done."""
    store, end = path.parent, time.monotonic() + LOCK_SECONDS
    while True:
        try:
            system.lock(file.fileno())
            if _is_at(file, path):
                return
            raise StudyError(f"{store}: another process is running this study")  # which replaced the journal
        except BlockingIOError:
            if time.monotonic() > end:
                raise StudyError(f"{store}: another process is running this study") from None
            time.sleep(0.02)
        except OSError as problem:
            reason = problem.strerror or str(problem)
            if problem.errno in NO_LOCKS:
                reason += "; this file system has no locks, write to another one (--out)"
            raise StudyError(f"{store}: its journal cannot be locked: {reason}") from None


def running(path: Path) -> bool | None:
    """Whether a process holds the journal at a path; None: that is unknown."""
    try:
        with path.open("rb") as file:
            system.lock(file.fileno(), shared=True)
            system.unlock(file.fileno())
            return False
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    except OSError:
        return None


def read(path: Path) -> Iterator[bytes]:
    """All whole records of a journal that another process may be writing."""
    with path.open("rb") as file:
        for _, data in scan(file):
            if isinstance(data, bytes):
                yield data


class Journal:
    """An open journal; made if it is not there."""

    def __init__(self, path: Path):
        self.path = path
        try:
            self._file = files.disk.open(path, "a+b")
        except OSError as problem:
            raise StudyError(f"{path}: cannot be opened: {problem.strerror or problem}") from None
        try:
            lock(self._file, path)
        except BaseException:
            self._file.close()
            raise
        self._synced = time.monotonic()
        self.damaged = False
        """Whether damaged records were met."""

    def records(self) -> Iterator[bytes]:
        """All whole records; a torn one at the end is cut off, damaged ones are left out."""
        with self.path.open("rb") as file:
            for start, data in scan(file):
                if data is None:
                    self.damaged = True
                elif isinstance(data, Torn):
                    files.disk.truncate(self._file, start)
                else:
                    yield data

    def append(self, data: bytes) -> None:
        """Append a record. It survives the end of this process at once, and a loss of power after a second."""
        files.disk.write(self._file, framed(data))
        if time.monotonic() - self._synced > SYNC_SECONDS:
            self.sync()

    def sync(self) -> None:
        files.disk.sync(self._file)
        self._synced = time.monotonic()

    def rewrite(self, records: list[bytes]) -> None:
        """Replace all records, at once."""
        aside = files.beside(self.path)
        new = files.disk.open(aside)
        try:
            system.lock(new.fileno())
            for data in records:
                files.disk.write(new, framed(data))
            files.disk.sync(new)
            if not system.MOVES_OPEN_FILES:
                self._file.close()
                new.close()
            files.disk.rename(aside, self.path)
            if new.closed:
                new = files.disk.open(self.path, "a+b")
                lock(new, self.path)
            files.disk.sync_folder(self.path.parent)
        except BaseException:
            new.close()
            aside.unlink(missing_ok=True)
            raise
        self._file.close()
        self._file = new
        self._synced = time.monotonic()

    def remove(self) -> None:
        """Remove the journal."""
        files.disk.unlink(self.path)
        files.disk.sync_folder(self.path.parent)
        self.close()

    def close(self) -> None:
        self._file.close()


def _is_at(file: FileIO, path: Path) -> bool:
    """Whether an open file is the one at a path: it may have been replaced before it was locked."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def framed(data: bytes) -> bytes:
    """A record as it is in the file."""
    head = _HEAD.pack(_MAGIC, len(data), zlib.crc32(data), 0)[: -_CHECKSUM.size]
    return head + _CHECKSUM.pack(zlib.crc32(head)) + data


class Torn:
    """A record that was not written completely."""


def scan(file: Any) -> Iterator[tuple[int, bytes | Torn | None]]:
    """(place in the file, record) of an open journal; None for a part that was damaged, ``Torn`` at the end only."""
    place = 0
    while True:
        file.seek(place)
        head = file.read(_HEAD.size)
        if not head:
            return
        if len(head) < _HEAD.size:
            yield place, Torn()
            return
        length = _length(head)
        if length is None:
            yield place, None
            place = _next_head(file, place + 1)
            continue
        data = file.read(length)
        if len(data) < length:
            yield place, Torn()
            return
        yield place, data if zlib.crc32(data) == _HEAD.unpack(head)[2] else None
        place += _HEAD.size + length


def _length(head: bytes) -> int | None:
    """Of the record behind a head; None: this is no head, or it is damaged."""
    magic, length, _, checksum = _HEAD.unpack(head)
    good = magic == _MAGIC and zlib.crc32(head[: -_CHECKSUM.size]) == checksum
    return length if good else None


def _next_head(file: Any, start: int) -> int:
    """Where the next undamaged head is; the end of the file if there is none."""
    file.seek(start)
    rest = file.read()
    place = rest.find(_MAGIC)
    while place >= 0:
        head = rest[place : place + _HEAD.size]
        if len(head) == _HEAD.size and _length(head) is not None:
            return start + place
        place = rest.find(_MAGIC, place + 1)
    return start + len(rest)
