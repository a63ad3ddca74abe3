"""Kozłowski's PUMA 560 experiment, 1990, section 5.

All joints move at once for 4 s along fifth-order polynomials; 300 points. The paper counts joints from the tip: its
joint 6 is the waist, joint 5 the shoulder (whose torque its Fig. 3 shows), joint 4 the elbow. The parameters of the arm
are not printed there; those of Corke and Armstrong are used, with their zero positions and without friction.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.bench.agreement import residual
from linkwise.cli.parts.trajectories import SampledMotion, quintic
from linkwise.robot.loading import load
from linkwise.robot.robot import Robot

DURATION, POINTS = 4.0, 300
RANGES_FROM_THE_TIP = ((-150, 150), (-90, 90), (-130, 130), (-240, 70), (-220, 40), (-150, 150))  # [degrees]
RANGES = RANGES_FROM_THE_TIP[::-1]
RATES_OF_1990 = {
    "inverse_dynamics": 200.0,
    "forward_dynamics": 100.0,
}  # [1/s], Turbo Pascal, 80386 with 80387


@dataclass(frozen=True)
class Judged:
    """The errors of one algorithm: ``error`` relative to the largest value, ``residual`` that of the equation of
    motion."""

    function: str
    algorithm: str
    error: float
    residual: float | None


@dataclass(frozen=True)
class Experiment:
    """The motion, its torques, and the results of every algorithm."""

    robot: Robot
    motion: SampledMotion
    tau: np.ndarray
    judged: list[Judged]
    rates: dict[str, float]  # evaluations per second, one thread


def run(advance: Callable[[], None] = lambda: None) -> Experiment:
    """Torques by every inverse algorithm; then the accelerations back, by every forward algorithm."""
    robot = load("puma560")
    first, last = np.radians(RANGES).T
    motion = quintic(first, last, DURATION, POINTS)
    q, qd, qdd = motion.q, motion.qd, motion.qdd
    tau = robot.inverse_dynamics(q, qd, qdd, friction=False)
    judged = []
    for algorithm in robot.algorithms("inverse_dynamics"):
        result = robot.inverse_dynamics(q, qd, qdd, algorithm=algorithm, friction=False)
        judged.append(Judged("inverse_dynamics", algorithm, _relative(result, tau), None))
        advance()
    for algorithm in robot.algorithms("forward_dynamics"):
        result = robot.forward_dynamics(q, qd, tau, algorithm=algorithm, friction=False)
        left = residual(robot, q, qd, tau, result, friction=False)
        judged.append(Judged("forward_dynamics", algorithm, _relative(result, qdd), left))
        advance()
    rates = {
        "inverse_dynamics": _rate(lambda: robot.inverse_dynamics(q, qd, qdd, friction=False, threads=1)),
        "forward_dynamics": _rate(lambda: robot.forward_dynamics(q, qd, tau, friction=False, threads=1)),
    }
    return Experiment(robot, motion, tau, judged, rates)


def _relative(result: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.abs(result - wanted).max() / np.abs(wanted).max())


def _rate(call: Callable[[], Any], repeats: int = 50) -> float:
    """Evaluations per second: the points, over the median time of a call."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return POINTS / float(np.median(times))
