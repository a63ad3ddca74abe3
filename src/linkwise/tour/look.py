"""All parts of a tour, each on its own: one that cannot be computed says why, and the others go on."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from linkwise.robot.robot import Robot
from linkwise.tour.agreed import Agreed, compare_engines
from linkwise.tour.capability import Capability, payload_capability
from linkwise.tour.code import Code, code_sizes
from linkwise.tour.motions import FastMotion, fast_motion
from linkwise.tour.odd import oddities

PARTS = ("file", "agreement and speed", "C code", "payload", "fast motion")
_T = TypeVar("_T")


@dataclass(frozen=True)
class Tour:
    """What was found; a part that is a text says why it could not be computed."""

    robot: Robot
    source: str
    odd: list[str]
    agreed: Agreed | str
    code: list[Code] | str
    capability: Capability | str
    motion: FastMotion | str


def look_at(
    robot: Robot,
    source: str = "",
    *,
    warned: Sequence[str] = (),
    unchanged: Path | None = None,
    base: str = "fixed",
    frame: str | None = None,
    advance: Callable[[], None] = lambda: None,
) -> Tour:
    """Look at a robot from all sides.

    Args:
        robot: the robot.
        source: where it came from, for the report.
        warned: warnings of the reader.
        unchanged: its file, where the robot was read from it without changes.
        base: how its base moves: "fixed", "floating" or "planar".
        frame: the link that carries the load; by default the end of the longest chain.
        advance: called after each of the ``PARTS``.
    """

    def part(compute: Callable[[], _T]) -> _T | str:
        found = _attempted(robot, compute)
        advance()
        return found

    odd = oddities(robot, warned)
    advance()
    return Tour(
        robot,
        source or robot.name,
        odd,
        part(lambda: compare_engines(robot, unchanged, base)),
        part(lambda: code_sizes(robot)),
        part(lambda: payload_capability(robot, frame)),
        part(lambda: fast_motion(robot)),
    )


def _attempted(robot: Robot, compute: Callable[[], _T]) -> _T | str:
    """The result, or why there is none: a first look must not end at the first thing that a robot cannot do."""
    if robot.dof == 0:
        return "no joint moves"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of the file are among the oddities
            return compute()
    except Exception as error:
        if os.environ.get("LINKWISE_TRACEBACK"):  # to find bugs in Linkwise itself
            raise
        return " ".join(str(error).split()) or type(error).__name__
