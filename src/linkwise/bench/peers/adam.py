"""adam: articulated bodies of a floating base, on JAX; the base is held still."""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import Any

from linkwise.bench.peers.base import Peer, Refusal
from linkwise.bench.peers.jax_batch import JaxPeer, load_jax
from linkwise.bench.subject import Subject


def make(subject: Subject) -> Peer:
    """adam with this robot: mass matrix, and inverse dynamics as M q̈ + bias (it has none for a fixed base)."""
    jax = load_jax()
    computations: Any = importlib.import_module("adam.jax")
    numpy = jax.numpy
    robot = subject.robot
    if subject.urdf is None:
        raise Refusal(subject.refusal)
    if any(joint.rotor_inertia for joint in robot.moving_joints):
        raise Refusal("has no rotor inertia")
    try:
        gravity = numpy.array([*robot.gravity, 0.0, 0.0, 0.0])
        model = computations.KinDynComputations(str(subject.urdf), list(robot.joint_names), gravity=gravity)
    except Exception as error:  # its readers raise many kinds
        raise Refusal(f"does not read the file: {error}") from None
    place, still = numpy.eye(4), numpy.zeros(6)

    def mass_matrix(q):
        return model.mass_matrix(place, q)[6:, 6:]

    def inverse_dynamics(q, qd, qdd):
        return mass_matrix(q) @ qdd + model.bias_force(place, q, still, qd)[6:]

    functions = {"mass_matrix": mass_matrix, "inverse_dynamics": inverse_dynamics}
    return Adam(jax, functions, robot.dof)


class Adam(JaxPeer):
    """adam-robotics."""

    name = "adam"

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.version = importlib.metadata.version("adam-robotics")
