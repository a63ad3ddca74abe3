"""Promises about the solver of contacts: residuals, derivatives, soft contacts, friction against turning."""

from __future__ import annotations

import math
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_contact_motion import GRAVITY, STILL, free_body, standing, stepped

import linkwise as lw
from four_legs import four_legs, round_feet
from linkwise import control
from linkwise.simulate import simulate

BENCHMARKS = str(Path(__file__).parents[2] / "benchmarks")
ACCURACY = 1e-6


@pytest.fixture(scope="module")
def built():
    """Robots and states of the benchmarks."""
    sys.path.insert(0, BENCHMARKS)
    try:
        from contact_parts import problems, robots

        yield robots, problems
    finally:
        sys.path.remove(BENCHMARKS)


def test_residuals_of_running_simulations_are_small_where_contacts_are_redundant(built):
    """A biped with four corners at each foot, a box, masses of 10⁴ to 1: sweeps alone leave 1e-3 and more."""
    robots, _ = built
    for name, share in (("biped", 0.99), ("box", 0.995), ("ratio", 0.97)):
        robot, stand = robots.loaded(name)
        *states, impulse = robots.moving_states(robot, stand, 60, 120)
        residual = robot.kernel("contact_residual", inputs="start_impulse")(*states, impulse)
        assert (robot.contact_gaps(states[0]) < 1e-3).any(axis=1).mean() > 0.3
        assert (residual < ACCURACY).mean() >= share, (name, np.sort(residual)[-10:])


def test_a_finer_accuracy_is_reached(built):
    """Velocities that were sums of changes kept the round-off of the first, largest one: 1e-10 with joints that rub."""
    robots, _ = built
    legs = four_legs().with_contacts(round_feet())
    rubbing = legs.with_parameters({f"{name}.coulomb_friction": 0.2 for name in legs.joint_names[1:]})
    rng, count = np.random.default_rng(5), 200
    q = np.repeat(standing(rubbing)[None], count, 0)
    q[:, 7:] += 0.2 * rng.normal(size=(count, 12))
    q[:, 2] -= rubbing.contact_gaps(q).min(axis=1)
    qd, tau = 0.5 * rng.normal(size=(2, count, rubbing.dof))
    box, stand = robots.loaded("box")
    for robot, states in ((rubbing, (q, qd, tau)), (box, robots.moving_states(box, stand, 40, 60)[:3])):
        usual, fine = (robot.contact_residual(*states, accuracy=accuracy) for accuracy in (None, 1e-10))
        assert (usual < ACCURACY).mean() > 0.99
        assert np.quantile(fine, 0.95) < 1e-12
        assert fine.max() < 1e-10


def test_velocities_agree_with_others_where_impulses_are_not_unique(built):
    robots, problems = built
    pin = pytest.importorskip("pinocchio")
    if not hasattr(pin, "ADMMConstraintSolver"):
        pytest.skip("this Pinocchio has no contact solver")
    for name in ("box",):
        robot, stand = robots.loaded(name)
        states = [part[-100:] for part in robots.moving_states(robot, stand, 20, 50)[:3]]
        own = problems.problems_of(robot, states)
        impulses = robot.contact_step(*states, accuracy=1e-12)[2].reshape(100, -1)
        ours = own.residual(impulses) < 1e-10
        compared = agreed = 0
        for k in np.flatnonzero(ours):
            theirs = problems.solved_by_pinocchio(pin, own, k)
            if theirs is None or own.part([k]).residual(theirs[None]) > 1e-10:
                continue
            apart = np.abs(own.G[k] @ (impulses[k] - theirs)).max() / own.size[k]
            compared, agreed = compared + 1, agreed + (apart < 1e-8)
        assert compared >= 50
        # a face that slides and turns may share its load in several ways, and friction depends on the share
        assert agreed >= 0.9 * compared


def test_simulate_says_once_where_steps_do_not_reach_their_accuracy():
    body = free_body().with_contacts([lw.Contact.box("body", (0.2, 0.3, 0.1))])
    passive = control.Passive(body)
    rng = np.random.default_rng(0)
    q = body.random(rng, 60)
    q[:, :3] = (0.0, 0.0, 0.2)
    qd = np.concatenate([5.0 * rng.normal(size=(60, 3)), 2.0 * rng.normal(size=(60, 3))], axis=1)
    options = {"duration": 0.4, "step": 0.002, "q": q, "qd": qd, "every": 200}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rough = simulate(body, passive, accuracy=1e-14, **options)
    said = [str(each.message) for each in caught if "laws of contact" in str(each.message)]
    assert len(said) == 1
    assert "of 60 robots" in said[0]
    assert rough.worst_residual.shape == (60,)
    alone = replace(rough, worst_residual=np.array(3e-5), accuracy=1e-6).inexact_contacts
    assert alone.startswith("steps keep the laws of contact to 3e-05 only (accuracy 1e-06)")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fine = simulate(body, passive, accuracy=1e-2, **options)
    assert (fine.worst_residual <= 1e-2).all()
    # the largest of all steps, not of those that are recorded
    assert (fine.worst_residual >= fine.residual.max(axis=-1) * (1.0 - 1e-9)).all()
    with pytest.raises(lw.LinkwiseError, match="accuracy"):
        simulate(body, passive, accuracy=0.0, **options)


