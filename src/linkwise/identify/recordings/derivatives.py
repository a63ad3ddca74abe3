"""Velocities and accelerations of recorded positions: five ways, one signature.

Each takes samples at a steady rate, shape (N, n), and a cut-off [Hz], and gives smoothed positions, velocities and
accelerations. None of them shifts the signals in time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linkwise.errors import UnknownNameError, needed, suggest

ORDER = 4  # of the Butterworth filter; run forward and backward it falls off twice as fast
Motion = tuple[np.ndarray, np.ndarray, np.ndarray]


def low_pass(x: np.ndarray, rate: float, cutoff: float) -> np.ndarray:
    """Zero-phase Butterworth filter of order ``ORDER`` along the first axis; as it is where the cut-off is too high."""
    if cutoff >= 0.49 * rate:
        return x
    signal = needed("scipy.signal", "identify")
    sections = signal.butter(ORDER, cutoff, fs=rate, output="sos")
    padding = min(len(x) - 1, int(3 * rate / cutoff))
    return signal.sosfiltfilt(sections, x, axis=0, padlen=padding)


def central_difference(x: np.ndarray, rate: float) -> np.ndarray:
    """(x_{k+1} − x_{k−1}) / 2τ, Izaguirre's estimate of a derivative; one-sided at the ends."""
    return np.gradient(x, 1.0 / rate, axis=0)


def butterworth(q: np.ndarray, qd: np.ndarray | None, rate: float, cutoff: float) -> Motion:
    """Zero-phase low-pass, central differences; recorded velocities are used where there are any."""
    smooth = low_pass(q, rate, cutoff)
    velocity = central_difference(smooth, rate) if qd is None else low_pass(qd, rate, cutoff)
    return smooth, velocity, low_pass(central_difference(velocity, rate), rate, cutoff)


def differences(q: np.ndarray, qd: np.ndarray | None, rate: float, cutoff: float) -> Motion:
    """Central differences of positions, and of those again, without any filter, as in the paper of 1992."""
    velocity = central_difference(q, rate)
    return q, velocity, central_difference(velocity, rate)


def savitzky_golay(q: np.ndarray, qd: np.ndarray | None, rate: float, cutoff: float) -> Motion:
    """Local polynomials of degree 4; the window is the one whose response falls to half at the cut-off."""
    signal = needed("scipy.signal", "identify")
    half = max(
        3, round(0.9 * rate / cutoff)
    )  # a quartic window of 2h + 1 samples passes half at about 0.9 rate/h
    window = min(2 * half + 1, len(q) - 1 + len(q) % 2)
    take = lambda order: signal.savgol_filter(q, window, 4, deriv=order, delta=1.0 / rate, axis=0)  # noqa: E731
    return take(0), take(1), take(2)


def smoothing_spline(q: np.ndarray, qd: np.ndarray | None, rate: float, cutoff: float) -> Motion:
    """A cubic smoothing spline; its penalty is the one whose response falls to half at the cut-off."""
    interpolate = needed("scipy.interpolate", "identify")
    t = np.arange(len(q)) / rate
    weight = rate / (2 * np.pi * cutoff) ** 4  # the response of the spline is 1 / (1 + λ ω⁴ / rate)
    splines = [interpolate.make_smoothing_spline(t, column, lam=weight) for column in q.T]
    value = np.stack([s(t) for s in splines], axis=1)
    slope = np.stack([s.derivative(1)(t) for s in splines], axis=1)
    bend = np.stack([s.derivative(2)(t) for s in splines], axis=1)
    return value, slope, low_pass(bend, rate, cutoff)


def observer(q: np.ndarray, qd: np.ndarray | None, rate: float, cutoff: float) -> Motion:
    """A Luenberger observer of (q, q̇, q̈) with three poles at the cut-off, run forward and backward and averaged."""
    forward, backward = _observe(q, rate, cutoff), _observe(q[::-1], rate, cutoff)
    signs = (1.0, -1.0, 1.0)  # time runs the other way
    return tuple(0.5 * (a + s * b[::-1]) for a, b, s in zip(forward, backward, signs, strict=True))  # type: ignore


def _observe(q: np.ndarray, rate: float, cutoff: float) -> Motion:
    """x̂' = A x̂ + L (q − q̂) as three cascaded filters with all poles at −ω: critically damped."""
    signal = needed("scipy.signal", "identify")
    w = 2 * np.pi * cutoff
    outputs = []
    for numerator in ([3 * w, 3 * w**2, w**3], [3 * w**2, w**3, 0.0], [w**3, 0.0, 0.0]):
        b, a = signal.bilinear(numerator, [1.0, 3 * w, 3 * w**2, w**3], fs=rate)
        start = signal.lfilter_zi(b, a)[:, None] * q[0]
        outputs.append(signal.lfilter(b, a, q, axis=0, zi=start)[0])
    return outputs[0], outputs[1], outputs[2]


METHODS: dict[str, Callable[[np.ndarray, np.ndarray | None, float, float], Motion]] = {
    "butterworth": butterworth,
    "differences": differences,
    "savitzky_golay": savitzky_golay,
    "spline": smoothing_spline,
    "observer": observer,
}


def method_named(name: str) -> Callable[[np.ndarray, np.ndarray | None, float, float], Motion]:
    """A method by name; an unknown name lists the valid ones."""
    if name not in METHODS:
        raise UnknownNameError(f"derivatives: no {name!r}; {suggest(name, METHODS)}")
    return METHODS[name]
