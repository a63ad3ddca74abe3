"""Quadratic programmes of motor torques and contact forces by an interior-point method with a fixed number of iterations.

    minimise ½ xᵀ P x + pᵀ x    with

        lower ≤ x₁ … x_a ≤ upper            boxes, kept
        C f ≤ c for every three of x after  cones of contact forces, kept
        E x = e                             equations, as far as boxes and cones allow
        low ≤ V x ≤ high                    rows that give way where they contradict what is above

Mehrotra's predictor and corrector (Nocedal and Wright, Numerical Optimization, algorithm 16.4). Equations are met by the
proximal method of multipliers (Rockafellar, 1976): a step solves E Δx + r = Δy / ρ, so y converges where e can be reached,
and where it cannot, x converges to the nearest e that can be, in the sense of least squares (Chiche and Gilbert, 2016).
Rows of V may be exceeded by z / STIFF. Boxes and cones have a common interior, so the programme always has a solution.

Only boxes, cones and V change the matrix from one iteration to the next. Every iteration has the same operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from linkwise.language import dot, elementwise, empty, less, product, span, variable, zeros
from linkwise.scalar import maximum, minimum, where
from linkwise.solve.factors import largest

RIGID = 1e3
"""ρ, in units of the mean diagonal entry of P."""
STIFF = 1e8
"""Weight of what rows of V are exceeded by, in the same units."""
SMALLEST = 1e-9
"""Of the diagonal of P that is added where the cost does not determine x."""
NEARLY = 0.995
"""Of the way to the boundary."""
DONE = 1e-11
"""Mean of s∘z at which the iterates stay: further steps would divide by numbers near zero."""


@dataclass(frozen=True)
class Rows:
    """How many there are of what: boxes (a), cones with their facets, rows of V."""

    boxes: int
    cones: int
    facets: int
    soft: int

    @property
    def unknowns(self) -> int:
        return self.boxes + 3 * self.cones

    @property
    def hard(self) -> int:
        """Inequalities of boxes and cones, which come first: upper, lower, facets."""
        return 2 * self.boxes + self.cones * self.facets

    @property
    def count(self) -> int:
        """All inequalities; upper and lower ones of V are the last."""
        return self.hard + 2 * self.soft


class Programme:
    """One programme and the arrays of its iterations.

    Args:
        rows: their numbers.
        P, p: cost, (N, N) and (N,).
        E, e: equations (k, N) and (k,); None: there are none.
        facets: C, (cones·facets, 3).
        V: (soft, N) or None.
        limits: right sides of all inequalities (count,), in the order of ``Rows``.
    """

    def __init__(self, rows: Rows, P: Any, p: Any, E: Any, e: Any, facets: Any, V: Any, limits: Any):
        self.rows, self.E, self.e, self.facets, self.V, self.h = rows, E, e, facets, V, limits
        N = rows.unknowns
        total = variable(0.0)
        for i in span(N):
            total += P[i, i]
        scale = N / total.value
        self.P, self.p = P, empty(N)
        for i in span(N):
            self.p[i] = p[i] * scale
            for j in span(N, parallel=True):
                P[i, j] = P[i, j] * scale
        for i in span(N):
            P[i, i] = P[i, i] + SMALLEST
        self.x, self.y = zeros(N), zeros(1 if E is None else E.shape[0])
        self.s, self.z = empty(rows.count), empty(rows.count)
        self.dx, self.ds, self.dz = empty(N), empty(rows.count), empty(rows.count)
        self.base = self._base()
        self.U, self.inverse = empty(N, N), empty(N)

    # -- the matrices -------------------------------------------------------------------------------------------------

    def _base(self) -> Any:
        """P + ρ Eᵀ E, the part that does not change."""
        N, E = self.rows.unknowns, self.E
        K = empty(N, N)
        for i in span(N):
            for j in span(i, N, parallel=True):
                K[i, j] = self.P[i, j] if E is None else self.P[i, j] + RIGID * dot(E[:, i], E[:, j])
        return K

    def times(self, x: Any) -> Any:
        """G x."""
        r, out = self.rows, empty(self.rows.count)
        for i in span(r.boxes):
            out[i] = x[i]
            out[r.boxes + i] = -x[i]
        for k in span(r.cones):
            for f in span(r.facets):
                at = k * r.facets + f
                first = r.boxes + 3 * k
                out[2 * r.boxes + at] = (
                    self.facets[at, 0] * x[first]
                    + self.facets[at, 1] * x[first + 1]
                    + self.facets[at, 2] * x[first + 2]
                )
        for i in span(r.soft, parallel=True):
            along = dot(self.V[i, :], x)
            out[r.hard + i] = along
            out[r.hard + r.soft + i] = -along
        return out

    def back(self, w: Any) -> Any:
        """Gᵀ w."""
        r, out = self.rows, empty(self.rows.unknowns)
        for i in span(r.boxes):
            out[i] = w[i] - w[r.boxes + i]
        for k in span(r.cones):
            for a in span(3):
                total = variable(0.0)
                for f in span(r.facets):
                    total += self.facets[k * r.facets + f, a] * w[2 * r.boxes + k * r.facets + f]
                out[r.boxes + 3 * k + a] = total.value
        if r.soft:
            both = empty(r.soft)
            for i in span(r.soft):
                both[i] = w[r.hard + i] - w[r.hard + r.soft + i]
            for j in span(r.unknowns, parallel=True):
                out[j] = dot(self.V[:, j], both, out[j])
        return out

    def _assembled(self, D: Any) -> Any:
        """The upper half of the matrix with the weights of the inequalities."""
        r, N = self.rows, self.rows.unknowns
        K = empty(N, N)
        if r.soft:
            scaled = empty(r.soft, N)
            for c in span(r.soft):
                both = D[r.hard + c] + D[r.hard + r.soft + c]
                for j in span(N, parallel=True):
                    scaled[c, j] = both * self.V[c, j]
            for i in span(N):
                for j in span(i, N, parallel=True):
                    K[i, j] = dot(self.V[:, i], scaled[:, j], self.base[i, j])
        else:
            for i in span(N):
                for j in span(i, N, parallel=True):
                    K[i, j] = self.base[i, j]
        for i in span(r.boxes):
            K[i, i] = K[i, i] + (D[i] + D[r.boxes + i])
        for k in span(r.cones):
            for a in range(3):
                for b in range(a, 3):
                    total = variable(K[r.boxes + 3 * k + a, r.boxes + 3 * k + b])
                    for f in span(r.facets):
                        at = k * r.facets + f
                        total += self.facets[at, a] * D[2 * r.boxes + at] * self.facets[at, b]
                    K[r.boxes + 3 * k + a, r.boxes + 3 * k + b] = total.value
        return K

    def _factorise(self, K: Any) -> None:
        """K = Uᵀ D U with ones on the diagonal of U, row by row: what a row of U needs is in the rows above it."""
        N, raw = self.rows.unknowns, empty(self.rows.unknowns, self.rows.unknowns)
        for i in span(N):
            for j in span(i, N, parallel=True):
                raw[i, j] = less(K[i, j], self.U[:i, i], raw[:i, j])
            self.inverse[i] = 1.0 / raw[i, i]
            for j in span(i + 1, N, parallel=True):
                self.U[i, j] = raw[i, j] * self.inverse[i]

    def _solved(self, b: Any) -> None:
        """K Δx = b; b is overwritten."""
        N = self.rows.unknowns
        for i in span(N):
            for j in span(i + 1, N, parallel=True):
                b[j] = b[j] - self.U[i, j] * b[i]
        for i in span(N):
            b[i] = b[i] * self.inverse[i]
        for i in span(N - 1, -1, -1):
            self.dx[i] = less(b[i], self.U[i, i + 1 :], self.dx[i + 1 :])

    # -- the iterations -----------------------------------------------------------------------------------------------

    def begin(self, x: Any, z: Any) -> None:
        """Start from these unknowns and multipliers of the inequalities, such as those of the last sample.

        Slacks are at least 1 unit, and so are products s·z: a start on the boundary would make short steps.
        """
        self.x[:] = x
        along = self.times(self.x)
        for k in span(self.rows.count):
            self.s[k] = maximum(self.h[k] - along[k], 1.0)
            self.z[k] = maximum(z[k], 0.1 / self.s[k])

    def iterate(self, iterations: int) -> None:
        """So many steps of predictor and corrector."""
        for _ in span(iterations):
            self._step()

    def residuals(self) -> tuple[Any, Any, Any]:
        """(P x + p + Eᵀ y + Gᵀ z, E x − e, G x − z/STIFF + s − h)."""
        dual = elementwise(lambda a, b, c: a + b + c, product(self.P, self.x), self.p, self.back(self.z))
        equal = None
        if self.E is not None:
            for j in span(self.rows.unknowns, parallel=True):
                dual[j] = dot(self.E[:, j], self.y, dual[j])
            equal = elementwise(lambda a, b: a - b, product(self.E, self.x), self.e)
        along = self.times(self.x)
        unequal = elementwise(lambda g, s, h: g + s - h, along, self.s, self.h)
        for k in span(self.rows.hard, self.rows.count):
            unequal[k] = unequal[k] - (1.0 / STIFF) * self.z[k]
        return dual, equal, unequal

    def _softened(self) -> Any:
        """s + z/STIFF for rows that give way, s for others."""
        out = empty(self.rows.count)
        for k in span(self.rows.hard):
            out[k] = self.s[k]
        for k in span(self.rows.hard, self.rows.count):
            out[k] = self.s[k] + (1.0 / STIFF) * self.z[k]
        return out

    def _direction(self, inverse: Any, right: Any, unequal: Any, target: Any) -> None:
        """Δx, Δs, Δz. ``target``: what s∘z is to become, less what it is."""
        w = elementwise(lambda t, z, r, i: (t + z * r) * i, target, self.z, unequal, inverse)
        self._solved(elementwise(lambda a, b: a - b, right, self.back(w)))
        along = self.times(self.dx)
        for k in span(self.rows.count):
            self.dz[k] = (self.z[k] * (along[k] + unequal[k]) + target[k]) * inverse[k]
            self.ds[k] = -unequal[k] - along[k]
        for k in span(self.rows.hard, self.rows.count):
            self.ds[k] = self.ds[k] + (1.0 / STIFF) * self.dz[k]

    def _step(self) -> None:
        s, z, ds, dz, count = self.s, self.z, self.ds, self.dz, self.rows.count
        dual, equal, unequal = self.residuals()
        softened = self._softened()
        inverse = elementwise(lambda s: 1.0 / s, softened)
        self._factorise(self._assembled(elementwise(lambda z, i: z * i, z, inverse)))
        right = elementwise(lambda r: -r, dual)
        if self.E is not None:
            for j in span(self.rows.unknowns, parallel=True):
                right[j] = right[j] - RIGID * dot(self.E[:, j], equal)
        gap = dot(s, z) / count
        self._direction(inverse, right, unequal, elementwise(lambda s, z: -s * z, s, z))
        near = self._longest()
        mean = variable(0.0)
        for k in span(count):
            mean += (s[k] + near * ds[k]) * (z[k] + near * dz[k])
        mean = mean.value / count
        ratio = mean / gap
        centre = ratio * ratio * mean
        target = elementwise(lambda s, z, a, b, c=centre: c - s * z - a * b, s, z, ds, dz)
        self._direction(inverse, right, unequal, target)
        length = where(gap > DONE, NEARLY * self._longest(), 0.0)
        if self.E is not None:
            along = product(self.E, self.dx)
            for k in span(self.y.shape[0]):
                self.y[k] = self.y[k] + length * (RIGID * (along[k] + equal[k]))
        for i in span(self.rows.unknowns):
            self.x[i] = self.x[i] + length * self.dx[i]
        for k in span(count):
            s[k] = s[k] + length * ds[k]
            z[k] = z[k] + length * dz[k]

    def _longest(self) -> Any:
        """The largest step up to 1 after which no s and no z is negative: 1 over the largest −Δ/value from 1 on."""
        most = variable(1.0)
        for k in span(self.rows.count):
            most.value = maximum(most.value, maximum(-self.ds[k] / self.s[k], -self.dz[k] / self.z[k]))
        return 1.0 / most.value

    def worst(self) -> Any:
        """The largest violation of the optimality conditions, those of the equations apart: [stationarity in units of the
        mean diagonal of P, inequalities, s∘z]."""
        dual, _, unequal = self.residuals()
        parts = [largest(dual), largest(unequal)]
        parts.append(largest(elementwise(lambda s, z: s * z, self.s, self.z)))
        most = parts[0]
        for part in parts[1:]:
            most = maximum(most, part)
        return most


def within(value: Any, low: Any, high: Any) -> Any:
    """The nearest number between two bounds."""
    return minimum(maximum(value, low), high)