def test_loops_of_contact_have_the_bits_of_single_states():
    """The iteration ends state by state: a neighbour that takes longer changes nothing."""
    box = free_body().with_contacts([lw.Contact.box("body", (0.2, 0.3, 0.1))])
    rng = np.random.default_rng(1)
    q = box.random(rng, 33)
    q[:, :2], q[:, 2] = 0.0, 0.1 * rng.random(33)
    qd, tau = rng.normal(size=(33, 6)), rng.normal(size=(33, 6))
    many = box.contact_step(q, qd, tau)
    for k in range(33):
        for part, one in zip(many, box.contact_step(q[k], qd[k], tau[k]), strict=True):
            np.testing.assert_array_equal(part[k], one)


def gradient_errors(robot, q, qd, tau, **options):
    """Largest error of the Jacobians of velocities after the step, by q̇ and τ, beside differences."""
    kernel = robot.kernel("contact_step", accuracy=1e-12, **options)
    worst = 0.0
    for name, place, size in (("qd", 1, 1e-6), ("tau", 2, 1e-3)):
        exact = kernel.jacobian(name)(q, qd, tau)[1]
        assert np.isfinite(exact).all()
        for k in range(robot.dof):
            given = [[q, qd, tau], [q, qd, tau]]
            for side, sign in enumerate((1.0, -1.0)):
                moved = given[side][place].copy()
                moved[..., k] += sign * size
                given[side][place] = moved
            ends = [kernel(*each)[1] for each in given]
            error = np.abs((ends[0] - ends[1]) / (2.0 * size) - exact[..., k]).max(axis=-1)
            worst = np.maximum(worst, error / (1.0 if name == "qd" else np.abs(exact).max()))
    return worst


def test_derivatives_are_those_of_the_solution(built):
    """Away from changes of contact: of a box by the filter, of an arm with stops and dry friction by its matrix."""
    robots, _ = built
    robot, stand = robots.loaded("box")
    states = [part[-60:] for part in robots.moving_states(robot, stand, 20, 60)[:3]]
    solved = robot.contact_residual(*states, accuracy=1e-12) < 1e-10
    errors = gradient_errors(robot, *(part[solved] for part in states))
    assert np.quantile(errors, 0.8) < 2e-5, np.sort(errors)
    arm = lw.load("two_link")
    arm = arm.with_contacts([lw.Contact(arm.default_frame()), lw.Ground(height=-0.2)])
    rng = np.random.default_rng(2)
    q = arm.random(rng, 400)
    touching = np.abs(arm.contact_gaps(q)[:, 0]) < 0.05
    assert touching.sum() > 10
    q = q[touching]
    errors = gradient_errors(arm, q, rng.normal(size=q.shape), rng.normal(size=q.shape))
    assert np.quantile(errors, 0.8) < 2e-5, np.sort(errors)


def test_derivatives_of_several_contacts_against_turning():
    """Two balls of a body that slide, spin and roll with different coefficients."""
    contacts = [
        lw.Contact(
            "body",
            offset=(x, 0.0, 0.0),
            radius=0.1,
            friction=0.6,
            torsional_friction=turn,
            rolling_friction=roll,
        )
        for x, turn, roll in ((-0.2, 0.02, 0.003), (0.3, 0.05, 0.01))
    ]
    robot = free_body(size=(0.1, 0.1, 0.1)).with_contacts(contacts)
    rng = np.random.default_rng(6)
    q, qd, tau = np.repeat(STILL[None], 40, 0), rng.normal(size=(40, 6)), 3.0 * rng.normal(size=(40, 6))
    q[:, 2] = 0.1
    qd[:, 4:] = rng.normal(size=(40, 2)) * (0.3, 0.0) - (0.0, 0.1)
    errors = gradient_errors(robot, q, qd, tau)
    assert np.quantile(errors, 0.8) < 2e-5, np.sort(errors)


def test_the_iteration_is_not_differentiated():
    box = free_body().with_contacts([lw.Contact.box("body", (0.2, 0.3, 0.1))])
    kernel = box.kernel("contact_step")
    step, gradient = kernel.operations, kernel.vjp().operations
    assert gradient.per_iteration.multiplications == step.per_iteration.multiplications


