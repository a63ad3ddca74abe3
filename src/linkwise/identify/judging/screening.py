"""Quick fits of some hundred samples of a recording: how well could this robot explain it?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from linkwise.core.products import length as vector_length
from linkwise.functions.arrays import run_on_arrays
from linkwise.functions.table import Setting, function_named
from linkwise.identify.estimation.friction import AxisSignals, Term, column
from linkwise.identify.estimation.physical import physical
from linkwise.identify.estimation.prior import prior_bodies
from linkwise.identify.estimation.rank import independent, random_states, regrouping_order
from linkwise.identify.estimation.regression import Regression, axes_of
from linkwise.identify.estimation.weights import FINEST, PASSES, combined, solved
from linkwise.identify.judging.hypotheses import Recording
from linkwise.identify.recordings.derivatives import low_pass
from linkwise.identify.recordings.signals import Signals
from linkwise.robot.robot import Robot
from linkwise.solve import linear
from linkwise.solve.linear import product

SAMPLES = 300
EARTH = 9.81  # [m/s²]
INERTIA = (
    0.3  # times the file's torques of inertia, or its inverse, that are measured where gravity is judged
)
STATES = 60  # random states from which the base parameters are found
BLUR = 0.02  # [rad/s or m/s] over which friction changes its direction
SLANTING = (3.1, 4.3, -8.2)  # [m/s²] along no axis
FEWEST = 4.0  # independent samples for every parameter: of fewer, any hypothesis may explain much by chance
PARTS = 8  # of a recording, each left out once to find how sure a figure is
MUCH = 0.3  # of the largest weight of a joint: others carry little
TINY = 1e-10  # of unit columns: directions of gravity that a robot does not feel
TERMS = (Term("rotor_inertia"), Term("viscous"), Term("coulomb", blur=BLUR), Term("offset"))


def thinned(signals: Sequence[Signals], gravity: np.ndarray, count: int = SAMPLES) -> Recording:
    """About ``count`` samples of conditioned recordings, torques low-passed as the regression does."""
    total = sum(len(s) for s in signals)
    parts = []
    for s in signals:
        margin = min(int(s.rate / s.cutoff), len(s) // 10)
        wanted = max(2, round(count * len(s) / total))
        k = np.unique(np.linspace(margin, len(s) - 1 - margin, wanted).round().astype(int))
        parts.append((s.q[k], s.qd[k], s.qdd[k], low_pass(s.tau, s.rate, s.cutoff)[k]))
    q, qd, qdd, tau = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Recording(q, qd, qdd, tau, gravity, np.arange(q.shape[1]))


@dataclass(frozen=True)
class Agreement:
    """Torques of the file's bodies beside the measured ones, friction left out, per joint (n,).

    ``correlation`` of both, ``scale`` the measured ones in parts of the file's, ``share`` of the measured torque that
    is not friction.
    """

    correlation: np.ndarray
    scale: np.ndarray
    share: np.ndarray

    @property
    def overall(self) -> float:
        """Correlations, weighted by the share that is not friction: 1 where the file's masses explain the torques."""
        return linear.dot(self.share, self.correlation) / max(float(self.share.sum()), 1e-300)


@dataclass(frozen=True)
class Weighing:
    """The file's bodies put on the scale: factor of their torques of inertia, gravity [m/s²] that explains the rest of
    the measured torques with these bodies (3,), standard errors of both, and by joint the factor of the weight that the
    file says, (n,): of joints that carry much, where most of the torque is weight, else 0."""

    inertial: float
    gravity: np.ndarray
    inertial_deviation: float
    gravity_deviation: float
    by_joint: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def weightless(self) -> bool:
        """Whether inertia is there as the file says, and weight is not, in whatever direction: less than half of it and
        less than half of what belongs to that inertia, with a margin of two standard errors. No joint has it: of one
        that is disturbed the others tell."""
        inside = INERTIA < self.inertial < 1.0 / INERTIA and self.inertial > 3.0 * self.inertial_deviation
        most = vector_length(self.gravity) + 2.0 * self.gravity_deviation
        half = 0.5 * min(self.inertial, 1.0)
        return inside and most < half * EARTH and not (self.by_joint > half).any()


