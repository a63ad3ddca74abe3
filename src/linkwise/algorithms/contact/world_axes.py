"""Velocities of floating links along the axes of the world instead of along their own.

A point at r from the origin of a floating link moves with v + ω × r. In axes of the world the columns of its three rows
are ones, zeros and the entries of r, where those in axes of the link are full. Products with rows are most of what
``filtered`` computes. With the rotation R of the link, u = (R ω, R v), and in these coordinates

    M' = T M Tᵀ,    r' = T r,    T = diag(R, R, 1)                                                                 (1)

The inertia of a floating link and all that it carries is m for the three directions, so that this block stays what it
is, and its first moment s = m c stays one: R [s]× Rᵀ = [R s]×.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from linkwise.algorithms import coupling
from linkwise.algorithms.kinematics import Pose, link_poses
from linkwise.joint_laws import is_zero
from linkwise.model.axes import JointValue
from linkwise.model.mechanism import Mechanism
from linkwise.scalar import Scalar, stage
from linkwise.spatial import Matrix, Vector

Rows = list[list[Scalar]]
_UNIT = Matrix(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class VelocityAxes:
    """Poses whose axes the velocity coordinates of every link are along, and rotations of the links that are turned."""

    frames: list[Pose]
    turned: dict[int, Matrix]
    """By the first of their six coordinates."""

    @classmethod
    def of(cls, links: Mechanism, q: Sequence[JointValue], in_world: bool) -> VelocityAxes:
        """Those of the links, or of the world for floating links that hang from no other one."""
        poses, turned = link_poses(links, q), dict[int, Matrix]()
        frames, first = list(poses), links.first_coordinates()
        places = {axis: place for place, (axis, _) in enumerate(coupling.leading(links))}
        for k, link in enumerate(links):
            if in_world and link.floating and not list(links.ancestors(k)):
                turned[places[first[k]]] = poses[k].rotation
                frames[k] = Pose(_UNIT, poses[k].position)
        return cls(frames, turned)

    def vector(self, v: Sequence[Scalar]) -> list[Scalar]:
        """T v of velocities or torques."""
        return self._each(v, lambda R, part: R @ part)

    def back(self, u: Sequence[Scalar]) -> list[Scalar]:
        """Tᵀ u."""
        return self._each(u, lambda R, part: R.transposed_times(part))

    def inertia(self, own: Rows) -> Rows:
        """T M Tᵀ."""
        M = [list(row) for row in own]
        with stage("inertia in axes of the world"):
            for at, R in self.turned.items():
                places = range(at, at + 6)
                for k in range(len(M)):
                    if k in places or all(is_zero(M[k][i]) for i in places):
                        continue
                    column = [*(R @ Vector(*M[k][at : at + 3])), *(R @ Vector(*M[k][at + 3 : at + 6]))]
                    for i, entry in zip(places, column, strict=True):
                        M[k][i] = M[i][k] = entry
                block = Matrix(*(M[at + i][at + j] for i in range(3) for j in range(3))).rotated(R)
                moment = R @ Vector(M[at + 2][at + 4], M[at][at + 5], M[at + 1][at + 3])
                for i in range(3):
                    for j in range(i + 1):
                        M[at + i][at + j] = M[at + j][at + i] = [*block][3 * i + j]
                for i, j, entry in ((2, 1, moment.x), (0, 2, moment.y), (1, 0, moment.z)):
                    M[at + i][at + 3 + j] = M[at + 3 + j][at + i] = entry
                    M[at + j][at + 3 + i] = M[at + 3 + i][at + j] = -entry
        return M

    def _each(self, values: Sequence[Scalar], turn: Callable[[Matrix, Vector], Vector]) -> list[Scalar]:
        values = list(values)
        for at, R in self.turned.items():
            for k in (at, at + 3):
                values[k : k + 3] = [*turn(R, Vector(*values[k : k + 3]))]
        return values
