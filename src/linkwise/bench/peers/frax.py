"""frax: recursive and matrix algorithms on JAX."""

from __future__ import annotations

import importlib
import importlib.metadata
import warnings
from typing import Any

from linkwise.bench.peers.base import Peer, Refusal
from linkwise.bench.peers.jax_batch import JaxPeer, load_jax
from linkwise.bench.subject import Subject

EARTH = (0.0, 0.0, -9.81)


def make(subject: Subject) -> Peer:
    """frax with this robot; its gravity is fixed."""
    jax = load_jax()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice on settings
        frax: Any = importlib.import_module("frax")
    robot = subject.robot
    if subject.urdf is None:
        raise Refusal(subject.refusal)
    if robot.gravity != EARTH or any(joint.rotor_inertia for joint in robot.moving_joints):
        raise Refusal("has no other gravity and no rotor inertia")
    try:
        model = frax.Robot(str(subject.urdf), joint_ordering=list(robot.joint_names))
    except Exception as error:  # its readers raise many kinds
        raise Refusal(f"does not read the file: {error}") from None
    upward = jax.numpy.array([0.0, 0.0, 9.81, 0.0, 0.0, 0.0])
    functions = {
        "inverse_dynamics": lambda q, v, a: model.rnea(q, v, a, upward.astype(q.dtype), None),
        "forward_dynamics": lambda q, v, tau: model.forward_dynamics(q, v, tau, None),
        "mass_matrix": model.crba,
        "gravity_torques": model.gravity_vector,
    }
    return Frax(jax, functions, robot.dof)


class Frax(JaxPeer):
    """frax."""

    name = "frax"

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.version = importlib.metadata.version("frax")
