"""Contacts of one link with the ground: their rows are combinations of the six rows of the link's velocity.

The points of a foot have velocities v + ω × r_k, with v that of the first of them and r_k their places relative to it.
So J_k = [1, −[r_k]×] (J_v; J_ω), and whatever acts on all points acts on the link as one force and one moment:

    Σ J_kᵀ p_k = J_vᵀ Σ p_k + J_ωᵀ Σ r_k × p_k

    Σ J_kᵀ K_k J_k = (J_v; J_ω)ᵀ N (J_v; J_ω),      N = Σ | K_k         −K_k [r_k]×        |
                                                          | [r_k]× K_k  −[r_k]× K_k [r_k]× |                        (1)

That is one 6×6 matrix for the link, however many of its points touch.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.algorithms.contact.derivatives import Law
from linkwise.algorithms.dense import dot_of_nonzero as dot
from linkwise.joint_laws import is_zero
from linkwise.scalar import Scalar
from linkwise.spatial import Vector

Rows = list[list[Scalar]]
FEWEST = 4
"""Points of a link from which (1) has fewer operations than a sum over its points."""


@dataclass(frozen=True, eq=False)
class Patch:
    """Contacts of one link: which they are, the rows of v and ω, and the places r_k relative to the first one."""

    contacts: Sequence[int]
    rows: Rows
    offsets: Sequence[Vector]

    def velocities(self, v: Sequence[Scalar]) -> list[Vector]:
        """v + ω × r_k of every contact."""
        x, y, z, about_x, about_y, about_z = (dot(row, v) for row in self.rows)
        moving, turning = Vector(x, y, z), Vector(about_x, about_y, about_z)
        return [moving, *(moving + turning.cross(r) for r in self.offsets[1:])]

    def wrench(self, p: Sequence[Scalar]) -> list[Scalar]:
        """Σ p_k and Σ r_k × p_k of the impulses p of all contacts."""
        own = [Vector(*p[3 * k : 3 * k + 3]) for k in self.contacts]
        force, moment = own[0], Vector(0.0, 0.0, 0.0)
        for impulse, r in zip(own[1:], self.offsets[1:], strict=True):
            force, moment = force + impulse, moment + r.cross(impulse)
        return [*force, *moment]

    def diagonals(self, left: Rows, right: Rows) -> Rows:
        """Diagonals of J_k W J_kᵀ of every contact, with W = leftᵀ right of the six rows: of one along x, for example,
        |J_x + r_z J_ωy − r_y J_ωz|²."""
        found: Rows = [[dot(left[i], right[i]) for i in range(3)]]
        for r in [[*r] for r in self.offsets[1:]]:
            own: list[Scalar] = []
            for i, (j, k) in enumerate(((1, 2), (2, 0), (0, 1))):
                a, b, x, y = 3 + j, 3 + k, r[k], -r[j]
                across = dot(left[i], right[a]) + y * dot(left[a], right[b])
                total = found[0][i] + x * (x * dot(left[a], right[a]) + 2.0 * across)
                own.append(total + y * (y * dot(left[b], right[b]) + 2.0 * dot(left[i], right[b])))
            found.append(own)
        return found

    def add_information(self, matrix: Rows, laws: Sequence[Law]) -> None:
        """matrix + (1), with K of every contact of the robot."""
        N = self._information(laws)
        moving = [j for j in range(len(matrix)) if not all(is_zero(row[j]) for row in self.rows)]
        columns = {j: [row[j] for row in self.rows] for j in moving}
        turned = {j: [dot(columns[j], row) for row in N] for j in moving}
        for i in moving:
            for j in moving:
                matrix[i][j] = matrix[i][j] + dot(columns[i], turned[j])

    def _information(self, laws: Sequence[Law]) -> Rows:
        """N."""
        N: Rows = [[0.0] * 6 for _ in range(6)]
        for k, r in zip(self.contacts, self.offsets, strict=True):
            xx, xy, yy, along, across, press = laws[k]
            K: Rows = [[xx, xy, along * press], [xy, yy, across * press], [0.0, 0.0, press]]
            parts: list[tuple[int, int, Rows]] = [(0, 0, K)]
            if k != self.contacts[0]:
                turned = [[*r.cross(Vector(*row))] for row in K]  # −K [r]×
                parts += [(0, 3, turned), (3, 0, _crossed(r, K)), (3, 3, _crossed(r, turned))]
            for top, left, part in parts:
                for i, j in itertools.product(range(3), range(3)):
                    N[top + i][left + j] = N[top + i][left + j] + part[i][j]
        return N


def _crossed(r: Vector, A: Rows) -> Rows:
    """[r]× A."""
    columns = [r.cross(Vector(*column)) for column in zip(*A, strict=True)]
    return [[getattr(column, axis) for column in columns] for axis in "xyz"]