class Screen:
    """Fits recordings of a robot whose coupled motors move ``coupled`` (k, n)."""

    def __init__(self, robot: Robot, coupled: np.ndarray | None = None):
        self.robot, self.axes = robot, axes_of(robot.dof, coupled)
        self.count = 10 * robot.dof
        self.prior = prior_bodies(robot)
        self.given = np.array([body.parameters for body in robot.labelled_bodies()])
        labels = robot.parameter_labels[: self.count]
        q, qd, qdd = random_states(robot, STATES)
        tilted = robot.with_gravity(
            SLANTING
        )  # a vertical first axis would hide parameters that act on a wall
        W = columns_of(tilted, {"q": q, "qd": qd, "qdd": qdd}).reshape(-1, self.count)
        self.base = list(independent(W, labels, regrouping_order(labels, robot)).columns)
        # columns of the last recording, which several hypotheses share
        self._columns: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        self._by_gravity: tuple[np.ndarray, np.ndarray] | None = None
        self._bases: tuple[np.ndarray, list[np.ndarray]] | None = None

    @property
    def trusted(self) -> bool:
        """Whether the file has masses that can be compared with the recording."""
        return bool((self.given[:, 0] > 0).mean() > 0.5)

    def determined_by(self, signals: Sequence[Signals]) -> bool:
        """Whether recordings are long enough to judge a hypothesis: ``FEWEST`` independent samples for every parameter.
        Two samples for each period of the cut-off are independent.

        Args:
            signals: the conditioned recordings.
        """
        samples = self.robot.dof * sum(2.0 * s.cutoff * len(s) / s.rate for s in signals)
        return samples >= FEWEST * (len(self.base) + len(TERMS) * self.robot.dof)

    # -- columns ------------------------------------------------------------------------------------------------------

    def columns(self, recording: Recording) -> np.ndarray:
        """Columns of the links under the recording's gravity, shape (N, n, 10 n)."""
        if (
            self._columns is None
            or self._columns[0] is not recording.q
            or self._columns[1] is not recording.qd
        ):
            Y = self.robot.regressor(recording.q, recording.qd, recording.qdd, threads=1)[..., : self.count]
            self._columns = recording.q, recording.qd, Y
        Y = self._columns[2]
        change = recording.gravity - np.asarray(self.robot.gravity)
        return Y if not change.any() else Y + combined(change, self.by_gravity(recording.q))

    def by_gravity(self, q: np.ndarray) -> np.ndarray:
        """What 1 m/s² of gravity along x, y and z of the base adds to the columns, shape (3, N, n, 10 n)."""
        if self._by_gravity is None or self._by_gravity[0] is not q:
            at_rest = {"q": q, "qd": np.zeros_like(q), "qdd": np.zeros_like(q)}
            robots = [self.robot.with_gravity(axis) for axis in np.eye(3).tolist()]
            self._by_gravity = q, np.stack([columns_of(robot, at_rest) for robot in robots])
        return self._by_gravity[1]

    def friction(self, recording: Recording) -> AxisSignals:
        """The motion of all axes."""
        none = np.zeros((1, self.robot.dof))
        return AxisSignals.of(recording.q, recording.qd, recording.qdd, none, self.axes)

    # -- fits ---------------------------------------------------------------------------------------------------------

    def squares(self, recording: Recording, Y: np.ndarray) -> np.ndarray:
        """AᵀA of each joint's [Y, τ]/‖τ‖ without what its own friction and rotor explain, (n, p + 1, p + 1)."""
        size = torque_sizes(recording.tau)
        found = []
        for j, basis in enumerate(self._friction_bases(recording)):
            A = np.column_stack([Y[:, j], recording.tau[:, j]]) / size[j]
            A -= product(basis, product(basis.T, A))
            found.append(product(A.T, A))
        return np.stack(found)

    def _friction_bases(self, recording: Recording) -> list[np.ndarray]:
        """Orthonormal columns of the terms of each joint's own drive."""
        if self._bases is None or self._bases[0] is not recording.qd:
            motion = self.friction(recording)
            columns = np.stack([column(motion, term) for term in TERMS], axis=-1)
            bases = []
            for j in range(recording.dof):
                own = columns[:, self.axes[:, j] != 0].reshape(len(columns), -1)
                bases.append(linear.orthonormal(own / np.maximum(np.sqrt((own**2).sum(axis=0)), 1e-300)))
            self._bases = recording.qd, bases
        return self._bases[1]

    def least_squares(self, recording: Recording, Y: np.ndarray) -> np.ndarray:
        """Relative residual of every joint by base parameters and friction that may be anything, (n,)."""
        return solved(self.squares(recording, Y[..., self.base]))[0]

    def possible(self, recording: Recording, Y: np.ndarray) -> np.ndarray:
        """Relative residual of every joint by possible bodies and friction that brakes, (n,)."""
        regression = self._regression(recording, Y)
        never = [k for k, (_, term) in enumerate(regression.terms, regression.links) if term.kind != "offset"]
        size = torque_sizes(recording.tau) / np.sqrt(len(recording.tau))
        weights, spread = 1.0 / size, size
        prior = self.prior * self.size(recording, Y)
        for _ in range(PASSES - 1):
            x = physical(regression, weights, prior, nonnegative=never).x
            spread = regression.spread(x)
            weights = 1.0 / np.maximum(spread, FINEST * size)
        return spread / size

    def _regression(self, recording: Recording, Y: np.ndarray) -> Regression:
        motion = self.friction(recording)
        placed = [(axis, term) for axis in range(len(self.axes)) for term in TERMS]
        others = np.stack([column(motion, term)[:, a, None] * self.axes[a] for a, term in placed], axis=-1)
        labels = (*self.robot.parameter_labels[: self.count], *(f"{a}.{term.label}" for a, term in placed))
        return Regression(
            np.concatenate([Y, others], axis=-1), recording.tau, labels, self.count, tuple(placed)
        )

    def size(self, recording: Recording, Y: np.ndarray) -> float:
        """What the file's masses are multiplied with; 1 where they resemble the recording too little.

        Args:
            recording: the samples.
            Y: their columns of the links.
        """
        found = self.agreement(recording, Y)
        alike = (found.correlation > 0.7) & (found.share > 0.2)
        return math.exp(float(linear.logarithm(found.scale[alike]).mean())) if alike.any() else 1.0

    def agreement(self, recording: Recording, Y: np.ndarray) -> Agreement:
        """How the file's bodies compare with the recording."""
        load = product(Y, self.given.reshape(-1))[..., None]
        G = self.squares(recording, load)
        own, both, measured = G[:, 0, 0], G[:, 0, 1], G[:, 1, 1]
        tiny = 1e-12 * max(float(own.max()), 1e-300)
        return Agreement(
            both / np.sqrt(np.maximum(own, tiny) * np.maximum(measured, 1e-12)),
            both / np.maximum(own, tiny),
            np.sqrt(measured),
        )

    def agreement_range(self, recording: Recording, Y: np.ndarray) -> tuple[float, float]:
        """(overall agreement, its standard error), the latter from parts of the recording that are left out."""
        whole = self.agreement(recording, Y).overall
        return whole, _jackknife(
            np.array([[self.agreement(part, Y[rows]).overall] for part, rows in _without_parts(recording)])
        )

    def weighed(self, recording: Recording) -> Weighing:
        """Torques as a multiple of those of inertia and of those of gravity along x, y and z, all by the file's bodies;
        every joint counts by its torque, friction of its own is taken away."""
        bodies = self.given.reshape(-1)
        floating = replace(recording, gravity=np.zeros(3))
        inertia = product(self.columns(floating), bodies)
        columns = np.concatenate([inertia[None], product(self.by_gravity(recording.q), bodies)])
        columns = np.moveaxis(columns, 0, -1)

        def solution(part: Recording, Y: np.ndarray) -> np.ndarray:
            G = self.squares(part, Y).sum(axis=0)
            size = np.sqrt(np.maximum(np.diag(G)[:-1], 1e-300))
            scaled = G[:-1, :-1] / (size[:, None] * size) + TINY * np.eye(len(size))
            return linear.solve(scaled, G[:-1, -1] / size) / size

        x = solution(recording, columns)
        others = np.array([solution(part, columns[rows]) for part, rows in _without_parts(recording)])
        deviations = _jackknife(others[:, :1]), _jackknife(others[:, 1:])
        return Weighing(float(x[0]), x[1:], *deviations, self._weights_of_joints(recording, columns))

    def _weights_of_joints(self, recording: Recording, columns: np.ndarray) -> np.ndarray:
        """Of each joint alone the factor of the weight that the file says, 0 where it carries little or where that
        explains less than half, (n,). Masses of a wrist may be guesses, by a factor of ten.

        Args:
            recording: the samples.
            columns: torques of inertia and of gravity along x, y and z by the file's bodies, (N, n, 4).
        """
        weight = product(columns[..., 1:], np.asarray(self.robot.gravity, dtype=float))
        G = self.squares(recording, np.stack([columns[..., 0], weight], axis=-1))
        found, size = np.zeros(len(G)), np.sqrt((weight**2).mean(axis=0))
        for j in np.flatnonzero(size > MUCH * size.max()):
            inertia, own, tau = G[j]
            # what inertia explains is taken away from both
            free = own[1] - own[0] ** 2 / max(inertia[0], 1e-300)
            both = own[2] - own[0] * inertia[2] / max(inertia[0], 1e-300)
            if free > TINY * max(own[1], 1e-300) and both**2 > 0.5 * free * tau[2]:
                found[j] = both / free
        return found


