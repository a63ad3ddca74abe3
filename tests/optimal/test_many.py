"""Many problems at once: starts, values and first guesses of any leading axes, each row beside ``solve`` alone."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import optimal
from linkwise.optimal.many import holding_torques, worse_optima

GOALS = np.array([[0.3, -0.2], [0.5, 0.4]])
STARTS = np.array([[0.1, 0.2, 0.0, 0.3], [-0.2, 0.1, 0.2, 0.0], [0.0, 0.4, -0.1, 0.1]])


def arm():
    return lw.load("two_link")


def reaching(timings=None, **options):
    costs = [optimal.Effort(1e-2), optimal.JointTracking(GOALS[0], 3.0, velocity=0.0, velocity_weight=0.1)]
    if timings is not None:
        costs.append(optimal.Duration(2.0))
        options["timings"] = timings
    given = {"horizon": 6, "step": 0.03, "torque_limits": [25.0, 7.0]} | options
    return optimal.Problem(arm(), costs=costs, terminal=[optimal.JointTracking(GOALS[0], 30.0)], **given)


def alone(problem, x0, values=None, **guesses):
    return optimal.solve(problem.with_values(values or {}, start=(x0[:2], x0[2:4])), **guesses)


def same(many, place, one):
    assert many.converged[place]
    assert one.converged
    np.testing.assert_allclose(many.cost[place], one.cost, rtol=1e-8)
    np.testing.assert_allclose(many.states[place], one.states, atol=1e-6)
    np.testing.assert_allclose(many.torques[place], one.controls, atol=1e-5)


def test_starts_and_values_have_leading_axes_of_their_own():
    problem = reaching()
    targets = GOALS[:, None, :]
    found = optimal.solve_many(problem, start=STARTS, values={"joints.target": targets})
    assert found.cost.shape == (2, 3)
    assert found.states.shape == (2, 3, 7, 4)
    for k in range(2):
        for j in range(3):
            same(found, (k, j), alone(problem, STARTS[j], {"joints.target": GOALS[k]}))
    pairs = optimal.solve_many(problem, start=(STARTS[:, :2], STARTS[:, 2:]))
    again = optimal.solve_many(problem, start=STARTS)
    np.testing.assert_array_equal(pairs.states, again.states)
    moving = np.linspace([0.1, 0.0], GOALS[1], 7)
    rows = optimal.solve_many(problem, start=STARTS[:1], values={"joints.target": moving})
    same(rows, 0, alone(problem, STARTS[0], {"joints.target": moving}))


@pytest.mark.parametrize("timed", [False, True])
def test_first_guesses_are_those_of_solve(timed):
    """Torques alone, states alone, both; with durations that are chosen, guesses may have torques alone."""
    problem = reaching(optimal.Timings(0.01, 0.06)) if timed else reaching()
    rng = np.random.default_rng(1)
    torques = rng.normal(size=(3, 6, 2))
    states = np.zeros((7, problem.ns))
    states[:, : len(STARTS[0])] = STARTS[0]
    states[:, 4:] = problem.x0[4:]
    x0 = np.concatenate([STARTS, np.tile(problem.x0[4:], (3, 1))], axis=1)
    for given in ({"torques": torques}, {"torques": torques, "states": states}, {"states": states}):
        found = optimal.solve_many(problem, start=x0, **given, iterations=3)
        for k in range(3):
            row = {name: value[k] if value.ndim == 3 else value for name, value in given.items()}
            one = alone(problem, x0[k], **row, iterations=3)
            np.testing.assert_allclose(found.states[k], one.states, atol=1e-8, err_msg=str(given.keys()))
            np.testing.assert_allclose(found.torques[k], one.controls, atol=1e-7)
            np.testing.assert_allclose(found.cost[k], one.cost, rtol=1e-9)


def test_single_precision_judges_pivots_by_its_own_rounding():
    """One row of a task for two torques that cost next to nothing: a pivot of round-off is not divided by."""
    goal = optimal.TipTracking([1.2, 0.0, 0.0], [100.0, 0.0, 0.0])
    problem = optimal.Problem(
        arm(), horizon=1, step=0.03, costs=[optimal.Effort(1e-11)], terminal=[goal], torque_limits=False
    )
    double, single = (
        optimal.solve_many(problem, start=STARTS, iterations=2, dtype=dtype)
        for dtype in ("float64", "float32")
    )
    np.testing.assert_allclose(single.cost, double.cost, rtol=1e-5)
    assert np.abs(single.torques).max() < 10.0 * np.abs(double.torques).max()


def test_worse_optima_are_those_of_equal_problems_alone():
    x0 = np.array([[0.0], [0.0], [1.0], [0.0], [0.0]])
    p = np.zeros((5, 2, 1))
    p[4] = 1.0
    cost = np.array([2.0, 1.0, 5.0, 0.5, 7.0])
    converged = np.array([True, True, True, False, True])
    assert worse_optima(x0, p, cost, converged).tolist() == [True, False, False, False, False]
    near = np.array([1.0 + 1e-7, 1.0, 5.0, 1.0, 7.0])
    assert not worse_optima(x0, p, near, np.ones(5, bool)).any()


def test_holding_torques_are_those_of_gravity_at_the_motors():
    robot = arm()
    problem = reaching()
    np.testing.assert_array_equal(holding_torques(problem, STARTS), robot.gravity_torques(STARTS[:, :2]))
    driven = optimal.Problem(robot, horizon=3, motors=["joint2"], costs=[optimal.Effort(1.0)])
    np.testing.assert_array_equal(
        holding_torques(driven, STARTS), robot.gravity_torques(STARTS[:, :2])[:, 1:]
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"torques": np.zeros((6, 3))}, r"torques: expected \(\.\.\., 6, 2\), got \(6, 3\)"),
        ({"states": np.zeros((6, 4))}, r"states: expected \(\.\.\., 7, 4\), got \(6, 4\)"),
        ({"start": np.zeros((2, 3))}, r"start: expected \(\.\.\., 4\), got \(2, 3\)"),
        ({"start": (np.zeros(2), np.zeros(3))}, r"start: qd: expected \(\.\.\., 2\), got \(3,\)"),
        ({"values": {"joints.target": np.zeros(3)}}, r"joints.target: expected \(\.\.\., 2\) or"),
        ({"torques": np.full((6, 2), np.nan)}, "torques: expected finite numbers, got 12 others"),
        (
            {"start": np.tile(STARTS[0], (7, 1)), "values": {"joints.target": np.zeros((7, 2))}},
            "may be a row for each of 7 problems or for each of 7 stages",
        ),
    ],
)
def test_what_does_not_fit_is_refused(options, message):
    with pytest.raises((optimal.ProblemError, lw.ShapeError), match=message):
        optimal.solve_many(reaching(), **options)
