"""The closed loop of a recording as a function of the robot's parameters: one kernel, many robots at once.

All parameters are inputs of the kernel, so another estimate needs no other code, and robots with one parameter changed
each are lanes of one batch: that is how sensitivities are found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwise.control import ComputedTorque, Controller, Gains, GravityPD
from linkwise.functions.parameters import with_symbols
from linkwise.functions.table import mechanism_of
from linkwise.identify.errors import IdentificationError
from linkwise.identify.estimation.friction import Friction
from linkwise.identify.estimation.representable import joint_numbers
from linkwise.identify.recordings.signals import Signals
from linkwise.model.inertia import LABELS
from linkwise.motion import Samples, Trajectory, through_samples
from linkwise.robot.robot import Robot
from linkwise.simulate import Result, simulate

STEP = 1e-3  # [s] of the simulation, at most
BANDWIDTH = 60.0  # [rad/s] of a controller of which nothing is known
FREQUENCIES = np.geomspace(
    4.0, 200.0, 14
)  # [rad/s] tried for a controller of which only the reference is known
MOST_AT_ONCE = 2**22  # rows of all robots in one call
RUNAWAY = 30.0  # times the fastest recorded speed: a simulated robot that is faster does not follow any more
FIRST = 0.25  # [s] at the start of a recording from which its first state is estimated
SLOWEST = 1.0  # [rad/s or m/s] the same, at least times this speed
ALWAYS = ("rotor_inertia", "viscous_friction", "coulomb_friction_forward", "coulomb_friction_backward")
"""Numbers of joints that are inputs of every kernel."""


class OwnModel(Controller):
    """A law whose model is the simulated robot, with whatever parameters this has.

    So the poles of the loop stay where they are while parameters change (Gautier, Janot and Vandanjon 2013 scale the
    gains by inertias for that), and a simulated motion hardly depends on the parameters.
    """

    def __init__(self, law: Controller, labels: Sequence[str]):
        super().__init__(law.robot, law.gains, False)
        self.law, self.labels, self.memory_size = law, tuple(labels), law.memory_size

    def options(self) -> tuple:
        return (type(self.law).__qualname__, self.law.options(), self.labels)

    def control(self, links, gains, q, qd, reference, memory, period):
        values = {label: gains[label] for label in self.labels}
        own = with_symbols(mechanism_of(self.robot), self.robot, None, values, base_parameters=True)
        return self.law.limited(own, gains, q, qd, reference, memory, period)


def varied_labels(robot: Robot, friction: Friction) -> tuple[str, ...]:
    """All parameters that an estimate may change: of links, and coefficients of joints."""
    found = [f"{joint.body_link}.{label}" for joint in robot.moving_joints for label in LABELS]
    for joint, terms in zip(robot.joint_names, friction, strict=False):
        own = [name for term in terms for name in term_numbers(term)]
        found += [f"{joint}.{name}" for name in dict.fromkeys((*ALWAYS, *own))]
    return tuple(found)


def term_numbers(term) -> list[str]:
    """The numbers of a joint that are proportional to the coefficient of a term."""
    one, two = (joint_numbers([(term, value)]) for value in (0.25, 0.5))
    return [name for name in one if one[name] != two[name]]


def values_of(robot: Robot, labels: Sequence[str]) -> dict[str, float]:
    """Numbers of a robot by label."""
    known = dict(zip(robot.parameter_labels, robot.parameters.tolist(), strict=True))
    for joint in robot.moving_joints:
        mine = [label for label in labels if label.rpartition(".")[0] == joint.name]
        known |= {label: float(joint.number(label.rpartition(".")[2])) for label in mine}  # type: ignore[arg-type]
    return {label: known[label] for label in labels}


@dataclass(frozen=True)
class Followed:
    """Simulated motions (robots, N, n) at the samples of a recording."""

    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray


@dataclass(frozen=True, eq=False)
class RecordedLoop:
    """A recording, the reference at its samples, and the controller; ``gains`` replace those of the controller."""

    template: Robot
    labels: tuple[str, ...]
    signals: Signals
    reference: Samples
    controller: Controller
    gains: Mapping[str, np.ndarray] | None = None

    def run(
        self, values: Mapping[str, np.ndarray], gains: Mapping[str, np.ndarray] | None = None
    ) -> Followed:
        """Simulate one robot for each entry of the values (robots,); not finite where a robot was lost."""
        count = max(len(value) for value in values.values())
        gains = {**(self.gains or {}), **(gains or {})}
        count = max(count, *(len(value) for value in gains.values() if np.ndim(value) == 2), 1)
        at_once = max(1, MOST_AT_ONCE // len(self.signals))
        parts = []
        for first in range(0, count, at_once):
            size = min(at_once, count - first)
            vary: dict[str, Any] = {
                label: np.broadcast_to(value, (count,))[first : first + size, None]
                for label, value in values.items()
            }
            vary |= {
                name: np.broadcast_to(value, (count, np.shape(value)[-1]))[first : first + size]
                for name, value in gains.items()
            }
            parts.append(self._simulation(vary))
        q, qd, tau = (np.concatenate([getattr(part, name) for part in parts]) for name in ("q", "qd", "tau"))
        lost = self._lost(q, qd)
        tau[lost] = np.nan
        return Followed(q, qd, tau)

    def _simulation(self, vary: dict[str, Any]) -> Result:
        period = 1.0 / self.signals.rate
        fine = max(1, math.ceil(period / STEP - 1e-9))
        start = first_state(self.signals, self.reference)
        with np.errstate(all="ignore"):
            return simulate(
                self.template,
                self.controller,
                through_samples(_longer(self.reference)),
                duration=len(self.signals) * period,
                step=period / fine,
                every=fine,
                q=start[0],
                qd=start[1],
                vary=vary,
                warn=False,
            )

    def _lost(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Which robots do not follow at all, (robots,)."""
        fastest = RUNAWAY * np.maximum(np.abs(self.signals.qd).max(axis=0), SLOWEST)
        with np.errstate(invalid="ignore"):
            return ~np.isfinite(q).all(axis=(1, 2)) | ~(np.abs(qd) <= fastest).all(axis=(1, 2))

    def why_lost(self, followed: Followed, robot: int = 0) -> str:
        """Which joint ran away, and when; empty where none did."""
        fastest = RUNAWAY * np.maximum(np.abs(self.signals.qd).max(axis=0), SLOWEST)
        with np.errstate(invalid="ignore"):
            bad = ~(np.abs(followed.qd[robot]) <= fastest)
        if not bad.any():
            return ""
        row = int(np.argmax(bad.any(axis=1)))
        name = self.template.joint_names[int(np.argmax(bad[row]))]
        return f"{name} runs away {row / self.signals.rate:.3g} s after the start of {self.signals.log.name}"

    def signals_of(self, robot: Robot, followed: Followed) -> Signals:
        """The recording with the motion of the simulated robot in place of the recorded one."""
        q, qd = followed.q[0], followed.qd[0]
        qdd = robot.forward_dynamics(q, qd, followed.tau[0])
        return replace(self.signals, q=q, qd=qd, qdd=qdd, speeds=qd, step=1)

    def distance(self, followed: Followed) -> np.ndarray:
        """Root mean square of simulated minus recorded positions, (robots, n)."""
        return np.sqrt(((followed.q - self.signals.q) ** 2).mean(axis=1))


