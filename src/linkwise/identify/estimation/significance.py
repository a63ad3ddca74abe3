"""Which parameters matter. Two rules; both end with a fit of what is left.

*Contribution* (Izaguirre 1992, section 7): a parameter whose largest contribution to any torque is under 1 % of that
joint's largest measured torque is dropped. *Statistics*: the parameter with the smallest |t| is dropped as long as
that lowers Akaike's criterion, so parameters stay whose effect on the prediction justifies them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from linkwise.errors import UnknownNameError, suggest
from linkwise.identify.estimation.estimate import Estimate
from linkwise.identify.estimation.estimators import Estimator, weighted
from linkwise.identify.estimation.regression import Regression
from linkwise.solve import linear
from linkwise.solve.linear import product

THRESHOLD = 0.01  # Izaguirre's one per cent
T_VALUE = 1.96  # a parameter under this is not distinguishable from zero at 95 %


@dataclass(frozen=True)
class Significance:
    """What stays: columns of the regression, the fit with those alone, contributions (p,) of all to torques."""

    rule: str
    kept: tuple[int, ...]
    estimate: Estimate
    contributions: np.ndarray
    condition_before: float

    @property
    def labels(self) -> tuple[str, ...]:
        return self.estimate.labels


Rule = Callable[[Regression, Estimate, Estimator], Significance]


def contributions(regression: Regression, x: np.ndarray) -> np.ndarray:
    """Largest torque that each parameter causes, in parts of the largest torque of the joint it acts on, shape (p,)."""
    largest = np.maximum(np.abs(regression.tau).max(axis=0), 1e-300)
    return (np.abs(regression.Y * x).max(axis=0) / largest[:, None]).max(axis=0)


def by_contribution(
    regression: Regression,
    estimate: Estimate,
    estimator: Estimator = weighted,
    *,
    threshold: float = THRESHOLD,
) -> Significance:
    """Izaguirre's rule: parameters whose contribution to the torques is small are left out.

    Args:
        regression: the columns and torques.
        estimate: the estimate of all parameters.
        estimator: estimates again with fewer parameters.
        threshold: relative contribution to the torques below which a parameter is left out.
    """
    found = contributions(regression, estimate.x)
    kept = tuple(int(k) for k in np.flatnonzero(found >= threshold))
    return Significance("contribution", kept, estimator(regression.pick(kept)), found, estimate.condition)


def by_statistics(
    regression: Regression, estimate: Estimate, estimator: Estimator = weighted
) -> Significance:
    """Backward elimination: drop the smallest |t| while Akaike's criterion falls, weights as they were.

    Args:
        regression: the columns and torques.
        estimate: the estimate of all parameters.
        estimator: estimates again with fewer parameters.
    """
    W, y = regression.compressed(estimate.weights)
    gram, right, square = product(W.T, W), product(W.T, y), linear.dot(y, y)
    inflation = _inflation(estimate, gram)
    kept = list(range(W.shape[1]))
    effective = regression.tau.size / inflation  # correlated samples count as fewer

    def criterion(columns: list[int]) -> tuple[float, np.ndarray, np.ndarray]:
        A = gram[np.ix_(columns, columns)]
        inverse = linear.pseudo_inverse(A)
        x = product(inverse, right[columns])
        residual = max(square - linear.dot(x, right[columns]), 1e-300)
        return (
            effective * float(linear.logarithm(residual)) + 2 * len(columns),
            x,
            np.maximum(np.diag(inverse), 0.0),
        )

    value, x, variance = criterion(kept)
    while len(kept) > 1:
        t = np.abs(x) / np.sqrt(np.maximum(variance * inflation, 1e-300))
        weakest = int(np.argmin(t))
        if t[weakest] > T_VALUE:
            break
        shorter = kept[:weakest] + kept[weakest + 1 :]
        lower, x_new, variance_new = criterion(shorter)
        if lower > value:
            break
        kept, value, x, variance = shorter, lower, x_new, variance_new
    found = contributions(regression, estimate.x)
    return Significance(
        "statistics", tuple(kept), estimator(regression.pick(kept)), found, estimate.condition
    )


def _inflation(estimate: Estimate, gram: np.ndarray) -> float:
    """How much larger variances are than for uncorrelated residuals, typically."""
    plain = np.maximum(np.diag(linear.pseudo_inverse(gram)), 1e-300)
    return float(np.median(np.maximum(np.diag(estimate.covariance), 1e-300) / plain))


RULES: dict[str, Rule] = {"contribution": by_contribution, "statistics": by_statistics}


def rule_named(name: str) -> Rule:
    """A rule by name; an unknown name lists the valid ones."""
    if name not in RULES:
        raise UnknownNameError(f"significance: no rule {name!r}; {suggest(name, RULES)}")
    return RULES[name]
