"""The inertia prediction of the filter on factors P = U D Uᵀ instead of P itself.

K. Kozłowski, 1990, section 6: "we have used the Agee and Turner factorization method, for the inertia prediction
equation" (the text says (3.47), which is the state; the inertia is (3.48)), with a negative result. The method is that
of G. Bierman, "Factorization methods for discrete sequential estimation", 1977: φ is unit upper triangular with moments
before forces, so φU is the new U without further work, and the six terms of M = Σ m a aᵀ enter one after the other,
each by a rank-one update.

No function uses this file: its operations are counted beside those of ``ArticulatedInertia.shifted`` (see
``linkwise.records``).
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwise.algorithms import dense
from linkwise.scalar import Scalar
from linkwise.spatial import RigidInertia, Vector, skew

SIZE = 6  # moments x y z, forces x y z


@dataclass(slots=True, eq=False)
class Factors:
    """P = U D Uᵀ: U unit upper triangular (rows of six), D a diagonal."""

    U: list[list[Scalar]]
    D: list[Scalar]


def predicted(after: Factors, lever: Vector, own: RigidInertia) -> Factors:
    """(3.48): the factors of φ P⁺ φᵀ + M, for a P⁺ that is already in the axes of M."""
    factors = Factors(_propagated(after.U, lever), list(after.D))
    link = factorised(matrix_of(own))
    for k in reversed(range(SIZE)):
        factors = updated(factors, link.D[k], [row[k] for row in link.U])
    return factors


def _propagated(U: list[list[Scalar]], lever: Vector) -> list[list[Scalar]]:
    """φ U with φ = [[1, l̂], [0, 1]]: only the upper right block changes."""
    arm = [row[k : k + 3] for row in (list(skew(lever)),) for k in (0, 3, 6)]
    new = [list(row) for row in U]
    for i in range(3):
        for j in range(3, SIZE):
            for k in range(3, j + 1):
                new[i][j] = new[i][j] + arm[i][k - 3] * U[k][j]
    return new


def updated(factors: Factors, weight: Scalar, a: list[Scalar]) -> Factors:
    """Agee and Turner: the factors of U D Uᵀ + weight·a aᵀ."""
    U, D, a = [list(row) for row in factors.U], list(factors.D), list(a)
    for j in reversed(range(SIZE)):
        if isinstance(a[j], float) and a[j] == 0.0:
            continue
        scaled = weight * a[j]
        old, D[j] = D[j], D[j] + scaled * a[j]
        if j == 0:
            break
        inverse = 1.0 / D[j]
        gain = scaled * inverse
        for i in range(j):
            a[i] = a[i] - a[j] * U[i][j]
            U[i][j] = U[i][j] + gain * a[i]
        weight = weight * (old * inverse)
    return Factors(U, D)


def factorised(matrix: list[list[Scalar]]) -> Factors:
    """U and D of a symmetric positive matrix, from its last row upwards."""
    P = [list(row) for row in matrix]
    U = dense.identity(SIZE)
    D: list[Scalar] = [0.0] * SIZE
    for j in reversed(range(SIZE)):
        D[j] = P[j][j]
        for i in range(j):
            U[i][j] = P[i][j] / D[j]
        for i in range(j):
            for k in range(i + 1):
                P[k][i] = P[i][k] = P[i][k] - U[i][j] * P[k][j]
    return Factors(U, D)


def matrix_of(inertia: RigidInertia) -> list[list[Scalar]]:
    """M = [[I, ĥ], [−ĥ, m·1]] as rows of six."""
    m, h, I = inertia
    turning, moment = list(I.matrix()), list(skew(h))
    upper = [turning[k : k + 3] + moment[k : k + 3] for k in (0, 3, 6)]
    lower = [
        [-x for x in moment[3 * k : 3 * k + 3]] + [m if i == k else 0.0 for i in range(3)] for k in range(3)
    ]
    return upper + lower


def product(factors: Factors) -> list[list[Scalar]]:
    """U D Uᵀ as rows of six."""
    U, D = factors.U, factors.D
    return [[sum(U[i][k] * D[k] * U[j][k] for k in range(SIZE)) for j in range(SIZE)] for i in range(SIZE)]