# -- references -------------------------------------------------------------------------------------------------------


def reference_samples(signals: Signals, reference: Any) -> Samples:
    """The reference at the samples of a recording: a trajectory in the time of its stamps, or positions (N, n) at its
    samples."""
    t = np.arange(len(signals)) / signals.rate
    if isinstance(reference, Trajectory):
        if reference.dof != signals.dof:
            raise IdentificationError(
                f"reference: a trajectory of {reference.dof} joints; {signals.log.name} has {signals.dof}"
            )
        return Samples(t, *reference.at(signals.t))
    return _samples_of_positions(t, _at_grid(signals, reference), signals.rate)


def smoothed_reference(signals: Signals, smooth: Signals) -> Samples:
    """The recorded motion without its noise, where the reference is not known; ``smooth`` has the cut-off that follows
    from the data."""
    from linkwise.errors import needed
    from linkwise.identify.estimation.instrumental import SMOOTHER
    from linkwise.identify.recordings.derivatives import low_pass

    q = low_pass(smooth.q, smooth.rate, smooth.cutoff / SMOOTHER)
    where = np.clip(signals.t, smooth.t[0], smooth.t[-1])
    q = needed("scipy.interpolate", "identify").CubicSpline(smooth.t, q, axis=0)(where)
    return _samples_of_positions(np.arange(len(signals)) / signals.rate, q, signals.rate)


