"""Limits of joints that follow others: nothing that keeps the limits of a robot drives a follower beyond its own."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from example_robots import loaded
from linkwise import control, embedded, motion, optimal
from linkwise.cli import main
from linkwise.control.whole_body.limits import Bounds, MotionLimits
from linkwise.evidence.box import box_of
from linkwise.model.coordinates import joint_positions
from linkwise.model.joint import Limits, Mimic
from linkwise.realtime.limits import joint_limits

OWN = Limits(-2.0, 2.0, 5.0, 50.0)
FOLLOWER = Limits(-1.0, 1.0, 2.0, 1.0)
LOWER, UPPER, SPEED = -0.3, 0.7, 1.0  # of the leader, where the follower at 0.4 − 2 q keeps its limits


def chain(follower: Limits = FOLLOWER, leader: Limits = OWN, multiplier: float = -2.0, offset: float = 0.4):
    """Three joints, of which the third follows the second."""
    plain = lw.planar_chain(3)
    first, second, third = (joint for joint in plain.joints if joint.moves)
    joints = [
        replace(first, limits=OWN),
        replace(second, limits=leader),
        replace(third, limits=follower, mimic=Mimic(second.name, multiplier, offset, True)),
        *(joint for joint in plain.joints if not joint.moves),
    ]
    return lw.Robot("coupled", plain.links, joints, frames=plain.frames)


@pytest.fixture(scope="module")
def robot() -> lw.Robot:
    return chain()


def test_ranges_of_leaders_are_those_in_which_followers_keep_theirs(robot):
    assert robot.limits.lower == pytest.approx([-2.0, LOWER])
    assert robot.limits.upper == pytest.approx([2.0, UPPER])
    assert robot.limits.velocity == pytest.approx([5.0, SPEED])
    assert robot.limits.effort.tolist() == [50.0, 50.0]  # the leader's motor moves both
    assert robot.moving_joints[1].limits == OWN  # as the file has it


def test_random_robots_with_chains_of_followers():
    """Within the limits of the robot every joint is within its own; at each end of a range some joint is at its own."""
    rng, refused = np.random.default_rng(5), 0
    for _ in range(60):
        plain = lw.planar_chain(6)
        joints = []
        for k, joint in enumerate(joint for joint in plain.joints if joint.moves):
            low, high = np.sort(rng.uniform(-2.0, 2.0, 2)) + [-0.5, 0.5]
            limits = Limits(low, np.inf if rng.random() < 0.2 else high, rng.uniform(0.0, 3.0))
            leader = int(rng.integers(6))
            relation = Mimic(f"joint{leader + 1}", rng.uniform(-3, 3), rng.uniform(-0.1, 0.1), True)
            joints.append(replace(joint, limits=limits, mimic=relation if leader < k else None))
        try:
            made = lw.Robot("made", plain.links, [*joints, *plain.joints[6:]], frames=plain.frames)
        except lw.ModelError:  # no common position
            refused += 1
            continue
        own = [joint.limits for joint in made.moving_joints]
        lower, upper = (np.array([getattr(each, side) for each in own]) for side in ("lower", "upper"))
        fastest = np.array([each.largest_velocity for each in own])
        slope = np.array([joint_positions(made, row) for row in (np.eye(made.nq))])[:, :, 0]
        slope -= np.array(joint_positions(made, np.zeros(made.nq)))[:, 0]
        for q in made.random(1, 20):
            at = np.array(joint_positions(made, q))[:, 0]
            assert (at >= lower - 1e-9).all()
            assert (at <= upper + 1e-9).all()
        speeds = slope.T * made.velocity_limits
        assert (
            np.abs(speeds)[slope.T != 0] <= (fastest[:, None] + 0 * speeds)[slope.T != 0] * (1 + 1e-12)
        ).all()
        middle = made.random(2)
        for k in range(made.nq):
            for end in (made.limits.lower[k], made.limits.upper[k]):
                if np.isfinite(end):
                    q = middle.copy()
                    q[k] = end
                    at = np.array(joint_positions(made, q))[:, 0]
                    assert min(np.abs(at - lower).min(), np.abs(at - upper).min()) < 1e-9
    assert refused < 30


def test_motors_of_followers_count_where_leaders_have_none():
    """Grippers of MJCF files have their actuator at one finger, which may be the one that follows."""
    assert chain(leader=replace(OWN, effort=0.0)).effort_limits[1] == 2.0
    assert chain(leader=replace(OWN, effort=np.inf)).effort_limits[1] == 2.0
    assert chain(replace(FOLLOWER, effort=0.0), replace(OWN, effort=0.0)).effort_limits[1] == np.inf


def test_ranges_without_a_common_position_are_refused_by_name():
    with pytest.raises(
        lw.ModelError, match="'joint3' follows 'joint2' and stays within 5 and 6 at no position"
    ):
        chain(Limits(5.0, 6.0))
    with pytest.raises(lw.ModelError, match="'joint3' follows 'joint2'"):
        chain(Limits(0.5, 1.0), multiplier=0.0)
    assert chain(Limits(0.0, 1.0), multiplier=0.0).limits.upper[1] == OWN.upper
    meets = chain(Limits(-1.0 - 1e-12, 0.1), Limits(0.1, 3.0), multiplier=1.0, offset=1e-12)
    assert meets.limits.lower[1] == meets.limits.upper[1]


def test_a_follower_of_several_joints_has_no_limits_and_is_not_locked(robot):
    def made(limits: Limits) -> lw.Robot:
        relation = Mimic("joint1", 1.0, 0.0, True, (("joint2", 1.0),))
        joints = [
            replace(j, limits=limits, mimic=relation) if j.name == "joint3" else j for j in robot.joints
        ]
        return lw.Robot("sum", robot.links, joints, frames=robot.frames)

    with pytest.raises(lw.ModelError, match="'joint3': it follows several joints"):
        made(FOLLOWER)
    for name in ("joint1", "joint2"):
        with pytest.raises(lw.ModelError, match="'joint3' follows several"):
            made(Limits()).lock({name: 0.1})


def test_a_leader_that_cannot_move_is_said_when_a_file_is_loaded(tmp_path):
    path = tmp_path / "pinned.toml"
    chain(Limits(0.0, 1.0), Limits(0.0, 1.0), -1.0, 0.0).save(path)
    with pytest.warns(
        lw.ModelWarning, match="'joint2' can be at 0 alone: elsewhere 'joint3', which follows it"
    ):
        lw.load(path)
    with pytest.raises(lw.ModelError, match="'joint2' can be at 0 alone"):
        lw.load(path, strict=True)


@pytest.mark.filterwarnings("ignore::linkwise.ExportWarning")
@pytest.mark.parametrize("ending", ["toml", "urdf", "xml"])
def test_files_keep_the_limits_of_every_joint(robot, tmp_path, ending):
    path = tmp_path / f"robot.{ending}"
    robot.save(path)
    again = lw.load(path)
    assert [j.limits.lower for j in again.moving_joints] == [j.limits.lower for j in robot.moving_joints]
    assert again.limits.lower == pytest.approx(robot.limits.lower)
    assert again.limits.upper == pytest.approx(robot.limits.upper)


# -- ways in ----------------------------------------------------------------------------------------------------------


def test_motions_and_positions(robot):
    found = motion.check(motion.quintic([0.0, 0.0], [0.0, 1.0], 1.0), robot, torque=False)
    assert [(each.joint, each.quantity, each.follower) for each in found] == [
        ("joint2", "velocity", "joint3"),
        ("joint2", "position", "joint3"),
    ]
    assert found[1].limit == pytest.approx(UPPER)
    assert "(that of joint3, which follows it)" in str(found[1])
    fast = motion.time_optimal(robot, [[0.0, 0.0], [0.2, 0.6]])
    assert np.abs(fast.at(np.linspace(0, fast.duration, 200)).qd[:, 1]).max() <= SPEED * (1 + 1e-6)
    with pytest.raises(lw.LinkwiseError, match="joint2"):
        motion.plan(robot, [0.0, 0.0], [0.0, 1.0])
    inside, beyond = (robot.pose([0.4, q])[:3, 3] for q in (0.6, 1.9))
    assert LOWER <= motion.inverse_kinematics(robot, inside, task="position").q[1] <= UPPER
    with pytest.raises(motion.UnreachableError):
        motion.inverse_kinematics(robot, beyond, task="position", starts=8)


def test_controllers_and_real_time(robot):
    bounds = Bounds.of(robot, MotionLimits(period=0.001))
    assert (bounds.lower[1], bounds.upper[1], bounds.velocity[1]) == pytest.approx((LOWER, UPPER, SPEED))
    kept = joint_limits(robot, None, simulated=False)
    assert (kept["lower"][1], kept["upper"][1], kept["speed"][1]) == pytest.approx((LOWER, UPPER, SPEED))
    limits = optimal.StateLimits(position=True, velocity=True)
    assert limits.positions(robot)[1][1] == pytest.approx(UPPER)
    assert limits.velocities(robot)[1][1] == pytest.approx(SPEED)
    assert control.named("computed_torque", robot).torque_limits.tolist() == [50.0, 50.0]
    found = box_of(robot, [("q", 2), ("qd", 2)])
    assert found.bounds["q"][1][1] == pytest.approx(UPPER)
    assert found.bounds["qd"][1][1] == pytest.approx(SPEED)


def test_c_packages_and_the_command_line(robot, tmp_path, capsys):
    package = embedded.Package(robot, ["gravity_torques"])
    (text,) = [text for name, text in package.files.items() if name.endswith("_limits.c")]
    upper = re.search(r"_upper\[\w+\] = \{(.*?)\}", text, re.S)
    assert float(upper.group(1).split(",")[1]) == pytest.approx(UPPER)
    path = tmp_path / "robot.toml"
    robot.save(path)
    assert main(["info", str(path), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    (joint,) = [joint for joint in shown["joints"] if joint["name"] == "joint2"]
    assert joint["limits"]["upper"] == pytest.approx(UPPER)
    assert joint["limited_by_followers"]
    assert main(["info", str(path)]) == 0
    assert "joint2: limits within which joints that follow it keep theirs" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["baxter", "panda", "talos_full_v2", "romeo"])
def test_robots_of_files_keep_the_limits_of_their_followers(name):
    made = loaded(name, "fixed")
    assert any(made.followed)
    for q in made.random(0, 20):
        for joint, at in zip(made.moving_joints, joint_positions(made, q), strict=True):
            assert joint.limits.lower - 1e-9 <= at[0] <= joint.limits.upper + 1e-9
