"""Small quadratic programmes by an interior-point method with a fixed number of iterations.

    minimise ½ xᵀ P x + qᵀ x   with   A x = b,   G x ≤ h

Mehrotra's predictor and corrector (Nocedal and Wright, Numerical Optimization, algorithm 16.4) on the augmented system

    P + Gᵀ W G    Aᵀ     Δx
        A        −δ I    Δy      with  W = z / s,

which is quasidefinite and has factors without pivoting. Every turn has the same operations.
"""

from __future__ import annotations

from typing import Any

from linkwise.language import dot, elementwise, empty, product, span, variable, zeros
from linkwise.scalar import minimum, where
from linkwise.solve.factors import largest, ldl, scaled, solve

SMALLEST = 1e-13  # in place of the zero block, so that dependent equations are allowed
NEARLY = 0.995  # of the way to the boundary
DONE = 1e-13  # mean of s∘z at which the iterates stay: further steps would divide by numbers near zero


def interior_point(P: Any, q: Any, A: Any, b: Any, G: Any, h: Any, iterations: int = 20) -> tuple[Any, ...]:
    """(x, y, z, residual): the minimum, multipliers of the equations (m,) and of the inequalities (k,) ≥ 0, and the
    largest violation of the optimality conditions."""
    n, m, k = q.shape[0], b.shape[0], h.shape[0]
    x, y, s, z = zeros(n), zeros(m), zeros(k) + 1.0, zeros(k) + 1.0
    K, right = zeros(n + m, n + m), empty(n + m)
    K[n:, :n] = A
    for i in span(m):
        K[n + i, n + i] = -SMALLEST

    def residuals() -> tuple[Any, Any, Any]:
        return product(P, x) + q + product(G.T, z) + product(A.T, y), product(A, x) - b, product(G, x) + s - h

    def direction(factors: Any, dual: Any, equal: Any, unequal: Any, target: Any) -> tuple[Any, ...]:
        """Changes of x, y, s and z. ``target``: what s∘z is to become, less what it is."""
        w = elementwise(lambda t, r, s, z: (t + z * r) / s, target, unequal, s, z)
        right[:n] = elementwise(lambda r, g: -r - g, dual, product(G.T, w))
        right[n:] = -equal
        step = solve(factors[0], factors[1], right)
        ds = elementwise(lambda r, g: -r - g, unequal, product(G, step[:n]))
        return step[:n], step[n:], ds, elementwise(lambda t, s, z, d: (t - z * d) / s, target, s, z, ds)

    for _ in span(iterations):
        found, weighted = residuals(), scaled(elementwise(lambda z, s: z / s, z, s), G)
        for i in span(n):
            for j in span(i + 1):
                K[i, j] = dot(weighted[:, i], G[:, j], P[i, j])
        factors = ldl(K)
        gap = dot(s, z) / k
        _, _, ds, dz = direction(factors, *found, elementwise(lambda s, z: -s * z, s, z))
        near = longest(s, ds, z, dz)
        mean = dot(s + near * ds, z + near * dz) / k
        centre = (mean / gap) * (mean / gap) * mean
        target = elementwise(lambda s, z, a, b, c: c - s * z - a * b, s, z, ds, dz, centre)
        changes = direction(factors, *found, target)
        length = NEARLY * longest(s, changes[2], z, changes[3])
        for vector, change in zip((x, y, s, z), changes, strict=True):
            for i in span(vector.shape[0]):
                vector[i] = where(gap > DONE, vector[i] + length * change[i], vector[i])
    worst = variable(0.0)
    for part in (*residuals(), elementwise(lambda s, z: s * z, s, z)):
        size = largest(part)
        worst.value = where(size > worst.value, size, worst.value)
    return x, y, z, worst.value


def longest(s: Any, ds: Any, z: Any, dz: Any) -> Any:
    """The largest step up to 1 after which no entry is negative."""
    length = variable(1.0)
    for i in span(s.shape[0]):
        for value, change in ((s[i], ds[i]), (z[i], dz[i])):
            shrinks = change < 0.0
            length.value = minimum(length.value, where(shrinks, value / where(shrinks, -change, 1.0), 1.0))
    return length.value
