"""Loops and matrices inside traced functions: the interpreter's bits on every target, with loops and without."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from test_wasm import run as run_wasm

import linkwise as lw
from c_functions import call_c
from linkwise.compiler.ir.interpret import nest_outputs, run, run_nest
from linkwise.compiler.ir.loops import IfNegative, Step, statements
from linkwise.compiler.ir.program import Program
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.trace import rolled
from linkwise.compiler.trace.procedure import ProcedureNest
from linkwise.compiler.trace.room import in_one_room
from linkwise.compiler.trace.traced_function import TracedFunction
from linkwise.language import array, empty, needed, span, variable, zeros
from linkwise.scalar import maximum, where
from linkwise.solve import quadratic, tridiagonal
from linkwise.solve.factors import ldl, solve
from linkwise.solve.quadratic import interior_point
from linkwise.solve.tridiagonal import solve_tridiagonal

ROUND_OFF = 1e-9  # of systems whose condition is below a few thousand


def definite(rng, *shape):
    A = rng.normal(size=(*shape, shape[-1]))
    return A @ np.swapaxes(A, -1, -2) + shape[-1] * np.eye(shape[-1])


def system(n):
    @lw.kernel(A=(n, n), b=(n, 2))
    def solved(A, b):
        return solve(*ldl(A), b)

    return solved, lambda rng: (definite(rng, n), rng.normal(size=(n, 2)))


def blocks(n):
    N, m = max(2, n // 2), min(n, 8)

    @lw.kernel(D=(N, m, m), E=(N - 1, m, m), b=(N, m))
    def tridiagonal(D, E, b):
        return solve_tridiagonal(D, E, b)

    def given(rng):
        return definite(rng, N, m), 0.3 * rng.normal(size=(N - 1, m, m)), rng.normal(size=(N, m))

    return tridiagonal, given


def programme(n):
    m, k = max(1, n // 5), n + 2

    @lw.kernel(P=(n, n), q=n, A=(m, n), b=m, G=(k, n), h=k)
    def programme(P, q, A, b, G, h):
        x, _, z, residual = interior_point(P, q, A, b, G, h, iterations=14)
        return x, z, residual

    def given(rng):
        A, G, x = rng.normal(size=(m, n)), rng.normal(size=(k, n)), rng.normal(size=n)
        return definite(rng, n), 3 * rng.normal(size=n), A, A @ x, G, G @ x + rng.uniform(0, 1, k)

    return programme, given


def interpreted(kernel, given):
    program = kernel.program()
    if isinstance(program, Program):
        return run(program, *(x.ravel() for x in given))
    arrays = {name: x.ravel() for (name, _), x in zip(kernel.inputs, given, strict=True)}
    arrays |= {
        array.name: np.full(array.columns, np.nan) for array in program.arrays if array.kind == "output"
    }
    run_nest(program, arrays)
    return [arrays[array.name].reshape(shape) for array, (_, shape) in zip(
        [a for a in program.arrays if a.kind == "output"], kernel.outputs, strict=True)]  # fmt: skip


def outputs(found):
    return list(found) if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("make", [system, blocks, programme])
def test_solutions(make):
    """Sizes 2 to 40 on either side of the length at which loops stay loops."""
    kinds = set()
    for n in (2, 5, 13, 40) if make is not programme else (2, 7):
        kernel, given = make(n)
        data = given(np.random.default_rng(n))
        found = outputs(kernel(*data))
        kinds.add(type(kernel.program()))
        if make is system:
            assert np.allclose(data[0] @ found[0], data[1], atol=ROUND_OFF)
        elif make is blocks:
            D, E, b = data
            left = np.einsum("kij,kj->ki", D, found[0])
            left[1:] += np.einsum("kij,kj->ki", E, found[0][:-1])
            left[:-1] += np.einsum("kji,kj->ki", E, found[0][1:])
            assert np.allclose(left, b, atol=ROUND_OFF)
        else:
            P, q, A, b, G, h = data
            x, z, residual = found
            assert residual < 1e-8
            assert np.allclose(A @ x, b, atol=1e-8)
            assert (G @ x - h < 1e-8).all()
            assert (z > -1e-8).all()
            gradient = P @ x + q + G.T @ z
            assert np.abs(gradient - A.T @ np.linalg.lstsq(A.T, gradient, rcond=None)[0]).max() < 1e-6
    assert ProcedureNest in kinds
    assert Program in kinds


@pytest.mark.parametrize("make", [system, blocks, programme])
def test_the_same_bits_on_every_target(make, tmp_path, monkeypatch):
    """Written out and with loops; single states, batches, C, CUDA and WebAssembly against the interpreter."""
    for most in (0, rolled.MOST_NODES):
        monkeypatch.setattr(rolled, "MOST_NODES", most)
        folder = tmp_path / str(most)  # a library that is loaded must not be overwritten
        folder.mkdir()
        kernel, given = make(4 if make is not programme else 2)
        program = kernel.program()
        assert isinstance(program, ProcedureNest if most == 0 else (Program, ProcedureNest))
        states = [given(np.random.default_rng(k)) for k in range(9)]
        wanted = [interpreted(kernel, state) for state in states]
        batch = outputs(kernel(*(np.array(each) for each in zip(*states, strict=True))))
        for k, (state, right) in enumerate(zip(states, wanted, strict=True)):
            for mine, many, value in zip(outputs(kernel(*state)), batch, right, strict=True):
                assert mine.tobytes() == many[k].tobytes() == value.tobytes()
        flat = [x.ravel() for x in states[0]]
        for mine, value in zip(call_c(kernel, folder, *flat), wanted[0], strict=True):
            assert mine.tobytes() == value.tobytes()
        if shutil.which("node"):
            names = [name for name, _ in kernel.inputs]
            (found,) = run_wasm(folder, program, [dict(zip(names, flat, strict=True))])
            for (name, _), value in zip(kernel.outputs, wanted[0], strict=True):
                assert found[name].tobytes() == value.tobytes()


def test_operations_of_small_sizes_are_those_of_code_written_out():
    """n(n−1)(2n−1)/6 … by the textbook: L D Lᵀ without the products of the unit diagonal."""
    for n in (1, 2, 3, 6):
        kernel = lw.kernel(A=(n, n))(lambda A: ldl(A)[1])
        pairs = n * (n - 1) // 2
        inner = sum(j for i in range(n) for j in range(i)) + pairs
        count = kernel.operations
        assert (count.multiplications, count.additions, count.divisions) == (inner + pairs, inner, n)
        # with loops the same multiplications; sums begin at zero, which is an addition more each


def test_loops_with_a_state_and_robots_inside():
    """A rollout of a robot's own dynamics, long enough to stay a loop."""
    robot = lw.load("two_link")

    def rollout(steps):
        @lw.kernel(q=2, qd=2)
        def end(q, qd):
            def step(_, q, qd):
                qdd = robot.forward_dynamics(q, qd, np.zeros(2))
                qd = qd + 0.001 * qdd
                return q + 0.001 * qd, qd

            return lw.loop(steps, step, q, qd)

        return end

    q, qd = np.array([0.3, -0.2]), np.array([0.1, 0.2])
    short, long = rollout(3), rollout(400)
    assert isinstance(long.program(), ProcedureNest)
    for kernel, steps in ((short, 3), (long, 400)):
        a, b = q, qd
        for _ in range(steps):
            b = b + 0.001 * robot.forward_dynamics(a, b, np.zeros(2))
            a = a + 0.001 * b
        assert np.allclose(np.concatenate(kernel(q, qd)), np.concatenate([a, b]), atol=1e-11)


