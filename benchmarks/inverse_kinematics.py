"""Inverse kinematics: how many of a robot's own random poses are found, within its limits, and how long it takes.

    python benchmarks/inverse_kinematics.py [ROBOT ...] [--poses 1000] [--seed 0] [--peer] [--json]

A pose is that of the default frame (of the deepest leaf, where there are several) at joint positions drawn evenly
within the limits, so every one can be reached. Found means: within 1e-9 m and 1e-9 rad, and within the limits.

``--peer``: single poses beside Pinocchio with the loop of its documentation (damped least squares in Python around its
functions; whole steps, from up to eight random starts), whose poses are those of the last joint.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass

import numpy as np

import linkwise as lw
from linkwise import motion
from linkwise.motion.kinematics.starts import sampling_range

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
    peer_pose: float = np.nan  # [s]: median of the peer
    peer_found: int = 0  # of the single poses
    singles: int = 0


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


class PinocchioLoop:
    """Damped least squares with Pinocchio's functions."""

    def __init__(self, robot: lw.Robot):
        import pinocchio

        from linkwise.bench.peers.built import pinocchio_model

        self.pin, self.model = pinocchio, pinocchio_model(pinocchio, robot)
        self.data, self.lower, self.upper = self.model.createData(), *sampling_range(robot)

    def pose(self, q: np.ndarray):
        self.pin.forwardKinematics(self.model, self.data, q)
        return self.data.oMi[self.model.njoints - 1].copy()

    def solve(self, target, rng: np.random.Generator) -> bool:
        pin, model, data = self.pin, self.model, self.data
        for _ in range(8):
            q = rng.uniform(self.lower, self.upper)
            for _ in range(100):
                error = pin.log(self.pose(q).actInv(target)).vector
                if np.linalg.norm(error) < 1e-9:
                    if ((self.lower <= q) & (q <= self.upper)).all():
                        return True
                    break
                J = pin.computeJointJacobian(model, data, q, model.njoints - 1)
                damping = 1e-12 + 1e-3 * error @ error
                q = q + J.T @ np.linalg.solve(J @ J.T + damping * np.eye(6), error)
        return False


def beside(robot: lw.Robot, q: np.ndarray) -> tuple[float, int]:
    """(median time [s], poses found) of the peer."""
    peer, rng, times, found = PinocchioLoop(robot), np.random.default_rng(1), [], 0
    for target in [peer.pose(each) for each in q]:
        begin = time.perf_counter()
        found += peer.solve(target, rng)
        times.append(time.perf_counter() - begin)
    return float(np.median(times)), found


def measure(name: str, poses: int, seed: int, singles: int = 20, peer: bool = False) -> Row:
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
    for each in [*target[:singles], *target[:singles]][-2 * singles :]:  # the first round warms up
        begin = time.perf_counter()
        motion.inverse_kinematics(robot, each, frame=frame, strict=False)
        times.append(time.perf_counter() - begin)
    good = int((found.converged & within & near).sum())
    alone = float(np.median(times[len(times) // 2 :]))
    of_peer = beside(robot, q[:singles]) if peer else (np.nan, 0)
    return Row(robot.name, robot.dof, frame, poses, good, batch, alone, *of_peer, len(q[:singles]))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("robots", nargs="*", default=list(ROBOTS), help="bundled names or files")
    parser.add_argument("--poses", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--peer", action="store_true", help="Pinocchio beside it")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    rows = [measure(name, chosen.poses, chosen.seed, peer=chosen.peer) for name in chosen.robots]
    if chosen.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    print("robot                 joints      found            per pose in a batch     one pose alone")
    for row in rows:
        share = f"{row.found} of {row.poses} ({100 * row.found / row.poses:.1f} %)"
        print(
            f"{row.robot:<22}{row.joints:>5}   {share:>22} {1e6 * row.one_batch / row.poses:>14.0f} µs "
            f"{1e3 * row.one_pose:>16.3f} ms"
        )
        if chosen.peer:
            print(
                f"{'Pinocchio, one pose':>30} {1e3 * row.peer_pose:.3f} ms ({row.peer_pose / row.one_pose:.1f} times), "
                f"{row.peer_found} of {row.singles} found"
            )


if __name__ == "__main__":
    main()
