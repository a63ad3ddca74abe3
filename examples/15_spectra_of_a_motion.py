"""Spectra of positions, velocities and accelerations along typical moves (Izaguirre 1992, section 3).

The two-rate structure rests on them: coefficients that depend on q and q̇ may be computed slowly because
these vary slowly, while q̈ must enter at every sample. The paper, after Kircanski: "the position and
velocities spectra are similar, whereas the spectrum of the acceleration is about five times larger". Here: a
PUMA 560 works for a minute.
"""

import numpy as np
from figures import panels

import linkwise as lw
from linkwise import motion

robot = lw.load("puma560")
rng = np.random.default_rng(4)
RATE = 200.0


def work(kind: str, seconds: float = 60.0) -> list[np.ndarray]:
    """q, q̇, q̈ while the arm goes from place to place and waits a little at each."""
    place, parts = np.zeros(6), []
    while sum(len(part.t) for part in parts) < seconds * RATE:
        target = rng.uniform(-1.2, 1.2, 6)
        if kind == "quintic":
            move = motion.quintic(place, target, rng.uniform(0.6, 1.5))
        elif kind == "trapezoidal":
            move = motion.trapezoidal(place, target, velocity=2.5, acceleration=10.0)
        else:
            move = motion.jerk_limited(place, target, velocity=2.5, acceleration=10.0, jerk=80.0)
        parts += [move.sampled(RATE), motion.hold(target, rng.uniform(0.1, 0.4)).sampled(RATE)]
        place = target
    return [np.concatenate([getattr(part, name) for part in parts]) for name in ("q", "qd", "qdd")]


def bandwidth(signal: np.ndarray, share: float = 0.95) -> tuple[float, np.ndarray, np.ndarray]:
    """(the frequency [Hz] below which that share of the power lies, frequencies, power), over all joints."""
    window = np.hanning(len(signal))[:, np.newaxis]
    power = (np.abs(np.fft.rfft((signal - signal.mean(axis=0)) * window, axis=0)) ** 2).sum(axis=1)
    frequency = np.fft.rfftfreq(len(signal), 1 / RATE)
    return frequency[np.searchsorted(np.cumsum(power) / power.sum(), share)], frequency, power


axes = panels(1, 3, "Power spectra along typical moves of a PUMA 560", (14, 4), sharey=True)
print("95 % of the power below [Hz]      q      q̇      q̈   q̈ : q")
for k, kind in enumerate(("quintic", "trapezoidal", "jerk limited")):
    found = [bandwidth(signal) for signal in work(kind)]
    q, qd, qdd = (band for band, _, _ in found)
    print(f"{kind:<26} {q:10.2f} {qd:7.2f} {qdd:7.2f} {qdd / q:7.1f}")
    assert q < qd < qdd
    assert qdd / q > 3
    if axes is not None:
        for name, (_, frequency, power) in zip(("q", "q̇", "q̈"), found, strict=True):
            axes[k].loglog(
                frequency[1:], np.convolve(power / power.sum(), np.ones(9) / 9, "same")[1:], label=name
            )
        axes[k].set(title=kind, xlabel="Hz", ylim=(1e-9, 1), ylabel="share of the power" if k == 0 else "")
        axes[k].legend()
