"""MJX: MuJoCo's algorithms on JAX, with the model and the switches of the adapter of MuJoCo."""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import Any

import numpy as np

from linkwise.bench.peers import mujoco
from linkwise.bench.peers.base import Peer, Refusal
from linkwise.bench.peers.jax_batch import JaxPeer, load_jax
from linkwise.bench.subject import Subject


def make(subject: Subject) -> Peer:
    """MJX with this robot, whose coordinates must be plain numbers."""
    jax = load_jax()
    library: Any = importlib.import_module("mujoco.mjx")
    engine: Any = mujoco.make(subject)
    if engine.engine is not None:
        raise Refusal("is compared for joints of one coordinate only")
    model = library.put_model(engine.model)
    start = library.make_data(model)
    order, place = engine.order, np.argsort(engine.order)

    def inverse_dynamics(q, qd, qdd):
        data = start.replace(qpos=q[place], qvel=qd[place], qacc=qdd[place])
        return library.inverse(model, data).qfrc_inverse[order]

    def forward_dynamics(q, qd, tau):
        data = start.replace(qpos=q[place], qvel=qd[place], qfrc_applied=tau[place])
        return library.forward(model, data).qacc[order]

    functions = {"inverse_dynamics": inverse_dynamics, "forward_dynamics": forward_dynamics}
    return Mjx(jax, functions, subject.robot.dof)


class Mjx(JaxPeer):
    """MJX; the precision is that of its model, which JAX's settings decide."""

    name = "mjx"
    precisions = ("float64",)

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.version = importlib.metadata.version("mujoco-mjx")
