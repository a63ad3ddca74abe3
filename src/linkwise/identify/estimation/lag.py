"""The lag between positions and torques of a recording: estimated, corrected and stated.

Torques often come from another device, filter or message than positions, and so some time earlier or later. The lag is
the shift of the torques under which a linear model (links, rotors, viscous and Coulomb friction) explains them best.
Near reversals friction builds up over a small angle, which looks like a lag: samples at which an axis is slow compared
with its usual speed do not count. The deviation follows from how much parts of the recording, and joints, differ in
the shift that they ask for; a lag within its deviation of zero is not corrected.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwise.errors import needed
from linkwise.identify.estimation.friction import Term
from linkwise.identify.estimation.regression import Observer
from linkwise.identify.recordings.derivatives import low_pass
from linkwise.identify.recordings.signals import Signals
from linkwise.solve import linear
from linkwise.solve.linear import product

REACH = 0.2  # [s] largest lag that is looked for at first
WIDE = 1.0  # [s] the same where residuals still fall there
OTHER = 0.05  # [s] steps in which lags of single joints are tried, up to ``REACH``
HALF = 0.5  # part of a joint's squared residual that a lag of its own must leave at most
IMPLAUSIBLE = 0.03  # [s] from which drives and filters do not explain a lag
SIGNIFICANT = 2.5  # deviations from zero beyond which a lag is corrected
SLOW = 0.2  # of an axis' usual speed, below which its samples do not count
EXPLAINED = 0.5  # share of the torques that the linear model must explain
BLOCKS = 10  # parts of a recording whose lags are compared
FINEST = 0.05  # steps between samples: no recording is timed better
TERMS = (
    *(Term("rotor_inertia"), Term("viscous"), Term("offset"), Term("coulomb")),
    *(Term("coulomb", blur=0.05), *(Term("coulomb", width=width) for width in (1e-3, 5e-3, 2e-2))),
)  # that friction may build up over speeds and angles, which looks like a lag
SHORTEST = 10 * REACH  # [s] of a recording that is used
ENOUGH = 10  # samples that count for each parameter of the linear model
MOST_ROWS = 4000  # of a recording that are used


@dataclass(frozen=True)
class Lag:
    """How much later than positions torques were recorded [s], positive or negative, and its standard deviation.

    ``corrected`` [s] is by how much torques were shifted; ``deviation`` is None where the lag was given.
    """

    seconds: float = 0.0
    deviation: float | None = None
    corrected: float = 0.0
    note: str = ""

    @property
    def doubt(self) -> str:
        """A finding where the lag is larger than drives and filters explain; "" where it is not."""
        if abs(self.corrected) < IMPLAUSIBLE:
            return ""
        when = "later" if self.corrected > 0 else "earlier"
        return (
            f"torques were recorded {1e3 * abs(self.corrected):.3g} ms {when} than positions, which drives and filters "
            "do not explain: their time stamps are from different clocks or of when messages were received, or two "
            "files were joined at the wrong place; it was corrected"
        )

    def summary(self) -> dict[str, Any]:
        """In plain types, for JSON."""
        return {"seconds": self.seconds, "deviation": self.deviation, "corrected": self.corrected}


def as_given(seconds: float) -> Lag:
    """A lag that is known."""
    if not (isinstance(seconds, (int, float, np.number)) and abs(seconds) <= WIDE):
        raise ValueError(f"lag: expected at most {WIDE:g} s, positive or negative, got {seconds!r}")
    note = f"lag of the torques: {1e3 * seconds:.3g} ms as given" if seconds else ""
    return Lag(float(seconds), None, float(seconds), note)


def estimate_lag(observer: Observer) -> Lag:
    """The lag that all recordings of an observer have in common.

    Args:
        observer: recordings whose torques are not shifted yet.
    """
    profile = _Profile.of(observer)
    if profile is None:
        return Lag(
            note="lag of the torques: not estimated, the recording is too short or the joints hardly move"
        )
    lag, deviation = profile.minimum()
    step = max(s.log.duration / max(len(s.log) - 1, 1) for s in observer.signals)
    deviation = math.sqrt(deviation**2 + (FINEST * step) ** 2)
    shown = f"lag of the torques: {1e3 * lag:.3g} ± {1e3 * deviation:.2g} ms"
    if profile.explained(lag) < EXPLAINED:
        return Lag(
            lag, deviation, 0.0, f"{shown}, not corrected: the torques are not explained by this robot"
        )
    if abs(lag) <= SIGNIFICANT * deviation or abs(lag) >= WIDE:
        return Lag(lag, deviation, 0.0, f"{shown}, not corrected: not distinguishable from none")
    return Lag(lag, deviation, lag, f"{shown}, corrected (positive: recorded later than positions)")


def lags_of_joints(observer: Observer) -> str:
    """A finding where torques of single joints are those of another time than the others; "" where none are.

    Args:
        observer: recordings whose common lag is corrected.
    """
    profile = _Profile.of(observer)
    if profile is None or observer.robot.dof < 2:
        return ""
    together = (profile.residuals(0.0) ** 2).sum(axis=0)
    said = []
    for j, name in enumerate(observer.robot.joint_names):
        tried = {}
        for lag in np.arange(-REACH, REACH + 1e-9, OTHER):
            own = np.zeros(observer.robot.dof)
            own[j] = lag
            tried[float(lag)] = (profile.residuals(own) ** 2).sum(axis=0)
        best = min(tried, key=lambda lag: float(tried[lag].sum()))
        if abs(best) > OTHER / 2 and tried[best][j] < HALF * together[j]:
            said.append(f"{name} about {1e3 * abs(best):.0f} ms {'later' if best > 0 else 'earlier'}")
    if not said or len(said) > observer.robot.dof // 2:
        return ""
    return f"torques of single joints are of another time than those of the others: {', '.join(said)}"


def shifted(signals: Signals, lag: Lag) -> Signals:
    """Signals whose torques are those of the same time as the motion; the note of the lag is added to the record.

    Args:
        signals: torques as they were recorded.
        lag: the lag to be corrected.
    """
    record = (*signals.record, lag.note) if lag.note else signals.record
    if not lag.corrected:
        return replace(signals, record=record)
    t, shift = signals.t, lag.corrected
    spline = needed("scipy.interpolate", "identify").CubicSpline(t, signals.tau, axis=0)
    there = np.flatnonzero((t + shift >= t[0]) & (t + shift <= t[-1]))
    first, last = int(there[0]), int(there[-1]) + 1
    speeds = signals.speeds
    if speeds is not None:
        speeds = speeds[first * signals.step : (last - 1) * signals.step + 1]
    return replace(
        signals,
        **{key: getattr(signals, key)[first:last] for key in ("t", "q", "qd", "qdd")},
        tau=spline(t[first:last] + shift),
        speeds=speeds,
        record=record,
        lag=shift,
    )


class _Profile:
    """Squared residuals of the linear model as a function of the lag, other parameters being fitted to each lag."""

    def __init__(self, parts: Sequence[_Part]):
        self.parts = parts
        self.columns = np.concatenate([part.columns for part in parts])
        self.counts = np.concatenate([part.counts for part in parts])
        length = np.sqrt((self.columns**2).sum(axis=(0, 1)))
        self.columns = self.columns / np.where(length > 0, length, 1.0)
        used = self.columns * self.counts[..., None]
        self._grams = np.stack(
            [product(used[:, j].T, self.columns[:, j]) for j in range(self.counts.shape[1])]
        )
        self.weights = np.ones(self.counts.shape[1])
        self._weigh(0.0)

    @classmethod
    def of(cls, observer: Observer) -> _Profile | None:
        Y = observer.regression((TERMS,) * len(observer.axes)).Y
        edges = np.cumsum([0, *(len(s.filtered_times) for s in observer.signals)])
        parts = [
            _Part.of(s, Y[a:b], observer.axes)
            for s, (a, b) in zip(observer.signals, itertools.pairwise(edges), strict=True)
            if np.ptp(s.t) > SHORTEST
        ]
        samples = sum(float(part.counts.sum()) for part in parts)
        return cls(parts) if samples >= ENOUGH * Y.shape[2] else None

    def residuals(self, lag: float | np.ndarray) -> np.ndarray:
        """Weighted residuals (rows, n); one lag for all joints, or one for each (n,)."""
        tau = np.concatenate([part.torques(lag) for part in self.parts])
        right = np.stack(
            [product(self.columns[:, j].T, (self.counts * tau)[:, j]) for j in range(tau.shape[1])]
        )
        x = product(self._inverse, product(self.weights**2, right))
        return self.weights * self.counts * (tau - product(self.columns, x))

    def explained(self, lag: float) -> float:
        """The share of the torques that the model explains, of the joint with the median."""
        tau = self.counts * np.concatenate([part.torques(lag) for part in self.parts])
        size = np.maximum((tau**2).sum(axis=0), 1e-300) * self.weights**2
        return float(np.median(1.0 - (self.residuals(lag) ** 2).sum(axis=0) / size))

    def minimum(self) -> tuple[float, float]:
        """The lag with the smallest residuals, and its standard deviation [s]."""
        grid = np.linspace(-REACH, REACH, 41)
        errors = [float((self.residuals(lag) ** 2).sum()) for lag in grid]
        lag, reach = float(grid[int(np.argmin(errors))]), REACH
        if abs(lag) >= REACH:
            further = np.arange(REACH, WIDE + 1e-9, 2 * REACH / 20) * math.copysign(1.0, lag)
            errors = [float((self.residuals(lag) ** 2).sum()) for lag in further]
            lag, reach = float(further[int(np.argmin(errors))]), WIDE
        self._weigh(lag)
        step = float(grid[1] - grid[0])
        for _ in range(4):
            slope, bend, _ = self._derivatives(lag, step)
            if bend <= 0:
                break
            lag = float(np.clip(lag - np.clip(slope / bend, -step, step), -reach, reach))
            step = max(step / 4, 2e-4)
        slope, bend, scores = self._derivatives(lag, step)
        if bend <= 0:
            return lag, reach
        blocks = [block for part in self._split(scores) for block in np.array_split(part, BLOCKS)]
        times = np.array([block.sum() for block in blocks])
        joints = scores.sum(axis=0)
        variance = sum(float(_spread(each)) for each in (times, joints) if len(each) > 1)
        return lag, float(np.sqrt(variance)) / bend

    def _split(self, values: np.ndarray) -> list[np.ndarray]:
        ends = list(itertools.accumulate(len(part.counts) for part in self.parts))
        return np.split(values, ends[:-1])

    def _derivatives(self, lag: float, step: float) -> tuple[float, float, np.ndarray]:
        """First and second derivative of the squared residuals, and the first of each (rows, n)."""
        before, here, after = (self.residuals(lag + d) ** 2 for d in (-step, 0.0, step))
        scores = (after - before) / (2 * step)
        return float(scores.sum()), float((after - 2 * here + before).sum()) / step**2, scores

    def _weigh(self, lag: float) -> None:
        """Weights of joints by their residuals, and the inverse that belongs to them."""
        rows = np.maximum(self.counts.sum(axis=0), 1.0)
        for _ in range(3):
            gram = (self.weights[:, None, None] ** 2 * self._grams).sum(axis=0)
            self._inverse = linear.pseudo_inverse(gram, 1e-10)
            spread = np.sqrt((self.residuals(lag) ** 2).sum(axis=0) / rows) / self.weights
            floor = 1e-6 * max(float(spread.max()), 1e-300)
            self.weights = 1.0 / np.maximum(spread, floor)
        gram = (self.weights[:, None, None] ** 2 * self._grams).sum(axis=0)
        self._inverse = linear.pseudo_inverse(gram, 1e-10)


def _spread(scores: np.ndarray) -> float:
    """Variance of the sum of independent scores, which are zero together."""
    return float((scores**2).sum()) * len(scores) / (len(scores) - 1)


@dataclass(frozen=True)
class _Part:
    """Rows of one recording: times (rows,), columns (rows, n, p), which samples count (rows, n), torques over time."""

    t: np.ndarray
    columns: np.ndarray
    counts: np.ndarray
    spline: Any

    @classmethod
    def of(cls, signals: Signals, columns: np.ndarray, axes: np.ndarray) -> _Part:
        t, speeds = signals.filtered_times, product(signals.filtered(signals.qd), axes.T)
        inside = np.flatnonzero((t >= signals.t[0] + REACH) & (t <= signals.t[-1] - REACH))
        inside = inside[:: max(1, -(-len(inside) // MOST_ROWS))]
        usual = np.sqrt((speeds**2).mean(axis=0))
        fast = (np.abs(speeds) > SLOW * usual) & (usual > 0)
        counts = np.stack([fast[:, column != 0].all(axis=1) for column in axes.T], axis=1)
        smooth = low_pass(signals.tau, signals.rate, signals.cutoff)
        spline = needed("scipy.interpolate", "identify").CubicSpline(signals.t, smooth, axis=0)
        return cls(t[inside], columns[inside], counts[inside].astype(float), spline)

    def torques(self, lag: float | np.ndarray) -> np.ndarray:
        if isinstance(lag, np.ndarray):
            found = self.torques(0.0).copy()
            for j in np.flatnonzero(lag):
                found[:, j] = self.torques(float(lag[j]))[:, j]
            return found
        return self.spline(np.clip(self.t + lag, self.spline.x[0], self.spline.x[-1]))
