"""Elastic joints: stiffness from positions of motors and links, or their sign in what a rigid model leaves of torques.

With both positions every joint is a regression of its own, without the robot's links: the motor's torque goes into its
inertia, its friction and the spring,

    τ = B θ̈ + F_v θ̇ + F_c sgn θ̇ + τ₀ + K (θ − q) + D (θ̇ − q̇).

Deflections are small, so their noise is what matters: solved for the deflection θ − q the compliance 1/K is the
coefficient of τ, and a joint that does not give way has a compliance of zero within its deviation, where K itself would
be any number. Solved for τ the same equation gives K, D and B: another estimate of K, which noise in deflections makes
too small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwise.core.summaries import Summarised, Summary
from linkwise.errors import needed
from linkwise.identify.errors import IdentificationError
from linkwise.identify.estimation.estimators import weighted
from linkwise.identify.estimation.regression import Regression
from linkwise.identify.estimation.small_blas import one_thread
from linkwise.identify.judging.validation import Validation
from linkwise.identify.recordings.cutoff import motion_band, spectrum
from linkwise.identify.recordings.log import Log
from linkwise.identify.recordings.signals import Signals, condition
from linkwise.model.elastic import Elastic
from linkwise.robot.robot import Robot

SIGNIFICANT = 5.0  # standard deviations of a compliance from zero
EXPLAINED = 0.3  # share of the deflection's variance that a spring explains, at least
SAME = 1e-9  # [rad or m] deflections below this are none
ABOVE = 3.0  # times the band of the motion, from which a peak cannot be the motion's
STANDS_OUT = 6.0  # times the median power around it
WINDOW = 2.5  # [s] of a spectrum: many short ones tell a peak from chance
PART = 0.02  # of a residual's power above the motion, that a peak holds
AROUND = 2.0  # frequencies from f/2 to 2 f are around f
NEAR = 1.3  # ratio of two frequencies below which they are one motion of all links
WIDE = 1.1  # a peak reaches from f/1.1 to 1.1 f


@dataclass(frozen=True)
class JointSpring:
    """What two positions say about one joint.

    ``elastic``: whether it gives way. ``stiffness`` with its 95 % interval ``lower`` to ``upper``, [N·m/rad or N/m]; of
    a joint that does not give way stiffness is infinite and ``lower`` says what can be excluded. ``by_deflection`` and
    ``by_torque`` are the stiffnesses by the two regressions: noise in torques makes the first too large, noise in
    deflections the second too small, so ``stiffness`` lies between, and its interval holds those of both. ``damping``
    and ``motor_inertia`` are by the second. ``deflection`` is the root mean square of θ − q about its mean [rad or m],
    ``explained`` the share of its variance that a spring explains.
    """

    name: str
    elastic: bool
    stiffness: float
    lower: float
    upper: float
    by_deflection: float
    by_torque: float
    damping: float
    motor_inertia: float
    deflection: float
    explained: float


@dataclass(frozen=True, repr=False)
class Elasticity(Summarised):
    """The joints of a robot as springs."""

    robot: Robot
    log: Log
    joints: tuple[JointSpring, ...]

    @property
    def elastic(self) -> tuple[JointSpring, ...]:
        """Those that give way."""
        return tuple(joint for joint in self.joints if joint.elastic)

    def with_springs(self, robot: Robot | None = None) -> Robot:
        """A robot with springs in the joints that give way, and the motors' inertias that were found.

        Args:
            robot: the robot; by default the one that was given, whose rotor inertias are replaced.
        """
        springs = {
            joint.name: Elastic(joint.stiffness, max(joint.damping, 0.0), joint.motor_inertia)
            for joint in self.elastic
            if joint.motor_inertia > 0.0
        }
        return (robot or self.robot).with_elastic_joints(springs)

    def _summary(self) -> Summary:
        rows = [
            (joint.name, joint.stiffness, joint.lower, joint.upper, joint.deflection, joint.explained)
            for joint in self.joints
        ]
        columns = ("joint", ">stiffness", ">from", ">to", ">deflection", ">explained")
        title = f"Elastic joints of {self.robot.name} in {self.log.name}"
        return Summary(title, columns, rows, self.words())

    def words(self) -> list[str]:
        """A sentence for every joint."""
        said = []
        for joint in self.joints:
            if joint.elastic:
                said.append(
                    f"{joint.name} is elastic: it gives way by {joint.deflection:.2g} (rms), stiffness "
                    f"{joint.stiffness:.4g}, 95 % interval {joint.lower:.4g} to {joint.upper:.4g}"
                )
            elif math.isinf(joint.lower):
                said.append(
                    f"{joint.name}: positions of motor and link are the same, so nothing is known of a spring"
                )
            else:
                said.append(f"{joint.name}: no elasticity is seen; it is stiffer than {joint.lower:.3g}")
        return said


def elastic_joints(robot: Robot, log: Log, link_q: Any, *, cutoff: float | None = None) -> Elasticity:
    """Which joints are elastic, and how stiff they are, from positions of motors and links.

    Args:
        robot: the robot, for its joints.
        log: a recording whose positions are those of the motors, brought to the joints; its torques are those of the
            motors or, with ``sensed="joint"``, those of sensors behind the gears.
        link_q: positions of the links at the same samples [rad or m], (N, n).
        cutoff: of the filters [Hz]; by default chosen from the data.
    """
    if log.dof != robot.dof:
        raise IdentificationError(f"{log.name}: {log.dof} joints; {robot.name} has {robot.dof}")
    q = np.asarray(link_q, dtype=float)
    if q.shape != log.q.shape or not np.isfinite(q).all():
        raise IdentificationError(
            f"{log.name}: positions of the links: expected finite numbers of shape {log.q.shape}, got {q.shape}"
        )
    with one_thread():
        motors = condition(log, cutoff=cutoff)
        links = condition(replace(log, q=q, qd=None), cutoff=motors.cutoff)
        joints = tuple(
            _spring(name, j, motors, links, log.sensed) for j, name in enumerate(robot.joint_names)
        )
    return Elasticity(robot, log, joints)


def _spring(name: str, j: int, motors: Signals, links: Signals, sensed: str) -> JointSpring:
    filtered = motors.filtered
    deflection = filtered(motors.q[:, j] - links.q[:, j])
    rate = filtered(motors.qd[:, j] - links.qd[:, j])
    torque, one = filtered(motors.tau[:, j]), np.ones(len(deflection))
    others: dict[str, np.ndarray] = {"offset": one, "rate": rate}
    if sensed == "motor":
        others |= {
            "acceleration": filtered(motors.qdd[:, j]),
            "speed": filtered(motors.qd[:, j]),
            "direction": filtered(np.sign(motors.qd[:, j])),
        }
    spread = float(deflection.std())
    if spread < SAME:
        nan, inf = math.nan, math.inf
        return JointSpring(name, False, inf, inf, inf, nan, nan, nan, nan, spread, 0.0)
    compliance = _least_squares(deflection, {"torque": torque} | others)
    by_torque = _least_squares(torque, {"deflection": deflection} | others)
    c, deviation = compliance.value("torque"), float(compliance.deviations[0])
    lower, upper = (float(end[0]) for end in compliance.interval())
    left = float(compliance.sigma[0]) ** 2 / max(spread**2, 1e-300)
    without = _least_squares(deflection, others)
    gained = 1.0 - (float(compliance.sigma[0]) / max(float(without.sigma[0]), 1e-300)) ** 2
    elastic = c > SIGNIFICANT * deviation and 1.0 - left > EXPLAINED and gained > EXPLAINED
    inertia = by_torque.value("acceleration") if sensed == "motor" else math.nan
    numbers = (by_torque.value("rate"), inertia, spread, 1.0 - left)
    second = by_torque.value("deflection")
    if not elastic or second <= 0:
        bound = 1.0 / upper if upper > 0 else math.inf
        return JointSpring(
            name, False, math.inf, bound, math.inf, 1.0 / c if c > 0 else math.inf, second, *numbers
        )
    ends = [float(end[0]) for end in by_torque.interval()]
    return JointSpring(
        name,
        True,
        math.sqrt(second / c),
        min(1.0 / upper, ends[0]),
        max(1.0 / lower, ends[1]) if lower > 0 else math.inf,
        1.0 / c,
        second,
        *numbers,
    )


def _least_squares(wanted: np.ndarray, columns: dict[str, np.ndarray]):
    """Least squares of one signal, with the uncertainty of residuals that are correlated in time."""
    Y = np.stack(list(columns.values()), axis=-1)[:, None, :]
    return weighted(Regression(Y, wanted[:, None], tuple(columns), 0, ()))


# -- resonances -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Resonance:
    """A narrow peak in what a rigid model leaves of a joint's torque.

    ``frequency`` [Hz]; ``prominence``: its power in parts of that around it; ``share`` of the residual's power above
    the motion. ``stiffness`` [N·m/rad or N/m] is that of a spring that would swing so with the links behind it, while
    the motor stands still. Where other joints give way too it is stiffer: 1/ω² is about the sum of inertia over
    stiffness of all joints (Dunkerley 1894).
    """

    name: str
    frequency: float
    prominence: float
    share: float
    stiffness: float
    also: tuple[str, ...] = ()
    """Other joints with a smaller peak near this frequency: links swing together."""

    def words(self) -> str:
        """One sentence."""
        return (
            f"{self.name}: what the rigid model leaves of the torque oscillates at {self.frequency:.3g} Hz "
            f"({100 * self.share:.0f} % of it){', ' + ', '.join(self.also) + ' as well' if self.also else ''}: an "
            f"elastic joint of {self.stiffness:.1g} N·m/rad or more would, or a vibration of what the robot stands on; "
            "positions of motor and link tell"
        )


def resonances(robot: Robot, judged: Validation) -> list[Resonance]:
    """Narrow peaks above the motion in the residuals of a rigid model: signs of elastic joints.

    Args:
        robot: the model, for the inertias of its links.
        judged: a validation of it, as ``found.validation`` of an identification.
    """
    rate = (len(judged.t) - 1) / float(judged.t[-1] - judged.t[0])
    welch = needed("scipy.signal", "identify").welch
    length = min(len(judged.t), max(64, int(WINDOW * rate)))
    f, power = (x[1:] for x in welch(_evenly(judged.t, judged.residuals), rate, nperseg=length, axis=0))
    g, speeds = spectrum(_evenly(judged.t, judged.qd), rate)
    band = motion_band(g, speeds)
    q = np.median(judged.log.q, axis=0)
    inertia = np.diag(robot.mass_matrix(q)) - [joint.rotor_inertia for joint in robot.coordinate_joints]
    peaks = []
    for j, name in enumerate(robot.joint_names):
        peak = _peak(f, power[:, j], ABOVE * band)
        if peak is not None:
            size = float(np.interp(peak[0], f, power[:, j]))
            stiffness = (2 * np.pi * peak[0]) ** 2 * float(inertia[j])
            peaks.append((size, Resonance(name, *peak, stiffness)))
    found: list[Resonance] = []
    for _, peak in sorted(peaks, key=lambda each: -each[0]):
        near = [
            k
            for k, each in enumerate(found)
            if abs(math.log(each.frequency / peak.frequency)) < math.log(NEAR)
        ]
        if near:
            found[near[0]] = replace(found[near[0]], also=(*found[near[0]].also, peak.name))
        else:
            found.append(peak)
    return found


def _peak(f: np.ndarray, power: np.ndarray, lowest: float) -> tuple[float, float, float] | None:
    """(frequency, prominence, share) of the most prominent peak above a frequency; None where none stands out."""
    above = np.flatnonzero((f > lowest) & (f < f[-1] / AROUND))
    if len(above) < 10:
        return None
    around = np.array([np.median(power[(f > f[k] / AROUND) & (f < f[k] * AROUND)]) for k in above])
    prominence = power[above] / np.maximum(around, 1e-300)
    place = int(np.argmax(prominence * power[above] ** 0.5))
    k = above[place]
    inside = (f > f[k] / WIDE) & (f < f[k] * WIDE)
    share = float(power[inside].sum() / max(power[f > lowest].sum(), 1e-300))
    if prominence[place] < STANDS_OUT or share < PART:
        return None
    return float(f[k]), float(prominence[place]), share


def _evenly(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Samples (N, n) at even times."""
    even = np.linspace(t[0], t[-1], len(t))
    if np.abs(even - t).max() < 1e-6 * (t[1] - t[0]):
        return x
    return needed("scipy.interpolate", "identify").CubicSpline(t, x, axis=0)(even)
