"""Linkwise itself, called as a user calls it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import linkwise
from linkwise.bench.peers.base import INPUTS, Peer, States, Task
from linkwise.bench.subject import Subject


def make(subject: Subject) -> Peer:
    """Linkwise with this robot."""
    return Linkwise(subject)


class Linkwise(Peer):
    """The methods of the robot."""

    name = "linkwise"
    precisions = ("float64", "float32")

    def __init__(self, subject: Subject):
        self.robot = subject.robot
        self.version = linkwise.__version__
        self.order = np.arange(self.robot.dof)

    def call(self, function: str) -> tuple[str, Callable[..., Any]] | None:
        return function, getattr(self.robot, function)

    def batch(self, function: str, states: States) -> Task | None:
        given = [np.ascontiguousarray(states[name]) for name in INPUTS[function]]
        method = getattr(self.robot, function)
        out = method(*given)

        def run() -> np.ndarray:
            return method(*given, out=out, threads=1)

        return Task(f"{function}, 1 thread", run, run)
