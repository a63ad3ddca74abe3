"""Inverse kinematics: reached poses are reached, limits hold, the rest is said plainly."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import motion

PUMAS = ("puma560", "puma260", "puma_valera")


def limits(robot):
    return (
        np.array([getattr(joint.limits, side) for joint in robot.moving_joints])
        for side in ("lower", "upper")
    )


@pytest.fixture(scope="module")
def panda():
    return lw.load("panda")


def test_a_batch_of_a_redundant_arm_within_its_limits(panda):
    lower, upper = limits(panda)
    q = np.random.default_rng(0).uniform(lower, upper, (4, 5, 7))
    target = panda.pose(q)
    found = motion.inverse_kinematics(panda, target)
    assert found.converged.shape == (4, 5)
    assert found.converged.all()
    assert ((found.q >= lower) & (found.q <= upper)).all()
    np.testing.assert_allclose(panda.pose(found.q), target, atol=1e-8)


def test_a_solution_stays_near_a_good_start(panda):
    q = np.array([0.3, -0.5, 0.2, -2.0, 0.1, 1.5, 0.7])
    found = motion.inverse_kinematics(panda, panda.pose(q), start=q + 0.01, starts=1)
    assert np.abs(found.q - q).max() < 0.05


def test_positions_only(panda):
    point = np.array([0.4, 0.2, 0.5])
    found = motion.inverse_kinematics(panda, point, task="position")
    np.testing.assert_allclose(panda.pose(found.q)[:3, 3], point, atol=1e-8)
    assert found.rotation_error == 0.0


def test_an_unreachable_pose_says_what_is_left(panda):
    target = panda.pose(np.zeros(7))
    target[:3, 3] = [2.0, 0.0, 0.3]
    with pytest.raises(motion.UnreachableError, match=r"out of reach.* m and .* rad"):
        motion.inverse_kinematics(panda, target, starts=3)
    found = motion.inverse_kinematics(panda, target, starts=3, strict=False)
    assert not found.converged
    assert found.position_error > 0.9  # the arm is about 1.19 m long


def test_an_unreachable_one_of_a_batch_is_named(panda):
    targets = panda.pose(np.zeros((3, 7)) + [0, 0, 0, -1.5, 0, 1.5, 0])
    targets[1, 0, 3] = 5.0
    with pytest.raises(motion.UnreachableError, match=r"target \[1\]"):
        motion.inverse_kinematics(panda, targets, starts=2)


def test_limits_are_what_makes_a_pose_unreachable():
    robot = lw.load("two_link")
    joints = [
        type(j)(**{**{f: getattr(j, f) for f in j.__dataclass_fields__}, "limits": lw.Limits(-0.5, 0.5)})
        for j in robot.joints
    ]
    bounded = lw.Robot("bounded", robot.links, joints, gravity=robot.gravity)
    point = robot.pose(np.array([0.9, 0.8]))[:3, 3]
    assert motion.inverse_kinematics(robot, point, task="position").converged
    found = motion.inverse_kinematics(bounded, point, task="position", strict=False)
    assert not found.converged
    assert (np.abs(found.q) <= 0.5).all()


def test_singular_poses_are_marked(panda):
    straight = np.zeros(7)
    found = motion.inverse_kinematics(panda, panda.pose(straight), start=straight, limits=False, starts=1)
    assert found.converged
    assert found.smallest_singular_value < 1e-6
    bent = motion.inverse_kinematics(panda, panda.pose(np.array([0, -0.5, 0, -2.0, 0, 1.5, 0.5])))
    assert bent.smallest_singular_value > 1e-2


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (np.zeros((3, 3)), r"target: expected shape \(..., 4, 4\)"),
        (np.full((4, 4), np.nan), "finite"),
        (np.diag([2.0, 2.0, 2.0, 1.0]), "target: expected poses, but the columns"),
        (np.diag([1.0, 1.0, -1.0, 1.0]), "right-handed"),
        (np.diag([1.0, 1.0, 1.0, 2.0]), "last row is 0 0 0 1"),
    ],
)
def test_bad_targets_are_named(panda, target, message):
    with pytest.raises(ValueError, match=message):
        motion.inverse_kinematics(panda, target)


def test_a_start_that_is_no_position_is_named(panda):
    with pytest.raises(ValueError, match="start: expected finite numbers"):
        motion.inverse_kinematics(panda, panda.pose(np.zeros(7)), start=np.full(7, np.nan))


@pytest.mark.parametrize("name", PUMAS)
def test_closed_form_gives_eight_solutions_and_the_right_one_among_them(name):
    robot = lw.load(name)
    q = np.random.default_rng(1).uniform(-1.5, 1.5, (3, 20, 6))
    target = robot.pose(q)
    found = motion.closed_form_inverse_kinematics(robot, target)
    assert found.shape == (3, 20, 8, 6)
    assert not np.isnan(found).any()
    np.testing.assert_allclose(
        robot.pose(found), np.broadcast_to(target[..., None, :, :], (3, 20, 8, 4, 4)), atol=1e-10
    )
    away = np.abs(np.angle(np.exp(1j * (found - q[..., None, :])))).max(axis=-1)
    assert away.min(axis=-1).max() < 1e-8
    first = found[0, 0]
    apart = np.abs(np.angle(np.exp(1j * (first[:, None] - first)))).max(axis=-1) + np.eye(8)
    assert apart.min() > 1e-3  # eight different ones


def test_closed_form_is_nan_out_of_reach_and_agrees_with_the_iteration():
    robot = lw.load("puma560")
    target = robot.pose(np.array([0.2, 0.4, -0.5, 0.3, 0.7, -0.1]))
    numerical = motion.inverse_kinematics(robot, target)
    closed = motion.closed_form_inverse_kinematics(robot, target)
    assert np.abs(np.angle(np.exp(1j * (closed - numerical.q)))).max(axis=-1).min() < 1e-6
    target[:3, 3] = [3.0, 0.0, 0.0]
    assert np.isnan(motion.closed_form_inverse_kinematics(robot, target)).all()


@pytest.mark.parametrize("q5", [0.0, 1e-9])
def test_closed_form_at_a_straight_wrist(q5):
    robot = lw.load("puma560")
    target = robot.pose(np.array([0.2, 0.4, -0.5, 0.3, q5, -0.1]))
    found = motion.closed_form_inverse_kinematics(robot, target)
    np.testing.assert_allclose(robot.pose(found), np.broadcast_to(target, (8, 4, 4)), atol=1e-7)


@pytest.mark.parametrize(
    ("name", "reason"), [("panda", "six turning joints"), ("stanford", "six turning"), ("ur10e", "PUMA type")]
)
def test_closed_form_refuses_other_arms(name, reason):
    with pytest.raises(lw.ModelError, match=reason):
        motion.closed_form_inverse_kinematics(lw.load(name), np.eye(4))
