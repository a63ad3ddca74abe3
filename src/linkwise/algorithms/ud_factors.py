"""Covariances as factors P = U D Uᵀ, with U unit upper triangular and D a positive diagonal, over any scalar.

G. Bierman, "Factorization methods for discrete sequential estimation", 1977; C. Thornton, 1976. Factors cannot lose the
symmetry and the positive sign of a covariance to round-off, as P − K S Kᵀ does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.joint_laws import is_zero
from linkwise.language import array, empty, span, triangle, variable, zeros
from linkwise.scalar import Scalar

Rows = list[list[Scalar]]


@dataclass(slots=True, eq=False)
class UD:
    """The factors as vectors: ``U`` above its diagonal, column by column (U_ij lies at triangle(j) + i), and ``D``."""

    U: Any
    D: Any

    @classmethod
    def unpacked(cls, numbers: Any, size: int) -> UD:
        """From D followed by the columns of U above its diagonal."""
        return cls(array(numbers[size : packed_size(size)]), array(numbers[:size]))

    def packed(self) -> list[Scalar]:
        return [*self.D, *self.U]

    def variances(self) -> Any:
        """The diagonal of P."""
        size = self.D.shape[0]
        P = empty(size)
        for i in span(size):
            total = variable(self.D[i])
            for j in span(i + 1, size):
                entry = self.U[triangle(j) + i]
                total += entry * entry * self.D[j]
            P[i] = total.value
        return P

    def scale(self, factors: Any, inverse: Any) -> None:
        """S P S with a positive diagonal S: the standard deviations times these factors, correlations as they are.

        ``inverse`` has 1/factors."""
        for j in span(self.D.shape[0]):
            for i in span(j):
                place = triangle(j) + i
                self.U[place] = (factors[i] * inverse[j]) * self.U[place]
            self.D[j] = factors[j] * factors[j] * self.D[j]


def packed_size(size: int) -> int:
    """Scalars of the factors of a size×size covariance."""
    return size * (size + 1) // 2


def measure(factors: UD, x: Any, row: Any, innovation: Scalar, variance: Scalar) -> Scalar:
    """Bierman's update with one measurement y = row·x + noise of this variance; the factors and x change.

    ``innovation`` is y less what was expected. Returns the variance of the innovation. Entries of ``row`` that are the
    number zero cost nothing.
    """
    U, D = factors.U, factors.D
    size = D.shape[0]
    f, gain = empty(size), zeros(size)
    for j in span(size):
        projected = variable(0.0)
        for i in span(j):
            projected += U[triangle(j) + i] * row[i]
        f[j] = projected + row[j]
    total = variable(variance)
    for j in span(size):
        if is_zero(f[j]):
            continue
        v, before = D[j] * f[j], total.value
        total += f[j] * v
        D[j] = D[j] * (before * (1.0 / total))
        back = -(f[j] / before)
        for i in span(j):
            place = triangle(j) + i
            old = U[place]
            U[place] = old + gain[i] * back
            gain[i] = gain[i] + old * v
        gain[j] = v
    share = innovation / total
    for j in span(size):
        x[j] = x[j] + gain[j] * share
    return total.value


def predicted(rows: Sequence[Sequence[Scalar]], weights: Sequence[Scalar]) -> UD:
    """Thornton's modified weighted Gram–Schmidt: the factors of W diag(weights) Wᵀ, W given by its rows."""
    size = len(rows)
    W = [list(row) for row in rows]
    U, D = zeros(size * (size - 1) // 2), zeros(size)
    for j in reversed(range(size)):
        weighted = [_times(w, x) for w, x in zip(weights, W[j], strict=True)]
        D[j] = _dot(weighted, W[j])
        if j == 0:
            break
        inverse = 1.0 / D[j]
        for i in range(j):
            shared = _dot(weighted, W[i])
            if is_zero(shared):
                continue
            entry = U[triangle(j) + i] = shared * inverse
            W[i] = [a if is_zero(b) else a - entry * b for a, b in zip(W[i], W[j], strict=True)]
    return UD(U, D)


def propagated(F: Sequence[Sequence[Scalar]], factors: UD, noise: Sequence[Sequence[Scalar]]) -> Rows:
    """The rows of [F U, noise] for ``predicted``, whose weights are D and those of the noise."""
    size = len(factors.D)
    products: Rows = []
    for row, more in zip(F, noise, strict=True):
        columns = [[factors.U[triangle(j) + i] for i in range(j)] + [1.0] for j in range(size)]
        products.append([*(_dot(row[: len(column)], column) for column in columns), *more])
    return products


def _times(a: Scalar, b: Scalar) -> Scalar:
    if is_zero(a) or is_zero(b):
        return 0.0
    return b if isinstance(a, float) and a == 1.0 else a if isinstance(b, float) and b == 1.0 else a * b


def _dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    terms = [term for x, y in zip(a, b, strict=True) if not is_zero(term := _times(x, y))]
    return sum(terms[1:], start=terms[0]) if terms else 0.0
