"""Inverse kinematics: how many of a robot's own random poses are found, within its limits, and how long it takes.

    python benchmarks/inverse_kinematics.py [ROBOT ...] [--poses 1000] [--seed 0] [--json]

A pose is that of the default frame (of the deepest leaf, where there are several) at joint positions drawn evenly
within the limits, so every one can be reached. Found means: within 1e-9 m and 1e-9 rad, and within the limits.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass

import numpy as np

import linkwise as lw
from linkwise import motion
from linkwise.motion.starts import sampling_range

ROBOTS = ("panda", "ur10e", "puma560", "iiwa14", "stanford")


@dataclass(frozen=True)
class Row:
    robot: str
    joints: int
    frame: str
    poses: int
    found: int
    one_batch: float  # [s]: all poses in one call
    one_pose: float  # [s]: median of calls with a single pose


def frame_of(robot: lw.Robot) -> str:
    """The default frame, or the leaf with the most joints behind it."""
    try:
        return robot.default_frame()
    except ValueError:
        parents = {joint.child: joint for joint in robot.joints}

        def depth(link: str) -> int:
            joint = parents.get(link)
            return 0 if joint is None else depth(joint.parent) + (joint.type != "fixed")

        return max((link.name for link in robot.links), key=depth)


def measure(name: str, poses: int, seed: int, singles: int = 20) -> Row:
    """Success rate and times of one robot."""
    robot = lw.load(name)
    frame = frame_of(robot)
    lower, upper = sampling_range(robot)
    q = np.random.default_rng(seed).uniform(lower, upper, (poses, robot.dof))
    target = robot.pose(q, frame)
    motion.inverse_kinematics(robot, target[:2], frame=frame, strict=False)  # compiles
    begin = time.perf_counter()
    found = motion.inverse_kinematics(robot, target, frame=frame, strict=False)
    batch = time.perf_counter() - begin
    bounds = np.array([(joint.limits.lower, joint.limits.upper) for joint in robot.coordinate_joints]).T
    within = ((found.q >= bounds[0]) & (found.q <= bounds[1])).all(axis=-1)
    near = np.abs(robot.pose(found.q, frame) - target).max(axis=(-2, -1)) < 1e-8
    times = []
    for each in target[:singles]:
        begin = time.perf_counter()
        motion.inverse_kinematics(robot, each, frame=frame, strict=False)
        times.append(time.perf_counter() - begin)
    good = int((found.converged & within & near).sum())
    return Row(robot.name, robot.dof, frame, poses, good, batch, float(np.median(times)))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("robots", nargs="*", default=list(ROBOTS), help="bundled names or files")
    parser.add_argument("--poses", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    rows = [measure(name, chosen.poses, chosen.seed) for name in chosen.robots]
    if chosen.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    print("robot                 joints      found            per pose in a batch     one pose alone")
    for row in rows:
        share = f"{row.found} of {row.poses} ({100 * row.found / row.poses:.1f} %)"
        print(
            f"{row.robot:<22}{row.joints:>5}   {share:>22} {1e6 * row.one_batch / row.poses:>14.0f} µs "
            f"{1e3 * row.one_pose:>16.2f} ms"
        )


if __name__ == "__main__":
    main()
