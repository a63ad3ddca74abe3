"""Plain least squares beside the identified robot: what people fit by hand, judged on the same recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.identify.estimation.choices import CUTOFFS, plain_columns, plain_solution
from linkwise.identify.estimation.regression import Observer
from linkwise.identify.judging.validation import Validation, by_columns
from linkwise.identify.recordings.signals import Signals, condition
from linkwise.robot.robot import Robot


@dataclass(frozen=True)
class Competitor:
    """Plain least squares with one law of friction and one cut-off [Hz], on every recording that was predicted."""

    law: str
    cutoff: float
    validations: tuple[Validation, ...]

    @property
    def text(self) -> str:
        return f"plain least squares ({self.law}, {self.cutoff:g} Hz)"

    def summary(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "law": self.law,
            "cutoff": self.cutoff,
            "totals": [judged.total for judged in self.validations],
        }


def plain_competitors(
    robot: Robot, signals: Sequence[Signals], judged: Sequence[Validation]
) -> tuple[Competitor, ...]:
    """Fitted to the recordings of ``signals``, judged on those of ``judged``; bodies as they come, possible or not.

    Args:
        robot: the robot as it was given.
        signals: the recordings that were fitted.
        judged: the recordings that were predicted.
    """
    robot = robot.with_motors(()) if robot.motors else robot
    found, columns = [], {}
    for cutoff in CUTOFFS:
        fitted = {id(s.log): condition(s.log, cutoff=cutoff) for s in signals}
        tests = [fitted.get(id(v.log)) or condition(v.log, cutoff=cutoff) for v in judged]
        observer = Observer(robot, list(fitted.values()))
        columns = columns or plain_columns(observer)
        for law, (friction, base) in columns.items():
            regression = observer.regression(friction)
            x = np.zeros(len(regression.labels))
            x[list(base.columns)] = plain_solution(regression.pick(base.columns))
            totals = tuple(by_columns(robot, x, regression.terms, test) for test in tests)
            found.append(Competitor(law, cutoff, totals))
    return tuple(found)


def best_competitor(found: Sequence[Competitor], place: int) -> Competitor:
    """The one that predicts a recording best.

    Args:
        found: all of them.
        place: number of the recording.
    """
    return min(found, key=lambda each: each.validations[place].total)


__all__ = ["Competitor", "best_competitor", "plain_competitors"]
