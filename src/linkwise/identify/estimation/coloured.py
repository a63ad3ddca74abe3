"""The covariance of an estimate whose residuals are correlated in time.

Residuals of a filtered recording are correlated, so the textbook covariance σ²(WᵀW)⁻¹ is too small. Here the
correlation of each joint's errors is estimated and carried through the solution: for x = Σ_j A_jᵀ τ_j it is cov = Σ_j
A_jᵀ Γ_j A_j, with Γ_j the covariance of joint j's errors in time.

Errors are not known, only residuals: the fit absorbs a part of the errors, most of it where the columns have their
power, at the low frequencies of the motion. There a spectrum of residuals is too small by much more than parameters
per sample. The absorbed part follows from the spectrum itself,

    Γ_j − E[e_j e_jᵀ] = Y_j (Γ_j A_j)ᵀ + (Γ_j A_j) Y_jᵀ − Y_j cov Y_jᵀ,

so it is added again, and the spectrum renewed, until both agree (the expectation–maximisation of variance components).
"""

from __future__ import annotations

import itertools

import numpy as np

from linkwise.identify.estimation.regression import Regression
from linkwise.solve.linear import product

LONGEST_MEMORY = 0.1  # of the samples: lags beyond are taken as uncorrelated
ROUNDS = 6  # iterations that add what the fit has absorbed, at most
ENOUGH = 0.01  # of a variance: where it changes less, there need be no further round
MOST_EATEN = 0.9  # of the power at a frequency
FEWEST = 4.0  # largest number of degrees of freedom


