"""Constraints: two algorithms against the full system of equations; redundant and impossible ones; derivatives."""

from __future__ import annotations

from dataclasses import astuple, replace

import numpy as np
import pytest
from evaluation import assert_near, value
from test_free_joints import random_robot, state

import linkwise as lw
from linkwise import ConstraintError, ModelError
from linkwise.algorithms.constrained.constraints import _trace, largest_part

pin = pytest.importorskip("pinocchio")

ALGORITHMS = ("kalman", "compound_link")


def held_robot(seed: int, rows: int):
    """(robot, q, qd, tau): frames held where they are, at velocities that the constraints allow."""
    robot = random_robot(2 * seed + 1, 6)
    q, qd, _, tau = state(robot, seed)
    frames = [joint.child for joint in robot.moving_joints[::-1]]
    constraints = []
    if rows in (6, 9, 12):
        constraints.append(lw.Weld(frames[0], value(robot, "pose", q=q, frame=frames[0])))
    if rows in (3, 9):
        constraints.append(lw.Point(frames[1], value(robot, "pose", q=q, frame=frames[1])[:3, 3]))
    if rows == 12:
        relative = np.linalg.inv(value(robot, "pose", q=q, frame=frames[2])) @ value(
            robot, "pose", q=q, frame=frames[1]
        )
        constraints.append(lw.Weld(frames[1], frames[2], relative))
    held = robot.with_constraints(constraints)
    assert held.constraint_rows == rows
    J = value(held, "constraint_jacobian", q=q)
    return held, q, qd - np.linalg.pinv(J) @ (J @ qd), tau


def solved(robot, q, qd, tau):
    """(q̈, λ, J) from the whole system of equations, by least squares."""
    J, M = value(robot, "constraint_jacobian", q=q), value(robot, "mass_matrix", q=q)
    step = 1e-6
    ahead, behind = (
        value(robot, "constraint_jacobian", q=value(robot, "integrate", q=q, step=s * step * qd))
        for s in (1, -1)
    )
    rate = (ahead - behind) @ qd / (2 * step)
    n, m = robot.dof, len(J)
    system = np.block([[M, -J.T], [J, np.zeros((m, m))]])
    right = np.concatenate([tau - value(robot, "bias_torques", q=q, qd=qd), -rate])
    found = np.linalg.lstsq(system, right, rcond=1e-10)[0]
    return found[:n], found[n:], J


@pytest.mark.parametrize("rows", [3, 6, 9, 12])
@pytest.mark.parametrize("seed", range(2))
def test_both_algorithms_solve_the_equations(seed, rows):
    robot, q, qd, tau = held_robot(seed, rows)
    assert_near(value(robot, "constraint_errors", q=q), np.zeros(rows), 1e-12, 1.0, "errors")
    qdd, forces, J = solved(robot, q, qd, tau)
    state = {"q": q, "qd": qd, "tau": tau}
    ours = {name: value(robot, "constrained_forward_dynamics", name, **state) for name in ALGORITHMS}
    scale = np.abs(qdd).max()
    for name, found in ours.items():
        assert_near(found, qdd, 1e-6, scale, name)  # the equations' J̇ q̇ is a difference quotient
    assert_near(ours["kalman"], ours["compound_link"], 1e-9, scale, "both")
    if np.linalg.matrix_rank(J, tol=1e-6) == rows:
        for name in ALGORITHMS:
            found = value(robot, "constraint_forces", name, **state)
            assert_near(found, forces, 1e-5, np.abs(forces).max(), name)


def test_redundant_constraints_stay_finite_and_change_nothing():
    robot, q, qd, tau = held_robot(1, 6)
    (weld,) = robot.constraints
    point = lw.Point(weld.frame, robot.pose(q, weld.frame)[:3, 3])
    twice = robot.with_constraints([weld, lw.Weld(weld.frame, weld.to, name="again"), point])
    state = {"q": q, "qd": qd, "tau": tau}
    once = value(robot, "constrained_forward_dynamics", **state)
    for name in (*ALGORITHMS, "filter"):
        found = value(twice, "constrained_forward_dynamics", name, **state)
        assert_near(found, once, 1e-8, np.abs(once).max(), name)
        assert np.isfinite(value(twice, "constraint_forces", name, **state)).all()


