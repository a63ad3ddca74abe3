"""One stage of the Riccati sweep: from the value function of the next state to that of this one. Over any scalar.

The recursion of optimal control is the dual of the Kalman filter's (``control/kalman_filter.py``): it runs backward in
time over the cost-to-go as the filter runs forward over the covariance.

    control, backward                                  filter, forward
    V  Hessian of the cost to go                       P  covariance of the estimate
    A, B  dynamics                                     Aᵀ, Hᵀ  dynamics and measurement, transposed
    predict:  Qxx = lxx + Aᵀ V' A                      P⁻ = W + A P Aᵀ
    innovation: Quu = luu + Bᵀ V' B                    S = R + H P⁻ Hᵀ
    gain:     K = −Quu⁻¹ (lux + Bᵀ V' A)               G = P⁻ Hᵀ S⁻¹
    update:   V = Qxx + Quxᵀ K                         P = P⁻ − G H P⁻

With gaps f̄ between the shooting intervals (C. Mastalli et al., "Crocoddyl: an efficient and versatile framework for
multi-contact optimal control", 2020, eqs. 10 to 13) the gradient of the next value function is taken where the dynamics
lead: v'⁺ = v' + V' f̄. Limits of torques follow Y. Tassa, N. Mansard and E. Todorov, "Control-limited differential
dynamic programming", 2014: the step is the minimum over the box, and rows of K are zero where a torque is at its limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from linkwise.algorithms import dense
from linkwise.scalar import Scalar, all_of, where, while_loop

if TYPE_CHECKING:
    from linkwise.algorithms.dense import Rows

BOX_STEPS = 10
"""Most projected Newton steps of a stage; a lane that has converged waits for the others."""
SHORTER = (1.0, 0.25, 0.0625, 0.0)
"""Lengths of a projected Newton step, of which the best is taken."""
PIVOT = 1e-13  # a pivot below this part of its diagonal entry is not positive


@dataclass(frozen=True, eq=False)
class Expansion:
    """Q of one stage: gradient and Hessian of cost plus value of the next state, by (δx, δu)."""

    qx: list[Scalar]
    qu: list[Scalar]
    Qxx: Rows
    Qux: Rows
    Quu: Rows


@dataclass(frozen=True, eq=False)
class StageResult:
    """δu = k + K δx, and the value function v, V of this stage."""

    k: list[Scalar]
    K: Rows
    v: list[Scalar]
    V: Rows
    slope: Scalar
    """kᵀ qu: first derivative of the cost along the step, without gaps."""
    curvature: Scalar
    """kᵀ Quu k."""
    sound: Scalar
    """1 if Quu was positive definite, else 0."""


def expansion(
    V: Rows, v: Sequence[Scalar], A: Rows, B: Rows, gradient: Sequence[Scalar], hessian: Rows
) -> Expansion:
    """Q = l + V'∘f for full matrices A and B; entries that are always zero may be the number 0."""
    n, m = len(A), len(B[0])
    F = [[*a, *b] for a, b in zip(A, B, strict=True)]
    W = [[_dot(row, [F[k][j] for k in range(n)]) for j in range(n + m)] for row in V]
    total = [_plus(g, _dot([F[k][j] for k in range(n)], v)) for j, g in enumerate(gradient)]
    return _divided(n, total, _added_half(hessian, [[F[k][i] for k in range(n)] for i in range(n + m)], W))


