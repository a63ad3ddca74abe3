"""Time stamps: whether the clock was steady but read late at times, or the samples are irregular.

A logger often stamps samples some time after the controller took them at a steady rate. Differences
of such stamps would put their jitter into the velocities. So both readings are tried, and the one under which the
joints move more smoothly is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

STEADY = 1e-6  # relative deviation of steps under which stamps are regular as they are


@dataclass(frozen=True)
class Clock:
    """When samples were taken [s], shape (N,), and how that was found out."""

    t: np.ndarray
    regular: bool
    note: str

    @property
    def rate(self) -> float:
        """[Hz]"""
        return (len(self.t) - 1) / float(self.t[-1] - self.t[0])


def read_clock(t: np.ndarray, q: np.ndarray) -> Clock:
    """The times of samples q (N, n) with stamps t (N,)."""
    steps = np.diff(t)
    mean = float(t[-1] - t[0]) / len(steps)
    spread = float(np.abs(steps - mean).max()) / mean
    if spread <= STEADY:
        return Clock(t, True, f"regular time stamps, {1 / mean:.6g} per second")
    index = np.arange(len(t))
    slope, start = np.polyfit(index, t - t[0], 1)
    steady = t[0] + start + slope * index
    as_stamped, as_steady = _roughness(t, q), _roughness(steady, q)
    if as_steady < as_stamped:
        return Clock(
            steady,
            True,
            f"steps of the stamps vary by up to {100 * spread:.0f} %, but the motion is smoother at a steady "
            f"{1 / slope:.6g} per second: stamps taken as late readings of a steady clock",
        )
    return Clock(t, False, f"irregular time stamps, {1 / mean:.4g} per second on average, used as they are")


def _roughness(t: np.ndarray, q: np.ndarray) -> float:
    """How much velocities jump from step to step, relative to their size; the median, so that stops do not count."""
    v = np.diff(q, axis=0) / np.diff(t)[:, None]
    scale = np.sqrt((v**2).mean(axis=0))
    moving = scale > 0
    jumps = np.abs(np.diff(v[:, moving], axis=0)) / scale[moving]
    return float(np.mean(np.sort(jumps, axis=None)[: max(1, int(0.9 * jumps.size))])) if jumps.size else 0.0
