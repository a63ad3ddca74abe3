"""Options that other tests leave at their defaults, each beside what it means."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import collision, control, motion, optimal

START = ([0.2, -0.4], [0.3, 0.1])
GOAL = optimal.JointTracking([0.5, 0.3], 20.0)


def arm():
    return lw.load("two_link")


def solved(costs, **options):
    given = {"horizon": 5, "step": 0.04, "start": START, "terminal": [GOAL], "torque_limits": False}
    return optimal.solve(optimal.Problem(arm(), costs=costs, **(given | options)))


def end(found):
    return 10.0 * ((found.q[-1] - [0.5, 0.3]) ** 2).sum()


def test_differences_of_torques_begin_with_the_last_one():
    last = np.array([3.0, -2.0])
    for given in (last, None):
        costs = [optimal.Effort(0.01), optimal.Smoothness([1e-4, 3e-4], of="torque")]
        found = solved(costs, last_torque=given)
        before = np.vstack([np.zeros(2) if given is None else last, found.tau[:-1]])
        rates = (found.tau - before) / 0.04
        paid = 0.04 * 0.5 * (0.01 * found.tau**2 + [1e-4, 3e-4] * rates**2).sum()
        assert found.cost == pytest.approx(paid + end(found), rel=1e-9)


def test_efforts_by_a_matrix():
    S, target = np.array([[0.2, 0.05], [-0.1, 0.3]]), np.array([1.0, -0.5])
    for scale, matrix in ((S, S), ([0.2, 0.3], np.diag([0.2, 0.3])), (0.4, 0.4 * np.eye(2))):
        found = solved([optimal.ScaledEffort(scale, target)])
        paid = 0.04 * 0.5 * (((found.tau - target) @ matrix.T) ** 2).sum()
        assert found.cost == pytest.approx(paid + end(found), rel=1e-9)


def test_numbers_of_own_costs_are_one_for_all_or_one_row_for_each_stage():
    """Of any size, with more or fewer rows than numbers."""

    def cost(q, qd, tau, target, weight):
        away = q - target[:2] + 0.0 * target[2]
        return weight[0] * (away @ away) + (0.0 if tau is None else 1e-3 * (tau @ tau))

    rows = np.linspace([0.2, -0.4, 1.0], [0.5, 0.3, 2.0], 6)
    for target in (rows[0], rows):
        values = {"target": target, "weight": 3.0}
        problem = optimal.Problem(
            arm(), horizon=5, step=0.04, start=START, costs=[optimal.Own(cost, values)], torque_limits=False
        )
        assert problem.where("own.target").stop - problem.where("own.target").start == 3
        given = rows[:5] if target.ndim == 2 else [target] * 5
        np.testing.assert_array_equal(problem.p[:5, problem.where("own.target")], given)
        found = optimal.solve(problem)
        way = np.broadcast_to(target, (6, 3))[:5, :2]
        paid = 0.04 * (3.0 * ((found.q[:-1] - way) ** 2).sum() + 1e-3 * (found.tau**2).sum())
        assert found.cost == pytest.approx(paid, rel=1e-9)


@pytest.mark.parametrize(("side", "axis"), [("lower", 1), ("upper", 0), ("upper", 1)])
def test_sides_of_a_box_for_the_tip(side, axis):
    """Without the limit the tip passes the bound; with it, it does not."""
    free = solved([optimal.Effort(1e-3)], horizon=10)
    way = np.array([arm().pose(q)[axis, 3] for q in free.q])
    middle = 0.5 * (way.min() + way.max())
    side_of = {"lower": -1.0, "upper": 1.0}[side]
    bound = [side_of * np.inf] * 3
    bound[axis] = middle if side_of * (middle - way[0]) > 0 else way[0] + side_of * 1e-3
    found = solved([optimal.Effort(1e-3)], horizon=10, limits=[optimal.TipLimits(**{side: bound})])
    kept = np.array([arm().pose(q)[axis, 3] for q in found.q[1:]])
    assert (side_of * (kept - bound[axis]) < 1e-5).all()


def test_limits_of_states_are_kept_to_the_tolerance_that_is_given():
    limits = [optimal.StateLimits(position=(-9.0, [0.45, 0.2]), velocity=None)]
    counts = []
    for tolerance in (1e-2, 1e-7):
        found = optimal.solve(
            optimal.Problem(
                arm(),
                horizon=8,
                step=0.04,
                start=START,
                costs=[optimal.Effort(1e-3)],
                terminal=[GOAL],
                limits=limits,
            ),
            limit_tolerance=tolerance,
        )
        assert found.converged
        assert (found.q - [0.45, 0.2]).max() <= tolerance
        counts.append(found.iterations)
    assert counts[0] < counts[1]


def test_rounds_of_smoothing_are_a_geometric_row():
    found = optimal.ThroughContact(smoothing=0.8, sharpest=0.05, rounds=5).stages()
    np.testing.assert_allclose(found, 0.8 * 0.5 ** np.arange(5), rtol=1e-12)
    assert optimal.ThroughContact(smoothing=0.8, sharpest=0.05, rounds=1).stages() == [0.8]


@pytest.mark.parametrize("threads", [1, 2])
def test_shortest_times_do_not_depend_on_threads(threads):
    ways = np.random.default_rng(0).uniform(-1.0, 1.0, (5, 4, 2))
    options = {"torque": [60.0, 30.0], "velocity": 2.0}
    found = motion.time_optimal(arm(), ways, threads=threads, **options)
    np.testing.assert_array_equal(found.durations, motion.time_optimal(arm(), ways, **options).durations)


def test_projections_stay_in_the_box_that_is_given():
    robot = lw.load("panda")
    rng = np.random.default_rng(2)
    middle = np.array([0.1, -0.3, 0.2, -1.8, 0.1, 1.7, 0.4])
    keep = motion.Keep(axis=(0, 0, 1), direction=(0, 0, -1), tilt=0.1)
    box = middle - 0.4, middle + 0.4
    q, good = keep.projected(robot, middle + rng.uniform(-0.4, 0.4, (20, 7)), between=box)
    assert good.any()
    assert (q >= box[0]).all()
    assert (q <= box[1]).all()
    assert (keep.error(robot, q[good]) <= 1.0).all()


def test_separations_brake_as_they_are_told():
    robot = lw.load("ur10e")
    clearance = collision.Clearance(robot, collision.Room())
    for given in (2.0, 7.5):
        found = control.separations_of(clearance, margin=0.03, deceleration=given)
        assert found
        assert {(each.margin, each.deceleration) for each in found} == {(0.03, given)}


def test_targets_of_whole_bodies_in_single_precision():
    robot = lw.random_robot(5, 4, joints="R")
    law = control.WholeBody(robot, [control.PoseTask(robot.default_frame()), control.PostureTask(weight=0.1)])
    rng = np.random.default_rng(1)
    given = rng.normal(size=(3, 6, 4))
    double, single = (law.reference_kernel(dtype)(*given.astype(dtype)) for dtype in ("float64", "float32"))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, double, atol=2e-6 * np.abs(double).max())
    np.testing.assert_allclose(double, [law.targets(*(x[k] for x in given)) for k in range(6)], atol=1e-12)


def test_tasks_of_turning_alone_leave_the_origin_free():
    robot, rng = lw.random_robot(9, 6, joints="R"), np.random.default_rng(3)
    frame = robot.default_frame()
    q, qd, qdd = (scale * rng.normal(size=6) for scale in (0.5, 0.3, 1.0))
    turn = control.WholeBody(robot, [control.PoseTask(frame, parts="turn"), control.PostureTask(weight=1e-6)])
    solution, _ = turn.solve(q, qd, turn.targets(q, qd, qdd))
    J = robot.jacobian(q, frame=frame)
    np.testing.assert_allclose(J[:3] @ (solution.qdd - qdd), 0.0, atol=1e-6)
    assert turn.size_of(turn.tasks[0]) == 3


@pytest.mark.parametrize("threads", [1, 2])
def test_constraints_do_not_depend_on_threads(threads):
    free = lw.random_robot(12, 5, joints="R")
    frame = free.default_frame()
    robot = free.with_constraints([lw.Point(frame, free.pose(free.neutral, frame)[:3, 3])])
    rng = np.random.default_rng(1)
    q = robot.neutral + np.zeros((40, 5))
    qd, tau = 0.1 * rng.normal(size=(2, 40, 5))
    for name, given in (
        ("constraint_forces", (q, qd, tau)),
        ("impact", (q, qd + 0.1)),
        ("constraint_rank", (q,)),
    ):
        method = getattr(robot, name)
        alone, together = method(*given), method(*given, threads=threads)
        for ours, theirs in zip(np.atleast_1d(alone), np.atleast_1d(together), strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("threads", [1, 2])
def test_collisions_do_not_depend_on_threads(threads):
    robot = lw.load("ur10e")
    q = robot.random(np.random.default_rng(0), 200)
    np.testing.assert_array_equal(robot.in_collision(q, threads=threads), robot.in_collision(q))
