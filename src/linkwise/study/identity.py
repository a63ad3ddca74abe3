"""Which code and which robot a study is computed with, by content; what has changed since a store was begun.

A store keeps the identity in ``study.json``. A run that finds another one stops before it computes anything: results
of different code must not be mixed silently. Workers of a cluster are compared with the driver in the same way.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from linkwise.core import identity
from linkwise.study import code
from linkwise.study.steps.call import CallStep
from linkwise.version import __version__

if TYPE_CHECKING:
    from linkwise.study.description import Description

Identity = dict[str, Any]
"""In types that JSON has, so that it can be kept and sent."""
_LENGTH = 32  # hexadecimal digits that are kept of a digest
_NAMED = 4  # changes that a message names


class ChangeWords(NamedTuple):
    """How differences are described."""

    changed: str
    new: str
    gone: str
    became: str


SINCE = ChangeWords("changed", "is new", "is gone", "became")
"""Between a store and this process."""
THERE = ChangeWords("differs", "is there only", "is missing there", "is not")
"""Between this process and a worker."""


def of(description: Description) -> Identity:
    """The package's own files, the robot, and the functions of the user's own with all that they refer to."""
    source = description.robot_source
    robot = Path(source).name if source is not None else description.robot.name
    parts: Identity = {
        "linkwise": __version__,
        "package": _short(identity.package_files()),
        "robot": {f"robot {robot!r}": description.robot_content[:_LENGTH]},
        "functions": {
            step.name: _short(code.parts(step.function))
            for step in description.steps
            if isinstance(step, CallStep)
        },
    }
    if parts["functions"]:  # bytecode belongs to a version
        parts["python"] = f"{sys.version_info.major}.{sys.version_info.minor}"
    return parts


def _short(digests: Mapping[str, str]) -> dict[str, str]:
    return {name: digest[:_LENGTH] for name, digest in digests.items()}


def digest(found: Identity) -> str:
    """Equal digests, equal identities."""
    return identity.digest(json.dumps(found, sort_keys=True).encode())


def changes(before: Identity | None, now: Identity, words: ChangeWords = SINCE) -> list[str]:
    """What is different, each in a few words; nothing where both are the same."""
    if before is None:
        return ["it does not record which code computed it"]
    differences = []
    if before.get("linkwise") != now["linkwise"]:
        differences.append(f"linkwise {before.get('linkwise')} {words.became} {now['linkwise']}")
    files = sorted(_different(before.get("package", {}), now["package"]))
    if files:
        differences.append(f"linkwise's own source {words.changed}: {listed(files)}")
    differences += _changes(before.get("robot", {}), now["robot"], words)
    other_python = before.get("python") != now.get("python") and "python" in before and "python" in now
    if other_python:
        differences.append(f"Python {before['python']} {words.became} {now['python']}")
    for step in dict.fromkeys([*before.get("functions", {}), *now["functions"]]):
        old, new = before.get("functions", {}).get(step, {}), now["functions"].get(step, {})
        if other_python:  # then all bytecode differs
            old = {label: new.get(label, digest) for label, digest in old.items()}
        differences += _changes(old, new, words)
    return list(dict.fromkeys(differences))


def changed_files(before: Identity) -> list[str]:
    """Files of Linkwise that differ from those of an identity."""
    return sorted(_different(before.get("package", {}), _short(identity.package_files())))


def _different(before: Mapping[str, str], now: Mapping[str, str]) -> set[str]:
    return {name for name in {*before, *now} if before.get(name) != now.get(name)}


def _changes(before: Mapping[str, str], now: Mapping[str, str], words: ChangeWords) -> list[str]:
    """Changes by label. A file is named where nothing in it is that has a label of its own."""
    different = _different(before, now)
    order = [label for label in dict.fromkeys([*before, *now]) if label in different]
    inside = [label for label in order if not label.startswith("file ")]
    files = [label for label in order if label.startswith("file ")]
    lines = []
    for label in (*inside, *files):
        if label in files and any(f" in {label[5:]}" in other for other in inside):
            continue
        both = label in before and label in now
        how = words.changed if both else words.new if label in now else words.gone
        lines.append(f"{label} {how}")
    return lines


def listed(names: Sequence[str]) -> str:
    """The first few of them."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def accepted(before: Identity | None, changed: Sequence[str], chunks: Iterable[int]) -> dict[str, Any]:
    """The record of a change that was accepted: when, what, and which chunks had been computed before."""
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "changed": list(changed),
        "chunks_before": runs(chunks),
        "identity_before": None if before is None else digest(before),
    }


def runs(numbers: Iterable[int]) -> list[list[int]]:
    """Whole numbers as [first, last] of each run of them."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return spans
