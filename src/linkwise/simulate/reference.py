"""Where the reference of a simulation comes from, and how a kernel reads it.

A trajectory is tabulated once and fed to the kernel, one row per sample; a point is a parameter; moves
between points are computed inside the kernel from their ends, so that every robot of a large batch can have
its own without any table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.compiler.rollout import Feed
from linkwise.control import Reference
from linkwise.errors import ShapeError
from linkwise.motion import Moment, Trajectory
from linkwise.scalar import Scalar, where
from linkwise.simulate import arguments
from linkwise.simulate.arguments import SimulationError

Values = Mapping[str, Sequence[Scalar]]


class Source(ABC):
    """A kind of reference. ``places`` are the points of a step at which it is needed: (0,) or (0, 0.5, 1)."""

    timed = False
    """Whether a kernel needs the time."""

    def feeds(self, dof: int, places: Sequence[float]) -> dict[str, Feed]:
        """Tables that a kernel reads row by row, by name.

        Args:
            dof: number of joints.
            places: see ``Source``.
        """
        return {}

    def tables(self, steps: int, period: float, places: Sequence[float]) -> dict[str, np.ndarray]:
        """What the feeds contain, by name.

        Args:
            steps: number of control periods.
            period: control period [s].
            places: see ``Source``.
        """
        return {}

    def parameters(self, dof: int) -> dict[str, np.ndarray]:
        return {}

    @abstractmethod
    def at(self, values: Values, number: int, time: Scalar, dof: int) -> Reference:
        """The reference at one of the places of a step, over scalars.

        Args:
            values: feeds and parameters by name.
            number: of the place in ``places``.
            time: [s] there.
            dof: number of joints.
        """

    @abstractmethod
    def moment(self, t: np.ndarray, batch: tuple[int, ...], dof: int) -> Moment:
        """The same for Python: q, qd, qdd (batch..., times, n) at the times (times,).

        Args:
            t: times [s], shape (times,).
            batch: leading axes of the result.
            dof: number of joints.
        """

    @abstractmethod
    def batch(self) -> tuple[int, ...]:
        """Leading axes of the reference: () where all robots have the same."""


@dataclass(frozen=True)
class Along(Source):
    """One trajectory for all robots, or one for each."""

    trajectories: tuple[Trajectory, ...]
    shared: bool

    def feeds(self, dof, places):
        spaced = len(places) > 1
        return {"reference": Feed(3 * dof * len(places), 3 * dof * (2 if spaced else 1), self.shared)}

    def tables(self, steps, period, places):
        count = 2 * steps + 1 if len(places) > 1 else steps
        t = np.arange(count) * (period / 2 if len(places) > 1 else period)
        rows = [np.concatenate(trajectory.at(t), axis=-1).ravel() for trajectory in self.trajectories]
        return {"reference": rows[0] if self.shared else np.array(rows)}

    def at(self, values, number, time, dof):
        row = values["reference"][3 * dof * number : 3 * dof * (number + 1)]
        return Reference(row[:dof], row[dof : 2 * dof], row[2 * dof :])

    def moment(self, t, batch, dof):
        found = [trajectory.at(t) for trajectory in self.trajectories]
        if self.shared:
            return found[0]
        parts = (np.array(part) for part in zip(*found, strict=True))
        return Moment(*(np.broadcast_to(part, (*batch, len(t), dof)) for part in parts))

    def batch(self):
        return () if self.shared else (len(self.trajectories),)


@dataclass(frozen=True, eq=False)
class StandingStill(Source):
    """Standing still at a position (..., nq)."""

    position: np.ndarray

    def parameters(self, dof):
        return {"target": self.position}

    def at(self, values, number, time, dof):
        return Reference(values["target"], [0.0] * dof, [0.0] * dof)

    def moment(self, t, batch, dof):
        size = self.position.shape[-1]
        q = np.broadcast_to(self.position, (*batch, size))[..., np.newaxis, :]
        rest = np.zeros((*batch, len(t), dof))
        return Moment(np.broadcast_to(q, (*batch, len(t), size)), rest, np.zeros_like(rest))

    def batch(self):
        return self.position.shape[:-1]


@dataclass(frozen=True, eq=False)
class Moves(Source):
    """Quintic moves from ``start`` (..., n) to ``end`` (..., n) in ``duration`` [s], (...,): computed in the loop."""

    start: np.ndarray
    end: np.ndarray
    duration: float | np.ndarray = 1.0
    timed = True

    def __post_init__(self):
        arguments.array("Moves: start", self.start)
        arguments.array("Moves: end", self.end)
        arguments.array("Moves: duration", self.duration, above=0.0)

    def parameters(self, dof):
        start, end = np.asarray(self.start, dtype=float), np.asarray(self.end, dtype=float)
        return {
            "start": start,
            "way": end - start,
            "rate": 1.0 / np.asarray(self.duration, dtype=float)[..., np.newaxis],
        }

    def at(self, values, number, time, dof):
        (rate,) = values["rate"]
        u = time * rate
        u = where(u > 1.0, 1.0, u)  # NaN stays NaN
        left = 1.0 - u
        shape = u * u * u * (10.0 - u * (15.0 - 6.0 * u))
        slope = 30.0 * rate * (u * left) * (u * left)
        bend = 60.0 * rate * rate * (u * left) * (left - u)
        q = [a + w * shape for a, w in zip(values["start"], values["way"], strict=True)]
        return Reference(q, [w * slope for w in values["way"]], [w * bend for w in values["way"]])

    def moment(self, t, batch, dof):
        values = {
            name: list(np.moveaxis(np.asarray(value)[..., np.newaxis, :], -1, 0))
            for name, value in self.parameters(dof).items()
        }
        time: Any = t
        found: Any = self.at(values, 0, time, dof)
        shape = (*batch, len(t))
        parts = ([np.broadcast_to(x, shape) for x in part] for part in (found.q, found.qd, found.qdd))
        return Moment(*(np.stack(part, axis=-1) for part in parts))

    def batch(self):
        return np.broadcast_shapes(
            np.shape(self.start)[:-1], np.shape(self.end)[:-1], np.shape(self.duration)
        )


def source_of(reference, dof: int, nq: int | None = None) -> Source:
    """What a user may give: a trajectory, a list of them, positions (..., nq), or ``Moves``.

    ``nq`` is the number of position coordinates (default: ``dof``). Where they differ, only positions are taken.
    """
    nq = dof if nq is None else nq
    if nq != dof and not (isinstance(reference, StandingStill) or _is_array(reference)):
        raise SimulationError(
            "reference: trajectories and moves are for arms; a robot with ball or floating joints takes a position "
            f"(..., {nq})"
        )
    if isinstance(reference, Moves):
        for name in ("start", "end"):
            arguments.state(f"Moves: {name}", getattr(reference, name), dof)
    if isinstance(reference, Source):
        return reference
    if isinstance(reference, Trajectory):
        reference, shared = (reference,), True
    elif isinstance(reference, (list, tuple)) and reference and isinstance(reference[0], Trajectory):
        reference, shared = tuple(reference), False
    else:
        position = arguments.array("reference", reference)
        if position.shape[-1:] != (nq,):
            raise ShapeError(
                f"reference: expected a trajectory or positions (..., {nq}), got shape {position.shape}"
            )
        return StandingStill(position)
    for trajectory in reference:
        if trajectory.dof != dof:
            raise ShapeError(f"reference: expected a trajectory of {dof} joints, got one of {trajectory.dof}")
    return Along(reference, shared)


def _is_array(reference: object) -> bool:
    """Whether a reference is numbers: neither a trajectory nor a list of them nor a kind of reference."""
    if isinstance(reference, (list, tuple)):
        return not any(isinstance(entry, Trajectory) for entry in reference)
    return not isinstance(reference, (Trajectory, Source))
