"""Every way in which the loop stops, by fault injection: what is detected, and which torques the plant gets.

The plant is simulated in closed loop, with AddressSanitizer and UndefinedBehaviorSanitizer where the compiler has
them.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.realtime import TwoRatePrograms
from linkwise.realtime.build import BuildError, compiler
from linkwise.realtime.report import REASONS

EFFORT, STOP_TIME = 60.0, 0.06
HOLD, RAMP, BRAKE = range(3)
KINDS = (
    *(
        "none",
        "nan",
        "inf_speed",
        "jump",
        "freeze",
        "lost",
        "hot",
        "deadlines",
        "watchdog",
        "following",
        "stale",
    ),
    *(
        "reference",
        "torque",
        "speed",
        "position",
        "write",
        "asked",
        "hang_in_stop",
        "nan_in_stop",
        "brake_fails",
    ),
)
EXPECTED = {
    "none": "finished",
    "nan": "a sensor of",
    "inf_speed": "a sensor of",
    "jump": "the sensor of {joint} jumped",
    "freeze": "the sensor of {joint} did not change",
    "lost": "the plant did not answer",
    "hot": "{joint} reports over-temperature",
    "deadlines": "{value:.0f} deadlines were missed",
    "watchdog": "the watchdog found",
    "following": "{joint} was {value:.3g} away from its reference",
    "stale": "the coefficients were",
    "reference": "the reference has",
    "torque": "the torque of",
    "speed": "{joint} crossed its speed limit",
    "position": "{joint} crossed its position limit",
    "write": "the plant did not answer",
    "asked": "stopped on request",
    "hang_in_stop": "finished",
    "nan_in_stop": "finished",
    "brake_fails": "finished",
}
JOINTS = {"nan": 1, "inf_speed": 0, "jump": 1, "freeze": 0, "hot": 1, "torque": 0, "position": 0}
WITHOUT_FEEDBACK = {"nan", "inf_speed", "jump", "freeze", "lost", "deadlines", "watchdog", "write"}
BAD_ROW = {"nan", "inf_speed", "jump", "lost"}  # the last row was not used
SANITIZERS = (["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"], [])


@pytest.fixture(scope="module")
def robot():
    return lw.load("two_link")


@pytest.fixture(scope="module")
def runs(robot, tmp_path_factory):
    try:
        cc = compiler()
    except BuildError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("stops")
    source = folder / "main.c"
    test = Path(__file__).with_name("stops.c").read_text()
    source.write_text(TwoRatePrograms(robot).source() + test)
    for options in SANITIZERS:
        command = [
            cc,
            "-std=c11",
            "-O1",
            "-g",
            "-Wall",
            "-Wextra",
            *options,
            "-pthread",
            "-o",
            folder / "main",
            source,
        ]
        built = subprocess.run([*command, "-lm"], capture_output=True, text=True)
        if built.returncode == 0:
            break
    assert built.returncode == 0, built.stderr
    # a task that is stuck in its driver keeps its memory: that is no leak
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    ran = subprocess.run([folder / "main"], capture_output=True, text=True, timeout=120, env=environment)
    assert ran.returncode == 0, ran.stderr
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    return {(KINDS[run["kind"]], run["mode"], run["brakes"]): run for run in found}


def torques(run) -> np.ndarray:
    return np.array(run["stop"])[:, 1:]


def times(run) -> np.ndarray:
    return np.array(run["stop"])[:, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_every_fault_is_detected(runs, kind):
    for mode in (HOLD, RAMP, BRAKE):
        run = runs[kind, mode, int(mode == BRAKE)]
        assert REASONS[run["reason"]].startswith(EXPECTED[kind])
        assert run["joint"] == JOINTS.get(kind, run["joint"])


@pytest.mark.parametrize("kind", KINDS)
def test_commands_are_finite_and_within_the_effort_limits(runs, kind):
    for run in (run for (of, *_), run in runs.items() if of == kind):
        assert run["finite"]
        assert run["largest"] <= EFFORT
        assert len(run["stop"]) >= 1


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "hot"])
def test_hold_ends_with_the_gravity_torques(runs, robot, kind):
    run = runs[kind, HOLD, 0]
    assert not run["braked"]
    assert times(run)[-1] >= STOP_TIME
    if kind in WITHOUT_FEEDBACK | {"hang_in_stop", "nan_in_stop"}:
        # where the model says that the arm came to rest: constant deceleration in half of the stop time
        row = "before" if kind in BAD_ROW else "row"
        start, speed = (np.array(run[f"{row}_{name}"], dtype=float) for name in ("q", "qd"))
        rest = start + speed * 0.25 * STOP_TIME
    else:
        rest = np.array(run["stop_q"])  # where it is
    np.testing.assert_allclose(run["last"], robot.gravity_torques(rest), rtol=1e-9)
    np.testing.assert_array_equal(run["last"], torques(run)[-1])


@pytest.mark.parametrize("kind", ["none", "asked", "reference", "torque", "stale", "position"])
def test_hold_brings_the_arm_to_rest(runs, kind):
    run = runs[kind, HOLD, 0]
    assert np.abs(run["before_qd"]).max() > 0.1
    assert np.abs(run["stop_qd"]).max() < 0.05


@pytest.mark.parametrize("kind", KINDS)
def test_ramp_ends_with_zero(runs, kind):
    run = runs[kind, RAMP, 0]
    assert (np.array(run["last"]) == 0).all()
    assert (torques(run)[-1] == 0).all()
    left = 1 - np.minimum(times(run) / STOP_TIME, 1)
    assert (np.abs(torques(run)) <= EFFORT * left[:, np.newaxis] + 1e-6).all()


def test_ramp_begins_with_the_torques_of_hold(runs):
    """At the normal end. The same state is not reached twice, hence the tolerance."""
    ramp, hold = torques(runs["none", RAMP, 0]), torques(runs["none", HOLD, 0])
    np.testing.assert_allclose(ramp[0], hold[0], rtol=0.2, atol=5.0)
    assert np.abs(hold[0]).max() > 15.0


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "brake_fails"])
def test_brakes_end_with_zero(runs, kind):
    run = runs[kind, BRAKE, 1]
    assert run["braked"]
    assert run["asked_brakes"] == 1
    assert (np.array(run["last"]) == 0).all()
    assert len(run["stop"]) <= 3 or kind == "hang_in_stop"
    assert (torques(run)[0] != 0).any()  # the arm is held until the brakes report that they hold it


def test_brakes_that_do_not_engage_leave_the_arm_held(runs, robot):
    for mode in (HOLD, BRAKE):
        run = runs["brake_fails", mode, 1]
        assert not run["braked"]
        assert run["asked_brakes"] == 1
        np.testing.assert_allclose(run["last"], robot.gravity_torques(np.array(run["stop_q"])), rtol=1e-9)


def test_hold_brakes_at_once_where_sensors_cannot_be_used_and_at_the_end_otherwise(runs):
    for kind, at_once in (("nan", True), ("inf_speed", True), ("jump", True), ("none", False)):
        run = runs[kind, HOLD, 1]
        assert run["braked"]
        assert (times(run)[-1] < STOP_TIME) == at_once
        assert (np.array(run["last"]) == 0).all()


def test_a_hot_motor_is_not_held(runs):
    run = runs["hot", HOLD, 0]
    assert (np.array(run["last"]) == 0).all()
    assert times(run)[-1] >= STOP_TIME
