"""Factors of small matrices (``solve.factors``) on plain numbers beside NumPy's."""

import numpy as np

from linkwise.language import SIDE_BY_SIDE, empty, sums
from linkwise.solve import factors

SMALLEST = 1e-9


def arrays(*values):
    """As arrays of Python's numbers, which the language takes."""
    return [np.array(np.asarray(value, float).tolist(), object) for value in values]


def unit_lower(L):
    return np.tril(np.array(L, object), -1).astype(float) + np.eye(len(L))


def test_products_of_factors_and_solutions():
    """Quasidefinite matrices of 1 to 6 rows: both orders of elimination, vectors and columns."""
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 6):
        W = rng.normal(size=(n, n + 1))
        A = W @ W.T + 0.1 * np.eye(n)
        A[n // 2 + 1 :, n // 2 + 1 :] *= -1.0
        upper = A.copy()
        upper[np.triu_indices(n, 1)] = np.nan  # is not read
        for b in (rng.normal(size=n), rng.normal(size=(n, 2))):
            given, right = arrays(upper, b)
            L, inverse = factors.ldl(given)
            lower, d = unit_lower(L), 1.0 / inverse.astype(float)
            np.testing.assert_allclose(lower * d @ lower.T, A, atol=1e-12)
            expected = np.linalg.solve(A, b)
            np.testing.assert_allclose(factors.solve(L, inverse, right).astype(float), expected, atol=1e-9)
            L, inverse = factors.ldl_from_last(given)
            lower, d = unit_lower(L), 1.0 / inverse.astype(float)
            np.testing.assert_allclose(lower.T * d @ lower, A, atol=1e-12)
            back = factors.scaled(inverse, factors.back_substituted(L, right))
            found = factors.substituted(L, back).astype(float)
            np.testing.assert_allclose(found, expected, atol=1e-9)
    assert factors.largest(np.array([0.5, -3.0, 2.0], object)) == 3.0


def test_soundness_of_any_matrix():
    """1 where all pivots are positive, 0.75 where one is zero, 0 where one is negative, also where another is zero;
    directions of pivots that are not positive are left alone."""
    lower = np.array([[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.3, -0.2, 1.0]])
    for pivots, sound in (
        ([2.0, 0.5, 3.0], 1.0),
        ([2.0, 0.0, 3.0], 0.75),
        ([2.0, 0.4e-9, 3.0], 0.75),  # of a diagonal entry of 0.5
        ([2.0, -0.4e-9, 3.0], 0.75),
        ([2.0, 0.6e-9, 3.0], 1.0),
        ([2.0, -0.6e-9, 3.0], 0.0),
        ([2.0, 0.0, -3.0], 0.0),
        ([-2.0, 0.0, 3.0], 0.0),
    ):
        A = lower * pivots @ lower.T
        L, inverse, found = factors.ldl_of_any(*arrays(A), SMALLEST)
        assert found == sound, pivots
        x = factors.solve(L, inverse, *arrays(np.ones(3))).astype(float)
        assert np.isfinite(x).all()
        assert [i > 0.0 for i in inverse.tolist()] == [p > 0.5e-9 for p in pivots]
        if sound == 1.0:
            np.testing.assert_allclose(A @ x, 1.0, atol=1e-6)


def test_systems_of_triangles_in_place_are_those_of_single_rows():
    """Sizes around whole tiles; large mass matrices are eliminated row by row at once."""
    rng = np.random.default_rng(1)
    for n in (1, 9, *range(SIDE_BY_SIDE, SIDE_BY_SIDE + 5)):
        lower, b = np.tril(0.3 * rng.normal(size=(n, n)), -1) + np.eye(n), rng.normal(size=n)
        for solved, A in ((factors.solve_lower, lower), (factors.solve_upper, lower.T)):
            L, x = arrays(lower, b)
            solved(L, x)
            np.testing.assert_allclose(A @ x.astype(float), b, atol=1e-9)
    n = SIDE_BY_SIDE + 2
    W = rng.normal(size=(n, n + 1))
    A = W @ W.T + np.eye(n)
    L, inverse = factors.ldl_from_last(arrays(A)[0])
    lower, d = unit_lower(L), 1.0 / inverse.astype(float)
    np.testing.assert_allclose(lower.T * d @ lower, A, atol=1e-9)


def test_sums_of_rows_side_by_side_are_products_of_matrices():
    rng = np.random.default_rng(2)
    for rows, inner in ((1, 1), (6, 3), *((SIDE_BY_SIDE + more, 3 + more) for more in range(5))):
        A, C = rng.normal(size=(rows, inner)), rng.normal(size=(rows, 2))
        b, d, start = rng.normal(size=inner), rng.normal(size=2), rng.normal(size=rows)
        a, c, x, y, first = arrays(A, C, b, d, start)
        out = empty(rows)
        for i, total in sums([first, first], (a, x, 1), (c, y, -1)):
            out[i] = total
        np.testing.assert_allclose(out.astype(float), 2 * start + A @ b - C @ d, atol=1e-12)
