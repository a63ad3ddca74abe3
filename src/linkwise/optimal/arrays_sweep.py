"""The backward sweep for stages too large to be written out: a stage is one kernel with loops over matrices.

The formulas are those of ``riccati``, for full matrices F = (A, B).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.compiler.kernel import Kernel
from linkwise.language import dot, elementwise, empty, product, span, variable, zeros
from linkwise.optimal.riccati import BOX_STEPS, PIVOT, SHORTER
from linkwise.scalar import where
from linkwise.solve.factors import ldl_of_any, solve
from linkwise.user import kernel_of

if TYPE_CHECKING:
    from linkwise.optimal.code import Code


def array_sweep(
    code: Code, stages: Sequence[np.ndarray], end: Sequence[np.ndarray], mu: float, box: Any
) -> dict[str, np.ndarray]:
    """As ``Code.sweep``."""
    problem = code.problem
    nx, nu = problem.nx, problem.nu
    slopes, gradient, hessian, gap, _ = stages
    F, H = _full_slopes(code, slopes), unpacked(hessian, nx + nu)
    V, v = unpacked(end[1], nx), end[0]
    kernel = stage_kernel(nx, nu, problem.boxed)
    results: list[Any] = []
    for t in range(len(F)):
        limits = (box[0][t], box[1][t]) if problem.boxed else ()
        k, K, v, V, gain = kernel(F[t], V, v, gap[t], gradient[t], H[t], np.array([mu]), *limits, threads=1)
        results.append((k, K, v, V, gain))
    k, K, gradients, hessians, gains = (np.array(each)[::-1] for each in zip(*results, strict=True))
    rows, columns = np.tril_indices(nx)
    packed = hessians[:, rows, columns]
    return {"k": k, "K": K, "value_gradient": gradients, "value_hessian": packed, "gain": gains}


@functools.cache
def stage_kernel(nx: int, nu: int, boxed: bool) -> Kernel:
    """(F, V, v, gap, gradient, H, mu[, low, high]) -> (k, K, v, V, (slope, curvature, sound)) of one stage."""
    z = nx + nu

    def optimal_stage(
        F: Any, V: Any, v: Any, gap: Any, gradient: Any, H: Any, mu: Any, low: Any = None, high: Any = None
    ) -> tuple[Any, ...]:
        ahead = product(V, gap) + v
        q = product(F.T, ahead) + gradient
        P = empty(nx, nx)
        P[:, :] = V
        for i in span(nx):
            P[i, i] = V[i, i] + mu[0]
        W, Q = product(P, F), empty(z, z)
        for i in span(z):
            for j in span(i + 1):
                Q[i, j] = H[i, j] + dot(F[:, i], W[:, j])
                Q[j, i] = Q[i, j]
        for i in span(nx, z):
            Q[i, i] = Q[i, i] + mu[0]
        Quu, Qux, qu = Q[nx:, nx:], Q[nx:, :nx], q[nx:]
        k = zeros(nu)
        if boxed:
            box_minimum(k, Quu, qu, low, high)
        free = free_torques(k, Quu, qu, low, high) if boxed else None
        L, inverse, sound = ldl_of_any(masked(Quu, free), PIVOT)
        right = elementwise(lambda a: -a, Qux)
        if free is None:
            k[:] = solve(L, inverse, elementwise(lambda a: -a, qu))
        else:
            for i in span(nu):
                for j in span(nx):
                    right[i, j] = right[i, j] * free[i]
        K = solve(L, inverse, right)
        Quk = product(Quu, k)
        value = product(Qux.T, k) + q[:nx] + product(K.T, Quk + qu)
        following = empty(nx, nx)
        for i in span(nx):
            for j in span(i + 1):
                following[i, j] = Q[i, j] + dot(Qux[:, i], K[:, j])
                following[j, i] = following[i, j]
        report = empty(3)
        report[0], report[1], report[2] = dot(k, qu), dot(k, Quk), sound
        return k, K, value, following, report

    shapes: dict[str, tuple[int, ...]] = {
        "F": (nx, z),
        "V": (nx, nx),
        "v": (nx,),
        "gap": (nx,),
        "gradient": (z,),
    }
    shapes |= {"H": (z, z), "mu": (1,)} | ({"low": (nu,), "high": (nu,)} if boxed else {})
    return kernel_of(optimal_stage, shapes)


def box_minimum(u: Any, Q: Any, q: Any, low: Any, high: Any) -> None:
    """u becomes the minimum of ½ uᵀ Q u + qᵀ u over low ≤ u ≤ high, by projected Newton steps (Bertsekas 1982)."""
    m = u.shape[0]
    for i in span(m):
        u[i] = _clamped(u[i], low[i], high[i])
    for _ in span(BOX_STEPS):
        free = free_torques(u, Q, q, low, high)
        gradient = product(Q, u) + q
        L, inverse, _ = ldl_of_any(masked(Q, free), PIVOT)
        step = solve(L, inverse, elementwise(lambda g, f: -(g * f), gradient, free))
        best, chosen = variable(0.0), zeros(m)
        for length in SHORTER[:-1]:
            change = empty(m)
            for i in span(m):
                change[i] = _clamped(u[i] + length * step[i], low[i], high[i]) - u[i]
            value = dot(change, 0.5 * product(Q, change) + gradient)
            better = value < best.value
            for i in span(m):
                chosen[i] = where(better, change[i], chosen[i])
            best.value = where(better, value, best.value)
        for i in span(m):
            u[i] = u[i] + chosen[i]


def free_torques(u: Any, Q: Any, q: Any, low: Any, high: Any) -> Any:
    """1 for torques that may move, 0 for those that their gradient pushes against a limit."""
    free = empty(u.shape[0])
    for i in span(u.shape[0]):
        gradient = q[i] + dot(Q[i, :], u)
        below = where(u[i] <= low[i], where(gradient > 0.0, 1.0, 0.0), 0.0)
        above = where(u[i] >= high[i], where(gradient < 0.0, 1.0, 0.0), 0.0)
        free[i] = where(below + above > 0.5, 0.0, 1.0)
    return free


def masked(Q: Any, free: Any) -> Any:
    """Q with rows and columns of an identity for torques that are held."""
    if free is None:
        return Q
    m = free.shape[0]
    S = empty(m, m)
    for i in span(m):
        for j in span(i):
            S[i, j] = Q[i, j] * (free[i] * free[j])
        S[i, i] = Q[i, i] * free[i] + (1.0 - free[i])
    return S


def unpacked(packed: np.ndarray, n: int) -> np.ndarray:
    """Symmetric matrices (..., n, n) of their lower halves."""
    full = np.empty((*packed.shape[:-1], n, n))
    rows, columns = np.tril_indices(n)
    full[..., rows, columns] = packed
    full[..., columns, rows] = packed
    return full


def _full_slopes(code: Code, slopes: np.ndarray) -> np.ndarray:
    """(A, B) side by side, (stages, nx, nx + nu)."""
    if not code.compact:
        return slopes
    h, n = code.problem.step, slopes.shape[1]
    above = h * slopes
    above[:, range(n), range(n)] += 1.0
    return np.concatenate([above, slopes], axis=1)


def _clamped(value: Any, low: Any, high: Any) -> Any:
    return where(value < low, low, where(value > high, high, value))
