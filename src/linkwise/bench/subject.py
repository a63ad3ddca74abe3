"""The robot under comparison, as files that other libraries read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from linkwise import joint_laws
from linkwise.errors import ModelError
from linkwise.robot.loading import save
from linkwise.robot.robot import Robot


@dataclass(frozen=True)
class Subject:
    """A robot, and the files from which its peers are made."""

    robot: Robot
    urdf: Path | None
    mjcf: Path | None = None
    refusal: str = ""  # why there is no URDF
    base: str = "fixed"  # how its base moves, which a URDF does not say

    @property
    def general(self) -> bool:
        """Whether coordinates are more than numbers in another order: ball or floating joints, bases, followers."""
        joints = self.robot.moving_joints
        special = any(joint.free or joint.screws for joint in joints)
        return special or self.base != "fixed" or any(each is not None for each in self.robot.followed)

    @classmethod
    def of(cls, robot: Robot, folder: Path, source: Path | None = None, base: str = "fixed") -> Subject:
        """The files of a robot: its own where it came from one unchanged (``source``), else a URDF in ``folder``.

        A robot whose coordinates are not plain numbers gets no file of its own making.
        """
        start = source.read_bytes()[:100_000] if source is not None and source.is_file() else b""
        if b"<robot" in start:
            return cls(robot, source, base=base)
        mjcf = source if b"<mujoco" in start and base == "fixed" else None
        own = cls(robot, None, mjcf, base=base)
        if own.general:
            return own
        urdf = folder / "robot.urdf"
        try:
            save(robot, urdf)
        except ModelError as error:
            return cls(robot, None, mjcf, f"takes URDF only: {str(error).removeprefix(f'{urdf}: ')}")
        urdf.write_text(_plain(urdf.read_text(encoding="utf-8")), encoding="utf-8")
        return cls(robot, urdf, mjcf)


def without_drives(robot: Robot) -> Robot:
    """The robot without rotor inertia, friction and springs, which not every library has."""
    names = [name for _, name in joint_laws.coefficients(robot.moving_joints)]
    return robot.with_parameters(
        {f"{joint.name}.{name}": 0.0 for joint in robot.moving_joints for name in names}
    )


def rigid(robot: Robot) -> Robot:
    """The robot without springs, carried weight, constraints and motors of several joints: engines differ there."""
    free = robot.with_constraints([]) if robot.constraints else robot
    free = free.with_motors(()) if free.motors else free
    terms = {f"{joint.name}.{name}": 0.0 for joint in free.moving_joints for name in joint.terms}
    return free.with_parameters(terms) if terms else free


def _plain(urdf: str) -> str:
    """The file without what only Linkwise reads, and with zeros where a link has no inertia: some readers take a
    missing inertia for one kilogram, others stop at it."""
    nothing = '<inertial><origin xyz="0 0 0" rpy="0 0 0"/><mass value="0"/>'
    nothing += '<inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial>'
    urdf = re.sub(r"\n *<linkwise:[^>]*/>", "", urdf)
    return re.sub(r"(<link name=[^>]*)/>", rf"\1>{nothing}</link>", urdf)


def random_states(robot: Robot, count: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Random states: q within the joint limits, qd, qdd and tau of ordinary size; shape (count, nq) and (count, n)."""
    rng = np.random.default_rng(seed)
    if any(joint.free for joint in robot.coordinate_joints):
        q = robot.random(rng, count)
        qd, qdd = rng.normal(size=(2, count, robot.dof))
        return {"q": q, "qd": qd, "qdd": qdd, "tau": robot.inverse_dynamics(q, qd, qdd, friction=False)}
    reach = np.array([np.pi if joint.revolute else 0.5 for joint in robot.coordinate_joints])
    lower = np.maximum([joint.limits.lower for joint in robot.coordinate_joints], -reach)
    upper = np.minimum([joint.limits.upper for joint in robot.coordinate_joints], reach)
    shape = (count, robot.dof)
    q = rng.uniform(np.minimum(lower, upper), np.maximum(lower, upper), shape)
    qd, qdd = rng.normal(size=(2, *shape))
    return {"q": q, "qd": qd, "qdd": qdd, "tau": robot.inverse_dynamics(q, qd, qdd, friction=False)}
