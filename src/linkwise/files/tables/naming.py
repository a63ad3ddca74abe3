"""Columns by the names that other programs give them: a topic or prefix, a quantity, a joint or its number.

``/joint_states/panda_joint1/position`` (PlotJuggler), ``actual_q_0`` (RTDE of Universal Robots), ``state.tau_J[0]``
(libfranka), ``field.position0`` beside ``field.name0`` (rostopic). Names are compared in lower case, with every other
character than letters and digits as an underscore. What comes before quantity and joint is the prefix.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from linkwise.files.tables import units
from linkwise.files.tables.table import NumberTable, TableError

_QUANTITIES: dict[str, tuple[str, ...]] = {
    "position": ("q", "position", "positions", "pos", "qpos", "angle", "angles", "theta"),
    "velocity": ("qd", "dq", "qdot", "q_dot", "velocity", "velocities", "vel", "qvel", "speed", "speeds"),
    "acceleration": ("qdd", "ddq", "qddot", "q_ddot", "acceleration", "accelerations", "acc"),
    "torque": ("tau_j", "tau", "torque", "torques", "effort", "efforts", "trq", "moment", "moments"),
    "current": ("current", "currents"),
}
_MEASURED = ("meas", "measured", "msr", "actual")
"""Words behind a name that say that a signal was measured, where another one may have been wanted."""

WORDS = {
    quantity: (*(f"{word}_{after}" for word in words for after in _MEASURED), *words)
    for quantity, words in _QUANTITIES.items()
}
"""Names of a quantity, in order of preference."""

PLANNED = frozenset(
    [
        "target",
        "desired",
        "des",
        "d",
        "command",
        "commanded",
        "cmd",
        "reference",
        "ref",
        "goal",
        "setpoint",
        "error",
    ]
)
"""Parts of a prefix that say that a signal was not measured."""

TIMES = ("time", "times", "t", "timestamp", "timestamps", "stamp", "stamps", "tout", "datetime")
"""Last words of names of time."""

USUAL_TIMES = ("time", "t", "timestamp")
"""Those that are taken before the others."""

_JOINT = "(?:joint|axis|j)_?"


def plain(name: str) -> str:
    """A name as it is compared: lower case, underscores between words; ``measuredTorque`` is two words."""
    words = re.sub("(?<=[a-z][a-z])(?=[A-Z])", "_", units.split(name)[0])
    return re.sub("[^0-9a-z]+", "_", words.lower()).strip("_")


def is_quantity(name: str) -> bool:
    """Whether the last words of a name are those of a quantity of joints.

    Args:
        name: of an array.
    """
    words = f"_{plain(name)}"
    return any(words.endswith(f"_{each}") for known in WORDS.values() for each in known)


def find(
    table: NumberTable, quantity: str, joints: Sequence[str], topic: str | None = None
) -> list[int] | None:
    """One column per joint; None where there are none.

    Args:
        table: the table.
        quantity: a key of ``WORDS``.
        joints: names of the joints.
        topic: the prefix that is meant, where there are several.

    Raises:
        TableError: several prefixes have all columns.
    """
    names = [plain(name) for name in table.names or ()]
    planned: dict[str, list[int]] = {}
    for word in WORDS[quantity]:
        found = _complete(table, names, word, joints)
        found = {
            prefix: columns for prefix, columns in found.items() if topic is None or _within(topic, prefix)
        }
        measured = {prefix: columns for prefix, columns in found.items() if not is_planned(prefix)}
        if measured:
            return _only(table, quantity, joints, measured)
        planned = planned or found
    return _only(table, quantity, joints, planned) if planned else None


def _only(table: NumberTable, quantity: str, joints: Sequence[str], found: dict[str, list[int]]) -> list[int]:
    """The columns of the only prefix; TableError where there are several."""
    if len(found) > 1:
        shown = ", ".join(table.names[columns[0]] for columns in found.values())  # type: ignore[index]
        raise TableError(
            f"{table.path}: several columns of {quantity} for {joints[0]}: {shown}; choose one by its topic or "
            "prefix (--topic, or recording.topic in the layout)"
        )
    return next(iter(found.values()))


def has_joint(table: NumberTable, quantity: str, joint: str) -> bool:
    """Whether a column of the quantity has the name of a joint in its own."""
    names = [plain(name) for name in table.names or ()]
    return any(_by_joint(names, word, [joint]) for word in WORDS[quantity])


def is_planned(prefix: str) -> bool:
    """Whether a prefix says that a signal was wanted or computed, not measured."""
    return not PLANNED.isdisjoint(prefix.split("_"))


def find_time(table: NumberTable, topic: str | None = None, *, stamps: bool) -> list[int] | None:
    """The column of time, or two: seconds and nanoseconds.

    Args:
        table: the table.
        topic: the prefix that is meant, where there are several.
        stamps: only those in the header of a message; other times are when a message was received or written.
    """
    names = [plain(name) for name in table.names or ()]
    places = {name: k for k, name in reversed(list(enumerate(names)))}
    pairs = {
        prefix: [k, places[f"{prefix}{fine}"]]
        for name, k in places.items()
        for coarse in ("sec", "secs", "seconds")
        for fine in ("nanosec", "nanosecs", "nsec", "nsecs", "nanoseconds")
        if name == coarse or name.endswith(f"_{coarse}")
        for prefix in [name.removesuffix(coarse)]
        if f"{prefix}{fine}" in places
    }
    single = {name: [k] for name, k in places.items() if name.endswith("header_stamp")}
    found = {prefix: columns for prefix, columns in (pairs | single).items() if "stamp" in prefix}
    if not stamps:
        named = {name: [k] for name, k in places.items() if name.rpartition("_")[2] in TIMES}
        usual = sorted(named, key=lambda name: (name != "time", name.rpartition("_")[2] not in USUAL_TIMES))
        found = found | pairs | {name: named[name] for name in usual}
    chosen = [columns for prefix, columns in found.items() if topic is not None and _within(topic, prefix)]
    return next(iter(chosen or found.values()), None)


def left_out(table: NumberTable, columns: Sequence[int], joints: Sequence[str]) -> str:
    """A note that counts joints beside those of the robot; "" where there are none, or where they are numbered."""
    names = [plain(name) for name in table.names or ()]
    known = [plain(joint) for joint in joints]
    first = names[columns[0]] if names and columns else ""
    if known[0] not in first:
        return ""
    before, _, after = first.partition(known[0])
    others = [
        name[len(before) : len(name) - len(after)]
        for name in names
        if name.startswith(before) and name.endswith(after) and len(name) > len(before) + len(after)
    ]
    extra = [name for name in others if name not in known]
    return f"{len(extra)} other joints were left out: {', '.join(extra[:6])}" if extra else ""


def _within(topic: str, prefix: str) -> bool:
    wanted = plain(topic)
    return prefix == wanted or prefix.startswith(f"{wanted}_") or prefix.endswith(f"_{wanted}")


def _complete(
    table: NumberTable, names: Sequence[str], word: str, joints: Sequence[str]
) -> dict[str, list[int]]:
    """The columns of all joints under each prefix that has them."""
    return _by_joint(names, word, joints) | _by_number(table, names, word, joints)


def _by_joint(names: Sequence[str], word: str, joints: Sequence[str]) -> dict[str, list[int]]:
    found: dict[str, dict[int, int]] = {}
    for number, joint in enumerate(map(plain, joints)):
        for ending in (f"{joint}_{word}", f"{word}_{joint}"):
            for k, name in enumerate(names):
                if name == ending or name.endswith(f"_{ending}"):
                    found.setdefault(name.removesuffix(ending).strip("_"), {}).setdefault(number, k)
    return {
        prefix: [places[k] for k in range(len(joints))]
        for prefix, places in found.items()
        if len(places) == len(joints)
    }


def _by_number(
    table: NumberTable, names: Sequence[str], word: str, joints: Sequence[str]
) -> dict[str, list[int]]:
    """By numbers from 0 or 1, in the order of the joints, or as texts in the table say (``name0`` …)."""
    pattern = re.compile(rf"(?:(.*)_)?(?:{word}_?(?:{_JOINT})?([0-9]+)|{_JOINT}([0-9]+)_{word})")
    found: dict[str, dict[int, int]] = {}
    for k, name in enumerate(names):
        match = pattern.fullmatch(name)
        if match:
            found.setdefault(match[1] or "", {})[int(match[2] or match[3])] = k
    complete: dict[str, list[int]] = {}
    for prefix, places in found.items():
        order = _named_in_rows(table, names, prefix)
        if order is not None:
            if all(joint in order and order[joint] in places for joint in joints):
                complete[prefix] = [places[order[joint]] for joint in joints]
            continue
        start = 0 if 0 in places else 1
        if len(places) == len(joints) and all(k + start in places for k in range(len(joints))):
            complete[prefix] = [places[k + start] for k in range(len(joints))]
    return complete


def _named_in_rows(table: NumberTable, names: Sequence[str], prefix: str) -> dict[str, int] | None:
    """The numbers of joints whose names are texts in columns ``name0`` …; None where there are no such columns."""
    start = f"{prefix}_" if prefix else ""
    pattern = re.compile(rf"{re.escape(start)}(?:joint_)?names?_?([0-9]+)")
    found = {}
    for k, text in table.texts.items():
        match = pattern.fullmatch(names[k]) if k < len(names) else None
        if match:
            found[text.strip()] = int(match[1])
    return found or None
