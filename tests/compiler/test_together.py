"""Blocks of products of matrices of many states: the bits of one state, whatever the sizes leave over."""

import numpy as np
import pytest

from linkwise.compiler.emit import together
from linkwise.compiler.trace import rolled
from linkwise.language import empty, span, sums
from linkwise.robot.user import kernel_of
from linkwise.solve.factors import solve_lower


def products(A, B):
    """A B column by column, and L⁻¹ of the first columns of that, in one loop."""
    rows, columns = A.shape[0], B.shape[1]
    C, z = empty(rows, columns), empty(rows, columns)
    for j in span(columns, parallel=True):
        for i, total in sums([], (A, B[:, j], 1)):
            C[i, j] = total
        for i in span(rows):
            z[i, j] = C[i, j]
        solve_lower(A[:8, :8], z[:8, j])
    return C, z


@pytest.mark.parametrize(("rows", "inner", "columns"), [(12, 26, 11), (13, 24, 8)])
def test_blocks_of_products_have_the_bits_of_single_states(monkeypatch, rows, inner, columns):
    blocks = []
    written = together.blocks

    def watched(loop):
        found = written(loop)
        blocks.extend(found or [])
        return found

    monkeypatch.setattr(together, "blocks", watched)
    monkeypatch.setattr(rolled, "MOST_NODES", 0)
    kernel = kernel_of(products, {"A": (rows, inner), "B": (inner, columns)})
    rng = np.random.default_rng(rows)
    A, B = rng.normal(size=(13, rows, inner)), rng.normal(size=(13, inner, columns))
    found = kernel(A.reshape(13, -1), B.reshape(13, -1), threads=1)
    assert blocks  # there are some to be judged
    for k in range(13):
        for many, one in zip(found, kernel(A[k].ravel(), B[k].ravel()), strict=True):
            assert np.array_equal(np.asarray(many)[k], one)
    np.testing.assert_allclose(np.asarray(found[0]), A @ B, atol=1e-13)


def test_turns_that_write_to_a_shared_place_stay_whole(monkeypatch):
    """A product whose column is kept in one vector for all turns: the loop is not taken apart."""
    monkeypatch.setattr(rolled, "MOST_NODES", 0)

    def shared(A, B):
        column, C = empty(18), empty(18, 3)
        for j in span(3, parallel=True):  # fewer turns than lanes
            for i, total in sums([], (A, B[:, j], 1)):
                column[i] = total
            for i, total in sums([], (A, column, 1)):
                C[i, j] = total
        return C

    kernel = kernel_of(shared, {"A": (18, 18), "B": (18, 3)})
    rng = np.random.default_rng(1)
    A, B = rng.normal(size=(9, 18, 18)), rng.normal(size=(9, 18, 3))
    found = np.asarray(kernel(A.reshape(9, -1), B.reshape(9, -1), threads=1))
    np.testing.assert_allclose(found, A @ (A @ B), atol=1e-12)
