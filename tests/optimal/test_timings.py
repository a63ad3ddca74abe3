"""Durations of phases that are chosen with the torques."""

import numpy as np
import pytest
from test_contacts import quadruped

import linkwise as lw
from linkwise import optimal
from linkwise.optimal import gaits

GRID = 0.02  # relative error of the duration by 60 steps of the semi-implicit method


def slider():
    """A mass of 1 kg on a line."""
    links = [lw.Link("base"), lw.Link("mass", lw.Inertia.from_com(1.0, (0, 0, 0), (0.01, 0.01, 0.01)))]
    return lw.Robot("slider", links, [lw.Joint("slide", "prismatic", "base", "mass", axis=(1, 0, 0))])


def moved(price, **options):
    target = [0.5]
    return optimal.Problem(
        slider(),
        horizon=60,
        step=0.02,
        costs=[optimal.Effort(1.0), optimal.Duration(price)],
        terminal=[optimal.JointTracking(target, 1e6, velocity=0.0, velocity_weight=1e6)],
        torque_limits=False,
        **options,
    )


def test_the_duration_of_a_move_is_that_of_the_closed_form():
    """∫ ½u² dt of a move over d in T is 6 d²/T³, so w T + 6 d²/T³ is least at T⁴ = 18 d²/w."""
    for price in (0.5, 5.0, 40.0):
        found = optimal.solve(moved(price, timings=optimal.Timings(0.001, 0.2)))
        assert found.converged, found.message
        assert np.ptp(found.durations) < 1e-9  # one phase: all steps take the same time
        expected = (18.0 * 0.5**2 / price) ** 0.25
        assert abs(found.t[-1] / expected - 1.0) < GRID
        assert found.controls.shape == (60, 2)
        assert found.states.shape == (61, 3)


def test_limits_of_durations_are_kept_exactly_and_are_parameters():
    problem = moved(5.0, timings=optimal.Timings([0.001, 0.05], [0.2, 0.2], phases=[0, 30]))
    found = optimal.solve(problem)
    assert found.converged, found.message
    assert (found.durations[30:] == 0.05).all()
    assert (found.durations[:30] < 0.05).all()
    both = optimal.solve_many(problem, values={"duration.upper": [[0.01], [0.2]], "duration.lower": [0.005]})
    assert both.converged.all()
    assert (both.states[0, 1:, -1] <= 0.01).all()
    alone = optimal.solve(problem.with_values({"duration.upper": [0.2], "duration.lower": [0.005]}))
    assert abs(both.cost[1] / alone.cost - 1.0) < 1e-9
    again = optimal.solve(problem, states=found.states, torques=found.controls)
    assert again.iterations <= 3


def jumper():
    """(a floating body on two legs of two joints each, positions in which it stands)."""
    links = [lw.Link("body", lw.Inertia.from_com(4.0, (0, 0, 0), (0.05, 0.05, 0.05)))]
    joints = []
    for leg, y in (("left", 0.1), ("right", -0.1)):
        parent, at = "body", (0.0, y, 0.0)
        for part in ("thigh", "shank"):
            links.append(lw.Link(f"{leg} {part}", lw.Inertia.from_com(0.4, (0, 0, -0.1), (2e-3, 2e-3, 5e-4))))
            place = lw.Transform.from_rpy(at)
            joints.append(lw.Joint(f"{leg} {part}s", "revolute", parent, f"{leg} {part}", place, (0, 1, 0)))
            parent, at = f"{leg} {part}", (0.0, 0.0, -0.2)
        links.append(lw.Link(f"{leg} foot"))
        joints.append(lw.Joint(f"{leg} sole", "fixed", parent, f"{leg} foot", lw.Transform.from_rpy(at)))
    robot = lw.Robot("jumper", links, joints).with_base("floating")
    stand = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.6, -1.2, 0.6, -1.2])
    stand[2] = -np.asarray(robot.pose(stand, frame="left foot"))[2, 3]
    return robot, stand


