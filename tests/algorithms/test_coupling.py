"""Joints that follow others: everything is that of the uncoupled robot, reduced by S."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from evaluation import assert_near, value

import linkwise as lw
from linkwise import Inertia, ModelError, Robot
from linkwise.model.joint import Mimic
from strategies import body

CLOSE = 1e-11


def pair(seed: int, base: str) -> tuple[Robot, Robot, np.ndarray, np.ndarray]:
    """(coupled, uncoupled, S, offsets): the last joint follows the one before, which follows an earlier one."""
    robot = lw.random_robot(seed, 6, tree=True)
    massive = [
        replace(link, inertia=body(np.random.default_rng(seed))) if link.name == robot.base else link
        for link in robot.links
    ]
    robot = Robot(robot.name, massive, robot.joints, gravity=robot.gravity).with_base(base)
    names = [joint.name for joint in robot.moving_joints]
    relations = {names[-1]: Mimic(names[-2], 1.7, 0.2, True), names[-2]: Mimic(names[-4], -0.6, -0.1, True)}
    joints = [replace(joint, mimic=relations.get(joint.name)) for joint in robot.joints]
    coupled = Robot(robot.name, robot.links, joints, gravity=robot.gravity)
    S = np.delete(np.eye(robot.dof), [robot.dof - 1, robot.dof - 2], axis=1)
    leader = robot.dof - 4
    S[robot.dof - 2, leader] = -0.6
    S[robot.dof - 1, leader] = 1.7 * -0.6
    offsets = np.zeros(robot.nq)
    offsets[-2:] = -0.1, 1.7 * -0.1 + 0.2
    return coupled, robot, S, offsets


def lifted(q: np.ndarray, robot: Robot, offsets: np.ndarray) -> np.ndarray:
    leader = q[..., robot.nq - 4]
    return np.concatenate([q, np.stack([-0.6 * leader, -1.02 * leader], axis=-1)], axis=-1) + offsets


@pytest.mark.parametrize("base", ["fixed", "floating", "planar"])
@pytest.mark.parametrize("seed", range(4))
def test_everything_is_reduced_exactly(seed, base):
    coupled, robot, S, offsets = pair(seed, base)
    assert coupled.dof == robot.dof - 2
    assert coupled.joint_names == robot.joint_names[:-2]
    rng = np.random.default_rng(seed)
    q = coupled.random(rng)
    qd, qdd = rng.normal(size=(2, coupled.dof))
    Q, V, A = lifted(q, robot, offsets), S @ qd, S @ qdd
    tau = S.T @ value(robot, "inverse_dynamics", q=Q, qd=V, qdd=A)
    scale = np.abs(tau).max()
    for name in coupled.algorithms("inverse_dynamics"):
        assert_near(value(coupled, "inverse_dynamics", name, q=q, qd=qd, qdd=qdd), tau, CLOSE, scale, name)
    M = S.T @ value(robot, "mass_matrix", q=Q) @ S
    for name in coupled.algorithms("mass_matrix"):
        assert_near(value(coupled, "mass_matrix", name, q=q), M, CLOSE, np.abs(M).max(), name)
    for name in ("kalman", "compound_link"):
        found = value(coupled, "forward_dynamics", name, q=q, qd=qd, tau=tau)
        assert_near(M @ found, M @ qdd, 1e-9, scale, name)
        inverse = value(coupled, "inverse_mass_matrix", name, q=q)
        assert_near(inverse @ M, np.eye(coupled.dof), 1e-9, np.linalg.cond(M), name)
    for name in coupled.algorithms("iterated_forward_dynamics"):
        found = value(coupled, "iterated_forward_dynamics", name, q=q, qd=qd, tau=tau, start=0.5 * qdd)
        assert_near(M @ found, M @ qdd, 1e-8, scale, name)
    frame = robot.moving_joints[-1].child
    J = value(robot, "jacobian", q=Q, frame=frame) @ S
    assert_near(value(coupled, "jacobian", q=q, frame=frame), J, CLOSE, 5.0, "jacobian")
    assert_near(value(coupled, "pose", q=q, frame=frame), value(robot, "pose", q=Q, frame=frame), CLOSE, 5.0)
    C = value(coupled, "coriolis_matrix", q=q, qd=qd)
    assert_near(C @ qd, value(coupled, "velocity_torques", q=q, qd=qd), CLOSE, scale, "C")
    Y = value(coupled, "regressor", q=q, qd=qd, qdd=qdd)
    assert_near(Y @ coupled.parameters, tau, CLOSE, scale, "regressor")
    energy = value(robot, "kinetic_energy", q=Q, qd=V)
    assert_near(value(coupled, "kinetic_energy", q=q, qd=qd), energy, CLOSE, 1.0 + energy, "energy")
    step = rng.normal(size=coupled.dof)
    assert_near(coupled.difference(q, coupled.integrate(q, 0.3 * step)), 0.3 * step, CLOSE, 1.0, "steps")


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_derivatives_of_forward_dynamics(base):
    coupled, *_ = pair(2, base)
    rng = np.random.default_rng(0)
    q = coupled.random(rng)
    qd, tau = rng.normal(size=(2, coupled.dof))
    by_q, by_qd, by_tau = coupled.forward_dynamics_derivatives(q, qd, tau)
    h = 1e-6

    def slope(moved):
        return np.stack([(moved(h * e) - moved(-h * e)) / (2 * h) for e in np.eye(coupled.dof)], axis=1)

    scale = np.abs(by_q).max() + 1
    fd = coupled.forward_dynamics
    assert_near(slope(lambda e: fd(coupled.integrate(q, e), qd, tau)), by_q, 1e-6, scale, "by q")
    assert_near(slope(lambda e: fd(q, qd + e, tau)), by_qd, 1e-6, scale, "by qd")
    assert_near(slope(lambda e: fd(q, qd, tau + e)), by_tau, 1e-6, scale, "by tau")


def test_locking_a_leader_locks_its_followers():
    coupled, robot, *_ = pair(1, "fixed")
    leader = robot.joint_names[-4]
    locked = coupled.lock({leader: 0.3})
    other = robot.lock(
        {
            leader: 0.3,
            robot.joint_names[-2]: -0.6 * 0.3 - 0.1,
            robot.joint_names[-1]: 1.7 * (-0.6 * 0.3 - 0.1) + 0.2,
        }
    )
    q = np.linspace(-1, 1, locked.dof)
    assert_near(value(locked, "gravity_torques", q=q), value(other, "gravity_torques", q=q), CLOSE, 10.0)


def test_a_circle_of_followers_is_refused():
    _, robot, *_ = pair(1, "fixed")
    a, b = robot.joint_names[-2:]
    relations = {a: Mimic(b, 1.0, 0.0, True), b: Mimic(a, 1.0, 0.0, True)}
    joints = [replace(joint, mimic=relations.get(joint.name)) for joint in robot.joints]
    with pytest.raises(ModelError, match="follows itself"):
        Robot("circle", robot.links, joints)


@pytest.mark.parametrize("tip", [Inertia(), Inertia.from_com(1e-12, (0.0, 0.0, 0.1), (0.0, 0.0, 0.0))])
def test_a_follower_without_inertia_is_moved_by_its_leader(tip):
    """Alone it could not be accelerated; coupled, the mass matrix is regular."""
    chain = lw.random_robot(1, 3)
    names = chain.joint_names
    links = [
        replace(link, inertia=tip) if link.name == chain.links[-1].name else link for link in chain.links
    ]
    joints = [
        replace(j, mimic=Mimic(names[0], 0.5, 0.1, True)) if j.name == names[2] else j for j in chain.joints
    ]
    robot = Robot("finger", links, joints, gravity=chain.gravity)
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.normal(size=(3, 4, 2))
    tau = robot.inverse_dynamics(q, qd, qdd)
    for algorithm in robot.algorithms("forward_dynamics"):
        assert_near(robot.forward_dynamics(q, qd, tau, algorithm=algorithm), qdd, 1e-8, 10.0)
    for algorithm in robot.algorithms("inverse_mass_matrix"):
        inverse = robot.inverse_mass_matrix(q, algorithm=algorithm)
        assert_near(inverse @ robot.mass_matrix(q), np.tile(np.eye(2), (4, 1, 1)), 1e-9, 10.0)


def test_a_coupled_robot_that_is_singular_names_the_joint():
    chain = lw.random_robot(1, 4)
    names = chain.joint_names
    empty = {chain.links[-1].name, chain.links[-2].name}
    links = [replace(link, inertia=Inertia()) if link.name in empty else link for link in chain.links]
    joints = [
        replace(j, rotor_inertia=0.0, mimic=Mimic(names[2], 0.5, 0.1, True) if j.name == names[3] else None)
        if j.moves
        else j
        for j in chain.joints
    ]
    robot = Robot("finger", links, joints, gravity=chain.gravity)
    zero = np.zeros(3)
    for algorithm in robot.algorithms("forward_dynamics"):
        with pytest.raises(lw.SingularError, match=f"joint '{names[2]}' moves no inertia"):
            robot.forward_dynamics(zero, zero, zero, algorithm=algorithm)
