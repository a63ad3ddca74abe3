"""A recording simulated by a robot: its torques drive the robot, window by window.

Without a controller a small error of a torque moves the arm away within seconds, whatever the model. So the
simulation is open loop over short windows, each of which starts at the recorded state. Friction is taken along
the recorded motion: near it, and far from it the comparison says nothing anyway.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.core.summaries import Summarised
from linkwise.identify.errors import IdentificationError
from linkwise.identify.judging.validation import AT_REST, Validation
from linkwise.robot.directions import torques_along
from linkwise.robot.robot import Robot

WINDOW = 0.25  # [s]
FASTEST = 250.0  # [Hz] steps of the simulation


@dataclass(frozen=True, repr=False)
class Replay(Summarised):
    """Recorded and simulated positions (N, n) at times t (N,) [s], in windows of ``steps`` samples."""

    t: np.ndarray
    recorded: np.ndarray
    simulated: np.ndarray
    steps: int

    @property
    def window(self) -> float:
        """[s]"""
        return self.steps * float(self.t[1] - self.t[0])

    @property
    def deviation(self) -> np.ndarray:
        """Root mean square of the difference at the end of windows in which the joint moves [rad or m], shape (n,)."""
        return self._size((self.simulated - self.recorded)[self.steps - 1 :: self.steps])

    @property
    def moved(self) -> np.ndarray:
        """Root mean square of the recorded motion within the same windows [rad or m], shape (n,)."""
        return self._size(self.recorded[self.steps - 1 :: self.steps] - self.recorded[:: self.steps])

    def _size(self, x: np.ndarray) -> np.ndarray:
        """Root mean square over windows (K, n) in which a joint moves; NaN where it never does."""
        windows = self.recorded.reshape(len(x), self.steps, -1)
        moves = np.ptp(windows, axis=1) > AT_REST * self.window
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.sqrt(np.where(moves, x**2, 0.0).sum(axis=0) / moves.sum(axis=0))


def replay(robot: Robot, judged: Validation, window: float = WINDOW) -> Replay:
    """Simulate a recording with its torques.

    Args:
        robot: the robot.
        judged: a validation on the recording.
        window: time [s] after which the simulation starts again at the recorded state.
    """
    if judged.motion is None:
        raise IdentificationError(f"{judged.log.name}: the validation has no motion")
    q, qd, qdd = judged.motion
    friction = torques_along(robot, q, qd, qdd) - robot.inverse_dynamics(q, qd, qdd, friction=False)
    rate = min(FASTEST, (len(judged.t) - 1) / float(judged.t[-1] - judged.t[0]))
    steps = max(2, round(window * rate))
    count = max(1, int((judged.t[-1] - judged.t[0]) * rate) // steps)
    t = judged.t[0] + np.arange(count * steps) / rate
    q, qd, tau = (_at(t, judged.t, x).reshape(count, steps, -1) for x in (q, qd, judged.measured - friction))
    simulated = np.empty_like(q)
    simulated[:, 0], speed = q[:, 0], qd[:, 0]
    for k in range(steps - 1):
        simulated[:, k + 1], speed = _step(robot, simulated[:, k], speed, tau[:, k], tau[:, k + 1], 1 / rate)
    flat = (count * steps, q.shape[2])
    return Replay(t - judged.t[0], q.reshape(flat), simulated.reshape(flat), steps)


def _step(robot: Robot, q: np.ndarray, qd: np.ndarray, first: np.ndarray, last: np.ndarray, h: float):
    """One step of the classical Runge–Kutta method with torques that change linearly."""

    def rate(share: float, at: np.ndarray, speed: np.ndarray) -> np.ndarray:
        return robot.forward_dynamics(at, speed, first + share * (last - first), friction=False)

    a = rate(0.0, q, qd)
    v = qd + h / 2 * a
    b = rate(0.5, q + h / 2 * qd, v)
    w = qd + h / 2 * b
    c = rate(0.5, q + h / 2 * v, w)
    u = qd + h * c
    d = rate(1.0, q + h * w, u)
    return q + h / 6 * (qd + 2 * v + 2 * w + u), qd + h / 6 * (a + 2 * b + 2 * c + d)


def _at(wanted: np.ndarray, t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Columns of x (N, n) at other times."""
    return np.stack([np.interp(wanted, t, column) for column in x.T], axis=-1)
