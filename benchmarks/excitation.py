"""How long an exciting motion takes to find, and how much better than chance it is.

For each robot and family: the condition number of the base regressor (links, rotor inertias, viscous and Coulomb
friction, offsets; rows scaled by joint, columns to unit length) over random motions that fill the same limits (the
median of twenty), and along the motion that was found; the same for log det(WᵀW) per parameter; the largest share of
every kind of limit that the motion uses; and seconds, compiling included.

``--rooms`` compares motions without a room with those that keep 2 cm to the floor and between links: condition numbers,
what comes nearest to what, and the distance that is proved at all times.

    python benchmarks/excitation.py [--robots panda] [--starts 10] [--iterations 600] [--rooms] [--json]
"""

from __future__ import annotations

import argparse
import json

import numpy as np

import linkwise as lw
from linkwise.collision import Clearance, Room
from linkwise.identify import MotionLimits, excite


def measured(
    name: str, family: str, criterion: str, starts: int, iterations: int, share: float = 0.8
) -> dict:
    """One search, in numbers."""
    robot = lw.load(name)
    found = excite(
        robot, family=family, criterion=criterion, starts=starts, iterations=iterations, share=share
    )
    limits, s = MotionLimits.of(robot, share=share), found.samples
    used = {
        "position": np.abs(s.q - limits.middle) / limits.half,
        "velocity": np.abs(s.qd) / limits.velocity,
        "acceleration": np.abs(s.qdd) / limits.acceleration,
        "torque": found.torque / limits.torque,
    }
    return {
        "robot": name,
        "joints": robot.dof,
        "parameters": len(found.labels),
        "family": family,
        "criterion": criterion,
        "condition_random": found.condition_random,
        "condition": found.condition,
        "log_det_random": found.log_det_random,
        "log_det": found.log_det,
        "used": {key: float(value.max()) for key, value in used.items()},
        "seconds": found.seconds,
        "evaluations": found.evaluations,
    }


def rooms(name: str, starts: int, iterations: int) -> dict:
    """The same search without and with a floor and links that must not touch."""
    robot = lw.load(name)
    free = excite(robot, starts=starts, iterations=iterations, room=Room(floor=None, links=False))
    found = excite(robot, starts=starts, iterations=iterations)
    beside = found.clearance or Clearance(robot)
    return {
        "robot": robot.name,
        "condition_free": free.condition,
        "least_free": float(beside.least(free.samples.q).min()),
        "condition": found.condition,
        "condition_random": found.condition_random,
        "proved": found.proved,
        "nearest": str(found.nearest),
        "seconds": found.seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robots", nargs="+", default=["panda"])
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--iterations", type=int, default=600)
    parser.add_argument("--rooms", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.rooms:
        for name in options.robots:
            r = rooms(name, options.starts, options.iterations)
            if options.json:
                print(json.dumps(r))
                continue
            print(
                f"{r['robot']}: condition {r['condition_free']:.1f} without a room (least distance "
                f"{100 * r['least_free']:.1f} cm), {r['condition']:.1f} with it (random {r['condition_random']:.0f}), "
                f"proved {100 * r['proved']:.1f} cm; {r['nearest']}; {r['seconds']:.1f} s"
            )
        return
    rows = [
        measured(name, family, criterion, options.starts, options.iterations)
        for name in options.robots
        for family in ("fourier", "spline")
        for criterion in ("condition", "log_det")
    ]
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{options.starts} starts of up to {options.iterations} steps each")
    print(
        f"{'robot':<12}{'joints':>7}{'base':>6}  {'family':<9}{'criterion':<11}{'condition: random':>18}{'found':>8}"
        f"{'log det: random':>17}{'found':>8}  {'limits used: q q̇ q̈ τ':<24}{'seconds':>8}{'evaluations':>13}"
    )
    for r in rows:
        used = " ".join(f"{100 * value:3.0f}" for value in r["used"].values())
        print(
            f"{r['robot']:<12}{r['joints']:>7}{r['parameters']:>6}  {r['family']:<9}{r['criterion']:<11}"
            f"{r['condition_random']:>18.1f}{r['condition']:>8.2f}{r['log_det_random']:>17.2f}{r['log_det']:>8.2f}  "
            f"{used + ' %':<22}{r['seconds']:>8.1f}{r['evaluations']:>13}"
        )


if __name__ == "__main__":
    main()
