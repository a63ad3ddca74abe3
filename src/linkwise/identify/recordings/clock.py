"""Time stamps: whether they are late readings of a steady clock, with or without lost samples, or irregular.

A logger often stamps samples some time after the controller took them at a steady rate. Differences of such stamps
would put their jitter into the velocities. So times on a steady clock, on one with lost samples and on one whose rate
changes slowly are tried beside the stamps as they are, and the reading under which the joints move most smoothly is
taken. A clock is taken only if no stamp is further than ``BOUND`` steps from it: stamps that are further away say that
samples were lost or taken late.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

STEADY = 1e-6  # relative deviation of steps under which stamps are regular as they are
FOLLOWED = 0.05  # of the distance of a stamp from the clock, by which the clock is moved towards it
WINDOW = 51  # stamps over which the distance from a steady clock is averaged
BOUND = 0.5  # steps: largest distance of stamps from a clock that is called steady


@dataclass(frozen=True)
class Clock:
    """When samples were taken [s], shape (N,), and how that was found out.

    ``regular`` where all steps are equal; ``deviation`` [s] is the largest distance of stamps from this clock, or from
    the nearest steady one where they are used as they are.
    """

    t: np.ndarray
    regular: bool
    note: str
    deviation: float = 0.0

    @property
    def rate(self) -> float:
        """[Hz]"""
        return (len(self.t) - 1) / float(self.t[-1] - self.t[0])

    @property
    def step(self) -> float:
        """The usual time from sample to sample [s]."""
        return 1.0 / self.rate if self.regular else float(np.median(np.diff(self.t)))


def read_clock(t: np.ndarray, q: np.ndarray) -> Clock:
    """The times of samples q (N, n) with stamps t (N,)."""
    steps = np.diff(t)
    mean = float(t[-1] - t[0]) / len(steps)
    if float(np.abs(steps - mean).max()) <= STEADY * mean:
        return Clock(t, True, f"regular time stamps, {1 / mean:.6g} per second")
    readings = [_ticks(t, np.arange(len(t)))]
    places = _places(t)
    if places[-1] > len(steps):
        readings.append(_ticks(t, places))
    readings.append(_drifting_clock(t, places))
    allowed = [clock for clock in readings if clock.deviation <= BOUND * clock.step]
    best = min(allowed, key=lambda clock: _roughness(clock.t, q), default=None)
    if best is not None and _roughness(best.t, q) < _roughness(t, q):
        return best
    nearest = min(readings[:-1], key=lambda clock: clock.deviation)
    apart = (
        f"{1e3 * nearest.deviation:.3g} ms ({nearest.deviation / nearest.step:.2g} steps) from a steady clock"
    )
    why = (
        "the motion is smoother so" if best is not None else f"more than the {BOUND:g} steps that are allowed"
    )
    note = (
        f"irregular time stamps, {1 / mean:.4g} per second on average, up to {apart}: used as they are, {why}"
    )
    return Clock(t, False, note, nearest.deviation)


def _places(t: np.ndarray) -> np.ndarray:
    """Which tick of a clock each stamp is, where some ticks have none; the clock is followed from stamp to stamp."""
    steps = np.diff(t)
    usual = float(np.median(steps))
    step = float(np.mean(steps[np.abs(steps - usual) <= 0.5 * usual]))
    places = np.zeros(len(t))
    for _ in range(2):  # the second time with the step that follows from the first
        place, tick, found = 0, float(t[0]), [0]
        for stamp in t[1:].tolist():
            passed = max(1, round((stamp - tick) / step))
            place += passed
            tick += passed * step
            tick += FOLLOWED * (stamp - tick)
            found.append(place)
        places = np.array(found, dtype=float)
        step = float(np.polyfit(places, t - t[0], 1)[0])
    return places


def _ticks(t: np.ndarray, places: np.ndarray) -> Clock:
    """The steady clock nearest to stamps of which tick ``places`` (N,) each is."""
    slope, start = np.polyfit(places, t - t[0], 1)
    ticks = t[0] + start + slope * places
    deviation = float(np.abs(t - ticks).max())
    lost = int(places[-1]) - len(t) + 1
    note = (
        f"a steady clock, {1 / slope:.6g} per second{f', {lost} samples lost' if lost else ''}: stamps are up to "
        f"{1e3 * deviation:.3g} ms ({deviation / slope:.2g} steps; {BOUND:g} are allowed) from it, and the motion is "
        "smoother by it than by the stamps"
    )
    return Clock(ticks, not lost, note, deviation)


def _drifting_clock(t: np.ndarray, places: np.ndarray) -> Clock:
    """A clock whose rate changes slowly: the mean distance of stamps from a steady clock is followed."""
    steady = _ticks(t, places)
    away = np.pad(t - steady.t, WINDOW // 2, mode="edge")
    ticks = steady.t + np.convolve(away, np.full(WINDOW, 1.0 / WINDOW), mode="valid")
    deviation, step = float(np.abs(t - ticks).max()), float(np.median(np.diff(ticks)))
    note = (
        f"a clock whose rate changes slowly, {1 / step:.5g} per second, up to {1e3 * steady.deviation:.3g} ms from a "
        f"steady one: stamps are up to {1e3 * deviation:.3g} ms ({deviation / step:.2g} steps; {BOUND:g} are allowed) "
        "from it, and the motion is smoother by it than by the stamps"
    )
    if not (np.diff(ticks) > 0).all():
        deviation = np.inf
    return Clock(ticks, False, note, deviation)


def _roughness(t: np.ndarray, q: np.ndarray) -> float:
    """How much velocities jump from step to step, relative to their size; the median, so that stops do not count."""
    v = np.diff(q, axis=0) / np.diff(t)[:, None]
    scale = np.sqrt((v**2).mean(axis=0))
    moving = scale > 0
    jumps = np.abs(np.diff(v[:, moving], axis=0)) / scale[moving]
    return float(np.mean(np.sort(jumps, axis=None)[: max(1, int(0.9 * jumps.size))])) if jumps.size else 0.0
