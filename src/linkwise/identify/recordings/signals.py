"""From a recording to signals that a regression can use: steady clock, smooth motion, fewer samples.

Everything that was done is written down in ``Signals.record``, and reaches the report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.arguments.numbers import Numbers
from linkwise.core.summaries import Summarised
from linkwise.errors import needed
from linkwise.identify.errors import LogError
from linkwise.identify.recordings.clock import read_clock
from linkwise.identify.recordings.cutoff import choose_cutoff
from linkwise.identify.recordings.derivatives import Motion, low_pass, method_named
from linkwise.identify.recordings.log import Log
from linkwise.solve.linear import product

FINE = 16.0  # samples per period of the cut-off in the fine signals: friction turns over within a sample
COARSE = 3.0  # the same in the regression, where noise above the cut-off has been filtered away


@dataclass(frozen=True, repr=False)
class Signals(Summarised):
    """Smooth motion and torques at a steady rate.

    t (N,) [s]; q, qd, qdd, tau (N, n). ``tau`` is not low-passed at the cut-off yet: the regression filters it
    together with the columns it is explained by (``filtered``), so that both sides lose the same. ``record`` says what
    was done; ``decimation`` is ``thinning`` as given, if it was. ``speeds`` (samples, n) are q̇ at every sample of the
    recording, of which one in ``step`` is kept here. ``lag`` [s]: ``tau`` was recorded so much later than the motion,
    and was shifted (see ``identify.estimation.lag``). ``stamps`` (samples,) are the times of the recording's samples.
    """

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray
    rate: float
    cutoff: float
    log: Log
    record: tuple[str, ...]
    decimation: int | None = None
    speeds: np.ndarray | None = None
    step: int = 1
    lag: float = 0.0
    stamps: np.ndarray | None = None

    @property
    def dof(self) -> int:
        return self.q.shape[1]

    def __len__(self) -> int:
        return len(self.t)

    def filtered(self, x: np.ndarray) -> np.ndarray:
        """A signal (N, …) low-passed at the cut-off, without its ends and thinned for the regression."""
        return low_pass(x, self.rate, self.cutoff)[self._inner_samples]

    @property
    def filtered_times(self) -> np.ndarray:
        """The times of the samples of ``filtered`` [s]."""
        return self.t[self._inner_samples]

    @property
    def _inner_samples(self) -> slice:
        margin = min(int(self.rate / self.cutoff), len(self) // 10)
        return slice(margin, len(self) - margin, self.thinning)

    def signs(self, axes: np.ndarray) -> np.ndarray | None:
        """sgn q̇ (N, axes) of axes (axes, n), from every sample of the recording and thinned as the torques were.

        A torque is sampled at instants, at which Coulomb friction has one direction or the other: in a recording it
        turns over at a sample, wherever the axis turned in between. A more exact column would not explain such
        torques: without noise in the torques the difference is larger than the noise.
        """
        if self.speeds is None:
            return None
        return _every_sample(np.sign(product(self.speeds, axes.T)), self.rate * self.step, self.step)

    @property
    def thinning(self) -> int:
        """Every how many samples one is used in the regression."""
        return self.decimation or max(1, int(self.rate / (COARSE * self.cutoff)))

    def at_stamps(self) -> tuple[np.ndarray, Motion]:
        """(t, (q, q̇, q̈)) of every recorded torque, for judging torques as they were recorded.

        The motion is that at the time of the torque: earlier than its stamp where torques lag.
        """
        stamps = read_clock(self.log.t, self.log.q).t if self.stamps is None else self.stamps
        if not self.lag and len(stamps) == len(self.t) and np.array_equal(stamps, self.t):
            return self.t, (self.q, self.qd, self.qdd)
        spline = needed("scipy.interpolate", "identify").CubicSpline
        where = np.clip(stamps - self.lag, self.t[0], self.t[-1])
        return stamps, tuple(spline(self.t, x, axis=0)(where) for x in (self.q, self.qd, self.qdd))  # type: ignore


def condition(
    log: Log,
    *,
    cutoff: float | None = None,
    derivatives: str | Callable[..., Motion] = "butterworth",
    use_velocities: bool = True,
    decimation: int | None = None,
) -> Signals:
    """Filtered signals of a recording.

    Args:
        log: the recording.
        cutoff: [Hz]; by default chosen from the data.
        derivatives: a name of ``derivatives.METHODS`` or a function with their signature.
        use_velocities: False ignores recorded velocities.
        decimation: every how many samples of the result one is used in the regression; by default as many as the
            cut-off needs.
    """
    if len(log) < 20:
        raise LogError(f"{log.name}: {len(log)} samples; expected at least 20")
    if decimation is not None:
        decimation = Numbers().whole("decimation", decimation, 1)
    clock = read_clock(log.t, log.q)
    record = [*log.notes, clock.note]
    qd = log.qd if flag("use_velocities", use_velocities) else None
    t, (q, tau, qd) = clock.t, (log.q, log.tau, qd)
    if not clock.regular:
        steps = max(len(clock.t) - 1, round(float(clock.t[-1] - clock.t[0]) / clock.step))
        t = np.linspace(clock.t[0], clock.t[-1], steps + 1)
        q = _interpolation(clock.t, q, t, "CubicSpline")
        qd = None if qd is None else _interpolation(clock.t, qd, t, "CubicSpline")
        tau = _interpolation(
            clock.t, tau, t, "PchipInterpolator"
        )  # which does not overshoot where samples are missing
        record.append(
            f"interpolated at these times to {(len(t) - 1) / (t[-1] - t[0]):.6g} samples per second"
        )
    rate = (len(t) - 1) / float(t[-1] - t[0])
    if cutoff is None:
        chosen = choose_cutoff(q, rate, qd)
        cutoff = chosen.frequency
        record.append(chosen.note)
    else:
        if not cutoff > 0:
            raise ValueError(f"cutoff: expected a positive frequency in Hz, got {cutoff!r}")
        cutoff = min(cutoff, 0.45 * rate)
        record.append(f"cut-off {cutoff:.3g} Hz as given")
    method = method_named(derivatives) if isinstance(derivatives, str) else derivatives
    q, qd_used, qdd = method(q, qd, rate, cutoff)
    name = derivatives if isinstance(derivatives, str) else getattr(derivatives, "__name__", "given function")
    record.append(
        f"derivatives: {name}"
        + (", from recorded velocities" if qd is not None and name == "butterworth" else "")
    )
    step = max(1, int(rate / (FINE * cutoff)))
    if step > 1:
        record.append(f"thinned: one sample of {step} is kept")
    speeds, tau = qd_used, _every_sample(tau, rate, step)
    t, q, qd_used, qdd = (x[::step] for x in (t, q, qd_used, qdd))
    signals = Signals(t, q, qd_used, qdd, tau, rate / step, cutoff, log, (), decimation, speeds, step)
    signals = replace(signals, stamps=clock.t)
    return replace(signals, record=(*record, f"regression on one sample of {signals.thinning}"))


def _every_sample(x: np.ndarray, rate: float, step: int) -> np.ndarray:
    """Every ``step``-th sample, low-passed for the lower rate."""
    return x if step == 1 else low_pass(x, rate, 0.4 * rate / step)[::step]


def _interpolation(t: np.ndarray, x: np.ndarray, at: np.ndarray, kind: str) -> np.ndarray:
    return getattr(needed("scipy.interpolate", "identify"), kind)(t, x, axis=0)(at)