def test_derivatives_are_never_nan_and_soften_across_contact():
    contacts = (
        lw.Contact("body", radius=0.1),
        lw.Contact("body", radius=0.1, friction=0.0),
        lw.Contact.box("body", (0.2, 0.3, 0.2)),
        lw.Contact("body", radius=0.1, stiffness=1e4, damping=10.0),
        lw.Contact("body", radius=0.1, torsional_friction=0.01, rolling_friction=0.001),
    )
    heights = np.array([0.1, 0.1 + 1e-300, 0.1 - 1e-12, 0.0, 0.5])  # exactly touching, inside, in flight
    for contact in contacts:
        robot = free_body(size=(0.1, 0.1, 0.1)).with_contacts([contact])
        for smoothing in (0.0, 0.1)[: 1 if contact is not contacts[0] else 2]:
            kernel = robot.kernel("contact_step", smoothing=smoothing)
            for speed in (0.0, 1.0):
                q = np.repeat(STILL[None], 5, 0)
                q[:, 2] = heights
                qd = np.zeros((5, 6))
                qd[:, 3] = speed
                outputs = kernel(q, qd, np.zeros((5, 6)))
                bars = [np.ones((5, part[0].size)) for part in outputs]
                for part in kernel.vjp()(q, qd, np.zeros((5, 6)), *bars):
                    assert np.isfinite(part).all(), (contact, smoothing, speed)
    ball = free_body().with_contacts([lw.Contact("body", radius=0.1)])
    above = STILL.copy()
    above[2] = 0.1005  # it would take 0.25 m/s to touch within the step
    given = above, np.array([0, 0, 0, 0, 0, -0.1]), np.zeros(6)
    plain, smooth = ball.kernel("contact_step"), ball.kernel("contact_step", smoothing=0.1)
    for a, b in zip(plain(*given), smooth(*given), strict=True):
        np.testing.assert_array_equal(a, b)
    assert plain.jacobian("tau")(*given)[2][0, 2, 5] == 0.0
    assert smooth.jacobian("tau")(*given)[2][0, 2, 5] < -1e-6  # pushing it down would give an impulse
    with pytest.raises(lw.LinkwiseError, match="smoothing"):
        ball.contact_step(*given, smoothing=-1.0)


def test_soft_contacts_are_springs_and_dampers():
    stiffness, damping = 2000.0, 30.0
    for contact in (
        lw.Contact("body", radius=0.1, stiffness=stiffness, damping=damping),
        lw.Contact.box("body", (0.2, 0.3, 0.2), stiffness=stiffness / 4, damping=damping / 4),
    ):
        robot = free_body().with_contacts([contact])
        start = STILL.copy()
        start[2] = 0.1
        h = 1e-4
        states, impulse = stepped(robot, start, np.array([0, 0, 0, 0.0, 0, -0.2]), 1000, step=h)
        depth, speed, wanted = 0.0, 0.2, []
        for _ in range(1000):  # the same spring and damper, stepped by itself
            speed = (speed + h * (GRAVITY - stiffness / 2.0 * depth)) / (
                1.0 + h * (damping + h * stiffness) / 2.0
            )
            depth += h * speed
            wanted.append(depth)
        found = [0.1 - q[2] for q, _ in states]
        np.testing.assert_allclose(found, wanted, atol=1e-9)
        np.testing.assert_allclose(impulse.sum(axis=0)[:2], 0.0, atol=1e-12)
    for options in ({"damping": 1.0}, {"stiffness": -1.0}, {"stiffness": 1e3, "restitution": 0.5}):
        with pytest.raises(lw.ModelError):
            lw.Contact("body", **options)


