"""PyBullet: ``calculateInverseDynamics`` and ``calculateMassMatrix``, which take lists."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable
from typing import Any

import numpy as np

from linkwise.bench.peers.base import Peer, Refusal
from linkwise.bench.subject import Subject


def make(subject: Subject) -> Peer:
    """PyBullet with this robot."""
    bullet: Any = importlib.import_module("pybullet")
    if subject.urdf is None:
        raise Refusal(subject.refusal)
    if any(joint.rotor_inertia for joint in subject.robot.moving_joints):
        raise Refusal("has no rotor inertia")
    return PyBullet(bullet, subject)


class PyBullet(Peer):
    """A physics server in this process."""

    name = "pybullet"

    def __init__(self, bullet: Any, subject: Subject):
        self.bullet = bullet
        self.version = importlib.metadata.version("pybullet")
        self.client = bullet.connect(bullet.DIRECT)
        bullet.setGravity(*subject.robot.gravity, physicsClientId=self.client)
        try:
            self.body = bullet.loadURDF(
                str(subject.urdf),
                useFixedBase=True,
                flags=bullet.URDF_USE_INERTIA_FROM_FILE,
                physicsClientId=self.client,
            )
        except bullet.error as error:
            raise Refusal(f"does not read the file: {error}") from None
        joints = [bullet.getJointInfo(self.body, k) for k in range(bullet.getNumJoints(self.body))]
        moving = [joint[1].decode() for joint in joints if joint[2] != bullet.JOINT_FIXED]
        if sorted(moving) != sorted(subject.robot.joint_names):
            raise Refusal("finds other joints in the file")
        self.order = np.array([moving.index(name) for name in subject.robot.joint_names], dtype=int)

    def call(self, function: str) -> tuple[str, Callable[..., Any]] | None:
        bullet, body = self.bullet, self.body
        if function == "inverse_dynamics":
            return "calculateInverseDynamics", lambda q, v, a: bullet.calculateInverseDynamics(body, q, v, a)
        if function == "mass_matrix":
            return "calculateMassMatrix", lambda q: bullet.calculateMassMatrix(body, q)
        return None

    def argument(self, row: np.ndarray) -> list[float]:
        return row.tolist()
