"""An extended Kalman filter for the motion of a robot and, if wanted, some of its parameters.

The state x = (q, q̇, θ) follows the robot's own forward dynamics under the torques of the motors; what is measured are
positions, and velocities where there are tachometers. θ are parameters that stay constant or drift slowly. One step of
the midpoint rule,

    q_m = q + ½h q̇,  v_m = q̇ + ½h q̈(q, q̇, τ, θ)        q⁺ = q + h v_m,  q̇⁺ = q̇ + h q̈(q_m, v_m, τ, θ),

is differentiated exactly: ∂q̈/∂q, ∂q̈/∂q̇ and ∂q̈/∂τ = M⁻¹ are the analytic derivatives of forward dynamics, and
∂q̈/∂θ = −M⁻¹ Y_θ with the columns of the regressor. Torques have an error that is constant during a period; it is the
only noise of the motion. The covariance is kept as factors U D Uᵀ: predicted by weighted Gram–Schmidt (Thornton),
updated one measurement after the other (Bierman), so that it stays positive. Friction that jumps at rest has no
derivative there; in the filter it changes its direction over a small speed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.algorithms import dense
from linkwise.algorithms.ud_factors import UD, measure, packed_size, predicted, propagated
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.recursion import Recursion
from linkwise.control.chosen_parameters import BASE, Chosen
from linkwise.control.momentum_observer import positive
from linkwise.core.once import once
from linkwise.functions.evaluation import outputs_of
from linkwise.functions.parameters import PAYLOAD
from linkwise.functions.table import Setting, function_named
from linkwise.joint_laws.direction import SPEED
from linkwise.language import array
from linkwise.model import LABELS
from linkwise.model.checks import check_no_contacts
from linkwise.model.coordinates import check_one_axis
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar, sqrt, where

METHOD = "compound_link"
MOST_STATES = 40  # the work grows with their third power
Rows = list[list[Scalar]]


@dataclass(frozen=True)
class Filtered:
    """Estimates after every sample; rows are samples."""

    q: np.ndarray
    """[rad or m], (..., samples, n)."""
    qd: np.ndarray
    parameters: np.ndarray
    """(..., samples, parameters)."""
    deviations: np.ndarray
    """Standard deviations of q, q̇ and the parameters, (..., samples, 2n + parameters)."""
    consistency: np.ndarray
    """Mean square of the innovations in units of their expected deviations, (..., samples, 1): about 1 in the mean
    where the noise is as stated."""
    memory: np.ndarray
    """To go on with later samples."""


class ExtendedKalmanFilter:
    """Estimates positions, velocities and parameters from measured positions and torques.

    Args:
        robot: the model, whose joints have one coordinate each.
        period: time between samples [s].
        parameters: estimated as well: "payload" (ten numbers of a load at ``frame``), labels of
            ``robot.parameter_labels``, or "base" (the labels of its base parameters); none by default.
        position_noise: standard deviation of measured positions [rad or m], one number or (n,).
        torque_noise: standard deviation of the torques' error, constant during a period [N·m or N], one number or (n,);
            errors of the model count here.
        velocity_noise: standard deviation of measured velocities [rad/s or m/s]; None: velocities are not measured.
        drift: how far parameters may wander in a second, a standard deviation, one number or (parameters,); 0: they
            are constant.
        deviation: standard deviation of (positions, velocities) before the first sample.
        parameter_deviation: standard deviation of parameters before the first sample, one number or (parameters,);
            None: 1 kg, 0.1 kg·m, 0.02 kg·m² and 1 for numbers of joints. Deviations that allow bodies which cannot
            exist may end in numbers that are not finite.
        friction_speed: speed over which friction that jumps changes its direction in the filter [rad/s or m/s]; larger
            where a step could otherwise turn a joint back and forth.
        frame: of the payload; None: the only leaf.

    Raises:
        ValueError: a number has the wrong sign or length.
        UnknownNameError: there is no such parameter.
    """

    def __init__(
        self,
        robot: Robot,
        period: float,
        parameters: str | Sequence[str] = (),
        *,
        position_noise: Any = 1e-4,
        torque_noise: Any = 1.0,
        velocity_noise: Any = None,
        drift: Any = 0.0,
        deviation: tuple[float, float] = (0.1, 1.0),
        parameter_deviation: Any = None,
        friction_speed: float = 3e-3,
        frame: str | None = None,
    ):
        check_one_axis(robot, "the filter")
        check_no_contacts(robot, "the filter")
        if (
            parameters == BASE
        ):  # each by the parameter that leads its combination; the others stay as they are
            parameters = robot.base_parameters().labels
        n = robot.dof
        self.period = float(positive("period", period, 1)[0])
        slowest = float(positive("friction_speed", friction_speed, 1)[0])
        self.robot = without_jumps(robot, self.period, slowest, parameters)
        self.chosen = Chosen(self.robot, parameters, frame)
        size = self.chosen.size
        if self.size > MOST_STATES:
            raise ValueError(
                f"parameters: {self.size} states are too many for one filter; at most {MOST_STATES - 2 * n} parameters "
                f"of {robot.name} can be chosen"
            )
        self.position_noise = positive("position_noise", position_noise, n)
        self.torque_noise = positive("torque_noise", torque_noise, n)
        self.velocity_noise = (
            None if velocity_noise is None else positive("velocity_noise", velocity_noise, n)
        )
        self.drift = np.zeros(size) if np.all(np.asarray(drift) == 0.0) else positive("drift", drift, size)
        self.deviation = np.concatenate(
            [
                *(positive("deviation", each, n) for each in deviation),
                usual_deviations(self.labels)
                if parameter_deviation is None
                else positive("parameter_deviation", parameter_deviation, size),
            ]
        )

    def __repr__(self) -> str:
        return f"<ExtendedKalmanFilter of {self.robot.name}: {self.size} states>"

    @property
    def size(self) -> int:
        """Number of states: positions, velocities, parameters."""
        return 2 * self.robot.dof + self.chosen.size

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.chosen.labels

    @property
    def initial_memory(self) -> np.ndarray:
        """The memory before the first sample: zeros, which mean at rest at the first measured positions."""
        return np.zeros(1 + self.size + packed_size(self.size))

    def memory_of(self, q: Any, qd: Any, parameters: Any = None) -> np.ndarray:
        """The memory of a known state one period before the first sample, with the deviations of the beginning.

        Args:
            q: positions, (..., n).
            qd: velocities, (..., n).
            parameters: (..., parameters); None: the robot's.
        """
        theta = self.chosen.start if parameters is None else parameters
        parts = [[1.0], q, qd, theta, self.deviation**2, np.zeros(packed_size(self.size) - self.size)]
        arrays = [np.asarray(part, dtype=float) for part in parts]
        batch = np.broadcast_shapes(*(array.shape[:-1] for array in arrays))
        return np.concatenate(
            [np.broadcast_to(array, (*batch, array.shape[-1])) for array in arrays], axis=-1
        )

    def covariance(self, memory: Any) -> np.ndarray:
        """The covariance of (q, q̇, parameters) in a memory (..., size), shape (..., states, states)."""
        numbers, size = np.asarray(memory)[..., 1 + self.size :], self.size
        U = np.broadcast_to(np.eye(size), (*numbers.shape[:-1], size, size)).copy()
        columns, rows = np.tril_indices(size, -1)  # by columns of U, from the left
        U[..., rows, columns] = numbers[..., size:]
        return np.einsum("...ik,...k,...jk->...ij", U, numbers[..., :size], U)

    # -- over scalars -------------------------------------------------------------------------------------------------

    def update(
        self,
        q_measured: Sequence[Scalar],
        tau: Sequence[Scalar],
        memory: Sequence[Scalar],
        qd_measured: Sequence[Scalar] = (),
    ) -> dict[str, list[Scalar]]:
        """One sample, over scalars: a step of the model under ``tau``, then the measurements.

        Args:
            q_measured: positions, n scalars.
            tau: torques of the motors since the last sample, n scalars.
            memory: what the last sample left.
            qd_measured: velocities, n scalars, where they are measured.
        """
        n = self.robot.dof
        x, factors = self._predicted(q_measured, tau, memory)
        squares: list[Scalar] = []
        sensors = [*zip(q_measured, self.position_noise, strict=True)]
        if self.velocity_noise is not None:
            sensors += zip(qd_measured, self.velocity_noise, strict=True)
        for k, (value, deviation) in enumerate(sensors):
            row: list[Scalar] = [1.0 if i == k else 0.0 for i in range(self.size)]
            innovation = value - x[k]
            variance = measure(factors, x, row, innovation, float(deviation) ** 2)
            squares.append(innovation * innovation / variance)
        consistency = (1.0 / len(squares)) * sum(squares[1:], start=squares[0])
        x = list(x)
        found: dict[str, list[Scalar]] = {"q": x[:n], "qd": x[n : 2 * n]}
        if self.chosen.size:
            found["parameters"] = x[2 * n :]
        found["deviations"] = [sqrt(v) for v in factors.variances()]
        return found | {"consistency": [consistency], "next_memory": [1.0, *x, *factors.packed()]}

    def _predicted(
        self, q_measured: Sequence[Scalar], tau: Sequence[Scalar], memory: Sequence[Scalar]
    ) -> tuple[Any, UD]:
        """The state before the measurements: a step after the last one, or the beginning."""
        n, size = self.robot.dof, self.size
        factors = UD.unpacked(memory[1 + size :], size)
        x, F, noise = self._moved(memory[1 : 1 + size], tau)
        weights: list[Scalar] = [*factors.D, *(float(s) ** 2 for s in self.torque_noise)]
        if self.drift.any():
            unit = [[1.0 if i == 2 * n + k else 0.0 for k in range(self.chosen.size)] for i in range(size)]
            noise = [[*row, *more] for row, more in zip(noise, unit, strict=True)]
            weights += [float(s) ** 2 * self.period for s in self.drift]
        factors = predicted(propagated(F, factors, noise), weights)
        first = memory[0] <= 0.0
        begin = [*q_measured, *([0.0] * n), *(float(value) for value in self.chosen.start)]
        D = array([where(first, float(s) ** 2, d) for s, d in zip(self.deviation, factors.D, strict=True)])
        U = array([where(first, 0.0, entry) for entry in factors.U])
        return array([where(first, a, b) for a, b in zip(begin, x, strict=True)]), UD(U, D)

    def _moved(self, x: Sequence[Scalar], tau: Sequence[Scalar]) -> tuple[list[Scalar], Rows, Rows]:
        """(the next state, its derivative by the state, its derivative by the torques)."""
        n, h, size = self.robot.dof, self.period, self.size
        q, v, theta = list(x[:n]), list(x[n : 2 * n]), list(x[2 * n :])
        first = self._acceleration(q, v, tau, theta)
        q_m = [a + (0.5 * h) * b for a, b in zip(q, v, strict=True)]
        v_m = [a + (0.5 * h) * b for a, b in zip(v, first.qdd, strict=True)]
        middle = self._acceleration(q_m, v_m, tau, theta)
        # columns: q, q̇, θ, τ
        wide = size + n
        by_v_m = [
            [
                *((0.5 * h) * first.by_q[i][j] for j in range(n)),
                *((0.5 * h) * first.by_qd[i][j] + (1.0 if i == j else 0.0) for j in range(n)),
                *((0.5 * h) * entry for entry in (*first.by_theta[i], *first.by_tau[i])),
            ]
            for i in range(n)
        ]
        by_q_m = [[0.0] * wide for _ in range(n)]
        for i in range(n):
            by_q_m[i][i], by_q_m[i][n + i] = 1.0, 0.5 * h
        found: Rows = []
        for i in range(n):
            found.append([(1.0 if i == j else 0.0) + h * entry for j, entry in enumerate(by_v_m[i])])
        for i in range(n):
            own = [0.0] * (2 * n) + [*middle.by_theta[i], *middle.by_tau[i]]
            line: list[Scalar] = []
            for j in range(wide):
                terms = [own[j]]
                terms += [middle.by_q[i][k] * by_q_m[k][j] for k in range(n) if by_q_m[k][j] != 0.0]
                terms += [middle.by_qd[i][k] * by_v_m[k][j] for k in range(n)]
                line.append(h * sum(terms[1:], start=terms[0]) + (1.0 if j == n + i else 0.0))
            found.append(line)
        F = [row[:size] for row in found] + dense.identity(size)[2 * n :]
        noise = [row[size:] for row in found] + [[0.0] * n for _ in theta]
        new_q = [a + h * b for a, b in zip(q, v_m, strict=True)]
        new_v = [a + h * b for a, b in zip(v, middle.qdd, strict=True)]
        return [*new_q, *new_v, *theta], F, noise

    def _acceleration(self, q, qd, tau, theta) -> _Accelerated:
        values: dict[str, list[Scalar]] = (
            {PAYLOAD: theta}
            if self.chosen.what == PAYLOAD
            else {label: [value] for label, value in zip(self.labels, theta, strict=True)}
        )
        setting = Setting(self.robot, frame=self.chosen.frame, parameters=tuple(values), base_parameters=True)
        given = {"q": q, "qd": qd, "tau": list(tau), **values}
        (qdd,) = outputs_of(function_named("forward_dynamics"), setting, METHOD, **given).values()
        slopes = outputs_of(function_named("forward_dynamics_derivatives"), setting, METHOD, **given)
        by_q, by_qd, by_tau = slopes.values()
        by_theta: Rows = [[] for _ in q]
        if theta:
            Y = self.chosen.columns(q, qd, qdd)
            by_theta = [
                [_negative_dot(row, [line[j] for line in Y]) for j in range(len(theta))] for row in by_tau
            ]
        return _Accelerated(qdd, by_q, by_qd, by_tau, by_theta)

    # -- as a kernel, and over recordings -----------------------------------------------------------------------------

    @once
    def recursion(self) -> Recursion:
        """The update as a function with a memory."""
        n, size = self.robot.dof, self.size
        inputs = {"q_measured": n} | ({} if self.velocity_noise is None else {"qd_measured": n}) | {"tau": n}
        shapes: dict[str, tuple[int, ...]] = {"q": (n,), "qd": (n,)}
        if self.chosen.size:
            shapes["parameters"] = (self.chosen.size,)
        shapes |= {"deviations": (size,), "consistency": (1,)}
        noises = (self.position_noise, self.torque_noise, self.velocity_noise, self.drift)
        noises = (*noises, self.deviation, self.chosen.start)
        content = (self.chosen.content(), self.period, [x if x is None else x.tobytes() for x in noises])
        memory = 1 + size + packed_size(size)
        return Recursion("extended_kalman_filter", inputs, shapes, memory, self.update, content)

    def kernel(self, dtype: str = "float64") -> Kernel:
        """(q_measured, tau, memory) -> (q, qd, parameters, deviations, consistency, next_memory), any leading axes.

        With ``velocity_noise``, ``qd_measured`` comes second; a filter without parameters gives none. Its C source is
        what a controller runs.
        """
        made = self.recursion.kernel(dtype)
        made.origin = (ExtendedKalmanFilter.kernel, (self, dtype))
        return made

    def over(
        self, q: Any, tau: Any, qd: Any = None, *, memory: Any = None, threads: int | None = None
    ) -> Filtered:
        """The filter over recordings, in one call.

        Args:
            q: measured positions [rad or m], (..., samples, n).
            tau: torques [N·m or N]; row k is the torque between sample k − 1 and sample k.
            qd: measured velocities, where the filter has ``velocity_noise``.
            memory: what earlier samples left, or ``memory_of``; None: at rest at the first measured positions.
            threads: number of threads.
        """
        if (qd is None) != (self.velocity_noise is None):
            raise ValueError("qd: give velocities and velocity_noise, or neither")
        begin = self.initial_memory if memory is None else memory
        samples = {"q_measured": q, "tau": tau} | ({} if qd is None else {"qd_measured": qd})
        found, last = self.recursion.over(samples, begin, threads=threads)
        found.setdefault("parameters", np.zeros((*found["q"].shape[:-1], 0)))
        return Filtered(**found, memory=last)


def without_jumps(robot: Robot, period: float, slowest: float, parameters: str | Sequence[str]) -> Robot:
    """The robot with friction that is continuous at rest, so that it has a derivative there.

    A joint with the inertia M loses h F/M of its speed by friction F in a step h; twice that is the least speed over
    which the direction of friction may change in explicit steps.
    """
    jumping: dict[int, float] = {}
    for k, joint in enumerate(robot.coordinate_joints):
        estimated = any(label.startswith(f"{joint.name}.coulomb_friction") for label in parameters)
        friction = max(*joint.coulomb_friction, 1.0 if estimated else 0.0)
        if friction > 0.0 and joint.number(SPEED) == 0.0:
            jumping[k] = friction
    if not jumping:
        return robot
    inertia, names = np.diag(robot.mass_matrix(robot.neutral)), [j.name for j in robot.coordinate_joints]
    speeds = {k: max(slowest, 2.0 * period * friction / inertia[k]) for k, friction in jumping.items()}
    return robot.with_parameters({f"{names[k]}.{SPEED}": float(speed) for k, speed in speeds.items()})


def usual_deviations(labels: Sequence[str]) -> np.ndarray:
    """How uncertain parameters are before anything is measured, by the kind of each."""
    kinds = {"m": 1.0, **dict.fromkeys(LABELS[1:4], 0.1), **dict.fromkeys(LABELS[4:], 0.02)}
    return np.array([kinds.get(label.rpartition(".")[2], 1.0) for label in labels])


@dataclass(frozen=True, eq=False)
class _Accelerated:
    """q̈ and its derivatives."""

    qdd: list[Scalar]
    by_q: Rows
    by_qd: Rows
    by_tau: Rows
    by_theta: Rows


def _negative_dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    terms = [x * y for x, y in zip(a, b, strict=True) if not (isinstance(y, float) and y == 0.0)]
    return -sum(terms[1:], start=terms[0]) if terms else 0.0
