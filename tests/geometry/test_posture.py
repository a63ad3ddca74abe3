"""The position in which a robot is shown first."""

import numpy as np

import linkwise as lw
from linkwise.geometry.posture import bent_position
from linkwise.geometry.skeleton import body_poses
from linkwise.view.live import Live


def test_arms_are_bent_above_their_floor_within_their_limits():
    for name in lw.robots():
        robot = lw.load(name)
        q = bent_position(robot)
        assert (q >= robot.limits.lower - 1e-12).all()
        assert (q <= robot.limits.upper + 1e-12).all()
        up = -np.array(robot.gravity) / np.linalg.norm(robot.gravity)
        reached = [pose.translation @ up for pose in body_poses(robot, q)]
        assert min(reached) > -0.15, name
        assert np.array_equal(q, bent_position(robot))
        assert np.allclose(Live(robot).q, q)  # where pages begin


def test_robots_with_legs_and_ranges_without_zero():
    quadruped = lw.general_chain(4)
    assert bent_position(quadruped).shape == (4,)
    tree = lw.random_robot(3, 9)
    q = bent_position(tree)
    assert (q >= tree.limits.lower).all()
    assert (q <= tree.limits.upper).all()
