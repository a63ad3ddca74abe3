"""Records of rosbag 1 files, from the beginning of the file to its end or to where it was cut off.

The format has no checksums. What its records say twice is compared: sizes of chunks, and numbers of messages.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from io import SEEK_END, BytesIO
from pathlib import Path
from typing import IO

from linkwise.files.tables import bounds
from linkwise.files.tables.bags.message import JOINT_STATE, Contents, Message
from linkwise.files.tables.packed import BLOCK, unpacked
from linkwise.files.tables.table import TableError


class _CutOff(Exception):
    """A file ends in the middle of a record."""


def _exactly(stream: IO[bytes], size: int, where: str, *, partly: bool = False) -> bytes:
    """The next bytes; fewer at the end of a file where ``partly``."""
    bounds.check(f"{where}: a record", size, 1)
    data = stream.read(min(size, _left(stream))) if size > BLOCK else stream.read(size)
    if len(data) < size and not partly:
        raise _CutOff
    return data


def _left(stream: IO[bytes]) -> int:
    """Bytes from here to the end: a record may say that it has more, and memory is not taken for those."""
    here = stream.tell()
    end = stream.seek(0, SEEK_END)
    stream.seek(here)
    return end - here


def _until_cut(messages: Iterator[Message], contents: Contents) -> Iterator[Message]:
    try:
        yield from messages
    except (_CutOff, struct.error):
        contents.notes.append("the file ends in the middle of a record; what is before it was read")


# -- rosbag 1 ---------------------------------------------------------------------------------------------------------


def rosbag1(path: Path, where: str, contents: Contents) -> Iterator[Message]:
    """Messages of joint states in a rosbag of version 2.0, the format of ROS 1."""
    with path.open("rb") as stream:
        version = stream.readline(64).strip()
        if version != b"#ROSBAG V2.0":
            raise TableError(
                f"{where}: expected version 2.0 of the format, got {version.decode('latin-1')!r}"
            )
        yield from _until_cut(_rosbag1(stream, where, contents, {}, {}, 0), contents)


def _rosbag1(
    stream: IO[bytes],
    where: str,
    contents: Contents,
    wanted: dict[int, str],
    counts: dict[int, int],
    depth: int,
) -> Iterator[Message]:
    """``counts`` are the messages of each connection in a chunk; chunks are not nested (``depth``)."""
    while length := stream.read(4):
        fields = _fields(_exactly(stream, _unsigned(length), where))
        size, kind = _unsigned(_exactly(stream, 4, where)), fields.get(b"op", b"")
        data = _exactly(stream, size, where, partly=kind == b"\x05")
        if kind == b"\x05" and depth == 0:
            inside = unpacked(data, fields.get(b"compression", b"").decode("latin-1"), where)
            if len(data) == size and len(inside) != _unsigned(fields.get(b"size", b"")):
                raise TableError(
                    f"{where}: damaged: a chunk has {len(inside)} bytes instead of those it states"
                )
            counts.clear()
            yield from _rosbag1(BytesIO(inside), where, contents, wanted, counts, depth + 1)
            if len(data) < size:
                raise _CutOff
        elif kind == b"\x04":  # the index of the chunk before it
            number, count = _unsigned(fields.get(b"conn", b"")), _unsigned(fields.get(b"count", b""))
            if counts.get(number, 0) != count:
                raise TableError(
                    f"{where}: damaged: a chunk has {counts.get(number, 0)} messages instead of {count}"
                )
        elif kind == b"\x07":
            about = _fields(data)
            topic = fields.get(b"topic", b"").decode("utf-8", "replace")
            contents.topics[topic] = about.get(b"type", b"").decode("utf-8", "replace")
            if contents.topics[topic] in JOINT_STATE:
                wanted[_unsigned(fields.get(b"conn", b""))] = topic
        elif kind == b"\x02":
            connection = _unsigned(fields.get(b"conn", b""))
            counts[connection] = counts.get(connection, 0) + 1
            if connection in wanted:
                seconds, nanoseconds = struct.unpack("<II", fields.get(b"time", b""))
                yield Message(wanted[connection], seconds * 10**9 + nanoseconds, "ros1", data)


def _unsigned(data: bytes) -> int:
    return struct.unpack("<I", data)[0]


def _fields(data: bytes) -> dict[bytes, bytes]:
    """``name=value`` pairs with their lengths before them."""
    found, place = {}, 0
    while place + 4 <= len(data):
        size = _unsigned(data[place : place + 4])
        name, _, value = data[place + 4 : place + 4 + size].partition(b"=")
        found[name] = value
        place += 4 + size
    return found
