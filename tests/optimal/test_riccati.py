"""The Riccati step against dense matrices of NumPy, written out and with loops, for sizes of arms and of humanoids."""

import numpy as np
import pytest
from scipy import optimize

from linkwise.robot.user import kernel_of
from linkwise.solve.riccati import Riccati, Shape, turn_columns, turn_rows

SMALLEST = 1e-12


def definite(rng, n):
    root = rng.normal(size=(n, n))
    return root @ root.T + np.eye(n)


def stage_kernel(shape: Shape):
    """A compiled step of the recursion, with all of its inputs as arrays."""
    n, v, q, m, w = shape.states, shape.full, shape.shifted, shape.controls, shape.width

    def stage(V, vx, G, gap, gradient, H, mu, low, high):
        from linkwise.language import empty

        step = Riccati(shape, SMALLEST)
        for array, rows, columns in (
            (step.Vqq, slice(0, q), slice(0, q)),
            (step.Vqv, slice(0, q), slice(q, n)),
            (step.Vvv, slice(q, n), slice(q, n)),
        ):
            if 0 not in array.shape:
                array[:, :] = V[rows, columns]
        step.vx[:] = vx
        step.next_value(gap, mu[0])
        ends = {"q": slice(0, q), "v": slice(q, n), "x": slice(0, n), "u": slice(n, w)}
        cost = {name: H[ends[name[0]], ends[name[1]]] for name in shape.blocks}
        k, K = empty(m), empty(m, n)
        step.stage(G, gradient, cost, (low, high) if shape.boxed else None, mu[0], k, K)
        value = empty(n, n)
        value[q:, q:] = step.Vvv
        if q:
            value[:q, :q], value[:q, q:], value[q:, :q] = step.Vqq, step.Vqv, step.Vqv.T
        return k, K, step.vx, value

    shapes = {"V": (n, n), "vx": (n,), "G": (v, w), "gap": (n,), "gradient": (w,), "H": (w, w), "mu": (1,)}
    return kernel_of(stage, shapes | {"low": (m,), "high": (m,)})


@pytest.mark.parametrize(
    ("joints", "controls", "shifted", "boxed"),
    [
        (1, 1, True, False),
        (4, 4, True, True),
        (4, 2, False, False),
        (13, 9, True, False),
        (7, 13, False, True),
    ],
)
def test_a_step_is_that_of_dense_matrices(joints, controls, shifted, boxed):
    rng, h, mu = np.random.default_rng(joints), 0.1, 1e-3
    q, v = (joints, joints) if shifted else (0, 2 * joints)
    n, m = q + v, controls
    entries = frozenset((i, j) for i in range(n + m) for j in range(i + 1))
    kernel = stage_kernel(Shape(q, v, m, h, entries, boxed))
    G, V, H = rng.normal(size=(v, n + m)), definite(rng, n), definite(rng, n + m)
    vx, gap, gradient = rng.normal(size=n), 0.1 * rng.normal(size=n), rng.normal(size=n + m)
    low, high = (
        (-rng.uniform(0, 0.3, m), rng.uniform(0, 0.3, m)) if boxed else (np.full(m, -9.0), np.full(m, 9.0))
    )
    k, K, value, hessian = kernel(V, vx, G, gap, gradient, H, np.array([mu]), low, high)
    F = np.vstack([np.hstack([np.eye(q), np.zeros((q, v + m))]) + h * G, G]) if shifted else G
    ahead = gradient + F.T @ (vx + V @ gap)
    T = np.vstack([h * np.eye(q), np.eye(v)]) if shifted else np.eye(v)
    Q = H + F.T @ V @ F + G.T @ (mu * np.diag(np.diag(T.T @ V @ T))) @ G
    Quu, Qux = Q[n:, n:] + mu * np.diag(np.diag(Q[n:, n:])), Q[n:, :n]
    if boxed:
        root = np.linalg.cholesky(Quu)
        right = -np.linalg.solve(root, ahead[n:])
        wanted = optimize.lsq_linear(root.T, right, (low, high), tol=1e-15).x
    else:
        wanted = -np.linalg.solve(Quu, ahead[n:])
    np.testing.assert_allclose(k, wanted, atol=1e-8 * (1 + np.abs(wanted).max()))
    free = (wanted > low + 1e-9) & (wanted < high - 1e-9) if boxed else np.ones(m, bool)
    gains = np.zeros((m, n))
    gains[free] = -np.linalg.solve(Quu[np.ix_(free, free)], Qux[free])
    np.testing.assert_allclose(K, gains, atol=1e-8 * np.abs(gains).max() + 1e-9)
    np.testing.assert_allclose(hessian, Q[:n, :n] + Qux.T @ gains, atol=1e-8 * np.abs(Q).max())
    np.testing.assert_allclose(value, ahead[:n] + Qux.T @ wanted, atol=1e-7 * np.abs(ahead).max())


def test_products_with_blocks_on_a_diagonal():
    """Sᵀ A and A S of an S that is an identity but for blocks, which are not symmetric."""
    rng = np.random.default_rng(3)
    places, blocks = [range(1, 4), range(5, 6)], [rng.normal(size=(3, 3)), rng.normal(size=(1, 1))]
    S = np.eye(7)
    for at, block in zip(places, blocks, strict=True):
        S[at.start : at.stop, at.start : at.stop] = block
    for turn, A in ((turn_rows, rng.normal(size=(7, 4))), (turn_columns, rng.normal(size=(4, 7)))):
        out = np.array(A.tolist(), object)
        turn(out, places, [np.array(b.tolist(), object) for b in blocks])
        expected = S.T @ A if turn is turn_rows else A @ S
        np.testing.assert_allclose(out.astype(float), expected, atol=1e-14)
