"""How well a model predicts a recording that it may not have seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linkwise.core.summaries import Summarised, Summary
from linkwise.identify.estimation.friction import AxisSignals, Term, column
from linkwise.identify.estimation.regression import Carried, axes_of
from linkwise.identify.recordings.derivatives import Motion, low_pass
from linkwise.identify.recordings.log import Log
from linkwise.identify.recordings.signals import Signals
from linkwise.robot.directions import torque_range, torques_along
from linkwise.robot.robot import Robot

if TYPE_CHECKING:
    from linkwise.report import Plot

AT_REST = 0.01  # [rad/s or m/s] below which a joint counts as standing still


@dataclass(frozen=True, repr=False)
class Validation(Summarised):
    """Measured and predicted torques (N, n) at the times t (N,) of a recording, and how far they are apart.

    All figures are per joint, shape (n,). ``relative`` is 100·‖τ − τ̂‖/‖τ‖ of the torques as recorded; ``in_band`` the
    same with both sides low-passed at ``band`` [Hz], without one period of it at either end; ``moving`` as
    ``relative`` without samples at which the joint stands still. ``motion`` is (q, q̇, q̈) at these times. ``lower`` and
    ``upper`` (N, n), where known, are the torques with which a joint at rest may be held: static friction is any torque
    up to its limit, so no model predicts one number there.
    """

    log: Log
    t: np.ndarray
    qd: np.ndarray
    measured: np.ndarray
    predicted: np.ndarray
    band: float
    motion: Motion | None = None
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None

    def _summary(self) -> Summary:
        cells = zip(self.rms, self.relative, self.in_band, strict=True)
        rows = [[k + 1, *cell] for k, cell in enumerate(cells)]
        columns = (
            "joint",
            ">rms residual [N·m or N]",
            ">of the torque [%]",
            f">below {self.band:.3g} Hz [%]",
        )
        return Summary(f"Validation on {self.log.name}: {len(self.t)} samples", columns, rows)

    def plot(self) -> Plot:
        """Measured and predicted torques of every joint over time."""
        from linkwise import report

        return report.torque_plot(self.t, self.measured, self.predicted)

    @property
    def residuals(self) -> np.ndarray:
        """τ − τ̂ [N·m or N], (N, n)."""
        return self.measured - self.predicted

    @property
    def slow_residuals(self) -> np.ndarray:
        """Residuals below the frequency ``band``, without the ends."""
        return self._low_passed(self.residuals)

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
    def standing(self) -> np.ndarray:
        """[%] where the joint moves no faster than ``AT_REST``; NaN where it always does."""
        rests = np.abs(self.qd) <= AT_REST
        return relative(np.where(rests, self.residuals, 0.0), np.where(rests, self.measured, 0.0))

    @property
    def total_moving(self) -> float:
        """[%] of all joints together, each where it moves; NaN where none does."""
        return self._part(np.abs(self.qd) > AT_REST)

    @property
    def total_standing(self) -> float:
        """[%] of all joints together, each where it stands; NaN where none does."""
        return self._part(np.abs(self.qd) <= AT_REST)

    def _part(self, which: np.ndarray) -> float:
        return self._share(self.residuals, which)

    def _share(self, wrong: np.ndarray, which: np.ndarray) -> float:
        size = np.linalg.norm(self.measured[which])
        return float(100 * np.linalg.norm(wrong[which]) / size) if size > 0 else float("nan")

    @property
    def beyond(self) -> np.ndarray:
        """How far a torque is outside of its range at rest [N·m or N], (N, n); 0 within it; NaN where none is known."""
        if self.lower is None or self.upper is None:
            return np.full_like(self.measured, np.nan)
        return np.maximum(self.measured - self.upper, 0.0) - np.maximum(self.lower - self.measured, 0.0)

    @property
    def total_beyond(self) -> float:
        """[%] of all joints together, each where it stands: what the range at rest does not explain."""
        return self._share(self.beyond, np.abs(self.qd) <= AT_REST)

    @property
    def held(self) -> np.ndarray:
        """[%] of the samples at rest whose torque is within its range, (n,); NaN where the joint always moves."""
        rests = np.abs(self.qd) <= AT_REST
        inside = np.where(rests, self.beyond == 0.0, False).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(np.isnan(self.beyond).any(axis=0), np.nan, 100.0 * inside / rests.sum(axis=0))

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
        """Below ``band``, without one period of it at either end, where a filter guesses what was not recorded."""
        rate = (len(self.t) - 1) / float(self.t[-1] - self.t[0])
        margin = min(int(rate / self.band), len(x) // 10)
        return low_pass(x, rate, self.band)[margin : len(x) - margin]

    @property
    def explained(self) -> np.ndarray:
        """1 − variance of the residuals / variance of the torques: 0 is no better than their mean. At rest, a torque
        within its range is explained."""
        spread = self.measured.var(axis=0)
        rests = (np.abs(self.qd) <= AT_REST) & ~np.isnan(self.beyond)
        wrong = np.where(rests, self.beyond, self.residuals)
        return 1.0 - wrong.var(axis=0) / np.where(spread > 0, spread, 1.0)


def relative(residuals: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """100·‖τ − τ̂‖/‖τ‖ of each joint [%]."""
    size = np.linalg.norm(measured, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return 100.0 * np.linalg.norm(residuals, axis=0) / size


def by_columns(
    robot: Robot,
    x: np.ndarray,
    terms: Sequence[tuple[int, Term]],
    signals: Signals,
    band: float | None = None,
) -> Validation:
    """Judge the parameters x of all columns of a regression, possible or not, on a recording."""
    t, (q, qd, qdd) = signals.at_stamps()
    axes, count = axes_of(robot.dof, signals.log.axes), len(x) - len(terms)
    motion = AxisSignals.of(q, qd, qdd, np.zeros_like(q), axes)
    placed = [(axis, term, float(value)) for (axis, term), value in zip(terms, x[count:], strict=True)]
    carried = Carried(x[:count], tuple(each for each in placed if not each[1].dissipates))
    tau = carried.torques(robot.regressor(q, qd, qdd)[..., :count], motion, axes)
    loaded = motion.with_load(tau, axes)
    for axis, term, value in placed:
        if term.dissipates:
            tau = tau + value * column(loaded, term)[:, axis, None] * axes[axis]
    return Validation(signals.log, t, qd, signals.log.tau, tau, band or signals.cutoff, (q, qd, qdd))


def validate(robot: Robot, signals: Signals, band: float | None = None) -> Validation:
    """Judge a robot on a recording, with its own friction.

    Args:
        robot: the robot.
        signals: the conditioned recording.
        band: frequencies [Hz] in which it is judged as well; by default up to the cut-off of the signals.
    """
    t, (q, qd, qdd) = signals.at_stamps()
    tau = torques_along(robot, q, qd, qdd)
    ends = torque_range(robot, q, qd, qdd, AT_REST, in_order=True)
    return Validation(signals.log, t, qd, signals.log.tau, tau, band or signals.cutoff, (q, qd, qdd), *ends)
