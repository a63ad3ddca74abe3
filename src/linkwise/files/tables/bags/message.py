"""Messages of rosbags, and the decoder of sensor_msgs/JointState."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

JOINT_STATE = ("sensor_msgs/JointState", "sensor_msgs/msg/JointState")


_PADDING = 3  # bytes that writers of CDR may append


class DecodingError(ValueError):
    """The bytes of a message do not have the form that they should have."""


@dataclass
class Contents:
    """What a bag has: topics with their message types, and notes about what could not be read."""

    topics: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Message:
    """One message: ``encoding`` is ros1 or cdr; ``received`` [ns] is when it was recorded."""

    topic: str
    received: int
    encoding: str
    data: bytes


@dataclass(frozen=True)
class JointState:
    """A decoded message; quantities that were not sent are empty."""

    seconds: int
    nanoseconds: int
    names: tuple[str, ...]
    position: Sequence[float]
    velocity: Sequence[float]
    effort: Sequence[float]


def joint_state(message: Message) -> JointState:
    """Decode a message; DecodingError where it is damaged."""
    try:
        if message.encoding == "ros1":
            reader = _Reader(message.data, 0, "<", 1)
            reader.number("I")  # the sequence number
        else:
            reader = _cdr(message.data)
        seconds = reader.number("I" if message.encoding == "ros1" else "i")
        nanoseconds = reader.number("I")
        reader.text()  # frame_id
        names = tuple(reader.text() for _ in range(reader.count(4)))
        state = JointState(seconds, nanoseconds, names, reader.doubles(), reader.doubles(), reader.doubles())
        if nanoseconds >= 10**9 or len(message.data) - reader.place > _PADDING:
            raise DecodingError("bytes after its end, or no time")
        return state
    except (struct.error, UnicodeDecodeError, IndexError) as error:
        raise DecodingError(str(error)) from None


def _cdr(data: bytes) -> _Reader:
    if len(data) < 4 or data[0] != 0 or data[1] > 1:
        raise DecodingError("not encoded as plain CDR")
    return _Reader(data, 4, "<" if data[1] else ">", 4)


class _Reader:
    """Numbers and texts from bytes; those of CDR begin at multiples of their size, counted from ``start``."""

    def __init__(self, data: bytes, start: int, order: str, start_alignment: int):
        self.data, self.start, self.place, self.order = data, start, start, order
        self.aligned = start_alignment > 1

    def _align(self, size: int) -> None:
        if self.aligned:
            self.place += -(self.place - self.start) % size

    def number(self, kind: str) -> int:
        self._align(4)
        (value,) = struct.unpack_from(self.order + kind, self.data, self.place)
        self.place += 4
        return value

    def count(self, size: int) -> int:
        """A number of items of at least ``size`` bytes each, which must be there."""
        found = self.number("I")
        if found * size > len(self.data) - self.place:
            raise DecodingError(f"{found} items in {len(self.data) - self.place} bytes")
        return found

    def text(self) -> str:
        length = self.count(1)
        found = self.data[self.place : self.place + length]
        self.place += length
        return found.rstrip(b"\0").decode()

    def doubles(self) -> tuple[float, ...]:
        count = self.count(8)
        if not count:
            return ()
        self._align(8)
        found = struct.unpack_from(f"{self.order}{count}d", self.data, self.place)
        self.place += 8 * count
        return found
