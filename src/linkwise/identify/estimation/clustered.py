"""Uncertainty that allows for a model which is not quite right: standard deviations from whole motions.

Where the model is wrong, residuals are not noise: they are the same each time the robot comes to the same states, and a
longer recording of one motion does not average them away. What another motion would have found then differs by more
than the noise says. The recording itself shows by how much: its parts that are different motions pull the estimate in
different directions. With W the weighted columns, e the residuals, W_g and e_g those of motion g, M = (WᵀW)⁻¹,

    cov = Σ_g v_g v_gᵀ,   v_g = M W_gᵀ (1 − W_g M W_gᵀ)^(−½) e_g,

in which the root gives back what the fit has absorbed of the residuals of its own motion (the estimator CR2 of Bell and
McCaffrey 2002). With B_g = M^½ W_gᵀW_g M^½ this is v_g = M^½ (1 − B_g)^(−½) M^½ W_gᵀ e_g: no matrix is as large as the
recording.

Ten motions say little about one parameter, but more about many of them together: the deviations of the noise
(``coloured``) of all parameters of a kind (links, rotors, friction) are multiplied with one factor. Where residuals are
errors of the model, their spectrum is no noise, and its deviations may be too small or too large.

Deviations are widened by the median ratio of both. They are narrowed only where motions prove that those of the noise
are too large: variances from few motions scatter, and are more often too small than too large. With S, which picks the
k parameters of a kind and divides by their deviations of the noise, their mean square ratio is Σ_g |S v_g|²/k. For
independent errors, with L = S M^½, the covariance of S v_g and S v_h is

    C_gh = δ_gh D_g − Z_g Z_hᵀ,   D_g = L B_g (1 − B_g)⁻¹ Lᵀ,   Z_g = L B_g (1 − B_g)^(−½),

so the mean square is distributed nearly as χ² with (tr C)²/|C|² degrees of freedom (Satterthwaite 1946), fewer than
motions times parameters, since parameters depend on one another. Where it is smaller than chance makes it in one of
twenty recordings, deviations are multiplied with its root and have no more than its degrees of freedom.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.errors import needed
from linkwise.identify.estimation.motions import motions
from linkwise.identify.estimation.regression import Regression
from linkwise.solve import linear
from linkwise.solve.linear import product

ALL = 0.999  # share of what is known about a direction, that one motion may have
ENOUGH = 5  # motions from which their differences are a measure
LEAST = 0.3  # smallest factor
RESOLVED = 1e-12  # of the largest eigenvalue: directions with less have no information
SURE = 0.95  # confidence that deviations of the noise are too large, from which they are narrowed


def rescaled(
    covariance: np.ndarray, freedom: np.ndarray, regression: Regression, weights: np.ndarray, x: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The covariance of noise and its degrees of freedom, larger by as much as motions differ in what they ask for, or
    smaller where they prove it."""
    found = clusters(regression, weights, x)
    if found is None or len(found.shares) < ENOUGH:
        return covariance, freedom
    stats = needed("scipy.stats", "identify")
    noise = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    ratio = found.deviations / noise
    kinds = np.array([kind_of(label) for label in regression.labels])
    factors, freedom = np.ones(len(x)), freedom.copy()
    for kind in set(kinds.tolist()):
        own = kinds == kind
        square, spare = float((ratio[own] ** 2).mean()), found.freedom(own, noise[own])
        if spare < np.inf and square * spare < stats.chi2.ppf(1.0 - SURE, spare):  # too little for chance
            factors[own] = max(LEAST, np.sqrt(square))
            freedom[own] = np.minimum(freedom[own], spare)
        else:
            factors[own] = max(1.0, float(np.median(ratio[own])))
    return covariance * np.outer(factors, factors), freedom


def kind_of(label: str) -> str:
    """Whether a parameter belongs to rotors, friction or links.

    Args:
        label: of the parameter.
    """
    name = label.rpartition(".")[2]
    if name == "rotor_inertia":
        return "rotors"
    return "friction" if "friction" in name or name == "torque_offset" else "links"


@dataclass(frozen=True)
class Clusters:
    """What the motions of a recording say: standard deviations (p,), the matrix M^½ (p, p), and for every motion the
    eigenvalues (p,) and eigenvectors (p, p) of B_g, the share that it has in what is known.

    ``effect`` is the mean of their variances by those of independent samples, tr(M⁻¹ cov)/p: so many samples count like
    one (the design effect of Rao and Scott 1981)."""

    deviations: np.ndarray
    half: np.ndarray
    shares: list[tuple[np.ndarray, np.ndarray]]
    effect: float = 1.0

    def freedom(self, own: np.ndarray, noise: np.ndarray) -> float:
        """Degrees of freedom of the mean square of deviations by noise.

        Args:
            own: which parameters, (p,) of bool.
            noise: their deviations, by which those of the motions are divided.
        """
        L = self.half[own] / noise[:, None]
        L = L / max(
            float(np.abs(L).max()), 1e-300
        )  # the result does not depend on its size, which may be huge
        size, together = 0.0, np.zeros(self.half.shape)
        for share, axes in self.shares:
            turned = product(L, axes)
            D = product(turned * (share / (1.0 - share)), turned.T)
            Z = product(turned * (share / np.sqrt(1.0 - share)), axes.T)
            size += float((D**2).sum() - 2.0 * (D * product(Z, Z.T)).sum())
            together += product(Z.T, Z)
        spread = size + (together**2).sum()
        # no motion has a share in these parameters: their differences prove nothing
        return float((L**2).sum() ** 2 / spread) if spread > 0.0 else np.inf


def clusters(regression: Regression, weights: np.ndarray, x: np.ndarray) -> Clusters | None:
    """Of an estimate by weighted least squares; None where motions are not known."""
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
    variance, shares, effect = np.zeros(len(x)), [], 0.0
    for own, pull in parts:
        share, axes = linear.symmetric_eigen(product(product(root, own / np.outer(scale, scale)), root))
        share = np.clip(share, 0.0, ALL)
        given_back = product(axes / np.sqrt(1.0 - share), axes.T)
        pulled = product(given_back, product(root, pull / scale))
        variance += product(root, pulled) ** 2
        effect += linear.dot(pulled, pulled) / len(x)
        shares.append((share, axes))
    return Clusters(np.sqrt(variance) / scale, root / scale[:, None], shares, effect)