def _without_parts(recording: Recording) -> Iterator[tuple[Recording, np.ndarray]]:
    """The recording without each of its parts, and the rows that are left (N,) of bool."""
    part = np.arange(len(recording.q)) * PARTS // len(recording.q)
    for k in range(PARTS):
        rows = part != k
        q, qd, qdd, tau = (x[rows] for x in (recording.q, recording.qd, recording.qdd, recording.tau))
        yield replace(recording, q=q, qd=qd, qdd=qdd, tau=tau), rows


def _jackknife(others: np.ndarray) -> float:
    """Standard error of a vector from its values (parts, k) without each part, of all components together."""
    count = len(others)
    return float(np.sqrt((count - 1) / count * ((others - others.mean(axis=0)) ** 2).sum()))


def torque_sizes(tau: np.ndarray) -> np.ndarray:
    """‖τ‖ of every joint, (n,), never zero."""
    size = np.sqrt((tau**2).sum(axis=0))
    return np.maximum(size, 1e-6 * max(float(size.max()), 1e-300))


def columns_of(robot: Robot, states: Mapping[str, np.ndarray]) -> np.ndarray:
    """Columns of the links of a robot for which nothing is compiled, (N, n, 10 n)."""
    row = function_named("regressor")
    return run_on_arrays(row, Setting(robot), row.default, states)["regressor"][..., : 10 * robot.dof]
