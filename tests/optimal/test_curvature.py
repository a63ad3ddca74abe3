"""Second derivatives of the dynamics in the solver: against differences, and how quickly it converges with them."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import optimal
from linkwise.compiler.ir.program import trace
from linkwise.compiler.kernel import Kernel
from linkwise.optimal import descent
from linkwise.optimal.descent import LENGTHS, kernel_of
from linkwise.optimal.iterations import REPORT
from strategies import body, direction, pose


def arm(joints: int, rng: np.random.Generator) -> lw.Robot:
    """A random tree with turning and sliding joints, and friction that is smooth."""
    links, made = [lw.Link("base")], []
    for k in range(joints):
        kind = "prismatic" if k == 1 else "continuous"
        limits = lw.Limits(-2.0, 2.0) if kind == "prismatic" else lw.Limits()
        parent = links[int(rng.integers(max(0, k - 1), k + 1))].name
        made.append(lw.Joint(f"joint{k}", kind, parent, f"link{k}", pose(rng), direction(rng), limits=limits))
        links.append(lw.Link(f"link{k}", body(rng)))
    values = {f"joint{k}.viscous_friction": 0.1 for k in range(joints)}
    return lw.Robot(f"tree of {joints}", links, made).with_parameters(values)


def problem_of(robot: lw.Robot, horizon: int = 10, motors=None, **options) -> optimal.Problem:
    target = np.full(robot.dof, 0.5)
    return optimal.Problem(
        robot,
        horizon=horizon,
        step=0.05,
        costs=[optimal.JointTracking(target, 0.1, velocity=0.0, velocity_weight=0.01), optimal.Effort(0.01)],
        terminal=[optimal.JointTracking(target, 100.0, velocity=0.0, velocity_weight=10.0, name="end")],
        motors=motors,
        torque_limits=False,
        **options,
    )


def acrobot(horizon: int = 60) -> optimal.Problem:
    rod = lw.Inertia.from_com(1.0, (0.0, 0.0, -0.5), np.diag([0.083, 0.083, 1e-3]))
    joints = [
        lw.Joint("shoulder", "continuous", "world", "upper", axis=(0, 1, 0)),
        lw.Joint("elbow", "continuous", "upper", "lower", lw.Transform.from_rpy((0, 0, -1.0)), (0, 1, 0)),
    ]
    robot = lw.Robot("acrobot", [lw.Link("world"), lw.Link("upper", rod), lw.Link("lower", rod)], joints)
    return problem_of(robot, horizon, ["elbow"])


@pytest.mark.parametrize("joints", [1, 2, 3])
def test_second_derivatives_are_those_of_differences(joints):
    """Of random robots: ∂²/∂(x, u)² of the weighted next velocities, from exact first derivatives a little aside."""
    rng = np.random.default_rng(joints)
    problem = problem_of(arm(joints, rng))
    d = problem.dynamics
    assert d.bends
    ns, nu, n = problem.ns, problem.nu, d.dof

    def curved(x, u, w):
        H = d.curvature(x, u, w)
        return {"H": [value for row in H for value in row]}

    size = ns + nu
    made = Kernel(
        "curved",
        {"x": ns, "u": nu, "w": n}.items(),
        {"H": (size * size,)}.items(),
        "float64",
        lambda dtype: trace(
            curved, {"x": ns, "u": nu, "w": n}, {"H": (size * size,)}, name="curved", dtype=dtype
        ),
    )
    x, u, w = rng.normal(size=ns), rng.normal(size=nu), rng.normal(size=n)
    H = made(x, u, w).reshape(size, size)
    step = descent.step_of(problem)
    slopes = [step.jacobian(name) for name in ("x", "u")]

    def gradient(z):
        given = (z[:ns], z[ns:], problem.p[0])
        return np.concatenate([w @ np.asarray(slope(*given)).reshape(ns, -1)[d.nq :] for slope in slopes])

    z, eps = np.concatenate([x, u]), 1e-6
    rows = [(gradient(z + eps * e) - gradient(z - eps * e)) / (2 * eps) for e in np.eye(size)]
    scale = np.abs(H).max()
    assert scale > 1e-3 or joints == 1
    assert np.abs(H - rows).max() < 2e-8 * max(scale, 1.0)


def test_near_an_optimum_an_iteration_squares_the_error():
    """Beside the iteration without them, which gains a constant factor."""
    problem = acrobot()
    found = optimal.solve(problem, iterations=500)
    assert found.converged
    rng = np.random.default_rng(0)
    errors = {}
    for curved in (False, True):
        kernel = kernel_of(problem, 1, LENGTHS, curved)
        xs, us = found.states.copy(), found.tau + 1e-3 * rng.normal(size=found.tau.shape)
        # the second iteration begins with a motion that the dynamics allow
        promises = []
        for _ in range(6):
            given = [problem.x0, problem.p.ravel(), xs.ravel(), us.ravel(), np.zeros(1)]
            xs, us, _, report = kernel(*given)
            promises.append(abs(report[REPORT.index("expected")]) / found.cost)
        errors[curved] = np.array(promises)
    assert errors[True][-1] < 1e-20
    assert errors[True][3] < 1e-3 * errors[False][3]
    assert errors[False][-1] > 1e3 * errors[True][-1]


def test_slow_starts_converge_and_none_ends_higher(monkeypatch):
    """Motions that are near an optimum after some iterations go on with second derivatives: fewer iterations, and costs
    that are not above those without."""
    problem = acrobot()
    rng = np.random.default_rng(4)
    starts = problem.x0 + 0.3 * rng.normal(size=(24, 4))
    torques = rng.normal(size=(24, problem.horizon, 1))
    given = {"start": starts, "torques": torques, "iterations": 500, "threads": 1}
    found = optimal.solve_many(problem, **given)
    assert found.converged.all()
    one = optimal.solve(
        problem.with_values({}, start=(starts[0][:2], starts[0][2:])), torques=torques[0], iterations=500
    )
    assert one.cost == found.cost[0]
    monkeypatch.setattr(descent, "PATIENCE", 10**6)
    plain = optimal.solve_many(problem, **given)
    assert found.steps_taken.sum() < 0.8 * plain.steps_taken.sum()
    both = plain.converged
    same = np.abs(found.cost - plain.cost)[both] <= 1e-6 * plain.cost[both]
    assert same.mean() > 0.8
    assert (found.cost[both][same] <= plain.cost[both][same] * (1 + 1e-9)).all()


def test_limits_of_torques_hold_with_second_derivatives(monkeypatch):
    monkeypatch.setattr(descent, "PATIENCE", 3)
    monkeypatch.setattr(descent, "NEAR", 1e-2)
    robot = arm(2, np.random.default_rng(8))
    free = problem_of(robot)
    most = 0.7 * np.abs(optimal.solve(free).tau).max(axis=0)
    problem = optimal.Problem(
        robot,
        horizon=10,
        step=0.05,
        costs=free.costs,
        terminal=free.terminal,
        torque_limits=most.tolist(),
    )
    found = optimal.solve(problem, iterations=300)
    assert found.converged
    assert (np.abs(found.tau) <= most * (1 + 1e-12)).all()
    assert (np.abs(found.tau) > most * (1 - 1e-9)).any()
    monkeypatch.setattr(descent, "PATIENCE", 10**6)
    assert optimal.solve(problem, iterations=300).cost == pytest.approx(found.cost, rel=1e-7)


def test_robots_without_written_out_second_derivatives_are_refused():
    floating = lw.load("two_link", base="floating")
    problem = optimal.Problem(floating, horizon=4, step=0.01, costs=[optimal.Effort(1.0)])
    assert not problem.dynamics.bends
    with pytest.raises(optimal.ProblemError, match="no second derivatives of the dynamics of"):
        optimal.iteration(problem, curved=True)
