"""Durations of phases as unknowns: all steps of a phase take the same time, which is chosen with the torques.

The duration h⁻ of the step before is part of the state, and u has one number more, d. A stage that begins a phase takes
d for its step, h = d; every other stage keeps h = h⁻. So phases are run-time flags, limits of durations are limits of
u, and the solver, its batches and its generated code are those of all other problems.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.optimal import arguments
from linkwise.optimal.arguments import ProblemError
from linkwise.optimal.costs import Cost, Point, Terms
from linkwise.scalar import Scalar

if TYPE_CHECKING:
    from linkwise.optimal.dynamics import Dynamics

BEGINS = "timings.begins"
TIED = 100.0
"""Weight of (d − h⁻)², in units of the step that is given, in stages that begin no phase, where d has no effect."""


@dataclass(frozen=True, eq=False)
class Timings:
    """Durations that are chosen.

    Args:
        shortest: of a step [s], one number or one for each phase.
        longest: of a step [s], the same.
        phases: numbers of the stages at which phases begin, from 0 on; by default all stages are one phase.
    """

    shortest: Any
    longest: Any
    phases: Sequence[int] = (0,)

    def __post_init__(self):
        phases = tuple(arguments.whole("timings: phases", k, 0) for k in self.phases)
        if not phases or phases[0] != 0 or any(a >= b for a, b in pairwise(phases)):
            raise ProblemError(
                f"timings: phases: expected stages that grow from 0 on, got {self.phases!r:.80}"
            )
        object.__setattr__(self, "phases", phases)
        for name in ("shortest", "longest"):
            side = arguments.each(f"timings: {name}", getattr(self, name), len(phases))
            object.__setattr__(self, name, side)
        if not (self.shortest > 0.0).all() or (self.shortest > self.longest).any():
            raise ProblemError("timings: expected durations above 0, shortest not above longest")

    def begins(self, rows: int) -> np.ndarray:
        """1 for stages that begin a phase, else 0, (rows, 1).

        Args:
            rows: stages, the end included.
        """
        if self.phases[-1] >= rows - 1:
            raise ProblemError(f"timings: phases: {self.phases[-1]} is not a stage of {rows - 1}")
        table = np.zeros((rows, 1))
        table[list(self.phases)] = 1.0
        return table

    def limits(self, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """(shortest, longest) of every stage [s], (rows, 1) each.

        Args:
            rows: stages, the end included.
        """
        phase = np.cumsum(self.begins(rows)[:, 0]).astype(int) - 1
        return self.shortest[phase, None], self.longest[phase, None]


@dataclass(frozen=True, eq=False)
class Tied(Cost):
    """½ w ((d − h⁻)/step)² in stages that begin no phase: there d has no other effect, and is h⁻ at no cost."""

    timings: Timings
    step: float

    kind = "timings"
    running_only = True

    def parameters(self, robot: Any, dynamics: Any, rows: int) -> dict[str, np.ndarray]:
        return {"begins": self.timings.begins(rows)}

    def terms(self, point: Point, values: Mapping[str, Sequence[Scalar]]) -> Terms:
        (begins,), u = values["begins"], point.u
        assert u is not None
        keeps: Any = 1.0 - begins
        away: Any = u[-1] - point.x[-1]
        return Terms([keeps * away * (1.0 / self.step)], [TIED])


@dataclass(frozen=True, eq=False)
class Duration(Cost):
    """The price of time, w for a second: Σ w h, for problems whose steps have durations that are chosen."""

    weight: float = 1.0
    """[1/s]."""

    kind = "duration"
    running_only = True

    def check(self, dynamics: Dynamics) -> None:
        if not dynamics.timed:
            raise ProblemError(
                f"{self.label}: durations are given; choose them with timings=optimal.Timings(…)"
            )

    def parameters(self, robot, dynamics, rows):
        return {"weight": arguments.weights(f"{self.label}: weight", self.weight, 1, rows)}

    def terms(self, point, values):
        zeros: list[Scalar] = [0.0] * (point.dynamics.nx + point.dynamics.nu)
        return Terms([math.sqrt(2.0)], list(values["weight"]), [zeros])
