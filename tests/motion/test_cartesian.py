"""Straight and circular moves: the frame is on its path, and the joints' derivatives are derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import motion
from linkwise.motion.kinematics.following import SingularPathError


@pytest.fixture(scope="module")
def robot():
    return lw.load("puma_valera")


@pytest.fixture(scope="module")
def valera(robot):
    """The straight line of Valera's section 4."""
    rotation = motion.euler_zyz(np.radians((45, 60, 90)))
    points = (0.6, 0.175, 0.25), (0.018, 0.757, 0.0)
    return motion.line(robot, *points, speed=0.1, profile="constant", rotation=rotation)


def test_the_line_of_the_paper_takes_its_8_6_seconds(valera):
    assert valera.duration == pytest.approx(8.6, abs=0.05)


def test_the_frame_moves_straight_at_constant_speed_and_rotation(robot, valera):
    t = np.linspace(0.0, valera.duration, 50)
    moment = valera.at(t)
    pose = robot.pose(moment.q)
    way = np.array([0.018 - 0.6, 0.757 - 0.175, -0.25])
    np.testing.assert_allclose(
        pose[:, :3, 3], [0.6, 0.175, 0.25] + np.outer(t / valera.duration, way), atol=1e-9
    )
    np.testing.assert_allclose(
        motion.zyz_angles(pose[:, :3, :3]), np.tile(np.radians((45, 60, 90)), (50, 1)), atol=1e-9
    )
    velocity = robot.velocity(moment.q, moment.qd)
    np.testing.assert_allclose(np.linalg.norm(velocity[1:-1, 3:], axis=-1), 0.1, rtol=1e-9)
    np.testing.assert_allclose(velocity[:, :3], 0.0, atol=1e-9)


def derivatives_fit(trajectory, t):
    h = 1e-4
    before, here, after = (trajectory.at(t + d) for d in (-h, 0.0, h))
    np.testing.assert_allclose((after.q - before.q) / (2 * h), here.qd, atol=1e-6)
    np.testing.assert_allclose((after.qd - before.qd) / (2 * h), here.qdd, atol=1e-6)


def test_joint_derivatives_along_the_line(valera):
    derivatives_fit(valera, np.linspace(0.5, 8.0, 6))


@pytest.mark.parametrize("name", ["puma560", "panda"])
def test_slerp_turns_evenly_about_one_axis(name):
    robot = lw.load(name)
    q = {"puma560": [0.1, 0.4, -0.6, 0.2, 0.8, 0.1], "panda": [0.0, -0.5, 0.1, -2.0, 0.0, 1.5, 0.7]}[name]
    start = robot.pose(np.array(q))
    end = start.copy()
    end[:3, :3] = motion.turn_about([0.2, -0.3, 0.25]) @ start[:3, :3]
    end[:3, 3] += [0.05, 0.05, -0.1]
    move = motion.line(robot, start, end, duration=1.0, q=q)
    t = np.linspace(0, 1, 9)
    turned = motion.rotation_vector(robot.pose(move.at(t).q)[:, :3, :3] @ start[:3, :3].T)
    share = np.linalg.norm(turned, axis=-1) / np.linalg.norm(turned[-1])
    np.testing.assert_allclose(turned, np.outer(share, turned[-1]), atol=1e-8)
    np.testing.assert_allclose(robot.pose(move.at(1.0).q), end, atol=1e-8)
    derivatives_fit(move, t[1:-1])


def test_velocities_are_derivatives_of_positions_for_every_arm():
    """Random lines and arcs of all bundled arms with six joints and more, also of those that have more than the path
    needs; not only at grid points."""
    rng, h = np.random.default_rng(3), 1e-5
    for name in lw.robots():
        robot = lw.load(name)
        tried = 0
        for _ in range(8 if robot.dof >= 6 else 0):
            q = 0.5 * robot.random(rng)
            start = np.asarray(robot.pose(q))
            end = start.copy()
            end[:3, 3] += 0.1 * rng.normal(size=3)
            end[:3, :3] = motion.turn_about(0.3 * rng.normal(size=3)) @ start[:3, :3]
            try:
                move = motion.line(robot, start, end, duration=1.0, q=q)
            except lw.LinkwiseError:
                continue  # out of reach or singular
            tried += 1
            t = rng.uniform(0.05, 0.95, 12)
            before, here, after = move.at(t - h), move.at(t), move.at(t + h)
            speed, rise = np.abs(here.qd).max(), np.abs(here.qdd).max()
            assert np.abs((after.q - before.q) / (2 * h) - here.qd).max() < 2e-6 * speed, name
            assert np.abs((after.qd - before.qd) / (2 * h) - here.qdd).max() < 1e-5 * rise, name
            np.testing.assert_allclose(robot.pose(here.q), move.pose(t), atol=1e-12)
            if tried == 2:
                break
        assert tried or robot.dof < 6, name


