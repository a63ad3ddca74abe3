"""Covariances as factors P = U D Uᵀ, with U unit upper triangular and D a positive diagonal, over any scalar.

G. Bierman, "Factorization methods for discrete sequential estimation", 1977; C. Thornton, 1976. Factors cannot lose the
symmetry and the positive sign of a covariance to round-off, as P − K S Kᵀ does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.joint_laws import is_zero
from linkwise.scalar import Scalar

Rows = list[list[Scalar]]


@dataclass(slots=True, eq=False)
class UD:
    """The factors: ``U`` as rows (below its diagonal nothing is read), ``D`` as a list."""

    U: Rows
    D: list[Scalar]

    @classmethod
    def unpacked(cls, numbers: Sequence[Scalar], size: int) -> UD:
        """From D followed by the columns of U above its diagonal."""
        U: Rows = [[1.0 if i == j else 0.0 for j in range(size)] for i in range(size)]
        at = size
        for j in range(size):
            for i in range(j):
                U[i][j] = numbers[at]
                at += 1
        return cls(U, list(numbers[:size]))

    def packed(self) -> list[Scalar]:
        size = len(self.D)
        return [*self.D, *(self.U[i][j] for j in range(size) for i in range(j))]

    def variances(self) -> list[Scalar]:
        """The diagonal of P."""
        size = len(self.D)
        return [
            sum((self.U[i][j] * self.U[i][j] * self.D[j] for j in range(i + 1, size)), start=self.D[i])
            for i in range(size)
        ]

    def scaled(self, factors: Sequence[Scalar]) -> UD:
        """S P S with a positive diagonal S: the standard deviations times these factors, correlations as they are."""
        size = len(self.D)
        inverse = [1.0 / s for s in factors]
        U: Rows = [list(row) for row in self.U]
        for j in range(size):
            for i in range(j):
                U[i][j] = (factors[i] * inverse[j]) * U[i][j]
        return UD(U, [s * s * d for s, d in zip(factors, self.D, strict=True)])


def packed_size(size: int) -> int:
    """Scalars of the factors of a size×size covariance."""
    return size * (size + 1) // 2


def measured(
    factors: UD, x: Sequence[Scalar], row: Sequence[Scalar], innovation: Scalar, variance: Scalar
) -> tuple[UD, list[Scalar], Scalar]:
    """Bierman's update with one measurement y = row·x + noise of this variance.

    ``innovation`` is y less what was expected. Returns the factors, the estimate and the variance of the innovation.
    Entries of ``row`` that are the number zero cost nothing.
    """
    size = len(x)
    U, D = [list(line) for line in factors.U], list(factors.D)
    f: list[Scalar] = []
    for j in range(size):
        terms = [_times(U[i][j], row[i]) for i in range(j) if not is_zero(row[i])]
        terms += [] if is_zero(row[j]) else [row[j]]
        f.append(sum(terms[1:], start=terms[0]) if terms else 0.0)
    gain: list[Scalar] = [0.0] * size
    total = variance
    for j in range(size):
        if is_zero(f[j]):
            continue
        v, before = D[j] * f[j], total
        total = total + f[j] * v
        inverse = 1.0 / total
        D[j] = D[j] * (before * inverse)
        back = -(f[j] / before)
        for i in range(j):
            old = U[i][j]
            if not is_zero(gain[i]):
                U[i][j] = old + gain[i] * back
            gain[i] = gain[i] + old * v
        gain[j] = v
    share = innovation / total
    return UD(U, D), [a + k * share for a, k in zip(x, gain, strict=True)], total


def predicted(rows: Sequence[Sequence[Scalar]], weights: Sequence[Scalar]) -> UD:
    """Thornton's modified weighted Gram–Schmidt: the factors of W diag(weights) Wᵀ, W given by its rows."""
    size = len(rows)
    W = [list(row) for row in rows]
    U: Rows = [[1.0 if i == j else 0.0 for j in range(size)] for i in range(size)]
    D: list[Scalar] = [0.0] * size
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
            U[i][j] = shared * inverse
            W[i] = [a if is_zero(b) else a - U[i][j] * b for a, b in zip(W[i], W[j], strict=True)]
    return UD(U, D)


def propagated(F: Sequence[Sequence[Scalar]], factors: UD, noise: Sequence[Sequence[Scalar]]) -> Rows:
    """The rows of [F U, noise] for ``predicted``, whose weights are D and those of the noise."""
    size = len(factors.D)
    found: Rows = []
    for row, more in zip(F, noise, strict=True):
        line: list[Scalar] = []
        for j in range(size):
            line.append(_dot(row[: j + 1], [factors.U[i][j] for i in range(j)] + [1.0]))
        found.append([*line, *more])
    return found


def _times(a: Scalar, b: Scalar) -> Scalar:
    if is_zero(a) or is_zero(b):
        return 0.0
    return b if isinstance(a, float) and a == 1.0 else a if isinstance(b, float) and b == 1.0 else a * b


def _dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    terms = [term for x, y in zip(a, b, strict=True) if not is_zero(term := _times(x, y))]
    return sum(terms[1:], start=terms[0]) if terms else 0.0
