"""How well a model predicts a recording that it may not have seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.identify.derivatives import low_pass
from linkwise.identify.friction import AxisSignals, Friction, column
from linkwise.identify.log import Log
from linkwise.identify.regression import axes_of
from linkwise.identify.signals import Signals
from linkwise.robot import Robot

AT_REST = 0.01  # [rad/s or m/s] below which a joint counts as standing still
WHITENESS_LAGS = 20


@dataclass(frozen=True)
class Validation:
    """Measured and predicted torques (N, n) at the times t (N,) of a recording, and how far they are apart.

    All figures are per joint, shape (n,). ``relative`` is 100·‖τ − τ̂‖/‖τ‖ of the torques as recorded; ``in_band`` the
    same with both sides low-passed at ``band`` [Hz], without one period of it at either end; ``moving`` as
    ``relative`` without samples at which the joint stands still.
    """

    log: Log
    t: np.ndarray
    qd: np.ndarray
    measured: np.ndarray
    predicted: np.ndarray
    band: float

    @property
    def residuals(self) -> np.ndarray:
        """τ − τ̂ [N·m or N], (N, n)."""
        return self.measured - self.predicted

    @property
    def rms(self) -> np.ndarray:
        """Root mean square of the residuals [N·m or N]."""
        return np.sqrt((self.residuals**2).mean(axis=0))

    @property
    def relative(self) -> np.ndarray:
        """[%]"""
        return relative(self.residuals, self.measured)

    @property
    def in_band(self) -> np.ndarray:
        """[%] below the frequency ``band``."""
        return relative(self._low_passed(self.residuals), self._low_passed(self.measured))

    @property
    def moving(self) -> np.ndarray:
        """[%] where the joint moves faster than ``AT_REST``; NaN where it never does."""
        moves = np.abs(self.qd) > AT_REST
        return relative(np.where(moves, self.residuals, 0.0), np.where(moves, self.measured, 0.0))

    @property
    def total(self) -> float:
        """[%] of all joints together."""
        return float(100 * np.linalg.norm(self.residuals) / np.linalg.norm(self.measured))

    @property
    def total_in_band(self) -> float:
        """[%] of all joints together below the frequency ``band``."""
        error, size = (np.linalg.norm(self._low_passed(x)) for x in (self.residuals, self.measured))
        return float(100 * error / size)

    def _low_passed(self, x: np.ndarray) -> np.ndarray:
        """Below ``band``, without one period of it at either end, where the filter extrapolates the recording."""
        rate = (len(self.t) - 1) / float(self.t[-1] - self.t[0])
        margin = min(int(rate / self.band), len(x) // 10)
        return low_pass(x, rate, self.band)[margin : len(x) - margin]

    @property
    def explained(self) -> np.ndarray:
        """1 − variance of the residuals / variance of the torques: 0 is no better than their mean."""
        spread = self.measured.var(axis=0)
        return 1.0 - self.residuals.var(axis=0) / np.where(spread > 0, spread, 1.0)

    def whiteness(self, lags: int = WHITENESS_LAGS) -> np.ndarray:
        """Largest autocorrelation of the residuals at lags 1 to ``lags``, per its 95 % bound for white noise."""
        e = self.residuals - self.residuals.mean(axis=0)
        power = np.maximum((e**2).sum(axis=0), 1e-300)
        found = [np.abs((e[:-k] * e[k:]).sum(axis=0)) / power for k in range(1, min(lags, len(e) - 1) + 1)]
        return np.max(found, axis=0) * np.sqrt(len(e)) / 1.96


def relative(residuals: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """100·‖τ − τ̂‖/‖τ‖ of each joint [%]."""
    size = np.linalg.norm(measured, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return 100.0 * np.linalg.norm(residuals, axis=0) / size


def predict(
    robot: Robot, links: np.ndarray, friction: Friction, coefficients: np.ndarray, signals: Signals
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(t, q̇, τ̂) at the samples of a recording for links (10 n,) and the coefficients of all terms in order."""
    t, (q, qd, qdd) = signals.at_stamps()
    axes = axes_of(robot.dof, signals.log.axes)
    load = robot.regressor(q, qd, qdd)[..., : len(links)] @ links
    motion = AxisSignals.of(q, qd, qdd, load, axes)
    placed = [(axis, term) for axis, terms in enumerate(friction) for term in terms]
    motion.prepare(sorted({term.width for _, term in placed if term.width}))
    tau = load.copy()
    for (axis, term), coefficient in zip(placed, coefficients, strict=True):
        tau += coefficient * column(motion, term)[:, axis, None] * axes[axis]
    return t, qd, tau


def validate(
    robot: Robot,
    links: np.ndarray,
    friction: Friction,
    coefficients: np.ndarray,
    signals: Signals,
    band: float | None = None,
) -> Validation:
    """Judge a model on a recording.

    Args:
        robot: the robot.
        links: parameters of its links, shape (10 n,).
        friction: friction terms of every axis.
        coefficients: of the friction terms.
        signals: the recording.
        band: cut-off [Hz]; by default that of the signals.
    """
    t, qd, tau = predict(robot, links, friction, coefficients, signals)
    return Validation(signals.log, t, qd, signals.log.tau, tau, band or signals.cutoff)


def validate_robot(robot: Robot, signals: Signals, band: float | None = None) -> Validation:
    """Judge a robot as it is, with its own friction: the prior model, say.

    Args:
        robot: the robot.
        signals: the recording.
        band: cut-off [Hz]; by default that of the signals.
    """
    t, (q, qd, qdd) = signals.at_stamps()
    return Validation(
        signals.log, t, qd, signals.log.tau, robot.inverse_dynamics(q, qd, qdd), band or signals.cutoff
    )
