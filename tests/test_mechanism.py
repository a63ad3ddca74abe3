"""The prepared robot: its frames are those the arithmetic wants, and they are the file's frames in disguise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given

import linkwise as lw
from linkwise import Inertia, Joint, Link, Robot, Transform
from linkwise.model.mechanism import RIGHT_ANGLE_TOLERANCE, Turn, prepare
from strategies import body, robots, seeds, states_of


def rotation_of(link, q: float) -> np.ndarray:
    """Parent's axes from the link's: Rz(φ)·Rx(α)·Rz(q + θ)."""

    def about_z(turn):
        return np.array([[turn.c, -turn.s, 0], [turn.s, turn.c, 0], [0, 0, 1]])

    twist = np.array([[1, 0, 0], [0, link.twist.c, -link.twist.s], [0, link.twist.s, link.twist.c]])
    c, s, _ = link.turned(q)
    return about_z(link.branch) @ twist @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])


@given(robots(max_dof=8), seeds)
def test_prepared_frames_are_the_files_frames_in_disguise(robot, seed):
    q = states_of(robot, seed).q
    links = prepare(robot)
    known = [Transform.identity()] * robot.dof
    file_pose = {robot.base: Transform.identity()}
    values = dict(zip(robot.joint_names, q.tolist(), strict=True))
    for joint in robot.joints:
        file_pose[joint.child] = file_pose[joint.parent] @ joint.motion(values.get(joint.name, 0.0))
    for k, (link, joint) in enumerate(zip(links, robot.moving_joints, strict=True)):
        placed = link.placed(link.turned(float(q[k])))
        step = Transform(rotation_of(link, float(q[k])), [*placed.lever])
        known[k] = (known[link.parent] if link.parent >= 0 else links.base) @ step
        here = known[k] @ link.file_frame
        np.testing.assert_allclose(here.matrix, file_pose[joint.child].matrix, atol=1e-13 * (1 + k))
        # the joint axis is z
        np.testing.assert_allclose(link.file_frame.rotation @ joint.axis, [0, 0, 1], atol=1e-15)
        R = link.file_frame.rotation
        np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-15)
        assert link.joint_name == joint.name
        assert (link.rotor_inertia, link.viscous_friction, link.coulomb_friction) == (
            joint.rotor_inertia,
            joint.viscous_friction,
            joint.coulomb_friction,
        )


@given(robots(max_dof=8))
def test_frames_are_the_cheap_ones(robot):
    links = prepare(robot)
    for link, joint in zip(links, robot.moving_joints, strict=True):
        if joint.revolute:
            assert 0.0 in [*link.lever]  # a component of the lever is gone
        else:
            assert [*link.lever] == [0.0, 0.0, 0.0]  # a slide starts on its parent's origin
    for link in links:  # the first child needs no extra turn
        family = link.children
        assert not family or sum(links[k].branch.angle == 0.0 for k in family) >= 1
    # gravity has no y component
    assert links.gravity.y == 0.0
    assert math.hypot(*links.gravity) == pytest.approx(math.hypot(*robot.gravity), rel=1e-14)


@given(robots(max_dof=8))
def test_inertias_are_those_of_the_file(robot):
    for link, inertia in zip(prepare(robot), robot.bodies(), strict=True):
        m, h, I = link.inertia
        back = Inertia(m, tuple(h), tuple(I)).expressed_in(link.file_frame.inverse())
        np.testing.assert_allclose(back.parameters, inertia.parameters, atol=1e-12)


@given(robots(max_dof=8, tree=True))
def test_traversals(robot):
    links = prepare(robot)
    n = len(links)
    parents = [link.parent for link in links]
    assert all(parent < k for k, parent in enumerate(parents))  # parents come first
    assert all(tuple(i for i in range(n) if parents[i] == k) == link.children for k, link in enumerate(links))
    depth = links.outward(lambda link, above, extra: above + extra, 0, [1] * n)
    size = links.inward(lambda link, below, own: (below + own, below + own), 0, [1] * n)
    for k in range(n):
        above = links.ancestors(k)
        assert depth[k] == len(above) + 1
        assert above == sorted(above, reverse=True)
        assert size[k] == 1 + sum(k in links.ancestors(i) for i in range(n))
    assert links.each(lambda link, x: (link.index, x), "abcdefgh"[:n]) == list(enumerate("abcdefgh"[:n]))
    assert [link.index for link in links] == list(range(n))


def test_traversals_are_strict():
    links = prepare(lw.random_robot(0, 3))
    for go in (
        lambda: links.outward(lambda *x: 0, 0, [1, 2]),
        lambda: links.inward(lambda *x: (0, 0), 0, [1, 2]),
        lambda: links.each(lambda *x: 0, [1, 2]),
    ):
        with pytest.raises(ValueError, match="zip"):
            go()


# -- right angles -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("quarters", range(-4, 5))
@pytest.mark.parametrize("error", [0.0, 4e-12, -4e-12, 1e-16])
def test_a_turn_by_right_angles_is_exact(quarters, error):
    turn = Turn.by(quarters * math.pi / 2 + error)
    assert (turn.c, turn.s) == ((1, 0), (0, 1), (-1, 0), (0, -1))[quarters % 4]
    assert turn.is_right
    assert turn.angle == quarters * (math.pi / 2)


def test_other_turns_are_left_alone():
    assert RIGHT_ANGLE_TOLERANCE < 1e-9
    for angle in (0.3, 1.0, math.pi / 2 + 1e-9, 1.5708, 3.14159, -3.1416, 1e-6):
        turn = Turn.by(angle)
        assert turn.angle == angle
        assert (turn.c, turn.s) == pytest.approx((math.cos(angle), math.sin(angle)), abs=1e-16)
        assert not turn.is_right


def crossed(angle: float, straight: float) -> Robot:
    """Six joints, axes at right angles to each other as a file with these digits says."""
    rng = np.random.default_rng(2)
    links, joints = [Link("base")], []
    for k in range(6):
        rpy = (
            (angle, 0, 0),
            (0, angle, 0),
            (-angle, 0, angle),
            (0, 0, -angle),
            (straight, 0, 0),
            (angle, 0, angle),
        )[k]
        joints.append(
            Joint(
                f"joint{k}",
                "revolute",
                links[-1].name,
                f"link{k}",
                Transform.from_rpy(rng.uniform(-0.4, 0.4, 3), rpy),
            )
        )
        links.append(Link(f"link{k}", body(rng)))
    return Robot("crossed", links, joints)


def test_a_file_that_means_a_right_angle_gets_one():
    """1.57079632679 costs as much as π/2, and gives the same torques to the digits that were written."""
    from linkwise.functions.table import FUNCTIONS, Setting
    from linkwise.robot.kernels import kernel

    def cost(robot):
        return kernel(FUNCTIONS["inverse_dynamics"], Setting(robot), "newton_euler").operations.total

    exact = crossed(math.pi / 2, math.pi)
    written, rough = crossed(1.57079632679, 3.14159265359), crossed(1.5708, 3.1416)
    for link in prepare(written):
        assert link.twist.is_right
    assert cost(written) == cost(exact) < cost(rough)
    s = states_of(exact, 1)
    torques = [robot.inverse_dynamics(s.q, s.qd, s.qdd) for robot in (exact, written, rough)]
    scale = np.max(np.abs(torques[0]))
    assert np.max(np.abs(torques[1] - torques[0])) < 1e-9 * scale
    assert (
        1e-7 * scale < np.max(np.abs(torques[2] - torques[0])) < 1e-3 * scale
    )  # 1.5708 is taken at its word


def test_zeros_of_the_file_stay_zeros():
    """Round-off of the change of frames is not worth an operation."""
    for link in prepare(lw.load("puma560")):
        for part in (link.lever, link.inertia.first_moment, link.inertia.second_moment):
            values = np.abs([*part])
            assert not ((values > 0) & (values < 1e-12)).any(), link.joint_name
        assert link.twist.is_right
        assert link.offset.is_right


# -- frames that could run away ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tilt", [0.0, 1e-13, 1e-11, 1e-10, 1e-9, 1e-8, 1e-6, 2.65e-6, 1e-4, 1e-2, 0.09, 0.11]
)
@pytest.mark.parametrize("turned", [False, True])
def test_origins_stay_near_and_axes_orthogonal(tilt, turned):
    """The common normal of nearly parallel axes may be kilometres away; no origin goes there."""
    rng = np.random.default_rng(1)
    A = Transform.from_rpy((0, 0, 0), (1.0, 0.7, 0.3)).rotation if turned else np.eye(3)
    links, joints = [Link("base")], []
    for k in range(5):
        rpy = (tilt * rng.uniform(0.5, 1), math.pi * (k % 2) + tilt * rng.uniform(0.5, 1), rng.uniform(-3, 3))
        step = Transform(A @ Transform.from_rpy((0, 0, 0), rpy).rotation @ A.T, rng.uniform(-0.4, 0.4, 3))
        x, y, z = A[:, 2].tolist()
        parent = links[-1].name if k < 4 else links[2].name
        joints.append(Joint(f"joint{k}", "revolute", parent, f"link{k}", step, axis=(x, y, z)))
        links.append(Link(f"link{k}", body(rng)))
    robot = Robot("nearly_parallel", links, joints)
    prepared = prepare(robot)
    R = prepared.base.rotation
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-14)
    for link in prepared:
        R = link.file_frame.rotation
        np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-14)
        assert np.linalg.det(R) == pytest.approx(1.0)
        assert math.hypot(*link.lever) < 15.0
        assert np.linalg.norm(link.file_frame.translation) < 15.0
    s = states_of(robot, 1)
    pose = robot.pose(s.q, "link3")
    wanted = np.eye(4)
    for joint, q in zip(robot.moving_joints[:4], s.q, strict=False):
        wanted = wanted @ joint.motion(float(q)).matrix
    np.testing.assert_allclose(pose, wanted, atol=20 * RIGHT_ANGLE_TOLERANCE if tilt < 1e-10 else 1e-13)


def test_slides_in_a_row_meet_in_one_origin():
    rng = np.random.default_rng(0)
    links, joints = [Link("base")], []
    for k in range(4):
        origin = Transform.from_rpy(rng.uniform(-0.4, 0.4, 3), rng.uniform(-3, 3, 3))
        joints.append(Joint(f"slide{k}", "prismatic", links[-1].name, f"link{k}", origin))
        links.append(Link(f"link{k}", body(rng)))
    for link in prepare(Robot("slides", links, joints)):
        assert [*link.lever] == [0.0, 0.0, 0.0]
        assert link.turned(0.3)[2] == 0.3


def test_without_sliding_origins_stay_on_the_files():
    robot = lw.random_robot(4, 5, joints="R")
    for link in prepare(robot, slide=False):
        np.testing.assert_allclose(link.file_frame.translation, 0.0, atol=1e-15)
    assert any(np.linalg.norm(link.file_frame.translation) > 0.01 for link in prepare(robot))


def test_a_robot_that_does_not_move():
    links = prepare(
        Robot("block", [Link("base", body(np.random.default_rng(0)))], [], gravity=(1.0, 2.0, 3.0))
    )
    assert len(links) == 0
    assert links.outward(lambda *x: 0, 0) == links.inward(lambda *x: (0, 0), 0) == []
