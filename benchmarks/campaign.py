"""Do the confidence intervals tell the truth? A simulated campaign, counted.

An exciting motion is found, a robot with rotor inertias and friction follows it under control in simulation, noise
is added to the recorded positions and torques, and the base parameters are identified with the filters and the
estimator that any recording meets. That is repeated, and for every parameter it is counted how often its 95 %
interval held the truth.

With 200 runs a share of 95 % is itself uncertain by 1.5 % (binomial), so of sixty parameters one or two may fall
out of 92–98 % by chance; more runs show which. At the end some recordings pass the public ``identify``.

    python benchmarks/campaign.py [--robots puma260] [--runs 200] [--torque 0.05] [--position 1e-5] [--json]
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

import linkwise as lw
from linkwise.identify import Noise, coverage, excite, identify, simulated_log

LOW, HIGH = 0.92, 0.98


def with_friction(robot: lw.Robot) -> lw.Robot:
    """The robot itself, or where its file knows no friction, with some: in proportion to what its joints carry."""
    if any(sum(joint.coulomb_friction) for joint in robot.moving_joints):
        return robot
    rng = np.random.default_rng(0)
    q = rng.uniform(-1, 1, (100, robot.dof))
    inertia = robot.mass_matrix(q).diagonal(axis1=1, axis2=2).mean(axis=0)
    values = {}
    for joint, size in zip(robot.moving_joints, inertia, strict=True):
        values |= {
            f"{joint.name}.rotor_inertia": 0.3 * size + 0.01,
            f"{joint.name}.viscous_friction": 1.0 * size + 0.05,
            f"{joint.name}.coulomb_friction": 1.5 * size + 0.1,
        }
    return robot.with_parameters(values)


def measured(name: str, runs: int, duration: float, noise: Noise, through: int, seed: int = 0) -> dict:
    """One campaign, in numbers."""
    begun = time.monotonic()
    robot = with_friction(lw.load(name))
    motion = excite(robot, duration=duration, starts=1, iterations=60, seed=seed)
    log = simulated_log(robot, motion.trajectory, duration)
    found = coverage(robot, log, noise=noise, runs=runs, seed=seed)
    held = []
    for number in range(through):
        once = identify(robot, noise.added(log, np.random.default_rng((seed, number))), friction="coulomb")
        lower, upper = once.estimate.interval()
        held.append(((lower <= found.truth) & (found.truth <= upper)).mean())
    return {
        "robot": name,
        "joints": robot.dof,
        "runs": runs,
        "condition": motion.condition,
        "overall": found.overall,
        "share": dict(zip(found.labels, found.share.tolist(), strict=True)),
        "outside": int(((found.share < LOW) | (found.share > HIGH)).sum()),
        "bias_by_spread": float(np.median(np.abs(found.bias) / found.spread)),
        "spread_by_claimed": (found.spread / found.claimed).tolist(),
        "through_identify": float(np.mean(held)),
        "recordings_through_identify": through,
        "seconds": time.monotonic() - begun,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robots", nargs="+", default=["puma260"])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--duration", type=float, default=20.0, help="of the exciting motion [s]")
    parser.add_argument("--torque", type=float, default=0.05, help="noise, of each torque's root mean square")
    parser.add_argument("--position", type=float, default=1e-5, help="noise [rad]")
    parser.add_argument("--through", type=int, default=10, help="recordings that pass the public identify()")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = [
        measured(
            name, given.runs, given.duration, Noise(given.position, given.torque), given.through, given.seed
        )
        for name in given.robots
    ]
    if given.json:
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        share = np.array(list(row["share"].values()))
        spread = np.array(row["spread_by_claimed"])
        print(f"{row['robot']}, {row['joints']} joints, {len(share)} base parameters, {row['runs']} runs:")
        print(f"  95 % intervals held the truth in {100 * row['overall']:.1f} % of all cases")
        print(
            f"  single parameters: {100 * share.min():.1f} to {100 * share.max():.1f} %; "
            f"{row['outside']} outside {100 * LOW:.0f} to {100 * HIGH:.0f} %"
        )
        for label, value in row["share"].items():
            if not LOW <= value <= HIGH:
                print(f"    {label:<40}{100 * value:6.1f} %")
        print(
            f"  spread of the estimates / claimed deviation: {spread.min():.2f} to {spread.max():.2f}, "
            f"median {np.median(spread):.2f}; median |bias| / spread {row['bias_by_spread']:.2f}"
        )
        count, held = row["recordings_through_identify"], 100 * row["through_identify"]
        print(f"  {count} recordings through identify(): {held:.1f} % of the intervals held the truth")
        print(f"  {row['seconds']:.0f} s")


if __name__ == "__main__":
    main()
