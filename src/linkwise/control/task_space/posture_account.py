"""What the spring of a posture gives out beyond what it has stored: limited, or it could turn joints for ever.

A spring in the null space, −k N e with N = M − JᵀΛJ, is no potential. Where wrong gravity keeps an arm away from its
target, joints that are light beside the others can turn round and round, moved by the errors of heavy ones: the spring
gives in every turn what the damper takes, so an account of both together never fills. This one compares the spring's
work with S = ½ k eᵀNe, what it has stored, which is the same after every turn. Work is force times the way that
positions have gone: velocities that are measured late would hide a part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.algorithms import dense
from linkwise.control.task_space.law import fading
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar, maximum, where


@dataclass(frozen=True, eq=False)
class PostureAccount:
    """What is remembered from the last sample."""

    used: Scalar
    """[J]."""
    begun: Scalar
    """1 from the second sample on."""
    reference: Sequence[Scalar]
    """Positions."""
    e: Sequence[Scalar]
    """Errors of the joints."""
    pull: Sequence[Scalar]
    """−k N e [N·m or N]."""

    @staticmethod
    def size(robot: Robot) -> int:
        """Numbers to remember."""
        return 2 + robot.nq + 2 * robot.dof

    @classmethod
    def of(cls, memory: Sequence[Scalar], nq: int, n: int) -> PostureAccount:
        """From the memory of a law.

        Args:
            memory: ``size`` scalars.
            nq, n: numbers of positions and of velocities.
        """
        used, begun, *rest = memory
        return cls(used, begun, rest[:nq], rest[nq : nq + n], rest[nq + n :])

    def used_now(
        self,
        e_last: Sequence[Scalar],
        pull_last: Sequence[Scalar],
        e: Sequence[Scalar],
        pull: Sequence[Scalar],
        budget: Scalar,
    ) -> Scalar:
        """Energy used up to this sample [J].

        A reference that moves changes what is stored without work of the spring; as much may be given out anew.

        Args:
            e_last, pull_last: errors now beside the reference of the last sample, and the spring's torques for them.
            e, pull: beside the reference of this one.
            budget: [J].
        """
        way = [a - b for a, b in zip(e_last, self.e, strict=True)]
        mean = [0.5 * (a + b) for a, b in zip(pull_last, self.pull, strict=True)]
        given = fading(self.used, budget) * dense.dot(mean, way)
        stored, before, now = (
            -0.5 * dense.dot(x, f) for x, f in ((self.e, self.pull), (e_last, pull_last), (e, pull))
        )
        used = self.used + given + (before - stored) - abs(now - before)
        return maximum(where(self.begun > 0.5, used, -now), -now)
