"""The joint states of one topic of a rosbag as a table: time, position, velocity and effort of every joint."""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from linkwise.files.tables import bounds
from linkwise.files.tables.bags.mcap import mcap
from linkwise.files.tables.bags.message import Contents, DecodingError, JointState, Message, joint_state
from linkwise.files.tables.bags.records import rosbag1
from linkwise.files.tables.bags.sqlite import sqlite
from linkwise.files.tables.kinds import MCAP, ROSBAG, SQLITE, bag_files
from linkwise.files.tables.naming import is_planned, plain
from linkwise.files.tables.packed import ZSTD_MAGIC, unpack_file
from linkwise.files.tables.table import NumberTable, TableError, one_line

QUANTITIES = ("position", "velocity", "effort")
_Reader = Callable[[Path, str, Contents], Iterator[Message]]
READERS: dict[bytes, _Reader] = {
    ROSBAG: rosbag1,
    SQLITE: sqlite,
    MCAP: mcap,
}


def read_bag(path: Path, joints: Sequence[str] = (), topic: str | None = None) -> NumberTable:
    """Joint states from a file, or from the files in a folder.

    Args:
        path: the file or folder.
        joints: names of the joints; by default those of the first message.
        topic: where several topics have these joints.
    """
    contents = Contents()
    topics: dict[str, _Topic] = {}
    for file in bag_files(path) if path.is_dir() else [path]:
        for message in _messages(file, contents):
            found = topics.setdefault(message.topic, _Topic(joints))
            found.add(message, str(path))
    name, chosen = _chosen(path, topics, contents, topic, joints)
    return chosen.table(path, name, tuple(contents.notes))


def _messages(file: Path, contents: Contents) -> Iterator[Message]:
    with file.open("rb") as stream:
        head = stream.read(16)
    if head.startswith(ZSTD_MAGIC):
        with tempfile.TemporaryDirectory() as folder:
            inside = Path(folder) / "unpacked"
            with file.open("rb") as packed, inside.open("wb") as target:
                unpack_file(packed, target, str(file))
            with inside.open("rb") as stream:
                head = stream.read(16)
            yield from _reader(file, head)(inside, str(file), contents)
        return
    yield from _reader(file, head)(file, str(file), contents)


def _reader(file: Path, head: bytes) -> _Reader:
    for magic, reader in READERS.items():
        if head.startswith(magic):
            return reader
    raise TableError(f"{file}: not a rosbag (version 1, SQLite or MCAP), or its beginning is damaged")


@dataclass
class _Topic:
    """What was received on a topic."""

    joints: Sequence[str]
    rows: array[float] = field(default_factory=lambda: array("d"))
    seconds: array[int] = field(default_factory=lambda: array("q"))
    nanoseconds: array[int] = field(default_factory=lambda: array("q"))
    received: array[int] = field(default_factory=lambda: array("q"))
    seen: dict[str, None] = field(default_factory=dict)
    others: int = 0
    damaged: int = 0
    _names: tuple[str, ...] = ()
    _order: list[int] | None = None

    def add(self, message: Message, where: str) -> None:
        try:
            state = joint_state(message)
        except DecodingError:
            self.damaged += 1
            return
        if not self.joints:
            self.joints = state.names
        if state.names != self._names or self._order is None:
            self._names = state.names
            self.seen.update(dict.fromkeys(state.names))
            there = {name: k for k, name in enumerate(state.names)}
            missing = any(joint not in there for joint in self.joints)
            self._order = None if missing else [there[joint] for joint in self.joints]
        if self._order is None:
            self.others += 1
            return
        self.rows.extend(_row(state, self._order))
        self.seconds.append(state.seconds)
        self.nanoseconds.append(state.nanoseconds)
        self.received.append(min(message.received, 2**63 - 1))
        bounds.check(where, len(self.rows) + 3 * len(self.received))

    @property
    def has_effort(self) -> bool:
        return any(value == value for value in self.rows[-len(self.joints) :])

    def table(self, path: Path, topic: str, notes: tuple[str, ...]) -> NumberTable:
        seconds, nanoseconds = np.array(self.seconds), np.array(self.nanoseconds)
        said = [f"topic {topic}", *notes]
        if not (seconds.any() or nanoseconds.any()):
            received = np.array(self.received)
            time = 1e-9 * (received - received[0])
            said.append("messages have no stamps: times are when they were received")
        else:
            time = (seconds - seconds[0]) + 1e-9 * (nanoseconds - nanoseconds[0])
        values = np.array(self.rows).reshape(len(seconds), -1)
        names = [f"{quantity}.{joint}" for quantity in QUANTITIES for joint in self.joints]
        sent = [k for k, column in enumerate(values.T) if not np.isnan(column).all()]
        extra = [name for name in self.seen if name not in self.joints]
        if extra:
            said.append(f"{len(extra)} other joints were left out: {', '.join(extra[:6])}")
        if self.others:
            said.append(f"{self.others} messages without the joints of the robot were left out")
        if self.damaged:
            said.append(f"{self.damaged} damaged messages were left out")
        return NumberTable(
            str(path),
            np.column_stack([time, values[:, sent]]),
            ("time", *(names[k] for k in sent)),
            units=("s", *("" for _ in sent)),
            notes=tuple(map(one_line, said)),
        )


def _row(state: JointState, order: list[int]) -> tuple[float, ...]:
    """Position, velocity and effort of the joints in order; NaN where a quantity was not sent."""
    count = len(state.names)
    return tuple(
        values[k] if len(values) == count else float("nan")
        for values in (state.position, state.velocity, state.effort)
        for k in order
    )


def _chosen(
    path: Path, topics: dict[str, _Topic], contents: Contents, wanted: str | None, joints: Sequence[str]
) -> tuple[str, _Topic]:
    """The topic that is meant, or an error that lists what there is."""
    if not topics:
        there = (
            ", ".join(f"{name} ({kind})" for name, kind in list(contents.topics.items())[:8]) or "no topics"
        )
        raise TableError(f"{path}: no messages of type sensor_msgs/JointState in it; it has {there}")
    if wanted is not None:
        names = [name for name in topics if name.strip("/") == wanted.strip("/")]
        if not names:
            raise TableError(f"{path}: no joint states on topic {wanted!r}; there are {', '.join(topics)}")
        topics = {names[0]: topics[names[0]]}
    usable = {name: each for name, each in topics.items() if each.rows}
    if not usable:
        name, each = max(topics.items(), key=lambda item: item[1].others)
        missing = ", ".join(joint for joint in joints if joint not in each.seen) or "joints in one message"
        there = ", ".join(list(each.seen)[:14]) or "no names"
        if each.damaged:
            there += f", and {each.damaged} damaged messages"
        raise TableError(f"{path}: topic {name}: no {missing}; it has {there}")
    measured = {name: each for name, each in usable.items() if each.has_effort} or usable
    measured = {name: each for name, each in measured.items() if not is_planned(plain(name))} or measured
    if len(measured) > 1:
        raise TableError(
            f"{path}: these joints are on several topics: {', '.join(measured)}; choose one "
            "(--topic, or recording.topic in the layout)"
        )
    return next(iter(measured.items()))
