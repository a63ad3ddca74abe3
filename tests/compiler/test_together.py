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


@pytest.mark.parametrize("columns", [3, 6])
def test_sums_of_few_columns_have_their_rows_side_by_side(monkeypatch, columns):
    """Three columns fill no vector of one state: the loops change places, and the bits stay the same."""
    monkeypatch.setattr(rolled, "MOST_NODES", 0)

    def sparse(A, B):
        C = empty(18, columns)
        for j in span(columns, parallel=True):
            for i, total in sums([], (A[:, :14], B[:14, j], 1), (A[:, 20:], B[20:, j], 1)):
                C[i, j] = -total
        return C

    exchanged = []
    written = together.exchanged

    def watched(loop):
        found = written(loop)
        exchanged.append(found is not loop)
        return found

    monkeypatch.setattr(together, "exchanged", watched)
    kernel = kernel_of(sparse, {"A": (18, 32), "B": (32, columns)})
    rng = np.random.default_rng(columns)
    A, B = rng.normal(size=(9, 18, 32)), rng.normal(size=(9, 32, columns))
    many = np.asarray(kernel(A.reshape(9, -1), B.reshape(9, -1), threads=1))
    one = np.array([kernel(a.ravel(), b.ravel()) for a, b in zip(A, B, strict=True)])
    assert any(exchanged) == (columns == 3)
    assert np.array_equal(many, one)
    known = [*range(14), *range(20, 32)]
    np.testing.assert_allclose(many, -(A[:, :, known] @ B[:, known]), atol=1e-13)


def test_rows_of_one_state_are_copied_number_by_number(monkeypatch):
    """Turns that copy a row each do not run side by side: numbers would become lanes, and rows again."""
    monkeypatch.setattr(rolled, "MOST_NODES", 0)
    monkeypatch.setattr(rolled, "UNROLLED", 100)

    def copied(A):
        B, total = empty(11, 13), empty(11, 13)
        B[:, :] = A
        for k in span(11):
            for i in span(13):
                total[k, i] = 2.0 * B[10 - k, i]
        return total

    kernel = kernel_of(copied, {"A": (11, 13)})
    A = np.random.default_rng(3).normal(size=(9, 11, 13))
    many = np.asarray(kernel(A.reshape(9, -1), threads=1))
    assert np.array_equal(many, 2.0 * A[:, ::-1])
    assert np.array_equal(np.asarray(kernel(A[0].ravel())), 2.0 * A[0, ::-1])
    assert "insertelement" not in kernel.native_program("float64").text(1)
