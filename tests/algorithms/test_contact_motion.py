"""Steps with contact against closed forms: slopes, bounces, energy, stops, joint friction, loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

import linkwise as lw
from example_robots import loaded
from four_legs import four_legs, round_feet
from linkwise import control
from linkwise.simulate import simulate

GRAVITY = 9.81
EXACT = 1e-12  # [m, m/s] round-off of some hundred steps
STILL = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])


def free_body(mass: float = 2.0, size=(0.2, 0.3, 0.1), slope: float = 0.0) -> lw.Robot:
    """A box that floats, in axes that are tilted by a slope about y: gravity has a part along x."""
    x, y, z = size
    inertia = mass / 12.0 * np.array([y * y + z * z, x * x + z * z, x * x + y * y])
    gravity = (GRAVITY * math.sin(slope), 0.0, -GRAVITY * math.cos(slope))
    link = lw.Link("body", lw.Inertia.from_com(mass, (0.0, 0.0, 0.0), inertia))
    return lw.Robot("free", [link], [], gravity=gravity).with_base("floating")


def stepped(robot, q, qd, count, tau=None, **options):
    """The states after each of some steps, and the last impulses."""
    tau = np.zeros(robot.dof) if tau is None else tau
    states = []
    for _ in range(count):
        q, qd, impulse = robot.contact_step(q, qd, tau, **options)
        states.append((q, qd))
    return states, impulse


@pytest.fixture(scope="module")
def sliding_box():
    return free_body(slope=0.4).with_contacts([lw.Contact.box("body", (0.2, 0.3, 0.1))])


def test_a_block_on_a_slope_sticks_without_drift_or_slides_as_it_should(sliding_box):
    for friction in (0.6, 0.45, 0.3, 0.0):  # tan 0.4 = 0.42
        start = STILL.copy()
        start[2] = 0.05
        inputs = {"contact_friction": np.full(4, friction)}
        states, impulse = stepped(sliding_box, start, np.zeros(6), 500, **inputs)
        q, qd = states[-1]
        slides = max(0.0, GRAVITY * (math.sin(0.4) - friction * math.cos(0.4)))
        # 500 steps of the implicit scheme: x = a h² Σ k
        np.testing.assert_allclose(q[:3], [slides * 0.002**2 * 500 * 501 / 2, 0.0, 0.05], atol=EXACT)
        np.testing.assert_allclose(qd, [0.0, 0.0, 0.0, slides, 0.0, 0.0], atol=EXACT)
        np.testing.assert_allclose(impulse[:, 2].sum() / 0.002, 2.0 * GRAVITY * math.cos(0.4), rtol=1e-12)
        assert sliding_box.contact_residual(q, qd, np.zeros(6), **inputs) < 1e-12


def test_a_ball_rolls_without_slipping_and_bounces_with_its_restitution():
    radius, slope = 0.1, 0.2
    ball = free_body(size=(0.1, 0.1, 0.1), slope=slope)
    mass, inertia = 2.0, 2.0 / 12.0 * 0.02
    rolling = ball.with_contacts([lw.Contact("body", radius=radius)])
    start = STILL.copy()
    start[2] = radius
    states, _ = stepped(rolling, start, np.zeros(6), 400)
    world = rolling.velocity(*states[-1], "body")
    expected = GRAVITY * math.sin(slope) / (1.0 + inertia / (mass * radius**2)) * 0.8
    np.testing.assert_allclose(world[[3, 1]], [expected, expected / radius], rtol=1e-9)
    np.testing.assert_allclose(states[-1][0][2], radius, atol=1e-9)
    bouncing = free_body().with_contacts([lw.Contact("body", radius=radius, restitution=0.5)])
    start[2] = radius + 1.0
    states, _ = stepped(bouncing, start, np.zeros(6), 2500, step=0.001)
    heights = np.array([q[2] - radius for q, _ in states])
    peaks = heights[1:-1][(heights[1:-1] > heights[:-2]) & (heights[1:-1] >= heights[2:])]
    np.testing.assert_allclose(peaks[:2], [0.25, 0.0625], rtol=0.02)
    np.testing.assert_allclose(states[-1][0][:3], [0.0, 0.0, radius], atol=EXACT)  # it comes to rest
    np.testing.assert_allclose(states[-1][1], 0.0, atol=EXACT)


def test_thrown_boxes_never_gain_energy_and_come_to_rest(sliding_box):
    rng = np.random.default_rng(0)
    q = sliding_box.random(rng, 40)
    q[:, :3] = (0.0, 0.0, 0.3)
    qd, tau, lowest = rng.normal(size=(40, 6)), np.zeros((40, 6)), 0.0
    friction = {"contact_friction": np.full(4, 0.6)}
    energy = sliding_box.kinetic_energy(q, qd) + sliding_box.potential_energy(q)
    for k in range(1500):
        q, qd, _ = sliding_box.contact_step(q, qd, tau, **friction)
        if k % 10 == 0:
            now = sliding_box.kinetic_energy(q, qd) + sliding_box.potential_energy(q)
            assert (now <= energy + 1e-5 * np.maximum(np.abs(energy), 1.0)).all()
            energy, lowest = now, min(lowest, sliding_box.contact_gaps(q).min())
    assert lowest > -5e-4
    assert np.quantile(np.abs(qd).max(axis=1), 0.8) < 1e-9


def test_a_sliding_block_stops_where_friction_says(sliding_box):
    start, speed = STILL.copy(), 0.5
    start[2] = 0.05
    friction = {"contact_friction": np.full(4, 0.6)}
    states, _ = stepped(sliding_box, start, np.array([0, 0, 0, speed, 0, 0.0]), 400, **friction)
    q, qd = states[-1]
    slowed = GRAVITY * (0.6 * math.cos(0.4) - math.sin(0.4))
    np.testing.assert_allclose(q[0], speed**2 / (2 * slowed), atol=speed * 0.002)
    np.testing.assert_allclose(qd, 0.0, atol=EXACT)


def test_a_body_deep_in_the_ground_comes_out_slowly_and_zero_friction_is_allowed():
    ball = free_body().with_contacts([lw.Contact("body", radius=0.1, friction=0.0)])
    start = STILL.copy()
    start[2] = -0.4
    states, _ = stepped(ball, start, np.array([0, 0, 0, 0.3, 0, 0]), 4000)
    speeds = np.array([qd[5] for _, qd in states])
    assert speeds.max() <= 0.1 + EXACT
    np.testing.assert_allclose(states[-1][0][2], 0.1, atol=0.01)
    np.testing.assert_allclose(states[-1][1][3], 0.3, atol=EXACT)


def test_height_of_the_ground_is_an_input_and_a_number_of_the_ground():
    ball = free_body().with_contacts([lw.Contact("body", radius=0.1), lw.Ground(height=-0.5)])
    np.testing.assert_allclose(ball.contact_gaps(STILL), [0.4])
    np.testing.assert_allclose(
        ball.contact_gaps(STILL, ground_height=np.array([[0.0], [0.2]])), [[-0.1], [-0.3]]
    )
    states, impulse = stepped(ball, STILL, np.zeros(6), 500)
    np.testing.assert_allclose(states[-1][0][2], -0.4, atol=EXACT)
    np.testing.assert_allclose(impulse, [[0.0, 0.0, 2.0 * GRAVITY * 0.002]], atol=EXACT)
    heights = np.array([[-0.3], [0.1]])  # of two robots of one batch
    result = simulate(
        ball, lw.control.Passive(ball), duration=3.0, step=0.002, q=STILL, vary={"ground_height": heights}
    )
    np.testing.assert_allclose(result.final_q[:, 2], heights[:, 0] + 0.1, atol=1e-6)


def test_stops_and_joint_friction_hold_exactly_and_a_loop_stays_closed():
    arm = lw.load("puma560")
    joints = [n for n, low in zip(arm.joint_names, arm.limits.lower, strict=True) if np.isfinite(low)]
    stopping = arm.with_contacts([], stops=joints)
    q = np.zeros(6)
    states, _ = stepped(stopping, q, np.zeros(6), 3000, tau=np.full(6, 150.0), friction=False)
    upper = arm.limits.upper
    np.testing.assert_allclose(states[-1][0], upper, atol=1e-9)
    np.testing.assert_allclose(states[-1][1], 0.0, atol=1e-9)
    rubbing = arm.with_parameters({f"{name}.coulomb_friction": 1e3 for name in arm.joint_names})
    held = rubbing.with_contacts([], stops=joints)
    states, _ = stepped(held, np.full(6, 0.1), np.zeros(6), 200, tau=np.full(6, 5.0))
    np.testing.assert_allclose(states[-1][0], 0.1, atol=1e-14)
    np.testing.assert_allclose(states[-1][1], 0.0, atol=1e-13)


def test_constraints_are_kept_in_the_same_step():
    body = free_body()
    held = body.with_constraints([lw.Point("body", (0.0, 0.0, 0.5), offset=(0.1, 0.0, 0.0))])
    swinging = held.with_contacts([lw.Contact("body", offset=(-0.1, 0.0, 0.0), radius=0.02)])
    start = np.array([-0.1, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0])
    states, _ = stepped(swinging, start, np.zeros(6), 1500)
    errors = [np.abs(held.constraint_errors(q)).max() for q, _ in states]
    assert max(errors) < 2e-4
    low = swinging.with_contacts([*swinging.contacts, lw.Ground(height=0.4)])
    states, impulse = stepped(low, start, np.zeros(6), 1500)
    q, qd = states[-1]
    np.testing.assert_allclose(low.contact_gaps(q), 0.0, atol=1e-9)  # it leans on the ground
    np.testing.assert_allclose(qd, 0.0, atol=1e-9)
    assert 0.2 * 2.0 * GRAVITY < impulse[0, 2] / 0.002 < 0.8 * 2.0 * GRAVITY


class JointPD(control.Controller):
    """A law of joints alone: a base that floats has no motors."""

    def control(self, links, gains, q, qd, reference, memory, period):
        errors = zip(gains["kp"][6:], gains["kd"][6:], reference.q[7:], q[7:], qd[6:], strict=True)
        return [0.0] * 6 + [p * (wanted - at) - d * rate for p, d, wanted, at, rate in errors], memory


def test_a_robot_with_legs_stands_in_a_fused_loop():
    rng = np.random.default_rng(1)
    legs = four_legs().with_contacts(round_feet())
    start = standing(legs)
    gains = {"kp": np.r_[np.zeros(6), np.full(12, 80.0)], "kd": np.r_[np.zeros(6), np.full(12, 2.0)]}
    law = JointPD(legs, gains, np.full(18, 60.0))
    q = np.repeat(start[None], 3, 0)
    q[:, 7:] += 0.05 * rng.normal(size=(3, 12))
    result = simulate(legs, law, start, duration=3.0, step=0.002, q=q, every=10)
    weight = GRAVITY * sum(link.inertia.mass for link in legs.links)
    np.testing.assert_allclose(result.contact_forces[:, -1, :, 2].sum(-1), weight, rtol=1e-3)
    assert result.slip[:, -1].max() < 1e-12
    assert result.residual.max() < 1e-9
    assert result.contact_gaps.min() > -1e-6
    slower = simulate(legs, law, start, duration=0.1, step=0.002, q=q, fused=False)
    np.testing.assert_allclose(slower.final_q, result.q[:, 5], atol=1e-9)
    slippery = {"contact_friction": np.array([[0.8] * 4, [0.0] * 4])}
    result = simulate(
        legs, law, start, duration=0.2, q=q[:1], step=0.002, every=10, vary=slippery, warn=False
    )
    assert np.abs(result.contact_forces[1, ..., :2]).max() == 0.0


def test_legs_whose_joints_rub_stand_still_to_round_off():
    legs = four_legs().with_contacts(round_feet())
    legs = legs.with_parameters({f"{name}.coulomb_friction": 3.0 for name in legs.joint_names[1:]})
    kernel = legs.kernel("contact_step", inputs="start_impulse")
    q, qd, p = standing(legs), np.zeros(legs.dof), np.zeros(3 * len(legs.contact_names))
    places = []
    for k in range(200):
        q, qd, p = kernel(q, qd, np.zeros(legs.dof), p)
        p = p.ravel()
        if k >= 150:
            places.append(q)
    assert np.abs(qd).max() < 1e-9
    assert np.ptp(places, axis=0).max() < 1e-11


def standing(legs: lw.Robot) -> np.ndarray:
    return np.concatenate([[0.0, 0.0, 0.42, 0.0, 0.0, 0.0, 1.0], np.tile([0.0, 0.3, -0.6], 4)])


def test_go2_stands_for_three_seconds_and_carries_its_weight():
    feet = [lw.Contact(f"{leg}_foot", radius=0.022) for leg in ("FL", "FR", "RL", "RR")]
    robot = loaded("go2").with_contacts(feet)
    stand = np.tile([0.0, 0.9, -1.8], 4)
    q, qd = np.concatenate([[0.0, 0.0, 0.33, 0.0, 0.0, 0.0, 1.0], stand]), np.zeros(18)
    for _ in range(1500):
        tau = np.concatenate([np.zeros(6), np.clip(60.0 * (stand - q[7:]) - 2.0 * qd[6:], -23.0, 23.0)])
        q, qd, impulse = robot.contact_step(q, qd, tau)
    weight = GRAVITY * sum(link.inertia.mass for link in robot.links)
    np.testing.assert_allclose(impulse.sum(axis=0) / 0.002, [0.0, 0.0, weight], atol=0.01 * weight)
    assert 0.25 < q[2] < 0.3
    speeds = robot.contact_velocities(q, qd, tau)
    np.testing.assert_allclose(speeds[:, :2], 0.0, atol=1e-14)
    assert robot.contact_residual(q, qd, tau) < 1e-12


def test_friction_against_turning_between_bodies_is_that_on_the_ground():
    """A ball on the ground and on a fixed plane, which is a pair of shapes."""
    for law in ({"torsional_friction": 0.02}, {"rolling_friction": 0.01}):
        ends = []
        for on_a_body in (False, True):
            bodies = [lw.Body.sphere(0.1, 2.0, name="ball")]
            contact = lw.Contact("ball", radius=0.1, friction=0.5, **law)
            if on_a_body:
                bodies.append(lw.Body.plane(name="table"))
                contact = lw.Contact("ball", "table", friction=0.5, **law)
            scene = lw.Scene(bodies, contacts=[contact])
            q, qd = np.array(scene.neutral), np.array([0.3, -0.2, 3.0, 0.0, 0.0, 0.0])
            q[2] = 0.1
            for _ in range(100):
                q, qd, _ = scene.contact_step(q, qd, np.zeros(6))
            ends.append(qd)
        assert abs(ends[0]).max() < 3.5
        np.testing.assert_allclose(ends[0], ends[1], atol=1e-13)
        stopped = ends[0][2] if "torsional_friction" in law else ends[0][0]
        assert abs(stopped) < 0.01


def test_slip_is_the_speed_along_what_is_touched():
    """Boxes that fly, land and slide in all directions: none while they fly, whatever pushes along the ground."""
    box = free_body().with_contacts([lw.Contact.box("body", (0.2, 0.3, 0.1), friction=0.2)])
    directions = np.array([(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0), (0.6, -0.8)])
    q, qd = np.tile(STILL, (len(directions), 1)), np.zeros((len(directions), 6))
    q[:, 2], qd[:, 3:5] = 0.052, 1.5 * directions
    law = JointPD(box, {"kp": np.zeros(6), "kd": np.zeros(6)}, np.full(6, 1.0))
    result = simulate(box, law, STILL, duration=0.4, step=0.002, q=q, qd=qd, every=5)
    velocities, forces = result._contact("contact_velocities"), result.contact_forces
    closed = forces[..., 2] > 0.0
    speeds = np.sqrt(velocities[..., 0] ** 2 + velocities[..., 1] ** 2)
    assert (~closed[:, 0]).all()
    assert (speeds[:, 0] > 1.0).all()
    np.testing.assert_allclose(result.slip, np.where(closed, speeds, 0.0), atol=1e-14)
    assert (result.slip.max(axis=(1, 2)) > 0.5).all()
