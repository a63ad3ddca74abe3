"""Turns of a loop side by side in the lanes of a vector: the last vector repeats turns only where that is harmless."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.emit import turns
from linkwise.compiler.ir.loops import For, statements
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.trace import rolled
from linkwise.compiler.trace.traced_function import TracedFunction
from linkwise.language import empty, span, variable
from linkwise.solve.factors import solve_lower, solve_upper

SHIFTS = (0, 4, 2, 0)


def substituted(A, x, turns, sums_of, places):
    """A row reads places that later turns write: not those of its earlier turns, though loops look so."""
    for j in turns(len(x), parallel=True):
        for i in span(4):
            total = sums_of(x[j])
            for k in span(i):
                total += A[j, k + places[i]]
            A[j, i + places[i]] = total
    return A


def test_turns_whose_places_come_from_tables_are_not_repeated(monkeypatch):
    """Turns side by side may be computed twice at the end of a loop only if they read nothing that they change: two
    places that differ by a constant are not the same loop's places where a table stands between them."""
    monkeypatch.setattr(rolled, "MOST_NODES", 0)
    monkeypatch.setattr(rolled, "UNROLLED", 0)
    for n in (5, 7, 11):

        @lw.kernel(A=(n, 5), x=n)
        def sums(A, x, n=n):
            B, y, table = lw.empty(n, 5), lw.zeros(n), lw.whole_numbers(range(3))
            B[:] = A
            for j in span(n, parallel=True):
                total = variable(0.0)
                for k in span(3):
                    B[j, table[k] + k] = x[j]
                    total += B[j, table[k] + 2]
                y[j] = total
            return y

        A, x = np.random.default_rng(n).normal(size=(n, 5)), np.arange(n) + 0.5
        np.testing.assert_allclose(sums(A, x), A[:, 2] + A[:, 3] + x, atol=1e-13)

        @lw.kernel(A=(n, 6), x=n)
        def substitution(A, x, n=n):
            B = lw.empty(n, 6)
            B[:] = A
            return substituted(B, x, span, variable, lw.whole_numbers(SHIFTS))

        A = np.random.default_rng(n).normal(size=(n, 6))
        wanted = substituted(A.copy(), x, lambda count, parallel: range(count), float, SHIFTS)
        np.testing.assert_allclose(substitution(A, x), wanted, atol=1e-13)


SWEEPS = {  # places that the i-th of m turns inside reads: earlier ones alone, or also some that it has not written yet
    "earlier": lambda m, i, span: span(i),
    "all": lambda m, i, span: span(m),
    "itself": lambda m, i, span: span(i + 1),
    "not the first": lambda m, i, span: span(1, i),
    "earlier, the last first": lambda m, i, span: span(i - 1, -1, -1),
    "later": lambda m, i, span: span(i + 1, m),
    "from itself on": lambda m, i, span: span(i, m),
}


def swept(b, x, of, factor, backward, span, number):
    """x[j, i] = b[j, i] + 0.3 Σ x[j, factor·k], for m of the columns one after the other."""
    m = b.shape[1] // 2
    for j in span(b.shape[0], parallel=True):
        for i in span(m - 1, -1, -1) if backward else span(m):
            total = number(0.0)
            for k in of(m, i, span):
                total += x[j, factor * k]
            x[j, i] = b[j, i] + 0.3 * total
    return x


@pytest.mark.parametrize("name", SWEEPS)
def test_sweeps_over_what_is_there_are_those_of_numpy(name, monkeypatch):
    """Substitutions may be repeated, a Gauss–Seidel sweep may not: what it reads is what it wrote the first time."""
    monkeypatch.setattr(rolled, "MOST_NODES", 0)
    monkeypatch.setattr(rolled, "UNROLLED", 0)
    of = SWEEPS[name]
    for factor, backward in ((1, False), (1, True), (2, False)):
        for n in (5, 11):

            @lw.kernel(b=(n, 10))
            def sweep(b, n=n, factor=factor, backward=backward):
                x = lw.empty(n, 10)
                x[:] = b
                return swept(b, x, of, factor, backward, span, variable)

            b = np.random.default_rng(n).normal(size=(n, 10))
            wanted = swept(
                b, b.copy(), of, factor, backward, lambda *ends, parallel=False: range(*ends), float
            )
            np.testing.assert_allclose(sweep(b), wanted, rtol=1e-12, err_msg=f"{factor} {backward} {n}")


@pytest.mark.parametrize("n", [9, 18, 36])
def test_turns_that_change_what_they_read_are_counted_once(n):
    """Lanes of one state take turns side by side; the last vector may not repeat a turn that adds to what is there."""

    def accumulated(A, b):
        total, kept = empty(n, n), empty(n)
        for i in span(n):
            for j in span(n, parallel=True):
                total[i, j] = A[i, j]
            kept[i] = 0.0
        for _ in span(3):
            for i in span(n):
                for j in span(n, parallel=True):
                    total[i, j] = total[i, j] + A[j, i] * b[j]
            for j in span(n, parallel=True):
                for i in span(1, n):
                    total[i, j] = total[i, j] - 0.5 * total[i - 1, j]
                kept[j] = kept[j] + total[0, j]
        return {"total": total, "kept": kept}

    traced = TracedFunction(accumulated, {"A": (n, n), "b": (n,)}, "accumulated", longest=1, loops=True)
    sizes, shapes = {"A": n * n, "b": n}, {"total": (n, n), "kept": (n,)}
    kernel = Kernel("accumulated", sizes.items(), shapes.items(), "float64", traced.program, None)
    rng = np.random.default_rng(n)
    A, b = rng.normal(size=(n, n)), rng.normal(size=n)
    total, kept = kernel(A.ravel(), b)
    wanted, sums = A.copy(), np.zeros(n)
    for _ in range(3):
        wanted = wanted + A.T * b
        for i in range(1, n):
            wanted[i] -= 0.5 * wanted[i - 1]
        sums += wanted[0]
    assert np.allclose(total, wanted, rtol=1e-12)
    assert np.allclose(kept, sums, rtol=1e-12)
    several = kernel(np.tile(A.ravel(), (3, 1)), np.tile(b, (3, 1)))
    assert all(a.tobytes() == each[1].tobytes() for a, each in zip((total, kept), several, strict=True))


