"""Records of MCAP files, from the beginning of the file to its end or to where it was cut off.

Checksums (CRC-32) of chunks, attachments, the data section and the summary are compared where a file has them; zero
means that it has none. What a file says twice is compared in any case: sizes of chunks, and numbers of messages.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from io import SEEK_END, BytesIO
from pathlib import Path
from typing import IO

from linkwise.files.tables.bags.message import JOINT_STATE, Contents, Message
from linkwise.files.tables.bags.records import _CutOff, _exactly, _until_cut
from linkwise.files.tables.kinds import MCAP
from linkwise.files.tables.packed import unpacked
from linkwise.files.tables.table import TableError

FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, ATTACHMENT, STATISTICS, END_OF_DATA = 2, 3, 4, 5, 6, 9, 11, 15
_PRIVATE = 128  # kinds of records from here on belong to applications
_FOOTER = struct.Struct("<BQQQI")  # kind, size, start of the summary, start of its offsets, checksum


def mcap(path: Path, where: str, contents: Contents) -> Iterator[Message]:
    """Messages of joint states in an MCAP file."""
    with path.open("rb") as stream:
        stream.seek(-min(len(MCAP), path.stat().st_size), SEEK_END)
        ended = stream.read() == MCAP
        stream.seek(0)
        messages = _File(stream, where, contents).messages()
        yield from _whole(messages, where) if ended else _until_cut(messages, contents)


def _whole(messages: Iterator[Message], where: str) -> Iterator[Message]:
    """Of a file that has its end, so that it was not cut off."""
    try:
        yield from messages
    except (_CutOff, struct.error):
        raise TableError(f"{where}: damaged: a record has another size than it states") from None


class _Summed:
    """A file that is read from its beginning, and the checksum of what was read."""

    def __init__(self, stream: IO[bytes]):
        self._stream, self.checksum, self.last = stream, 0, 0
        self.tell, self.seek = stream.tell, stream.seek

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self.last, self.checksum = self.checksum, zlib.crc32(data, self.checksum)
        return data


class _File:
    """One file, while it is read."""

    def __init__(self, stream: IO[bytes], where: str, contents: Contents):
        self._stream, self._where, self._contents = stream, where, contents
        self._schemas: dict[int, str] = {}
        self._wanted: dict[int, tuple[str, str]] = {}
        self._counts: dict[int, int] = {}
        """Messages of each channel."""

    def messages(self) -> Iterator[Message]:
        summed = _Summed(self._stream)
        summed.read(len(MCAP))
        while kind := summed.read(1):
            before = summed.last
            (size,) = struct.unpack("<Q", _exactly(summed, 8, self._where))  # type: ignore[arg-type]
            data = _exactly(summed, size, self._where, partly=kind[0] == CHUNK)  # type: ignore[arg-type]
            if kind[0] == CHUNK:
                yield from self._chunk(data, size)
            elif kind[0] in (FOOTER, END_OF_DATA):
                if kind[0] == END_OF_DATA:
                    self._compare(struct.unpack("<I", data)[0], before, "the data section")
                    self._check_summary(summed.tell())
                return
            else:
                yield from self._record(kind[0], data)
        raise _CutOff

    def _record(self, kind: int, data: bytes) -> Iterator[Message]:
        """A record outside or inside of a chunk."""
        if kind == SCHEMA:
            (number,) = struct.unpack_from("<H", data)
            self._schemas[number] = _text(data, 2)[0]
        elif kind == CHANNEL:
            self._channel(data)
        elif kind == MESSAGE:
            number, _, received, _ = struct.unpack_from("<HIQQ", data)
            self._counts[number] = self._counts.get(number, 0) + 1
            if number in self._wanted:
                topic, encoding = self._wanted[number]
                yield Message(topic, received, encoding, data[22:])
        elif kind == ATTACHMENT:
            self._compare(struct.unpack("<I", data[-4:])[0], zlib.crc32(data[:-4]), "an attachment")
        elif kind == 0 or END_OF_DATA < kind < _PRIVATE:
            raise TableError(f"{self._where}: damaged: no record is of kind {kind}")

    def _chunk(self, data: bytes, size: int) -> Iterator[Message]:
        unpacked_size, checksum = struct.unpack_from("<QI", data, 16)
        method, place = _text(data, 28)
        (packed,) = struct.unpack_from("<Q", data, place)
        inside = unpacked(data[place + 8 : place + 8 + packed], method, self._where)
        whole = len(data) == size
        if whole:
            if place + 8 + packed != size or len(inside) != unpacked_size:
                raise TableError(f"{self._where}: damaged: a chunk has another size than it states")
            self._compare(checksum, zlib.crc32(inside), "a chunk")
        stream = BytesIO(inside)
        while kind := stream.read(1):
            (length,) = struct.unpack("<Q", _exactly(stream, 8, self._where))
            yield from self._record(kind[0], _exactly(stream, length, self._where))
        if not whole:
            raise _CutOff

    def _channel(self, data: bytes) -> None:
        number, schema = struct.unpack_from("<HH", data)
        topic, place = _text(data, 4)
        encoding, _ = _text(data, place)
        self._contents.topics[topic] = self._schemas.get(schema, "")
        if self._contents.topics[topic] in JOINT_STATE and encoding in ("cdr", "ros1"):
            self._wanted[number] = topic, encoding

    def _check_summary(self, start: int) -> None:
        """The summary after the data, where there is one: its checksum, and its numbers of messages."""
        rest = self._stream.read()
        if len(rest) < _FOOTER.size + len(MCAP) or not rest.endswith(MCAP):
            raise _CutOff
        footer = len(rest) - len(MCAP) - _FOOTER.size
        kind, size, summary, _, checksum = _FOOTER.unpack_from(rest, footer)
        if kind != FOOTER or size != _FOOTER.size - 9 or (summary and summary != start):
            raise TableError(f"{self._where}: damaged: its last record is no footer of this file")
        self._compare(checksum, zlib.crc32(rest[: footer + _FOOTER.size - 4]), "the summary")
        stream = BytesIO(rest[:footer])
        while kind := stream.read(1):
            (length,) = struct.unpack("<Q", _exactly(stream, 8, self._where))
            data = _exactly(stream, length, self._where)
            if kind[0] == STATISTICS:
                self._check_counts(data)

    def _check_counts(self, data: bytes) -> None:
        (total,) = struct.unpack_from("<Q", data)
        (length,) = struct.unpack_from("<I", data, 42)
        counts = dict(struct.iter_unpack("<HQ", data[46 : 46 + length]))
        there = sum(self._counts.values())
        listed = {number: count for number, count in counts.items() if count}
        if there != total or (listed and listed != self._counts):
            raise TableError(f"{self._where}: damaged: it has {there} messages, and its summary says {total}")

    def _compare(self, expected: int, found: int, what: str) -> None:
        if expected and expected != found:
            raise TableError(f"{self._where}: damaged: the checksum of {what} does not fit its bytes")


def _text(data: bytes, place: int) -> tuple[str, int]:
    """A text with its length before it, and the place after it."""
    (size,) = struct.unpack_from("<I", data, place)
    end = place + 4 + size
    return data[place + 4 : end].decode("utf-8", "replace"), end
