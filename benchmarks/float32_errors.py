"""Float32 errors of every algorithm for forward dynamics on hard robots, beside what rounding the inputs does.

Medians over random states, the largest entry of the error in parts of the largest acceleration, in units of float32's
eps (1.2e-7). ``--ratios`` shows the filter and the factorised mass matrix on chains whose masses differ by up to 1e10.

    python benchmarks/float32_errors.py [--states 300] [--robots panda,planar_30] [--ratios] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

import linkwise as lw
from linkwise.bench.float32 import EPS, rounding_errors
from linkwise.bench.subject import random_states, without_drives

ROBOTS: dict[str, Callable[[], lw.Robot]] = {
    "panda": lambda: lw.load("panda"),
    "ur10e": lambda: lw.load("ur10e"),
    "iiwa14": lambda: lw.load("iiwa14"),
    "stanford": lambda: lw.load("stanford"),
    "planar_10": lambda: lw.planar_chain(10),
    "planar_30": lambda: lw.planar_chain(30),
    "planar_100": lambda: lw.planar_chain(100),
    "masses_1e-8": lambda: with_masses([1e-8] * 5 + [1.0]),
}
RATIOS = (1.0, 1e-4, 1e-8, 1e-10)
SHAPES: dict[str, Callable[[float], list[float]]] = {
    "light tip": lambda ratio: [1.0] * 5 + [ratio],
    "alternating": lambda ratio: [1.0, ratio] * 3,
    "heavy tip": lambda ratio: [ratio] * 5 + [1.0],
    "falling": lambda ratio: [ratio ** (1 - k / 5) for k in range(6)],
}


def with_masses(factors: list[float]) -> lw.Robot:
    """A general chain of six links without rotors, the links scaled."""
    robot = without_drives(lw.general_chain(6, seed=3))
    given = dict(zip(robot.parameter_labels, robot.parameters.tolist(), strict=True))
    for joint, factor in zip(robot.moving_joints, factors, strict=True):
        for label in lw.model.LABELS:
            given[f"{joint.body_link}.{label}"] *= factor
    return robot.with_parameters(given)


def measured(name: str, robot: lw.Robot, states: int) -> list[dict]:
    given = random_states(robot, states)
    return [
        {
            "robot": name,
            "algorithm": row.algorithm,
            "inputs_eps": row.inputs / EPS,
            "arithmetic_eps": row.arithmetic / EPS,
            "large": row.large,
            "refusal": row.refusal,
        }
        for row in rounding_errors(robot, given, ("forward_dynamics",))
    ]


def show(rows: list[dict]) -> None:
    print(f"{'robot':<24}{'algorithm':<36}{'inputs [eps]':>14}{'arithmetic [eps]':>18}{'99 % below':>12}")
    for row in rows:
        if row["refusal"]:
            print(f"{row['robot']:<24}{row['algorithm']:<36}  {row['refusal'].splitlines()[0][:60]}")
        else:
            print(
                f"{row['robot']:<24}{row['algorithm']:<36}{row['inputs_eps']:14.1f}{row['arithmetic_eps']:18.1f}"
                f"{row['large']:12.1e}"
            )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--states", type=int, default=300)
    parser.add_argument("--robots", default=",".join(ROBOTS))
    parser.add_argument("--ratios", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    unknown = [name for name in given.robots.split(",") if name not in ROBOTS]
    if unknown:
        print(f"no robot {unknown[0]!r}; there are {', '.join(ROBOTS)}", file=sys.stderr)
        return 2
    rows = []
    for name in given.robots.split(","):
        rows += measured(name, ROBOTS[name](), given.states)
    if given.ratios:
        for ratio in RATIOS:
            for shape, factors in SHAPES.items():
                found = measured(f"{shape}, {ratio:.0e}", with_masses(factors(ratio)), given.states)
                rows += [row for row in found if row["algorithm"] in ("kalman", "compound_link")]
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    show(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
