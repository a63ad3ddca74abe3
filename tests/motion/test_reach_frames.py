"""Several frames at once, and robots whose base moves."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import motion


def humanoid() -> lw.Robot:
    """A floating trunk with two arms of four joints each."""
    links, joints = [lw.Link("world"), lw.Link("trunk")], []
    joints.append(lw.Joint("base", "floating", "world", "trunk"))
    for side, sign in (("left", 1.0), ("right", -1.0)):
        before, offset = "trunk", (0.0, 0.2 * sign, 0.3)
        for k, axis in enumerate(((0, 1, 0), (1, 0, 0), (0, 0, 1), (0, 1, 0))):
            links.append(lw.Link(f"{side}{k}"))
            limit = lw.Limits(lower=-1.5, upper=1.5)
            origin = lw.Transform(np.eye(3), offset)
            joints.append(
                lw.Joint(f"{side}_joint{k}", "revolute", before, links[-1].name, origin, axis, limit)
            )
            before, offset = links[-1].name, (0.0, 0.0, -0.25)
    return lw.Robot("humanoid", links, joints)


def test_two_hands_and_the_trunk_of_a_floating_robot():
    robot, rng = humanoid(), np.random.default_rng(0)
    q = np.array([robot.random(rng) for _ in range(40)])
    q[:, 7:] = np.clip(q[:, 7:], -1.4, 1.4)
    targets = {
        "trunk": np.asarray(robot.pose(q, "trunk")),
        "left3": np.asarray(robot.pose(q, "left3"))[:, :3, 3],
        "right3": np.asarray(robot.pose(q, "right3"))[:, :3, 3],
    }
    found = motion.reach_frames(robot, targets)
    assert found.q.shape == (40, robot.nq)
    assert found.converged.all()
    assert np.abs(np.asarray(robot.pose(found.q, "trunk")) - targets["trunk"]).max() < 1e-8
    for frame in ("left3", "right3"):
        assert np.abs(np.asarray(robot.pose(found.q, frame))[:, :3, 3] - targets[frame]).max() < 1e-8
    assert (np.abs(found.q[:, 7:]) <= 1.5).all()
    one = motion.reach_frames(robot, {frame: x[3] for frame, x in targets.items()})
    assert np.array_equal(one.q, found.q[3])
    assert "3 frames" in str(found)


def test_a_solution_stays_near_its_start():
    robot, rng = humanoid(), np.random.default_rng(1)
    start = robot.integrate(robot.neutral, rng.uniform(-0.5, 0.5, robot.dof))
    near = robot.integrate(start, rng.uniform(-0.02, 0.02, robot.dof))
    target = {"left3": np.asarray(robot.pose(near, "left3"))}
    found = motion.reach_frames(robot, target, start=start)
    assert np.abs(robot.difference(start, found.q)).max() < 0.05


def test_one_frame_of_an_arm_is_its_inverse_kinematics():
    robot = lw.load("stanford")
    target = np.asarray(robot.pose(np.array([0.3, 0.4, 0.5, -0.3, 0.6, 0.2])))
    found = motion.reach_frames(robot, {robot.default_frame(): target})
    assert np.abs(np.asarray(robot.pose(found.q)) - target).max() < 1e-8


def test_what_cannot_be_reached_names_the_frame():
    robot = humanoid()
    hands = {"left3": np.zeros(3), "right3": np.array([5.0, 0.0, 0.0])}
    with pytest.raises(motion.UnreachableError, match=r"frame (left3|right3) was not brought to its target"):
        motion.reach_frames(robot, hands, starts=2)
    left = motion.reach_frames(robot, hands, starts=2, strict=False)
    assert not left.converged
    assert left.position_error.shape == (2,)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ({}, "dictionary of frames"),
        ({"left3": np.zeros(4)}, r"targets\['left3'\]: expected shape"),
        ({"left3": np.zeros((2, 3)), "right3": np.zeros((3, 3))}, "leading axes"),
        ({"nothing": np.zeros(3)}, "nothing"),
        ({"left3": np.diag([1.0, 1.0, -1.0, 1.0])}, "right-handed"),
    ],
)
def test_bad_targets_are_named(targets, message):
    with pytest.raises(ValueError, match=message):
        motion.reach_frames(humanoid(), targets)