def test_derivatives_go_through_loops(monkeypatch):
    kernel, given = system(4)
    data = given(np.random.default_rng(0))
    J = kernel.jacobian("b")(*data)
    for j in range(8):
        e = np.zeros(8)
        e[j] = 1.0
        assert np.allclose(J[..., j], np.linalg.solve(data[0], e.reshape(4, 2)), atol=1e-12)
    monkeypatch.setattr(rolled, "MOST_NODES", 0)
    again, _ = system(4)
    assert np.allclose(again.jacobian("b")(*data), J, atol=1e-12)


def test_derivatives_through_loops_and_solutions_over_sizes(monkeypatch):
    """A loop that carries a state, and the solution of a system by its matrix: closed forms, with loops and without."""
    for most in (0, rolled.MOST_NODES):
        monkeypatch.setattr(rolled, "MOST_NODES", most)
        for n, turns in ((1, 5), (3, 2), (6, 9)):
            rng = np.random.default_rng(n)
            A, x, b = definite(rng, n) / (8.0 * n), rng.normal(size=n), rng.normal(size=(n, 1))
            power = lw.kernel(A=(n, n), x=n)(
                lambda A, x, turns=turns: lw.loop(turns, lambda k, x: A @ x + 0.5 * x, x)
            )
            wanted = np.linalg.matrix_power(A + 0.5 * np.eye(n), turns)
            assert np.allclose(power.jacobian("x")(A, x), wanted, atol=1e-12)
            solved = lw.kernel(A=(n, n), b=(n, 1))(lambda A, b: solve(*ldl(A), b))
            J = np.asarray(solved.jacobian("A")(A, b)).reshape(n, n, n)
            solution, inverse = np.linalg.solve(A, b)[:, 0], np.linalg.inv(A)
            change = np.tril(rng.normal(size=(n, n)))  # the lower half is read: it stands for both
            both = change + np.tril(change, -1).T
            found = np.einsum("kij,ij->k", J, change)
            assert np.allclose(found, -inverse @ both @ solution, atol=1e-9 * np.abs(inverse).max() ** 2)


