"""A campaign on a simulated robot: excite, simulate with friction and noise, identify, compare with the truth.

So the uncertainties that the estimators state can be compared with the actual errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from linkwise.core.summaries import Summarised, Summary
from linkwise.identify.estimation.base import base_of
from linkwise.identify.estimation.estimators import Estimator, weighted
from linkwise.identify.estimation.friction import friction_named
from linkwise.identify.estimation.regression import Observer
from linkwise.identify.estimation.small_blas import one_thread
from linkwise.identify.recordings.log import Log
from linkwise.identify.recordings.signals import condition
from linkwise.motion import Trajectory
from linkwise.robot.robot import Robot
from linkwise.solve.linear import product

BANDWIDTH = 30.0  # [rad/s] of the controller that follows the excitation
SUBSTEPS = 4  # of the integrator per sample


@dataclass(frozen=True)
class Noise:
    """Standard deviations of white noise on recorded signals; torques in parts of each joint's root mean square."""

    position: float = 1e-5  # [rad or m]
    torque: float = 0.05

    def added(self, log: Log, rng: np.random.Generator) -> Log:
        """The recording with noise.

        Args:
            log: the recording.
            rng: the generator of the noise.
        """
        size = np.sqrt((log.tau**2).mean(axis=0))
        return replace(
            log,
            q=log.q + self.position * rng.normal(size=log.q.shape),
            tau=log.tau + self.torque * size * rng.normal(size=log.tau.shape),
        )


def simulated_log(
    robot: Robot, trajectory: Trajectory, duration: float, *, rate: float = 1000.0, rest: float = 0.5
) -> Log:
    """What would be recorded, without noise, ``rate`` times a second while the robot follows a motion.

    Under computed-torque control with friction, integrated four times finer. A motion begins and ends at rest, where
    friction is not defined by the speed: the first and last ``rest`` [s] are left out.

    Args:
        robot: the robot.
        trajectory: the motion.
        duration: [s].
        rate: samples per second [Hz].
        rest: time [s] that is left out at the start and at the end.
    """
    from linkwise.control import ComputedTorque, Gains
    from linkwise.simulate import simulate

    law = ComputedTorque(robot, Gains.from_frequency(BANDWIDTH))
    steps = round(duration * rate)
    run = simulate(
        robot,
        law,
        trajectory,
        duration=steps / rate,
        step=1.0 / (rate * SUBSTEPS),
        every=SUBSTEPS,
        continuous=True,
    )
    log = Log(run.t, run.q, run.tau, name=f"simulated {robot.name}")
    return log.between(rest, duration - rest) if rest else log


def true_parameters(robot: Robot, labels: Sequence[str]) -> np.ndarray:
    """Parameters of a robot under the labels of a regression with Coulomb friction and offsets.

    Coulomb friction that differs by direction is its mean and an offset.
    """
    known = dict(zip(robot.parameter_labels, robot.parameters.tolist(), strict=True))
    for joint in robot.moving_joints:
        forward, backward = joint.coulomb_friction
        known[f"{joint.name}.coulomb_friction"] = 0.5 * (forward + backward)
        known[f"{joint.name}.torque_offset"] = 0.5 * (forward - backward)
        known[f"{joint.name}.coulomb_friction_forward"] = forward
        known[f"{joint.name}.coulomb_friction_backward"] = backward
    return np.array([known.get(label, 0.0) for label in labels])


@dataclass(frozen=True, repr=False)
class Coverage(Summarised):
    """How often confidence intervals contained the true values: ``share`` (p,) of ``runs`` recordings.

    ``truth`` (p,) are the base parameters; ``bias`` and ``spread`` (p,) those of the estimates over the runs,
    ``claimed`` the root mean square of the standard deviations that the estimates claim.
    """

    labels: tuple[str, ...]
    truth: np.ndarray
    share: np.ndarray
    bias: np.ndarray
    spread: np.ndarray
    claimed: np.ndarray
    runs: int
    level: float

    def _summary(self) -> Summary:
        rows = list(
            zip(self.labels, self.truth, self.share, self.bias, self.spread, self.claimed, strict=True)
        )
        columns = ("parameter", ">truth", ">share inside", ">bias", ">spread", ">claimed")
        return Summary(f"Coverage of intervals in {self.runs} runs", columns, rows)

    @property
    def overall(self) -> float:
        """Of all parameters and runs together."""
        return float(self.share.mean())


def coverage(
    robot: Robot,
    log: Log,
    *,
    noise: Noise | None = None,
    runs: int = 200,
    level: float = 0.95,
    estimator: Estimator = weighted,
    friction: str = "coulomb",
    cutoff: float | None = None,
    seed: int = 0,
) -> Coverage:
    """Identify a known robot from many noisy copies of a recording and count how often its intervals contain the true
    values.

    Args:
        robot: the robot, whose parameters are the true ones.
        log: a recording without noise, see ``simulated_log``.
        noise: added to every copy; it passes the same filters as that of any recording.
        runs: number of copies.
        level: of the confidence intervals.
        estimator: see ``identify``.
        friction: see ``identify``.
        cutoff: [Hz]; by default chosen from the first noisy copy.
        seed: of the noise.
    """
    noise = noise or Noise()
    rng = np.random.default_rng(seed)
    terms = friction_named(friction, robot.dof)
    base = base_of(robot, np.eye(robot.dof), terms)
    truth = product(base.combination, true_parameters(robot, base.parameter_labels))
    hits, estimates, claims = np.zeros(len(truth)), [], []
    with one_thread():
        if cutoff is None:
            cutoff = condition(noise.added(log, rng)).cutoff
        for _ in range(runs):
            signals = condition(noise.added(log, rng), cutoff=cutoff)
            observer = Observer(robot, [signals])
            regression = observer.regression(terms)
            found = estimator(regression.pick(base.columns))
            lower, upper = found.interval(level)
            hits += (lower <= truth) & (truth <= upper)
            estimates.append(found.x)
            claims.append(found.deviations)
    x, claimed = np.array(estimates), np.array(claims)
    return Coverage(
        base.labels,
        truth,
        hits / runs,
        x.mean(axis=0) - truth,
        x.std(axis=0),
        np.sqrt((claimed**2).mean(axis=0)),
        runs,
        level,
    )
