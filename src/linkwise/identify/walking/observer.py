"""Regressions along recordings of robots that walk: rows of base and joints, without the forces of the feet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from linkwise.functions.base_parameters import BaseParameters
from linkwise.identify.estimation.base import SHARED, in_order
from linkwise.identify.estimation.friction import AxisSignals, Friction, Term, column
from linkwise.identify.estimation.rank import STATES, independent, regrouping_order
from linkwise.identify.estimation.regression import Carried, Observer, Regression
from linkwise.identify.estimation.solvers import solve
from linkwise.identify.recordings.derivatives import low_pass
from linkwise.identify.walking.contacts import Foot, jacobians, orthonormal, projected
from linkwise.identify.walking.states import WalkingSignals
from linkwise.model.inertia import LABELS as INERTIAL
from linkwise.robot.robot import Robot

BASE = 6  # rows of the base: moments, then forces, in its axes
CHUNK = 512  # samples whose columns are computed together
REACH = 3.0  # periods of the cut-off, beyond which a filter has forgotten
HUBER = 1.345  # times the typical error of a sample, from which it counts less
TRUSTED = 3  # rounds in which that is decided
SMOOTH = 0.02  # [rad/s or m/s] over which friction changes its direction where a law would remember
ROW_NAMES = tuple(f"base {what} {axis}" for what in ("moment", "force") for axis in "xyz")


class WalkingObserver(Observer):
    """Builds regressions along recordings of a robot with a floating base.

    Rows are those of the base and of the joints, divided by ``scale`` and projected, see ``contacts``.

    Args:
        robot: the robot.
        signals: the conditioned recordings.
        feet: what may touch the ground.
        held: of every recording, which feet are held, and the base (last): (N, feet + 1).
        scale: standard deviations of the rows' errors [N·m or N], (dof,).
    """

    def __init__(
        self,
        robot: Robot,
        signals: Sequence[WalkingSignals],
        feet: Sequence[Foot],
        held: Sequence[np.ndarray],
        scale: np.ndarray,
    ):
        self.robot, self.signals, self.feet = robot, list(signals), tuple(feet)
        self.held, self.scale = (
            [np.asarray(each, dtype=bool) for each in held],
            np.asarray(scale, dtype=float),
        )
        self.joints = robot.dof - BASE
        self.axes = np.eye(self.joints)
        self.names = list(robot.joint_names[1:])
        count = len(INERTIAL) * len(robot.labelled_bodies())
        self.link_labels = robot.parameter_labels[:count]
        self._motions = [
            AxisSignals.of(s.q, s.qd, s.qdd, np.zeros((1, self.joints)), self.axes, s.signs(self.axes))
            for s in self.signals
        ]
        self._shares: list[np.ndarray] | None = None
        self._bases = [self._forces(s, h) for s, h in zip(self.signals, self.held, strict=True)]
        self._filtered = [
            self._rows_without_forces(k, self._links(k, count)) for k in range(len(self.signals))
        ]
        self.tau = self.torques()

    def torques(self) -> np.ndarray:
        """Rows of the measured torques, (N, rows)."""
        parts = []
        for k, s in enumerate(self.signals):
            full = np.concatenate([np.zeros((len(s.tau), BASE)), s.tau], axis=1)
            parts.append(self._rows_without_forces(k, lambda part, full=full: full[part, :, None])[..., 0])
        return np.concatenate(parts)

    def trust(self, friction: Friction, base: BaseParameters) -> float:
        """Make samples that least squares explain badly count less, as in Huber's estimator.

        They are impacts, and feet that touch where nothing says so. Returns the share of the samples that count less.

        Args:
            friction: terms of every joint.
            base: the columns that are used.
        """
        regression = self.regression(friction).pick(base.columns)
        shares = np.ones(len(regression))
        for _ in range(TRUSTED):
            left = np.sqrt(
                (regression.residuals(solve(*_rows_by_share(regression, shares))) ** 2).sum(axis=1)
            )
            typical = float(np.median(left))
            shares = np.minimum(1.0, HUBER * typical / np.maximum(left, 1e-300)) if typical > 0 else shares
        ends = np.cumsum([len(part) for part in self._filtered])[:-1]
        self._shares = np.split(np.sqrt(shares), ends)
        self._filtered = [
            part * w[:, None, None] for part, w in zip(self._filtered, self._shares, strict=True)
        ]
        self.tau = self.tau * np.sqrt(shares)[:, None]
        return float((shares < 1.0).mean())

    def _links(self, k: int, count: int) -> Callable[[slice], np.ndarray]:
        q, v, a = self.signals[k].states
        return lambda part: np.asarray(self.robot.regressor(q[part], v[part], a[part]))[..., :count]

    def _forces(self, signals: WalkingSignals, held: np.ndarray) -> np.ndarray:
        """Orthonormal columns of the forces that are held, in scaled rows, (N, rows, k)."""
        return force_basis(self.robot, self.feet, signals.states[0], signals.up, held, self.scale)

    def _rows_without_forces(
        self, k: int, rows: Callable[[slice], np.ndarray], ready: bool = False
    ) -> np.ndarray:
        """Rows of recording k without forces, filtered and thinned: (samples, rows, p).

        ``rows`` gives those of a part; ``ready``: they are scaled and without forces.
        """
        s, Q = self.signals[k], self._bases[k]
        kept = np.arange(len(s))[s._inner_samples]
        reach = int(np.ceil(REACH * s.rate / s.cutoff))
        parts = []
        for first in range(0, len(s), CHUNK):
            own = kept[(kept >= first) & (kept < first + CHUNK)]
            if not len(own):
                continue
            part = slice(max(0, first - reach), min(len(s), first + CHUNK + reach))
            left = rows(part) if ready else projected(Q[part], rows(part) / self.scale[:, None])
            parts.append(low_pass(left, s.rate, s.cutoff)[own - part.start])
        found = np.concatenate(parts)
        return found if self._shares is None else found * self._shares[k][:, None, None]

    def axis_signals(self, carried: Carried | None) -> list[AxisSignals]:
        """The motion of the joints; what they carry is not known where feet touch, and no term asks for it."""
        return self._motions

    def adapted(self, friction: Friction) -> Friction:
        """Laws without a memory and without loads: forces of feet load the gears, and nobody measured them."""
        found = []
        for terms in friction:
            smooth = [
                replace(term, width=0.0, blur=term.blur or SMOOTH) if term.width else term for term in terms
            ]
            found.append(tuple(term for term in smooth if self.allows(term)))
        return tuple(found)

    def allows(self, term: Term) -> bool:
        """Whether a term of friction can be used here."""
        return term.kind != "load" and not term.width

    def term_columns(
        self, terms: Sequence[Term], carried: Carried | None = None, axis: int | None = None
    ) -> np.ndarray:
        """Columns of terms of one axis in all rows, (N, rows, terms).

        Args:
            terms: the terms.
            carried: not used here.
            axis: the number of the axis.
        """
        if axis is None:
            raise ValueError("axis: expected a number")
        return self.placed_columns([(axis, term) for term in terms])

    def placed_columns(
        self, placed: Sequence[tuple[int, Term]], carried: Carried | None = None
    ) -> np.ndarray:
        """Columns of (axis, term), (N, rows, p).

        Args:
            placed: terms of joints.
            carried: not used here.
        """
        parts = []
        for k, motion in enumerate(self._motions):
            values = {term: column(motion, term) for term in dict.fromkeys(term for _, term in placed)}

            def rows(part: slice, values=values, Q=self._bases[k]) -> np.ndarray:
                units = {axis: self._unit(Q[part], axis) for axis, _ in placed}
                columns = [units[axis] * values[term][part, axis, None] for axis, term in placed]
                return np.stack(columns, axis=-1)

            parts.append(self._rows_without_forces(k, rows, ready=True))
        return np.concatenate(parts)

    def _unit(self, Q: np.ndarray, axis: int) -> np.ndarray:
        """Rows (N, rows) of a unit torque of a joint, scaled and without forces."""
        row = BASE + axis
        left = -(Q * Q[:, row, None, :]).sum(axis=2)
        left[:, row] += 1.0
        return left / self.scale[row]

    def ranks(self) -> np.ndarray:
        """Mean of the projection's diagonal, (rows,): the share of each row that is left."""
        shares = [1.0 - (Q**2).sum(axis=2) for Q in self._bases]
        return np.concatenate(shares).mean(axis=0)


