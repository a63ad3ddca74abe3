"""Closed loops and held frames in simulations: errors stay small, energy too, and what cannot be met is named."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import ConstraintError, Inertia, Joint, Link, Robot, Transform, control
from linkwise.compiler.rollout import interpret
from linkwise.robot.kernels import kernels_of
from linkwise.simulate import SimulationError, SimulationWarning, python_loop, simulate, simulate_adaptive
from linkwise.simulate.watch import unmet


def rod(length: float, mass: float) -> Inertia:
    across = mass * length * length / 12
    return Inertia.from_com(mass, (length / 2, 0.0, 0.0), (1e-4, across, across))


def four_bar(tilt: float = 0.0) -> Robot:
    """Crank, coupler and rocker; the loop is closed by a point, one row of which is redundant in the plane. The axis of
    the rocker may be tilted [rad], as numbers of files are rounded."""
    links = [
        Link("base"), Link("crank", rod(0.2, 0.5)), Link("coupler", rod(0.5, 1.0)), Link("rocker", rod(0.4, 0.8))
    ]  # fmt: skip
    joints = [
        Joint("crank", "revolute", "base", "crank"),
        Joint("coupler", "revolute", "crank", "coupler", Transform.from_rpy((0.2, 0.0, 0.0))),
        Joint(
            "rocker",
            "revolute",
            "base",
            "rocker",
            Transform.from_rpy((0.5, 0.0, 0.0), (tilt, 0.7 * tilt, 0.0)),
        ),
    ]
    loop = lw.Point("coupler", "rocker", position=(0.4, 0.0, 0.0), offset=(0.5, 0.0, 0.0), name="the loop")
    robot = Robot("four_bar", links, joints, gravity=(0.0, -9.81, 0.0))
    return robot.with_constraints([loop], passive=["coupler", "rocker"])


@pytest.fixture(scope="module")
def linkage():
    return four_bar()


@pytest.fixture(scope="module")
def start(linkage):
    return linkage.meet_constraints([0.5, 0.5, 1.5])


@pytest.mark.parametrize(
    ("integrator", "stabilization", "most"),
    [
        ("rk4", None, 1e-11),
        ("rk4", "projection", 1e-11),
        ("rk4", 20.0, 1e-8),
        ("semi_implicit_euler", None, 1e-8),
    ],
)
def test_loops_stay_closed_for_ten_seconds(linkage, start, integrator, stabilization, most):
    found = simulate(
        linkage, control.Passive(linkage), duration=10.0, q=start, integrator=integrator,
        stabilization=stabilization, every=7,
    )  # fmt: skip
    assert np.abs(found.constraint_errors()).max() < most
    assert np.abs(linkage.constraint_errors(found.final_q)).max() < most
    assert np.abs(found.qd).max() > 5.0  # it swings through
    speed = np.einsum("tij,tj->ti", linkage.constraint_jacobian(found.q), found.qd)
    assert np.abs(speed).max() < (1e-6 if integrator == "rk4" else 1e-3)
    if integrator == "rk4":
        energy = found.energy()
        assert np.abs(energy - energy[0]).max() < 1e-7


def test_without_stabilization_errors_grow_and_the_loop_is_named(linkage, start):
    with pytest.warns(SimulationWarning, match="four_bar: the loop is not kept: off by"):
        found = simulate(
            linkage, control.Passive(linkage), duration=5.0, q=start, integrator="semi_implicit_euler",
            stabilization=0.0, every=10,
        )  # fmt: skip
    (broken,) = found.unmet
    assert broken.constraint == "the loop"
    assert broken.by > 1e-4


@pytest.mark.parametrize("tilt", [1e-9, 1e-7, 1e-6, 1e-5])
def test_loops_of_rounded_numbers_move_as_exact_ones(linkage, start, tilt):
    """Axes that are not quite parallel would lock the loop: less than what it fails to close by is redundant."""
    qd = np.linalg.svd(linkage.constraint_jacobian(start))[2][-1]
    exact = linkage.forward_dynamics(start, qd, [0.3, 0.0, 0.0])
    found = four_bar(tilt).forward_dynamics(start, qd, [0.3, 0.0, 0.0])
    np.testing.assert_allclose(found, exact, atol=1e-6 * np.abs(exact).max())


def test_each_loop_and_robot_that_is_not_kept_is_told_with_its_worst_row():
    """Two loops of several rows, three robots: drift is put in by hand."""
    arm = lw.planar_chain(3)
    points = [lw.Point("tip", arm.pose(np.array([0.3, 0.5, 0.7]), "tip")[:3, 3], name="end")]
    points.append(lw.Point("link2", arm.pose(np.array([0.3, 0.5, 0.7]), "link2")[:3, 3], name="elbow"))
    held = arm.with_constraints(points)
    t, q = np.arange(5.0), np.tile([0.3, 0.5, 0.7], (3, 5, 1))
    assert unmet(held, t, q) == []
    # off from the start on by as much, or by less than counts, is not told
    assert unmet(held, t, q + np.array([0.1, 0.0, 0.0])) == []
    assert unmet(held, t, q + np.linspace(0.0, 1e-9, 5)[:, np.newaxis]) == []
    q[1, 3, 2] += 0.2  # the last joint: the end alone
    q[2, 2, 0] += 0.1
    q[2, 4, 0] += 0.3
    off = np.abs(held.constraint_errors(q))
    rows = {"end": slice(0, held.constraints[0].rows), "elbow": slice(held.constraints[0].rows, None)}
    found = {(each.constraint, each.robot): each for each in unmet(held, t, q)}
    assert set(found) == {("end", (1,)), ("end", (2,)), ("elbow", (2,))}
    for (name, place), each in found.items():
        assert each.time == (3.0 if place == (1,) else 4.0)
        assert each.by == pytest.approx(off[place][int(each.time), rows[name]].max())


def test_the_adaptive_integrator_agrees(linkage, start):
    exact = simulate_adaptive(linkage, duration=1.0, q=start, rows=3, rtol=1e-9, atol=1e-11)
    found = simulate(linkage, control.Passive(linkage), duration=1.0, step=5e-4, q=start, every=1000)
    np.testing.assert_allclose(found.final_q, exact.final_q, atol=1e-7)


def test_fused_loops_have_the_bits_of_the_interpreter(linkage, start):
    law = control.ConstantTorque(linkage, [1.0, 0.0, 0.0])
    found = simulate(linkage, law, duration=0.004, q=start)
    kernel = [kernel for key, kernel in kernels_of(linkage).items() if key[0] == "rollout"][-1]
    given = {"q": start, "qd": np.zeros(3), "step": [1e-3], "target": np.zeros(3), "torque": [1.0, 0.0, 0.0]}
    final, _ = interpret(kernel.program(), given, 4)
    assert np.array_equal(final["q"], found.final_q)
    many = simulate(linkage, law, duration=0.004, q=np.tile(start, (5, 1)))
    assert np.array_equal(many.final_q[3], found.final_q)
    stepped = simulate(linkage, law, duration=0.004, q=start, fused=False)
    np.testing.assert_allclose(stepped.final_q, found.final_q, rtol=0, atol=1e-14)


def test_starts_that_break_a_constraint_are_refused_by_its_name(linkage, start):
    law = control.Passive(linkage)
    with pytest.raises(
        ConstraintError, match=r"initial position does not meet the loop: off by .*meet_constraints"
    ):
        simulate(linkage, law, duration=0.01, q=[0.5, 0.5, 1.5])
    with pytest.raises(ConstraintError, match=r"initial velocities do not keep the loop.*robot\.impact"):
        simulate(linkage, law, duration=0.01, q=start, qd=[1.0, 0.0, 0.0])
    allowed = linkage.impact(start, [1.0, 0.0, 0.0])
    simulate(linkage, law, duration=0.01, q=start, qd=allowed)
    decayed = simulate(linkage, law, duration=2.0, q=[0.32, 0.42, 1.41], stabilization=20.0, every=100)
    assert np.abs(decayed.constraint_errors()[0]).max() > 1e-3
    assert np.abs(linkage.constraint_errors(decayed.final_q)).max() < 1e-8
    with pytest.raises(ConstraintError, match="initial position does not meet"):
        simulate(linkage, law, duration=0.01, q=[0.32, 0.42, 1.41], stabilization=0.0)
    ends = {
        rate: simulate_adaptive(
            linkage, duration=0.3, q=[0.32, 0.42, 1.41], rows=2, rtol=1e-6, atol=1e-8, **given
        )
        for rate, given in (
            ("none", {"stabilization": 0.0}),
            ("default", {}),
            ("slow", {"stabilization": 5.0}),
        )
    }
    off = {rate: np.abs(linkage.constraint_errors(found.final_q)).max() for rate, found in ends.items()}
    first = np.abs(linkage.constraint_errors(ends["none"].q[0])).max()
    assert off["none"] > 0.9 * first > off["slow"] > 10.0 * off["default"]
    with pytest.raises(SimulationError, match="stabilization: expected 'projection' or a rate"):
        simulate(linkage, law, duration=0.01, q=start, stabilization="often")
    with pytest.raises(SimulationError, match="stabilization: expected finite numbers from 0 on"):
        simulate(linkage, law, duration=0.01, q=start, stabilization=-1.0)


def test_positions_that_meet_the_constraints(linkage):
    q = linkage.meet_constraints(np.array([[0.5, 0.5, 1.5], [0.0, 1.0, 1.5]]))
    assert np.abs(linkage.constraint_errors(q)).max() < 1e-10
    far = linkage.with_constraints([lw.Point("coupler", (5.0, 0.0, 0.0), name="out of reach")])
    with pytest.raises(ConstraintError, match="no position near the given one meets out of reach"):
        far.meet_constraints([0.5, 0.5, 1.5])
    arm = lw.load("panda")
    q0 = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
    goal = arm.pose(q0 + 0.3)
    held = arm.with_constraints([lw.Weld(arm.default_frame(), goal)])
    found = held.meet_constraints(q0)
    np.testing.assert_allclose(arm.pose(found), goal, atol=1e-9)
    upside_down = goal @ np.diag([1.0, -1.0, -1.0, 1.0])  # the sine of this angle is zero
    other = arm.with_constraints([lw.Weld(arm.default_frame(), upside_down)])
    found = other.meet_constraints(q0 + 0.3)
    np.testing.assert_allclose(arm.pose(found), upside_down, atol=1e-9)


def test_a_weld_holds_an_arm_on_a_floating_base():
    """A satellite grips a post: the base swings, the hand stays."""
    arm = lw.load("panda", base="floating").with_payload(50.0, inertia=(5.0, 5.0, 5.0), frame="base")
    arm = arm.lock({f"panda_joint{k}": 0.4 for k in range(3, 8)}).with_gravity((1.6, 0.0, 0.0))
    arm = arm.with_parameters({label: 0.0 for label in arm.parameter_labels if "friction" in label})
    hand, q = arm.default_frame(), arm.neutral
    held = arm.with_constraints([lw.Weld(hand, arm.pose(q, hand), name="grip")])
    found = simulate(held, control.Passive(held), duration=1.0, step=2e-3, q=q, every=100, warn=False)
    assert np.abs(found.constraint_errors()).max() < 1e-10
    np.testing.assert_allclose(held.pose(found.final_q, hand), arm.pose(q, hand), atol=1e-9)
    assert np.abs(found.qd[-1]).max() > 0.1


def test_dry_friction_in_a_loop_takes_energy_and_holds():
    linkage = four_bar()
    q = linkage.meet_constraints([0.5, 0.5, 1.5])
    rubbing = linkage.with_parameters({"rocker.coulomb_friction": 0.3})
    found = simulate(rubbing, control.Passive(rubbing), duration=6.0, q=q, every=20)
    energy = found.energy()
    assert (np.diff(energy) < 1e-6).all()
    assert energy[-1] < energy[0] - 0.3
    assert np.abs(found.constraint_errors()).max() < 1e-10
    stuck = linkage.with_parameters({"rocker.coulomb_friction": 30.0})
    found = simulate(stuck, control.Passive(stuck), duration=1.0, q=q, every=20)
    np.testing.assert_allclose(found.final_q, q, atol=1e-9)


def test_controllers_move_a_loop_by_its_motors(linkage, start):
    """Point-to-point control of the crank alone: followers of the loop have no motor."""
    law = control.named("gravity_pd", linkage, frequency=12.0)
    goal = linkage.meet_constraints(start + [0.3, 0.0, 0.0])
    found = simulate(linkage, law, goal, duration=4.0, q=start, every=50)
    assert not found.tau[:, 1:].any()
    assert np.abs(found.constraint_errors()).max() < 1e-10
    assert abs(found.final_q[0] - start[0]) > 0.1


def test_soft_points_give_way_as_their_compliance_says():
    """At rest the gap is compliance·force/rate²: a spring."""
    arm = lw.planar_chain(2)
    q0 = np.array([0.3, -0.6])
    robot = arm.with_parameters({f"joint{k}.viscous_friction": 3.0 for k in (1, 2)})
    robot = robot.with_constraints([lw.Point("tip", arm.pose(q0, "tip")[:3, 3], compliance=0.02, name="pad")])
    found = simulate(
        robot, control.Passive(robot), duration=6.0, q=q0, stabilization=5.0, every=100, warn=False
    )
    forces = robot.constraint_forces(found.final_q, np.zeros(2), np.zeros(2), stabilization=5.0)
    gap = robot.constraint_errors(found.final_q)
    np.testing.assert_allclose(gap, -0.02 * forces / 25.0, atol=1e-5)
    assert np.abs(gap).max() > 1e-3
    with pytest.raises(SimulationError, match="stabilization: pad is soft; give a rate"):
        simulate(robot, control.Passive(robot), duration=0.1, q=q0, stabilization="projection")


def test_robots_too_large_to_fuse_are_stepped_by_kernels(monkeypatch):
    """Kernels of accelerations, positions and projections give what the same step gives on arrays."""
    arm = lw.planar_chain(11).with_base("floating").with_payload(5.0, inertia=(1.0, 1.0, 1.0), frame="base")
    q = arm.integrate(arm.neutral, np.r_[np.zeros(6), np.linspace(0.1, 0.4, 11)])
    held = arm.with_constraints([lw.Point("tip", arm.pose(q, "tip")[:3, 3])])
    compiled = simulate(held, control.Passive(held), duration=0.02, q=q, fused=False)
    assert np.abs(compiled.constraint_errors()).max() < 1e-12
    monkeypatch.setattr(python_loop, "COMPILED_JOINTS", 0)
    on_arrays = simulate(held, control.Passive(held), duration=0.002, q=q, fused=False)
    np.testing.assert_allclose(compiled.q[:2], on_arrays.q, rtol=0, atol=1e-13)
    assert np.abs(compiled.qd[-1]).max() > 1e-3


def test_a_parallelogram_swings_through_its_singular_position():
    """Where all rods lie on one line the constraints lose a rank; forces and motion stay finite, also from there."""
    links = [
        Link("base"),
        Link("left", rod(0.3, 1.0)),
        Link("coupler", rod(0.5, 1.0)),
        Link("right", rod(0.3, 1.0)),
    ]
    joints = [
        Joint("left", "revolute", "base", "left"),
        Joint("coupler", "revolute", "left", "coupler", Transform.from_rpy((0.3, 0.0, 0.0))),
        Joint("right", "revolute", "base", "right", Transform.from_rpy((0.5, 0.0, 0.0))),
    ]
    loop = lw.Point("coupler", "right", position=(0.3, 0.0, 0.0), offset=(0.5, 0.0, 0.0))
    robot = Robot("parallelogram", links, joints, gravity=(0.0, -9.81, 0.0)).with_constraints([loop])
    swung = simulate(robot, control.Passive(robot), duration=5.0, q=[1.0, -1.0, 1.0], every=10)
    assert np.ptp(swung.q[:, 0]) > np.pi  # through the flat position and back
    assert np.abs(swung.constraint_errors()).max() < 1e-12
    assert np.ptp(swung.energy()) < 1e-8
    flat = np.zeros(3)
    qd = robot.impact(flat, [1.0, -1.0, 1.0])
    ranks = [np.linalg.matrix_rank(robot.constraint_jacobian(at), tol=1e-9) for at in (flat, swung.q[0])]
    assert ranks == [1, 2]
    started = simulate(robot, control.Passive(robot), duration=1.0, q=flat, qd=qd, every=10)
    assert np.abs(started.constraint_errors()).max() < 1e-12
