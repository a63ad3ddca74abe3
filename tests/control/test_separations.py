"""Capsules that stay apart in whole-body control: gradients of distances, and a motion that would let them touch."""

import numpy as np
import pytest

import linkwise as lw
from linkwise import control
from linkwise.control.whole_body.limits import largest_acceleration
from linkwise.control.whole_body.tasks import State, TaskError

POST = ((0.55, 0.25, -0.3), (0.55, 0.25, 1.2))
TOOL = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.1))


def separation(robot, **more):
    return control.Separation("panda_link8", TOOL, robot.base, POST, radius=0.1, **more)


def distance(robot, q):
    """Between a point of the tool's axis and the post, by brute force."""
    T = robot.pose(q, "panda_link8")
    parts = np.linspace(0.0, 1.0, 401)[:, None]
    axis = [T[:3, :3] @ np.array(end) + T[:3, 3] for end in TOOL]
    points = axis[0] + parts * (axis[1] - axis[0])
    off = points[:, :2] - np.array(POST[0][:2])
    return np.sqrt((off * off).sum(axis=1)).min() - 0.1


def test_the_gradient_is_that_of_the_distance():
    robot, rng = lw.load("panda"), np.random.default_rng(0)
    q = np.array([0.0, 0.3, 0.0, -1.6, 0.0, 1.9, 0.8])
    for _ in range(3):
        state = State(robot, q + 0.1 * rng.normal(size=7), np.zeros(7))
        gradient, _ = separation(robot).row(state, 0.002)
        h = 1e-4
        each = [distance(robot, state.q + h * e) - distance(robot, state.q - h * e) for e in np.eye(7)]
        assert np.abs(np.array(each) / (2 * h) - np.array(gradient, float)).max() < 1e-3


def test_accelerations_are_those_of_points_that_move_on():
    """Points of two links, one of them may be the base: n·(difference of their accelerations) by differences."""
    rng, h = np.random.default_rng(1), 1e-4
    robots = [lw.quadruped(), lw.load("panda"), lw.random_robot(3, 5, tree=True), lw.random_robot(4, 4)]
    for robot in robots:
        leaves = robot.link_names[-1], robot.link_names[len(robot.link_names) // 2]
        for first, second in (leaves, (leaves[0], robot.base)):
            q, qd, qdd = robot.random(rng), rng.normal(size=robot.dof), rng.normal(size=robot.dof)
            points = rng.uniform(-0.2, 0.2, (2, 3))
            limit = control.Separation(
                first, points[[0, 0]], second, points[[1, 1]], radius=0.02, margin=0.01
            )
            gradient, least = limit.row(State(robot, q, qd), 0.002)

            at = [robot.integrate(q, t * qd + 0.5 * t * t * qdd) for t in (-h, 0.0, h)]
            one, two = (
                robot.pose(np.array(at), frame)[:, :3] @ [*p, 1.0]
                for frame, p in zip((first, second), points, strict=True)
            )
            before, now, after = one - two
            n = now / np.linalg.norm(now)
            rate = n @ (after - before) / (2 * h)
            bound = -largest_acceleration(np.linalg.norm(now) - 0.03, -rate, np.inf, 5.0, 0.002)
            acceleration = n @ (after - 2 * now + before) / h**2
            size = 1.0 + abs(acceleration) + abs(bound)
            bias = acceleration - np.array(gradient, float) @ qdd
            assert abs(float(least) + bias - bound) < 1e-4 * size, (robot.name, first, second)


def test_a_tool_that_is_sent_through_a_post_stops_before_it():
    robot, h = lw.load("panda"), 0.004
    tasks = [control.PointTask("panda_link8", frequency=6.0), control.PostureTask(frequency=3.0)]
    limits = control.MotionLimits(period=h)
    q0 = np.array([0.0, 0.3, 0.0, -1.6, 0.0, 1.9, 0.8])
    target = q0 + np.array([1.1, 0, 0, 0, 0, 0, 0])
    least = {}
    for kept in ((), (separation(robot, margin=0.01),)):
        law = control.WholeBody(robot, tasks, limits, separations=kept)
        assert law.input_shapes()["start"] == (len(law.limit_names),)
        q, qd, start, found, seen = q0.copy(), np.zeros(7), None, [], []
        for _ in range(250):
            solution, start = law.solve(q, qd, law.targets(target), start=start)
            q, qd = q + h * qd + 0.5 * h * h * solution.qdd, qd + h * solution.qdd
            found.append(distance(robot, q))
            seen += [law.limit_names[k] for k in np.flatnonzero(solution.active)]
        least[bool(kept)] = min(found)
        assert any("distance of panda_link8" in name for name in seen) == bool(kept)
    assert least[False] < -0.01 < 0.008 < least[True]


def test_pairs_of_a_clearance_become_limits():
    robot = lw.load("panda")
    found = control.separations_of(lw.collision.Clearance(robot), margin=0.02)
    assert found
    assert all(each.margin == 0.02 for each in found)
    clearance = lw.collision.Clearance(robot)
    q = np.random.default_rng(2).uniform(robot.limits.lower, robot.limits.upper)
    for each, expected in zip(found, clearance.distances(q), strict=False):  # pairs come first
        sides = ((each.first, each.first_ends), (each.second, each.second_ends))
        ends = [robot.pose(q, name) @ np.column_stack([ends, np.ones(2)]).T for name, ends in sides]
        parts = np.linspace(0.0, 1.0, 81)
        first, second = (np.outer(1 - parts, p[:3, 0]) + np.outer(parts, p[:3, 1]) for p in ends)
        away = np.linalg.norm(first[:, None] - second, axis=-1).min() - each.radius
        assert away == pytest.approx(expected, abs=0.01), each.name
    with pytest.raises(TaskError, match="first_ends"):
        control.Separation("a", ((0, 0, 0),), "b", TOOL)
