"""``linkwise simulate``."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

import linkwise as lw
from linkwise import control, motion
from linkwise.cli import main
from linkwise.simulate import simulate


@pytest.fixture
def ran(capsys):
    def run(*arguments):
        status = main([str(argument) for argument in arguments])
        return status, capsys.readouterr()

    return run


def test_the_table_is_the_simulation(ran):
    status, said = ran(
        "simulate", "two_link", "--to", "0.5,-0.4", "--move", 0.2, "--duration", 0.3, "--every", 50
    )
    assert status == 0
    data = np.genfromtxt(io.StringIO(said.out), delimiter=",", names=True)
    robot = lw.load("two_link")
    controller = control.ComputedTorque(robot, control.Gains.from_frequency(10.0))
    found = simulate(robot, controller, motion.quintic([0, 0], [0.5, -0.4], 0.2), duration=0.3, every=50)
    np.testing.assert_array_equal(data["t"], found.t)
    np.testing.assert_array_equal(data["q2"], found.q[:, 1])
    np.testing.assert_array_equal(data["tau1"], found.tau[:, 0])
    np.testing.assert_array_equal(data["qr1"], found.reference[0][:, 0])


@pytest.mark.parametrize(
    "controller", ["tracking", "integral_tracking", "gravity_pd", "feed_forward", "passive", "point_to_point"]
)
def test_every_controller_runs(ran, tmp_path, controller):
    out = tmp_path / "motion.csv"
    options = ("--to", "30,-20", "--degrees", "--duration", 0.02, "--controller", controller, "--out", out)
    status, said = ran("simulate", "two_link", *options)
    assert status == 0, said.err
    assert "largest error" in said.out
    assert out.read_text().startswith("t,q1,q2,qd1,")


def test_flaws_and_json(ran):
    options = (
        "--noise",
        1e-4,
        "--resolution",
        1e-3,
        "--delay",
        1,
        "--payload",
        0.5,
        "--model-error",
        10,
        "--json",
    )
    status, said = ran("simulate", "two_link", "--duration", 0.05, "--to", "0.1,0.1", *options)
    assert status == 0, said.err
    found = json.loads(said.out)
    assert found["controller"] == "computed_torque"
    assert len(found["columns"]["t"]) == 5


def test_a_motion_from_a_file(ran, tmp_path):
    path = tmp_path / "move.csv"
    motion.write_csv(path, motion.quintic([0.1, 0.2], [0.3, 0.4], 0.1), rate=100)
    status, said = ran("simulate", "two_link", "--trajectory", path, "--duration", 0.1)
    assert status == 0, said.err
    assert said.out.splitlines()[1].startswith("0.0,0.1,0.2,")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--controller", "computed_torqe"), "did you mean 'computed_torque'"),
        (("--to", "1,2,3"), "--to: expected 2 numbers"),
        (("--duration", "0.00015"), "duration: expected a whole number of control periods"),
        (("--frequency", "-1"), "expected a positive number"),
        (("--trajectory", "missing.csv"), "missing.csv"),
        (("--trajectory", "missing.csv", "--to", "1,1"), "does not go with --trajectory"),
    ],
)
def test_bad_input_is_one_line(ran, arguments, message):
    status, said = ran("simulate", "two_link", *arguments)
    assert status == 2
    assert message in said.err
    assert said.err.count("\n") == 1


def test_a_simulation_that_diverges_says_so(ran):
    status, said = ran("simulate", "two_link", "--to", "1,1", "--frequency", "1e6", "--duration", "0.5")
    assert status == 0
    assert "warning: two_link: the simulation diverged at t = 0.00" in said.err
    assert "joint 'joint" in said.err
    rows = said.out.strip().splitlines()[1:]  # those before it
    assert 0 < len(rows) < 100
    assert all(np.isfinite(float(number)) for row in rows for number in row.split(","))
    assert "diverged" not in ran("simulate", "two_link", "--to", "1,1", "--duration", "0.5")[1].err
