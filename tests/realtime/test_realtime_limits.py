"""Settings that switch checks off are refused: in Python, and again in C."""

from __future__ import annotations

import ctypes
import math
from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise import motion
from linkwise.control import Gains
from linkwise.realtime import PlantDriver, SettingsError, SimulatedPlant, TwoRateController
from linkwise.realtime.build import BuildError, compiler, library
from linkwise.realtime.report import REASONS, SETTINGS, TIMING
from linkwise.realtime.runtime import _Outcome

GAINS = Gains.from_frequency(15.0)
NAN, INF = math.nan, math.inf


@pytest.fixture(scope="module")
def robot():
    return lw.load("two_link")


class Still(PlantDriver):
    dof = 2

    def read(self, cycle):
        return np.zeros(2), np.zeros(2), np.zeros(2)

    def write(self, tau):
        raise AssertionError("nothing may be commanded")


BAD = [
    *(
        ({name: value}, f"{name}: expected")
        for name in ("period", "oldest", "patience")
        for value in (0, -1, NAN, INF)
    ),
    *(
        ({"background": value}, "background: expected")
        for value in (0.0, -1.0, NAN, INF, (0.1, NAN), (0.1,), "x")
    ),
    *(({"deadlines": value}, "deadlines: expected a whole") for value in (-1, NAN, 1.5, True, 2**31, None)),
    *(({"priority": value}, "priority: expected a whole") for value in (-1, 100, NAN)),
    *(({"core": value}, "core: expected a whole") for value in (-1, 1024, NAN)),
    *(({"stop_time": value}, "stop_time: expected") for value in (-1e-9, NAN, INF, 61.0, "x")),
    *(({"stop": value}, "stop: expected one of hold, ramp, brake") for value in ("zero", "", None)),
    ({"stop": "brake"}, "stop: 'brake' needs a plant with brakes"),
    *(
        ({"limits": {name: value}}, f"limits: joint2: {name} must be greater than zero")
        for name in ("speed", "effort", "following", "frozen")
        for value in ([1, 0], [1, -1], [1, NAN], [1, -INF])
    ),
    *(({"limits": {"lower": value}}, "joint1: lower .* must be less") for value in ([NAN, 0], [INF, 0])),
    ({"limits": {"lower": [-1, 1], "upper": [1, 1]}}, "joint2: lower .1. must be less than upper .1."),
    ({"limits": {"upper": NAN}}, "joint1: lower .* must be less"),
    (
        {"limits": {"higher": 1.0}},
        "limits: expected lower, upper, speed, effort, following, frozen, got 'higher'",
    ),
    ({"limits": {"effort": [1, 2, 3]}}, "effort: expected one number or 2 numbers"),
    ({"limits": {"effort": "much"}}, "effort: expected one number or 2 numbers"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_settings_are_named(robot, options, message):
    with pytest.raises(SettingsError, match=message) as caught:
        TwoRateController(robot, GAINS, **options)
    assert isinstance(caught.value, lw.LinkwiseError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("duration", [0.0, -1.0, NAN, INF, 1e9])
def test_bad_durations_are_named(robot, duration):
    with pytest.raises(SettingsError, match="duration: "):
        TwoRateController(robot, GAINS).run(motion.hold(np.zeros(2)), duration)


def limited(robot, **limits):
    joints = [
        replace(joint, limits=lw.Limits(-1.0, 1.0, **limits)) if joint.name in robot.joint_names else joint
        for joint in robot.joints
    ]
    return lw.Robot(robot.name, robot.links, joints)


def test_hardware_is_not_driven_without_limits_of_speed_and_effort(robot):
    """A robot without limits, and one whose file says 0: not stated."""
    for bare in (robot, limited(robot, velocity=0.0, effort=0.0)):
        for given, missing in (({"speed": 1.0}, "effort"), ({"effort": 1.0}, "speed")):
            with pytest.raises(SettingsError, match=f"joint1 has no {missing} limit; hardware is not driven"):
                TwoRateController(bare, GAINS, plant=Still(), limits=given)
        with pytest.raises(SettingsError, match="joint1 has no effort limit"):
            TwoRateController(bare, GAINS, plant=Still(), limits={"speed": 1.0, "effort": INF})
        TwoRateController(bare, GAINS, plant=Still(), limits={"speed": 1.0, "effort": 1.0})
        assert np.isinf(TwoRateController(bare, GAINS).limits["effort"]).all()  # simulated


def test_limits_of_the_robot_are_used(robot):
    found = TwoRateController(limited(robot, velocity=2.0, effort=3.0), GAINS, plant=Still()).limits
    assert {name: values.tolist() for name, values in found.items()} == {
        "lower": [-1, -1],
        "upper": [1, 1],
        "speed": [2, 2],
        "effort": [3, 3],
        "following": [0.5, 0.5],
        "frozen": [0.02, 0.02],
    }


# What the C code must refuse: the field, a bad value, and the name in the message.
IN_C = [
    *(
        (name, value, name)
        for name in ("period", "inertia_period", "velocity_period")
        for value in (0, -1, NAN, INF)
    ),
    ("cycles", 0, "cycles"),
    ("reference_rows", 0, "reference"),
    ("reference", None, "reference"),
    *((name, value, name) for name in ("oldest", "patience") for value in (0, -1, NAN, INF)),
    *(("stop_time", value, "stop_time") for value in (-1e-9, NAN, INF, 61.0)),
    ("deadlines", -1, "deadlines"),
    ("priority", -1, "priority"),
    ("priority", 100, "priority"),
    ("core", -1, "core"),
    ("core", 1025, "core"),
    ("stop_mode", -1, "stop_mode"),
    ("stop_mode", 3, "stop_mode"),
    *((name, value, f"{name} of joint2") for name in ("kp", "kd") for value in (-1, NAN, INF)),
    *((name, NAN, "lower or upper of joint2") for name in ("lower", "upper")),
    ("upper", -2.0, "lower or upper of joint2"),
    *(
        (name, value, f"{name} of joint2")
        for name in ("speed", "effort", "following", "frozen")
        for value in (0.0, -1.0, NAN)
    ),
    *((name, INF, f"{name} of joint2") for name in ("speed", "effort")),
]


@pytest.mark.parametrize(("field", "value", "name"), IN_C)
def test_the_c_code_refuses_them_too(robot, field, value, name):
    """A driver in C does not come through Python. Nothing is read or commanded."""
    try:
        compiler()
    except BuildError as error:
        pytest.skip(str(error))
    limits = {"lower": -1.0, "upper": 1.0, "speed": 1.0, "effort": 1.0}
    controller = TwoRateController(robot, GAINS, plant=Still(), limits=limits)
    code = library(controller.programs.source())
    settings, _keep = controller._settings(code, np.zeros((10, 6)), 10, None)
    current = getattr(settings, field)
    if isinstance(current, ctypes.Array):
        current[1] = value
    else:
        setattr(settings, field, value)
    code.rows_needed.restype = ctypes.c_int64
    assert code.rows_needed(ctypes.byref(settings)) == 0
    result, rows = _Outcome(), np.zeros((1, len(TIMING) + 6))
    code.run(
        ctypes.byref(settings),
        ctypes.byref(result),
        ctypes.c_void_p(rows.ctypes.data),
        ctypes.byref(ctypes.c_int32()),
    )
    assert REASONS[result.reason].startswith("refused to start")
    found = SETTINGS[result.setting] + (f" of joint{result.joint + 1}" if result.joint >= 0 else "")
    assert found == name
    assert result.rows == result.stop_rows == 0


def test_the_c_code_allows_a_simulated_plant_without_limits(robot):
    controller = TwoRateController(robot, GAINS, plant=SimulatedPlant(robot))
    code = library(controller.programs.source())
    settings, _keep = controller._settings(code, np.zeros((10, 6)), 10, None)
    code.rows_needed.restype = ctypes.c_int64
    assert code.rows_needed(ctypes.byref(settings)) > 10


def test_joints_with_several_coordinates_are_refused():
    """Their positions would not fit into the arrays of the C code."""
    links = [lw.Link("base"), lw.Link("body", lw.Inertia.from_com(1.0, (0, 0, 0), (1.0, 1.0, 1.0)))]
    for kind in ("floating", "ball"):
        robot = lw.Robot("free", links, [lw.Joint("root", kind, "base", "body")])
        with pytest.raises(SettingsError, match=f"joint root is {kind}"):
            TwoRateController(robot, GAINS)