def test_an_arc_keeps_its_radius(robot):
    start = robot.pose(np.array([0.1, 0.4, -0.2, 0.3, 0.9, 0.2]))
    centre, axis = start[:3, 3] + [0.0, 0.08, 0.0], (0.2, 0.0, 1.0)
    move = motion.arc(
        robot, start, centre=centre, axis=axis, angle=2.0, duration=2.0, q=[0.1, 0.4, -0.2, 0.3, 0.9, 0.2]
    )
    t = np.linspace(0, 2, 21)
    position = robot.pose(move.at(t).q)[:, :3, 3]
    arm = position - move.path.centre
    np.testing.assert_allclose(np.linalg.norm(arm, axis=-1), np.linalg.norm(arm[0]), rtol=1e-8)
    unit = np.array(axis) / np.linalg.norm(axis)
    np.testing.assert_allclose(arm @ unit, 0.0, atol=1e-9)
    cosine = arm[-1] @ arm[0] / (arm[0] @ arm[0])
    assert cosine == pytest.approx(np.cos(2.0), abs=1e-7)
    derivatives_fit(move, t[2:-2])


def test_a_path_out_of_reach_says_where(robot):
    rotation = motion.euler_zyz(np.radians((45, 60, 90)))
    with pytest.raises(motion.UnreachableError, match=r"no joint positions for \d+% of the way"):
        motion.line(robot, (0.6, 0.175, 0.25), (1.6, 0.2, 0.0), speed=0.1, rotation=rotation)


def test_a_singular_path_says_where(robot):
    start = robot.pose(np.array([0.0, 0.5, -0.4, 0.0, 0.3, 0.0]))
    end = robot.pose(np.array([0.0, 0.5, -0.4, 0.0, -0.3, 0.0]))  # through the straight wrist
    with pytest.raises(SingularPathError, match=r"at \d+% of"):
        motion.line(robot, start, end, duration=1.0, q=[0.0, 0.5, -0.4, 0.0, 0.3, 0.0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either a speed"),
        ({"speed": -1.0}, "speed: expected a positive"),
        ({"duration": 1.0, "profile": "square"}, "profile: expected"),
    ],
)
def test_bad_options_are_named(robot, options, message):
    pose = robot.pose(np.full(6, 0.5))
    with pytest.raises((TypeError, ValueError), match=message):
        motion.line(robot, pose, pose, **options)


def test_what_is_not_a_rotation_is_refused(robot):
    for wrong in (2 * np.eye(3), -2 * np.eye(3), np.diag([1.0, 1.0, -1.0])):
        with pytest.raises(ValueError, match=r"^rotation: .* not orthonormal"):
            motion.line(robot, (0.6, 0.1, 0.2), (0.5, 0.1, 0.2), speed=1.0, rotation=wrong)


@pytest.mark.parametrize(("bend", "jumps"), [(0.0045, False), (0.003, True)])
def test_joints_that_would_turn_half_a_radian_between_grid_points_are_refused(bend, jumps):
    """The tool's axis passes that of joint 4 at a small angle: joint 4 turns by about step / bend at once."""
    robot = lw.load("puma560")
    q = np.array([0.3, -0.4, 0.5, 0.0, bend, 0.0])
    middle, axes = robot.pose(q), robot.jacobian(q)[:3].T
    turn = np.cross(
        axes[4], axes[3]
    )  # across joint 5, so that the angle at joint 5 is smallest in the middle
    ends = [middle.copy(), middle.copy()]
    for end, angle in zip(ends, (-0.2, 0.2), strict=True):
        end[:3, :3] = motion.turn_about(angle * turn) @ middle[:3, :3]
    start = motion.closed_form_inverse_kinematics(robot, ends[0])
    start = start[np.argmin(np.abs(start[:, :3] - q[:3]).max(axis=1))]
    if jumps:
        with pytest.raises(SingularPathError, match="the joints would have to jump at 5"):
            motion.line(robot, *ends, duration=1.0, q=start)
    else:
        assert (
            np.abs(np.diff(motion.line(robot, *ends, duration=1.0, q=start).branch.at_grid, axis=0)).max()
            > 0.35
        )


def test_poses_on_the_way_are_rigid_and_those_of_the_frame(robot, valera):
    """All sixteen numbers of the pose that a motion says, beside those of the robot at its positions."""
    start = robot.pose([0.2, -0.4, 0.3, 0.1, 0.7, 0.2])
    arc = motion.arc(robot, start, centre=(0.1, 0.1, 0.3), angle=0.3, axis=(0, 0, 1), duration=2.0)
    for way in (valera, arc):
        t = np.linspace(0.0, way.duration, 9)
        np.testing.assert_allclose(way.pose(t), robot.pose(way.at(t).q), atol=1e-8)
        np.testing.assert_array_equal(way.pose(t)[:, 3], np.tile([0.0, 0.0, 0.0, 1.0], (9, 1)))
