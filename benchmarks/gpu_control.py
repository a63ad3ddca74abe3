"""Whole-body control, and iterations of optimal motion with contact, on a GPU beside the CPU: bits, and rates.

    python benchmarks/gpu_control.py [--states 65536] [--problems 8192] [--calls 8]

Needs CuPy and an NVIDIA GPU. The robots are made here: a quadruped on four feet, in random states around standing, and
a trot whose starts are random.
"""

from __future__ import annotations

import argparse

import numpy as np
from gpu_contact import compared
from optimal_parts.problems import trot
from whole_body import ROBOTS, Problem, small_quadruped

from linkwise.optimal.descent import kernel_of
from linkwise.optimal.solver import first_guess


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--states", type=int, default=1 << 16)
    parser.add_argument("--problems", type=int, default=1 << 13)
    parser.add_argument("--calls", type=int, default=8)
    given = parser.parse_args()
    robot = small_quadruped()
    stand = np.concatenate([[0.0, 0.0, 0.34, 0.0, 0.0, 0.0, 1.0], np.tile([0.0, 0.6, -1.2], 4)])
    whole = Problem(robot, ROBOTS["go2"], stand, given.states, 40.0, 20.0)
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
            kernel_of(problem, 1, (1.0, 0.5, 0.25, 0.125)),
            arrays,
            given.calls,
        )


if __name__ == "__main__":
    main()