def test_what_cannot_be_compiled_as_a_loop_is_refused(monkeypatch):
    monkeypatch.setattr(rolled, "MOST_NODES", 0)
    monkeypatch.setattr(rolled, "UNROLLED", 0)

    def lost(x):
        total = 0.0
        for k in lw.span(3):
            total = total + x[k]
        return total

    def branching(x):
        return [x[k] for k in lw.span(3) if k > 1]

    def left_early(x):
        for k in lw.span(3):
            return x[k]
        return None

    def between(x):
        return lw.loop(3, lambda k, total: total + x[k + 0.5], 0.0)

    def by_range(x):
        for k in lw.span(3):
            for _ in range(k):
                pass
        return x[0]

    for function, word in (
        (lost, "variable"),
        (branching, "compare"),
        (left_early, "left"),
        (between, "integer"),
        (by_range, "span"),
    ):
        with pytest.raises(lw.TraceError, match=word):
            lw.kernel(x=3)(function).program()


def family(seed, n):
    """Sums over the ancestors of every joint of a random tree: tables are places, bounds and places in tables."""
    rng = np.random.default_rng(seed)
    parents = [int(rng.integers(-1, k)) for k in range(n)]
    lists = [[k] for k in range(n)]
    for k, own in enumerate(lists):
        while parents[own[-1]] >= 0:
            own.append(parents[own[-1]])
        assert own[0] == k
    order = [int(k) for k in rng.permutation(n)]

    @lw.kernel(A=(n, n), x=n)
    def sums(A, x):
        starts = lw.whole_numbers(sum(map(len, lists[:k])) for k in range(n + 1))
        carriers, places = lw.whole_numbers(a for own in lists for a in own), lw.whole_numbers(order)
        M, y = lw.zeros(n, n), lw.zeros(n)
        for k in lw.span(n):
            force = lw.sin(x[places[k]])
            for c in lw.span(starts[k], starts[k + 1]):
                a = carriers[c]
                M[k, places[a]] = M[k, places[a]] + force * A[a, k]
                y[a] = 0.5 * y[a] + M[k, places[a]] * x[n - 1 - places[a]]
        return {"M": M, "y": y}

    def wanted(A, x):
        M, y = np.zeros((n, n)), np.zeros(n)
        for k, own in enumerate(lists):
            for a in own:
                M[k, order[a]] += np.sin(x[order[k]]) * A[a, k]
                y[a] = 0.5 * y[a] + M[k, order[a]] * x[n - 1 - order[a]]
        return M, y

    return sums, wanted


