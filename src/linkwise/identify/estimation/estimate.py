"""An estimate and its uncertainty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.core.once import once
from linkwise.core.summaries import Summarised, Summary
from linkwise.errors import ArgumentError, UnknownNameError, needed, suggest


@dataclass(frozen=True, repr=False)
class Estimate(Summarised):
    """Parameters x under their labels, with covariance (p, p).

    ``sigma`` (n,) are standard deviations of each joint's residuals [N·m or N]; ``condition`` is the condition number
    of the weighted observation matrix with columns of unit length; ``weights`` (n,) are those of the joints.
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
    freedom: np.ndarray | None = None
    """Degrees of freedom of the variances, (p,), see ``coloured``; None: many."""

    def _summary(self) -> Summary:
        rows = list(zip(self.labels, self.x, self.deviations, strict=True))
        title = f"Estimate by {self.method}: {len(rows)} parameters from {self.samples} samples"
        return Summary(title, ("parameter", ">value", ">standard deviation"), rows, self.notes)

    @once
    def deviations(self) -> np.ndarray:
        """Standard deviations, shape (p,)."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @property
    def correlation(self) -> np.ndarray:
        """Correlations of the parameters' errors, shape (p, p)."""
        scale = np.where(self.deviations > 0, self.deviations, 1.0)
        return self.covariance / np.outer(scale, scale)

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """(lower, upper) ends of confidence intervals, each (p,)."""
        reach = quantile(level, self.freedom) * self.deviations
        return self.x - reach, self.x + reach

    def value(self, label: str) -> float:
        """One parameter."""
        if label not in self.labels:
            raise UnknownNameError(f"estimate: no parameter {label!r}; {suggest(label, self.labels)}")
        return float(self.x[self.labels.index(label)])


def quantile(level: float, freedom: np.ndarray | float | None = None) -> np.ndarray:
    """Standard deviations from the middle of a confidence interval to its ends; ``freedom`` as in ``Estimate``."""
    if not 0.0 < level < 1.0:
        raise ArgumentError(f"level: expected a number between 0 and 1, such as 0.95, got {level!r}")
    stats = needed("scipy.stats", "identify")
    return stats.t.ppf(0.5 + level / 2, np.inf if freedom is None else freedom)
