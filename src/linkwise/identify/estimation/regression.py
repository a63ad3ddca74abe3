"""The observation matrix: what every parameter does to every torque, at every sample.

Columns are the ten parameters of each link (the compiled regressor), then the terms of each axis (see ``friction``).
Torques and columns pass the same low-pass filter and are then thinned, so that noise above the cut-off is gone and
both sides have lost the same (Gautier's parallel decimation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from linkwise.core.once import once
from linkwise.core.summaries import Summarised
from linkwise.identify.estimation.friction import AxisSignals, Friction, Term, column
from linkwise.identify.recordings.signals import Signals
from linkwise.model.inertia import LABELS as INERTIAL
from linkwise.robot.robot import Robot
from linkwise.solve import linear
from linkwise.solve.linear import product


def axes_of(dof: int, coupled: np.ndarray | None = None) -> np.ndarray:
    """All axes with terms of their own, shape (axes, n): the joints, then coupled motors."""
    return np.eye(dof) if coupled is None else np.vstack([np.eye(dof), coupled])


def axis_names(robot: Robot, axes: np.ndarray) -> list[str]:
    """Joint names; a coupled axis is called after what it sums, such as ``joint_5+joint_6``."""
    names = []
    for row in axes:
        parts = [
            (f"{factor:+g}·" if abs(factor) != 1 else "+" if factor > 0 else "-") + name
            for name, factor in zip(robot.joint_names, row, strict=True)
            if factor
        ]
        names.append("".join(parts).removeprefix("+"))
    return names


@dataclass(frozen=True)
class Carried:
    """What axes carry besides friction: links of these parameters (10 n,), and (axis, term, coefficient) of drives."""

    links: np.ndarray
    drives: tuple[tuple[int, Term, float], ...] = ()

    @classmethod
    def of(cls, regression: Regression, x: np.ndarray) -> Carried:
        """By the parameters x of all columns of a regression."""
        placed = zip(regression.terms, x[regression.links :].tolist(), strict=True)
        return cls(
            x[: regression.links],
            tuple((axis, term, value) for (axis, term), value in placed if not term.dissipates),
        )

    def torques(self, links: np.ndarray, motion: AxisSignals, axes: np.ndarray) -> np.ndarray:
        """(N, n), from the columns of the links (N, n, 10 n) and the motion of the axes."""
        found = product(links, self.links)
        for axis, term, value in self.drives:
            found = found + value * column(motion, term)[:, axis, None] * axes[axis]
        return found


@dataclass(frozen=True, repr=False)
class Regression(Summarised):
    """Torques (N, n) and what explains them: columns Y (N, n, p) under their labels.

    The first ``links`` labels are inertial, ten per link; ``terms`` are (axis, term) of the others. ``edges`` are the
    places where one recording ends and the next begins. ``observer`` made it, with axes that carry ``carried``:
    estimators that simulate the robot ask it for the columns of other motions.
    """

    Y: np.ndarray
    tau: np.ndarray
    labels: tuple[str, ...]
    links: int
    terms: tuple[tuple[int, Term], ...]
    edges: tuple[int, ...] = ()
    observer: Observer | None = None
    carried: Carried | None = None

    @property
    def dof(self) -> int:
        return self.tau.shape[1]

    def __len__(self) -> int:
        return len(self.tau)

    def pick(self, columns: Sequence[int] | np.ndarray) -> Regression:
        """The same torques explained by some of the columns only."""
        chosen = np.asarray(columns, dtype=int)
        links = int((chosen < self.links).sum())
        terms = tuple(self.terms[k - self.links] for k in chosen if k >= self.links)
        return replace(
            self,
            Y=self.Y[..., chosen],
            labels=tuple(self.labels[k] for k in chosen),
            links=links,
            terms=terms,
        )

    def rows(self, which: np.ndarray) -> Regression:
        """Some samples only."""
        return replace(self, Y=self.Y[which], tau=self.tau[which], edges=(), observer=None)

    def stacked(self, weights: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """(W, y): N·n rows, each joint's multiplied with its weight (n,)."""
        if weights is None:
            return self.Y.reshape(-1, self.Y.shape[2]), self.tau.reshape(-1)
        return (self.Y * weights[:, None]).reshape(-1, self.Y.shape[2]), (self.tau * weights).reshape(-1)

    @once
    def triangles(self) -> np.ndarray:
        """R of each joint's [Y_j, τ_j] = Q R, shape (n, p + 1, p + 1): all that least squares need to know of it."""
        return np.stack([_triangle(np.column_stack([self.Y[:, j], self.tau[:, j]])) for j in range(self.dof)])

    def compressed(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(W, y) with the solution, residual norm and singular values of ``stacked``, but few rows."""
        rows = (self.triangles * weights[:, None, None]).reshape(-1, self.Y.shape[2] + 1)
        return rows[:, :-1], rows[:, -1]

    def spread(self, x: np.ndarray) -> np.ndarray:
        """Root mean square of each joint's residuals, shape (n,)."""
        return np.sqrt((product(self.triangles, np.append(x, -1.0)) ** 2).sum(axis=1)) / np.sqrt(len(self))

    def gram(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(WᵀW, Wᵀy) of the weighted rows."""
        W, y = self.compressed(weights)
        return product(W.T, W), product(W.T, y)

    def residuals(self, x: np.ndarray) -> np.ndarray:
        """τ − Y x, shape (N, n)."""
        return self.tau - product(self.Y, x)


def _triangle(A: np.ndarray) -> np.ndarray:
    """The triangle of a QR factorisation, square also where there are few rows."""
    R = linear.triangle(A)
    return R if len(R) == A.shape[1] else np.vstack([R, np.zeros((A.shape[1] - len(R), A.shape[1]))])


class Observer:
    """Builds regressions along recordings, for any friction; what does not depend on it is computed once.

    Args:
        robot: the robot.
        signals: the conditioned recordings.
    """

    def __init__(self, robot: Robot, signals: Sequence[Signals]):
        self.robot, self.signals = robot, list(signals)
        self.joints = robot.dof  # the first of the axes; others are those of coupled motors
        self.axes = axes_of(robot.dof, self.signals[0].log.axes)
        count = len(INERTIAL) * robot.dof
        self._link_columns = [robot.regressor(s.q, s.qd, s.qdd)[..., :count] for s in self.signals]
        self._filtered = [s.filtered(Y) for s, Y in zip(self.signals, self._link_columns, strict=True)]
        self.tau = np.concatenate([s.filtered(s.tau) for s in self.signals])
        none = np.zeros((1, robot.dof))
        self._motions = [
            AxisSignals.of(s.q, s.qd, s.qdd, none, self.axes, s.signs(self.axes)) for s in self.signals
        ]
        self.link_labels = robot.parameter_labels[:count]
        self.names = axis_names(robot, self.axes)

    def __repr__(self) -> str:
        return f"<Observer of {self.robot.name}: {len(self.signals)} recordings, {len(self.tau)} samples>"

    def adapted(self, friction: Friction) -> Friction:
        """A friction model with the terms that can be used here: all of them."""
        return friction

    def allows(self, term: Term) -> bool:
        """Whether a term of friction can be used here."""
        return True

    @property
    def axis_sizes(self) -> np.ndarray:
        """Root mean square of the recorded torque of every axis [N·m or N], (axes,)."""
        tau = np.concatenate([s.tau for s in self.signals])
        return product(np.abs(self.axes), np.sqrt((tau**2).mean(axis=0)))

    @property
    def link_columns(self) -> np.ndarray:
        """Filtered columns of the links, shape (N, n, 10 n)."""
        return np.concatenate(self._filtered)

    def axis_signals(self, carried: Carried | None) -> list[AxisSignals]:
        """The motion of the axes and what they carry, nothing by default; one per recording."""
        if carried is None:
            return self._motions
        return [
            motion.with_load(carried.torques(Y, motion, self.axes), self.axes)
            for motion, Y in zip(self._motions, self._link_columns, strict=True)
        ]

    def term_columns(
        self, terms: Sequence[Term], carried: Carried | None = None, axis: int | None = None
    ) -> np.ndarray:
        """Filtered columns of terms for every axis, shape (N, axes, terms), or for one axis, (N, terms).

        Args:
            terms: the terms.
            carried: what the axes carry; nothing by default.
            axis: the number of one axis; all by default.
        """
        parts = []
        for s, motion in zip(self.signals, self.axis_signals(carried), strict=True):
            motion.prepare(sorted({term.width for term in terms if term.width}))
            which = slice(None) if axis is None else axis
            parts.append(s.filtered(np.stack([column(motion, term)[:, which] for term in terms], axis=-1)))
        return np.concatenate(parts)

    def regression(self, friction: Friction, carried: Carried | None = None) -> Regression:
        """All columns for a friction model.

        Args:
            friction: friction terms of every axis.
            carried: what the axes carry, for load friction; nothing by default.
        """
        placed = [(axis, term) for axis, terms in enumerate(friction) for term in terms]
        columns = [self.link_columns, *([self.placed_columns(placed, carried)] if placed else [])]
        lengths = np.cumsum([len(part) for part in self._filtered])
        return Regression(
            np.concatenate(columns, axis=-1),
            self.tau,
            (*self.link_labels, *(f"{self.names[a]}.{term.label}" for a, term in placed)),
            len(self.link_labels),
            tuple(placed),
            tuple(int(k) for k in lengths[:-1]),
            self,
            carried,
        )

    def placed_columns(
        self, placed: Sequence[tuple[int, Term]], carried: Carried | None = None
    ) -> np.ndarray:
        """Columns of (axis, term), (N, n, p).

        Args:
            placed: terms of axes.
            carried: as above.
        """
        used = list(dict.fromkeys(term for _, term in placed))
        values = self.term_columns(used, carried)
        return np.stack([values[:, a, used.index(term), None] * self.axes[a] for a, term in placed], axis=-1)