def shifted_expansion(
    V: Rows, v: Sequence[Scalar], G: Rows, h: float, gradient: Sequence[Scalar], hessian: Rows
) -> Expansion:
    """The same where δq̇' = G (δq, δq̇, δu) and δq' = δq + h δq̇': products with the rows of G alone.

    In the coordinates (q, q̇') the value function is Ṽ = Tᵀ V' T with T = [1 h; 0 1].
    """
    n, width = len(G), len(G[0])
    Vqq = [list(row[:n]) for row in V[:n]]
    P = [[h * a + b for a, b in zip(Vqq[i], V[i][n:], strict=True)] for i in range(n)]  # Ṽqv
    R: Rows = [[0.0] * n for _ in range(n)]  # Ṽvv
    for i in range(n):
        for j in range(i + 1):
            R[i][j] = R[j][i] = V[n + i][n + j] + h * (P[i][j] + V[j][n + i])
    ahead = [b + h * a for a, b in zip(v[:n], v[n:], strict=True)]
    columns = [[G[k][j] for k in range(n)] for j in range(width)]
    # Y = R G + Pᵀ in the columns of q;  Q = Gᵀ Y, and P G + V'qq in the rows of q
    Y = [[_dot(R[i], columns[j]) for j in range(width)] for i in range(n)]
    for i in range(n):
        for j in range(n):
            Y[i][j] = Y[i][j] + P[j][i]
    extra: Rows = [[0.0] * width for _ in range(width)]
    for i in range(n):
        for j in range(n):
            extra[i][j] = Vqq[i][j] + _dot([P[i][k] for k in range(n)], columns[j])
    total = [_plus(g, _dot(columns[j], ahead)) for j, g in enumerate(gradient)]
    for i in range(n):
        total[i] = _plus(total[i], v[i])
    hessian = [[_plus(a, b) for a, b in zip(*rows, strict=True)] for rows in zip(hessian, extra, strict=True)]
    return _divided(2 * n, total, _added_half(hessian, columns, Y))


def stage(
    Q: Expansion, mu: Scalar, low: Sequence[Scalar] | None = None, high: Sequence[Scalar] | None = None
) -> StageResult:
    """Gains and value function of a stage; ``mu`` is added to the diagonal of Quu, ``low`` and ``high`` limit δu."""
    n, m = len(Q.qx), len(Q.qu)
    Quu = [[_plus(q, mu) if i == j else q for j, q in enumerate(row)] for i, row in enumerate(Q.Quu)]
    if low is None or high is None:
        free: list[Scalar] | None = None
        L, inverse, sound = factorised(Quu)
        k = dense.solved(L, inverse, [-q for q in Q.qu])
    else:
        k = box_minimum(Quu, Q.qu, low, high)
        free = _free(Quu, Q.qu, k, low, high)
        L, inverse, sound = factorised(_masked(Quu, free))
    columns = []
    for j in range(n):
        right = [-Q.Qux[i][j] for i in range(m)]
        columns.append(
            dense.solved(
                L, inverse, right if free is None else [a * f for a, f in zip(right, free, strict=True)]
            )
        )
    K = [[columns[j][i] for j in range(n)] for i in range(m)]
    Quk = [_dot(row, k) for row in Quu]
    pull = [a + b for a, b in zip(Q.qu, Quk, strict=True)]  # zero for free torques
    v = [
        _plus(Q.qx[j], _dot([Q.Qux[i][j] for i in range(m)], k)) if free is None
        else _plus(Q.qx[j], _dot([Q.Qux[i][j] for i in range(m)], k)) + _dot(columns[j], pull)
        for j in range(n)
    ]  # fmt: skip
    V: Rows = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            V[i][j] = V[j][i] = _plus(Q.Qxx[i][j], _dot([Q.Qux[a][i] for a in range(m)], columns[j]))
    return StageResult(k, K, v, V, _dot(k, Q.qu), _dot(k, Quk), sound)


def factorised(S: Rows) -> tuple[Rows, list[Scalar], Scalar]:
    """(L, 1/D, 1 where all pivots are positive else 0) of L D Lᵀ; a bad pivot counts as infinite, so nothing is NaN."""
    n = len(S)
    L: Rows = [[0.0] * n for _ in range(n)]
    scaled: Rows = [[0.0] * n for _ in range(n)]  # L D
    inverse: list[Scalar] = []
    sound: Scalar = 1.0
    for j in range(n):
        pivot = S[j][j]
        for k in range(j):
            pivot = pivot - scaled[j][k] * L[j][k]
        good = pivot > PIVOT * abs(S[j][j])
        inverse.append(where(good, 1.0 / where(good, pivot, 1.0), 0.0 * pivot))
        sound = where(good, sound, 0.0)
        for i in range(j + 1, n):
            entry = S[i][j]
            for k in range(j):
                entry = entry - scaled[i][k] * L[j][k]
            scaled[i][j] = entry
            L[i][j] = entry * inverse[j]
    return L, inverse, sound


# -- limits of torques ------------------------------------------------------------------------------------------------


