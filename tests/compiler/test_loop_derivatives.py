"""Derivatives through loops that stay loops: random programs of random sizes against differences, against those of the
program written out, and with the interpreter's bits on every target."""

import shutil

import numpy as np
import pytest
from test_rolled import interpreted, outputs
from test_wasm import run as run_wasm

import linkwise as lw
from c_functions import call_c
from linkwise.compiler.ir.loops import For, statements
from linkwise.compiler.trace import rolled
from linkwise.compiler.trace.procedure import ProcedureNest
from linkwise.language import array, triangle
from linkwise.scalar import like
from linkwise.solve.factors import ldl, solve

SHORT = 5  # sizes whose derivatives are also written out


def drawn(seed, n, turns=4):
    """A program with nested loops in both directions, values that are overwritten, states, sums and conditions."""

    def function(A, b, c):
        rng = np.random.default_rng(seed)
        C, v, s, T = lw.zeros(n, n), array(b), lw.variable(0.5), lw.zeros(n * (n - 1) // 2 + 1)
        C[:] = A
        for _ in range(4):
            kind = rng.integers(8)
            for i in lw.span(n) if rng.integers(2) else lw.span(n - 1, -1, -1):
                if kind == 0:
                    C[n - 1 - i, :] = A[:, i] * c[0] + b * 0.5
                    for j in lw.span(n - 1 - i, n):
                        v[j] = v[j] * C[n - 1 - i, j] * 0.5 + A[i, n - 1 - j]
                elif kind == 1:
                    for j in lw.span(i):
                        C[i, j] = lw.sin(C[j, i]) - v[j] * A[i, j]
                        v[i] = v[i] * 0.5 + C[i, j]
                elif kind == 2:
                    s += lw.dot(C[i, :], b) * 0.25 / n
                    v[i] = lw.cos(s.value) * v[i]
                elif kind == 3:
                    C[:, i] = C[:, i] * C[:, i] * 0.1 + v
                elif kind == 4:
                    for j in lw.span(i, n):
                        C[j, i] = C[i, j] / (2.0 + s * s) + 0.125 * v[j]
                        C[i, j] = A[j, i] - lw.where(C[j, i] > c[1], C[j, i], C[j, i] * v[i])
                elif kind == 5:
                    for j in lw.span(i):
                        T[triangle(i) + j] = C[i, j] * v[j]
                    v[i] = v[i] * 0.5 + lw.sqrt(2.0 + v[i] * T[0])
                elif kind == 6:
                    product = lw.variable(1.0)
                    for j in lw.span(n):
                        product *= 0.8 + 0.1 * lw.sin(C[i, j] + s)
                    s.value = 0.5 * s + product
                else:
                    v[i] = lw.dot(C[i, :], v) / (4.0 + n + abs(v[i])) + s
            if kind == 7:
                v[:], r = lw.loop(turns, lambda k, x, r: ((C @ x) / (4.0 * n) + b * r, r * c[1]), v, c[0])
                s += r
            v[0] = v[0] * v[n - 1] * 0.5 + s * s * 0.25  # overwritten outside of loops
            s.value = 0.5 * s * s + 0.1 * v[0]
        return {"C": C, "v": v, "s": s}

    return function


def made(function, shapes, monkeypatch, *, loops, unrolled=600):
    monkeypatch.setattr(rolled, "MOST_NODES", 0 if loops else 10**7)
    monkeypatch.setattr(rolled, "UNROLLED", unrolled)
    return lw.kernel(**shapes)(function)


def is_looped(kernel):
    program = kernel.program()
    return isinstance(program, ProcedureNest) and any(isinstance(x, For) for x in statements(program.body))


def close(found, wanted, tolerance):
    scale = 1.0 + max(np.abs(x).max() for x in wanted)
    return all(np.abs(a - b).max() <= tolerance * scale for a, b in zip(found, wanted, strict=True))


def test_derivatives_of_random_programs_of_random_sizes(tmp_path, monkeypatch):
    """Along one direction, back from one weight, and Jacobians by a small and by a large input."""
    looped = 0
    for seed in range(6):
        rng = np.random.default_rng(1000 + seed)
        n = int(rng.integers(2, SHORT)) if seed % 2 else int(rng.integers(2, 41))
        shapes = {"A": (n, n), "b": n, "c": 2}
        kernel = made(drawn(seed, n), shapes, monkeypatch, loops=True, unrolled=int(rng.choice([0, 60, 600])))
        data = [rng.normal(size=size) / n**0.5 for size in (n * n, n, 2)]
        along = [rng.normal(size=x.size) for x in data]
        forward, back = kernel.jvp(), kernel.vjp()
        looped += is_looped(forward) and is_looped(back)
        rates = outputs(forward(*data, *along))
        weights = [rng.normal(size=np.size(x)) for x in rates]
        gradients = outputs(back(*data, *weights))

        h = 1e-6
        ends = [
            outputs(kernel(*(x + sign * h * d for x, d in zip(data, along, strict=True)))) for sign in (1, -1)
        ]
        assert close(rates, [(a - b) / (2 * h) for a, b in zip(*ends, strict=True)], 1e-6), (seed, n)
        sides = [
            sum(np.sum(a.ravel() * b.ravel()) for a, b in zip(*pair, strict=True))
            for pair in ((map(np.asarray, rates), weights), (gradients, along))
        ]
        assert np.isclose(*sides, rtol=1e-9, atol=1e-9), (seed, n)

        derivatives = {forward: (*data, *along), back: (*data, *weights)}
        if n < SHORT:
            jacobians = [kernel.jacobian(name) for name in ("b", "c")]
            derivatives |= {each: tuple(data) for each in jacobians}
            written = made(drawn(seed, n), shapes, monkeypatch, loops=False)
            straight = (written.jvp(), written.vjp(), *(written.jacobian(name) for name in ("b", "c")))
            for mine, other in zip(list(derivatives), straight, strict=True):
                given = derivatives[mine]
                assert close(outputs(mine(*given)), interpreted(other, given), 1e-11), (seed, n, mine.name)
        for each, given in derivatives.items():
            right = interpreted(each, given) if n < 9 else outputs(each(*given))
            for a, b in zip(outputs(each(*given)), right, strict=True):
                assert np.asarray(a).tobytes() == np.asarray(b).tobytes(), (seed, n)
        if seed % 4 == 1:
            folder = tmp_path / str(seed)  # a library that is loaded must not be overwritten
            folder.mkdir()
            for each in (forward, back):
                given = derivatives[each]
                many = outputs(each(*(np.stack([x, x, x]) for x in given)))
                for a, b, c in zip(call_c(each, folder, *given), outputs(each(*given)), many, strict=True):
                    assert a.tobytes() == np.asarray(b).tobytes() == c[2].tobytes(), (seed, n)
                assert "for (" in each.source("cuda")
                if shutil.which("node"):
                    named = dict(zip((name for name, _ in each.inputs), given, strict=True))
                    (found,) = run_wasm(folder, each.program(), [named])
                    for (name, _), b in zip(each.outputs, outputs(each(*given)), strict=True):
                        assert found[name].tobytes() == np.asarray(b).tobytes(), (seed, n)
    assert looped >= 4


def test_gradients_with_more_inputs_than_outputs_are_taken_backwards(monkeypatch):
    """The determinant of a matrix by its elements is its adjugate; second derivatives go through both directions."""
    for n in (2, 5, 17):
        kernel = made(
            lambda A, n=n: lw.loop(n, lambda k, p: p / inverse[k], 1.0) if (inverse := ldl(A)[1]) is not None else None,
            {"A": (n, n)}, monkeypatch, loops=True, unrolled=0,
        )  # fmt: skip
        root = np.random.default_rng(n).normal(size=(n, n)) / n**0.5
        A = root @ root.T + np.eye(n)
        adjugate = np.linalg.det(A) * np.linalg.inv(A)
        both = 2.0 * adjugate - np.diag(np.diag(adjugate))  # the lower half stands for both
        found = kernel.jacobian("A")(A)
        assert np.allclose(found.reshape(n, n), np.tril(both), rtol=1e-10, atol=1e-10 * np.abs(both).max())
        if n == 5:
            second = kernel.jacobian("A").jacobian("A")(A).reshape(n * n, n * n)
            assert np.allclose(second, second.T, atol=1e-8 * np.abs(second).max())
            change = np.tril(root)
            ends = [kernel.jacobian("A")((A + sign * 1e-6 * change).ravel()) for sign in (1, -1)]
            rate = (ends[0] - ends[1]) / 2e-6
            assert np.allclose(second @ change.ravel(), rate, atol=1e-6 * np.abs(rate).max())


def test_sizes_decide_and_the_way_back_stores_little(monkeypatch):
    """Small functions keep one list of operations; of a large one no sums of products are stored: memory grows with the
    matrix, not with the operations."""
    small = lw.kernel(A=(4, 4), b=(4, 1))(lambda A, b: solve(*ldl(A), b))
    assert not isinstance(small.vjp().program(), ProcedureNest)
    middle = lw.kernel(A=(24, 24), b=(24, 1))(lambda A, b: solve(*ldl(A), b))
    assert not isinstance(middle.program(), ProcedureNest)
    assert isinstance(middle.vjp().program(), ProcedureNest)
    n = 40
    large, larger = (lw.kernel(A=(k, k), b=(k, 1))(lambda A, b: solve(*ldl(A), b)) for k in (n, 2 * n))
    back = large.vjp()
    stored = back.program().scratch_scalars(1)
    assert stored < 12 * n * n
    assert larger.vjp().program().scratch_scalars(1) < 4 * stored
    assert back.operations.total < 4 * large.operations.total
    rng = np.random.default_rng(0)
    A, b, weight = rng.normal(size=(n, n)), rng.normal(size=n), rng.normal(size=n)
    A = A @ A.T + n * np.eye(n)
    found = back(A.ravel(), b, weight)
    assert np.allclose(found[1], np.linalg.solve(A, weight), rtol=1e-10)
    outer = -np.outer(found[1], np.linalg.solve(A, b))
    assert np.allclose(found[0].reshape(n, n), np.tril(outer) + np.tril(outer.T, -1), rtol=1e-9, atol=1e-12)


def test_what_loops_cannot_hold_is_written_out(monkeypatch):
    """A value with the derivative of another one, inside of a loop: as before, from the program without loops."""

    def function(x):
        return lw.loop(3, lambda k, y: like(y * 2.0, y * 3.0), x[0])

    kernel = made(function, {"x": 1}, monkeypatch, loops=True, unrolled=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rolled, "MOST_NODES", 10**6)
        wanted = lw.kernel(x=1)(function).jacobian("x")([0.7])
    assert np.array_equal(kernel.jacobian("x")([0.7]), wanted)
    assert np.array_equal(wanted, [27.0])
