"""Valera's hardware: encoders, index pulses, potentiometers, converters, temperatures, tool; and homing."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.simulate.puma_hardware import HomingError, PumaHardware, homed

Q = np.array([0.3, -0.6, 0.5, 0.2, -0.4, 0.9])


@pytest.fixture(scope="module")
def robot():
    return lw.load("puma560")


def test_homing_finds_the_arm_to_a_count(robot):
    hardware = PumaHardware(robot, Q)
    arm = homed(hardware, robot)
    assert (np.abs(arm.positions() - hardware.q) <= 0.5001 * arm.resolution()).all()
    # 200 counts on the first two joints, 250 on the others, per motor turn
    np.testing.assert_allclose(
        arm.resolution()[:3], 2 * np.pi / (np.array([200, 200, 250]) * [62.6111, 107.815, 53.7063])
    )


def test_counters_start_at_zero_wherever_the_arm_stands(robot):
    assert (PumaHardware(robot, Q).counters() == 0).all()
    assert np.isnan(PumaHardware(robot, Q).index_latches()).all()


def test_potentiometers_are_absolute_but_rough(robot):
    hardware = PumaHardware(robot, Q)
    volts = np.array([hardware.potentiometers() for _ in range(200)])
    assert ((volts >= 0) & (volts <= 5)).all()
    position = (volts - 2.5) * hardware.potentiometer_range / 5
    np.testing.assert_allclose(position.mean(axis=0), Q, atol=1e-3)
    assert position.std() > 1e-3


def test_a_bad_potentiometer_is_noticed(robot):
    hardware = PumaHardware(robot, Q)
    honest = hardware.potentiometers
    half_a_turn = np.r_[np.pi / 62.6111, np.zeros(5)] / hardware.potentiometer_range * 5
    hardware.potentiometers = lambda: honest() + half_a_turn
    with pytest.raises(HomingError, match="waist: its potentiometer is off by"):
        homed(hardware, robot)


def test_a_dead_index_is_noticed(robot):
    hardware = PumaHardware(robot, Q)
    hardware.index_latches = lambda: np.r_[0.0, 0.0, np.nan, 0.0, 0.0, 0.0]
    with pytest.raises(HomingError, match="no index pulse from elbow"):
        homed(hardware, robot)


def test_converters_limit_and_round(robot):
    hardware = PumaHardware(robot, Q)
    hardware.set_voltages([20.0, -20.0, 1.0001, 0.0, np.nan, 0.0024])
    step = 20 / 4096
    np.testing.assert_allclose(
        hardware.tau / hardware.torque_per_volt, [10 - step, -10.0, round(1.0001 / step) * step, 0, 0, 0]
    )


def test_motors_get_hot_under_load_and_only_then(robot):
    hardware = PumaHardware(robot, Q, thermal_time=0.1)
    hardware.set_voltages([0.0, 0.0, 0.0, 0.0, 0.0, 0.9])
    hardware.advance(0.3)
    assert not hardware.over_temperature().any()
    hardware.set_voltages([0.0, 0.0, 0.0, 0.0, 0.0, 9.9])
    hardware.advance(0.3)
    np.testing.assert_array_equal(hardware.over_temperature(), [False] * 5 + [True])


def test_two_tool_outputs(robot):
    hardware = PumaHardware(robot, Q)
    hardware.set_tool(1, True)
    assert hardware.tool == [False, True]
    with pytest.raises(ValueError, match="outputs 0 and 1"):
        hardware.set_tool(2, True)