@pytest.mark.parametrize("scale", [1e-15, 1e15])
def test_lighter_and_heavier_robots_move_in_the_same_way(scale):
    """What counts as redundant depends on no unit of mass: the accelerations stay, the forces grow as the masses."""
    robot, q, qd, tau = held_robot(1, 6)
    (weld,) = robot.constraints
    twice = robot.with_constraints([weld, lw.Weld(weld.frame, weld.to, name="again")])
    links = [
        replace(link, inertia=lw.Inertia(*(scale * np.array(part) for part in astuple(link.inertia))))
        for link in robot.links
    ]
    joints = [replace(joint, rotor_inertia=scale * joint.rotor_inertia) for joint in robot.joints]
    scaled = lw.Robot("scaled", links, joints, gravity=robot.gravity).with_constraints(twice.constraints)
    names = ("constrained_forward_dynamics", "constraint_forces")
    for name in ALGORITHMS:
        qdd, forces = (value(twice, key, name, q=q, qd=qd, tau=tau) for key in names)
        same, larger = (value(scaled, key, name, q=q, qd=qd, tau=scale * tau) for key in names)
        assert_near(same, qdd, 1e-7, np.abs(qdd).max(), name)
        assert_near(larger / scale, forces, 1e-7, np.abs(forces).max(), name)


def test_constraints_that_contradict_each_other_are_named():
    arm = lw.planar_chain(2)
    held = arm.with_constraints([lw.Weld("tip", arm.pose([0.3, 0.4], "tip"), name="hold the tip")])
    with pytest.raises(ConstraintError, match="hold the tip"):
        held.forward_dynamics(
            [0.3, 0.4], [3.0, 1.0], [0.0, 0.0]
        )  # it moves, so it would have to slow down at once


def test_inverse_dynamics_gives_the_smallest_torques():
    robot, q, qd, tau = held_robot(0, 6)
    qdd = robot.forward_dynamics(q, qd, tau)
    least = robot.inverse_dynamics(q, qd, qdd)
    assert_near(robot.forward_dynamics(q, qd, least), qdd, 1e-8, np.abs(qdd).max(), "the same motion")
    assert np.linalg.norm(least) <= np.linalg.norm(tau)
    J = robot.constraint_jacobian(q)
    assert_near(J @ least, np.zeros(len(J)), 1e-8, np.abs(least).max() * np.abs(J).max(), "nothing in vain")


def test_joints_without_a_motor_get_no_torque():
    """A five-bar linkage: two motors at the base, three passive joints, closed by a point."""
    left = lw.planar_chain(3)
    q0 = np.array([2.0, -1.2, -0.9])
    held = left.with_constraints([lw.Point("tip", left.pose(q0, "tip")[:3, 3])], passive=["joint2", "joint3"])
    J = held.constraint_jacobian(q0)
    qd = np.linalg.svd(J)[2][-1]
    free = held.forward_dynamics(q0, qd, np.array([0.7, 0.0, 0.0]))
    tau = held.inverse_dynamics(q0, qd, free)
    assert_near(tau, [0.7, 0.0, 0.0], 1e-7, 1.0, "only the motor")


def test_impact_stops_what_is_held():
    robot, q, _, _ = held_robot(2, 9)
    qd = np.random.default_rng(5).normal(size=robot.dof)
    J = robot.constraint_jacobian(q)
    scale = np.abs(J @ qd).max()
    assert_near(J @ robot.impact(q, qd), np.zeros(9), 1e-8, scale, "plastic")
    assert_near(J @ robot.impact(q, qd, restitution=0.5), -0.5 * (J @ qd), 1e-8, scale, "half")


def test_errors_decay_at_the_rate_of_the_stabilization():
    arm = lw.planar_chain(3, gravity=(0.0, 0.0, 0.0))
    q0 = np.array([0.4, 0.8, 0.5])
    held = arm.with_constraints([lw.Point("tip", arm.pose(q0, "tip")[:3, 3])])
    q, qd, h, rate = q0 + [0.01, -0.01, 0.02], np.zeros(3), 1e-3, 20.0
    start = np.abs(held.constraint_errors(q)).max()
    for _ in range(600):
        qd = qd + h * held.forward_dynamics(q, qd, np.zeros(3), stabilization=rate)
        q = q + h * qd
    assert np.abs(held.constraint_errors(q)).max() < 0.01 * start


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (lw.Weld("nowhere", np.eye(4)), "no frame 'nowhere'"),
        (lw.Weld("tip", np.eye(3)), r"shape \(4, 4\)"),
        (lw.Weld("tip", 2.0 * np.eye(4)), "rotation"),
        (lw.Point("tip", (0.0, np.nan, 0.0)), "not finite"),
        (lw.Point("tip", "tip"), "same link"),
        (lw.Coupling("joint1", "joint9"), "no moving joint 'joint9'"),
    ],
)
def test_impossible_constraints_are_refused_by_name(constraint, message):
    with pytest.raises((ModelError, lw.UnknownNameError), match=message):
        lw.planar_chain(2).with_constraints([constraint])


