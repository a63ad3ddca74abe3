"""An estimate and its uncertainty.

Residuals of a filtered recording are correlated in time, so the textbook covariance σ²(WᵀW)⁻¹ is too small. Here
the correlation of each joint's residuals is estimated and carried through the least-squares solution:
cov = G (Σ_j W_jᵀ Γ_j W_j) Gᵀ with G = (WᵀΩW)⁻¹ and Γ_j the covariance of joint j's residuals in time.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from linkwise.identify.errors import require
from linkwise.identify.regression import Regression

LONGEST_MEMORY = 0.1  # of the samples: lags beyond are taken as uncorrelated


@dataclass(frozen=True)
class Estimate:
    """Parameters x under their labels, with covariance (p, p).

    ``sigma`` (n,) are standard deviations of each joint's residuals [N·m or N]; ``condition`` is the condition number of the
    weighted observation matrix with columns of unit length; ``weights`` (n,) are those of the joints.
    """

    method: str
    labels: tuple[str, ...]
    x: np.ndarray
    covariance: np.ndarray
    sigma: np.ndarray
    weights: np.ndarray
    condition: float
    samples: int
    notes: tuple[str, ...] = ()

    @cached_property
    def deviations(self) -> np.ndarray:
        """Standard deviations, shape (p,)."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @property
    def relative_deviations(self) -> np.ndarray:
        """Standard deviations in per cent of the parameters, shape (p,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return 100.0 * self.deviations / np.abs(self.x)

    @property
    def correlation(self) -> np.ndarray:
        """Correlations of the parameters' errors, shape (p, p)."""
        scale = np.where(self.deviations > 0, self.deviations, 1.0)
        return self.covariance / np.outer(scale, scale)

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """(lower, upper) ends of confidence intervals, each (p,)."""
        quantile = float(require("scipy.stats", "identify").norm.ppf(0.5 + level / 2))
        return self.x - quantile * self.deviations, self.x + quantile * self.deviations

    def value(self, label: str) -> float:
        """One parameter."""
        return float(self.x[self.labels.index(label)])


def correlated_covariance(
    regression: Regression,
    weights: np.ndarray,
    x: np.ndarray,
    inverse: np.ndarray,
    Z: np.ndarray | None = None,
) -> np.ndarray:
    """The covariance of x = inverse · Zᵀ Ω y, residuals correlated in time; Z is Y itself but for instruments."""
    used = regression.Y if Z is None else Z
    residuals = regression.residuals(x)
    spent = len(x) / regression.dof  # parameters per joint: residuals are smaller than errors by these
    inside = np.zeros((len(x), len(x)))
    starts = (0, *regression.edges, len(regression))
    for j in range(regression.dof):
        correlation = np.zeros(1)
        parts = list(itertools.pairwise(starts))
        covariances = [autocovariance(residuals[a:b, j]) * (b - a) for a, b in parts]
        size = min(len(c) for c in covariances)
        correlation = np.sum([c[:size] for c in covariances], axis=0) / len(regression)
        correlation = correlation * len(regression) / max(len(regression) - spent, 1.0)
        for a, b in parts:
            Zj = weights[j] ** 2 * used[a:b, j]
            inside += Zj.T @ _smeared(Zj, correlation)
    covariance = inverse @ (0.5 * (inside + inside.T)) @ inverse.T
    return 0.5 * (covariance + covariance.T)


def autocovariance(e: np.ndarray) -> np.ndarray:
    """Autocovariances of residuals (N,) at lags 0, 1, …, tapered to zero where they are noise themselves."""
    n = len(e)
    size = 1 << (2 * n - 1).bit_length()
    power = np.abs(np.fft.rfft(e, size)) ** 2
    raw = np.fft.irfft(power, size)[:n] / n
    longest = max(2, int(LONGEST_MEMORY * n))
    band = 2.0 / np.sqrt(n) * raw[0]
    small = np.abs(raw[:longest]) < band
    # the memory ends where five lags in a row cannot be told from zero (Politis' flat-top rule)
    runs = np.convolve(small, np.ones(5), "valid") == 5
    memory = int(np.argmax(runs)) if runs.any() else longest
    memory = max(memory, 1)
    lags = np.arange(min(2 * memory, longest))
    taper = np.clip(2.0 - lags / memory, 0.0, 1.0)
    return raw[: len(lags)] * taper


def _smeared(Z: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """Γ Z for the Toeplitz matrix Γ of these autocovariances, by FFT."""
    n = len(Z)
    k = min(len(correlation), n)
    kernel = np.concatenate([correlation[:k][::-1], correlation[1:k]])
    size = 1 << (n + 2 * k).bit_length()
    smeared = np.fft.irfft(np.fft.rfft(Z, size, axis=0) * np.fft.rfft(kernel, size)[:, None], size, axis=0)
    return smeared[k - 1 : k - 1 + n]
