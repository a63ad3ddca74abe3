"""Static friction: a joint at rest may be held with any torque of a range, which is predicted and judged."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from known_arm import motion

import linkwise as lw
from linkwise.identify import Log, condition, identify
from linkwise.identify.judging.validation import validate
from linkwise.robot.directions import friction_axes, torque_range

DROP = """<mujoco><option timestep="0.0005" integrator="implicitfast"/><worldbody><body>
  <joint name="hinge" axis="0 1 0" frictionloss="2.0" armature="0.01"/>
  <inertial pos="0.3 0 0" mass="1.5" diaginertia="0.01 0.01 0.01"/></body></worldbody></mujoco>"""


def test_ends_are_those_of_all_directions(arm):
    """Friction that differs by direction, smooth or not, and a motor of both joints: all corners are tried."""
    motor = lw.Motor("both", {"joint1": 1.0, "joint2": -0.5}, 0.1, 0.4, (0.4, 0.7))
    robot = arm.with_parameters(
        {"joint1.coulomb_friction": 0.5, "joint2.coulomb_friction": 0.3, "joint2.friction_speed": 0.05}
    ).with_motors([motor])
    rng = np.random.default_rng(0)
    q, qdd = rng.normal(size=(2, 20, 2))
    qd = rng.normal(size=(20, 2))
    qd[:12] = 0.0
    qd[12:16, 0] = 0.0
    lower, upper = torque_range(robot, q, qd, qdd, 0.01)
    torques = robot.kernel("inverse_dynamics", inputs=("direction",))
    axes = friction_axes(robot)
    speeds = np.stack([sum(factor * qd[:, k] for k, factor in row) for _, row in axes], axis=-1)
    given = np.where(np.abs(speeds) > 0.01, robot.directions(q, qd), np.nan)
    tried = []
    for ends in itertools.product((-1.0, 0.0, 1.0), repeat=len(axes)):
        tried.append(torques(q, qd, qdd, np.where(np.isnan(given), ends, given)))
    np.testing.assert_allclose(lower, np.min(tried, axis=0), atol=1e-12)
    np.testing.assert_allclose(upper, np.max(tried, axis=0), atol=1e-12)
    moves = ~np.isnan(given).any(axis=1)
    assert moves.any()
    np.testing.assert_allclose(lower[moves], robot.inverse_dynamics(q, qd, qdd)[moves], atol=1e-12)
    np.testing.assert_array_equal(lower[moves], upper[moves])


def test_mujoco_holds_within_the_range_and_slides_beyond(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    (tmp_path / "drop.xml").write_text(DROP)
    robot = lw.load(tmp_path / "drop.xml")
    model = mujoco.MjModel.from_xml_string(DROP)
    for q in (0.0, 0.7, -1.2):
        zero = np.zeros(1)
        lower, upper = torque_range(robot, np.array([q]), zero, zero, 0.01)
        half, middle = 0.5 * float(upper[0] - lower[0]), 0.5 * float(upper[0] + lower[0])
        assert half == pytest.approx(2.0)
        for share, holds in ((0.0, True), (0.9, True), (-0.9, True), (1.15, False), (-1.15, False)):
            state = mujoco.MjData(model)
            state.qpos[0] = q
            for _ in range(100):
                state.qfrc_applied[0] = middle + share * half
                mujoco.mj_step(model, state)
            # its friction is soft: what holds creeps by a few hundredths
            assert (abs(state.qvel[0]) < 0.03) == holds


def test_standing_samples_are_judged_by_the_range(arm, truth):
    """A robot that stops, held with any torque that static friction allows."""
    rng = np.random.default_rng(1)
    t, q, qd, qdd = motion(1, seconds=15.0)
    run = Log(t, q, truth.inverse_dynamics(q, qd, qdd) + 0.001 * rng.normal(size=q.shape))
    t, q = t[:1000], np.tile(q[700], (1000, 1))
    friction = np.array([0.5, 0.3])
    hold = np.repeat(0.9 * friction * rng.uniform(-1.0, 1.0, (20, 2)), 50, axis=0)
    rest = Log(t, q, truth.inverse_dynamics(q, 0.0 * q, 0.0 * q) + hold)
    found = identify(arm, run, validation=rest, friction="coulomb")
    judged = found.validation
    still = np.zeros((1, 2))
    lower, upper = found.predict_range(q[-1:], still, still)
    np.testing.assert_allclose(0.5 * (upper - lower)[0], friction, rtol=0.05)
    np.testing.assert_allclose(0.5 * (upper + lower), found.predict(q[-1:], still, still), atol=1e-9)
    assert (judged.held > 97.0).all()
    assert judged.total_beyond < 0.1 * judged.total_standing
    assert found.summary()["validation"]["total_beyond_range_at_rest"] == judged.total_beyond
    beyond = Log(t, q, rest.tau + 2.0 * friction)
    assert (validate(found.robot, condition(beyond, cutoff=12.0)).held < 50.0).all()
