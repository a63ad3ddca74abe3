"""Factors of symmetric matrices of every size, small ones by rows and large ones by tiles, beside NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.language import SIDE_BY_SIDE, TILE, tiles
from linkwise.solve.factors import (
    back_substituted,
    ldl,
    ldl_from_last,
    ldl_of_any,
    scaled,
    solve,
    substituted,
)

SIZES = (1, 7, SIDE_BY_SIDE, SIDE_BY_SIDE + 1, 4 * TILE, 4 * TILE + 5)


def lower_half(n: int, seed: int, signs: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A symmetric matrix, some of whose last pivots are negative, and its lower half beside what is not to be read."""
    rng = np.random.default_rng(seed)
    L = np.tril(rng.normal(size=(n, n)) / np.sqrt(n), -1) + np.eye(n)
    d = rng.uniform(0.5, 2.0, n)
    d[n - signs :] *= -1.0
    A = L @ np.diag(d) @ L.T
    return A, np.where(np.tri(n) > 0, A, np.nan)


@pytest.mark.parametrize("n", SIZES)
def test_solutions_of_both_orders_solve_the_system(n):
    A, given = lower_half(n, seed=n)
    b = np.random.default_rng(1).normal(size=(n, 2))
    assert np.allclose(A @ solve(*ldl(given), b), b, atol=1e-11)
    L, inverse = ldl_from_last(given)
    assert np.allclose(A @ substituted(L, scaled(inverse, back_substituted(L, b))), b, atol=1e-11)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("signs", [0, 1, 5])
def test_quasidefinite_matrices_have_factors_and_are_not_sound(n, signs):
    A, given = lower_half(n, n, min(signs, n))
    L, inverse, sound = ldl_of_any(given, 1e-11)
    assert sound == (0.0 if signs else 1.0)
    b = np.ones(n)
    if not signs:
        assert np.allclose(A @ solve(L, inverse, b), b, atol=1e-11)
    assert np.allclose(A @ solve(*ldl(given), b), b, atol=1e-10)


@pytest.mark.parametrize("n", SIZES[1:])
def test_a_direction_without_cost_is_left_alone(n):
    A, _ = lower_half(n, n)
    A[n - 2] = A[:, n - 2] = 0.0
    L, inverse, sound = ldl_of_any(A, 1e-11)
    x = solve(L, inverse, np.ones(n))
    assert (sound, inverse[n - 2], x[n - 2]) == (0.75, 0.0, 0.0)
    rest = np.arange(n) != n - 2
    assert np.allclose(A[np.ix_(rest, rest)] @ x[rest], 1.0, atol=1e-11)


@pytest.mark.parametrize("n", [SIDE_BY_SIDE + 1, 3 * TILE + 6])
def test_compiled_factors_have_the_bits_of_every_width(n):
    """One state, whose columns are side by side, and blocks of states."""
    kernel = lw.kernel(A=(n, n), b=(n,))(
        lambda A, b: solve(*ldl(A), b) + solve(*ldl_of_any(A, 1e-11)[:2], 2.0 * b)
    )
    rng = np.random.default_rng(4)
    A = np.stack([lower_half(n, seed)[0] for seed in range(9)])
    b = rng.normal(size=(9, n))
    many = kernel(A.reshape(9, -1), b)
    one = np.stack([kernel(A[k].ravel(), b[k]) for k in range(9)])
    assert many.tobytes() == one.tobytes()
    assert np.allclose(np.einsum("kij,kj->ki", A, many), 3.0 * b, atol=1e-10)


def test_tiles_cover_every_number_once():
    for count in range(1, 4 * TILE):
        assert [k for tile in tiles(count) for k in tile] == list(range(count))
