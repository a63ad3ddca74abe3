"""Boxes that are too large for a proof, cut into parts: which parts are shown, and which are not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from linkwise.compiler.ir.program import Program
from linkwise.evidence import pivots
from linkwise.evidence.box import Box
from linkwise.evidence.forms import Problem, analyse
from linkwise.robot.robot import Robot


@dataclass(frozen=True)
class Divided:
    """Parts of a box; together they are the box.

    Args:
        shown: parts in which all values are finite numbers.
        left: the others, each with the first thing that could not be excluded.
    """

    shown: tuple[Box, ...]
    left: tuple[tuple[Box, Problem], ...]

    @property
    def share(self) -> float:
        """Part of the volume that is shown."""
        sizes = [_volume(part) for part in self.shown], [_volume(part) for part, _ in self.left]
        total = sum(map(sum, sizes))
        return sum(sizes[0]) / total if total else float(not self.left)


def divide(
    program: Program,
    box: Box,
    *,
    inputs: tuple[str, ...] = ("q",),
    most: int = 64,
    robot: Robot | None = None,
) -> Divided:
    """Cut a box in halves, one input after another, until every part is shown or there are too many.

    Args:
        program: straight-line.
        box: of its inputs.
        inputs: those that may be cut; always the number with the widest interval.
        most: parts that are looked at, at most.
        robot: whose function it is; divisors of its forward dynamics are bounded from its mass matrix.
    """
    waiting, shown, left = [box], [], []
    looked = 0
    while waiting:
        part = waiting.pop(0)
        looked += 1
        known = None if robot is None else pivots.divisors(robot, program, part)
        problems = analyse(program, part, known=known).problems
        widths = {(n, k): float(w) for n in inputs for k, w in enumerate(np.subtract(*part.bounds[n][::-1]))}
        if not problems:
            shown.append(part)
        elif looked + len(waiting) + 2 > most or not any(widths.values()):
            left.append((part, problems[0]))
        else:
            waiting += _halves(part, *max(widths, key=lambda place: widths[place]))
    return Divided(tuple(shown), tuple(left))


def _volume(box: Box) -> float:
    widths = [w for low, high in box.bounds.values() for w in (high - low).tolist() if w > 0.0]
    return float(np.prod(widths))


def _halves(box: Box, name: str, number: int) -> list[Box]:
    low, high = box.bounds[name]
    middle = (low[number] + high[number]) / 2
    found = []
    for side in (0, 1):
        ends = [low.copy(), high.copy()]
        ends[1 - side][number] = middle
        bounds: Mapping[str, tuple[np.ndarray, np.ndarray]] = {**box.bounds, name: (ends[0], ends[1])}
        found.append(Box(bounds, box.assumed))
    return found