def test_friction_against_turning_has_its_closed_forms():
    inertia, h = 2.0 / 12.0 * 0.02, 0.002
    start = STILL.copy()
    start[2] = 0.1
    free = free_body(size=(0.1, 0.1, 0.1))
    spinning = free.with_contacts([lw.Contact("body", radius=0.1, torsional_friction=0.01)])
    states, _ = stepped(spinning, start, np.array([0, 0, 5.0, 0, 0, 0]), 40)
    np.testing.assert_allclose(states[-1][1][2], 5.0 - 0.01 * 2.0 * GRAVITY / inertia * 40 * h, rtol=1e-9)
    states, _ = stepped(spinning, start, np.array([0, 0, 5.0, 0, 0, 0]), 300)
    np.testing.assert_allclose(states[-1][1], 0.0, atol=1e-12)
    rolling = free.with_contacts([lw.Contact("body", radius=0.1, rolling_friction=0.002)])
    states, _ = stepped(rolling, start, np.array([0, 10.0, 0, 1.0, 0, 0]), 100)
    velocity = rolling.velocity(*states[-1], "body")
    slowed = 0.002 * 2.0 * GRAVITY / 0.1 / (2.0 + inertia / 0.01)
    np.testing.assert_allclose(velocity[3], 1.0 - slowed * 100 * h, rtol=1e-9)
    np.testing.assert_allclose(velocity[3], 0.1 * velocity[1], rtol=1e-9)
    # on a slope that is gentle enough it does not roll at all
    gentle = free_body(size=(0.1, 0.1, 0.1), slope=0.01).with_contacts(
        [lw.Contact("body", radius=0.1, rolling_friction=0.002)]
    )
    states, _ = stepped(gentle, start, np.zeros(6), 500)
    np.testing.assert_allclose(states[-1][0][:3], start[:3], atol=1e-12)
    with pytest.raises(lw.ModelError, match="rolling_friction"):
        lw.Contact("body", rolling_friction=-1.0)


def test_a_block_stays_on_a_slope_for_a_minute_and_thrown_cubes_gain_no_energy():
    slope = math.radians(20.0)
    block = free_body(slope=slope).with_contacts([lw.Contact.box("body", (0.2, 0.3, 0.1), friction=0.5)])
    start = STILL.copy()
    start[2] = 0.05
    result = simulate(block, control.Passive(block), duration=60.0, step=0.002, q=start, every=1000)
    np.testing.assert_allclose(result.final_q, start, atol=1e-11)
    np.testing.assert_allclose(result.final_qd, 0.0, atol=1e-12)
    cube = free_body(size=(0.2, 0.2, 0.2)).with_contacts([lw.Contact.box("body", (0.2, 0.2, 0.2))])
    rng = np.random.default_rng(0)
    q = cube.random(rng, 20)
    q[:, :3] = (0.0, 0.0, 0.4)
    qd = np.concatenate([5.0 * rng.normal(size=(20, 3)), 3.0 * rng.normal(size=(20, 3))], axis=1)
    result = simulate(cube, control.Passive(cube), duration=1.0, step=0.002, q=q, qd=qd, warn=False)
    energy = cube.kinetic_energy(result.q, result.qd) + cube.potential_energy(result.q)
    assert np.diff(energy, axis=-1).max() < 1e-6 * energy[:, :1].max()


def test_simulations_start_from_the_impulses_of_the_last_step():
    legs = four_legs().with_contacts(round_feet())
    law = control.Passive(legs)
    q, qd = standing(legs), np.zeros(18)
    q[2] = 0.38
    result = simulate(legs, law, duration=0.05, step=0.001, control_period=0.002, q=q, warn=False)
    for _ in range(50):
        q, qd, _ = legs.contact_step(q, qd, np.zeros(18), step=0.001)
    np.testing.assert_allclose(result.final_q, q, atol=1e-8)
    assert result.worst_residual < 1e-6


def test_what_friction_holds_in_the_ground_stays_there_with_small_impulses():
    """A rod that leans on the ground within its cone cannot come out of it: no impulse makes it, however large."""
    links = [lw.Link("wall", lw.Inertia.from_com(1.0, (0, 0, 0), (1, 1, 1)))]
    links.append(lw.Link("rod", lw.Inertia.from_com(1.0, (0, 0, -0.25), (0.02, 0.02, 0.002))))
    hinge = lw.Joint("hinge", "revolute", "wall", "rod", lw.Transform.from_rpy((0, 0, 1.0)), (0, 1, 0))
    rod = lw.Robot("rod", links, [hinge])
    leaning, still = np.linspace(0.1, 0.6, 6)[:, None], np.zeros((6, 1))
    for friction, holds in ((1.0, True), (0.0, False)):
        robot = rod.with_contacts([lw.Contact("rod", offset=(0, 0, -0.5), friction=friction)])
        inside = {"ground_height": robot.contact_gaps(leaning) + 0.001}
        _, qd, impulse = robot.contact_step(leaning, still, still, **inside)
        residual = robot.contact_residual(leaning, still, still, **inside)
        lifted = robot.contact_velocities(leaning, still, still, **inside)[:, 0, 2]
        if holds:
            assert np.abs(impulse).max() < 0.1
            assert np.abs(qd).max() < 1e-9
            assert (residual > ACCURACY).all(), "a step that does not keep the law is marked"
            assert impulse[:, 0, 2].min() > 0.0, "its weight is carried"
        else:
            np.testing.assert_allclose(lifted, 0.1, rtol=1e-9)
            assert (residual < ACCURACY).all()
