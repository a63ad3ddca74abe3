"""Whole-body control, and iterations of optimal motion with contact, on a GPU beside the CPU: bits, and rates.

    python benchmarks/gpu_control.py [--states 65536] [--problems 8192] [--plans 8192] [--calls 8]

Needs CuPy and an NVIDIA GPU. The robots are made here: a quadruped on four feet, in random states around standing, a
trot whose starts are random, and plans of walking robots with random times of their gait, velocities and starts. One
robot that walks needs 50 plans a second.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from gpu_contact import compared
from optimal_parts.problems import trot
from whole_body import LEGS, Problem
from whole_body_parts.four_legs import four_legs

import linkwise as lw
from linkwise import optimal
from linkwise.optimal.solver import first_guess


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--states", type=int, default=1 << 16)
    parser.add_argument("--problems", type=int, default=1 << 13)
    parser.add_argument("--plans", type=int, default=1 << 13)
    parser.add_argument("--calls", type=int, default=8)
    given = parser.parse_args()
    robot = four_legs()
    stand = np.concatenate([[0.0, 0.0, 0.34, 0.0, 0.0, 0.0, 1.0], np.tile([0.0, 0.6, -1.2], 4)])
    whole = Problem(robot, LEGS, stand, given.states, 40.0, 20.0)
    for dtype in ("float64", "float32"):
        arrays = [array.reshape(given.states, -1).astype(dtype) for array in whole.arguments()]
        compared("whole-body control, quadruped", whole.law.kernel(dtype), arrays, given.calls)
    problem = trot()
    rng = np.random.default_rng(0)
    xs, us = first_guess(problem)
    starts = np.tile(problem.x0, (given.problems, 1))
    starts[:, 7:] += 0.02 * rng.normal(size=(given.problems, problem.ns - 7))
    tables = [problem.p, xs, us]
    tiled = [np.tile(table.ravel(), (given.problems, 1)) for table in tables]
    for dtype in ("float64", "float32"):
        arrays = [array.astype(dtype) for array in (starts, *tiled, np.zeros((given.problems, 1)))]
        compared(
            f"iteration, trot of {problem.horizon} stages",
            optimal.iteration(problem, steps=(1.0, 0.5, 0.25, 0.125)),  # step sizes are lanes of a warp
            arrays,
            given.calls,
        )
    if given.plans:
        kernel, arrays = walking_plans(robot, stand, given.plans)
        for dtype in ("float64", "float32"):
            compared(
                "plan of walking, 30 stages", kernel, [array.astype(dtype) for array in arrays], given.calls
            )


def walking_plans(robot: lw.Robot, stand: np.ndarray, count: int) -> tuple[Any, list[np.ndarray]]:
    """The kernel of plans, and what it is given for robots that walk in different ways."""
    walk = optimal.Walking(robot, feet=LEGS["feet"], stand=stand, torque_limits=40.0)
    still, rng = np.zeros(robot.dof), np.random.default_rng(0)
    walk.plan(0.0, walk.feet.stand, still)
    one = walk.given(walk.orders, np.concatenate([walk.feet.stand, still]), walk.newest, 0.0)
    arrays = [np.tile(array, (count, 1)) for array in one]
    arrays[0][:, 0] += rng.uniform(0.0, walk.gait.period, count)
    arrays[0][:, 9:12] = rng.uniform((-0.2, -0.2, -0.5), (0.5, 0.2, 0.5), (count, 3))
    arrays[1][:, 7:] += 0.02 * rng.normal(size=(count, arrays[1].shape[1] - 7))
    return walk.kernel, arrays


if __name__ == "__main__":
    main()