def uncertainty(
    regression: Regression,
    weights: np.ndarray,
    x: np.ndarray,
    inverse: np.ndarray,
    Z: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """(covariance, degrees of freedom) of x = inverse · Zᵀ Ω τ, (p, p) and (p,); Z is Y itself but for instruments.

    A variance that is itself an estimate from few samples has few degrees of freedom (Satterthwaite 1946): intervals
    are then wider than those of a normal distribution.
    """
    used = regression.Y if Z is None else Z
    residuals = regression.residuals(x)
    parts = list(itertools.pairwise((0, *regression.edges, len(regression))))
    joints = [
        _Joint(regression.Y[:, j], weights[j] ** 2 * product(used[:, j], inverse.T), residuals[:, j], parts)
        for j in range(regression.dof)
    ]
    covariance = np.sum([joint.covariance() for joint in joints], axis=0)
    for _ in range(ROUNDS):
        for joint in joints:
            joint.give_back(covariance)
        before, covariance = covariance, np.sum([joint.covariance() for joint in joints], axis=0)
        if np.allclose(np.diag(covariance), np.diag(before), rtol=ENOUGH, atol=0.0):
            break
    square, variance = np.sum([joint.moments() for joint in joints], axis=0)
    freedom = 2.0 * square**2 / np.maximum(variance, 1e-300)
    return 0.5 * (covariance + covariance.T), np.maximum(freedom, FEWEST)


class _Joint:
    """One joint's columns Y (N, p), its part A (N, p) of the solution, its residuals, the spectrum of its errors."""

    def __init__(self, Y: np.ndarray, A: np.ndarray, e: np.ndarray, parts: list[tuple[int, int]]):
        self.A = [A[a:b] for a, b in parts]
        self.lengths = [b - a for a, b in parts]
        self.FY = [np.fft.rfft(Y[a:b], axis=0) for a, b in parts]
        self.mixed = [
            2.0 * (F * np.fft.rfft(part, axis=0).conj()).sum(axis=1).real
            for F, part in zip(self.FY, self.A, strict=True)
        ]
        self.raw = [_raw_autocovariance(e[a:b]) for a, b in parts]
        self.shortest = min(self.lengths)
        self.total = sum(self.lengths)
        self.correlation, self.taper = tapered(self._mean(self.raw), self.total)
        self.eaten = np.zeros(len(self.taper))

    def _mean(self, values: list[np.ndarray]) -> np.ndarray:
        """Over the parts, by their length."""
        total = [n * value[: self.shortest] for n, value in zip(self.lengths, values, strict=True)]
        return np.sum(total, axis=0) / sum(self.lengths)

    def covariance(self) -> np.ndarray:
        """Aᵀ Γ A."""
        return np.sum([product(part.T, _toeplitz_product(part, self.correlation)) for part in self.A], axis=0)

    def give_back(self, covariance: np.ndarray) -> None:
        """The spectrum of the errors from that of the residuals and what an estimate with this covariance has
        absorbed."""
        eaten = []
        for n, F, mixed in zip(self.lengths, self.FY, self.mixed, strict=True):
            spectrum = _spectrum(self.correlation, n)
            left = (product(F.real, covariance) * F.real + product(F.imag, covariance) * F.imag).sum(axis=1)
            eaten.append(np.fft.irfft(np.maximum(mixed * spectrum - left, 0.0), n) / n)
        raw = [mine + lost for mine, lost in zip(self.raw, eaten, strict=True)]
        self.correlation, self.taper = tapered(self._mean(raw), self.total)
        self.eaten = self._mean(eaten)[: len(self.taper)] * self.taper

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """(mean, variance) of this joint's part of the estimated variances, each (p,)."""
        lags = len(self.taper)
        own = np.zeros((lags, self.A[0].shape[1]))
        for part in self.A:
            for lag in range(min(lags, len(part))):
                own[lag] += (part[lag:] * part[: len(part) - lag]).sum(axis=0)
        size = max(64, 4 * lags)
        around = np.zeros((size, own.shape[1]))
        around[:lags] = self.taper[:, None] * own
        around[size - lags + 1 :] = around[1:lags][::-1]
        gain = np.fft.fft(around, axis=0).real  # of a variance by the power at each frequency
        power = _spectrum(self.correlation, size, full=True)
        eaten = np.minimum(_spectrum(self.eaten, size, full=True), MOST_EATEN * power)
        seen = 1.0 - eaten / np.maximum(power, 1e-300)  # the absorbed part has no information
        parts = gain * power[:, None]
        return parts.mean(axis=0), 2.0 * (parts**2 / seen[:, None]).mean(axis=0) / self.total


def _raw_autocovariance(e: np.ndarray) -> np.ndarray:
    """Autocovariances of residuals (N,) at lags 0, 1, …, N − 1."""
    n = len(e)
    size = 1 << (2 * n - 1).bit_length()
    return np.fft.irfft(np.abs(np.fft.rfft(e, size)) ** 2, size)[:n] / n


def tapered(raw: np.ndarray, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """(autocovariances, taper): the first brought to zero by the second where they are noise themselves."""
    longest = max(2, int(LONGEST_MEMORY * len(raw)))
    small = np.abs(raw[:longest]) < 2.0 * np.sqrt(np.log10(samples) / samples) * raw[0]
    # the correlation ends where five lags in a row cannot be distinguished from zero (Politis' flat-top rule)
    runs = np.convolve(small, np.ones(5), "valid") == 5
    memory = max(int(np.argmax(runs)) if runs.any() else longest, 1)
    lags = np.arange(min(2 * memory, longest))
    taper = np.clip(2.0 - lags / memory, 0.0, 1.0)
    return raw[: len(lags)] * taper, taper


def _spectrum(correlation: np.ndarray, n: int, full: bool = False) -> np.ndarray:
    """Power of n samples with these autocovariances at the frequencies of ``rfft``, or of ``fft``; never negative."""
    k = min(len(correlation), n // 2)
    around = np.zeros(n)
    around[:k] = correlation[:k]
    around[n - k + 1 :] += correlation[1:k][::-1]
    return np.maximum((np.fft.fft if full else np.fft.rfft)(around).real, 0.0)


def _fast_size(least: int) -> int:
    """The next 4, 5 or 6 times a power of two, whose FFT is quick."""
    power = 1 << max(least.bit_length() - 3, 0)
    return min(k * power for k in (4, 5, 6, 8) if k * power >= least)


def _toeplitz_product(Z: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """Γ Z for the Toeplitz matrix Γ of these autocovariances, by FFT."""
    n = len(Z)
    k = min(len(correlation), n)
    kernel = np.concatenate([correlation[:k][::-1], correlation[1:k]])
    size = _fast_size(n + k - 1)  # what is wrapped around ends before the part that is used
    factors = np.fft.rfft(np.roll(np.pad(kernel, (0, size - len(kernel))), 1 - k)).real
    return np.fft.irfft(np.fft.rfft(Z, size, axis=0) * factors[:, None], size, axis=0)[:n]
