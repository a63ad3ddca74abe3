"""Estimators: from a regression with independent columns to parameters and their uncertainty.

Each takes a ``Regression`` and gives an ``Estimate``, so any of them, or a function of the user's own, serves as the
``estimator`` of ``identify``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linkwise.errors import UnknownNameError, suggest
from linkwise.identify.estimation.clustered import rescaled
from linkwise.identify.estimation.coloured import uncertainty
from linkwise.identify.estimation.estimate import Estimate
from linkwise.identify.estimation.regression import Regression
from linkwise.identify.estimation.solvers import column_lengths, condition, solve
from linkwise.identify.estimation.weights import iterated_weights
from linkwise.solve import linear
from linkwise.solve.linear import product

Estimator = Callable[[Regression], Estimate]
HUBER = 1.345  # of Huber's function: 95 % efficient for normal errors
GENERIC = 1e-8  # a direction with less of the torques than this has no information about parameters
MAD = 1.4826  # standard deviation of normal errors per median of their absolute values


def ordinary(regression: Regression, *, solver: str = "qr") -> Estimate:
    """Ordinary least squares: all joints weigh the same.

    Args:
        regression: the columns and torques.
        solver: "qr", "svd" or "pinv".
    """
    weights = np.ones(regression.dof)
    return _with_covariance("ordinary", regression, solve(*regression.compressed(weights), solver), weights)


def weighted(regression: Regression, *, solver: str = "qr", iterations: int = 20) -> Estimate:
    """Weighted least squares: every joint by the standard deviation of its residuals, until these stay the same.

    Args:
        regression: the columns and torques.
        solver: "qr", "svd" or "pinv".
        iterations: most iterations.
    """
    return _with_covariance("weighted", regression, *iterated_weights(regression, solver, iterations))


def total(regression: Regression, *, column_noise: float = 1e-3) -> Estimate:
    """Total least squares: columns are uncertain too, by ``column_noise`` of their size; weights as above.

    Args:
        regression: the columns and torques.
        column_noise: uncertainty of columns relative to their size.
    """
    _, weights = iterated_weights(regression)
    W, y = regression.compressed(weights)
    scale = (
        column_lengths(W) / np.sqrt(regression.tau.size) * column_noise
    )  # σ of a column's entries; that of y is 1
    _, Vt = linear.svd(np.column_stack([W / scale, y]))
    told = np.flatnonzero(np.abs(Vt[:, -1]) > GENERIC)
    last = Vt[told[-1] :]  # one direction, or several where columns hardly differ: then the shortest x of all
    x = -product(last[:, -1], last[:, :-1]) / linear.dot(last[:, -1], last[:, -1])
    return _with_covariance("total", regression, x / scale, weights)


def robust(regression: Regression, *, threshold: float = HUBER, iterations: int = 50) -> Estimate:
    """Huber's estimator by reweighting: residuals beyond ``threshold`` standard deviations count linearly only.

    Args:
        regression: the columns and torques.
        threshold: standard deviations beyond which residuals count linearly.
        iterations: most iterations.
    """
    x, weights = iterated_weights(regression)
    sigma = 1.0 / weights
    share = np.ones_like(regression.tau)
    for _ in range(iterations):
        residuals = regression.residuals(x)
        sigma = np.maximum(
            MAD * np.median(np.abs(residuals), axis=0), 1e-12 * np.abs(regression.tau).max(axis=0)
        )
        size = np.abs(residuals) / sigma
        share = np.minimum(1.0, threshold / np.maximum(size, 1e-300))
        root = np.sqrt(share) / sigma
        before = x
        x = solve((regression.Y * root[..., None]).reshape(-1, len(x)), (regression.tau * root).reshape(-1))
        if linear.dot(x - before, x - before) <= 1e-14 * linear.dot(x, x):
            break
    note = f"{100 * np.mean(share < 1):.1f} % of the samples beyond {threshold:g} standard deviations"
    return _with_covariance("robust", regression, x, 1.0 / sigma, (note,))


def ridge(
    regression: Regression, *, strength: float | None = None, prior: np.ndarray | None = None
) -> Estimate:
    """Ridge regression towards ``prior`` (p,) or zero; default strength: least generalised cross-validation.

    Args:
        regression: the columns and torques.
        strength: weight of the prior; by default the one with the least generalised cross-validation.
        prior: parameters, shape (p,); zero by default.
    """
    _, weights = iterated_weights(regression)
    W, y = regression.compressed(weights)
    length = column_lengths(W)
    towards = np.zeros(W.shape[1]) if prior is None else np.asarray(prior, dtype=float)
    s, Vt = linear.svd(W / length)
    wanted = y - product(W, towards)
    # Uᵀ y with W = U diag(s) Vᵀ; directions without information have none of it
    known = s > GENERIC * s[0]
    projected = product(Vt, product((W / length).T, wanted))
    coordinates = np.where(known, projected / np.where(known, s, 1.0), 0.0)
    rest = linear.dot(wanted, wanted) - linear.dot(coordinates, coordinates)
    if strength is None:
        candidates = np.logspace(-12, 0, 49) * s[0] ** 2
        scores = []
        for candidate in candidates:
            kept = s**2 / (s**2 + candidate)
            scores.append(
                (rest + float((((1 - kept) * coordinates) ** 2).sum()))
                / (regression.tau.size - kept.sum()) ** 2
            )
        strength = float(candidates[int(np.argmin(scores))])
    x = towards + product(Vt.T, s / (s**2 + strength) * coordinates) / length
    note = f"strength {strength:.3g}, {strength / s[-1] ** 2:.2g} times the smallest squared singular value"
    return _with_covariance("ridge", regression, x, weights, (note,))


def idim_iv(regression: Regression, **options) -> Estimate:
    """Instrumental variables from a simulated robot; see ``instrumental``.

    Args:
        regression: the columns and torques.
        **options: those of ``instrumental``.
    """
    from linkwise.identify.estimation.instrumental import instrumental

    return instrumental(regression, **options)


ESTIMATORS: dict[str, Estimator] = {
    "ordinary": ordinary,
    "weighted": weighted,
    "total": total,
    "robust": robust,
    "ridge": ridge,
    "idim-iv": idim_iv,
}


def estimator_named(name: str) -> Estimator:
    """An estimator by name; an unknown name lists the valid ones."""
    if name not in ESTIMATORS:
        raise UnknownNameError(f"estimator: no {name!r}; {suggest(name, ESTIMATORS)}")
    return ESTIMATORS[name]


def _with_covariance(
    method: str, regression: Regression, x: np.ndarray, weights: np.ndarray, notes: tuple[str, ...] = ()
) -> Estimate:
    """The estimate with its covariance."""
    W, _ = regression.compressed(weights)
    length = column_lengths(W)
    half = linear.pseudo_inverse(linear.triangle(W / length)) / length[:, None]
    covariance, spare = uncertainty(regression, weights, x, product(half, half.T))
    covariance, spare = rescaled(covariance, spare, regression, weights, x)
    freedom = max(len(regression) - len(x) / regression.dof, 1.0)
    sigma = np.sqrt((regression.residuals(x) ** 2).sum(axis=0) / freedom)
    return Estimate(
        method, regression.labels, x, covariance, sigma, weights, condition(W), len(regression), notes, spare
    )
