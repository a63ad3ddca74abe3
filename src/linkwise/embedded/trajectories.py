"""Trajectories in C packages: any motion as tables of polynomials, a Fourier series as its formula.

The piece of a time is found by halving: as many comparisons as the number of pieces has binary digits, the same for all
times. Which row of the table is read depends on the time, so code in constant time goes over all rows instead and
selects.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linkwise.compiler.ir import interpret
from linkwise.compiler.ir.graph import Graph
from linkwise.compiler.ir.loops import (
    Array,
    Change,
    Declare,
    Element,
    For,
    Let,
    Nest,
    Place,
    Register,
    Statement,
    Step,
    choose,
    entry,
    name,
    whole,
)
from linkwise.compiler.ir.operations import Operations
from linkwise.compiler.ir.program import lower
from linkwise.compiler.ir.schedule import schedule
from linkwise.compiler.kernel import Kernel, traced_kernel
from linkwise.compiler.trace.procedure import ProcedureNest
from linkwise.errors import LinkwiseError
from linkwise.motion import FourierSeries, PiecewisePolynomial, Trajectory, pieces
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar, cos, sin, where

OUTPUTS = ("q_d", "qd_d", "qdd_d")
_TIME = Element("time", whole(0))


class TrajectoryError(LinkwiseError, ValueError):
    """A trajectory cannot be generated; the message says why."""


def trajectory_kernel(trajectory: Trajectory, dtype: str, constant_time: bool = False) -> tuple[Kernel, str]:
    """A kernel of the time [s] that gives positions, velocities and accelerations, and what it is in words.

    Args:
        trajectory: any motion.
        dtype: "float64" or "float32".
        constant_time: whether what is read must not depend on the time.

    Raises:
        TrajectoryError: the motion has no end and is no Fourier series, needs too many pieces, or its times are too
            close for the precision.
    """
    if isinstance(trajectory, FourierSeries):
        words = f"periodic motion, {len(trajectory.sine)} harmonics of {trajectory.period:g} s"
        return _series(trajectory, dtype), words
    try:
        found = pieces(trajectory)
    except ValueError as error:
        raise TrajectoryError(f"trajectory: {error}") from None
    if (np.diff(found.times.astype(dtype)) <= 0).any():
        k = int(np.flatnonzero(np.diff(found.times.astype(dtype)) <= 0)[0])
        raise TrajectoryError(
            f"trajectory: two times near {found.times[k]:g} s are the same in {dtype}; use fewer points or float64"
        )
    words = f"motion of {len(found.times) - 1} pieces from {found.begin:g} s to {found.end:g} s"
    return _Tabulated(found, dtype, constant_time), words


def check_joints(robot: Robot, trajectory: Trajectory) -> None:
    """Refuse a motion of another number of joints."""
    if trajectory.dof != robot.dof:
        raise TrajectoryError(
            f"trajectory: a motion of {trajectory.dof} joints, {robot.name} has {robot.dof}"
        )


def times_of(trajectory: Trajectory) -> np.ndarray:
    """Times for a check [s], (16,): before, within and after the motion, and where pieces begin."""
    corners = np.asarray(trajectory.corners())  # of a motion without end: one period
    begin, end = float(corners[0]), float(corners[-1])
    length = end - begin
    inner = np.random.default_rng(3).uniform(begin, end, 10)
    some = corners[np.linspace(0, len(corners) - 1, 4).astype(int)]
    return np.concatenate([some, inner, [begin - 0.1 * length, end + 0.1 * length]])


def _series(series: FourierSeries, dtype: str) -> Kernel:
    def at(time: Sequence[Scalar]) -> dict[str, list[Scalar]]:
        rate = 2 * math.pi / series.period
        q: list[Scalar] = [float(x) for x in series.centre]
        qd: list[Scalar] = [0.0] * series.dof
        qdd: list[Scalar] = [0.0] * series.dof
        for k, (a, b) in enumerate(zip(series.sine, series.cosine, strict=True), 1):
            w = k * rate
            s, c = sin(w * time[0]), cos(w * time[0])
            for j in range(series.dof):
                sine, cosine = float(a[j]), float(b[j])
                q[j] = q[j] + (sine * s + cosine * c)
                qd[j] = qd[j] + ((w * sine) * c - (w * cosine) * s)
                qdd[j] = qdd[j] - ((w * w * sine) * s + (w * w * cosine) * c)
        return dict(zip(OUTPUTS, (q, qd, qdd), strict=True))

    shapes: dict[str, tuple[int, ...]] = {key: (series.dof,) for key in OUTPUTS}
    return traced_kernel("trajectory", at, {"time": 1}, shapes, dtype, None)


class _Tabulated(Kernel):
    """A kernel whose code reads the row of a table that belongs to the time.

    Lanes of vectors cannot read different rows, so called from Python it is interpreted.
    """

    def __init__(self, motion: PiecewisePolynomial, dtype: str, constant_time: bool):
        outputs = [(key, (motion.dof,)) for key in OUTPUTS]
        self._nest = _Table(motion, dtype).nest(scanned=constant_time)
        super().__init__("trajectory", [("time", 1)], outputs, dtype, lambda precision: self._nest)  # type: ignore[arg-type,return-value]

    def program(self, dtype: str | None = None) -> Any:
        """The nest."""
        return self._nest

    def __call__(self, *args: Any, out: Any = None, threads: int | None = None) -> tuple[np.ndarray, ...]:
        kind, size = np.dtype(self._nest.dtype), self.outputs[0][1][0]
        given = np.asarray(args[0], kind)
        found = np.empty((3, *given.shape[:-1], size), kind)
        for place in np.ndindex(given.shape[:-1]):
            arrays = {"time": given[place], **{key: np.zeros(size, kind) for key in OUTPUTS}}
            interpret.run_nest(self._nest, arrays)
            for k, key in enumerate(OUTPUTS):
                found[(k, *place)] = arrays[key]
        return tuple(found)


class _Table:
    """The statements that evaluate a motion of pieces."""

    def __init__(self, motion: PiecewisePolynomial, dtype: str, fused: bool = True):
        self.motion, self.dtype, self.fused, self.graph = motion, dtype, fused, Graph()
        given = motion.coefficients
        straight = np.zeros(
            (len(given), max(0, 2 - given.shape[1]), motion.dof)
        )  # a slope, for one that stands still
        self.coefficients = np.concatenate([given, straight], axis=1)
        self.count, self.order = self.coefficients.shape[:2]
        self.width = self.order * motion.dof
        self.steps = 0
        self.cost = Operations()

    def nest(self, scanned: bool) -> Nest:
        digits = (self.count - 1).bit_length()
        begins = np.full(1 << digits, np.inf)
        begins[: self.count] = self.motion.times[:-1]
        constants = {"begins": begins, "coefficients": self.coefficients.ravel()}
        arrays = (
            Array("time", "input", 1),
            *(Array(key, "output", self.motion.dof) for key in OUTPUTS),
            Array("begins", "constant", len(begins)),
            Array("coefficients", "constant", self.width, self.count),
        )
        body = self._scanned() if scanned else self._halved(digits)
        return ProcedureNest(
            "trajectory",
            self.dtype,
            arrays,
            body,
            constants=constants,
            tables={} if scanned or not digits else {"halves": [1 << k for k in reversed(range(digits))]},
            operations=self.cost,
            unfused=lambda: _Table(self.motion, self.dtype, fused=False).nest(scanned),
        )

    def _halved(self, digits: int) -> list[Statement]:
        """The row is found by halving. Rows behind the last one begin at infinity: a time that is infinite is behind
        their begin too, so the row that is read is the last one at most. NaN is behind no begin, so row 0 is read."""
        row, last = name("piece"), self.count - 1
        read = choose(row < last, row, last) if digits else whole(0)
        cells: list[Place] = [Element("coefficients", whole(k), read) for k in range(self.width)]
        evaluated = self._evaluated([Element("begins", read), *cells])
        if not digits:
            return [evaluated]
        half = entry("halves", name("turn"))
        turn = [
            Let("later", whole(0)),
            self._begun(Element("begins", row + half)),
            Change("piece", row + name("later") * half),
        ]
        return [Let("piece", whole(0)), For("turn", whole(0), whole(digits), turn), evaluated]

    def _scanned(self) -> list[Statement]:
        """All rows are read, and the last one that has begun is kept in registers."""
        kept = [Register(f"c{k}") for k in range(self.width)]
        begin = Register("begin")
        row = name("row")

        def chosen(t: Any, mine: Any, *rest: Any) -> list[Scalar]:
            old, new = rest[: self.width], rest[self.width :]
            start, *others = new
            return [where(t >= start, b, a) for a, b in zip((mine, *old), (start, *others), strict=True)]

        reads: list[Place] = [_TIME, begin, *kept, Element("begins", row)]
        reads += [Element("coefficients", whole(k), row) for k in range(self.width)]
        starts: dict[Register, float | Element] = {begin: Element("begins", whole(0))}
        starts |= {r: Element("coefficients", whole(k), whole(0)) for k, r in enumerate(kept)}
        loop = self._step(chosen, reads, [begin, *kept])
        return [
            Declare(starts),
            *([For("row", whole(1), whole(self.count), [loop])] if self.count > 1 else []),
            self._evaluated([begin, *kept]),
        ]

    def _evaluated(self, cells: Sequence[Place]) -> Step:
        """Positions, velocities and accelerations from the begin of a piece and its coefficients."""
        first, last, n = self.motion.begin, self.motion.end, self.motion.dof

        def values(t: Any, begin: Any, *c: Any) -> list[Scalar]:
            inside = where(t < first, first, where(t > last, last, t))
            x = inside - begin
            q, qd, qdd = [], [], []
            for j in range(n):
                p, v, a = c[(self.order - 1) * n + j], 0.0, 0.0
                for k in reversed(range(self.order - 1)):
                    a, v, p = a * x + v, v * x + p, p * x + c[k * n + j]
                q.append(p)
                qd.append(where(t < first, 0.0, where(t > last, 0.0, v)))
                qdd.append(where(t < first, 0.0, where(t > last, 0.0, 2.0 * a)))
            return [*q, *qd, *qdd]

        writes = [Element(key, whole(j)) for key in OUTPUTS for j in range(n)]
        return self._step(values, [_TIME, *cells], writes)

    def _begun(self, begin: Element) -> Step:
        """Whether a piece has begun, 1 or 0 in the name ``later``."""
        key = f"s{self.steps}"  # nodes of different steps are different
        self.steps += 1
        time, start = self.graph.inputs(key, 2)
        found = self.graph.make("word_of", (self.graph.lift_condition(time >= start),))
        return Step({(key, 0): _TIME, (key, 1): begin}, schedule([found]), [(name("later"), found)])

    def _step(
        self, function: Callable[..., Sequence[Any]], reads: Sequence[Place], writes: Sequence[Place]
    ) -> Step:
        key = f"s{self.steps}"  # nodes of different steps are different
        self.steps += 1
        nodes = [self.graph.lift(value) for value in function(*self.graph.inputs(key, len(reads)))]
        out = {"out": ((len(nodes),), nodes)}
        made = lower(out, {key: len(reads)}, name=key, dtype=self.dtype, fused=self.fused)  # type: ignore[arg-type]
        self.cost = made.operations  # of the last step, the evaluation; the others only compare
        return Step(
            {(key, k): place for k, place in enumerate(reads)},
            made.body,
            list(zip(writes, made.values[0], strict=True)),
        )
