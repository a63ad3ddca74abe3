"""One iteration for one problem and for many: the same result over random trees, judged by the functions of the problem
on numbers."""

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import optimal
from linkwise.optimal import dynamics
from strategies import body, direction, pose

STATIONARY = 2e-4  # relative slope along a direction that is left: differences of the cost have round-off


def tree(seed: int, joints: int, base: str) -> lw.Robot:
    """Revolute and prismatic joints, each on any link before it."""
    rng = np.random.default_rng(seed)
    links, built = [lw.Link("base", body(rng))], []
    for k in range(joints):
        parent = links[int(rng.integers(max(0, k - 1), k + 1))].name
        kind = "prismatic" if rng.random() < 0.25 else "revolute"
        built.append(lw.Joint(f"joint{k}", kind, parent, f"link{k}", pose(rng), axis=direction(rng)))
        links.append(lw.Link(f"link{k}", body(rng)))
    robot = lw.Robot("tree", links, built)
    return robot if base == "fixed" else robot.with_base(base)


def posture(robot: lw.Robot, seed: int, horizon: int, **options) -> optimal.Problem:
    rng = np.random.default_rng(seed)
    q0 = robot.integrate(robot.neutral, 0.3 * rng.normal(size=robot.dof))
    goal = robot.integrate(q0, 0.3 * rng.normal(size=robot.dof))
    rate: dict[str, Any] = {"velocity": 0.0, "velocity_weight": 0.1}
    return optimal.Problem(
        robot,
        horizon=horizon,
        step=0.02,
        start=(q0, 0.2 * rng.normal(size=robot.dof)),
        costs=[optimal.JointTracking(goal, 1.0, **rate), optimal.Effort(1e-3)],
        terminal=[optimal.JointTracking(goal, 20.0, velocity=0.0, velocity_weight=1.0)],
        friction=False,
        **options,
    )


def costs_along(found: optimal.Solution, changes: np.ndarray) -> np.ndarray:
    """Costs of the motions whose torques differ by these changes (..., horizon, m)."""
    problem = found.problem
    u = np.moveaxis(found.tau + changes, -1, 0)
    x: Any = [np.full(changes.shape[:-2], value) for value in problem.x0]
    total: Any = 0.0
    for t in range(problem.horizon):
        p = problem.p[t].tolist()
        torques: Any = list(u[..., t])
        total = total + problem.stage_cost(x, torques, p)
        x = problem.next_state(x, torques, p)
    return total + problem.terminal_cost(x, problem.p[-1].tolist())


@pytest.mark.parametrize(
    ("joints", "base", "limited"),
    [(1, "fixed", 4.0), (4, "fixed", False), (8, "fixed", False), (3, "floating", False)],
)
def test_one_and_many_give_the_same_result_over_random_trees(joints, base, limited):
    problem = posture(tree(joints, joints, base), joints, 5, torque_limits=limited)
    rng = np.random.default_rng(0)
    starts = [problem.x0]
    for _ in range(2):
        moved = problem.robot.integrate(
            problem.x0[: problem.robot.nq], 0.2 * rng.normal(size=problem.robot.dof)
        )
        starts.append(problem.state(moved, 0.3 * rng.normal(size=problem.robot.dof)))
    many = optimal.solve_many(problem, start=np.array(starts))
    assert many.converged.all()
    for k, start in enumerate(starts):
        nq = problem.robot.nq
        found = optimal.solve(problem.with_values({}, start=(start[:nq], start[nq:])))
        assert found.converged, found.message
        assert found.cost == many.cost[k]
        assert (found.tau == many.torques[k]).all()
        assert (found.gains == many.gains[k]).all()
        if not limited:
            changes = 1e-4 * rng.normal(size=(6, *found.tau.shape))
            ahead, behind = costs_along(found, changes), costs_along(found, -changes)
            bent = np.abs(ahead + behind - 2.0 * found.cost)  # what a change of this size costs
            assert np.allclose(costs_along(found, 0.0 * changes), found.cost, rtol=1e-10)
            assert (np.abs(ahead - behind) <= STATIONARY * np.sqrt(bent * abs(found.cost))).all()


