"""Loops that close up to the round-off of a file, states near a singular one, derivatives, motors, moved footholds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from evaluation import assert_near, value
from precise import CONTEXT, Precise

import linkwise as lw
from linkwise import ConstraintError, SingularError
from linkwise.algorithms import compound_link, newton_euler
from linkwise.algorithms.constrained import constraints
from linkwise.functions.table import mechanism_of
from linkwise.model.mechanism import flat
from linkwise.robot import kernels

ALGORITHMS = ("kalman", "compound_link", "filter")
ROUND_OFF = 3e-8  # [rad and m] of CAD files: axes and places with eight digits


def precise_accelerations(robot, q, qd, tau) -> np.ndarray:
    """q̈ from the whole system of equations in 60 digits; M, b, J and J̇ q̇ are computed in 60 digits, too."""
    links, held = mechanism_of(robot), constraints.prepared(robot)
    at, rates = ([Precise(float(x)) for x in values] for values in (q, qd))
    M = compound_link.mass_matrix(links, at)
    b = flat(newton_euler.inverse_dynamics(links, at, rates, [Precise(0.0)] * links.dof))
    J = constraints.jacobian(links, at, held)
    rate = constraints.bias(links, at, rates, held)
    # rows that no joint moves are left out: points of a planar arm cannot leave the plane
    rows = [k for k, row in enumerate(J) if any(abs(float(x)) > 1e-12 for x in row)]
    n, m = len(M), len(rows)
    system, right = CONTEXT.matrix(n + m, n + m), CONTEXT.matrix(n + m, 1)
    for i in range(n):
        right[i] = Precise(float(tau[i]) - b[i]).value
        for j in range(n):
            system[i, j] = Precise(M[i][j]).value
        for j, k in enumerate(rows):
            system[n + j, i] = system[i, n + j] = Precise(J[k][i]).value
    for j, k in enumerate(rows):
        right[n + j] = Precise(-rate[k]).value
    found = CONTEXT.lu_solve(system, right)
    return np.array([float(found[i]) for i in range(n)])


@pytest.mark.parametrize("angle", [1e-1, 1e-4, 1e-5])
def test_every_algorithm_is_exact_near_a_straight_arm(angle):
    """With a penalty, compound_link and the filter were 200 % off at 1e-4 rad."""
    for joints, bent in ((2, [0.3, angle]), (4, [0.3, angle, 2 * angle, -3 * angle])):
        arm = lw.planar_chain(joints)
        held = arm.with_constraints([lw.Point("tip", arm.pose(bent, "tip")[:3, 3])])
        J = held.constraint_jacobian(bent)[:2]
        rng = np.random.default_rng(0)
        qd, tau = rng.normal(size=joints), rng.normal(size=joints)
        qd = qd - np.linalg.pinv(J, rcond=1e-12) @ (J @ qd)
        if joints == 2:
            qd = np.zeros(2)
        wanted = precise_accelerations(held, bent, qd, tau)
        scale = max(np.abs(wanted).max(), np.abs(arm.forward_dynamics(bent, qd, tau)).max())
        for name in ALGORITHMS:
            found = value(held, "constrained_forward_dynamics", name, q=np.array(bent), qd=qd, tau=tau)
            allowance = 1e-16 / angle**2 if name == "filter" else 3e-15 / angle
            assert_near(found, wanted, allowance + 1e-11, scale, f"{name}, {joints} joints, {angle} rad")


def test_accuracy_near_singular_states_is_estimated():
    arm = lw.planar_chain(2)
    tau = np.array([1.0, -2.0])
    for angle in (1.0, 1e-2, 1e-4, 1e-6):
        bent = np.array([0.3, angle])
        held = arm.with_constraints([lw.Point("tip", arm.pose(bent, "tip")[:3, 3])])
        found = value(held, "constrained_forward_dynamics", q=bent, qd=np.zeros(2), tau=tau)
        off = np.abs(found - precise_accelerations(held, bent, np.zeros(2), tau)).max()
        rank, accuracy = held.constraint_rank(bent)
        assert rank == 2
        assert off <= accuracy * np.abs(arm.forward_dynamics(bent, np.zeros(2), tau)).max()
        assert accuracy < 1e-13 / angle
    assert held.constraint_rank([0.3, 0.0])[0] == 1


def four_bar(tilt: float, *, floating: bool = False, follower: bool = False):
    """(robot, q): two cranks and a coupler, closed by a point; axes and places are off by ``tilt``."""
    body = lw.Inertia.from_com(1.0, (0.1, 0.0, 0.0), (0.01, 0.02, 0.02))
    names = ["base", "frame", "crank", "coupler", "rocker"]
    if not floating:
        names.remove("base")
    root = "frame"
    links = [lw.Link(name, body) for name in names]

    def placed(xyz, turn):
        return lw.Transform.from_rpy(xyz, (tilt * turn, -2 * tilt * turn, 0.0))

    joints = [
        lw.Joint("j1", "revolute", root, "crank", placed((0.0, 0.0, tilt), 1.0)),
        lw.Joint("j2", "revolute", "crank", "coupler", placed((0.2, 0.0, -tilt), -2.0)),
        lw.Joint("j3", "revolute", root, "rocker", placed((0.4, 0.0, 0.0), 3.0)),
    ]
    if floating:
        joints.insert(0, lw.Joint("free", "floating", "base", "frame"))
    robot = lw.Robot("four_bar", links, joints)
    loop = lw.Point("coupler", "rocker", (0.3, 0.0, tilt), offset=(0.35, 0.0, 0.0), name="loop")
    held = robot.with_constraints([loop])
    start = robot.integrate(robot.neutral, np.array([0.0] * (6 if floating else 0) + [0.9, -0.4, 1.2]))
    return held, held.meet_constraints(start)


def allowed(robot, q, rng):
    J = robot.constraint_jacobian(q)
    v = rng.normal(size=robot.dof)
    return v - np.linalg.pinv(J, rcond=1e-5) @ (J @ v)


def test_loops_with_round_off_of_the_file_move_like_exact_ones():
    for floating in (False, True):
        exact, q = four_bar(0.0, floating=floating)
        rough, _ = four_bar(ROUND_OFF, floating=floating)
        near = rough.meet_constraints(q)
        rng = np.random.default_rng(1)
        qd, tau = allowed(exact, q, rng), rng.normal(size=exact.dof)
        assert np.abs(near - q).max() < 1e-6  # closed as well as the file allows, and not elsewhere
        assert np.abs(rough.constraint_errors(near)).max() < 10 * ROUND_OFF
        assert exact.constraint_rank(q)[0] == rough.constraint_rank(near)[0] == 2
        wanted = exact.forward_dynamics(q, qd, tau)
        forces = exact.constraint_forces(q, qd, tau)
        scale = np.abs(wanted).max()
        for name in ("kalman", "compound_link"):
            found = rough.forward_dynamics(near, allowed_rates(rough, near, qd), tau, algorithm=name)
            assert_near(found, wanted, 1e-5, scale, name)
        found = rough.constraint_forces(near, allowed_rates(rough, near, qd), tau)
        assert_near(found, forces, 1e-5, np.abs(forces).max(), "forces")


def allowed_rates(robot, q, qd):
    J = robot.constraint_jacobian(q)
    return qd - np.linalg.pinv(J, rcond=1e-5) @ (J @ qd)


def test_one_constraint_has_no_others_and_compliance_is_named():
    arm = lw.planar_chain(2)
    held = arm.with_constraints([lw.Weld("tip", arm.pose([0.3, 0.4], "tip"), name="hold")])
    with pytest.raises(ConstraintError) as raised:
        held.forward_dynamics(np.array([0.3, 0.4]), np.array([3.0, 1.0]), np.zeros(2))
    assert "hold" in str(raised.value)
    assert "others" not in str(raised.value)
    assert "compliance=" in str(raised.value)


# -- derivatives ------------------------------------------------------------------------------------------------------


def slopes_along(robot, q, qd, tau, step, h=1e-6):
    """The change of q̈ along a step of the positions, by central differences."""
    first, second = (
        value(robot, "constrained_forward_dynamics", q=robot.integrate(q, s * h * step), qd=qd, tau=tau)
        for s in (1, -1)
    )
    return (first - second) / (2 * h)


def test_derivatives_of_loops():
    """Closed loops on a floating base, with round-off of the file, with a joint that follows another one."""
    chain = lw.planar_chain(5).with_constraints([lw.Coupling("joint5", "joint4", -0.5)])
    position = np.array([0.3, 0.8, -0.6, 0.9])
    held = chain.with_constraints(
        [lw.Coupling("joint5", "joint4", -0.5), lw.Point("tip", chain.pose(position, "tip")[:3, 3])]
    )
    for robot, q in (
        four_bar(0.0, floating=True),
        four_bar(ROUND_OFF, floating=True),
        four_bar(0.0),
        (held, position),
    ):
        rng = np.random.default_rng(2)
        qd, tau = allowed(robot, q, rng), rng.normal(size=robot.dof)
        for name in ("kalman", "compound_link"):
            by_q = value(robot, "forward_dynamics_derivatives", name, q=q, qd=qd, tau=tau)
            assert np.isfinite(by_q).all()
            for _ in range(2):
                step = allowed(robot, q, rng)
                wanted = slopes_along(robot, q, qd, tau, step)
                assert_near(by_q @ step, wanted, 2e-5, np.abs(by_q).max(), f"{robot.name} {name}")


def test_derivatives_that_do_not_exist_are_refused():
    """A flat four-bar linkage may fold in two ways; beside it the derivatives exist."""
    arm = lw.planar_chain(3)
    flat_state = np.array([0.0, 0.0, np.pi])
    held = arm.with_constraints([lw.Point("tip", arm.pose(flat_state, "tip")[:3, 3])])
    tau = np.array([1.0, 2.0, 3.0])
    with pytest.raises(SingularError, match="no derivatives"):
        held.forward_dynamics_derivatives(flat_state, np.zeros(3), tau)
    beside = held.meet_constraints(flat_state + [1e-3, 0.0, 0.0])
    assert np.isfinite(held.forward_dynamics_derivatives(beside, np.zeros(3), tau)[0]).all()


# -- motors -----------------------------------------------------------------------------------------------------------


def test_motions_that_motors_cannot_make_are_refused_or_approached():
    arm = lw.planar_chain(4)
    q = np.array([1.8, -1.0, -0.8, -0.5])
    passive = ["joint2", "joint3", "joint4"]
    held = arm.with_constraints([lw.Point("tip", arm.pose(q, "tip")[:3, 3])], passive=passive)
    rng = np.random.default_rng(3)
    qd, tau = allowed(held, q, rng), np.array([0.7, 0.0, 0.0, 0.0])
    made = held.forward_dynamics(q, qd, tau)
    assert_near(held.inverse_dynamics(q, qd, made), tau, 1e-7, 1.0, "what the motor makes")
    nearest, missing = held.inverse_dynamics(q, qd, made, nearest=True)
    assert_near(nearest, tau, 1e-7, 1.0, "nearest")
    assert np.abs(missing).max() < 1e-8
    other = made + allowed(held, q, rng)  # two motions are allowed, and there is one motor
    with pytest.raises(ConstraintError, match=r"state 1.*'joint[234]' has no motor.*nearest=True"):
        held.inverse_dynamics(np.array([q, q]), qd, np.array([made, other]))
    nearest, missing = held.inverse_dynamics(q, qd, other, nearest=True)
    assert not nearest[1:].any()
    assert not missing[0]
    J = held.constraint_jacobian(q)
    needed = arm.inverse_dynamics(q, qd, other)
    forces = np.linalg.lstsq(J[:, 1:].T, needed[1:], rcond=1e-9)[0]
    assert_near(missing[1:], needed[1:] - J[:, 1:].T @ forces, 1e-9, np.abs(needed).max(), "the residual")


def test_passive_joints_of_robots_without_constraints_show_what_they_need():
    arm = lw.planar_chain(3)
    free = arm.with_constraints([], passive=["joint2"])
    state = np.array([0.2, 0.5, -0.3]), np.zeros(3), np.zeros(3)
    assert np.array_equal(free.inverse_dynamics(*state), arm.inverse_dynamics(*state))
    torques, missing = free.inverse_dynamics(*state, nearest=True)
    assert_near(torques + missing, arm.inverse_dynamics(*state), 1e-12, 10.0, "parts")
    assert torques[1] == 0.0


# -- targets ----------------------------------------------------------------------------------------------------------


def test_robots_that_differ_in_more_than_targets_share_no_code():
    """Whatever else a robot has, such as joints without a motor, is part of what its code is found by."""
    arm = lw.planar_chain(3)
    here, there = lw.Point("tip", (1.0, 0.0, 0.5)), lw.Point("tip", (0.9, 0.0, 0.4))
    held = arm.with_constraints([here])
    assert held != arm.with_constraints([there])
    assert held.content_without_targets() == arm.with_constraints([there]).content_without_targets()
    changed = {
        "passive": (arm.joint_names[0],),
        "contacts": (lw.Contact("tip"),),
        "fluid": lw.Fluid(density=1.2),
        "constraints": (replace(here, compliance=0.1),),
        "reduced": True,
        "gravity": (0.0, 0.0, -1.6),
        "frames": (*arm.frames, lw.Frame("hand", "link2", arm.frames[0].pose)),
        "name": "another",
    }
    for part, given in changed.items():
        other = held._with(**{part: given})
        assert other.content_without_targets() != held.content_without_targets(), part


def test_robots_held_elsewhere_share_code(monkeypatch):
    """Moving feet compiled everything again; now nothing is even traced."""
    arm = lw.planar_chain(3)
    q, rates = np.array([0.4, 0.8, 0.5]), np.zeros(3)
    tau = np.array([0.3, 0.2, -0.1])

    def held(shift):
        target = arm.pose(q, "tip")
        target[[0, 2], 3] += shift
        weld = lw.Weld("link2", arm.pose(q, "link2"), compliance=0.1)
        return arm.with_constraints([lw.Point("tip", target[:3, 3]), weld])

    def everything(robot):
        return [
            robot.forward_dynamics(q, rates, tau),
            robot.forward_dynamics(q, rates, tau, stabilization=20.0),
            robot.constraint_forces(q, rates, tau, stabilization=20.0),
            robot.constraint_errors(q),
            robot.constraint_errors(q.astype(np.float32)),
            robot.inverse_dynamics(q, rates, rates),
            *robot.forward_dynamics_derivatives(q, rates, tau),
        ]

    first = everything(held(0.0))

    def refuse(*_):
        raise AssertionError("traced again")

    monkeypatch.setattr(kernels, "_cheapest", refuse)
    moved = held(0.1)
    again = everything(moved)
    assert np.array_equal(again[0], first[0])
    assert np.allclose(again[3] - first[3], [-0.1, 0.0, -0.1] + [0.0] * 6, atol=1e-15)
    assert np.abs(again[1] - first[1]).max() > 1.0
    monkeypatch.undo()
    kernel = moved.kernel("constraint_errors", inputs=("targets",))
    pose = arm.pose(q, "link2")
    numbers = [*moved.constraints[0].to, *pose[:3, 3], *pose[:3, :3].ravel()]
    assert np.array_equal(kernel(q, np.array(numbers)), again[3])