def box_minimum(Q: Rows, q: Sequence[Scalar], low: Sequence[Scalar], high: Sequence[Scalar]) -> list[Scalar]:
    """The minimum of ½ δuᵀ Q δu + qᵀ δu over low ≤ δu ≤ high, by projected Newton steps (Bertsekas 1982)."""
    m = len(q)
    start = [_clamped(0.0 * a, b, c) for a, b, c in zip(q, low, high, strict=True)]

    def body(count: Scalar, going: Scalar, *u: Scalar):
        free = _free(Q, q, u, low, high)
        L, inverse, _ = factorised(_masked(Q, free))
        gradient = [a + _dot(row, u) for a, row in zip(q, Q, strict=True)]
        step = dense.solved(L, inverse, [-(g * f) for g, f in zip(gradient, free, strict=True)])
        best, chosen, moved = None, list(u), 0.0 * count
        for length in SHORTER:
            trial = [_clamped(a + length * s, b, c) for a, s, b, c in zip(u, step, low, high, strict=True)]
            change = [a - b for a, b in zip(trial, u, strict=True)]
            value = _dot(change, [g + 0.5 * _dot(row, change) for g, row in zip(gradient, Q, strict=True)])
            if best is None:
                best, chosen = value, trial
            else:
                better = value < best
                best = where(better, value, best)
                chosen = [where(better, a, b) for a, b in zip(trial, chosen, strict=True)]
        for a, b in zip(chosen, u, strict=True):
            moved = where(abs(a - b) > 1e-15 * (abs(a) + abs(b)), 1.0, moved)
        return (count + 1.0, moved, *chosen)

    zero = 0.0 * q[0]
    found = while_loop(
        lambda count, going, *u: all_of(count < float(BOX_STEPS), going > 0.5),
        body,
        (zero, zero + 1.0, *start),
    )
    return list(found[2 : 2 + m])


def _free(
    Q: Rows, q: Sequence[Scalar], u: Sequence[Scalar], low: Sequence[Scalar], high: Sequence[Scalar]
) -> list[Scalar]:
    """1 for torques that may move, 0 for those that their gradient pushes against a limit."""
    found: list[Scalar] = []
    for i, row in enumerate(Q):
        gradient = q[i] + _dot(row, u)
        below = where(gradient > 0.0, 1.0, 0.0)
        above = where(gradient < 0.0, 1.0, 0.0)
        held = where(u[i] <= low[i], below, 0.0)
        found.append(where(u[i] >= high[i], 1.0 - where(held > above, held, above), 1.0 - held))
    return found


def _masked(Q: Rows, free: Sequence[Scalar]) -> Rows:
    """Q with rows and columns of an identity for torques that are held."""
    m = len(free)
    return [
        [
            Q[i][j] * (free[i] * free[j]) + (1.0 - free[i]) if i == j else Q[i][j] * (free[i] * free[j])
            for j in range(m)
        ]
        for i in range(m)
    ]


def _clamped(value: Scalar, low: Scalar, high: Scalar) -> Scalar:
    value = where(value < low, low, value)
    return where(value > high, high, value)


# -- sums that leave zeros out ----------------------------------------------------------------------------------------


def _divided(n: int, total: list[Scalar], H: Rows) -> Expansion:
    return Expansion(
        total[:n],
        total[n:],
        [row[:n] for row in H[:n]],
        [row[:n] for row in H[n:]],
        [row[n:] for row in H[n:]],
    )


def _added_half(hessian: Rows, columns: Rows, W: Rows) -> Rows:
    """hessian + Fᵀ W where that is symmetric; the lower half is computed."""
    size = len(columns)
    H: Rows = [[0.0] * size for _ in range(size)]
    for i in range(size):
        for j in range(i + 1):
            H[i][j] = H[j][i] = _plus(hessian[i][j], _dot(columns[i], [row[j] for row in W]))
    return H


def _is_zero(value: Scalar) -> bool:
    return isinstance(value, (int, float)) and value == 0.0


def _plus(a: Scalar, b: Scalar) -> Scalar:
    return b if _is_zero(a) else a if _is_zero(b) else a + b


def _dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for x, y in zip(a, b, strict=True):
        if not (_is_zero(x) or _is_zero(y)):
            total = _plus(total, x * y)
    return total
