"""Numbers of sensors, drives and references that cannot be right are refused by name."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import ShapeError, control, motion
from linkwise.simulate import (
    Drives,
    Moves,
    Plant,
    Sensors,
    SimulationError,
    arguments,
    simulate,
    simulate_adaptive,
)

BAD = [-1.0, np.nan, np.inf, [0.1, -0.1], "much"]


@pytest.fixture(scope="module")
def arm():
    return lw.load("two_link")


@pytest.mark.parametrize("name", ["position_noise", "velocity_noise", "resolution"])
@pytest.mark.parametrize("value", BAD)
def test_sensors(name, value):
    with pytest.raises(SimulationError, match=f"{name}: expected"):
        Sensors(**{name: value})


def test_the_first_wrong_number_and_its_place_are_shown():
    with pytest.raises(SimulationError, match=r"got -1 at \[5\]"):
        Sensors(resolution=[1.0] * 5 + [-1.0] * 3)
    with pytest.raises(SimulationError, match=r"got -1$"):
        Sensors(resolution=-1.0)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, [1.0, 2.0]])
def test_the_filter_of_a_sensor(value):
    assert Sensors(cutoff=np.inf).cutoff == np.inf
    with pytest.raises(SimulationError, match="cutoff: expected"):
        Sensors(cutoff=value)


@pytest.mark.parametrize(
    ("counts", "gear", "name"),
    [(0, 1.0, "counts_per_turn"), (200, 0.0, "gear_ratio"), (200, np.nan, "gear_ratio")],
)
def test_encoders(counts, gear, name):
    with pytest.raises(SimulationError, match=name):
        Sensors.encoders(counts, gear)
    assert Sensors.encoders(100, -2.0).resolution == pytest.approx(2 * np.pi / 200)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        *(({"torque_per_volt": value}, "torque_per_volt") for value in (*BAD, 0.0)),
        *(({"torque_per_volt": 1.0, "volts": value}, "volts") for value in (-1.0, 0.0, np.nan, np.inf)),
        *(({"torque_per_volt": 1.0, "bits": value}, "bits") for value in (0, -3, 2.5, 49)),
    ],
)
def test_drives(options, name):
    with pytest.raises(SimulationError, match=f"{name}: expected"):
        Drives(**options)


def test_converters_that_exist_are_accepted(arm):
    for bits in (1, 48, None):
        assert Drives(1.0, bits=bits).bits == bits


@pytest.mark.parametrize("value", [0.99, np.nan, np.inf, "stiff"])
def test_breakaway(arm, value):
    assert Plant(arm, breakaway=1.0).breakaway == 1.0
    with pytest.raises(SimulationError, match="breakaway: expected"):
        Plant(arm, breakaway=value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Moves([0.0, np.nan], [1.0, 1.0]), "Moves: start"),
        (lambda: Moves([0.0, 0.0], [np.inf, 1.0]), "Moves: end"),
        (lambda: Moves([0.0, 0.0], [1.0, 1.0], 0.0), "Moves: duration: expected finite numbers above 0"),
        (lambda: [0.0, np.nan], "reference: expected finite"),
        (lambda: Moves([0.0], [1.0]), r"Moves: start: expected shape \(..., 2\)"),
    ],
)
def test_references(arm, make, message):
    with pytest.raises(ValueError, match=message):
        simulate(arm, control.Passive(arm), make(), duration=0.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"duration": -1.0}, "duration"),
        ({"duration": 0.0}, "duration"),
        ({"duration": np.inf}, "duration"),
        ({"rows": 1}, "rows"),
        ({"rtol": 0.0}, "rtol"),
        ({"atol": -1.0}, "atol"),
        ({"smoothing": np.nan}, "smoothing"),
        ({"q": [0.0]}, r"q: expected shape \(2,\)"),
        ({"qd": [0.0, np.nan]}, "qd: expected finite"),
        ({"controller": lambda t, q, qd, r: q}, "controller"),
    ],
)
def test_the_adaptive_integrator(arm, options, message):
    with pytest.raises(ValueError, match=message):
        simulate_adaptive(arm, **{"duration": 0.1, **options})


@pytest.mark.parametrize(
    ("options", "name"), [({"seed": -1}, "seed"), ({"first": -1}, "first"), ({"seed": 0.5}, "seed")]
)
def test_seeds(arm, options, name):
    noisy = Plant(arm, sensors=Sensors(position_noise=1e-3))
    with pytest.raises(SimulationError, match=f"{name}: expected a whole number"):
        simulate(noisy, control.Passive(arm), duration=0.01, **options)


def test_parts_for_arms_say_so_of_robots_with_floating_joints():
    robot = lw.load("two_link", base="floating").with_payload(1.0, inertia=(1.0, 1.0, 1.0), frame="base")
    move = motion.quintic(np.zeros(robot.dof), np.ones(robot.dof), 1.0)
    with pytest.raises(SimulationError, match=r"trajectories and moves are for arms.*\(\.\.\., 9\)"):
        simulate(robot, control.Passive(robot), move, duration=0.01)
    noisy = Plant(robot, sensors=Sensors(position_noise=1e-3))
    with pytest.raises(SimulationError, match="for arms; joint 'root_joint' is floating"):
        simulate(noisy, control.Passive(robot), duration=0.01)
    with pytest.raises(ShapeError, match=r"q: expected shape \(\.\.\., 9\), got \(8,\)"):
        simulate(robot, control.Passive(robot), duration=0.01, q=np.zeros(8))


@pytest.mark.parametrize(
    ("time", "unit", "least", "expected"),
    [(0.3, 0.1, 1, 3), (0.0, 0.1, 0, 0), (0.1 + 0.2, 0.1, 1, 3), (1e-3, 1e-3, 1, 1)],
)
def test_multiples_of_a_time(time, unit, least, expected):
    assert arguments.multiple("t", time, unit, "periods", least) == expected
    with pytest.raises(SimulationError, match="t: expected a whole number of periods of"):
        arguments.multiple("t", time + 0.4 * unit, unit, "periods", least)
    with pytest.raises(SimulationError):
        arguments.multiple("t", time, unit, "periods", expected + 1)


def test_what_is_expected_is_said():
    with pytest.raises(SimulationError, match="x: expected finite numbers, got inf"):
        arguments.array("x", np.inf)
    with pytest.raises(SimulationError, match=r"x: expected finite numbers from 2 on, got 1 at \[0\]"):
        arguments.array("x", [1.0, 3.0], least=2.0)
    with pytest.raises(SimulationError, match=r"x: expected finite numbers above 2, got 2"):
        arguments.array("x", 2.0, above=2.0)
    assert arguments.array("x", [2.0, 3.0], least=2.0).tolist() == [2.0, 3.0]
    with pytest.raises(SimulationError, match="x: expected one number"):
        arguments.number("x", [1.0])
    with pytest.raises(SimulationError, match="x: expected one number or 3"):
        arguments.per_joint("x", [1.0, 2.0], 3)
    assert arguments.per_joint("x", 2.0, 3).tolist() == [2.0] * 3
    assert arguments.whole("x", np.int64(4), 4) == 4
    with pytest.raises(SimulationError) as error:
        arguments.array("x", -np.arange(1.0, 100.0), least=0.0)
    assert len(str(error.value)) < 140


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"sensors": {"position_noise": -1e-3}}, "position_noise: expected finite numbers from 0 on"),
        ({"sensors": {"resolution": float("nan")}}, "resolution: expected"),
        ({"drives": {"torque_per_volt": 0.0}}, "torque_per_volt: expected"),
        ({"gains": {"kp": -1.0}}, "kp: expected finite numbers, none negative"),
        ({"gains": {"frequency": -5.0}}, "frequency and damping: expected positive"),
        ({"torque_limits": -2.0}, "torque_limits: expected positive"),
    ],
)
def test_a_study_names_what_cannot_be(arm, entry, message):
    from linkwise.study.errors import StudyError
    from linkwise.study.schema import StudySettings
    from linkwise.study.steps import closed_loop
    from linkwise.study.steps.robot_parameters import RobotParameters

    settings = {
        "simulate": "tracking",
        "duration": 1.0,
        "reference": {"to": 0.1},
        "gains": {"frequency": 5.0},
    }
    with pytest.raises(StudyError, match=message):
        closed_loop.read("run", StudySettings({**settings, **entry}, "run"), arm, RobotParameters(()), 0)
