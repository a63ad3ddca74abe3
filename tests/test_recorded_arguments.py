"""Checks of numbers in all parts, at and around their bounds: what each gives or says, beside what is recorded.

A changed bound or comparison of a check is seen at the bound alone, which single tests of functions do not reach.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import linkwise as lw
from linkwise.arguments.numbers import Numbers
from linkwise.compiler.runtime import threads
from linkwise.control.controller import limits_of_torque
from linkwise.control.momentum_observer import positive
from linkwise.model import contacts, quantity, shapes
from linkwise.motion import arguments as of_motion
from linkwise.optimal import arguments as of_problem
from linkwise.realtime import limits as of_realtime
from linkwise.simulate import arguments as of_simulation
from recorded import Scenarios, told
from recorded_robots import limited, two_link

scenarios = Scenarios("arguments")
NUMBERS: dict[str, Any] = {
    "below zero": -1.0,
    "zero": 0.0,
    "whole zero": 0,
    "half": 0.5,
    "one": 1,
    "true": True,
    "two": 2.0,
    "six": 6,
    "large": 1e30,
    "larger": 1.1e30,
    "NaN": math.nan,
    "infinite": math.inf,
    "least": -math.inf,
    "text": "much",
    "none": None,
    "list": [1.0, 2.0],
    "zeros": [0.0, 0.0],
    "negative list": [1.0, -2.0],
    "NaN in a list": [1.0, math.nan],
    "infinite in a list": [math.inf, 1.0],
    "three": [1.0, 2.0, 3.0],
    "empty": [],
    "row": [[1.0, 2.0]],
    "square": [[1.0, 2.0], [3.0, 4.0]],
}


def given_back(check: Callable[..., Any]) -> dict[str, Any]:
    """What a check gives for each value, or what it says."""
    found: dict[str, Any] = {}
    for name, value in NUMBERS.items():
        said = told(check, value)
        if said != "no error":
            found[name] = said
            continue
        result = check(value)
        parts = result if isinstance(result, tuple) else (result,)
        found[name] = [
            part if isinstance(part, str) or part is None else np.asarray(part, float) for part in parts
        ]
    return found


def of(checks: Mapping[str, Callable[..., Any]]) -> dict[str, Any]:
    return {name: given_back(check) for name, check in checks.items()}


@scenarios
def shared_checks():
    check = Numbers()
    return of(
        {
            "array": lambda x: check.array("x", x),
            "array from 0": lambda x: check.array("x", x, least=0.0),
            "array above 0": lambda x: check.array("x", x, above=0.0),
            "number": lambda x: check.number("x", x),
            "number from 2": lambda x: check.number("x", x, least=2.0),
            "number above 0.5": lambda x: check.number("x", x, above=0.5),
            "each": lambda x: check.each("x", x, 2),
            "each from 0": lambda x: check.each("x", x, 2, least=0.0),
            "whole": lambda x: check.whole("x", x),
            "whole from 1 to 6": lambda x: check.whole("x", x, 1, 6),
        }
    )


@scenarios
def checks_of_motions():
    return of(
        {
            "finite": lambda x: of_motion.finite("x", x),
            "number": lambda x: of_motion.number("x", x),
            "positive": lambda x: of_motion.number("x", x, positive=True, unit="m"),
            "duration": of_motion.duration,
            "positions": lambda x: of_motion.positions("x", x, 2),
            "per joint": lambda x: of_motion.per_joint("x", x, 2),
            "limits": lambda x: of_motion.limits("x", x, 2),
            "pair": lambda x: of_motion.pair("x", x, 1),
            "matrices": lambda x: of_motion.matrices("x", x, 2),
            "shaped": lambda x: of_motion.shaped("x", x, 1, 2),
        }
    )


@scenarios
def checks_of_simulations():
    ring = limited(two_link())
    return of(
        {
            "multiple": lambda x: float(of_simulation.multiple("x", x, 0.5, "steps", 1)),
            "multiple from 0": lambda x: float(of_simulation.multiple("x", x, 0.25, "steps", 0)),
            "state": lambda x: of_simulation.state("x", x, 2),
            "stabilization": lambda x: of_simulation.stabilization(ring, x),
            "accuracy": of_simulation.accuracy,
        }
    )


@scenarios
def checks_of_problems():
    return of(
        {
            "numbers": lambda x: of_problem.numbers("x", x, (2,)),
            "table": lambda x: of_problem.table("x", x, 2, 2),
            "table of limits": lambda x: of_problem.table("x", x, 2, 2, finite=False),
            "weights": lambda x: of_problem.weights("x", x, 2),
            "weights of stages": lambda x: of_problem.weights("x", x, 2, 2),
            "lower": lambda x: of_problem.bounds("x", x, 7.0, 2),
            "upper": lambda x: of_problem.bounds("x", -7.0, x, 2),
        }
    )


@scenarios
def checks_of_laws_and_loops():
    arm = limited(two_link())
    floating = arm.with_base("floating")
    return of(
        {
            "torque limits": lambda x: limits_of_torque(arm, x),
            "torque limits of a floating base": lambda x: limits_of_torque(floating, x),
            "positive": lambda x: positive("x", x, 2),
            "positive or infinite": lambda x: positive("x", x, 2, infinite=True),
            "gains": lambda x: list(lw.control.Gains(x, 1.0, 0.5).vectors(2).values()),
            "frequency": lambda x: list(lw.control.Gains.from_frequency(x).vectors(2).values()),
            "positive time": lambda x: of_realtime.positive_time("x", x),
            "stop duration": of_realtime.stop_duration,
            "joint limits": lambda x: list(
                of_realtime.joint_limits(arm, {"speed": x}, simulated=True).values()
            ),
            "joint limits of hardware": lambda x: list(
                of_realtime.joint_limits(arm, {"effort": x}, simulated=False).values()
            ),
            "threads": lambda x: None if x is None else float(threads.wanted(x)),
        }
    )


@scenarios
def checks_of_models():
    return of(
        {
            "finite": lambda x: quantity.finite("x", x),
            "limit": lambda x: quantity.limit(float(x)),
            "coefficient": lambda x: shapes.coefficient("x", x),
            "restitution": lambda x: lw.Contact("tool", restitution=x).restitution,
            "stop": lambda x: contacts.Stop("joint1", restitution=x).restitution,
            "nearest": lambda x: lw.Contact("tool", nearest=x).nearest,
            "damping": lambda x: lw.Contact("tool", stiffness=1e3, damping=x).damping,
            "stiffness": lambda x: lw.Contact("tool", stiffness=x).stiffness,
            "radius": lambda x: lw.Contact("tool", radius=x).radius,
            "friction": lambda x: lw.Contact("tool", friction=x).friction,
        }
    )


test_results_are_those_recorded = scenarios.test()
test_every_record_has_its_scenario = scenarios.test_of_records()
