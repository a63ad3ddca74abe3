"""Other packages that solve inverse kinematics, for ``benchmarks/inverse_kinematics.py``, where they are installed.

Each gets poses of its own kinematics at joint positions drawn within the limits. EAIK and ssik give all branches in
closed form, without limits for EAIK; mink iterates with a quadratic programme, here from up to eight random starts.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise.errors import LinkwiseError
from linkwise.motion.kinematics.arm_geometry import Arm, known_arm
from linkwise.motion.kinematics.starts import sampling_range

PREBUILT = {"panda": "franka_panda_ik", "iiwa14": "iiwa14_ik", "puma560": "puma560_ik", "ur10e": "ur10e_ik"}


@dataclass(frozen=True)
class Peer:
    name: str
    poses: int
    found: int
    per_pose: float  # [s]


def peers(robot: lw.Robot, frame: str, count: int) -> list[Peer]:
    """What the installed packages reach on this robot."""
    rows: list[Peer] = []
    for function in (_eaik, _ssik, _mink):
        try:
            row = function(robot, frame, count)
        except ImportError as error:
            print(f"    {function.__name__[1:]} is not installed ({error})")
            continue
        if row is not None:
            rows.append(row)
    return rows


def _positions(robot: lw.Robot, count: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(*sampling_range(robot), (count, robot.dof))


def _eaik(robot: lw.Robot, frame: str, count: int) -> Peer | None:
    from eaik.IK_HP import HPRobot

    arm = known_arm(robot, frame)
    if not isinstance(arm, Arm) or len(arm.axes) != 6 or robot.dof != 6:
        return None
    points = np.vstack([np.zeros(3), arm.points, arm.pose[:3, 3]])
    solver = HPRobot(arm.axes, np.diff(points, axis=0))
    if not solver.hasKnownDecomposition():
        return None
    poses = np.array([solver.fwdKin(q) for q in _positions(robot, count)])
    solver.IK_batched(poses[:2], 1)
    begin = time.process_time()
    solutions = solver.IK_batched(poses, 1)
    used = time.process_time() - begin
    good = 0
    for pose, solution in zip(poses, solutions, strict=True):
        errors = [np.abs(solver.fwdKin(q) - pose).max() for q in np.reshape(solution.Q, (-1, 6))]
        good += bool(errors) and min(errors) < 1e-8
    return Peer("EAIK, all branches, no limits", count, good, used / count)


def _ssik(robot: lw.Robot, frame: str, count: int) -> Peer | None:
    import ssik

    name = PREBUILT.get(robot.name)
    if name is None:
        return None
    solver = ssik.Manipulator.from_prebuilt(name)
    poses = [solver.fk(q) for q in _positions(robot, count)]
    good, used = _singly(poses, lambda pose: any(s.fk_residual < 1e-8 for s in solver.solve(pose)))
    return Peer("ssik, all branches", count, good, used)


def _mink(robot: lw.Robot, frame: str, count: int) -> Peer | None:
    import mink
    import mujoco

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "robot.xml")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # limits of speed, which MJCF has not
                lw.save(robot, path)
            model = mujoco.MjModel.from_xml_path(str(path))
        except (LinkwiseError, ValueError):
            return None
    body = model.body(model.nbody - 1).name
    configuration = mink.Configuration(model)
    limits = [mink.ConfigurationLimit(model)]
    task = mink.FrameTask(body, "body", position_cost=1.0, orientation_cost=1.0, lm_damping=1e-6)
    rng = np.random.default_rng(1)
    low, high = sampling_range(robot)
    poses = []
    for q in _positions(robot, count):
        configuration.update(q)
        poses.append(configuration.get_transform_frame_to_world(body, "body"))

    def solve(pose: object) -> bool:
        task.set_target(pose)
        for _ in range(8):
            configuration.update(rng.uniform(low, high))
            for _ in range(100):
                if np.abs(task.compute_error(configuration)).max() < 1e-8:
                    return True
                try:
                    velocity = mink.solve_ik(configuration, [task], 1.0, "daqp", limits=limits)
                except mink.NoSolutionFound:
                    break
                configuration.integrate_inplace(velocity, 1.0)
        return False

    good, used = _singly(poses, solve)
    return Peer("mink, daqp, up to eight starts", count, good, used)


def _singly(poses: list, solve: Callable[[object], bool]) -> tuple[int, float]:
    """(poses found, time per pose [s])."""
    solve(poses[0])
    begin, good = time.process_time(), 0
    for pose in poses:
        good += solve(pose)
    return good, (time.process_time() - begin) / len(poses)
