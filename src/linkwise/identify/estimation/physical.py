"""Physically consistent parameters: pseudo-inertias positive definite, by semidefinite programming.

A body is possible exactly if its pseudo-inertia P = [[Σ, h], [hᵀ, m]], Σ = ∫ x xᵀ dm, is positive semidefinite
(Wensing, Kim and Slotine 2018). The weighted sum of squared residuals is minimised under that, plus γ times the
distance to a prior in the sense of entropy, tr(P₀⁻¹P) − log det(P₀⁻¹P) − 4: a Bregman divergence that does not depend
on units or frames (Lee, Wensing and Park 2020) and decides what torques do not determine. Written in coordinates in
which P₀ is the unit matrix, the problem is well scaled, and goes to the conic solver Clarabel as it is. Where that
stalls (residuals of almost nothing make the objective steep), Newton's method with a barrier takes over: see
``interior``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.core.products import times
from linkwise.errors import needed
from linkwise.identify.errors import IdentificationError
from linkwise.identify.estimation.interior import Interior
from linkwise.identify.estimation.prior import pseudo_inertias
from linkwise.identify.estimation.regression import Regression
from linkwise.solve import linear
from linkwise.solve.linear import product

STRENGTH = (
    1.0  # γ: the prior counts like one sample of each link, residuals measured in their standard deviations
)
LEAST = 1e-3  # γ of Newton's method, which needs some prior where torques decide nothing
MARGIN = 1e-6  # smallest eigenvalue of P₀^(−½) P P₀^(−½): strictly possible, not just so
TRIANGLE = [(i, j) for j in range(4) for i in range(j + 1)]  # upper triangle by columns, as Clarabel requires


@dataclass(frozen=True)
class PhysicalFit:
    """Parameters of all columns of a regression, links possible; ``divergence`` (n,) from the prior, per link."""

    x: np.ndarray
    divergence: np.ndarray
    status: str


def physical(
    regression: Regression,
    weights: np.ndarray,
    prior: np.ndarray,
    *,
    strength: float = STRENGTH,
    nonnegative: Sequence[int] = (),
    small: Mapping[int, float] | None = None,
) -> PhysicalFit:
    """Parameters (p,) of a regression with ten columns per link first, none left out.

    Args:
        regression: ten columns per link first, none left out.
        weights: of the joints, shape (n,).
        prior: positive definite bodies, shape (n, 10).
        strength: γ; zero leaves what torques do not decide to the solver.
        nonnegative: columns whose parameters must not be negative.
        small: columns whose parameters are zero as far as is known, and how large they may be.
    """
    gram, right = regression.gram(weights)
    for k, size in (small or {}).items():
        gram[k, k] += strength / size**2
    return physical_from_gram(gram, right, prior, strength=strength, nonnegative=nonnegative)


def physical_from_gram(
    gram: np.ndarray,
    right: np.ndarray,
    prior: np.ndarray,
    *,
    strength: float = STRENGTH,
    nonnegative: Sequence[int] = (),
) -> PhysicalFit:
    """The same from WᵀW (p, p) and Wᵀy (p,)."""
    links, p = len(prior), len(right)
    T = coordinates(gram, prior)
    quadratic, slope = product(product(T.T, gram), T), -product(T.T, right)
    problem = _Problem(quadratic, slope, links)
    for k in range(links):
        problem.possible(k)
        if strength > 0:
            problem.near_prior(k, strength)
    problem.nonnegative(nonnegative)
    v, status = problem.solve()
    x = product(T, v[:p])
    if status != "Solved" or not np.isfinite(divergence(x[: 10 * links].reshape(links, 10), prior)).all():
        gamma = max(strength, LEAST)
        try:
            x = product(T, Interior(quadratic, slope, _units(), links, gamma, MARGIN, nonnegative).solve())
        except np.linalg.LinAlgError as error:
            raise IdentificationError(
                f"possible links: no solution, the conic solver stopped with {status} and Newton's method with "
                f"{str(error).lower()}; the torques ask for links that are far from possible ones"
            ) from None
        status = f"Newton's method, after the conic solver stopped with {status}"
    return PhysicalFit(x, divergence(x[: 10 * links].reshape(links, 10), prior), status)


def divergence(bodies: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """tr(P₀⁻¹P) − log det(P₀⁻¹P) − 4 of each link, shape (n,); bodies and prior (n, 10)."""
    units = pseudo_inertias()
    P, P0 = (product(x, units.reshape(10, 16)).reshape(-1, 4, 4) for x in (bodies, prior))
    ratio = np.linalg.solve(P0, P)
    sign, logarithm = np.linalg.slogdet(ratio)
    return np.where(sign > 0, np.trace(ratio, axis1=1, axis2=2) - logarithm - 4.0, np.inf)


def coordinates(gram: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """x = T v: for each link v is the triangle of L⁻¹ P L⁻ᵀ with P₀ = L Lᵀ; others are scaled by their columns.

    Args:
        gram: WᵀW, shape (p, p).
        prior: positive definite bodies, shape (n, 10).
    """
    size = np.sqrt(np.maximum(np.diag(gram), 0.0))
    T = np.diag(1.0 / np.where(size > 0, size, 1.0))
    units = pseudo_inertias()
    flat = np.stack([units[:, i, j] for i, j in TRIANGLE])  # P's triangle from ten parameters
    parameters = linear.inverse(flat)
    for k, body in enumerate(prior):
        L = linear.cholesky(product(body, units.reshape(10, 16)).reshape(4, 4))
        columns = []
        for E in _units():
            P = times(times(L, E), L.T)
            columns.append(product(parameters, np.array([P[a, b] for a, b in TRIANGLE])))
        T[10 * k : 10 * k + 10, 10 * k : 10 * k + 10] = np.array(columns).T
    return T


def _units() -> np.ndarray:
    """Symmetric matrices of unit length, one for each entry of the triangle, shape (10, 4, 4)."""
    units = np.zeros((10, 4, 4))
    for E, (i, j) in zip(units, TRIANGLE, strict=True):
        E[i, j] = E[j, i] = 1.0 if i == j else np.sqrt(0.5)
    return units


class _Problem:
    """min ½ vᵀ Q v + cᵀ v over cones; every cone is a block of rows s = h − G v."""

    def __init__(self, Q: np.ndarray, c: np.ndarray, links: int):
        self.sparse = needed("scipy.sparse", "identify")
        self.clarabel = needed("clarabel", "identify")
        self.p, self.links = len(c), links
        self.extra = 14  # per link with a prior: a lower triangle (10) and four logarithms
        self.Q, self.c = Q, np.concatenate([c, np.zeros(self.extra * links)])
        self.G: list = []
        self.h: list[np.ndarray] = []
        self.cones: list = []
        self.used = False

    def possible(self, k: int) -> None:
        """P' − MARGIN·1 of link k is positive semidefinite."""
        rows = [(r, 10 * k + r, -1.0) for r in range(10)]
        self._add(
            rows,
            np.array([-MARGIN if i == j else 0.0 for i, j in TRIANGLE]),
            self.clarabel.PSDTriangleConeT(4),
        )

    def near_prior(self, k: int, strength: float) -> None:
        """Adds strength × (tr P' − log det P'), the logarithm by [[P', Z], [Zᵀ, diag Z]] ⪰ 0 and t_i ≤ log Z_ii."""
        self.used = True
        first = self.p + self.extra * k
        place = {ij: first + n for n, ij in enumerate((i, j) for j in range(4) for i in range(j, 4))}
        for r, (i, j) in enumerate(TRIANGLE):
            if i == j:
                self.c[10 * k + r] += strength
        self.c[first + 10 : first + 14] -= strength
        rows, root = [], np.sqrt(2.0)
        triangle = [(i, j) for j in range(8) for i in range(j + 1)]
        for r, (i, j) in enumerate(triangle):
            if j < 4:
                rows.append((r, 10 * k + TRIANGLE.index((i, j)), -1.0))
            elif i < 4 and i >= j - 4:
                rows.append((r, place[i, j - 4], -root))
            elif i == j:
                rows.append((r, place[i - 4, i - 4], -1.0))
        self._add(rows, np.zeros(len(triangle)), self.clarabel.PSDTriangleConeT(8))
        for i in range(4):
            entries = [(0, first + 10 + i, -1.0), (2, place[i, i], -1.0)]
            self._add(entries, np.array([0.0, 1.0, 0.0]), self.clarabel.ExponentialConeT())

    def nonnegative(self, columns: Sequence[int]) -> None:
        if len(columns):
            rows = [(r, int(k), -1.0) for r, k in enumerate(columns)]
            self._add(rows, np.zeros(len(columns)), self.clarabel.NonnegativeConeT(len(columns)))

    def solve(self) -> tuple[np.ndarray, str]:
        size = self.p + (self.extra * self.links if self.used else 0)
        settings = self.clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1  # ten milliseconds of work: threads would cost more than they save
        Q = self.sparse.block_diag([self.Q, self.sparse.csc_matrix((size - self.p, size - self.p))])
        G = self.sparse.vstack([block[:, :size] for block in self.G])
        solver = self.clarabel.DefaultSolver(
            self.sparse.triu(Q).tocsc(),
            self.c[:size],
            G.tocsc(),
            np.concatenate(self.h),
            self.cones,
            settings,
        )
        found = solver.solve()
        return np.array(found.x), str(found.status)

    def _add(self, entries: list[tuple[int, int, float]], h: np.ndarray, cone) -> None:
        rows, columns, values = zip(*entries, strict=True)
        shape = (len(h), self.p + self.extra * self.links)
        self.G.append(self.sparse.csc_matrix((values, (rows, columns)), shape=shape))
        self.h.append(h)
        self.cones.append(cone)
