"""Bodies of a scene that are no robots: free ones, with mass, and others that are fixed in the world."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwise.errors import ModelError
from linkwise.model.inertia import Inertia
from linkwise.model.quantity import finite
from linkwise.model.shapes import WORLD_ONLY, Shape
from linkwise.model.transform import Transform


@dataclass(frozen=True)
class Body:
    """One solid of a scene: free with a mass, fixed in the world without one.

    Make one with ``Body.sphere``, ``capsule``, ``cylinder``, ``box``, ``hull``, ``plane`` or ``height_field``.

    Args:
        name: of its link; positions of a free body are those of the joint ``NAME_joint``.
        shape: that may touch others; its frame is ``name``.
        mass: [kg]; None: it is fixed in the world.
        pose: of a fixed body in the world; a free one is where its position says.
        inertia: moments about its middle [kg·m²], shape (3,) or (3, 3); None: those of a homogeneous solid.
    """

    name: str
    shape: Shape
    mass: float | None = None
    pose: Transform = field(default_factory=Transform.identity)
    inertia: Any = None

    def __post_init__(self):
        if self.mass is None:
            return
        object.__setattr__(self, "mass", finite(f"body {self.name}: mass", self.mass))
        if self.mass <= 0.0:
            raise ModelError(f"body {self.name}: mass: expected a number above 0 [kg], got {self.mass!r}")
        if self.shape.kind in WORLD_ONLY:
            raise ModelError(f"body {self.name}: a {self.shape.kind} has no mass: it is fixed in the world")
        identity = not self.pose.translation.any() and np.array_equal(self.pose.rotation, np.eye(3))
        if not identity:
            raise ModelError(
                f"body {self.name}: a free body has no pose; where it starts is part of q, as in scene.neutral"
            )
        if self.inertia is None and self.shape.kind == "hull":
            raise ModelError(f"body {self.name}: a hull needs inertia= (moments about its middle [kg·m²])")

    @property
    def spatial_inertia(self) -> Inertia:
        """Mass and moments of the whole body."""
        if self.mass is None:
            return Inertia()
        own: Any = self.inertia
        if own is None:
            own = [self.mass * moment for moment in _moments(self.shape)]
        return Inertia.from_com(self.mass, (0.0, 0.0, 0.0), own).expressed_in(self.shape.pose)

    @classmethod
    def box(cls, size: Sequence[float], mass: float | None = None, name: str = "box", **options: Any) -> Body:
        """A box.

        Args:
            size: its three edges [m].
            mass: [kg]; None: it is fixed in the world.
            name: of its link.
            options: ``pose``, ``inertia``, ``friction``.
        """
        return cls._of(Shape.box(name, size, friction=options.pop("friction", None)), mass, options)

    @classmethod
    def sphere(cls, radius: float, mass: float | None = None, name: str = "sphere", **options: Any) -> Body:
        """A ball.

        Args:
            radius: [m].
            mass: [kg]; None: it is fixed in the world.
            name: of its link.
            options: as for ``box``.
        """
        return cls._of(Shape.sphere(name, radius, friction=options.pop("friction", None)), mass, options)

    @classmethod
    def capsule(
        cls, radius: float, length: float, mass: float | None = None, name: str = "capsule", **options: Any
    ) -> Body:
        """A capsule along z.

        Args:
            radius: [m].
            length: of its axis, between the centres of the ends [m].
            mass: [kg]; None: it is fixed in the world.
            name: of its link.
            options: as for ``box``.
        """
        return cls._of(
            Shape.capsule(name, radius, length, friction=options.pop("friction", None)), mass, options
        )

    @classmethod
    def cylinder(
        cls, radius: float, length: float, mass: float | None = None, name: str = "cylinder", **options: Any
    ) -> Body:
        """A cylinder along z.

        Args:
            radius: [m].
            length: [m].
            mass: [kg]; None: it is fixed in the world.
            name: of its link.
            options: as for ``box``.
        """
        return cls._of(
            Shape.cylinder(name, radius, length, friction=options.pop("friction", None)), mass, options
        )

    @classmethod
    def hull(cls, points: Any, mass: float | None = None, name: str = "hull", **options: Any) -> Body:
        """The convex hull of points.

        Args:
            points: [m], shape (k, 3).
            mass: [kg]; None: it is fixed in the world.
            name: of its link.
            options: as for ``box``, and ``most`` of ``Shape.hull``.
        """
        chosen = {key: options.pop(key) for key in ("friction", "most") if key in options}
        return cls._of(Shape.hull(name, points, **chosen), mass, options)

    @classmethod
    def plane(cls, pose: Transform | None = None, name: str = "plane", **options: Any) -> Body:
        """A plane in the world: what is below z = 0 of its pose.

        Args:
            pose: in the world; None: the plane z = 0.
            name: of its link.
            options: ``friction``.
        """
        pose = Transform.identity() if pose is None else pose
        return cls._of(
            Shape.plane(name, friction=options.pop("friction", None)), None, {"pose": pose, **options}
        )

    @classmethod
    def height_field(cls, heights: Any, size: Sequence[float], name: str = "terrain", **options: Any) -> Body:
        """Ground of given heights in the world, see ``Shape.height_field``.

        Args:
            heights: [m], shape (x, y).
            size: extent along x and y [m].
            name: of its link.
            options: ``pose``, ``friction``.
        """
        shape = Shape.height_field(name, heights, size, friction=options.pop("friction", None))
        return cls._of(shape, None, options)

    @classmethod
    def _of(cls, shape: Shape, mass: float | None, options: dict[str, Any]) -> Body:
        return cls(shape.frame, shape, mass, **options)


def _moments(shape: Shape) -> tuple[float, float, float]:
    """Principal moments of a homogeneous solid of 1 kg about its middle."""
    sizes = tuple(shape.sizes)
    if shape.kind in ("box", "ellipsoid"):
        x, y, z = (size * size / (12.0 if shape.kind == "box" else 5.0) for size in sizes)
        return y + z, x + z, x + y
    r = sizes[0]
    if shape.kind == "sphere":
        both = 0.4 * r * r
        return both, both, both
    length = sizes[1]
    if shape.kind == "cylinder":
        across = r * r / 4.0 + length * length / 12.0
        return across, across, 0.5 * r * r
    tube, caps = math.pi * r * r * length, 4.0 / 3.0 * math.pi * r**3
    m, c = tube / (tube + caps), caps / (tube + caps)
    half = 0.5 * length
    across = m * (r * r / 4.0 + length * length / 12.0) + c * (0.4 * r * r + half * half + 0.75 * half * r)
    return across, across, (0.5 * m + 0.4 * c) * r * r
