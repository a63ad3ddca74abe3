"""Triangle meshes of simple solids: capsules, cylinders, boxes, spheres.

Vertices are doubled along sharp edges, so that a renderer that averages normals keeps them sharp.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.core.products import length as vector_length
from linkwise.core.products import times
from linkwise.model import Transform

MAX_TRIANGLES = 2_000_000
"""Of one mesh file."""


@dataclass(frozen=True)
class Mesh:
    """vertices [m], shape (v, 3); faces, shape (f, 3): three vertices each, counter-clockwise from outside."""

    vertices: np.ndarray
    faces: np.ndarray

    def moved(self, pose: Transform) -> Mesh:
        return Mesh(times(self.vertices, pose.rotation.T) + pose.translation, self.faces)

    def scaled(self, factors: Sequence[float] | np.ndarray) -> Mesh:
        """Scaled along the axes; faces of mirrored meshes are flipped, so that they still point outward."""
        faces = self.faces if np.prod(factors) >= 0 else self.faces[:, ::-1]
        return Mesh(self.vertices * np.asarray(factors, dtype=float), faces)


Colour = tuple[int, int, int]


@dataclass(frozen=True)
class Primitive:
    """A simple solid about the origin, its axis along z.

    ``kind`` and ``sizes`` [m]: "sphere" (radius), "cylinder" and "capsule" (radius, length of the cylinder), "box"
    (three edges), "ellipsoid" (three semi-axes).
    """

    kind: str
    sizes: tuple[float, ...]

    def mesh(self) -> Mesh:
        """Triangles for drawing it."""
        if self.kind == "box":
            return box(self.sizes)
        if self.kind == "cylinder":
            return cylinder(*self.sizes)
        if self.kind == "ellipsoid":
            return sphere().scaled(self.sizes)
        if self.kind == "sphere":
            return sphere(*self.sizes)
        radius, length = self.sizes
        end = np.array([0.0, 0.0, length / 2])
        return capsule(-end, end, radius)


@dataclass(frozen=True)
class Part:
    """A mesh with one colour (red, green, blue from 0 to 255; None: the file states none); ``primitive`` is the simple
    solid that it draws, if it is one."""

    mesh: Mesh
    colour: Colour | None = None
    primitive: Primitive | None = None

    @classmethod
    def of(cls, kind: str, *sizes: float) -> Part:
        """A simple solid, see ``Primitive``."""
        primitive = Primitive(kind, sizes)
        return cls(primitive.mesh(), None, primitive)


def joined(meshes: Sequence[Mesh]) -> Mesh:
    """Concatenate meshes."""
    starts = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    faces = [mesh.faces + start for mesh, start in zip(meshes, starts, strict=False)]
    return Mesh(np.concatenate([mesh.vertices for mesh in meshes]), np.concatenate(faces))


def capsule(start: np.ndarray, end: np.ndarray, radius: float, *, sides: int = 28, rings: int = 7) -> Mesh:
    """A cylinder with a half sphere at either end, between two points."""
    length = vector_length(end - start)
    latitudes = np.linspace(-math.pi / 2, math.pi / 2, 2 * rings)
    radii = radius * np.cos(latitudes)
    heights = radius * np.sin(latitudes) + np.where(np.arange(2 * rings) < rings, 0.0, length)
    return turned(radii, heights, sides).moved(from_z_to(end - start, start))


def cylinder(radius: float, length: float, *, bevel: float = 0.0, sides: int = 40) -> Mesh:
    """About z, centred at the origin, with bevelled edges."""
    half = length / 2
    profile = [(0.0, -half), (radius - bevel, -half), (radius, bevel - half), (radius, half - bevel)]
    profile += [(radius - bevel, half), (0.0, half)]
    bands = [
        turned(np.array([a[0], b[0]]), np.array([a[1], b[1]]), sides) for a, b in itertools.pairwise(profile)
    ]
    return joined(bands)


def sphere(radius: float = 1.0, *, sides: int = 28) -> Mesh:
    """About the origin."""
    latitudes = np.linspace(-math.pi / 2, math.pi / 2, sides // 2)
    return turned(radius * np.cos(latitudes), radius * np.sin(latitudes), sides)


def ring(radius: float, thickness: float, *, sides: int = 48) -> Mesh:
    """A ring about z: circles of radius ``thickness`` along a circle of ``radius``."""
    turns = np.linspace(0.0, 2 * math.pi, 17)
    return turned(radius + thickness * np.cos(turns), thickness * np.sin(turns), sides)


def box(size: Sequence[float]) -> Mesh:
    """About the origin, with edges along the axes [m]."""
    faces, vertices = [], []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            corner = len(vertices)
            for u, v in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
                point = np.zeros(3)
                point[axis], point[(axis + 1) % 3], point[(axis + 2) % 3] = sign, u * sign, v
                vertices.append(point)
            faces += [(corner, corner + 1, corner + 2), (corner, corner + 2, corner + 3)]
    return Mesh(np.array(vertices) * np.asarray(size, dtype=float) / 2, np.array(faces))


def turned(radii: np.ndarray, heights: np.ndarray, sides: int) -> Mesh:
    """Surface of revolution about z: a ring of ``sides`` vertices for every (radius, height), from bottom to top."""
    angles = np.linspace(0.0, 2 * math.pi, sides, endpoint=False)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    vertices = np.concatenate(
        [np.column_stack([r * circle, np.full(sides, h)]) for r, h in zip(radii, heights, strict=True)]
    )
    here = np.arange(sides)
    there = (here + 1) % sides
    faces = []
    for ring in range(len(radii) - 1):
        low, high = ring * sides, (ring + 1) * sides
        faces.append(np.column_stack([low + here, low + there, high + there]))
        faces.append(np.column_stack([low + here, high + there, high + here]))
    return Mesh(vertices, np.concatenate(faces))


def from_z_to(direction: np.ndarray, origin: np.ndarray | Sequence[float] = (0.0, 0.0, 0.0)) -> Transform:
    """Frame at ``origin`` with this z axis; the other axes are arbitrary."""
    length = vector_length(direction)
    if length == 0.0:
        return Transform(np.eye(3), np.asarray(origin, dtype=float))
    z = np.asarray(direction, dtype=float) / length
    if z[2] == 1.0:
        return Transform(np.eye(3), np.asarray(origin, dtype=float))
    aside = np.eye(3)[int(np.argmin(np.abs(z)))]
    x = np.cross(aside, z)
    x /= vector_length(x)
    return Transform(np.column_stack([x, np.cross(z, x), z]), np.asarray(origin, dtype=float))