def test_places_that_a_plain_loop_has_written_are_those_of_tiles_after_it(monkeypatch):
    """Systems of equations in place: turns may be repeated after a copy inside of the turn, and not without it."""
    monkeypatch.setattr(rolled, "MOST_NODES", 0)
    monkeypatch.setattr(rolled, "UNROLLED", 0)
    n, m = 9, 11
    rng = np.random.default_rng(3)
    L, b = np.tril(0.3 * rng.normal(size=(n, n)), -1) + np.eye(n), rng.normal(size=(n, m))
    for solved, A in ((solve_lower, L), (solve_upper, L.T)):
        for copied, short in ((True, 0), (True, 1), (False, 0)):

            def function(L, b, solved=solved, copied=copied, short=short):
                x = empty(n, m)
                if not copied or short:
                    x[:] = b
                for j in span(m, parallel=True):
                    for i in span((n - short) if copied else 0):
                        x[i, j] = b[i, j]
                    solved(L, x[:, j])
                return {"x": x}

            traced = TracedFunction(function, {"L": (n, n), "b": (n, m)}, "tiles")
            nest = traced.program("float64")
            around = [each for each in statements(nest.body) if isinstance(each, For) and each.side_by_side]
            loop = max(around, key=lambda each: len(list(statements(each.body))))
            assert loop.repeatable == (copied and not short)
            kernel = Kernel("tiles", [("L", n * n), ("b", n * m)], [("x", (n, m))], "float64", traced.program)
            np.testing.assert_allclose(A @ kernel(L.ravel(), b.ravel()), b, atol=1e-12)


def test_turns_that_begin_later_are_taken_once():
    """Turns from any number to any other, of which none may be repeated and none left out."""
    ends = [(first, stop) for first in (0, 1, 3, 6) for stop in (9, 12, 15, 18)]

    def accumulated(A, b):
        total = empty(len(ends), 18)
        for place, (first, stop) in enumerate(ends):
            for j in span(18):
                total[place, j] = b[j]
            for _ in span(3):
                for j in span(first, stop, parallel=True):
                    total[place, j] = total[place, j] + A[place, j] * b[j]
        return {"total": total}

    inputs = {"A": (len(ends), 18), "b": (18,)}
    traced = TracedFunction(accumulated, inputs, "accumulated", longest=1, loops=True)
    sizes, shapes = {"A": 18 * len(ends), "b": 18}, {"total": (len(ends), 18)}
    kernel = Kernel("accumulated", sizes.items(), shapes.items(), "float64", traced.program, None)
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(len(ends), 18)), rng.normal(size=18)
    wanted = np.tile(b, (len(ends), 1))
    for place, (first, stop) in enumerate(ends):
        wanted[place, first:stop] += 3.0 * A[place, first:stop] * b[first:stop]
    np.testing.assert_allclose(kernel(A.ravel(), b), wanted, rtol=1e-12)


@pytest.mark.parametrize("n", [3, 5, 9, 14, 23])
def test_turns_of_a_number_that_a_loop_around_decides(n, monkeypatch):
    """Rows of a triangle: as vectors where their turns fill one, the last ones twice only where that is harmless; long
    turns are written once, and lanes that are left take the last one, too."""
    monkeypatch.setattr(rolled, "MOST_NODES", 0)
    monkeypatch.setattr(rolled, "UNROLLED", 0)

    def triangles(A, b):
        scaled, added = lw.zeros(n, n), lw.zeros(n, n)
        added[:, :] = A
        for i in span(n):
            for j in span(i, n, parallel=True):
                scaled[i, j] = A[i, j] * b[j]
            for j in span(i + 1, parallel=True):
                added[i, j] = added[i, j] + A[j, i] * b[i]
            for j in span(i + 2, n - 1, parallel=True):
                added[i, j] = added[i, j] - b[j]
        return scaled, added

    rng = np.random.default_rng(n)
    A, b = rng.normal(size=(n, n)), rng.normal(size=n)
    rows, columns = np.indices((n, n))
    scaled = np.where(columns >= rows, A * b, 0.0)
    added = A + np.where(columns <= rows, A.T * b[:, None], 0.0)
    added = added - np.where((columns >= rows + 2) & (columns < n - 1), b, 0.0)
    for long in (turns.LONG, 0):
        monkeypatch.setattr(turns, "LONG", long)
        kernel = lw.kernel(A=(n, n), b=n)(lambda A, b: triangles(A, b)[0] + triangles(A, b)[1])
        one, many = kernel(A, b), kernel(np.tile(A, (9, 1, 1)), np.tile(b, (9, 1)))
        np.testing.assert_allclose(one, scaled + added, atol=1e-14, err_msg=f"{long}")
        np.testing.assert_array_equal(many, np.broadcast_to(one, many.shape))
