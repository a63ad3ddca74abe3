"""Pinocchio: the PyPI wheel ``pin``."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from linkwise.bench.peers.base import Peer, Refusal, States, Task
from linkwise.bench.peers.built import pinocchio_model
from linkwise.bench.subject import Subject
from linkwise.errors import ModelError
from linkwise.robot.engine_coordinates import coordinates
from linkwise.robot.robot import Robot

CALLS = {
    "inverse_dynamics": "rnea",
    "forward_dynamics": "aba",
    "mass_matrix": "crba",
    "inverse_mass_matrix": "computeMinverse",
    "gravity_torques": "computeGeneralizedGravity",
    "bias_torques": "nonLinearEffects",
}
PARALLEL = {"inverse_dynamics": "rneaInParallel", "forward_dynamics": "abaInParallel"}


def make(subject: Subject) -> Peer:
    """Pinocchio with this robot."""
    pinocchio: Any = importlib.import_module("pinocchio")

    if subject.urdf is None and not subject.general:
        raise Refusal(subject.refusal)
    roots = {"floating": "JointModelFreeFlyer", "planar": "JointModelPlanar"}
    try:
        if subject.urdf is None:
            model = pinocchio_model(pinocchio, subject.robot)
        elif subject.base in roots:
            model = pinocchio.buildModelFromUrdf(str(subject.urdf), getattr(pinocchio, roots[subject.base])())
        else:
            model = pinocchio.buildModelFromUrdf(str(subject.urdf))
    except (RuntimeError, ValueError) as error:
        raise Refusal(f"does not read the file: {error}") from None
    return Pinocchio(pinocchio, model, subject)


def _armature(model: Any, robot: Robot) -> np.ndarray:
    armature = np.zeros(model.nv)
    for joint in robot.moving_joints:
        k = model.getJointId(joint.name)
        if k < model.njoints:
            armature[model.idx_vs[k] : model.idx_vs[k] + model.nvs[k]] = joint.rotor_inertia
    return armature


class Pinocchio(Peer):
    """Its coordinates may stand in another order, and a continuous joint has two: cosine and sine."""

    name = "pinocchio"

    def __init__(self, pinocchio: Any, model: Any, subject: Subject):
        self.pinocchio, self.model = pinocchio, model
        self.version = pinocchio.__version__
        robot = subject.robot
        if subject.general:
            try:
                self.engine = coordinates(robot, "pinocchio", model)
            except ModelError as error:
                raise Refusal(str(error)) from None
            model.gravity.linear = np.array(robot.gravity)
            model.armature = _armature(model, robot)
            self.data = model.createData()
            return
        number = {name: k for k, name in enumerate(model.names)}
        if model.nv != robot.dof or not set(robot.joint_names) <= set(number):
            raise Refusal(f"finds other joints in the file: {model.nv} degrees of freedom, not {robot.dof}")
        self.joints = [model.joints[number[name]] for name in robot.joint_names]
        self.order = np.array([joint.idx_v for joint in self.joints], dtype=int)
        model.gravity.linear = np.array(robot.gravity)
        armature = np.zeros(model.nv)
        armature[self.order] = [
            joint.rotor_inertia for joint in robot.moving_joints
        ]  # URDF has no word for it
        model.armature = armature
        self.data = model.createData()
        self.pool = pinocchio.ModelPool(model, 1)

    def call(self, function: str) -> tuple[str, Callable[..., Any]] | None:
        if function not in CALLS:
            return None
        return CALLS[function], partial(getattr(self.pinocchio, CALLS[function]), self.model, self.data)

    def batch(self, function: str, states: States) -> Task | None:
        if function not in PARALLEL:
            return super().batch(function, states)
        parallel = getattr(self.pinocchio, PARALLEL[function])
        q, v, a = (np.asfortranarray(values.T) for values in self.inputs(function, states))
        out = np.empty(v.shape, order="F")
        pool = self.pool

        def result() -> np.ndarray:
            parallel(1, pool, q, v, a, out)
            return self.ordered(function, out.T)

        return Task(f"{PARALLEL[function]}, 1 thread", lambda: parallel(1, pool, q, v, a, out), result)

    def coordinates(self, name: str, values: np.ndarray) -> np.ndarray:
        if name != "q" or self.model.nq == self.model.nv:
            return super().coordinates(name, values)
        moved = np.empty((len(values), self.model.nq))
        for joint, column in zip(self.joints, values.T, strict=True):
            pair = (column,) if joint.nq == 1 else (np.cos(column), np.sin(column))
            for k, part in enumerate(pair):
                moved[:, joint.idx_q + k] = part
        return moved
