"""Small quadratic programmes by an interior-point method with a fixed number of iterations.

    minimise ½ xᵀ P x + qᵀ x   with   A x = b,   G x ≤ h

Mehrotra's predictor and corrector (Nocedal and Wright, Numerical Optimization, algorithm 16.4) on the augmented system

    P + Gᵀ W G    Aᵀ     Δx
        A        −δ I    Δy      with  W = z / s,

which is quasidefinite and has factors without pivoting. Every turn has the same operations; the residual says how far
it came.
"""

from __future__ import annotations

from typing import Any

from linkwise.language import dot, elementwise, empty, product, span, variable, zeros
from linkwise.scalar import minimum, where
from linkwise.solve.factors import largest, ldl, solve

SMALLEST = 1e-13  # in place of the zero block, so that dependent equations are allowed
NEARLY = 0.995  # of the way to the boundary
DONE = 1e-13  # mean of s∘z at which the iterates stay: further steps would divide by numbers near zero


def interior_point(
    P: Any, q: Any, A: Any, b: Any, G: Any, h: Any, iterations: int = 20
) -> tuple[Any, Any, Any, Any]:
    """(x, y, z, residual): the minimum, multipliers of the equations (m,) and of the inequalities (k,) ≥ 0, and the
    largest violation of the optimality conditions."""
    n, m, k = q.shape[0], b.shape[0], h.shape[0]
    x, y, s, z = zeros(n), zeros(m), empty(k), empty(k)
    s[:], z[:] = 1.0, 1.0
    dx, dy = empty(n), empty(m)
    K, right = empty(n + m, n + m), empty(n + m)

    def residuals() -> tuple[Any, Any, Any]:
        stationary = product(P, x) + q + product(G.T, z) + (product(A.T, y) if m else 0.0)
        return stationary, product(A, x) - b if m else None, product(G, x) + s - h

    def direction(factors: Any, dual: Any, equal: Any, unequal: Any, target: Any) -> tuple[Any, Any]:
        """Δs and Δz; Δx and Δy are left in their arrays. ``target``: what s∘z is to become, less what it is."""
        w = elementwise(lambda t, r, s, z: (t + z * r) / s, target, unequal, s, z)
        right[:n] = elementwise(lambda r, g: -r - g, dual, product(G.T, w))
        if m:
            right[n:] = -equal
        step = solve(factors[0], factors[1], right)
        dx[:] = step[:n]
        if m:
            dy[:] = step[n:]
        ds = elementwise(lambda r, g: -r - g, unequal, product(G, dx))
        return ds, elementwise(lambda t, s, z, d: (t - z * d) / s, target, s, z, ds)

    for _ in span(iterations):
        dual, equal, unequal = residuals()
        weights = elementwise(lambda z, s: z / s, z, s)
        assemble(K, P, A, G, weights)
        factors = ldl(K)
        gap = dot(s, z) / k
        ds, dz = direction(factors, dual, equal, unequal, elementwise(lambda s, z: -s * z, s, z))
        near = longest(s, ds, z, dz)
        mean = dot(s + near * ds, z + near * dz) / k
        centre = (mean / gap) * (mean / gap) * mean
        ds, dz = direction(
            factors, dual, equal, unequal,
            elementwise(lambda s, z, a, b, c=centre: c - s * z - a * b, s, z, ds, dz),
        )  # fmt: skip
        length = NEARLY * longest(s, ds, z, dz)
        for vector, change in ((x, dx), (y, dy), (s, ds), (z, dz)):
            for i in span(vector.shape[0]):
                vector[i] = where(gap > DONE, vector[i] + length * change[i], vector[i])
    dual, equal, unequal = residuals()
    parts = [largest(dual), largest(unequal), largest(elementwise(lambda s, z: s * z, s, z))]
    worst = variable(largest(equal) if m else 0.0)
    for part in parts:
        worst.value = where(part > worst.value, part, worst.value)
    return x, y, z, worst.value


def assemble(K: Any, P: Any, A: Any, G: Any, weights: Any) -> None:
    """The lower half of the augmented system."""
    n, m = P.shape[0], A.shape[0]
    for i in span(n):
        for j in span(i + 1):
            entry = variable(P[i, j])
            for c in span(G.shape[0]):
                entry += G[c, i] * weights[c] * G[c, j]
            K[i, j] = entry.value
    if m:
        K[n:, :n] = A
        for i in span(m):
            for j in span(i):
                K[n + i, n + j] = 0.0
            K[n + i, n + i] = -SMALLEST


def longest(s: Any, ds: Any, z: Any, dz: Any) -> Any:
    """The largest step up to 1 after which no entry is negative."""
    length = variable(1.0)
    for i in span(s.shape[0]):
        for value, change in ((s[i], ds[i]), (z[i], dz[i])):
            allowed = where(change < 0.0, value / where(change < 0.0, -change, 1.0), 1.0)
            length.value = minimum(length.value, allowed)
    return length.value
