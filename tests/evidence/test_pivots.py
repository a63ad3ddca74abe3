"""Divisors of forward dynamics are pivots of the mass matrix, and their bounds hold."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linkwise as lw
from linkwise import evidence
from linkwise.evidence import forms as forms_
from linkwise.evidence import pivots, search, shared_energy
from strategies import robots


def position_box(robot, program, width, rng):
    """A random box of positions inside the joint limits; the whole one if the width is None."""
    whole = evidence.box_of(robot, program.inputs)
    if width is None:
        return whole
    low, high = whole.bounds["q"]
    middle = low + width / 2 + np.maximum(high - low - width, 0.0) * rng.random(robot.dof)
    return evidence.box_of(robot, program.inputs, given={"q": (middle - width / 2, middle + width / 2)})


@settings(max_examples=6, deadline=None)
@given(
    robot=robots(min_dof=2, max_dof=4), width=st.sampled_from([0.01, 0.2, 1.0, None]), seed=st.integers(0, 99)
)
def test_pivots_of_random_robots_stay_in_their_bounds(robot, width, seed):
    rng = np.random.default_rng(seed)
    masses = robot.kernel("mass_matrix").program("float64")
    box = position_box(robot, masses, width, rng)
    bounds = np.array(pivots.pivot_bounds(robot, masses, box))
    q = box.draw(rng, 3000)["q"]
    found = pivots.pivots(np.asarray(robot.mass_matrix(q)))
    assert (found >= bounds[:, 0]).all()
    assert (found <= bounds[:, 1]).all()
    if width == 0.01:
        assert (bounds[:, 1] <= 1.3 * bounds[:, 0]).all()


def test_pivots_are_those_of_an_elimination():
    rng = np.random.default_rng(0)
    factor = np.tril(rng.normal(size=(5, 5)), -1) + np.eye(5)
    diagonal = rng.uniform(0.1, 2.0, 5)
    matrix = factor.T @ np.diag(diagonal) @ factor
    np.testing.assert_allclose(pivots.pivots(matrix[None])[0], diagonal, rtol=1e-12)


@pytest.mark.parametrize("name", ["puma560", "ur10e"])
def test_forward_dynamics_is_finite_in_the_whole_box(name):
    robot = lw.load(name)
    program = robot.kernel("forward_dynamics").program("float64")
    box = evidence.box_of(robot, program.inputs)
    if name == "ur10e":
        assert forms_.analyse(program, box).problems  # operations alone do not show it
    known = pivots.divisors(robot, program, box)
    assert len(known) == sum(node.op == "div" for node in program.nodes())
    analysed = forms_.analyse(program, box, known=known)
    assert not analysed.problems
    states = box.draw(np.random.default_rng(1), 3000)
    values = search.exact(program, states, None, [*known, *program.values[0]])[0]
    for node, found in zip([*known, *program.values[0]], values.T, strict=True):
        low, high = analysed.interval(node)
        assert low <= found.min(), node
        assert found.max() <= high, node


def test_divisors_that_are_no_pivots_get_no_bounds():
    """A robot with other masses: the pivots are not those of the program."""
    robot = lw.load("two_link")
    program = robot.kernel("forward_dynamics").program("float64")
    box = evidence.box_of(robot, program.inputs)
    other = robot.with_payload(0.7, [0.1, 0.0, 0.0])
    assert pivots.divisors(robot, program, box)
    assert not pivots.divisors(other, program, box)


def test_links_of_negative_energy_give_no_bound(monkeypatch):
    robot = lw.load("two_link")
    assert (shared_energy.own_inertias(robot) > 0).all()
    joints = shared_energy._carried(robot)
    wrong = [
        replace(j, inertia=j.inertia - 0.5 * np.diag([0, 0, 0, 0, 0, j.inertia[5, 5] * 4])) for j in joints
    ]
    monkeypatch.setattr(shared_energy, "_carried", lambda robot: wrong)
    monkeypatch.setattr(shared_energy, "_is_mass_matrix", lambda *_: True)
    assert not shared_energy.own_inertias(robot).any()
