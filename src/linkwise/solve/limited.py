"""Quadratic programmes of motor torques by an interior-point method with a fixed number of iterations.

    minimise ½ xᵀ P x + pᵀ x    with

        |x₁| ≤ h₁ … |x_a| ≤ h_a       boxes, kept
        C (R x) ≤ c                   facets of contact forces R x, three rows of R for a point, six for a wrench
        low ≤ V x ≤ high              bounds of accelerations
        E x = e                       equations

Boxes are kept whatever happens. Facets and bounds may be exceeded by z / STIFF, which is nothing where all can be
kept, so the programme always has a solution. Equations are met by the proximal method of multipliers (Rockafellar,
1976): a step solves E Δx + r = Δy / ρ, so y converges where e can be reached, and where it cannot, x converges to the
nearest e that can be, in the sense of least squares (Chiche and Gilbert, 2016).

Mehrotra's predictor and corrector (Nocedal and Wright, Numerical Optimization, algorithm 16.4). Every iteration has
the same operations. The inequalities take one division each: 1/(s z (s + z/STIFF)) gives all quotients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.language import dot, elementwise, empty, less, product, span, variable, zeros
from linkwise.scalar import maximum, minimum, summed, where
from linkwise.solve.factors import largest

RIGID = 1e3
"""ρ, in units of the mean diagonal entry of P."""
STIFF = 1e8
"""Weight of what facets and bounds are exceeded by, in the same units."""
SMALLEST = 1e-12
"""Of the diagonal of P that is added where the cost does not determine x."""
START = 1.0
"""Least slack at the start."""
PRODUCT = 0.01
"""Least s·z at the start."""
NEARLY = 0.995
"""Of the way to the boundary."""
CONTRADICTING = 1e-6
"""Of the size of a limit, from 1 on: limits that are exceeded by more in the end contradict each other."""
DONE = 1e-14
"""Mean of s∘z at which the iterates stay: further steps would divide by numbers near zero."""


@dataclass(frozen=True)
class Rows:
    """How many there are of what.

    Args:
        boxes: unknowns with a box, the first ones.
        others: unknowns after them.
        facets: C of every point, (facets, 3), or of every wrench, (facets, 6).
        bounds: rows of V.
        unlimited: boxes without a limit: the active-set method does not look at them.
        firm: None where boxes are kept whatever happens, |x| ≤ h, and bounds may be exceeded. Else so many of the first
            bounds are kept, and boxes, low ≤ x ≤ high, and other bounds may be exceeded: for ``active_set`` alone.
    """

    boxes: int
    others: int
    facets: tuple[np.ndarray, ...]
    bounds: int
    unlimited: tuple[int, ...] = ()
    firm: int | None = None

    @property
    def unknowns(self) -> int:
        return self.boxes + self.others

    @property
    def forces(self) -> int:
        """Rows of R."""
        return sum(C.shape[1] for C in self.facets)

    @property
    def hard(self) -> int:
        """Inequalities of boxes, which come first: upper, lower."""
        return 2 * self.boxes

    @property
    def moving(self) -> int:
        """Where the inequalities of V begin, after those of the facets: upper, lower."""
        return self.hard + sum(len(C) for C in self.facets)

    @property
    def count(self) -> int:
        """All inequalities."""
        return self.moving + 2 * self.bounds

    @property
    def movable(self) -> int:
        """Bounds, or boxes, that ``active_set`` may move."""
        return self.bounds if self.firm is None else self.boxes

    def each_facet(self) -> list[tuple[int, int, Sequence[float]]]:
        """(number of the inequality, first row of R, coefficients) of every facet."""
        found: list[tuple[int, int, Sequence[float]]] = []
        first = 0
        for C in self.facets:
            found += [(self.hard + len(found) + k, first, row) for k, row in enumerate(C.tolist())]
            first += C.shape[1]
        return found

    def each_force(self) -> list[list[tuple[int, float]]]:
        """For every row of R the facets that it is part of: (place among the facets, coefficient)."""
        found: list[list[tuple[int, float]]] = [[] for _ in range(self.forces)]
        for place, (_, first, row) in enumerate(self.each_facet()):
            for a, c in enumerate(row):
                if c:
                    found[first + a].append((place, c))
        return found


class Programme:
    """One programme and the arrays of its iterations.

    Args:
        rows: their numbers.
        P, p: cost, (N, N) and (N,); P is overwritten.
        E, e: equations (k, N) and (k,); None: there are none.
        S: V and R one above the other, (bounds + 3·points, N); None: there are none.
        limits: right sides of all inequalities (count,), in the order of ``Rows``.
    """

    def __init__(self, rows: Rows, P: Any, p: Any, E: Any, e: Any, S: Any, limits: Any):
        self.rows, self.E, self.e, self.S, self.h = rows, E, e, S, limits
        N = rows.unknowns
        total = variable(0.0)
        for i in span(N):
            total += P[i, i]
        scale = unit_scale(N, total.value)
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
        self.base = P if E is None else self._base()
        self.U, self.inverse = empty(N, N), empty(N)

    # -- the matrices -------------------------------------------------------------------------------------------------

    def _base(self) -> Any:
        """P + ρ Eᵀ E, the part that does not change."""
        N, E = self.rows.unknowns, self.E
        K = empty(N, N)
        for i in span(N):
            for j in span(i, N, parallel=True):
                K[i, j] = self.P[i, j] + RIGID * dot(E[:, i], E[:, j])
        return K

    def times(self, x: Any) -> Any:
        """G x."""
        r, out = self.rows, empty(self.rows.count)
        for i in span(r.boxes):
            out[i] = x[i]
            out[r.boxes + i] = -x[i]
        if self.S is None:
            return out
        along = product(self.S, x)
        for i in span(r.bounds):
            out[r.moving + i] = along[i]
            out[r.moving + r.bounds + i] = -along[i]
        for number, first, row in r.each_facet():
            out[number] = summed(c * along[r.bounds + first + a] for a, c in enumerate(row) if c)
        return out

    def back(self, w: Any) -> Any:
        """Gᵀ w."""
        r, out = self.rows, zeros(self.rows.unknowns)
        for i in span(r.boxes):
            out[i] = w[i] - w[r.boxes + i]
        if self.S is None:
            return out
        both = empty(r.bounds + r.forces)
        for i in span(r.bounds):
            both[i] = w[r.moving + i] - w[r.moving + r.bounds + i]
        for k, own in enumerate(r.each_force()):
            both[r.bounds + k] = summed(c * w[r.hard + place] for place, c in own)
        for j in span(r.unknowns, parallel=True):
            out[j] = dot(self.S[:, j], both, out[j])
        return out

    def _assembled(self, D: Any) -> Any:
        """The upper half of the matrix with the weights of the inequalities."""
        r, N = self.rows, self.rows.unknowns
        K = empty(N, N)
        if self.S is None:
            for i in span(N):
                for j in span(i, N, parallel=True):
                    K[i, j] = self.base[i, j]
        else:
            scaled = self._weighted(D)
            for i in span(N):
                for j in span(i, N, parallel=True):
                    K[i, j] = dot(self.S[:, i], scaled[:, j], self.base[i, j])
        for i in span(r.boxes):
            K[i, i] = K[i, i] + (D[i] + D[r.boxes + i])
        return K

    def _weighted(self, D: Any) -> Any:
        """The weights times S: those of bounds are numbers, those of a force the small matrix Cᵀ D C."""
        r, N = self.rows, self.rows.unknowns
        scaled = empty(r.bounds + r.forces, N)
        for c in span(r.bounds):
            both = D[r.moving + c] + D[r.moving + r.bounds + c]
            for j in span(N, parallel=True):
                scaled[c, j] = both * self.S[c, j]
        first, number = r.bounds, r.hard
        for C in r.facets:
            own, block = range(C.shape[1]), C.tolist()
            for k in own:
                weights = [
                    summed(
                        (row[k] * row[a]) * D[number + f] for f, row in enumerate(block) if row[k] * row[a]
                    )
                    for a in own
                ]
                used = [
                    (a, w)
                    for a, w in zip(own, weights, strict=True)
                    if not (isinstance(w, float) and w == 0.0)
                ]
                for j in span(N, parallel=True):
                    scaled[first + k, j] = summed(w * self.S[first + a, j] for a, w in used)
            first, number = first + C.shape[1], number + len(C)
        return scaled

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

    def begin(self, z: Any) -> None:
        """Start from the minimum without inequalities, with multipliers such as those of the last sample.

        Slacks are at least ``START`` and products s·z at least ``PRODUCT``: a start on the boundary would make short
        steps.
        """
        right = elementwise(lambda p: -p, self.p)
        if self.E is not None:
            for j in span(self.rows.unknowns, parallel=True):
                right[j] = dot(self.E[:, j], self.e, right[j] * (1.0 / RIGID)) * RIGID
        self._factorise(self.base)
        self._solved(right)
        self.x[:] = self.dx
        along = self.times(self.x)
        for k in span(self.rows.count):
            self.s[k] = maximum(self.h[k] - along[k], START)
            self.z[k] = maximum(z[k], PRODUCT / self.s[k])

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

    def _quotients(self) -> tuple[Any, Any, Any]:
        """1/s, 1/z and 1/(s + z/STIFF); without the last term for boxes."""
        over_s, over_z, over_soft = (empty(self.rows.count) for _ in range(3))
        for k in span(self.rows.count):
            soft = self.s[k] + (1.0 / STIFF) * self.z[k]
            pair = self.s[k] * self.z[k]
            one = 1.0 / (pair * soft)
            over_s[k] = self.z[k] * soft * one
            over_z[k] = self.s[k] * soft * one
            over_soft[k] = pair * one
        for k in span(self.rows.hard):
            over_soft[k] = over_s[k]
        return over_s, over_z, over_soft

    def _direction(self, over_soft: Any, right: Any, unequal: Any, target: Any) -> None:
        """Δx, Δs, Δz. ``target``: what s∘z is to become, less what it is."""
        w = elementwise(lambda t, z, r, i: (t + z * r) * i, target, self.z, unequal, over_soft)
        self._solved(elementwise(lambda a, b: a - b, right, self.back(w)))
        along = self.times(self.dx)
        for k in span(self.rows.count):
            self.dz[k] = (self.z[k] * (along[k] + unequal[k]) + target[k]) * over_soft[k]
            self.ds[k] = -unequal[k] - along[k]
        for k in span(self.rows.hard, self.rows.count):
            self.ds[k] = self.ds[k] + (1.0 / STIFF) * self.dz[k]

    def _step(self) -> None:
        s, z, ds, dz, count = self.s, self.z, self.ds, self.dz, self.rows.count
        dual, equal, unequal = self.residuals()
        over_s, over_z, over_soft = self._quotients()
        self._factorise(self._assembled(elementwise(lambda z, i: z * i, z, over_soft)))
        right = elementwise(lambda r: -r, dual)
        if self.E is not None:
            for j in span(self.rows.unknowns, parallel=True):
                right[j] = right[j] - RIGID * dot(self.E[:, j], equal)
        gap = dot(s, z) * (1.0 / count)
        self._direction(over_soft, right, unequal, elementwise(lambda s, z: -s * z, s, z))
        near = self._longest(over_s, over_z)
        mean = variable(0.0)
        for k in span(count):
            mean += (s[k] + near * ds[k]) * (z[k] + near * dz[k])
        mean = mean.value * (1.0 / count)
        ratio = mean / gap
        centre = ratio * ratio * mean
        target = elementwise(lambda s, z, a, b, c=centre: c - s * z - a * b, s, z, ds, dz)
        self._direction(over_soft, right, unequal, target)
        length = where(gap > DONE, NEARLY * self._longest(over_s, over_z), 0.0)
        if self.E is not None:
            along = product(self.E, self.dx)
            for k in span(self.y.shape[0]):
                self.y[k] = self.y[k] + length * (RIGID * (along[k] + equal[k]))
        for i in span(self.rows.unknowns):
            self.x[i] = self.x[i] + length * self.dx[i]
        for k in span(count):
            s[k] = s[k] + length * ds[k]
            z[k] = z[k] + length * dz[k]

    def _longest(self, over_s: Any, over_z: Any) -> Any:
        """The largest step up to 1 after which no s and no z is negative: 1 over the largest −Δ/value from 1 on."""
        most = variable(1.0)
        for k in span(self.rows.count):
            most.value = maximum(most.value, maximum(-self.ds[k] * over_s[k], -self.dz[k] * over_z[k]))
        return 1.0 / most.value

    def worst(self) -> Any:
        """The largest violation of the optimality conditions, those of the equations apart: of stationarity, in units
        of the mean diagonal of P, of inequalities and of s∘z."""
        dual, _, unequal = self.residuals()
        parts = [largest(dual), largest(unequal)]
        parts.append(largest(elementwise(lambda s, z: s * z, self.s, self.z)))
        most = parts[0]
        for part in parts[1:]:
            most = maximum(most, part)
        return most

    def slope(self, x: Any) -> tuple[Any, Any]:
        """(f, its gradient (N,)) of half the sum of squares f of what facets and bounds are exceeded by,
        beyond what ``CONTRADICTING`` does not count.

        Args:
            x: the unknowns.
        """
        r, found, total = self.rows, zeros(self.rows.unknowns), variable(0.0)
        parts = zeros(max(1, r.bounds + r.forces))

        def beyond(value: Any, limit: Any) -> Any:
            over = maximum(value - limit - CONTRADICTING * (1.0 + abs(limit)), 0.0)
            total.value = total.value + 0.5 * over * over
            return over

        along = [dot(self.S[k, :], x) for k in range(r.bounds + r.forces)]
        for k in range(r.bounds):
            upper, lower = (beyond(sign * along[k], self.h[at + k]) for sign, at in self._sides())
            parts[k] = upper - lower
        for number, first, row in r.each_facet():
            pairs = [(r.bounds + first + a, c) for a, c in enumerate(row) if c]
            value = beyond(
                sum((c * along[k] for k, c in pairs[1:]), start=pairs[0][1] * along[pairs[0][0]]),
                self.h[number],
            )
            for k, c in pairs:
                parts[k] = parts[k] + c * value
        for j in range(r.unknowns if along else 0):
            found[j] = dot(self.S[:, j], parts)
        return total.value, found

    def _sides(self) -> tuple[tuple[float, int], tuple[float, int]]:
        """(sign, where the inequalities begin) of upper and lower bounds."""
        return (1.0, self.rows.moving), (-1.0, self.rows.moving + self.rows.bounds)

    def active(self) -> Any:
        """1 for inequalities that are active, (count,)."""
        return elementwise(lambda s, z: where(z > s, 1.0, 0.0), self.s, self.z)


def unit_scale(count: int, total: Any) -> Any:
    """What brings the mean of ``count`` diagonal entries with the sum ``total`` to one; 1 for a cost that no unknown
    changes, such as that of a frame that no motor moves. NaN stays NaN."""
    return where(total <= 0.0, 1.0, count / where(total <= 0.0, 1.0, total))


def within(value: Any, low: Any, high: Any) -> Any:
    """The nearest number between two bounds."""
    return minimum(maximum(value, low), high)
