"""Robots that are not bolted down: floating bases, ball joints and followers in simulations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.spatial.transform import Rotation
from scipy.special import ellipj

import linkwise as lw
from linkwise import Inertia, Joint, Link, Robot, Transform, control
from linkwise.compiler.rollout import interpret
from linkwise.robot.kernels import kernels_of
from linkwise.simulate import SimulationWarning, simulate, simulate_adaptive

WEIGHTLESS = (0.0, 0.0, 0.0)


def space_arm() -> Robot:
    """A Panda without friction on a satellite."""
    arm = lw.load("panda", base="floating").with_gravity(WEIGHTLESS)
    arm = arm.with_payload(120.0, inertia=(20.0, 25.0, 30.0), frame="base")
    return arm.with_parameters({label: 0.0 for label in arm.parameter_labels if "friction" in label})


def body(moments, kind="floating") -> Robot:
    """One rigid body with these principal moments of inertia."""
    links = [Link("world"), Link("body", Inertia.from_com(2.0, (0.0, 0.0, 0.0), moments))]
    return Robot("top", links, [Joint("free", kind, "world", "body")], gravity=WEIGHTLESS)


@pytest.fixture(scope="module")
def flight():
    """Ten seconds of a space arm that turns and swings."""
    arm = space_arm()
    rng = np.random.default_rng(4)
    q, qd = arm.random(rng), 0.2 * rng.normal(size=arm.dof)
    return simulate(arm, control.Passive(arm), duration=10.0, step=1e-3, q=q, qd=qd, every=50, warn=False)


def test_momentum_and_energy_of_a_floating_space_arm(flight):
    arm = flight.robot
    momentum = arm.centroidal_momentum(flight.q, flight.qd)
    for part in (slice(0, 3), slice(3, 6)):
        size = np.linalg.norm(momentum[0, part])
        assert size > 0.5  # it does move
        assert np.abs(momentum[:, part] - momentum[0, part]).max() < 1e-12 * size
    energy = flight.energy()
    assert np.abs(energy - energy[0]).max() < 1e-8 * energy[0]
    center = arm.center_of_mass(flight.q)
    line = center[0] + flight.t[:, np.newaxis] * (center[-1] - center[0]) / flight.t[-1]
    assert np.abs(center - line).max() < 1e-11  # straight, however the links swing
    assert np.ptp(flight.q[:, 7:], axis=0).max() > 0.5
    quaternions = np.linalg.norm(flight.q[:, 3:7], axis=-1)
    assert np.abs(quaternions - 1.0).max() < 1e-12


def test_a_fused_loop_has_the_bits_of_the_interpreter():
    arm = space_arm().lock({f"panda_joint{k}": 0.3 for k in range(3, 8)})
    start = {"q": arm.random(0), "qd": np.random.default_rng(0).normal(size=arm.dof)}
    found = simulate(arm, control.Passive(arm), duration=0.003, **start, warn=False)
    (kernel,) = [kernel for key, kernel in kernels_of(arm).items() if key[0] == "rollout"]
    final, _ = interpret(kernel.program(), {**start, "step": [1e-3], "target": arm.neutral}, 3)
    assert np.array_equal(final["q"], found.final_q)
    assert np.array_equal(final["qd"], found.final_qd)
    stepped = simulate(arm, control.Passive(arm), duration=0.003, **start, fused=False, warn=False)
    np.testing.assert_allclose(stepped.final_q, found.final_q, rtol=0, atol=1e-14)


def test_every_robot_of_a_batch_moves_as_it_would_alone():
    arm = body((1.0, 2.0, 3.0))
    rng = np.random.default_rng(0)
    q, qd = arm.random(rng, 9), rng.normal(size=(9, 6))
    many = simulate(arm, control.Passive(arm), duration=0.1, q=q, qd=qd)
    assert many.q.shape == (9, 100, 7)
    assert many.qd.shape == (9, 100, 6)
    one = simulate(arm, control.Passive(arm), duration=0.1, q=q[5], qd=qd[5])
    assert np.array_equal(many.q[5], one.q)


@pytest.mark.parametrize("kind", ["floating", "ball"])
def test_a_free_top_turns_as_jacobi_and_poinsot_say(kind):
    """Landau and Lifshitz, Mechanics, §37: ω by elliptic functions, the precession about L by a quadrature."""
    moments = np.array([1.0, 2.0, 3.0])
    top = body(tuple(moments), kind)
    start = np.array([0.9, 0.0, 1.6])
    twice_energy, square = moments @ start**2, np.sum((moments * start) ** 2)
    I1, I2, I3 = moments
    speed = np.sqrt((I3 - I2) * (square - twice_energy * I1) / (I1 * I2 * I3))
    m = (I2 - I1) * (twice_energy * I3 - square) / ((I3 - I2) * (square - twice_energy * I1))
    across = twice_energy * I3 - square

    def rates(t):
        sn, cn, dn, _ = ellipj(speed * t, m)
        return np.array(
            [np.sqrt(across / (I1 * (I3 - I1))) * cn, np.sqrt(across / (I2 * (I3 - I2))) * sn,
             np.sqrt((square - twice_energy * I1) / (I3 * (I3 - I1))) * dn]
        )  # fmt: skip

    # an orientation in which L points along z of the world
    L = moments * start
    z = L / np.linalg.norm(L)
    y = np.cross(z, [1.0, 0.0, 0.0]) / np.linalg.norm(np.cross(z, [1.0, 0.0, 0.0]))
    x, y, z, w = rotation_quaternion(np.array([np.cross(y, z), y, z]))
    q = np.r_[np.zeros(top.nq - 4), x, y, z, w]
    qd = np.r_[start, np.zeros(top.dof - 3)]
    found = simulate(top, control.Passive(top), duration=10.0, step=2e-3, q=q, qd=qd, every=250)
    assert np.abs(found.qd[:, :3] - rates(found.t).T).max() < 1e-10
    poses = top.pose(found.q)
    momentum = np.einsum("tij,tj->ti", poses[:, :3, :3], moments * found.qd[:, :3])
    assert np.abs(momentum - [0.0, 0.0, np.sqrt(square)]).max() < 1e-10

    def precession(t):
        a, b, _ = moments * rates(t)
        return np.sqrt(square) * (a * a / I1 + b * b / I2) / (a * a + b * b)

    axis = poses[:, :3, 2]
    azimuth = np.unwrap(np.arctan2(axis[:, 1], axis[:, 0]))
    turned = [quad(precession, 0.0, t, epsabs=1e-12, limit=200)[0] for t in found.t[::5]]
    assert np.abs(azimuth[::5] - azimuth[0] - turned).max() < 1e-9
    exact = simulate_adaptive(top, duration=2.0, q=q, qd=qd, rows=3, rtol=1e-12, atol=1e-13)
    row = int(np.flatnonzero(np.isclose(found.t, 1.0))[0])
    assert np.abs(top.difference(exact.q[1], found.q[row])).max() < 1e-9


def rotation_quaternion(R: np.ndarray) -> tuple[float, float, float, float]:
    return tuple(Rotation.from_matrix(R).as_quat())


@pytest.mark.parametrize(("integrator", "order"), [("rk4", 4), ("semi_implicit_euler", 1)])
def test_orders_of_the_integrators_with_quaternions(integrator, order):
    arm = space_arm().lock({f"panda_joint{k}": 0.3 for k in range(3, 8)})
    rng = np.random.default_rng(1)
    q, qd = arm.random(rng), rng.normal(size=arm.dof)
    exact = simulate_adaptive(arm, duration=0.5, q=q, qd=qd, rows=2, rtol=1e-12, atol=1e-13)
    steps = np.array([2e-2, 1e-2, 5e-3])
    errors = []
    for step in steps:
        found = simulate(
            arm, control.Passive(arm), duration=0.5, step=step, integrator=integrator, q=q, qd=qd, warn=False
        )
        errors.append(np.abs(arm.difference(exact.final_q, found.final_q)).max())
    assert np.diff(np.log(errors)) / np.diff(np.log(steps)) == pytest.approx(order, abs=0.25)


def cat() -> Robot:
    """Two halves of a cat with a spine that bends in two directions but does not twist (Kane and Scher 1969)."""
    half = Inertia.from_com(1.5, (0.15, 0.0, 0.0), (0.002, 0.012, 0.012))
    links = [Link("world"), Link("rear", half), Link("spine"), Link("front", half)]
    joints = [
        Joint("free", "floating", "world", "rear"),
        Joint("pitch", "revolute", "rear", "spine", Transform.from_rpy(rpy=(0.0, 0.0, np.pi)), (0.0, 1.0, 0.0)),
        Joint("yaw", "revolute", "spine", "front", axis=(0.0, 0.0, 1.0)),
    ]  # fmt: skip
    return Robot("cat", links, joints, gravity=(0.0, 0.0, -9.81)).with_constraints([], passive=["free"])


def spine(t: float, bend: float = 1.2) -> np.ndarray:
    """Bent, bent all the way round, straight again: (angles, rates) within one second."""

    def at(t):
        smooth = lambda u: (lambda u: u * u * u * (10 - 15 * u + 6 * u * u))(np.clip(u, 0.0, 1.0))  # noqa: E731
        size = bend * (smooth(5 * t) - smooth(5 * (t - 0.8)))
        angle = 2 * np.pi * smooth((t - 0.2) / 0.6)
        return size * np.array([np.cos(angle), np.sin(angle)])

    h = 1e-4
    return np.array([at(t), (at(t + h) - at(t - h)) / (2 * h), (at(t + h) - 2 * at(t) + at(t - h)) / h**2])


def test_a_cat_turns_over_without_angular_momentum():
    robot = cat()

    def muscles(t, q, qd, reference):
        """The torques of the spine that give its accelerations, while the rest falls freely."""
        angles, rates, bends = spine(t)
        wanted = bends + 400.0 * (angles - q[7:]) + 40.0 * (rates - qd[6:])
        M, b = robot.mass_matrix(q), robot.bias_torques(q, qd)
        falling = np.linalg.solve(M[:6, :6], -b[:6] - M[:6, 6:] @ wanted)
        return np.r_[np.zeros(6), M[6:, :6] @ falling + M[6:, 6:] @ wanted + b[6:]]

    found = simulate(robot, muscles, duration=1.0, step=2e-3, every=50)
    momentum = robot.centroidal_momentum(found.q, found.qd)[:, :3]
    assert np.abs(momentum).max() < 1e-6  # its halves have about 0.1 each
    assert np.abs(found.final_q[7:]).max() < 5e-3  # the spine is straight again
    fallen = robot.center_of_mass(found.final_q) - robot.center_of_mass(robot.neutral)
    assert fallen == pytest.approx([0.0, 0.0, -9.81 / 2], abs=1e-6)
    # the same turn from the momentum alone: ω = −A_b⁻¹ A_s (rates of the spine)
    q, h = robot.neutral, 2e-3
    for k in range(500):
        angles, rates, _ = spine((k + 0.5) * h)
        at = np.r_[q[:7], angles]
        A = robot.centroidal_matrix(at)
        base = np.linalg.solve(A[:, :6], -A[:, 6:] @ rates)
        q = robot.integrate(q, h * np.r_[base, rates])
    turn = Rotation.from_quat(found.final_q[3:7]) * Rotation.from_quat(q[3:7]).inv()
    assert turn.magnitude() < 2e-2
    assert np.rad2deg(Rotation.from_quat(q[3:7]).magnitude()) > 90.0


def test_controllers_hold_robots_with_floating_and_ball_joints():
    """Errors are steps on the manifold; joints without a motor get no torque."""
    arm = space_arm().lock({f"panda_joint{k}": 0.3 for k in range(4, 8)})
    target = arm.random(3)
    start = arm.integrate(target, 0.3 * np.random.default_rng(0).normal(size=arm.dof))
    law = control.named("point_to_point", arm, frequency=6.0, torque_limits=False)
    found = simulate(arm, law, target, duration=3.0, step=2e-3, q=start, every=100, warn=False)
    assert found.error.shape == found.qd.shape
    assert np.abs(found.error[0]).max() > 0.3
    assert np.abs(arm.difference(target, found.final_q)).max() < 1e-5
    drifting = arm.with_constraints([], passive=["root_joint"])
    law = control.named("gravity_pd", drifting, frequency=6.0)
    found = simulate(drifting, law, target, duration=0.5, step=2e-3, q=start, warn=False)
    assert not found.tau[:, :6].any()
    assert found.tau[:, 6:].any()
    assert np.abs(drifting.centroidal_momentum(found.q, found.qd)).max() < 1e-8


def test_ranges_and_divergence_name_joints_behind_a_floating_base():
    arm = space_arm()
    q = np.r_[arm.neutral[:7], 0.0, 0.0, 0.0, -1.5, 0.0, 1.5, 0.0]
    with pytest.warns(SimulationWarning, match="joint 'panda_joint2' left its range at t = 0"):
        found = simulate(
            arm, control.Passive(arm), duration=0.02, q=q, qd=np.r_[np.zeros(7), 90.0, np.zeros(5)]
        )
    assert "panda_joint2" in {each.joint for each in found.left_range}
    assert found.beyond_range().shape == (8,)
    speeds = np.r_[np.zeros(6), 1e7, np.zeros(6)]
    with pytest.warns(SimulationWarning, match="diverged at t = 0 s: joint 'panda_joint1'"):
        simulate(arm, control.Passive(arm), duration=0.002, q=q, qd=speeds)


def test_dry_friction_stops_joints_on_a_floating_base():
    arm = lw.load("panda", base="floating").with_gravity(WEIGHTLESS)
    arm = arm.with_payload(120.0, inertia=(20.0, 25.0, 30.0), frame="base")
    coulomb = {label: 2.0 for label in arm.parameter_labels if label.endswith("coulomb_friction")}
    coulomb["root_joint.coulomb_friction"] = 0.0
    arm = arm.with_parameters(coulomb).lock({f"panda_joint{k}": 0.5 for k in range(3, 8)})
    qd = np.r_[0.1, 0.0, 0.2, 0.0, 0.0, 0.1, 0.5, -0.3]
    found = simulate(arm, control.Passive(arm), duration=2.0, q=arm.neutral, qd=qd, every=100, warn=False)
    momentum = arm.centroidal_momentum(found.q, found.qd)
    assert not found.qd[-1, 6:].any()  # the arm sticks
    assert np.abs(momentum - momentum[0]).max() < 1e-3 * np.abs(momentum[0]).max()  # order 1 at the stops
    energy = found.energy()
    assert (np.diff(energy) < 1e-9).all()
    assert energy[-1] < energy[0]


def test_followers_move_with_their_leaders():
    """A gripper whose fingers follow one another falls as the reduced equation says."""
    free = lw.planar_chain(3)
    held = free.with_constraints([lw.Coupling("joint3", "joint2", ratio=-0.5)])
    found = simulate(held, control.Passive(held), duration=1.0, step=1e-3, q=[0.4, 0.8], qd=[0.0, 1.0])
    energy = found.energy()
    assert np.abs(energy - energy[0]).max() < 1e-8 * np.abs(energy).max()
    exact = simulate_adaptive(held, duration=1.0, q=[0.4, 0.8], qd=[0.0, 1.0], rows=2)
    np.testing.assert_allclose(found.final_q, exact.final_q, atol=1e-9)
    rubbing = held.with_parameters({"joint3.coulomb_friction": 30.0, "joint1.viscous_friction": 1.0})
    law = control.named("computed_torque", rubbing, frequency=10.0, torque_limits=False)
    found = simulate(rubbing, law, np.array([0.5, 0.9]), duration=2.0, step=1e-3, q=[0.4, 0.8])
    assert np.abs(np.diff(found.q[-200:, 1])).max() < 1e-9  # the follower's friction holds its leader
