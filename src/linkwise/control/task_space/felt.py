"""The wrench that a tool feels: an input from a sensor, or what the momentum observer finds without one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.arguments.numbers import Numbers
from linkwise.control.bounds import or_zero
from linkwise.control.momentum_observer import GAIN, THRESHOLD, MomentumObserver
from linkwise.model.mechanism import Mechanism
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar, where

WRENCH = "wrench"
SOURCES = ("observer", "input")


class FeltWrench:
    """Where the wrench of a law comes from.

    Args:
        robot: the model.
        frame: the tool.
        force: "observer": a momentum observer, for which errors of the model are wrenches; "input": the gain
            ``wrench``, (moment, force) [N·m, N] on the tool at its origin in its axes, which is an input of kernels.
        observer_gain: of the observer [1/s], one number or (n,).
        delay: control periods from a measurement to the torque that follows from it, for the observer.
    """

    def __init__(self, robot: Robot, frame: str, force: str, observer_gain: Any, delay: int):
        check = Numbers()
        if force not in SOURCES:
            raise check.error(f"force: expected one of {', '.join(SOURCES)}, got {force!r}")
        self.force, self.delay, self.dof = force, check.whole("delay", delay), robot.dof
        self.observer = None if force == "input" else MomentumObserver(robot, observer_gain, frame=frame)

    @property
    def memory_size(self) -> int:
        """Scalars from sample to sample."""
        return 0 if self.observer is None else self.observer.memory_size + (self.delay + 1) * self.dof

    def numbers(self) -> dict[str, np.ndarray]:
        """Gains by name: that of the observer once where it is the same for all joints, so that there is one rate of
        decay to compute. A law asks for no collisions, so thresholds are none of its gains."""
        if self.observer is None:
            return {WRENCH: np.zeros(6)}
        gain = self.observer.gain
        return {GAIN: gain[:1] if (gain == gain[0]).all() else gain}

    def options(self) -> tuple[Any, ...]:
        """What decides the code."""
        sizes = [len(values) for values in self.numbers().values()]
        return (self.force, self.delay, None if self.observer is None else self.observer.options(), *sizes)

    def felt(
        self,
        links: Mechanism,
        gains: Any,
        q: Sequence[Scalar],
        qd: Sequence[Scalar],
        memory: Any,
        period: Scalar,
    ) -> tuple[list[Scalar], list[Scalar]]:
        """(the wrench in the tool's axes, the observer's next memory).

        Args:
            links, gains, q, qd, memory, period: as for ``Controller.control``.
        """
        if self.observer is None:
            return list(gains[WRENCH]), []
        size = self.observer.memory_size
        watched, line = memory[:size], memory[size:]
        each = self.dof // len(gains[GAIN])  # 1 where joints have their own, as in a ``Guarded``
        numbers = {GAIN: [*gains[GAIN]] * each, THRESHOLD: self.observer.threshold.tolist()}
        seen, following = self.observer.observe(links, numbers, q, qd, line[: self.dof], watched, period)
        started = abs(memory[0]) > 0.0
        torques = [where(started, or_zero(x), 0.0) for x in seen.external_torque]
        return self.observer.wrench(links, q, torques), [or_zero(x) for x in (*following, *line[self.dof :])]

    def remembered(self, following: list[Scalar], tau: Sequence[Scalar]) -> list[Scalar]:
        """The next memory, with the torques that go to the motors.

        Args:
            following: the observer's.
            tau: torques within their limits, n scalars.
        """
        return following if self.observer is None else [*following, *tau]