def test_constraints_need_constraints():
    with pytest.raises(ModelError, match="has no constraints"):
        lw.planar_chain(2).delassus_matrix([0.0, 0.0])


def slopes(function, x, move=lambda x, step: x + step, h=1e-6):
    """Central differences along the velocity coordinates."""
    steps = h * np.eye(len(function(x)))
    return np.array([(function(move(x, e)) - function(move(x, -e))) / (2 * h) for e in steps]).T


def ball_and_hinge():
    body = lw.Inertia.from_com(1.0, (0.3, 0.0, 0.1), (0.02, 0.03, 0.04))
    links = [lw.Link("base"), lw.Link("upper", body), lw.Link("tip", body)]
    joints = [
        lw.Joint("ball", "ball", "base", "upper"),
        lw.Joint("hinge", "revolute", "upper", "tip", lw.Transform.from_rpy((0.5, 0.0, 0.0))),
    ]
    return lw.Robot("ball_and_hinge", links, joints)


@pytest.mark.parametrize("robot", [lw.planar_chain(3), ball_and_hinge()], ids=lambda robot: robot.name)
def test_derivatives_know_the_constraints(robot):
    q = robot.integrate(robot.neutral, np.linspace(0.2, 0.8, robot.dof))
    held = robot.with_constraints([lw.Point("tip", robot.pose(q, "tip")[:3, 3])])
    rng = np.random.default_rng(0)
    qd, tau = held.impact(q, rng.normal(size=robot.dof)), rng.normal(size=robot.dof)
    by_q, by_qd, by_tau = held.forward_dynamics_derivatives(q, qd, tau)
    scale = max(np.abs(by_q).max(), 1.0)
    move = held.integrate
    assert_near(by_q, slopes(lambda x: held.forward_dynamics(x, qd, tau), q, move), 1e-6, scale, "by q")
    assert_near(by_qd, slopes(lambda x: held.forward_dynamics(q, x, tau), qd), 1e-6, scale, "by qd")
    assert_near(by_tau, slopes(lambda x: held.forward_dynamics(q, qd, x), tau), 1e-6, scale, "by tau")
    qdd = held.forward_dynamics(q, qd, tau)
    by_q, _, by_qdd = held.inverse_dynamics_derivatives(q, qd, qdd)
    scale = max(np.abs(by_q).max(), 1.0)
    assert_near(
        by_q, slopes(lambda x: held.inverse_dynamics(x, qd, qdd), q, move), 1e-6, scale, "torques by q"
    )
    assert_near(by_qdd, slopes(lambda x: held.inverse_dynamics(q, qd, x), qdd), 1e-6, scale, "torques by qdd")


def test_rows_that_no_joint_moves_change_nothing():
    arm = lw.planar_chain(2)
    state = [0.3, 0.4], [1.0, 2.0], [0.1, 0.2]
    held = arm.with_constraints([lw.Point("link1", (0.0, 0.0, 0.0))])  # on the axis of the first joint
    assert not held.constraint_jacobian(state[0]).any()
    free = arm.forward_dynamics(*state)
    for name in (*ALGORITHMS, "filter"):
        assert_near(held.forward_dynamics(*state, algorithm=name), free, 1e-12, np.abs(free).max(), name)
        assert not held.constraint_forces(*state, algorithm=name).any()


def test_sizes_of_rows_count_every_entry_and_both_signs():
    assert _trace([[1.0, 9.0, 9.0], [9.0, 2.0, 9.0], [9.0, 9.0, 4.0]]) == 7.0
    for residuals in ([-2.0, 1.0], [1.0, 2.0]):
        assert largest_part(residuals, [4.0, 4.0]) == pytest.approx(0.5, abs=1e-3)