def _rows_by_share(regression: Regression, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(W, y) of all rows, each sample by the root of its share."""
    root = np.sqrt(shares)
    W = regression.Y * root[:, None, None]
    return W.reshape(-1, W.shape[2]), (regression.tau * root[:, None]).reshape(-1)


def force_basis(
    robot: Robot, feet: Sequence[Foot], q: np.ndarray, up: np.ndarray, held: np.ndarray, scale: np.ndarray
) -> np.ndarray:
    """Orthonormal columns of the forces that are held, in rows divided by ``scale``, (N, dof, k).

    Args:
        robot: the robot.
        feet: what may touch the ground.
        q: positions of all coordinates, (N, nq).
        up: direction against gravity, (N, 3).
        held: (N, feet + 1), the base last.
        scale: (dof,).
    """
    columns = [
        jacobians(robot, foot, q, up) * held[:, k, None, None]
        for k, foot in enumerate(feet)
        if held[:, k].any()
    ]
    if held[:, -1].any():
        columns.insert(0, np.eye(robot.dof)[:, :BASE] * held[:, -1, None, None])
    if not columns:
        return np.zeros((len(q), robot.dof, 0))
    return orthonormal(np.concatenate(columns, axis=2) / scale[:, None])


def floating_base_of(robot: Robot, friction: Friction, seed: int = 0) -> BaseParameters:
    """Base parameters of a robot with a floating base: what can be distinguished in recordings of it.

    Args:
        robot: the robot.
        friction: terms of every joint.
        seed: of the random states.
    """
    rng = np.random.default_rng(seed)
    q = robot.random(rng, STATES)
    v, a = rng.uniform(-1, 1, (2, STATES, robot.dof)) * np.array([2.0, 5.0])[:, None, None]
    count = len(INERTIAL) * len(robot.labelled_bodies())
    columns = [np.asarray(robot.regressor(q, v, a))[..., :count]]
    names = list(robot.joint_names[1:])
    labels, others = list(robot.parameter_labels[:count]), []
    for axis, terms in enumerate(friction):
        for term in terms:
            label = f"{names[axis]}.{term.label}"
            if term.kind not in SHARED:
                others.append(label)
                continue
            labels.append(label)
            rows = np.zeros((STATES, robot.dof, 1))
            rows[:, BASE + axis, 0] = SHARED[term.kind](v[:, BASE + axis], a[:, BASE + axis])
            columns.append(rows)
    W = np.concatenate(columns, axis=-1).reshape(-1, len(labels))
    found = independent(W, labels, regrouping_order(labels, robot))
    return in_order(found, tuple(labels), friction, names, others, count)


__all__ = ["BASE", "ROW_NAMES", "WalkingObserver", "floating_base_of", "force_basis"]
