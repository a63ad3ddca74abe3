"""MuJoCo: inverse dynamics by ``mj_inverse``, forward by ``mj_forward``, the mass matrix by ``mj_fullM``.

Contacts, limits, actuators, friction loss, springs and damping are switched off. Files that name meshes which are not
there are read without their geoms; inertias that are stated in the file stay.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from linkwise.bench.peers.base import Peer, Refusal
from linkwise.bench.peers.built import mujoco_model
from linkwise.bench.subject import Subject
from linkwise.errors import ModelError
from linkwise.robot.engine_coordinates import coordinates


def make(subject: Subject) -> Peer:
    """MuJoCo with this robot."""
    mujoco: Any = importlib.import_module("mujoco")

    path = subject.mjcf or (None if subject.general else subject.urdf)
    if path is None and subject.general:
        return MuJoCo(mujoco, mujoco_model(mujoco, subject.robot), subject)
    if path is None:
        raise Refusal(subject.refusal)
    text = path.read_text(encoding="utf-8-sig")
    try:
        try:
            model = mujoco.MjModel.from_xml_path(str(path))
        except ValueError:
            if subject.general:  # geoms may carry inertia
                return MuJoCo(mujoco, mujoco_model(mujoco, subject.robot), subject)
            model = mujoco.MjModel.from_xml_string(_without_shapes(text))
    except ValueError as error:
        raise Refusal(f"does not read the file: {error}") from None
    return MuJoCo(mujoco, model, subject)


def _without_shapes(text: str) -> str:
    """The file without meshes, textures and geoms."""
    text = re.sub(r"<asset>.*?</asset>", "", text, flags=re.DOTALL)
    text = re.sub(r"<(visual|collision)>.*?</\1>", "", text, flags=re.DOTALL)
    return re.sub(r"<geom\b[^>]*/>", "", text)


class MuJoCo(Peer):
    """One state at a time in ``data``."""

    name = "mujoco"

    def __init__(self, mujoco: Any, model: Any, subject: Subject):
        self.mujoco, self.model = mujoco, model
        self.version = mujoco.__version__
        robot = subject.robot
        names = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, k) for k in range(model.njnt)]
        if subject.general:
            try:
                self.engine = coordinates(robot, "mujoco", model)
            except ModelError as error:
                raise Refusal(str(error)) from None
        elif model.nv != robot.dof or model.nq != robot.dof:
            raise Refusal(f"finds other joints in the file: {model.nv} degrees of freedom, not {robot.dof}")
        if self.engine is not None:
            self.order = np.arange(robot.dof)
        elif set(robot.joint_names) <= set(names):
            self.order = np.array([names.index(name) for name in robot.joint_names], dtype=int)
        else:  # joints without names, read in the order of the file
            self.order = np.arange(robot.dof)
        off = mujoco.mjtDisableBit
        model.opt.disableflags |= int(off.mjDSBL_CONSTRAINT) | int(off.mjDSBL_ACTUATION)
        model.opt.gravity[:] = robot.gravity
        model.dof_damping[:] = 0.0
        model.jnt_stiffness[:] = 0.0
        model.body_gravcomp[:] = 0.0
        if subject.mjcf is None and self.engine is None:  # URDF has no word for it
            model.dof_armature[self.order] = [joint.rotor_inertia for joint in robot.moving_joints]
        self.data = mujoco.MjData(model)

    def call(self, function: str) -> tuple[str, Callable[..., Any]] | None:
        path, call = {
            "inverse_dynamics": ("mj_inverse", self._inverse),
            "forward_dynamics": ("mj_forward", self._forward),
            "mass_matrix": ("mj_kinematics, mj_comPos, mj_makeM, mj_fullM", self._mass_matrix),
        }.get(function, ("", None))
        return None if call is None else (path, call)

    def _inverse(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        data = self.data
        data.qpos[:], data.qvel[:], data.qacc[:] = q, qd, qdd
        self.mujoco.mj_inverse(self.model, data)
        return data.qfrc_inverse

    def _forward(self, q: np.ndarray, qd: np.ndarray, tau: np.ndarray) -> np.ndarray:
        data = self.data
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, qd, tau
        self.mujoco.mj_forward(self.model, data)
        return data.qacc

    def _mass_matrix(self, q: np.ndarray) -> np.ndarray:
        mujoco, model, data = self.mujoco, self.model, self.data
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_makeM(model, data)
        M = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        return M