def test_loops_of_large_robots_give_what_is_written_out(monkeypatch):
    """Derivatives of a step with the mass matrix solved in loops, for fixed and floating trees of four joints."""
    for base in ("fixed", "floating"):
        robot = tree(5, 4, base)
        written = optimal.solve(posture(robot, 1, 3, torque_limits=6.0))
        monkeypatch.setattr(dynamics, "PARTS_FROM", 1)
        looped = optimal.solve(posture(tree(5, 4, base), 1, 3, torque_limits=6.0))
        monkeypatch.undo()
        assert written.converged
        assert looped.converged
        assert looped.cost == pytest.approx(written.cost, rel=1e-9)
        np.testing.assert_allclose(looped.gains, written.gains, atol=1e-6 * np.abs(written.gains).max())


def test_speed_limits_with_weak_motors_converge():
    """Torques at 30 % of the usual ones: augmented Lagrangians of limits got stuck at two of these problems."""
    robot = lw.load("iiwa14")
    effort = 0.3 * np.array([320.0, 320.0, 176.0, 176.0, 110.0, 40.0, 40.0])
    starts, ends = [], []
    for k in range(3):
        rng = np.random.default_rng(k)
        starts.append(rng.uniform(-1, 1, 7))
        ends.append(np.clip(starts[-1] + rng.choice([-1, 1], 7) * rng.uniform(0.5, 1.2, 7), -2, 2))
    problem = optimal.Problem(
        robot,
        horizon=100,
        step=0.01,
        costs=[optimal.Effort(1e-4)],
        terminal=[optimal.JointTracking(ends[0], 1e4, velocity=0.0, velocity_weight=1e3)],
        limits=[optimal.StateLimits(position=False, velocity=1.3)],
        torque_limits=effort,
    )
    many = optimal.solve_many(
        problem,
        start=(np.array(starts), np.zeros(7)),
        values={"joints.target": np.array(ends)},
        iterations=400,
    )
    assert many.converged.all()
    assert (many.violation <= 1e-6).all()
    assert np.abs(many.states[:, 1:, 7:]).max() <= 1.3 + 1e-6
    assert (many.cost < 0.0913).all()
    alone = problem.with_values({"joints.target": ends[1]}, start=(starts[1], np.zeros(7)))
    assert optimal.solve(alone, iterations=400).cost == many.cost[1]


def test_gains_of_a_plan_that_has_converged_stay_what_they_are():
    """Where nothing is left to gain no step is taken: that is no reason to regularise, which would weaken the gains."""
    for name in ("two_link", "puma_valera", "stanford"):
        robot = lw.load(name)
        gains = []
        for first in (25, 80):
            controller = optimal.Predictive(robot, horizon=8, step=0.02, first=first)
            controller.aim({"joints.target": robot.neutral + 0.1})
            controller(0.0, robot.neutral, np.zeros(robot.dof))
            gains.append(controller.plan.gains)
        np.testing.assert_allclose(gains[1], gains[0], atol=1e-6 * np.abs(gains[0]).max(), err_msg=name)


@pytest.mark.parametrize("limited", [False, True])
def test_the_unit_of_cost_does_not_matter(limited):
    """Costs below 1e-15 counted as zero whatever their weights were: a first step was called the optimum."""
    limits = [optimal.StateLimits(([-1.0, -0.8], [0.5, 1.0]), 3.0)] if limited else []
    robot, goal, found = lw.load("two_link"), [0.6, -0.9], []
    for unit in (1.0, 1e-12, 1e-24, 1e-60):
        problem = optimal.Problem(
            robot,
            horizon=10,
            step=0.02,
            costs=[
                optimal.Effort(1e-4 * unit),
                optimal.JointTracking(goal, unit, velocity=0.0, velocity_weight=unit),
            ],
            terminal=[optimal.JointTracking(goal, 100.0 * unit, velocity=0.0, velocity_weight=unit)],
            limits=limits,
            torque_limits=[200.0, 60.0],
        )
        one, many = optimal.solve(problem), optimal.solve_many(problem, start=np.zeros((2, 4)))
        assert one.converged
        assert many.converged.all()
        found.append((one.cost / unit, *(many.cost / unit)))
    np.testing.assert_allclose(found, found[0][0], rtol=1e-8)


def test_a_precision_that_there_is_not_is_refused():
    with pytest.raises(lw.LinkwiseError, match="dtype: expected float64 or float32, got 'float16'"):
        optimal.solve_many(posture(tree(0, 2, "fixed"), 0, 4), dtype="float16")