def test_tables_of_whole_numbers_on_random_trees(tmp_path, monkeypatch):
    """Against NumPy, the interpreter's bits on every target, and derivatives against differences."""
    for seed, n in enumerate((1, 3, 8)):
        rng = np.random.default_rng(seed)
        A, x, dA, dx = (
            rng.normal(size=(n, n)),
            rng.normal(size=n),
            rng.normal(size=(n, n)),
            rng.normal(size=n),
        )
        for most in (0, rolled.MOST_NODES):
            monkeypatch.setattr(rolled, "MOST_NODES", most)
            monkeypatch.setattr(rolled, "UNROLLED", most)
            kernel, wanted = family(seed, n)
            program = kernel.program()
            assert isinstance(program, Program) == (most > 0)
            right = interpreted(kernel, (A, x))
            many = kernel(np.stack([A, A, A]), np.stack([x, x, x]))
            for mine, batch, value, other in zip(kernel(A, x), many, right, wanted(A, x), strict=True):
                assert mine.tobytes() == batch[2].tobytes() == value.tobytes()
                np.testing.assert_allclose(mine, other, atol=1e-12)
            h, ends = 1e-6, []
            for sign in (1, -1):
                ends.append(
                    np.concatenate([np.ravel(v) for v in wanted(A + sign * h * dA, x + sign * h * dx)])
                )
            rates = kernel.jvp()(A, x, dA.ravel(), dx)
            slope = np.concatenate([np.ravel(rate) for rate in rates])
            np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * h), atol=1e-7)
            weights = [rng.normal(size=np.size(rate)) for rate in rates]
            by_A, by_x = kernel.vjp()(A, x, *weights)
            both = sum(np.sum(weight * np.ravel(rate)) for weight, rate in zip(weights, rates, strict=True))
            assert np.isclose(np.sum(np.reshape(by_A, (n, n)) * dA) + np.sum(by_x * dx), both, atol=1e-10)
            if n != 3:
                continue
            folder = tmp_path / str(most)
            folder.mkdir()
            flat = [A.ravel(), x]
            for mine, value in zip(call_c(kernel, folder, *flat), right, strict=True):
                assert mine.tobytes() == value.tobytes()
            if shutil.which("node"):
                (found,) = run_wasm(folder, program, [{"A": flat[0], "x": x}])
                assert all(
                    found[key].tobytes() == value.tobytes() for key, value in zip("My", right, strict=True)
                )
            assert kernel.source("cuda")
            assert kernel.source("python") == family(seed, n)[0].source("python")


