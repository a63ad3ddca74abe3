"""Iterations of the solver as one program: the same bits everywhere, and the same step as dense matrices give."""

import re
import shutil
import subprocess

import numpy as np
import pytest

import linkwise as lw
from linkwise import optimal
from linkwise.compiler.ir.interpret import run_nest
from linkwise.optimal import (
    Effort,
    JointTracking,
    Problem,
    StateLimits,
    TipTracking,
    acceptance,
    iteration,
    solve,
    solve_many,
)
from linkwise.optimal.arguments import ProblemError
from linkwise.optimal.iterations import REPORT
from research import time_scan


def reach(horizon: int, **options) -> Problem:
    """A small arm towards a point, with weights of joints, speeds and torques."""
    robot = lw.load("two_link")
    q0 = np.array([0.3, 0.5])
    tip = np.asarray(robot.pose(q0 + 0.4))[:3, 3]
    costs = [
        TipTracking(tip, position=5.0),
        JointTracking(q0, weight=1e-2, velocity=0.0, velocity_weight=1e-2),
        Effort(weight=1e-3),
    ]
    ends = [TipTracking(tip, position=200.0)]
    return Problem(
        robot, horizon=horizon, step=0.02, start=(q0, [0.1, -0.2]), costs=costs, terminal=ends, **options
    )


def given(problem: Problem, count: int = 1) -> list[np.ndarray]:
    """Inputs of the kernel for so many problems, with gaps in the first trajectory."""
    N, rng = problem.horizon, np.random.default_rng(1)
    starts = problem.x0 + 0.05 * rng.standard_normal((count, problem.ns))
    states = np.repeat(starts[:, None], N + 1, 1) + 0.01 * rng.standard_normal((count, N + 1, problem.ns))
    torques = 0.1 * rng.standard_normal((count, N * problem.nu))
    tables = np.tile(problem.p.ravel(), (count, 1))
    return [starts, tables, states.reshape(count, -1), torques, np.full((count, 1), 1e-3)]


@pytest.fixture(scope="module", params=[False, 13.0], ids=["free", "boxed"])
def made(request):
    problem = reach(5, torque_limits=request.param, friction=False)
    return problem, iteration(problem, iterations=2)


