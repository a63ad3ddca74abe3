"""A controller that watches for collisions and reacts to them: a momentum observer beside any other law."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linkwise.algorithms import coordinates
from linkwise.arguments.numbers import Numbers
from linkwise.control.bounds import Command, all_finite, commanded, or_zero
from linkwise.control.controller import Controller, Reference
from linkwise.control.momentum_observer import MomentumObserver, Observed, positive
from linkwise.model.mechanism import Mechanism
from linkwise.scalar import Scalar, where

Reaction = Callable[[Mechanism, Sequence[Scalar], Sequence[Scalar], Sequence[Scalar]], Sequence[Scalar]]
REACTIONS = ("stop", "float", "reflex", "none")
FLOATING_RATE = 5.0  # [1/s] at which an arm that floats loses its speed


class Guarded(Controller):
    """Another law until a collision, a reaction from then on; A. De Luca et al., "Collision detection and safe reaction
    with the DLR-III lightweight manipulator arm", 2006.

    The collision is remembered; start again with a memory of zeros to go on. A measured number that is not finite is
    answered like a collision: the arm is held where it was when the last good state was measured, with the torques of
    the law at rest there while there is no measurement; before the first good state torques are zero.

    Args:
        law: the controller until then; its torque limits hold for reactions too.
        observer: what detects collisions. Its model may differ from the controller's.
        reaction: "stop" (the law holds the position of the collision), "float" (gravity compensation and damping),
            "reflex" (gravity compensation and a torque along the external one, so that the arm gives way), "none"
            (the law goes on), or a function (links, q, qd, external_torque) -> torques over scalars.
        damping: of "float" and "reflex" [N·m·s/rad], one number or (n,); None: the inertia of each joint at its
            neutral position times 5/s.
        reflex_gain: of "reflex": torque per external torque, one number or (n,).
        delay: control periods from a measurement to the torque that follows from it, as in ``simulate``.
    """

    def __init__(
        self,
        law: Controller,
        observer: MomentumObserver,
        *,
        reaction: str | Reaction = "stop",
        damping: Any = None,
        reflex_gain: Any = 1.0,
        delay: int = 0,
    ):
        if isinstance(reaction, str) and reaction not in REACTIONS:
            raise ValueError(
                f"reaction: expected one of {', '.join(REACTIONS)} or a function, got {reaction!r}"
            )
        delay = Numbers().whole("delay", delay)
        robot, other = law.robot, observer.robot
        if (robot.nq, robot.dof) != (other.nq, other.dof):
            raise ValueError(f"observer: its model has {other.dof} joints, that of the law has {robot.dof}")
        n = robot.dof
        if damping is None:
            damping = FLOATING_RATE * np.diag(robot.mass_matrix(robot.neutral))
        gains = {**law.gains, **observer.numbers()}
        if reaction in ("float", "reflex"):
            gains["floating_damping"] = positive("damping", damping, n)
        if reaction == "reflex":
            gains["reflex_gain"] = positive("reflex_gain", reflex_gain, n)
        super().__init__(robot, gains, np.array(law.torque_limits))
        self.structure = law.structure
        self.law, self.observer, self.reaction, self.delay = law, observer, reaction, delay
        self.memory_size = observer.memory_size + (delay + 1) * n + robot.nq + law.memory_size

    @property
    def known(self) -> bool:
        return super().known and self.law.known and isinstance(self.reaction, str)

    def options(self) -> tuple[Any, ...]:
        observer = self.observer
        return (self.law.key(), observer.robot.content(), observer.options(), self.reaction, self.delay)

    def observed(self, memory: Any) -> Observed:
        """What the observer had found, from recorded memories (..., size): ``simulate(..., record=("memory",))``.

        A recorded memory is what the sample before has left.
        """
        n, at = self.robot.dof, np.asarray(memory)
        start = 2 + 3 * n
        external, beyond = at[..., start : start + n], at[..., start + n : start + 2 * n]
        return Observed(external, (beyond > self.observer.confirm) * 1.0, at[..., 1:2])

    def control(self, links, gains, q, qd, reference, memory, period):
        found = self.commanded(links, gains, q, qd, reference, memory, period)
        return found.tau, found.memory

    def limited(self, links, gains, q, qd, reference, memory, period):
        return self.control(links, gains, q, qd, reference, memory, period)

    def commanded(self, links, gains, q, qd, reference, memory, period) -> Command:
        n, nq, size = self.robot.dof, self.robot.nq, self.observer.memory_size
        watched, rest = memory[:size], memory[size:]
        line, rest = rest[: (self.delay + 1) * n], rest[(self.delay + 1) * n :]
        held, inner = rest[:nq], rest[nq:]
        # with the same model both see the same parameters, those that are inputs of a kernel too
        shared = self.observer.robot.content() == self.robot.content()
        seen_by = links if shared else self.observer.links()
        found, following = self.observer.observe(seen_by, gains, q, qd, line[:n], watched, period)
        free, measured, known = found.collision[0] <= 0.0, all_finite([*q, *qd]), abs(memory[0]) > 0.0
        held = [
            where(measured, where(known, where(free, here, there), here), there)
            for here, there in zip(q, held, strict=True)
        ]
        q = [where(measured, here, there) for here, there in zip(q, held, strict=True)]
        qd = [where(measured, speed, 0.0) for speed in qd]
        if self.reaction == "stop":
            still = Reference(
                [where(free, a, b) for a, b in zip(reference.q, held, strict=True)],
                [where(free, a, 0.0) for a in reference.qd],
                [where(free, a, 0.0) for a in reference.qdd],
            )
            command = self.law.commanded(links, gains, q, qd, still, inner, period)
            tau, fault = command.tau, command.fault
        else:
            command = self.law.commanded(links, gains, q, qd, reference, inner, period)
            tau, fault = command.tau, command.fault
            external = [or_zero(x) for x in found.external_torque]
            reacted = self._reacted(links, gains, q, qd, external)
            if reacted is not None:
                reaction = commanded(reacted, self.saturated(reacted), (), (), self.valid_limits)
                tau = [where(free, a, b) for a, b in zip(tau, reaction.tau, strict=True)]
                fault = where(free, fault, reaction.fault)
        tau = [where(measured, t, where(known, t, 0.0)) for t in tau]
        fault = where(measured, fault, 1.0)
        following[1] = where(fault > 0.0, 1.0, following[1])
        return Command(tau, [*following, *line[n:], *tau, *held, *command.memory], fault)

    def _reacted(self, links: Mechanism, gains, q, qd, external) -> list[Scalar] | None:
        """Torques after a collision; None: those of the law."""
        if callable(self.reaction):
            return list(self.reaction(links, q, qd, external))
        if self.reaction == "none":
            return None
        weight = coordinates.gravity_torques(links, q)
        tau = [g - d * v for g, d, v in zip(weight, gains["floating_damping"], qd, strict=True)]
        if self.reaction == "reflex":
            tau = [t + k * r for t, k, r in zip(tau, gains["reflex_gain"], external, strict=True)]
        return tau
