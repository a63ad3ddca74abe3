"""What float32 costs: the filter is as good as rounded inputs allow, and the command line says what to expect."""

import json

import numpy as np
import pytest

import linkwise as lw
from linkwise.bench import float32
from linkwise.bench.subject import random_states
from linkwise.cli import main


@pytest.fixture(scope="module")
def errors():
    """Of forward dynamics of a long chain, by algorithm."""
    robot = lw.planar_chain(12)
    rows = float32.rounding_errors(robot, random_states(robot, 100), ("forward_dynamics",))
    return {row.algorithm: row for row in rows if not row.refusal}


def test_the_filter_adds_no_more_than_twice_what_the_inputs_cost(errors):
    assert errors["kalman"].arithmetic < 2.0 * errors["kalman"].inputs


def test_the_factorised_mass_matrix_is_worse_on_chains(errors):
    assert errors["compound_link"].arithmetic > 1.3 * errors["kalman"].arithmetic


def test_errors_are_measured_against_float64():
    robot = lw.load("two_link")
    states = random_states(robot, 50)
    row = next(iter(float32.rounding_errors(robot, states, ("gravity_torques",))))
    q = states["q"]
    short = q.astype(np.float32)
    exact, rounded = (robot.gravity_torques(x, algorithm=row.algorithm) for x in (q, short.astype(float)))
    size = np.abs(exact).max(axis=1)
    assert row.inputs == np.median(np.abs(rounded - exact).max(axis=1) / size)
    found = robot.gravity_torques(short, algorithm=row.algorithm)
    assert found.dtype == np.float32
    assert row.arithmetic == np.median(np.abs(found - rounded).max(axis=1) / size)


def test_the_command_says_what_to_expect(capsys):
    assert main(["check", "two_link", "--float32", "--states", "20", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["bound"] == float32.BOUND
    assert {row["function"] for row in told["errors"]} == set(float32.LOOKED_AT)
    assert not any(row["doubtful"] for row in told["errors"])


def test_errors_above_the_bound_are_doubtful(monkeypatch, capsys):
    monkeypatch.setattr(float32, "BOUND", 1e-9)
    assert main(["check", "two_link", "--float32", "--states", "5"]) == 1
    assert "use float64 here" in capsys.readouterr().out