def test_random_programs_are_the_same_with_loops_and_without(monkeypatch):
    """Assignments to rows, columns and single elements in nested loops, in an order that a generator draws."""
    for seed in range(12):

        def function(A, b, seed=seed):
            rng = np.random.default_rng(seed)
            n = 4
            C, v, s = lw.zeros(n, n), lw.zeros(n), lw.variable(0.5)
            for _ in range(6):
                kind = rng.integers(6)
                for i in lw.span(n) if rng.integers(2) else lw.span(n - 1, -1, -1):
                    if kind == 0:
                        C[i, :] = A[:, i] + b * 0.5
                    elif kind == 1:
                        for j in lw.span(i):
                            C[i, j] = C[j, i] - v[j] * A[i, j]
                            v[i] = v[i] + C[i, j]
                    elif kind == 2:
                        s += lw.dot(C[i, :], b) * 0.25
                        v[i] = s.value
                    elif kind == 3:
                        C[:, i] = C[:, i] * 0.5 + v
                    elif kind == 4:
                        for j in lw.span(i, n):
                            C[j, i] = C[i, j] + 0.125 * s
                            C[i, j] = A[j, i] - C[j, i]
                    else:
                        v[:] = C @ b - v * 0.5
            return C, v, s

        rng = np.random.default_rng(100 + seed)
        data = rng.normal(size=(4, 4)), rng.normal(size=4)
        results = []
        for most in (0, 10**6):
            monkeypatch.setattr(rolled, "MOST_NODES", most)
            kernel = lw.kernel(A=(4, 4), b=4)(function)
            results.append(kernel(*data))
            assert all(
                a.tobytes() == b.tobytes()
                for a, b in zip(kernel(*data), interpreted(kernel, data), strict=True)
            )
        plain = function(*data)
        for a, b, c in zip(
            *results, (plain[0].astype(float), plain[1].astype(float), plain[2].value), strict=True
        ):
            assert np.allclose(a, b, rtol=1e-12, atol=1e-12)
            assert np.allclose(a, c, rtol=1e-12, atol=1e-12)


def newton(constant_time=False):
    """Square roots by Newton's method: a state stops where the last step changed nothing."""

    def roots(x):
        y, turns, still = zeros(3), zeros(1), variable(-1.0)
        for i in span(3):
            y[i] = x[i] + 1.0
        for _ in span(40):
            for _ in needed(still):
                most = variable(0.0)
                for i in span(3):
                    following = 0.5 * (y[i] + x[i] / y[i])
                    most.value = where(still.value < 0.0, maximum(most.value, y[i] - following), 0.0)
                    y[i] = where(still.value < 0.0, following, y[i])
                turns[0] = turns[0] + where(still.value < 0.0, 1.0, 0.0)
                still.value = where(most.value > 1e-12, -1.0, 1.0)
        return {"y": y, "turns": turns}

    traced = TracedFunction(roots, {"x": (3,)}, "roots", longest=1, loops=True, constant_time=constant_time)
    shapes = {"y": (3,), "turns": (1,)}
    made = Kernel(
        "roots", [("x", 3)], shapes.items(), "float64", lambda p: in_one_room(traced.program(p)), None
    )
    return made, roots


def test_work_that_finished_states_leave_out_does_not_change_their_bits(tmp_path):
    """States that need 5 to 25 turns, side by side and alone, on every target, with and without leaving work out."""
    kernel, roots = newton()
    x = 10.0 ** np.random.default_rng(3).uniform(-8.0, 8.0, size=(37, 3))
    y, turns = kernel(x)
    assert np.allclose(y, np.sqrt(x), rtol=1e-9)
    assert np.unique(turns).size > 5
    always = newton(constant_time=True)[0]
    assert any(isinstance(s, IfNegative) for s in statements(kernel.program().body))
    assert not any(isinstance(s, IfNegative) for s in statements(always.program().body))
    assert kernel.operations == always.operations
    for k in range(0, 37, 6):
        plain = roots(x=np.array(x[k].tolist(), object))
        for first, second in (kernel(x[k]), always(x[k]), interpreted(kernel, (x[k],))):
            assert first.tobytes() == y[k].tobytes()
            assert second.tobytes() == turns[k].tobytes()
        assert np.asarray(plain["y"], float).tobytes() == y[k].tobytes()
    for number, constant in enumerate((False, True)):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert ("if (s" in kernel.source("c", constant_time=constant)) is not constant
        for mine, value in zip(call_c(kernel, folder, x[3]), (y[3], turns[3]), strict=True):
            assert mine.tobytes() == value.tobytes()

    def inside(x):
        still = variable(-1.0)
        for i in span(3, parallel=True):
            for _ in needed(still):
                x[i] = 1.0
        return {"y": x}

    with pytest.raises(lw.TraceError, match="parallel"):
        TracedFunction(inside, {"x": (3,)}, "inside", longest=1, loops=True)


