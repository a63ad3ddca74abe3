"""The solids that stand for a robot."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.geometry.skeleton import BASE, body_poses, skeleton

ROBOTS = [*lw.robots(), "tree", "one joint", "no joint"]


def robot_of(name: str) -> lw.Robot:
    if name == "tree":
        return lw.random_robot(4, 9, tree=True)
    if name == "one joint":
        return lw.planar_chain(1)
    if name == "no joint":
        return lw.load("two_link").lock({"joint1": 0.0, "joint2": 0.0})
    return lw.load(name)


@pytest.mark.parametrize("name", ROBOTS)
def test_every_robot_can_be_drawn(name):
    robot = robot_of(name)
    bones = skeleton(robot)
    assert len(bones.hubs) == robot.dof
    assert bones.reach > 0
    assert bones.capsules or robot.dof == 0
    for rod in bones.capsules:
        assert BASE <= rod.body < robot.dof
        assert np.linalg.norm(rod.end - rod.start) > 0
        assert 0 < rod.radius < bones.reach
    for hub in bones.hubs:
        assert np.linalg.norm(hub.axis) == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["puma560", "stanford", "tree"])
def test_bodies_are_where_the_kernels_say(name):
    robot = robot_of(name)
    q = np.random.default_rng(1).normal(size=robot.dof)
    for joint, pose in zip(robot.moving_joints, body_poses(robot, q), strict=True):
        np.testing.assert_allclose(pose.matrix, robot.pose(q, joint.child), atol=1e-12)


def test_rods_reach_the_next_joint():
    robot = lw.load("puma560")
    bones = skeleton(robot)
    ends = [rod.end for rod in bones.capsules if rod.body == 1]
    _, pose = robot.carrier(robot.moving_joints[2].parent)
    wanted = (pose @ robot.moving_joints[2].origin).translation
    assert any(np.allclose(end, wanted) for end in ends)
