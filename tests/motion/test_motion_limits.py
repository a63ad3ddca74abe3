"""Limits: who breaks which one when; and time scaling that just meets them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise import motion


@pytest.fixture(scope="module")
def panda():
    return lw.load("panda")


HOME = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])


def test_a_slow_move_breaks_nothing(panda):
    assert motion.check(motion.quintic(HOME, HOME + 0.3, 4.0), panda, acceleration=10.0) == []
    motion.require(motion.quintic(HOME, HOME + 0.3, 4.0), panda)


def test_joint_limit_and_time_of_a_position(panda):
    move = motion.quintic(
        HOME, HOME + [0, 0, 0, 2.4, 0, 0, 0], 5.0
    )  # joint 4 ends at 0.044, its limit is −0.0698
    (found,) = motion.check(move, panda, torque=False)
    assert (found.joint, found.quantity, found.limit) == ("panda_joint4", "position", -0.0698)
    assert move.at(found.time).q[3] == pytest.approx(-0.0698, abs=1e-6)
    assert found.worst == pytest.approx(0.044)
    assert found.worst_time == pytest.approx(5.0)
    with pytest.raises(motion.LimitError, match=r"panda_joint4: position limit -0\.0698 rad is crossed at"):
        motion.require(move, panda, torque=False)


def test_every_side_of_every_limit_is_crossed_when_it_is(panda):
    """Sines about the middle of each range: times and worst values in closed form, above and below."""
    robot = panda.lock({name: 0.0 for name in panda.joint_names[2:]})
    limits = [joint.limits for joint in robot.coordinate_joints]
    middle = np.array([0.5 * (each.lower + each.upper) for each in limits])
    half = np.array([0.5 * (each.upper - each.lower) for each in limits])
    move = motion.FourierSeries(middle, [1.5 * half], [np.zeros(2)], 40.0)
    found = motion.check(move, robot, torque=False)
    position = {(v.joint, v.limit > m): v for v in found for m in middle if v.quantity == "position"}
    assert len([v for v in found if v.quantity == "position"]) == 4
    first = np.arcsin(1 / 1.5) / (2 * np.pi) * 40.0
    for k, name in enumerate(robot.joint_names):
        for v in (v for v in position.values() if v.joint == name):
            above = v.limit == limits[k].upper
            assert v.limit == (limits[k].upper if above else limits[k].lower)
            assert v.time == pytest.approx(first if above else 20.0 + first, abs=1e-6)
            assert v.worst == pytest.approx(middle[k] + (1.5 if above else -1.5) * half[k], rel=1e-3)
            assert v.worst_time == pytest.approx(10.0 if above else 30.0, abs=0.2)


def test_velocity_acceleration_and_torque_are_found(panda):
    move = motion.quintic(HOME, HOME + [2.0, 0, 0, 0, 0, 0, 0], 0.22)
    found = motion.check(move, panda, acceleration=20.0)
    quantities = {violation.quantity for violation in found if violation.joint == "panda_joint1"}
    assert quantities == {"velocity", "acceleration", "torque"}
    torque = next(v for v in found if v.quantity == "torque" and v.joint == "panda_joint1" and v.limit > 0)
    assert panda.inverse_dynamics(*move.at(torque.time))[0] == pytest.approx(torque.limit, rel=1e-6)
    assert [v.time for v in found] == sorted(v.time for v in found)


def test_a_motion_of_another_robot_is_refused(panda):
    with pytest.raises(ValueError, match="it has 2 joints, panda has 7"):
        motion.check(motion.quintic([0, 0], [1, 1], 1.0), panda)


@pytest.mark.parametrize("name", ["panda", "puma560"])
def test_the_fastest_move_just_meets_a_limit(name):
    robot = lw.load(name)
    start = HOME if name == "panda" else np.zeros(6)
    limit = None if name == "panda" else np.array([80.0, 120.0, 50.0, 6.0, 6.0, 4.0])
    move = motion.quintic(start, start + 0.4, 10.0)
    quick = motion.fastest(move, robot, torque=limit, velocity=False)
    allowed = np.array([j.limits.effort for j in robot.moving_joints]) if limit is None else limit
    t = np.linspace(quick.begin, quick.end, 4001)[1:-1]
    load = np.abs(robot.inverse_dynamics(*quick.at(t))) / allowed
    assert load.max() == pytest.approx(1.0, abs=1e-4)
    assert quick.duration < move.duration
    # any faster breaks it
    faster = motion.slowed(quick, 0.99)
    load = np.abs(robot.inverse_dynamics(*faster.at(np.linspace(0, faster.end, 2001)[1:-1]))) / allowed
    assert load.max() > 1.0


FRICTION = {
    "Stribeck": {"stribeck_friction": 3.0, "stribeck_speed": 0.1},
    "saturating": {"saturating_friction": 3.0, "saturating_speed": 0.5},
    "ripple": {"ripple_speed": 0.1, "ripple_1_count": 7.0, "ripple_1_cos_0": 1.0, "ripple_1_sin_1": 2.0},
    "square": {"unmodelled_square": 0.3},
    "viscous and dry": {"viscous_friction": 1.0, "coulomb_friction": 1.0},
}


@pytest.mark.parametrize("kind", FRICTION)
def test_friction_is_that_of_the_motion_as_it_is_played(kind):
    """Friction of the motion as it was given let torques exceed their limits by up to 16 %, or made it too slow. Peaks
    between the points at which the motion is checked count, too."""
    arm = lw.load("two_link")
    robot = arm.with_parameters(
        {f"{joint}.{name}": value for joint in arm.joint_names for name, value in FRICTION[kind].items()}
    )
    for end in ([1.0, 0.8], [-1.0, -0.8]):
        durations = []
        for given in (0.5, 5.0):
            move = motion.quintic([0.0, 0.0], end, given)
            q, qd, _ = move.at(np.linspace(0.0, given, 301))
            limit = np.abs(robot.inverse_dynamics(q, 0.0 * qd, 0.0 * qd)).max(axis=0) + 6.0
            quick = motion.fastest(move, robot, torque=limit, velocity=False)
            t = np.linspace(0.0, quick.end, 20_001)
            used = np.abs(robot.inverse_dynamics(*quick.at(t))) / limit
            assert 1.0 - 1e-6 < used.max() <= 1.0 + 1e-8
            durations.append(quick.duration)
        assert durations[0] == pytest.approx(durations[1], rel=1e-6)  # whatever speed it was given with


def test_peaks_of_speed_between_points_count():
    rng = np.random.default_rng(2)
    arm = lw.load("panda")
    for _ in range(3):
        move = motion.cubic_spline(np.linspace(0.0, 1.0, 5), HOME + 0.3 * rng.normal(size=(5, 7)))
        quick = motion.fastest(move, arm, torque=1e4, points=60)
        t = np.linspace(0.0, quick.end, 20_001)
        used = np.abs(quick.at(t).qd) / arm.velocity_limits
        assert used.max() <= 1.0 + 1e-8


def test_few_points_are_no_reason_to_exceed_limits():
    """With two, a motion that rests at its ends took 4e-9 s."""
    arm, move = lw.load("two_link"), motion.quintic([0.0, 0.0], [1.0, 1.0], 1.0)
    usual = motion.fastest(move, arm, torque=60.0)
    for points in (2, 3, 10):
        assert motion.fastest(move, arm, torque=60.0, points=points).duration == pytest.approx(
            usual.duration, rel=1e-7
        )
    with pytest.raises(ValueError, match="points: expected a whole number from 2 on, got 1"):
        motion.fastest(move, arm, torque=60.0, points=1)


def test_speed_up_can_be_forbidden(panda):
    move = motion.quintic(HOME, HOME + 0.1, 10.0)
    assert motion.fastest(move, panda, speed_up=False).duration == pytest.approx(10.0)
    hasty = motion.quintic(HOME, HOME + 0.5, 0.1)
    slower = motion.fastest(hasty, panda, speed_up=False)
    assert slower.duration > 0.1
    assert motion.check(slower, panda) == []


def test_what_no_speed_makes_possible_is_refused(panda):
    with pytest.raises(motion.LimitError, match="no speed is slow enough: panda_joint"):
        motion.fastest(motion.quintic(HOME, HOME + 0.1, 1.0), panda, torque=5.0)


def test_stretching_any_trajectory_keeps_the_path(panda):
    line = motion.line(panda, panda.pose(HOME), panda.pose(HOME + 0.1), duration=1.0, q=HOME)
    slow = motion.slowed(line, 3.0)
    np.testing.assert_allclose(slow.at(1.5).q, line.at(0.5).q, atol=1e-12)
    np.testing.assert_allclose(slow.at(1.5).qdd, line.at(0.5).qdd / 9, atol=1e-12)


def test_the_fastest_move_of_a_joint_with_a_follower():
    arm = lw.load("two_link").with_parameters(
        {"joint2.viscous_friction": 2.0, "joint2.coulomb_friction": 3.0}
    )
    joints = [replace(j, mimic=lw.Mimic("joint1", 1.5)) if j.name == "joint2" else j for j in arm.joints]
    coupled = lw.Robot("coupled", arm.links, joints).with_mimics(True)
    quick = motion.fastest(motion.quintic([-0.4], [0.4], 3.0), coupled, torque=200.0, velocity=False)
    t = np.linspace(quick.begin, quick.end, 4001)[1:-1]
    assert np.abs(coupled.inverse_dynamics(*quick.at(t))).max() == pytest.approx(200.0, abs=0.02)


def parallelogram() -> lw.Robot:
    """Four bars of which opposite ones are equal, so that joints move in proportion: a straight path meets the loop."""

    def rod(length, mass):
        return lw.Inertia.from_com(mass, (length / 2, 0.0, 0.0), (1e-4, 0.01, 0.01))

    links = [lw.Link("base"), *(lw.Link(name, rod(*size)) for name, size in BARS.items())]
    joints = [
        lw.Joint("crank", "revolute", "base", "crank"),
        lw.Joint("coupler", "revolute", "crank", "coupler", lw.Transform.from_rpy((0.3, 0.0, 0.0))),
        lw.Joint("rocker", "revolute", "base", "rocker", lw.Transform.from_rpy((0.5, 0.0, 0.0))),
    ]
    loop = lw.Point("coupler", "rocker", position=(0.3, 0.0, 0.0), offset=(0.5, 0.0, 0.0))
    robot = lw.Robot("parallelogram", links, joints, gravity=(0.0, -9.81, 0.0))
    return robot.with_constraints([loop], passive=["coupler", "rocker"])


BARS = {"crank": (0.3, 0.5), "coupler": (0.5, 1.0), "rocker": (0.3, 0.8)}


def test_a_joint_without_torque_cannot_be_moved():
    """A limit of zero, where the joint at rest needs nothing: no speed is slow enough, unless nothing is asked."""
    robot = lw.load("two_link", gravity=(0.0, 0.0, 0.0))
    for torque in ([50.0, 0.0], [0.0, 50.0], 0.0):
        with pytest.raises(motion.LimitError, match="at its torque limit"):
            motion.fastest(motion.quintic([0, 0], [1.0, 0.0], 1.0), robot, torque=torque, velocity=False)
    still = motion.quintic([0.3, 0.2], [0.3, 0.2], 1.0)
    with pytest.raises(ValueError, match="no limit bounds the speed"):
        motion.fastest(still, robot, torque=0.0, velocity=False)


def test_robots_with_constraints_use_their_torques():
    """The motor drives the linkage as one body: its inertia and weight by hand."""
    robot = parallelogram()
    start, end = np.array([0.4, -0.4, 0.4]), np.array([2.0, -2.0, 2.0])
    assert np.abs(robot.constraint_errors(np.stack([start, 0.3 * start + 0.7 * end]))).max() < 1e-12
    crank, coupler, rocker = (mass for _, mass in BARS.values())
    inertia = (crank + rocker) * 0.15**2 + 2 * 0.01 + coupler * 0.3**2
    weight = 9.81 * ((crank + rocker) * 0.15 + coupler * 0.3)

    def torques(found):
        q, _, qdd = found.at(np.linspace(found.begin, found.end, 1000))
        return inertia * qdd[:, 0] + weight * np.cos(q[:, 0])

    limit = np.array([6.0, 1.0, 1.0])
    scaled = motion.fastest(motion.quintic(start, end, 1.0), robot, torque=limit, velocity=False)
    assert np.abs(torques(scaled)).max() == pytest.approx(6.0, rel=1e-3)
    quickest = motion.time_optimal(robot, motion.quintic(start, end, 1.0), torque=limit)
    assert np.abs(torques(quickest)).max() <= 6.0 * (1 + 1e-6)
    assert (np.abs(torques(quickest)) > 5.9).mean() > 0.8
    assert quickest.duration < 0.95 * scaled.duration
    rubbing = robot.with_parameters({"rocker.viscous_friction": 0.1})
    with pytest.raises(ValueError, match="constraints and friction"):
        motion.fastest(motion.quintic(start, end, 1.0), rubbing, torque=limit)


def test_a_joint_without_a_motor_has_no_torque():
    """What a passive joint would have to do is a violation; where it needs nothing there is none."""
    for gravity in ((0.0, 0.0, -9.81), (0.0, 0.0, 0.0)):
        for name in ("joint1", "joint2"):
            robot = lw.load("two_link", gravity=gravity).with_constraints([], passive=[name])
            found = motion.check(motion.quintic([0.3, 0.2], [0.8, 0.9], 1.0), robot)
            broken = [each for each in found if each.quantity == "torque"]
            assert {(each.joint, abs(each.limit)) for each in broken} == {(name, 0.0)}
            still = motion.check(motion.quintic([0.3, 0.2], [0.3, 0.2], 1.0), robot)
            assert bool(still) == bool(np.any(gravity))
