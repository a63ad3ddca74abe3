"""Inverse kinematics: how many of a robot's own random poses are found, within its limits, and how long it takes.

    python benchmarks/inverse_kinematics.py [ROBOT ...] [--poses 1000] [--seed 0] [--peer] [--peers] [--json]
    python benchmarks/inverse_kinematics.py --files /path/to/data
    python benchmarks/inverse_kinematics.py ur10e panda stanford --gpu 1000000

A pose is that of the default frame (of the deepest leaf, where there are several) at joint positions drawn evenly
within the limits, so every one can be reached. Found means: within 1e-9 m and 1e-9 rad, and within the limits. Times of
a batch are processor time of one thread, checks of arguments and results included, the best of three calls.

``--files``: 20 arms, the bundled ones and files below this folder. ``--peers``: EAIK, ssik and mink, where they are
installed. ``--gpu``: so many poses on the GPU (CuPy), by the kernels alone.

``--peer``: single poses beside Pinocchio with the loop of its documentation (damped least squares in Python around its
functions; whole steps, from up to eight random starts), whose poses are those of the last joint.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise import motion
from linkwise.motion.kinematics.arm_geometry import Arm, known_arm
from linkwise.motion.kinematics.closed_form import SPREAD, nearest_kernel
from linkwise.motion.kinematics.restarts import fresh_state, restarting
from linkwise.motion.kinematics.starts import sampling_range

ROBOTS = ("panda", "ur10e", "puma560", "iiwa14", "stanford")
FILES = (
    "lwr4/kuka_lwr4.urdf",
    "mjcf/flexiv_rizon4/flexiv_rizon4.xml",
    "mjcf/franka_emika_panda/panda_nohand.xml",
    "mjcf/franka_fr3/fr3.xml",
    "mjcf/ufactory_lite6/lite6.xml",
    "mjcf/unitree_z1/z1.xml",
    "mjcf/universal_robots_ur5e/ur5e.xml",
    "tx40/tx40_mdh_modified.urdf",
    "airbot/airbot_play_v3_0_gripper.urdf",
    "urdf/FloBaRoID/walkman_left_arm.urdf",
    "urdf/example-robot-data/kinova.urdf",
    "urdf/example-robot-data/talos_left_arm.urdf",
    "urdf/example-robot-data/ur10_robot.urdf",
)
BUNDLED = (*ROBOTS, "puma260", "puma_valera")


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
    method: str = ""


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
    motion.inverse_kinematics(robot, target, frame=frame, strict=False)  # compiles
    batch = np.inf
    with one_thread():
        for _ in range(3):
            time.sleep(0.5)  # a better compiled version replaces the first one in the background
            begin = time.process_time()
            found = motion.inverse_kinematics(robot, target, frame=frame, strict=False)
            batch = min(batch, time.process_time() - begin)
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
    arm = known_arm(robot, frame)
    method = "closed form" if isinstance(arm, Arm) else "iteration"
    return Row(robot.name, robot.dof, frame, poses, good, batch, alone, *of_peer, len(q[:singles]), method)


@contextlib.contextmanager
def one_thread():
    """LINKWISE_THREADS=1 for a while."""
    before = os.environ.get("LINKWISE_THREADS")
    os.environ["LINKWISE_THREADS"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["LINKWISE_THREADS"]
        else:
            os.environ["LINKWISE_THREADS"] = before


def on_gpu(name: str, poses: int, seed: int) -> None:
    """Poses per second of the kernels on a GPU: arrays stay there."""
    import cupy

    robot = lw.load(name)
    frame = frame_of(robot)
    low, high = sampling_range(robot)
    q = np.random.default_rng(seed).uniform(low, high, (poses, robot.dof))
    target = np.ascontiguousarray(robot.pose(q, frame)[:, :3]).reshape(poses, 12)
    middle = np.broadcast_to(low / 2 + high / 2 + 0.1, q.shape)
    rows, near, lower, upper = (cupy.asarray(np.ascontiguousarray(a)) for a in (target, middle, low, high))
    if isinstance(known_arm(robot, frame), Arm):
        kernel, method = nearest_kernel(robot, frame, search=SPREAD), "closed form"
        given = (rows, near, lower, upper)
    else:
        kernel, method = restarting(robot, frame, "pose"), "iteration with restarts"
        about = cupy.asarray(np.array([2000.0, 1.0, 1e-10, 100.0, 128.0, 0.0]))
        given = (near, rows, lower, upper, lower, upper, cupy.asarray(fresh_state(poses)), about)
    best = np.inf
    for _ in range(5):
        cupy.cuda.runtime.deviceSynchronize()
        begin = time.perf_counter()
        out = kernel(*given)
        cupy.cuda.runtime.deviceSynchronize()
        best = min(best, time.perf_counter() - begin)
    good = int((cupy.abs(out[1]).max(axis=1) < 1e-8).sum())
    print(f"{robot.name:<14}{method:<26}{good} of {poses} poses, {poses / best:.3g} poses/s on the GPU")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("robots", nargs="*", default=list(ROBOTS), help="bundled names or files")
    parser.add_argument("--poses", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--peer", action="store_true", help="Pinocchio beside it")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--peers", type=int, nargs="?", const=200, help="EAIK, ssik, mink on so many poses")
    parser.add_argument("--files", type=Path, help="20 arms: the bundled ones and files of this folder")
    parser.add_argument("--gpu", type=int, help="so many poses on the GPU")
    chosen = parser.parse_args(arguments)
    if chosen.gpu:
        for name in chosen.robots:
            on_gpu(name, chosen.gpu, chosen.seed)
        return
    if chosen.files:
        chosen.robots = [*BUNDLED, *(str(chosen.files / name) for name in FILES)]
    rows = [measure(name, chosen.poses, chosen.seed, peer=chosen.peer) for name in chosen.robots]
    if chosen.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    print(
        "robot                 joints  method            found            per pose in a batch  one pose alone"
    )
    for name, row in zip(chosen.robots, rows, strict=True):
        share = f"{row.found} of {row.poses} ({100 * row.found / row.poses:.1f} %)"
        print(
            f"{row.robot:<22}{row.joints:>5}   {row.method:<12}{share:>22} {1e6 * row.one_batch / row.poses:>14.2f} µs "
            f"{1e3 * row.one_pose:>13.3f} ms"
        )
        if chosen.peers:
            from motion_parts.kinematics_peers import peers

            for other in peers(lw.load(name), row.frame, chosen.peers):
                print(
                    f"{other.name:>35}: {other.found} of {other.poses}, {1e6 * other.per_pose:.1f} µs per pose"
                )
        if chosen.peer:
            print(
                f"{'Pinocchio, one pose':>30} {1e3 * row.peer_pose:.3f} ms ({row.peer_pose / row.one_pose:.1f} times), "
                f"{row.peer_found} of {row.singles} found"
            )


if __name__ == "__main__":
    main()
