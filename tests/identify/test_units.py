"""Unit mistakes in recordings: every one is refused with its quantity and unit, and SI units are not."""

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.identify.errors import LogError
from linkwise.identify.recordings import units
from linkwise.identify.recordings.layout import Layout
from linkwise.identify.recordings.log import Log


def recording(robot, size=0.08):
    """A small motion: its degrees are still possible radians."""
    t = np.arange(400) / 100.0
    phase = np.arange(robot.dof)
    rate = 2.0 + phase
    q = size * np.sin(np.outer(t, rate) + phase)
    qd = size * rate * np.cos(np.outer(t, rate) + phase)
    return Log(t, q, robot.gravity_torques(q) + 1.0, qd)


def refused(log, robot, layout=None):
    with pytest.raises(LogError) as error:
        units.check(log, robot, layout or Layout(), "run.csv")
    return str(error.value)


def test_mistakes_are_named_by_quantity_joint_and_unit():
    robot = lw.load("stanford")
    slides = next(k for k, joint in enumerate(robot.coordinate_joints) if not joint.turns)
    turns = 1 if slides != 1 else 0
    names, right = robot.joint_names, recording(robot)
    units.check(right, robot, Layout(), "run.csv")  # SI units

    def scaled(part, k, factor):
        values = getattr(right, part).copy()
        values[:, k] *= factor
        return replace(right, **{part: values})

    for log, joint, unit in (
        (scaled("q", turns, 180 / np.pi), turns, "deg"),
        (scaled("qd", turns, 180 / np.pi), turns, "deg/s"),
        (scaled("qd", turns, 60 / (2 * np.pi)), turns, "rpm"),
        (scaled("qd", slides, 1e3), slides, "mm/s"),
        (scaled("q", slides, 1e3), slides, "mm"),
    ):
        message = refused(log, robot)
        assert f"of {names[joint]} " in message, message
        assert f"like {unit} " in message, message
    assert "opposite sign" in refused(scaled("qd", turns, -1.0), robot)
    for k in (turns, slides):  # other factors are no known unit, and pass
        units.check(scaled("qd", k, 1.15), robot, Layout(), "run.csv")
    exchanged = replace(right, qd=right.qd[:, [1, 0, *range(2, robot.dof)]])
    assert f"velocities of {names[0]} follow the positions of {names[1]}" in refused(exchanged, robot)
    for unit, factor in (("ms", 1e3), ("us", 1e6), ("ns", 1e9)):
        assert f"look like {unit} " in refused(replace(right, t=factor * right.t, qd=None), robot)
    assert "too near for seconds" in refused(replace(right, t=1e-6 * right.t, qd=None), robot)
    heavy = lw.load("puma560")
    run = recording(heavy)
    units.check(run, heavy, Layout(), "run.csv")
    assert "look like N·mm" in refused(replace(run, tau=1e3 * run.tau), heavy)


def test_a_layout_that_names_the_unit_is_believed():
    robot = lw.load("stanford")
    right = recording(robot)
    for log, layout in (
        (replace(right, t=1e3 * right.t, qd=None), Layout(units={"time": "ms"})),
        (replace(right, qd=57.3 * right.qd), Layout(units={"velocity": "deg/s"})),
        (replace(right, q=1e3 * right.q, qd=None), Layout(units={"position": "deg"})),
        (replace(right, tau=1e3 * right.tau), Layout(units={"torque": "Nmm"})),
    ):
        units.check(log, robot, layout, "run.csv")