def test_results_in_place_have_their_own_order():
    """A whole array is the output itself; a transposed or partial one is written to it."""

    def parts(x):
        a = empty(2, 3)
        for i in span(2):
            for j in span(3):
                a[i, j] = x[3 * i + j] * 2.0
        b = empty(2, 3)
        for i in span(2):
            for j in span(3):
                b[i, j] = x[3 * i + j] + 1.0
        return {"whole": a, "turned": b.T, "row": b[1, :]}

    x = np.arange(6.0)
    traced = TracedFunction(parts, {"x": (6,)}, "parts", longest=1, loops=True, in_place=True)
    found = nest_outputs(traced.program("float64"), {"x": x})
    b = x.reshape(2, 3) + 1.0
    for key, expected in (("whole", 2.0 * x), ("turned", b.T), ("row", b[1])):
        np.testing.assert_array_equal(np.ravel(found[key]), np.ravel(expected), err_msg=key)


def test_methods_in_the_language_are_short():
    """What the language is for: methods read like their formulas. Counts of the programme are those of the code that
    was written out, and with loops no more."""
    for module in (quadratic, tridiagonal):
        assert len(Path(module.__file__).read_text(encoding="utf-8").splitlines()) < 80
    counts = {2: (2065, 2148, 539), 3: (3567, 3597, 674), 7: (15836, 14892, 1260)}
    for n, most in counts.items():
        count = programme(n)[0].operations
        assert (count.multiplications, count.additions, count.divisions) <= most
        assert (count.additions, count.divisions) == most[1:]


def test_programmes_without_equations(monkeypatch):
    """Arrays without elements need no case of their own, with loops and without."""
    for most in (0, rolled.MOST_NODES):
        monkeypatch.setattr(rolled, "MOST_NODES", most)
        for n in (2, 5):

            @lw.kernel(P=(n, n), q=n, G=(n + 1, n), h=n + 1)
            def free(P, q, G, h, n=n):
                none = array(np.zeros((0, n))), array(np.zeros(0))
                x, y, z, residual = interior_point(P, q, *none, G, h, iterations=14)
                assert y.shape == (0,)
                return x, z, residual

            rng = np.random.default_rng(n)
            P, q, G = definite(rng, n), 3 * rng.normal(size=n), rng.normal(size=(n + 1, n))
            h = rng.uniform(0, 1, n + 1)
            x, z, residual = free(P, q, G, h)
            assert residual < 1e-8
            assert (G @ x - h < 1e-8).all()
            assert np.abs(P @ x + q + G.T @ z).max() < 1e-7
            assert np.abs(z * (G @ x - h)).max() < 1e-7


def test_steps_of_unrolled_loops_stay_short(monkeypatch):
    """Values of a step are in registers: turns of an unrolled loop are divided into steps, also of loops in loops."""
    monkeypatch.setattr(rolled, "MOST_NODES", 0)
    monkeypatch.setattr(rolled, "UNROLLED", 10**6)
    for inner in (1, 5):

        def function(x, inner=inner):
            y = empty(40)
            for i in span(40):
                total = lw.variable(x[i])
                for j in span(inner):
                    total += lw.sin(x[i] * x[j]) * x[i + j]
                for _ in range(10):
                    total.value = total * x[i] + 0.5
                y[i] = total.value
            for i in span(1, 40):  # another loop keeps the program one with loops
                y[i] = y[i] + 0.5 * y[i - 1]
            return y

        program = lw.kernel(x=45)(function).program()
        lengths = [len(step.body) for step in statements(program.body) if isinstance(step, Step)]
        assert sum(lengths) > 8 * rolled.SPLIT
        assert max(lengths) <= 4 * rolled.SPLIT  # sines are written out later
