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

    def place(q):
        return numpy.broadcast_to(numpy.eye(4), (*q.shape[:-1], 4, 4))

    def mass_matrix(q):
        return model.mass_matrix(place(q), q)[..., 6:, 6:]

    def inverse_dynamics(q, qd, qdd):
        still = numpy.zeros((*q.shape[:-1], 6))
        moved = (mass_matrix(q) @ qdd[..., numpy.newaxis])[..., 0]
        return moved + model.bias_force(place(q), q, still, qd)[..., 6:]

    functions = {"mass_matrix": mass_matrix, "inverse_dynamics": inverse_dynamics}
    return Adam(jax, functions, robot.dof)


class Adam(JaxPeer):
    """adam-robotics; one precision, as each function takes it ten seconds to compile."""

    name = "adam"
    precisions = ("float64",)
    takes_batches = True

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.version = importlib.metadata.version("adam-robotics")
