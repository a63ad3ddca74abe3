"""Spheres that links keep away from: distances against brute force, and a sampled motion around one."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.collision import shapes_of
from linkwise.optimal import Effort, JointTracking, Mppi, Problem, ProblemError, SphereClearance


@pytest.fixture(scope="module")
def robot():
    return lw.load("two_link")


def clearances(robot, q, center, radius):
    """Distances of the capsules to a sphere by many points of their axes, (capsules,)."""
    found = []
    for capsule in shapes_of(robot).capsules:
        if capsule.body < 0:
            continue
        pose = robot.pose(q, robot.moving_joints[capsule.body].child)
        part = np.linspace(0.0, 1.0, 20001)[:, None]
        points = (capsule.start + part * (capsule.end - capsule.start)) @ pose[:3, :3].T + pose[:3, 3]
        found.append(np.linalg.norm(points - center, axis=1).min() - capsule.radius - radius)
    return np.array(found)


def test_the_cost_is_that_of_the_distances(robot):
    centers, radii = np.array([[0.9, 0.3, 0.1], [0.4, -0.2, 0.0]]), [0.25, 0.3]
    cost = SphereClearance(centers=centers, radii=radii, margin=0.1, weight=3.0)
    problem = Problem(robot, horizon=1, step=1.0, costs=[cost])
    q = np.array([0.2, -0.3])
    own = [np.maximum(0.1 - clearances(robot, q, c, r), 0.0) for c, r in zip(centers, radii, strict=True)]
    expected = 1.5 * sum(float(x @ x) for x in own)
    assert expected > 0.01
    found = problem.stage_cost([*q, 0.0, 0.0], [0.0, 0.0], list(problem.p[0]))
    assert found == pytest.approx(expected, rel=1e-6)


def test_a_sampled_motion_avoids_a_sphere(robot):
    """The straight arm touches the sphere halfway: it must bend on its way."""
    start, target = np.array([-0.7, 0.0]), np.array([0.7, 0.0])
    tip = robot.pose(np.zeros(2))[:3, 3]
    center = tip * (1.0 + 0.24 / np.linalg.norm(tip))
    assert clearances(robot, np.zeros(2), center, 0.1).min() < 0.0
    avoid = SphereClearance(centers=center, radii=0.1, margin=0.05, weight=2e4)
    reach = JointTracking(target=target, weight=[30.0, 1.0], velocity=0.0, velocity_weight=0.3)
    end = JointTracking(target=target, weight=200.0, velocity=0.0, velocity_weight=10.0)
    still = robot.with_gravity((0, 0, 0))
    problem = Problem(still, horizon=24, step=0.05, costs=[reach, Effort(weight=1e-4), avoid], terminal=[end])
    mppi = Mppi(problem, samples=512, temperature=0.5, noise=[4.0, 1.0], hold=2)

    def nearest(values):
        plan = mppi.plan(start, np.zeros(2), iterations=100, values=values)
        q, qd, least = start, np.zeros(2), np.inf
        for u in np.repeat(plan.u, 2, axis=0):
            qd = qd + 0.05 * still.forward_dynamics(q, qd, u)
            q = q + 0.05 * qd
            least = min(least, clearances(robot, q, center, 0.1).min())
        assert np.abs(q - target).max() < 0.3
        return least

    with_cost, without = nearest({}), nearest({"clearance.weight": 0.0})
    assert without < 0.0 < with_cost


def test_wrong_spheres_are_refused(robot):
    with pytest.raises(ProblemError, match=r"centers: expected shape \(spheres, 3\)"):
        Problem(robot, costs=[SphereClearance(centers=[1.0, 2.0])])
    with pytest.raises(ProblemError, match="margin"):
        Problem(robot, costs=[SphereClearance(centers=[1.0, 2.0, 3.0], margin=-1.0)])
