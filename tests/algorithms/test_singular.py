"""Robots that cannot be accelerated: a joint that moves no inertia is named, in whatever way it is met."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from evaluation import assert_near, norm, torque_scale, value

import linkwise as lw
from linkwise import Inertia, Joint, Link, Robot, Transform
from strategies import body, states_of

FORWARD = ("kalman", "compound_link", "conjugate_gradient", "preconditioned_conjugate_gradient")
INVERSES = ("kalman", "compound_link")


def arm(tip: Inertia, kind: str, rotor: float = 0.0) -> Robot:
    """Two good links and a third one with this inertia; a frame branches off the second."""
    rng = np.random.default_rng(4)
    joints = [
        Joint("shoulder", "revolute", "base", "upper", Transform.from_rpy((0, 0, 0.2), (0.3, 0.2, 0.1))),
        Joint("elbow", "revolute", "upper", "lower", Transform.from_rpy((0.3, 0, 0.2), (1.3, 0.2, 0.1))),
        Joint(
            "wrist",
            kind,
            "lower",
            "hand",
            Transform.from_rpy((0.1, 0.3, 0.2), (0.3, -0.7, 0.1)),
            rotor_inertia=rotor,
        ),
    ]
    return Robot(
        "arm", [Link("base"), Link("upper", body(rng)), Link("lower", body(rng)), Link("hand", tip)], joints
    )


POINT_ON_AXIS = Inertia.from_com(2.0, (0.0, 0.0, 0.3), (0.0, 0.0, 0.0))
THIN_ON_AXIS = Inertia.from_com(2.0, (0.0, 0.0, 0.3), (0.1, 0.1, 0.0))
CASES = {
    "massless, revolute": (Inertia(), "revolute"),
    "massless, prismatic": (Inertia(), "prismatic"),
    "point mass on the axis": (POINT_ON_AXIS, "revolute"),
    "thin rod on the axis": (THIN_ON_AXIS, "revolute"),
}


@pytest.mark.parametrize("case", CASES)
def test_derivatives_name_the_joint_too(case):
    """Even where only the inverse of the mass matrix shows it: a massless link leaves the other two finite."""
    robot = arm(*CASES[case])
    zero = np.zeros((2, 3))
    with pytest.raises(lw.SingularError, match="in state 0: joint 'wrist' moves no inertia"):
        robot.forward_dynamics_derivatives(zero, zero, zero)


@pytest.mark.parametrize("case", CASES)
def test_the_joint_is_named(case):
    robot = arm(*CASES[case])
    s = states_of(robot, 1)
    message = r"arm: the mass matrix is singular: joint 'wrist' moves no inertia"
    for name in FORWARD:
        with pytest.raises(lw.SingularError, match=message):
            robot.forward_dynamics(s.q, s.qd, s.tau, algorithm=name)
        with pytest.raises(
            lw.SingularError, match=message
        ):  # torques that some acceleration explains are no excuse
            robot.forward_dynamics(s.q, s.qd, robot.inverse_dynamics(s.q, s.qd, s.qdd), algorithm=name)
    for name in INVERSES:
        with pytest.raises(lw.SingularError, match=message):
            robot.inverse_mass_matrix(s.q, algorithm=name)
    for _ in range(3):  # calls without options may take a shorter way from the second one on
        with pytest.raises(lw.SingularError, match=message):
            robot.forward_dynamics(s.q, s.qd, s.tau)
        with pytest.raises(lw.SingularError, match=message):
            robot.inverse_mass_matrix(s.q)
    for look in (robot.filter, robot.acceleration_parts, robot.conjugate_gradient):
        with pytest.raises(lw.SingularError, match=message):
            look(s.q, s.qd, s.tau)
    with pytest.raises(lw.SingularError, match=message):
        robot.conjugate_gradient(s.q, s.qd, s.tau, preconditioned=False)


@pytest.mark.parametrize("case", CASES)
def test_what_needs_no_inverse_still_works(case):
    robot = arm(*CASES[case])
    s = states_of(robot, 1, 3)
    M = value(robot, "mass_matrix", q=s.q)
    assert np.max(np.abs(M[..., 2, 2])) < 1e-12
    tau = robot.inverse_dynamics(s.q, s.qd, s.qdd)
    for name in robot.algorithms("inverse_dynamics"):
        found = value(robot, "inverse_dynamics", name, q=s.q, qd=s.qd, qdd=s.qdd)
        assert_near(found, tau, 1e-11, torque_scale(robot, s.q, s.qd, s.qdd), name)


@pytest.mark.parametrize("case", ["massless, prismatic", "point mass on the axis"])
def test_rotor_inertia_rescues_the_joint(case):
    robot = arm(*CASES[case], rotor=0.05)
    s = states_of(robot, 1, 3)
    for name in FORWARD:
        qdd = robot.forward_dynamics(s.q, s.qd, s.tau, algorithm=name)
        back = robot.inverse_dynamics(s.q, s.qd, qdd)
        assert (norm(back - s.tau) <= 1e-11 * torque_scale(robot, s.q, s.qd, qdd, s.tau)).all(), name
    for name in INVERSES:
        assert_near(
            robot.inverse_mass_matrix(s.q, algorithm=name) @ robot.mass_matrix(s.q),
            np.tile(np.eye(3), (3, 1, 1)),
            1e-10,
            100.0,
        )


def test_a_little_mass_rescues_the_joint():
    robot = arm(*CASES["massless, revolute"]).with_payload(1e-3, (0.05, 0.04, 0.03))
    s = states_of(robot, 1, 3)
    for name in FORWARD:
        qdd = robot.forward_dynamics(s.q, s.qd, s.tau, algorithm=name)
        back = robot.inverse_dynamics(s.q, s.qd, qdd)
        assert (norm(back - s.tau) <= 1e-11 * torque_scale(robot, s.q, s.qd, qdd, s.tau)).all(), name


def test_the_cause_is_named_not_what_it_spoils():
    """On a tree the joint without inertia is named, though every joint inward of it fails too."""
    rng = np.random.default_rng(0)
    origin = Transform.from_rpy((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    links = [Link("base"), Link("a", body(rng)), Link("b", body(rng)), Link("c"), Link("d", body(rng))]
    joints = [
        Joint("ja", "revolute", "base", "a", origin),
        Joint("jb", "revolute", "a", "b", origin),
        Joint("jc", "prismatic", "b", "c", origin),
        Joint("jd", "revolute", "a", "d", origin),
    ]
    robot = Robot("tree", links, joints)
    zero = np.zeros(4)
    for name in FORWARD:
        with pytest.raises(lw.SingularError, match="joint 'jc' moves no inertia"):
            robot.forward_dynamics(zero, zero, zero, algorithm=name)


def elbow_arm() -> Robot:
    """A point mass at the end of two links without mass: singular when stretched out or folded, else not."""
    joints = [
        Joint("shoulder", "revolute", "base", "upper"),
        Joint("elbow", "revolute", "upper", "lower", Transform.along((1, 0, 0), 0.5)),
    ]
    links = [Link("base"), Link("upper"), Link("lower", Inertia.from_com(1.5, (0.4, 0, 0), (0, 0, 0)))]
    return Robot("elbow_arm", links, joints, gravity=(0.0, -9.81, 0.0))


@pytest.mark.parametrize("name", FORWARD)
def test_only_the_bad_state_of_a_batch_is_named(name):
    robot = elbow_arm()
    q = np.array([[0.1, 1.0], [0.2, -2.0], [0.3, 0.0], [0.4, 0.5], [0.5, 0.0]])
    qd, tau = np.ones(2), np.array([1.0, -2.0])
    with pytest.raises(lw.SingularError, match=r"singular in state 2: joint 'shoulder' moves no inertia"):
        robot.forward_dynamics(q, qd, tau, algorithm=name)
    with pytest.raises(lw.SingularError, match=r"singular in state \(1, 0\): joint 'shoulder'"):
        robot.forward_dynamics(np.stack([q[:2], q[2:4]]), qd, tau, algorithm=name)
    with pytest.raises(
        lw.SingularError, match=r"singular in state 0: joint 'shoulder'"
    ):  # also where a solution exists
        robot.forward_dynamics(q[2:3], qd, robot.inverse_dynamics(q[2:3], qd, tau), algorithm=name)
    good = q[[0, 1, 3]]
    qdd = robot.forward_dynamics(good, qd, tau, algorithm=name)
    assert_near(robot.inverse_dynamics(good, qd, qdd), np.broadcast_to(tau, (3, 2)), 1e-10, 1.0 + norm(qdd))


@pytest.mark.parametrize("name", INVERSES)
def test_only_the_bad_state_of_a_batch_is_named_by_the_inverse(name):
    robot = elbow_arm()
    q = np.array([[0.1, 1.0], [0.2, 0.0], [0.3, 0.5]])
    with pytest.raises(lw.SingularError, match=r"singular in state 1: joint 'shoulder'"):
        robot.inverse_mass_matrix(q, algorithm=name)
    assert np.isfinite(robot.inverse_mass_matrix(q[[0, 2]], algorithm=name)).all()


def test_a_nan_is_no_singularity():
    """In a batch with both, the singular state is named; with the NaN alone there is no error."""
    robot = elbow_arm()
    q = np.array([[0.1, np.nan], [0.2, 1.0], [0.3, 0.0]])
    rest = np.zeros(2)
    for name in FORWARD:
        with pytest.raises(lw.SingularError, match=r"in state 2:"):
            robot.forward_dynamics(q, rest, rest, algorithm=name)
        found = robot.forward_dynamics(q[:2], rest, rest, algorithm=name)
        assert np.isnan(found[0]).all()
        assert np.isfinite(found[1]).all()


def test_two_joints_on_one_axis():
    """Each alone would be good; with nothing between them they are one too many."""
    joints = [
        Joint("first", "revolute", "base", "a"),
        Joint("second", "revolute", "a", "b", Transform.along((0, 0, 1), 0.3)),
    ]
    robot = Robot("spindle", [Link("base"), Link("a"), Link("b", body(np.random.default_rng(1)))], joints)
    s = states_of(robot, 1)
    consistent = robot.inverse_dynamics(s.q, s.qd, s.qdd)
    for name in FORWARD:
        for tau in (s.tau, consistent):
            with pytest.raises(lw.SingularError, match="joint 'first' moves no inertia"):
                robot.forward_dynamics(s.q, s.qd, tau, algorithm=name)


def test_single_precision_is_judged_alike():
    robot = arm(*CASES["massless, revolute"])
    s = states_of(robot, 1, 2)
    q, qd, tau = (x.astype(np.float32) for x in (s.q, s.qd, s.tau))
    for name in FORWARD:
        with pytest.raises(lw.SingularError, match="in state 0: joint 'wrist'"):
            robot.forward_dynamics(q, qd, tau, algorithm=name)


def test_the_error_is_an_arithmetic_one_of_ours_and_nothing_is_printed():
    assert issubclass(lw.SingularError, lw.LinkwiseError)
    assert issubclass(lw.SingularError, ArithmeticError)
    robot = arm(*CASES["massless, revolute"])
    zero = np.zeros(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(lw.SingularError):
            robot.forward_dynamics(zero, zero, zero)
        assert robot.forward_dynamics(zero[None][:0], zero, zero).shape == (0, 3)  # no state, no problem


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_small_robots_are_not_singular(scale):
    """What counts as no inertia is relative: a robot a million times lighter moves as well."""
    robot = lw.random_robot(2, 4)
    heavy = robot.with_parameters(scale * robot.parameters)
    s = states_of(robot, 1)
    for name in FORWARD:
        qdd = heavy.forward_dynamics(s.q, s.qd, scale * s.tau, algorithm=name)
        assert_near(
            qdd, robot.forward_dynamics(s.q, s.qd, s.tau, algorithm=name), 1e-9, 1.0 + norm(qdd), name
        )