def first_state(signals: Signals, reference: Samples) -> tuple[np.ndarray, np.ndarray]:
    """q and q̇ at the first sample: the reference's, and a straight line through the first tracking errors.

    Filtered signals are worst at their ends, and a wrong initial speed is a large torque of the controller.
    """
    count = min(len(signals), max(5, int(FIRST * signals.rate)))
    slope, error = np.polyfit(reference.t[:count], signals.q[:count] - reference.q[:count], 1)
    return reference.q[0] + error, reference.qd[0] + slope


def _longer(samples: Samples) -> Samples:
    """With two more samples at constant speed: a trajectory is at rest from its last sample on."""
    step = samples.t[-1] - samples.t[-2]
    more = step * np.array([1.0, 2.0])
    last, speed = samples.q[-1], samples.qd[-1]
    return Samples(
        np.append(samples.t, samples.t[-1] + more),
        np.vstack([samples.q, last + more[:, None] * speed]),
        np.vstack([samples.qd, speed, speed]),
        np.vstack([samples.qdd, np.zeros((2, len(last)))]),
    )


def _samples_of_positions(t: np.ndarray, q: np.ndarray, rate: float) -> Samples:
    from linkwise.identify.recordings.derivatives import central_difference

    qd = central_difference(q, rate)
    return Samples(t, q, qd, central_difference(qd, rate))


def _at_grid(signals: Signals, q: np.ndarray) -> np.ndarray:
    """Positions at the samples of a recording, at the steady samples that are used."""
    from linkwise.errors import needed

    stamps, _ = signals.at_stamps()
    return needed("scipy.interpolate", "identify").CubicSpline(stamps, q, axis=0)(signals.t)


# -- controllers ------------------------------------------------------------------------------------------------------


def stiff_law(template: Robot, labels: Sequence[str], bandwidth: float = BANDWIDTH) -> Controller:
    """A controller that follows any reference, for recordings of which the controller is not known."""
    return OwnModel(ComputedTorque(template, Gains.from_frequency(bandwidth), torque_limits=False), labels)


def matched_law(loop: RecordedLoop, robot: Robot) -> RecordedLoop:
    """The loop with the controller that comes nearest to the recorded motion: for a known reference and an unknown
    controller.

    PD control with gravity compensation, or computed torques; at each joint the frequency whose simulated tracking
    error is nearest to the recorded one.
    """
    values = {label: np.array([value]) for label, value in values_of(robot, loop.labels).items()}
    n, candidates = robot.dof, []
    for law in (GravityPD, ComputedTorque):
        made = law(loop.template, Gains(1.0, 1.0), torque_limits=False)
        tried = replace(loop, controller=OwnModel(made, loop.labels))
        away = tried.distance(
            tried.run(values, gains_at(law, robot, np.repeat(FREQUENCIES[:, None], n, axis=1)))
        )
        best = FREQUENCIES[np.argmin(np.where(np.isfinite(away), away, np.inf), axis=0)]
        gains = gains_at(law, robot, best[None])
        followed = tried.run(values, gains)
        score = float(
            np.sum((tried.distance(followed)[0] / np.maximum(loop.signals.q.std(axis=0), 1e-6)) ** 2)
        )
        if np.isfinite(score):
            candidates.append(
                (score, replace(tried, gains={name: value[0] for name, value in gains.items()}))
            )
    if not candidates:
        raise IdentificationError(
            f"{loop.signals.log.name}: no controller that was tried lets {robot.name} follow the reference; give the "
            "controller, or start from parameters that are nearer"
        )
    return min(candidates, key=lambda each: each[0])[1]


def gains_at(law: type[Controller], robot: Robot, frequency: np.ndarray) -> dict[str, np.ndarray]:
    """kp and kd (robots, n) of a law for frequencies (robots, n) [rad/s], critically damped."""
    kp, kd = frequency**2, 2.0 * frequency
    if law is GravityPD:  # torques, not accelerations
        inertia = np.diag(robot.mass_matrix(robot.neutral))
        kp, kd = inertia * kp, inertia * kd
    return {"kp": kp, "kd": kd}
