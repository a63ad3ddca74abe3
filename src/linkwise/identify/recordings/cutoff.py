"""The cut-off frequency of the filters, chosen from the recording.

Two limits are computed and the lower one is taken. *Noise*: beyond some frequency the accelerations computed from the
recording are noise; the cut-off that minimises the expected error (what is lost of the motion above it plus the noise
let through below it) follows from the spectrum of what was recorded (not of its differences, which colour the noise),
whose floor is the noise. *Motion*: the model of a rigid arm is valid up to some multiple of the frequencies at which
it is moved; what is above (vibrations, ripple of the drives) is no part of the model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.errors import needed

MOTION_SHARE = 0.99  # of the power of the velocities lies below the motion band
MOTION_FACTOR = 30.0  # the model is used up to this many times the motion band
HIGHEST = 0.4  # of the sampling rate: a filter at the Nyquist frequency is none
LONGEST_WINDOW = 8.0  # [s] of a spectrum


@dataclass(frozen=True)
class Cutoff:
    """A cut-off frequency [Hz] and where it comes from."""

    frequency: float
    motion_band: float  # [Hz]
    noise_limit: float  # [Hz]
    note: str


def choose_cutoff(q: np.ndarray, rate: float, qd: np.ndarray | None = None) -> Cutoff:
    """The cut-off for positions q (N, n), and velocities qd where recorded, sampled ``rate`` times a second."""
    f, power = spectrum(q, rate)
    noise, density = noise_limit(f, power, 4), power * (2 * np.pi * f[:, None]) ** 2
    floor = noise_floor(f, power) * (2 * np.pi * f[:, None]) ** 2
    if qd is not None:
        f, density = spectrum(qd, rate)
        floor = noise_floor(f, density)
        noise = max(noise, noise_limit(f, density, 2))  # whichever was recorded more exactly
    seen = f <= noise
    band = motion_band(f[seen], np.maximum(density - floor, 0.0)[seen])
    chosen = min(noise, MOTION_FACTOR * band, HIGHEST * rate)
    reason = {
        noise: "above it the accelerations are mostly noise",
        MOTION_FACTOR
        * band: f"{MOTION_FACTOR:g} times the motion, {MOTION_SHARE:.0%} of whose power is below {band:.2g} Hz",
        HIGHEST * rate: f"{HIGHEST:g} of the sampling rate",
    }[chosen]
    return Cutoff(chosen, band, noise, f"cut-off {chosen:.3g} Hz: {reason}")


def spectrum(signal: np.ndarray, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies [Hz] and power densities (frequencies, n)."""
    welch = needed("scipy.signal", "identify").welch
    length = min(len(signal), max(64, int(LONGEST_WINDOW * rate)))
    f, power = welch(signal, rate, nperseg=length, axis=0, detrend="linear")
    return f[1:], power[1:]


def noise_floor(f: np.ndarray, power: np.ndarray) -> np.ndarray:
    """The level of white noise in recorded signals, shape (n,): where there is no motion any more."""
    return np.median(power[f > 0.6 * f[-1]], axis=0)


def motion_band(f: np.ndarray, power: np.ndarray) -> float:
    """The frequency [Hz] below which ``MOTION_SHARE`` of the power of every joint's velocity lies."""
    moving = power.sum(axis=0) > 0
    if not moving.any():
        return float(f[0])
    share = np.cumsum(power[:, moving], axis=0) / power[:, moving].sum(axis=0)
    return float(np.median([np.interp(MOTION_SHARE, column, f) for column in share.T]))


def noise_limit(f: np.ndarray, power: np.ndarray, order: int) -> float:
    """The cut-off [Hz] with the smallest expected error of the derivative whose power is ω^order × this one."""
    floor = noise_floor(f, power)
    weight = (2 * np.pi * f) ** order
    limits = []
    for k in range(power.shape[1]):
        signal = np.maximum(power[:, k] - floor[k], 0.0) * weight
        noise = floor[k] * weight
        lost = signal.sum() - np.cumsum(signal)
        error = lost + np.cumsum(noise)
        limits.append(f[int(np.argmin(error))])
    return float(np.median(limits))
