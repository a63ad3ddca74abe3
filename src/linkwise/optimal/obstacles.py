"""A cost that keeps whole links away from spheres: distances of capsules, see ``linkwise.collision``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.collision import Segment, Shapes, segment_distance, shapes_of
from linkwise.core.once import once
from linkwise.geometry.skeleton import BASE
from linkwise.optimal import arguments
from linkwise.optimal.arguments import ProblemError
from linkwise.optimal.costs import Cost, Terms
from linkwise.scalar import Scalar, maximum

if TYPE_CHECKING:
    from linkwise.optimal.costs import Point
    from linkwise.optimal.dynamics import Dynamics
    from linkwise.robot.robot import Robot


@dataclass(frozen=True, eq=False)
class SphereClearance(Cost):
    """½ w Σ max(0, margin − d)²: signed distances d [m] of the capsules of all moving links to spheres in the room."""

    centers: Any
    """Centres of the spheres in the base frame [m], (spheres, 3) or (3,); run-time parameters."""
    radii: Any = 0.1
    """Of the spheres [m], one number or (spheres,)."""
    margin: float = 0.05
    """Distance from which the cost begins [m]."""
    weight: float = 1.0
    """[1/m²]."""
    shapes: Shapes | None = None
    """Capsules of the links; by default ``linkwise.collision.shapes_of(robot)``."""

    kind = "clearance"
    from_zero = ("radii", "margin", "weight")

    @once
    def _spheres(self) -> np.ndarray:
        found = arguments.numbers(f"{self.label}: centers", self.centers)
        if found.shape[-1:] != (3,) or found.ndim > 2:
            raise ProblemError(f"{self.label}: centers: expected shape (spheres, 3), got {found.shape}")
        return np.atleast_2d(found)

    def check(self, dynamics: Dynamics) -> None:
        if not self.capsules(dynamics.robot):
            raise ProblemError(f"{self.label}: {dynamics.robot.name} has no moving link with a capsule")
        for name in ("margin", "weight"):
            arguments.number(f"{self.label}: {name}", getattr(self, name), least=0.0)

    def capsules(self, robot: Robot) -> list[Any]:
        """Those of moving links."""
        shapes = shapes_of(robot) if self.shapes is None else self.shapes
        return [capsule for capsule in shapes.capsules if capsule.body != BASE]

    def parameters(self, robot: Robot, dynamics: Dynamics, rows: int) -> dict[str, np.ndarray]:
        return {
            "centers": self._spheres.ravel(),
            "radii": arguments.weights(f"{self.label}: radii", self.radii, len(self._spheres)),
            "margin": np.array([float(self.margin)]),
            "weight": np.array([float(self.weight)]),
        }

    def terms(self, point: Point, values: Mapping[str, Sequence[Scalar]]) -> Terms:
        robot, residuals = point.dynamics.robot, []
        numbers, (margin,), (weight,) = list(values["centers"]), values["margin"], values["weight"]
        for capsule in self.capsules(robot):
            pose = point.of_frame("pose", robot.moving_joints[capsule.body].child)
            ends: list[Any] = [_placed(pose, place) for place in (capsule.start, capsule.end)]
            square = float((capsule.end - capsule.start) @ (capsule.end - capsule.start))
            axis = Segment.between(ends[0], ends[1], square)
            for k, radius in enumerate(values["radii"]):
                x, y, z = numbers[3 * k : 3 * k + 3]
                distance = segment_distance(axis, Segment((x, y, z), (0.0, 0.0, 0.0), 0.0))
                residuals.append(maximum((margin + radius + capsule.radius) - distance, 0.0))
        return Terms(residuals, [weight] * len(residuals))

    def key(self) -> tuple[Any, ...]:
        own = self.shapes and [(c.body, *c.start, *c.end, c.radius) for c in self.shapes.capsules]
        return (*super().key(), len(self._spheres), repr(own))


def _placed(pose: Any, place: Sequence[float]) -> tuple[Any, Any, Any]:
    x, y, z = (row[3] + sum(a * float(b) for a, b in zip(row[:3], place, strict=True)) for row in pose[:3])
    return x, y, z
