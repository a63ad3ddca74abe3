"""Friction at and near zero speed: joints that can be held stand still exactly, the others slide as they
should.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linkwise as lw
from linkwise import control
from linkwise.formats.toml.reader import read_toml
from linkwise.functions.table import mechanism_of
from linkwise.model.joint import Mimic
from linkwise.simulate import Plant, simulate, simulate_adaptive
from linkwise.simulate.friction import Limits, _corrected, _threshold, dry_friction, dry_friction_impulses

Q = np.array([0.1, 0.3, -0.2, 0.1, 0.4, 0.2])


@pytest.fixture(scope="module")
def puma():
    return lw.load("puma560")


@pytest.fixture(scope="module")
def limits(puma):
    return np.array([joint.coulomb_friction for joint in puma.moving_joints])


@pytest.mark.parametrize("integrator", ["rk4", "semi_implicit_euler"])
@pytest.mark.parametrize("share", [-0.99, 0.0, 0.99])
def test_what_friction_can_hold_does_not_move_at_all(puma, limits, integrator, share):
    held = limits[:, 0] if share > 0 else limits[:, 1]
    controller = control.ConstantTorque(puma, puma.gravity_torques(Q) + share * held)
    found = simulate(puma, controller, duration=1.0, integrator=integrator, q=Q, every=100)
    assert (found.q == Q).all()
    assert (found.qd == 0.0).all()


@pytest.mark.parametrize("integrator", ["rk4", "semi_implicit_euler"])
def test_beyond_its_limit_friction_gives_way(puma, limits, integrator):
    extra = 0.01
    controller = control.ConstantTorque(puma, puma.gravity_torques(Q) + (1 + extra) * limits[:, 0])
    found = simulate(puma, controller, duration=0.01, integrator=integrator, q=Q)
    expected = np.linalg.solve(puma.mass_matrix(Q), extra * limits[:, 0])
    np.testing.assert_allclose(found.qd[5] / found.t[5], expected, rtol=0.1)


def test_direction_decides_which_limit_counts(puma, limits):
    """Joint 2 holds 13.6 N·m against forward and 7.7 N·m against backward motion."""
    for torque, moves in ((12.0, False), (14.0, True), (-7.0, False), (-8.0, True)):
        load = puma.gravity_torques(Q)
        load[1] += torque
        found = simulate(puma, control.ConstantTorque(puma, load), duration=0.05, q=Q)
        assert (found.final_q[1] != Q[1]) == moves


def coasting(robot, speed):
    """Time and angle until a single joint with viscous and Coulomb friction comes to rest."""
    joint = robot.moving_joints[0]
    I, B, F = robot.mass_matrix(np.zeros(1))[0, 0], joint.viscous_friction, joint.coulomb_friction[0]
    time = I / B * np.log(1 + B * speed / F)
    return time, I / B * speed - F / B * time


def test_a_joint_coasts_to_rest_where_it_should_and_stays(puma):
    waist = puma.lock(dict.fromkeys(puma.joint_names[1:], 0.0))
    time, angle = coasting(waist, 2.0)
    errors, steps = [], [4e-3, 2e-3, 1e-3]
    for step in steps:
        found = simulate(waist, control.Passive(waist), duration=1.0, step=step, q=[0.0], qd=[2.0])
        errors.append(abs(found.final_q[0] - angle))
        stopped = found.t[np.argmax(found.qd[:, 0] == 0.0)]
        assert stopped == pytest.approx(time, abs=1.01 * step)
        assert (found.qd[found.t > time + step] == 0.0).all()
    assert errors[2] < 2e-6
    assert errors[0] / errors[2] > 8  # second order in the step


def test_static_friction_above_coulomb_friction(puma, limits):
    """With a breakaway ratio of 1.5 a joint at rest holds 1.5 times as much; a moving one is braked as
    before.
    """
    load = puma.gravity_torques(Q) + 1.3 * limits[:, 0]
    stuck = simulate(Plant(puma, breakaway=1.5), control.ConstantTorque(puma, load), duration=0.1, q=Q)
    assert (stuck.final_q == Q).all()
    moving = simulate(
        Plant(puma, breakaway=1.5), control.ConstantTorque(puma, load), duration=0.1, q=Q, qd=np.full(6, 0.5)
    )
    plain = simulate(puma, control.ConstantTorque(puma, load), duration=0.1, q=Q, qd=np.full(6, 0.5))
    np.testing.assert_array_equal(moving.q, plain.q)


def test_friction_only_takes_energy_away(puma):
    rng = np.random.default_rng(2)
    weightless = puma.with_gravity((0, 0, 0))
    found = simulate(
        weightless,
        control.Passive(puma),
        duration=1.0,
        q=rng.normal(size=(20, 6)),
        qd=rng.normal(size=(20, 6)) * 2,
    )
    kinetic = weightless.kinetic_energy(found.q, found.qd)
    assert (np.diff(kinetic, axis=-1) <= 1e-12 * kinetic[..., :1]).all()
    assert (kinetic[..., -1] < 1e-3 * kinetic[..., 0]).all()


def test_friction_takes_energy_from_light_arms_too():
    """Without rotor inertias the mass matrix is ill conditioned, and the rule works hardest."""
    panda = lw.load("panda").with_gravity((0, 0, 0))
    rubbing = panda.with_parameters(
        {
            f"{name}.coulomb_friction": f
            for name, f in zip(panda.joint_names, [1, 1, 1, 1, 0.3, 0.3, 0.3], strict=True)
        }
    )
    rng = np.random.default_rng(3)
    q, qd = rng.uniform(-1, 1, (2, 24, 7))
    found = simulate(rubbing, control.Passive(panda), duration=1.0, q=q, qd=qd, every=5)
    kinetic = rubbing.kinetic_energy(found.q, found.qd)
    assert (np.diff(kinetic, axis=-1) <= 1e-6 * kinetic[..., :1]).all()
    assert (found.final_qd == 0.0).mean() > 0.8


def test_switched_off_friction_is_off(puma):
    found = simulate(
        Plant(puma, friction=False),
        control.ConstantTorque(puma, puma.gravity_torques(Q) + 0.01),
        duration=0.01,
        q=Q,
    )
    assert (found.final_qd != 0.0).all()


@given(st.integers(0, 2**32 - 1), st.floats(0.0, 3.0))
def test_the_rule_solves_its_minimisation(seed, size):
    """The optimality conditions: a sliding joint feels its full friction against its motion, a sticking one
    less.
    """
    rng = np.random.default_rng(seed)
    puma = lw.load("puma560")
    links = mechanism_of(puma, base_parameters=True)
    q = rng.uniform(-2, 2, 6)
    M = puma.mass_matrix(q)
    h = 1e-3
    v, free = (rng.normal(size=(2, 6)) * size * np.array([[0.05], [0.05]])).tolist()
    found = dry_friction(links, M.tolist(), v, free, h, 1.0)
    new = free + h * np.linalg.solve(M, found.torques)
    for i, joint in enumerate(puma.moving_joints):
        forward, backward = joint.coulomb_friction
        slides = found.sliding[i] > 0.5
        assert -forward * (1 + 1e-9) <= found.torques[i] <= backward * (1 + 1e-9)
        if slides:
            assert found.torques[i] == pytest.approx(-forward if new[i] > 0 else backward)
        else:
            assert abs(new[i]) < 1e-12


# -- one joint, by hand -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def slider():
    """2 kg that slide with 3 N of friction forward and 5 N backward."""
    text = b'name = "s"\nconvention = "mdh"\ngravity = [0.0, 0.0, 0.0]\n[[joint]]\nname = "j"\ntype = "prismatic"\n'
    model = read_toml(text + b"mass = 2.0\ncoulomb_friction = [3.0, 5.0]\n", "s.toml")
    return lw.Robot(model.name, model.links, model.joints, gravity=model.gravity)


@pytest.mark.parametrize(
    ("v", "free", "breakaway", "torque", "sliding"),
    [
        (1.0, 1.0, 1.0, -3.0, 1.0),  # slides forward
        (-1.0, -1.0, 1.0, 5.0, 1.0),  # slides backward
        (0.0, 1e-3, 1.0, -2.0, 0.0),  # held: 2 kg · 1e-3 m/s in 1 ms
        (0.0, 2e-3, 1.0, -3.0, 1.0),  # 4 N are too much
        (0.0, 2e-3, 1.5, -4.0, 0.0),  # but not for static friction of 4.5 N
        (0.0, -2e-3, 1.0, 4.0, 0.0),  # nor backward
        (0.5, 2e-3, 1.5, -3.0, 1.0),  # static friction is for joints at rest
        (1e-4, -1e-3, 1.0, 2.0, 0.0),  # stops within the step
    ],
)
def test_the_rule_for_one_joint(slider, v, free, breakaway, torque, sliding):
    links = mechanism_of(slider, base_parameters=True)
    found = dry_friction(links, [[2.0]], [v], [free], 1e-3, breakaway)
    assert found.torques == pytest.approx([torque])
    assert found.sliding == [sliding]


def test_corrections_by_the_limits_of_both_directions():
    """A joint that sticks slides where it needs more than its limit in that direction; one that its friction would
    drive sticks."""
    for forward, backward, most in ((3.0, 5.0, 1.0), (5.0, 3.0, 1.0), (2.0, 7.0, 1.5)):
        limit = Limits(forward, backward, None, most)
        for impulse in np.linspace(-12.0, 12.0, 49):
            freed = 1.0 if impulse < -most * forward else -1.0 if impulse > most * backward else 0.0
            assert _corrected(limit, 0.0, 0.3, impulse) == freed
            left = impulse - np.clip(impulse, -backward, forward)
            held = -most * backward <= impulse <= most * forward
            assert _threshold(impulse, limit) == (0.0 if held else left)
        for direction in (1.0, -1.0):
            assert _corrected(limit, direction, direction * 0.1, 100.0) == direction
            assert _corrected(limit, direction, -direction * 0.1, 0.0) == 0.0


def test_steps_that_are_too_long_for_explicit_friction_are_found(slider):
    """Above h F / (m s) = 2 an explicit step would be unstable: friction is then that of the whole step."""
    links_of = {
        speed: mechanism_of(slider.with_parameters({"j.friction_speed": speed}), base_parameters=True)
        for speed in (0.1, 1e-3)
    }
    for speed, links in links_of.items():
        for ratio in (0.5, 0.99, 2.01, 3.0, 30.0):
            h = ratio * 2.0 * speed / 5.0  # 5 N is the larger limit, 2 kg
            found = dry_friction(links, [[2.0]], [0.0], [0.5 * speed], h, 1.0)
            assert bool(found.resolved) == (ratio < 2.0), (speed, ratio)


def test_a_joint_slows_down_and_stops_where_it_should(slider):
    """From 0.3 m/s with 1.5 m/s² of braking: 0.2 s and 0.03 m; backward 2.5 m/s²: 0.12 s and 0.018 m."""
    for speed, time, way in ((0.3, 0.2, 0.03), (-0.3, 0.12, -0.018)):
        found = simulate(slider, control.Passive(slider), q=[0.0], qd=[speed], duration=0.3)
        assert found.final_q[0] == pytest.approx(way, abs=1e-6)
        assert found.final_qd[0] == 0.0
        assert found.t[np.argmax(found.qd[:, 0] == 0.0)] == pytest.approx(time, abs=2e-3)


def test_nan_is_passed_on(slider):
    links = mechanism_of(slider, base_parameters=True)
    found = dry_friction(links, [[2.0]], [np.nan], [np.nan], 1e-3, 1.0)
    assert np.isnan(found.torques[0] * 0.0 + found.sliding[0] * np.nan)
    simulated = simulate(slider, control.Passive(slider), q=[0.0], qd=[np.nan], duration=0.01, warn=False)
    assert np.isnan(simulated.final_q).all()


def wrong_patterns(robot: lw.Robot, size: float, count: int = 1000) -> int:
    """How many of some random states break the optimality conditions of the rule."""
    n, h, rng = robot.dof, 1e-3, np.random.default_rng(1)
    M = robot.mass_matrix(rng.uniform(-2, 2, (count, n)))
    v, free = rng.normal(size=(2, count, n)) * size * 0.05
    links = mechanism_of(robot, base_parameters=True)
    rows = [[M[:, i, j] for j in range(n)] for i in range(n)]
    found = dry_friction(links, rows, list(v.T), list(free.T), h, 1.0)
    torques = np.stack(found.torques, axis=-1)
    slides = np.stack([np.broadcast_to(s, count) for s in found.sliding], axis=-1) > 0.5
    new = free + h * np.linalg.solve(M, torques[..., np.newaxis])[..., 0]
    forward, backward = np.array([joint.coulomb_friction for joint in robot.moving_joints]).T
    sliding = np.isclose(torques, np.where(new > 0, -forward, backward))
    sticking = (np.abs(new) < 1e-9) & (torques >= -forward * (1 + 1e-9)) & (torques <= backward * (1 + 1e-9))
    return int((~np.where(slides, sliding, sticking)).any(axis=-1).sum())


@pytest.mark.parametrize(("size", "most"), [(0.1, 6), (0.5, 1), (2.0, 0)])
def test_the_pattern_is_wrong_in_few_states_of_a_light_arm(size, most):
    """A direct drive without rotor inertias, whose mass matrix is ill conditioned."""
    panda = lw.load("panda")
    given = {f"{name}.coulomb_friction": 0.3 for name in panda.joint_names}
    light = panda.with_parameters(given | {f"{name}.rotor_inertia": 0.0 for name in panda.joint_names})
    assert wrong_patterns(light, size) <= most
    assert wrong_patterns(lw.load("puma560"), size) == 0


# -- friction that changes its direction over a speed ------------------------------------------------------------------


def gradual(speed, joints):
    """Two links; the friction of these joints has a direction that changes over ``speed``."""
    robot = lw.load("two_link")
    numbers = {f"{name}.coulomb_friction": 0.4 for name in robot.joint_names}
    numbers |= {f"{robot.joint_names[k]}.friction_speed": speed for k in joints}
    return robot.with_parameters(numbers)


def test_gradual_friction_is_that_of_the_dynamics():
    """Beside SciPy with ``forward_dynamics``: the robot turns back, under both kinds of integration."""
    from scipy.integrate import solve_ivp

    robot, q, qd = gradual(0.2, (0, 1)), np.array([0.3, -0.4]), np.array([-0.5, 0.8])
    tau = robot.gravity_torques(q) + [1.0, -0.5]

    def rate(t, y):
        return np.concatenate([y[2:], robot.forward_dynamics(y[:2], y[2:], tau)])

    exact = solve_ivp(rate, (0, 0.5), np.concatenate([q, qd]), rtol=1e-11, atol=1e-12).y[:, -1]
    controller = control.ConstantTorque(robot, tau)
    found = simulate(robot, controller, duration=0.5, step=1e-3, q=q, qd=qd)
    np.testing.assert_allclose([*found.final_q, *found.final_qd], exact, atol=1e-8)
    adaptive = simulate_adaptive(robot, controller, duration=0.5, q=q, qd=qd)
    np.testing.assert_allclose([*adaptive.final_q, *adaptive.final_qd], exact, atol=1e-8)


@pytest.mark.parametrize("held", [False, True], ids=["free", "coupled"])
def test_gradual_friction_creeps_at_any_step(held):
    """Too steep for the step: no chatter, and the speed at which friction carries the load."""
    robot, q, tau = gradual(1e-4, (0,)), np.array([0.3, -0.4]), np.array([0.2, 0.1])
    if held:
        robot = robot.with_motors([lw.Motor("idle", dict.fromkeys(robot.joint_names, 1.0))])
    tau = robot.gravity_torques(q) + tau
    found = simulate(robot, control.ConstantTorque(robot, tau), duration=0.05, step=2e-3, q=q)
    law = robot.inverse_dynamics(found.q, found.qd, np.zeros_like(q))
    assert (found.qd[:, 1] == 0.0).all() or held  # the other joint jumps, and sticks
    np.testing.assert_allclose(law[-5:, 0], tau[0], atol=1e-3 if held else 1e-5)  # of 0.4 N·m
    np.testing.assert_allclose(found.final_qd[0], 1e-4 / np.sqrt(3), rtol=1e-2)


@pytest.mark.parametrize("steep", [0, 1])
def test_one_steep_joint_is_enough_for_long_steps(steep):
    """The friction of one joint could be evaluated at every stage, that of the other one is too steep for it."""
    robot, q = gradual(1e-4, (steep,)), np.array([0.3, -0.4])
    robot = robot.with_parameters({f"{robot.joint_names[1 - steep]}.friction_speed": 5.0})
    load = np.zeros(2)
    load[steep] = 0.2  # half of what it can carry
    tau = robot.gravity_torques(q) + load
    found = simulate(robot, control.ConstantTorque(robot, tau), duration=0.02, step=2e-3, q=q)
    law = robot.inverse_dynamics(found.q, found.qd, np.zeros_like(q))
    np.testing.assert_allclose(law[-3:, steep], tau[steep], atol=2e-3)
    np.testing.assert_allclose(found.final_qd[steep], 1e-4 / np.sqrt(3), rtol=2e-2)


def test_impulses_of_robots_with_followers_keep_the_law():
    """Friction that differs by direction: a joint that moves has that of its direction, one at rest no more than both
    allow."""
    h, rng = 1e-3, np.random.default_rng(0)
    for seed in range(6):
        robot = lw.random_robot(seed, 6, tree=True)
        names = [joint.name for joint in robot.moving_joints]
        relation = {names[-1]: Mimic(names[1], -0.7, 0.1, True)}
        joints = [
            replace(
                joint,
                mimic=relation.get(joint.name),
                coulomb_friction=(0.0, 0.0) if joint.name == names[-1] else tuple(rng.uniform(0.5, 3.0, 2)),
            )
            for joint in robot.joints
        ]
        robot = lw.Robot("coupled", robot.links, joints)
        n, links = robot.dof, mechanism_of(robot, base_parameters=True)
        forward, backward = np.array([joint.coulomb_friction for joint in robot.coordinate_joints]).T
        moving = at_rest = 0
        for _ in range(20):
            M, (v, free) = robot.mass_matrix(robot.random(rng)), 5e-3 * rng.normal(size=(2, n))
            W = np.linalg.inv(M)
            rule = dry_friction_impulses(
                links, lambda row, W=W: list(W @ row), None, list(v), list(free), h, 1.0
            )
            torques = np.array(rule.torques, float)
            new = free + h * W @ torques
            slides = np.abs(new) > 1e-6
            assert np.allclose(torques[slides], np.where(new > 0, -forward, backward)[slides])
            assert (torques > -forward - 1e-9).all()
            assert (torques < backward + 1e-9).all()
            moving, at_rest = moving + slides.sum(), at_rest + (~slides).sum()
        assert min(moving, at_rest) > 10


def test_a_joint_that_breaks_away_moves_as_the_law_says():
    """Static friction counts until the joint moves, not during its first step: the end does not depend on the step."""
    slider = lw.planar_chain(1).with_gravity((0, 0, 0)).with_parameters({"joint1.coulomb_friction": 1.0})
    inertia = float(slider.mass_matrix([0.0])[0, 0])
    load = control.ConstantTorque(slider, [2.0])
    ends = []
    for step in (4e-3, 2e-3, 1e-3):
        found = simulate(Plant(slider, breakaway=1.5), load, duration=0.4, step=step, q=[0.0], qd=[0.0])
        ends.append(float(found.final_q[0]) - 0.5 * (2.0 - 1.0) / inertia * 0.4**2)
    assert np.abs(ends).max() < 1e-9
