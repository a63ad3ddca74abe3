"""Valera's hardware: encoders, index pulses, potentiometers, converters, temperatures, tool; and homing."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import control
from linkwise.simulate import puma_hardware, simulate
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


def test_torques_at_full_voltage_are_those_of_the_arm(robot):
    hardware = PumaHardware(robot, Q)
    hardware.set_voltages(np.full(6, -10.0))
    np.testing.assert_allclose(hardware.tau, [-97.6, -186.4, -89.4, -24.2, -20.1, -21.3])


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


def test_the_numbers_of_the_paper_and_of_the_arm():
    """Valera 2003, section 3; Corke and Armstrong 1994; Armstrong, Khatib and Burdick 1986."""
    assert puma_hardware.COUNTS_PER_TURN == (200, 200, 250, 250, 250, 250)
    assert puma_hardware.GEAR_RATIOS == (-62.6111, 107.815, -53.7063, 76.0364, 71.923, 76.686)
    assert puma_hardware.TORQUE_AT_10_VOLTS == (97.6, 186.4, 89.4, 24.2, 20.1, 21.3)
    assert puma_hardware.VOLTS == 10.0


def test_two_bad_joints_name_the_first(robot):
    hardware = PumaHardware(robot, Q)
    hardware.index_latches = lambda: np.r_[0.0, np.nan, np.nan, 0.0, 0.0, 0.0]
    with pytest.raises(HomingError, match="no index pulse from shoulder"):
        homed(hardware, robot)
    hardware = PumaHardware(robot, Q)
    honest = hardware.potentiometers
    half = np.r_[0.0, np.pi / 107.815, np.pi / 53.7063, np.zeros(3)] / hardware.potentiometer_range * 5
    hardware.potentiometers = lambda: honest() + half
    with pytest.raises(HomingError, match=r"shoulder: its potentiometer is off by 0\.[45]"):
        homed(hardware, robot)


def test_an_index_pulse_comes_at_whole_turns_in_both_directions(robot):
    hardware = PumaHardware(robot, Q)
    turn, start = hardware.counts_per_turn, hardware._powered_at
    multiple = np.floor(start / turn) * turn
    for before, after, expected in (
        (multiple - 1, multiple, multiple),  # reached from below
        (multiple + 1, multiple - 1, multiple),  # passed downwards
        (multiple - 3, multiple + turn + 2, multiple + turn),  # the last of two
    ):
        hardware._index = np.full(6, np.nan)
        hardware._latch(before, after)
        np.testing.assert_array_equal(hardware.index_latches(), expected - start)
    hardware._index = np.full(6, np.nan)
    hardware._latch(multiple, multiple + 1)  # left upwards: it was latched when it was reached
    hardware._latch(multiple + 1, multiple + turn - 1)
    assert np.isnan(hardware.index_latches()).all()


def test_temperature_follows_the_square_of_the_torque(robot):
    hardware = PumaHardware(robot, Q, thermal_time=2.0, step=1e-2)
    hardware.set_voltages([5.0] + [0.0] * 5)
    hardware.advance(1e-2)
    assert hardware.temperature[0] == pytest.approx((5.0 / 10.0) ** 2 * 1e-2 / 2.0, rel=1e-2)
    assert (hardware.temperature[1:] == 0.0).all()
    hardware.temperature[:] = [0.59, 0.61, 0.6, 0, 0, 0]
    assert hardware.over_temperature().tolist() == [False, True, False, False, False, False]


def test_potentiometers_have_steps_and_ends(robot):
    hardware = PumaHardware(robot, np.array([100.0, -100.0, 0.0, 0.0, 0.0, 0.0]), potentiometer_error=0.0)
    volts = hardware.potentiometers()
    assert volts.tolist() == [5.0, 0.0, 2.5, 2.5, 2.5, 2.5]
    hardware = PumaHardware(robot, Q, potentiometer_error=0.0)
    steps = hardware.potentiometers() / (5.0 / 4096)
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-9)
    np.testing.assert_allclose(
        hardware.potentiometers(), 2.5 + 5 * Q / np.deg2rad(600.0), atol=2.5 / 4096 + 1e-12
    )


def test_time_passes_in_steps_with_friction(robot):
    """One step is that of the simulation with friction."""
    hardware = PumaHardware(robot, Q)
    hardware.set_voltages([4.0] * 6)
    hardware.advance(0.01)
    found = simulate(
        robot,
        control.ConstantTorque(robot, hardware.tau),
        q=Q,
        duration=0.01,
        integrator="semi_implicit_euler",
        warn=False,
    )
    np.testing.assert_array_equal(hardware.q, found.final_q)
    np.testing.assert_array_equal(hardware.qd, found.final_qd)


def test_a_homed_arm_speaks_radians_and_torques(robot):
    hardware = PumaHardware(robot, Q)
    arm = puma_hardware.HomedArm(hardware, hardware._powered_at)
    counts = np.floor(Q * hardware.gear_ratio / (2 * np.pi) * hardware.counts_per_turn)
    per_count = 2 * np.pi / (hardware.counts_per_turn * hardware.gear_ratio)
    np.testing.assert_allclose(arm.positions(), (counts + 0.5) * per_count, rtol=1e-12)
    arm.write(np.full(6, 1.0))
    np.testing.assert_allclose(hardware.tau, 1.0, atol=hardware.torque_per_volt.max() * 20 / 4096 / 2)
