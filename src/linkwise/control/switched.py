"""Several laws of which one is chosen at run time, with torques that do not jump when something is switched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from linkwise.algorithms import coordinates
from linkwise.arguments.numbers import Numbers
from linkwise.control.bounds import Command, commanded
from linkwise.control.controller import Controller, Reference
from linkwise.errors import UnknownNameError, suggest
from linkwise.model.mechanism import Mechanism
from linkwise.scalar import Scalar, where

SELECTED = "selected"
RATE_OF_JUMP = 50.0
"""[1/s]: a target's velocity jumps where it changes by this times the smallest jump of a position."""


class Switched(Controller):
    """One of several laws, chosen by the setting ``selected``; switching is bumpless.

    In the sample after a change the torque is the one of the sample before it. The difference to the torque of the law
    then fades within ``duration``, as a cubic without a jump of its slope. Changes are: another law; another gain; a
    target that jumps, which is one that is not where its own velocity leads; the first sample after a fault.

    All laws are computed in every sample, so the time does not depend on the choice. The memory of a law that is not
    chosen is zero. A choice that is none is a fault: torques are zero. Torque limits hold at once, for all laws.

    Args:
        laws: by name, all for one robot; with a single law, changes of its target and gains are bumpless.
        duration: of a transition [s].
        jump: change of a target's position in one sample that counts as a jump [rad or m], beside what its velocity
            explains.
        torque_limits: see ``Controller``; None: those of the first law.
    """

    units: ClassVar[dict[str, str]] = {SELECTED: "number of the law, from 0 on"}

    def __init__(
        self,
        laws: Mapping[str, Controller],
        *,
        duration: float = 0.1,
        jump: float = 1e-3,
        torque_limits: Any = None,
    ):
        if not laws:
            raise ValueError("laws: expected at least one controller")
        first = next(iter(laws.values()))
        for name, law in laws.items():
            if (law.robot.nq, law.robot.dof) != (first.robot.nq, first.robot.dof):
                raise ValueError(f"laws: {name} is for another robot than the first one")
        self.laws = dict(laws)
        numbers = Numbers()
        self.duration = numbers.number("duration", duration, above=0.0)
        self.jump = numbers.number("jump", jump, above=0.0)
        gains = {self._named(name, key): v for name, law in laws.items() for key, v in law.gains.items()}
        self.structure = tuple(self._named(name, key) for name, law in laws.items() for key in law.structure)
        limits = np.array(first.torque_limits) if torque_limits is None else torque_limits
        super().__init__(first.robot, {**gains, SELECTED: np.zeros(1)}, limits)
        self._inner = sum(law.memory_size for law in laws.values())
        n, settings = self.robot.dof, self.settings_size
        self.memory_size = 3 + 2 * n + self.robot.nq + 2 * n + settings + self._inner

    @property
    def settings_size(self) -> int:
        """Numbers of all gains."""
        return sum(np.size(values) for values in self.gains.values())

    @property
    def known(self) -> bool:
        return super().known and all(law.known for law in self.laws.values())

    def options(self) -> tuple[Any, ...]:
        laws = tuple((name, law.key(), law.robot.content()) for name, law in self.laws.items())
        return (laws, self.duration, self.jump)

    def selecting(self, name: str) -> Controller:
        """The same controller with another law chosen from the start.

        Args:
            name: of the law.
        """
        names = list(self.laws)
        if name not in names:
            raise UnknownNameError(f"laws: no {name!r}; {suggest(name, names)}")
        return self.with_gains(**{SELECTED: float(names.index(name))})

    def meaning(self, name: str) -> str:
        for law_name, law in self.laws.items():
            for key in law.gains:
                if name == self._named(law_name, key):
                    return f"{law.meaning(key)} of {law_name}" if len(self.laws) > 1 else law.meaning(key)
        return super().meaning(name)

    def bound(self, limits: Sequence[Scalar]) -> Switched:
        made: Any = super().bound(limits)
        made.laws = {name: law.bound(limits) for name, law in self.laws.items()}
        return made

    def control(self, links, gains, q, qd, reference, memory, period):
        found = self.commanded(links, gains, q, qd, reference, memory, period)
        return found.tau, found.memory

    def limited(self, links, gains, q, qd, reference, memory, period):
        return self.control(links, gains, q, qd, reference, memory, period)

    def commanded(self, links, gains, q, qd, reference, memory, period) -> Command:
        n, nq = self.robot.dof, self.robot.nq
        begun, clock, faulty = memory[:3]
        last, offset = list(memory[3 : 3 + n]), list(memory[3 + n : 3 + 2 * n])
        at = 3 + 2 * n
        target = Reference(
            memory[at : at + nq], memory[at + nq : at + nq + n], memory[at + nq + n : at + nq + 2 * n]
        )
        at += nq + 2 * n
        settings, inner = _flat(gains, self.gains), memory[at + self.settings_size :]
        wanted, following, fault = self._chosen(links, gains, q, qd, reference, inner, period)
        changed: Any = where(faulty > 0.5, 1.0, self._jumped(links, target, reference, period))
        for new, old in zip(settings, memory[at : at + self.settings_size], strict=True):
            changed = where(abs(new - old) > 0.0, 1.0, changed)
        changed = where(begun > 0.5, changed, 0.0) > 0.5
        clock = where(changed, 0.0, where(clock < self.duration, clock + period, self.duration))
        offset = [where(changed, t - w, o) for t, w, o in zip(last, wanted, offset, strict=True)]
        part = clock * (1.0 / self.duration)
        left = where(part < 1.0, (1.0 - part) * (1.0 - part) * (1.0 + 2.0 * part), 0.0)
        tau = [where(part < 1.0, w + left * o, w) for w, o in zip(wanted, offset, strict=True)]
        tau = [where(begun > 0.5, t, w) for t, w in zip(tau, wanted, strict=True)]
        sent = self.saturated(tau)
        kept = [1.0 + 0.0 * clock, where(begun > 0.5, clock, self.duration), fault, *sent, *offset]
        kept += [*reference.q, *reference.qd, *reference.qdd, *settings, *following]
        found = commanded(tau, sent, kept, memory, [*self.valid_limits, fault < 0.5])
        # the next good sample follows one without torque: also where the fault kept the rest of the memory
        after = [
            *found.memory[:2],
            found.fault,
            *(where(found.fault > 0.5, 0.0, t) for t in found.memory[3 : 3 + n]),
        ]
        return Command(found.tau, [*after, *found.memory[3 + n :]], found.fault)

    def _chosen(
        self,
        links: Mechanism,
        gains: Mapping[str, Any],
        q,
        qd,
        reference: Reference,
        inner: Sequence[Scalar],
        period,
    ) -> tuple[list[Scalar], list[Scalar], Scalar]:
        """Torques of the chosen law, memories of all, and whether there is a fault."""
        (selected,) = gains[SELECTED]
        tau: list[Scalar] = [0.0] * self.robot.dof
        fault: Scalar = 1.0
        following: list[Scalar] = []
        at = 0
        for k, (name, law) in enumerate(self.laws.items()):
            own = {key: gains[self._named(name, key)] for key in law.gains}
            model = links if law.robot.content() == self.robot.content() else law.links()
            memory = inner[at : at + law.memory_size]
            found = law.commanded(model, own, q, qd, reference, memory, period)
            away: Any = abs(selected - float(k))
            here = away < 0.5
            tau = [where(here, a, b) for a, b in zip(found.tau, tau, strict=True)]
            fault = where(here, found.fault, fault)
            following += [where(here, value, 0.0) for value in found.memory]
            at += law.memory_size
        return tau, following, fault

    def _jumped(self, links: Mechanism, last: Reference, new: Reference, period: Scalar) -> Scalar:
        """1 where the target is not where the velocity and the acceleration of the last one lead, else 0."""
        found: Any = 0.0 * period
        half = 0.5 * period
        moved = coordinates.difference(links, last.q, new.q)
        for step, a, b in zip(moved, last.qd, new.qd, strict=True):
            found = where(abs(step - half * (a + b)) > self.jump, 1.0, found)
        for a, b, slope, other in zip(last.qd, new.qd, last.qdd, new.qdd, strict=True):
            found = where(abs(b - a - half * (slope + other)) > RATE_OF_JUMP * self.jump, 1.0, found)
        return found

    def _named(self, law: str, gain: str) -> str:
        return f"{law}_{gain}" if len(self.laws) > 1 else gain


def _flat(gains: Mapping[str, Any], own: Mapping[str, np.ndarray]) -> list[Scalar]:
    """All gains of a law, one after the other."""
    return [
        value
        for name, values in own.items()
        for value in ([x for row in gains[name] for x in row] if np.ndim(values) == 2 else gains[name])
    ]
