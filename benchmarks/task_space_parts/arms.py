"""Arms for benchmarks of controllers: bundled, of example-robot-data, of MuJoCo Menagerie, and random ones."""

from __future__ import annotations

import os
import tempfile
import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

import linkwise as lw

DATA = Path(os.environ.get("LINKWISE_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
EXAMPLES, MENAGERIE = "urdf/example-robot-data", "mjcf"
TWO_DOFS = "erd_twodofs"
FILES = {
    TWO_DOFS: f"{EXAMPLES}/TwoDofs.urdf",
    "erd_talos_arm": f"{EXAMPLES}/talos_left_arm.urdf",
    "erd_panda": f"{EXAMPLES}/panda.urdf",
    "erd_ur10": f"{EXAMPLES}/ur10_robot.urdf",
    "erd_so101": f"{EXAMPLES}/so101.urdf",
    "erd_kinova": f"{EXAMPLES}/kinova.urdf",
    "m_iiwa14": f"{MENAGERIE}/kuka_iiwa_14/iiwa14.xml",
    "m_lite6": f"{MENAGERIE}/ufactory_lite6/lite6.xml",
    "m_z1": f"{MENAGERIE}/unitree_z1/z1.xml",
    "m_rizon4": f"{MENAGERIE}/flexiv_rizon4/flexiv_rizon4.xml",
    "m_fr3": f"{MENAGERIE}/franka_fr3/fr3.xml",
    "m_ur5e": f"{MENAGERIE}/universal_robots_ur5e/ur5e.xml",
}
"""Files of robots that are not bundled."""
FURTHER = {
    "m_panda": f"{MENAGERIE}/franka_emika_panda/panda_nohand.xml",
    "m_vx300s": f"{MENAGERIE}/trossen_vx300s/vx300s.xml",
    "m_low_cost": f"{MENAGERIE}/low_cost_robot_arm/low_cost_robot_arm.xml",
}
"""Further ones, for step responses."""
LAWS = {
    **FURTHER,
    "m_z1_gripper": f"{MENAGERIE}/unitree_z1/z1_gripper.xml",
    "walkman_arm": "urdf/FloBaRoID/walkman_left_arm.urdf",
    "erd_baxter": f"{EXAMPLES}/baxter.urdf",
}
"""Further ones, for laws."""
RANDOM = ("random:1:4", "random:2:6", "random:3:7", "random:4:8")
COUPLED = ("coupled:panda", "coupled:ur10e", "coupled:puma560")
FLOATING = ("floating:random:3:7", "floating:ur10e", "floating:stanford")
"""A joint that follows another one; a base that is moved by forces in all directions, as under water."""
GRIPPERS = ("finger", "gripper", "jaw")


def names(chosen: str | None = None) -> list[str]:
    """Of these arms, separated by commas, or of all that are bundled or in ``FILES``, those that are there."""
    wanted = chosen.split(",") if chosen else [*lw.robots(), *FILES]
    return [name for name in wanted if name not in FILES or (DATA / FILES[name]).exists()]


def for_laws(chosen: str | None = None) -> list[str]:
    """The same for benchmarks of laws with a tool: random, coupled and floating arms as well, and no two_link again."""
    FILES.update(LAWS)
    if chosen:
        return chosen.split(",")
    return [*(name for name in names() if name != TWO_DOFS), *RANDOM, *COUPLED, *FLOATING]


def load(name: str) -> lw.Robot:
    """An arm by its name or file, with the fingers of grippers locked."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name.startswith("random:"):
            _, seed, dof = name.split(":")
            return lw.random_robot(int(seed), int(dof), joints="R", rotor=True)
        if name.startswith("coupled:"):
            return coupled(load(name.removeprefix("coupled:")))
        if name.startswith("floating:"):
            return load(name.removeprefix("floating:")).with_base("floating")
        robot = lw.load(DATA / FILES[name]) if name in FILES else lw.load(name)
    fingers = [joint for joint in robot.joint_names if any(part in joint.lower() for part in GRIPPERS)]
    return robot.lock(dict.fromkeys(fingers, 0.0)) if fingers else robot


def coupled(robot: lw.Robot) -> lw.Robot:
    """The arm whose last joint but one turns half as far as the second one, without a motor of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{robot.name}_coupled.urdf"
        lw.save(robot, path)
        tree = ElementTree.parse(path)
        joints = {joint.get("name"): joint for joint in tree.getroot().iter("joint")}
        first, follower = robot.joint_names[1], robot.joint_names[-2]
        ElementTree.SubElement(joints[follower], "mimic", {"joint": first, "multiplier": "0.5"})
        tree.write(path)
        return lw.load(path)


def tool(robot: lw.Robot) -> str:
    """The frame with the most joints between it and the base."""
    deepest = max(
        robot.leaf_names,
        key=lambda name: np.abs(robot.jacobian(robot.neutral, frame=name)).sum(0).astype(bool).sum(),
    )
    return str(deepest)


def regular_position(robot: lw.Robot, frame: str, seed: int = 0) -> np.ndarray:
    """Of 200 random positions within the limits the one where the Jacobian is furthest from losing a direction."""
    q = random_positions(robot, 200, seed)
    J = robot.jacobian(q, frame=frame)
    rank = min(6, np.linalg.matrix_rank(J[0]))
    return q[np.argmax(np.linalg.svd(J, compute_uv=False)[:, rank - 1])]


def random_positions(robot: lw.Robot, count: int, seed: int = 0) -> np.ndarray:
    """Within the limits, not near them, shape (count, n)."""
    lower, upper = ranges(robot, 2.0)
    turns = np.random.default_rng(seed).uniform(-1, 1, (count, robot.dof))
    return placed(robot, 0.5 * (lower + upper) + 0.35 * (upper - lower) * turns)


def ranges(robot: lw.Robot, most: float) -> tuple[np.ndarray, np.ndarray]:
    """Limits of the n coordinates of velocity, within ± ``most``; those of a floating base are turns and shifts."""
    extra = robot.nq - robot.dof
    return np.maximum(robot.limits.lower[extra:], -most), np.minimum(robot.limits.upper[extra:], most)


def placed(robot: lw.Robot, values: np.ndarray) -> np.ndarray:
    """Positions (..., nq) of n numbers: turns and shifts of a floating base, then positions of the joints."""
    if robot.nq == robot.dof:
        return values
    return robot.integrate(robot.neutral, values - np.concatenate([np.zeros(6), robot.neutral[7:]]))


def flat(robot: lw.Robot, q: np.ndarray) -> np.ndarray:
    """The n numbers of positions."""
    if robot.nq == robot.dof:
        return q
    return robot.difference(robot.neutral, q) + np.concatenate([np.zeros(6), robot.neutral[7:]])
