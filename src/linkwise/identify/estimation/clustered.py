"""Uncertainty that allows for a model which is not quite right: standard deviations from whole motions.

Where the model is wrong, residuals are not noise: they are the same each time the robot comes to the same states, and a
longer recording of one motion does not average them away. What another motion would have found then differs by more
than the noise says. The recording itself shows by how much: its parts that are different motions pull the estimate in
different directions. With W the weighted columns, e the residuals, W_g and e_g those of motion g, M = (WᵀW)⁻¹,

    cov = Σ_g v_g v_gᵀ,   v_g = M W_gᵀ (1 − W_g M W_gᵀ)^(−½) e_g,

in which the root gives back what the fit has absorbed of the residuals of its own motion (the estimator CR2 of Bell and
McCaffrey 2002). With B_g = M^½ W_gᵀW_g M^½ this is v_g = M^½ (1 − B_g)^(−½) M^½ W_gᵀ e_g: no matrix is as large as the
recording.

Ten motions say little about one parameter, but much about many of them together: the deviations of the noise
(``coloured``) of all parameters of a kind (links, rotors, friction) are multiplied with the median ratio of both. Where
residuals are errors of the model, their spectrum is no noise, and its deviations may be too small or too large.
"""

from __future__ import annotations

import numpy as np

from linkwise.identify.estimation.motions import motions
from linkwise.identify.estimation.regression import Regression
from linkwise.solve import linear
from linkwise.solve.linear import product

ALL = 0.999  # share of what is known about a direction, that one motion may have
ENOUGH = 5  # motions from which their differences are a measure
LEAST = 0.3  # smallest factor
RESOLVED = 1e-12  # of the largest eigenvalue: directions with less have no information


def rescaled(
    covariance: np.ndarray, regression: Regression, weights: np.ndarray, x: np.ndarray
) -> np.ndarray:
    """The covariance of noise, larger or smaller by as much as motions differ in what they ask for."""
    found = clustered_deviations(regression, weights, x)
    if found is None or regression.observer is None or motions(regression.observer).max() + 1 < ENOUGH:
        return covariance
    ratio = found / np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    kinds = np.array([kind_of(label) for label in regression.labels])
    factors = np.ones(len(x))
    for kind in set(kinds.tolist()):
        factors[kinds == kind] = max(LEAST, float(np.median(ratio[kinds == kind])))
    return covariance * np.outer(factors, factors)


def kind_of(label: str) -> str:
    """Whether a parameter belongs to rotors, friction or links.

    Args:
        label: of the parameter.
    """
    name = label.rpartition(".")[2]
    if name == "rotor_inertia":
        return "rotors"
    return "friction" if "friction" in name or name == "torque_offset" else "links"


def clustered_deviations(regression: Regression, weights: np.ndarray, x: np.ndarray) -> np.ndarray | None:
    """Standard deviations (p,) of an estimate by weighted least squares; None where motions are not known."""
    if regression.observer is None:
        return None
    motion = motions(regression.observer)
    if len(motion) != len(regression) or motion.max() < 1:
        return None
    errors = regression.residuals(x) * weights
    parts = []
    for g in range(int(motion.max()) + 1):
        inside = motion == g
        W = (regression.Y[inside] * weights[:, None]).reshape(-1, len(x))
        parts.append((product(W.T, W), product(W.T, errors[inside].reshape(-1))))
    gram = np.sum([part for part, _ in parts], axis=0)
    scale = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    values, vectors = linear.symmetric_eigen(gram / np.outer(scale, scale))
    values = np.maximum(values, RESOLVED * values.max())
    root = product(vectors / np.sqrt(values), vectors.T)
    variance = np.zeros(len(x))
    for own, pull in parts:
        share, axes = linear.symmetric_eigen(product(product(root, own / np.outer(scale, scale)), root))
        given_back = product(axes / np.sqrt(1.0 - np.clip(share, 0.0, ALL)), axes.T)
        variance += product(root, product(given_back, product(root, pull / scale))) ** 2
    return np.sqrt(variance) / scale