def test_one_many_c_and_interpreter_have_the_same_bits(made, tmp_path):
    problem, kernel = made
    inputs = given(problem, 6)
    many = kernel(*inputs)
    for k in (0, 5):
        one = kernel(*(array[k] for array in inputs))
        assert all((a[k] == b).all() for a, b in zip(many, one, strict=True))
    nest, arrays = kernel.program(), {}
    for (name, _), value in zip(kernel.inputs, inputs, strict=True):
        arrays[name] = value[5].copy()
    for name, shape in kernel.outputs:
        arrays[name] = np.full(int(np.prod(shape)), np.nan)
    run_nest(nest, arrays)
    for (name, _), value in zip(kernel.outputs, many, strict=True):
        assert (arrays[name] == value[5].ravel()).all(), name
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no gcc")
    source = tmp_path / "iteration.c"
    text = kernel.source("c", main=True)
    assert re.search(r"Memory that the caller gives \(tmp\), of any content: \d+ numbers, \d+ bytes\.", text)
    assert not re.search(r"\b(malloc|calloc|alloca)\b", text)
    source.write_text(text)
    options = ["-std=c99", "-O1", "-march=native", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    subprocess.run([compiler, *options, str(source), "-o", str(tmp_path / "it"), "-lm"], check=True)
    numbers = " ".join(repr(float(x)) for array in inputs for x in array[5])
    out = subprocess.run(
        [str(tmp_path / "it")], input=numbers, capture_output=True, text=True, check=True
    ).stdout
    assert (np.array(out.split(), float) == np.concatenate([value[5].ravel() for value in many])).all()


def test_a_step_is_that_of_dense_matrices():
    """K of the kernel against Riccati's recursion with the derivatives of the dynamics by differences."""
    problem = reach(4, torque_limits=False, friction=False)
    inputs = [array[0] for array in given(problem)]
    kernel = iteration(problem, iterations=1, steps=[1.0])
    *_, gains, report = kernel(*inputs)
    start, table, states, torques, mu = inputs
    N, n, m = 4, 4, 2
    p, xs, us = table.reshape(N + 1, -1), states.reshape(N + 1, n).copy(), torques.reshape(N, m)
    xs[0] = start

    def cost(z: np.ndarray, k: int) -> float:
        if k == N:
            return float(problem.terminal_cost(list(z[:n]), list(p[N])))
        return float(problem.stage_cost(list(z[:n]), list(z[n:]), list(p[k])))

    def step(z: np.ndarray) -> np.ndarray:
        return np.array(problem.next_state(list(z[:n]), list(z[n:]), ()), float)

    V = _gauss_newton(problem, xs[N], None, p[N])
    expected = np.empty((N, m, n))
    for k in reversed(range(N)):
        z = np.concatenate([xs[k], us[k]])
        A = np.stack([(step(z + d) - step(z - d)) / 2e-6 for d in 1e-6 * np.eye(n + m)], axis=1)
        T = np.vstack([problem.step * np.eye(2), np.eye(2)])
        near = mu[0] * np.diag(np.abs(np.diag(T.T @ V @ T)))
        Q = _gauss_newton(problem, xs[k], us[k], p[k]) + A.T @ V @ A + A[2:].T @ near @ A[2:]
        Q[n:, n:] += mu[0] * np.diag(np.diag(Q[n:, n:]))
        expected[k] = -np.linalg.solve(Q[n:, n:], Q[n:, :n])
        V = Q[:n, :n] + Q[:n, n:] @ expected[k]
    np.testing.assert_allclose(gains, expected, rtol=2e-6, atol=1e-8)
    first = sum(cost(np.concatenate([xs[k], us[k]]), k) for k in range(N)) + cost(xs[N], N)
    after = dict(zip(REPORT, report, strict=True))
    assert after["accepted"] == 1
    assert after["gap"] < 1e-12
    assert np.isfinite(first)


def _gauss_newton(problem: Problem, x, u, p) -> np.ndarray:
    """Hessian of the cost, from the graph."""
    from linkwise.compiler.ir.interpret import run
    from linkwise.compiler.ir.program import trace

    size = problem.nx + (0 if u is None else problem.nu)

    def function(x, p, u=None):
        made = problem.terminal_quadratic(x, p) if u is None else problem.stage_quadratic(x, u, p)
        return {"hessian": made.hessian}

    sizes = {"x": problem.ns, "p": problem.np} | ({} if u is None else {"u": problem.nu})
    program = trace(function, sizes, {"hessian": (size, size)})
    return run(program, x, p, *([] if u is None else [u]))[0]


@pytest.mark.parametrize("count", [1, 2, 6])
def test_the_scan_over_time_gives_the_value_functions_of_the_sweep(count):
    rng, n, m = np.random.default_rng(count), 4, 2
    stages, plain = [], []
    for _ in range(count):
        A, B, gap = rng.standard_normal((n, n)), rng.standard_normal((n, m)), rng.standard_normal(n)
        factor = rng.standard_normal((n + m, n + m))
        hessian, gradient = factor @ factor.T, rng.standard_normal(n + m)
        stages.append(time_scan.stage_run(A, B, gap, gradient, hessian))
        plain.append((A, B, gap, gradient, hessian))
    V, v = np.diag(rng.uniform(1.0, 2.0, n)), rng.standard_normal(n)
    found = time_scan.value_functions(stages, time_scan.end_run(v, V))
    for (A, B, gap, gradient, hessian), (mine, own) in zip(reversed(plain), reversed(found), strict=True):
        AB = np.hstack([A, B])
        Q, g = hessian + AB.T @ V @ AB, gradient + AB.T @ (v + V @ gap)
        K = np.linalg.solve(Q[n:, n:], np.column_stack([Q[n:, :n], g[n:]]))
        V, v = Q[:n, :n] - Q[:n, n:] @ K[:, :n], g[:n] - Q[:n, n:] @ K[:, -1]
        np.testing.assert_allclose(own, V, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(mine, v, rtol=1e-8, atol=1e-8)


def test_it_converges_and_keeps_torque_limits():
    problem = reach(30, torque_limits=13.0, friction=False)
    rng = np.random.default_rng(0)
    starts = (np.array([0.3, 0.5]) + 0.2 * rng.standard_normal((5, 2)), np.zeros(2))
    found = solve_many(problem, start=starts)
    assert found.converged.all()
    assert found.torques.shape == (5, 30, 2)
    assert (np.abs(found.torques) <= 13.0).all()
    assert (np.abs(found.torques) == 13.0).any()
    alone = Problem.with_values(problem, {}, start=(starts[0][2], starts[1]))
    assert abs(solve(alone).cost - found.cost[2]) < 1e-6 * found.cost[2]
    again = solve_many(problem, start=(starts[0][2], starts[1]))
    assert (again.torques == found.torques[2]).all()
    with pytest.raises(ValueError, match="iterations: expected a whole number from 1 on"):
        solve_many(problem, start=starts, iterations=0)
    nearer = solve_many(problem, start=starts, values={"effort.weight": [[1.0, 1.0]] * 5})
    assert (np.abs(nearer.torques).sum((1, 2)) < np.abs(found.torques).sum((1, 2))).all()


def test_a_lane_that_fails_keeps_finite_torques_and_is_flagged():
    problem = reach(5, friction=False)
    kernel = iteration(problem, iterations=3)
    inputs = given(problem, 4)
    inputs[0][1] = np.nan
    inputs[2][2, 3] = np.inf
    inputs[3][2, 0] = np.nan
    states, torques, _, report = kernel(*inputs)
    assert np.isfinite(torques).all()
    assert np.isfinite(states[[0, 2, 3]]).all()
    cost = report[:, REPORT.index("cost")]
    assert np.isnan(cost[1])
    assert np.isfinite(cost[[0, 2, 3]]).all()
    assert report[1, REPORT.index("accepted")] == 0
    with pytest.raises(ProblemError, match="states: expected finite"):
        solve_many(problem, states=np.full((6, 4), np.nan))
    with pytest.raises(ProblemError, match="steps"):
        iteration(problem, steps=[])
    with pytest.raises(Exception, match="iterations"):
        iteration(problem, iterations=0)


def test_limits_of_states_hold_as_the_solvers_do():
    robot = lw.load("two_link")
    goal = JointTracking([0.6, -0.3], weight=50.0, velocity=0.0, velocity_weight=1.0)
    problem = Problem(
        robot,
        horizon=6,
        step=0.02,
        costs=[goal, Effort(weight=1e-3)],
        terminal=[goal],
        limits=[StateLimits(position=None, velocity=1.0)],
    )
    found = solve_many(problem, start=([[0.0, 0.0], [0.2, 0.1]], [0.0, 0.0]))
    assert found.converged.all()
    assert (found.violation < 1e-6).all()
    assert (np.abs(found.states[..., 2:]).max((1, 2)) > 0.999).all()  # the limit is reached
    alone = solve(problem.with_values({}, start=([0.2, 0.1], [0.0, 0.0])))
    assert abs(alone.cost - found.cost[1]) < 1e-6 * alone.cost


def test_step_sizes_that_are_left_out_change_no_bit():
    """Lanes in which the longest step is taken beside lanes in which it is not, and each of them alone."""
    robot = lw.load("two_link")
    target = [2.5, -1.0]
    problem = optimal.Problem(
        robot,
        horizon=20,
        step=0.05,
        costs=[optimal.Effort(1e-3), optimal.JointTracking(target, 0.1, velocity=0.0)],
        terminal=[optimal.JointTracking(target, 100.0, velocity=0.0, velocity_weight=1.0)],
        torque_limits=[12.0, 4.0],
    )
    rng = np.random.default_rng(5)
    states = np.tile(problem.x0, (19, 21, 1))
    states[:, 1:] += 0.5 * rng.normal(size=(19, 20, problem.ns)) * (np.arange(19) % 3)[:, None, None]
    torques = 4.0 * rng.normal(size=(19, 20, 2))
    given = [states[:, 0], np.tile(problem.p.ravel(), (19, 1)), states.reshape(19, -1)]
    given += [torques.reshape(19, -1), np.zeros((19, 1))]
    steps = (1.0, 0.5, 0.25, 0.125, 0.0625)
    always, some = (
        optimal.iteration(problem, iterations=2, steps=steps, constant_time=flag) for flag in (True, False)
    )
    whole, few = always(*given, threads=1), some(*given, threads=1)
    sizes = np.asarray(whole[3])[:, REPORT.index("step")]
    assert (sizes == 1.0).any()
    assert (sizes < 1.0).any()
    for a, b in zip(whole, few, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    for k in (0, 4, 11):
        for a, b in zip(whole, some(*(array[k] for array in given)), strict=True):
            assert np.asarray(a)[k].tobytes() == np.asarray(b).tobytes()


def test_a_step_that_closes_gaps_may_cost_what_the_docstring_says():
    """Twice what the quadratic model says and half of what the torques promise; more is refused."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        cost, gap, expected = 10.0 * rng.normal(), rng.uniform(0.1, 5.0), -rng.uniform(0.0, 5.0)
        closing = 5.0 * rng.normal()
        weight = acceptance.weight(gap, expected, closing, 1e-12)
        most = cost + 2.0 * max(closing + 0.5 * expected, 0.0) + 0.5 * abs(expected)
        before = acceptance.merit(cost, gap, weight)
        assert acceptance.merit(most, 0.0, weight) == pytest.approx(before, abs=1e-9)
