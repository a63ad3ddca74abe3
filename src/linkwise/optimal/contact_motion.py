"""How the velocity and the acceleration of a held frame change with positions and velocities. Over any scalar.

Column j of the Jacobian is (aⱼ, lⱼ): angular velocity of the frame and linear velocity of its origin by q̇ⱼ, in base
axes. Let p be the link before that of coordinate j. Seen from p the frame turns with Ωᵣ, moves with Vᵣ and has the
accelerations Ω̇ᵣ and Aᵣ. A change of qⱼ turns all of these by aⱼ and moves the origin by lⱼ:

    ∂V/∂qⱼ = aⱼ × Vᵣ + Ωₚ × lⱼ              ∂A/∂qⱼ = aⱼ × Aᵣ + Ω̇ₚ × lⱼ + Ωₚ × (2 aⱼ × Vᵣ + Ωₚ × lⱼ)
    ∂Ω/∂qⱼ = aⱼ × Ωᵣ                        ∂Ω̇/∂qⱼ = aⱼ × Ω̇ᵣ + Ωₚ × (aⱼ × Ωᵣ)
    ∂A/∂q̇ⱼ = ∂V/∂qⱼ + Ωⱼ × lⱼ + aⱼ × Vₒ     ∂Ω̇/∂q̇ⱼ = ∂Ω/∂qⱼ + Ωⱼ × aⱼ

where Ωⱼ is the angular velocity of the link that the coordinate moves, from which the frame moves with Vₒ. The same
holds for all coordinates of a ball or floating joint, whose axes turn with their link.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.scalar import Scalar
from linkwise.spatial import Vector


@dataclass(frozen=True)
class Column:
    """A coordinate that moves a frame: its axis, and what its change does."""

    number: int
    angular: Vector
    """a."""
    linear: Vector
    """l."""
    velocity: Vector
    """∂V/∂q."""
    turning: Vector
    """∂Ω/∂q."""
    acceleration: Vector
    """∂A/∂q + d ∂V/∂q."""
    angular_acceleration: Vector
    """∂Ω̇/∂q + d ∂Ω/∂q."""
    by_rate: Vector
    """∂A/∂q̇ + d l."""
    angular_by_rate: Vector
    """∂Ω̇/∂q̇ + d a."""


class FrameMotion:
    """A frame at the end of a chain of links.

    Args:
        J: its Jacobian, 6 rows of n numbers, the angular ones first.
        groups: velocity coordinates of each link of the chain, from the base on.
        qd: velocities, n scalars.
        qdd: accelerations, n scalars.
        damping: d.
    """

    def __init__(
        self,
        J: Sequence[Sequence[Scalar]],
        groups: Sequence[Sequence[int]],
        qd: Sequence[Scalar],
        qdd: Sequence[Scalar],
        damping: float = 0.0,
    ):
        self.groups, self.damping = [list(own) for own in groups if own], damping
        self.axes = {
            i: tuple(Vector(*(row[i] for row in J[at : at + 3])) for at in (0, 3))
            for own in self.groups
            for i in own
        }
        self.zero = Vector(0.0, 0.0, 0.0)
        self.before = self._outward(qd, qdd)
        """(Ω, Ω̇) of the base and of every link."""
        self.after = self._inward(qd, qdd)
        """(V, A) of the origin as seen from the base and from every link."""
        self.angular, self.linear = self.before[-1], self.after[0]

    def _summed(self, own: Sequence[int], part: int, factors: Sequence[Scalar]) -> Vector:
        """Σ of a part of these columns times factors."""
        total = factors[own[0]] * self.axes[own[0]][part]
        for i in own[1:]:
            total = total + factors[i] * self.axes[i][part]
        return total

    def _outward(self, qd: Sequence[Scalar], qdd: Sequence[Scalar]) -> list[tuple[Vector, Vector]]:
        found = [(self.zero, self.zero)]
        for own in self.groups:
            rate, change = found[-1]
            turned = self._summed(own, 0, qd)
            found.append((rate + turned, change + self._summed(own, 0, qdd) + rate.cross(turned)))
        return found

    def _inward(self, qd: Sequence[Scalar], qdd: Sequence[Scalar]) -> list[tuple[Vector, Vector]]:
        found = [(self.zero, self.zero)]
        for own in reversed(self.groups):
            velocity, acceleration = found[-1]
            turned, moved = self._summed(own, 0, qd), self._summed(own, 1, qd)
            pulled = turned.cross(2.0 * velocity + moved)
            found.append((velocity + moved, acceleration + pulled + self._summed(own, 1, qdd)))
        return found[::-1]

    def columns(self) -> Iterator[Column]:
        """Of all coordinates that move the frame."""
        d, last = self.damping, self.before[-1]
        for place, own in enumerate(self.groups):
            (rate, change), (velocity, acceleration) = self.before[place], self.after[place]
            turned = last[0] - rate
            turning_on = last[1] - change - rate.cross(turned)
            for i in own:
                a, l = self.axes[i]
                swung, carried = a.cross(velocity), rate.cross(l)
                spun = a.cross(turned)
                by_q = a.cross(acceleration + d * velocity) + (change + d * rate).cross(l)
                own_rate = self.before[place + 1][0].cross
                yield Column(
                    i, a, l, swung + carried, spun,
                    by_q + rate.cross(2.0 * swung + carried),
                    a.cross(turning_on + d * turned) + rate.cross(spun),
                    a.cross(velocity + self.after[place + 1][0]) + carried + own_rate(l) + d * l,
                    spun + own_rate(a) + d * a,
                )  # fmt: skip


def in_axes(
    R: Sequence[Sequence[Any]] | None,
    vectors: Sequence[Vector],
    changes: Sequence[Vector],
    turned: Vector | None = None,
) -> list[Scalar]:
    """Rows of changes of (linear, angular) vectors in the axes of the frame; in base axes the linear ones alone.

    Args:
        R: axes of the frame; None: base axes.
        vectors: what changes, in base axes.
        changes: in base axes.
        turned: angular velocity of the axes by what changes; None: they stay.
    """
    if R is None:
        return list(changes[0])
    rows: list[Scalar] = []
    for vector, by in zip(vectors, changes, strict=True):
        x, y, z = by if turned is None else by - turned.cross(vector)
        rows += [R[0][k] * x + R[1][k] * y + R[2][k] * z for k in range(3)]
    return rows