def test_timings_of_a_jump_cost_nothing_more_and_no_other_timing_is_better():
    """With limits that leave no choice the optimum is that of given durations; where there is one, the cost as a
    function of the duration of a phase is least at the one that is chosen."""
    robot, stand = jumper()
    high = stand.copy()
    high[2] += 0.1
    targets = np.tile(stand, (19, 1))
    targets[9:10] = high
    weight = np.zeros((19, robot.dof))
    weight[:, :6], weight[9, 5] = 1.0, 2e3
    contacts = optimal.ContactSchedule(
        ["left foot", "right foot"], np.repeat([[1, 1], [0, 0], [1, 1]], 6, axis=0)
    )

    def problem(timings=None):
        costs = [
            optimal.Effort(1e-3),
            optimal.JointTracking(targets, weight, velocity=0.0, velocity_weight=0.01),
        ]
        end = optimal.JointTracking(stand, 10.0, velocity=0.0, velocity_weight=1.0, name="end")
        return optimal.Problem(
            robot,
            horizon=18,
            step=0.02,
            start=(stand, np.zeros(robot.dof)),
            costs=costs,
            terminal=[end],
            limits=[optimal.FrictionCone(0.7)],
            contacts=contacts,
            timings=timings,
        )

    free = problem(optimal.Timings(0.01, 0.04, phases=[0, 6, 12]))

    def cost(durations):
        held = {"duration.lower": durations, "duration.upper": durations}
        found = optimal.solve(free.with_values(held), tolerance=1e-11)
        assert found.converged, found.message
        return found.cost

    given = optimal.solve(problem(), tolerance=1e-11)
    same = cost(np.full((19, 1), free.step))
    assert abs(same - given.cost) < 1e-6 * given.cost
    best = optimal.solve(free, tolerance=1e-11)
    assert best.converged, best.message
    assert best.cost < 0.99 * same
    durations = np.append(best.durations, best.durations[-1])[:, None]
    inside = [k for k in (0, 6, 12) if 0.0101 < durations[k, 0] < 0.0399]
    assert inside  # some phase is not at its limit
    for first in inside:
        part = np.zeros((19, 1))
        part[first : first + (6 if first < 12 else 7)] = 1.0
        more, less = (cost(durations * (1.0 + by * part)) for by in (0.01, -0.01))
        assert min(more, less) > best.cost
        assert abs(more - less) < 0.2 * (more + less - 2.0 * best.cost)


def test_gaits_take_timings():
    robot, feet, stand = quadruped("solo12")
    problem = gaits.trot(
        robot, feet=feet, start=stand, swing=0.12, stance=0.04, timings=(0.5, 2.0), price=0.2
    )
    assert problem.timings.phases == (0, 2, 8, 10, 16)
    assert problem.p[0, problem.where("duration.upper")] == 2.0 * problem.step
    with pytest.raises(lw.LinkwiseError, match="price"):
        gaits.trot(robot, feet=feet, start=stand, price=0.2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timings": (0.1, 0.2)}, "timings: expected optimal.Timings"),
        ({"timings": lambda: optimal.Timings(0.2, 0.1)}, "shortest not above longest"),
        ({"timings": lambda: optimal.Timings(0.1, 0.2, phases=[1])}, "grow from 0 on"),
        ({"timings": lambda: optimal.Timings(0.1, 0.2, phases=[0, 99])}, "not a stage"),
        ({}, "durations are given"),
    ],
)
def test_what_cannot_be_right_is_refused(options, message):
    with pytest.raises(lw.LinkwiseError, match=message):
        moved(1.0, **{key: value() if callable(value) else value for key, value in options.items()})


def test_predictive_control_and_sampling_refuse_durations():
    problem = moved(1.0, timings=optimal.Timings(0.1, 0.2))
    for controller in (optimal.Predictive, optimal.Mppi):
        with pytest.raises(lw.LinkwiseError, match="one duration"):
            controller(problem)
