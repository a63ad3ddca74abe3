"""What results print, beside the texts that are recorded: which number stands in which row and column."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np

import linkwise as lw
from linkwise import control, motion, optimal, simulate
from recorded import Scenarios
from recorded_robots import limited, two_link

scenarios = Scenarios("summaries")
ROUNDING = re.compile(r"\b\d(?:\.\d+)?e-1\d\b")
FIRST, LAST = [0.13, -0.41], [1.07, 0.52]


@cache
def arm() -> lw.Robot:
    friction = {"joint1.viscous_friction": 0.4, "joint2.coulomb_friction": 0.3}
    return limited(two_link()).with_parameters(friction)


def lines(*results: Any) -> dict[str, str]:
    """The lines that each result prints, without the digits of rounding errors."""
    return {
        f"{place} {k:02}": ROUNDING.sub("tiny", line)
        for place, result in enumerate(results)
        for k, line in enumerate(repr(result).splitlines())
    }


@scenarios
def motions():
    bent = motion.quintic(FIRST, LAST, 1.3, velocity=([0.2, -0.1], [0.3, 0.1]))
    return lines(
        bent,
        bent.sampled(points=7),
        motion.ramp(FIRST, LAST, 2.1),
        motion.trapezoidal(FIRST, LAST, velocity=0.9, acceleration=2.0),
        motion.jerk_limited(FIRST, LAST, velocity=0.9, acceleration=2.0, jerk=9.0),
        motion.FourierSeries([0.1, 0.3], [[0.1, 0.2], [0.3, -0.1]], [[0.05, 0.1], [0.2, 0.4]], 2.0),
        motion.Online([1.0, 2.0], 3.0, 30.0).move(FIRST, [0.1, 0.2], target=LAST),
    )


@scenarios
def shortest_times():
    options: dict[str, Any] = {"torque": [90.0, 40.0], "velocity": 2.0}
    ways = np.array([FIRST, [0.6, 0.3], LAST])
    one = motion.time_optimal(arm(), ways, **options)
    many = motion.time_optimal(arm(), [ways, motion.quintic(FIRST, LAST, 1.0)], **options)
    return lines(one, many)


@scenarios
def simulations():
    law = control.Tracking(arm(), control.Gains.from_frequency(9.0))
    move = motion.quintic(FIRST, LAST, 0.4)
    starts = np.array([FIRST, [0.2, -0.3]])
    return lines(
        simulate.simulate(arm(), law, move, duration=0.4, q=[0.2, -0.3]),
        simulate.simulate(arm(), law, move, duration=0.2, q=starts),
        simulate.simulate(arm(), control.Passive(arm()), duration=0.2, q=FIRST),
    )


@scenarios
def optimal_motions():
    goal = optimal.JointTracking(LAST, 30.0, velocity=0.0, velocity_weight=1.0)
    problem = optimal.Problem(
        arm(), horizon=8, step=0.05, start=(FIRST, [0.0, 0.0]), costs=[optimal.Effort(1e-2)], terminal=[goal]
    )
    return lines(problem, optimal.solve(problem), optimal.solve(problem, iterations=1))


@scenarios
def robots_and_laws():
    six = lw.load("ur10e")
    tasks = [control.PoseTask(six.default_frame()), control.PostureTask(weight=0.01)]
    target = six.pose([0.3, -0.9, 1.1, 0.2, 0.7, -0.4])
    return lines(
        arm(),
        six,
        arm().base_parameters(),
        control.WholeBody(six, tasks, control.MotionLimits()),
        six.inverse_kinematics(target, start=[0.2, -0.8, 1.0, 0.1, 0.6, -0.3]),
        control.Gains.from_frequency(7.0, 0.8, integral=True),
    )


test_results_are_those_recorded = scenarios.test()
test_every_record_has_its_scenario = scenarios.test_of_records()
