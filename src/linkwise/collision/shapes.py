"""Capsules around the links of a robot.

They enclose the collision geometry of its file, else the visual geometry, and where neither can be read they are laid
along the kinematics with a radius that is a share of the reach. ``Shapes.notes`` says which, in words.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from linkwise.collision import fit
from linkwise.core.products import times
from linkwise.errors import ModelError
from linkwise.geometry.looks import Looks, Visual
from linkwise.geometry.meshes import MAX_BYTES, read_mesh
from linkwise.geometry.skeleton import BASE, Capsule, body_name, skeleton
from linkwise.geometry.solids import Primitive, cylinder, joined, sphere
from linkwise.geometry.visuals import LooksFile
from linkwise.model import Model, Transform

MOST_PER_BODY = 6  # capsules
THICKNESS = 0.06  # radius of a first link without geometry, by the reach: Panda 0.058, UR10 0.06, LWR 0.057
TAPER = 0.75  # radius of the last link, as a fraction of the first
SIDES = 24  # of the prism around a cylinder
_NAMED = 4  # links or problems that a note lists


@dataclass(frozen=True)
class Tool:
    """What is fixed to a frame: a sphere, a capsule from the frame's origin along its z axis, or a mesh in its axes.

    Args:
        radius: of the sphere or capsule [m].
        length: from the frame's origin to the centre of the other end [m]; 0: a sphere.
        mesh: a mesh file (.stl, .obj, .ply, .glb, .dae) [m], in place of radius and length.
        frame: the frame; None: the only leaf.
    """

    radius: float = 0.0
    length: float = 0.0
    mesh: str | os.PathLike[str] | None = None
    frame: str | None = None

    def __post_init__(self) -> None:
        numbers = (self.radius, self.length)
        if self.mesh is None and not (np.isfinite(numbers).all() and self.radius > 0 and self.length >= 0):
            raise ValueError(
                f"tool: expected a positive radius and a length in metres, or a mesh file, got {numbers}"
            )

    @property
    def words(self) -> str:
        """For messages."""
        if self.mesh is not None:
            return f"the mesh {Path(self.mesh).name}"
        kind = f"a capsule of {self.length:g} m" if self.length else "a sphere"
        return f"{kind}, radius {self.radius:g} m"

    def capsules(self) -> list[fit.Fit]:
        """In axes of the frame."""
        if self.mesh is None:
            return [(np.zeros(3), np.array([0.0, 0.0, self.length]), float(self.radius))]
        path = Path(self.mesh)
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            raise ModelError(f"tool: {path}: no such file, or more than {MAX_BYTES} bytes")
        parts = read_mesh(path.read_bytes(), path.suffix.lower(), str(path))
        return fit.mesh_capsules(joined([part.mesh for part in parts]))


@dataclass(frozen=True)
class Slab:
    """A box fixed to the base: the pose of its centre and its edges [m]."""

    pose: Transform
    edges: tuple[float, float, float]
    name: str


@dataclass(frozen=True)
class Shapes:
    """Capsules of a robot in the frames of its bodies (see ``Model.carrier``), and boxes fixed to its base.

    ``notes`` say where the shapes came from, ``tool`` has the numbers of the capsules of the tool.
    """

    capsules: tuple[Capsule, ...]
    slabs: tuple[Slab, ...]
    notes: tuple[str, ...]
    tool: frozenset[int] = frozenset()


def shapes_of(
    robot: Model,
    *,
    meshes: Iterable[str | os.PathLike[str]] = (),
    radius: float | None = None,
    tool: Tool | None = None,
) -> Shapes:
    """Capsules around the links of a robot.

    Args:
        robot: the robot; its geometry is read from the file that it was loaded from.
        meshes: further folders with meshes.
        radius: of the capsules [m] of links without geometry; None: a share of the reach.
        tool: what is fixed to a frame of the last link.
    """
    read = Reading(robot, meshes)
    capsules: list[Capsule] = []
    for body in sorted(read.pieces):
        fits = fit.reduced(read.pieces[body], MOST_PER_BODY)
        capsules += [Capsule(body, start, end, size) for start, end, size in fits]
    bones: list[Capsule] = []
    for rod in skeleton(robot, THICKNESS, TAPER).capsules:
        one = rod if radius is None else replace(rod, radius=radius)
        if rod.body in read.lacking and not any(_same(one, other) for other in bones):
            bones.append(one)
    notes = read.notes(bones)
    capsules += bones
    carried: frozenset[int] = frozenset()
    if tool is not None:
        body, pose = robot.locate(tool.frame)
        placed = [Capsule(body, *_moved(each, pose)) for each in tool.capsules()]
        carried = frozenset(range(len(capsules), len(capsules) + len(placed)))
        capsules += placed
        notes.append(f"tool: {tool.words}, at {tool.frame or robot.default_frame()}")
    return Shapes(tuple(capsules), tuple(read.slabs), tuple(notes), carried)


class Reading:
    """Geometry of the robot's file by body: ``pieces``; ``lacking``, the bodies of which some cannot be read; and
    ``seen_only``, those that have visual geometry alone in a file that has collision geometry of others."""

    def __init__(self, robot: Model, meshes: Iterable[str | os.PathLike[str]]):
        self.robot = robot
        self.pieces: dict[int, list[fit.Fit]] = {}
        self.slabs: list[Slab] = []
        self.problems: list[str] = []
        self.used: set[str] = set()  # purposes of the elements that were used
        source = robot.source
        file = LooksFile(source[0], (*meshes, *source[1:]), shown=False) if source else None
        collision = file.looks("collision") if file is not None else Looks()
        shown = {each.link for each in collision.visuals}
        links = [link.name for link in robot.links]
        incomplete = [link for link in links if link in collision.missing or link not in shown]
        visual = file.looks("visual", incomplete) if file is not None and incomplete else Looks()
        gone: set[str] = set()
        purposes: dict[int, set[str]] = {}  # of the elements of each body
        for link in links:
            chosen = self._chosen(link, collision, visual)
            if chosen is None:
                gone.add(link)
            purposes.setdefault(robot.carrier(link)[0], set()).update(
                ["collision" if link in shown and link not in collision.missing else "visual"]
                if chosen
                else ()
            )
            for each in chosen or ():
                self._add(each)
        self.problems = [*collision.problems, *visual.problems] if gone else []
        self.lacking = self._lacking(gone)
        self.seen_only = frozenset(body for body, each in purposes.items() if shown and each == {"visual"})

    def _chosen(self, link: str, collision: Looks, visual: Looks) -> list[Visual] | None:
        """The elements of a link; none if the file has none, None if some cannot be read."""
        for purpose, looks in (("collision", collision), ("visual", visual)):
            found = [each for each in looks.visuals if each.link == link]
            if found and link not in looks.missing:
                self.used.add(purpose)
                return found
        return None if link in collision.missing or link in visual.missing else []

    def _lacking(self, gone: set[str]) -> set[int]:
        """Bodies with mass or extent that have no geometry, or not all of theirs."""
        bodies = {self.robot.carrier(link)[0] for link in gone}
        if not self.pieces and not self.slabs:
            return {BASE, *range(len(self.robot.moving_joints))}
        for link in self.robot.links:
            body = self.robot.carrier(link.name)[0]
            if body not in self.pieces and body != BASE and not link.inertia.is_zero:
                bodies.add(body)
        return bodies

    def _add(self, visual: Visual) -> None:
        body, pose = self.robot.carrier(visual.link)
        pose = pose @ visual.pose
        primitive = visual.part.primitive
        if primitive is not None and primitive.kind == "box" and body == BASE:
            x, y, z = primitive.sizes
            self.slabs.append(Slab(pose, (x, y, z), visual.link))
            return
        fits = (
            _primitive_capsules(primitive) if primitive is not None else fit.mesh_capsules(visual.part.mesh)
        )
        self.pieces.setdefault(body, []).extend(_moved(each, pose) for each in fits)

    def notes(self, bones: Sequence[Capsule]) -> list[str]:
        """What stands for the links, in words."""
        found: list[str] = []
        if self.used:
            kinds = " and ".join(sorted(self.used))
            own = [body_name(self.robot, body) for body in sorted(self.pieces)]
            which = f" ({_some(own)})" if bones else ""
            file = Path(self.robot.source[0]).name
            found.append(f"links{which}: capsules around the {kinds} geometry of {file}")
        if not bones:
            return found
        sizes = sorted({round(100 * rod.radius, 1) for rod in bones})
        size = f"{sizes[0]:g} cm" if len(sizes) == 1 else f"{sizes[-1]:g} to {sizes[0]:g} cm"
        along = f"capsules along the kinematics with a radius of {size}, which may be thinner than the robot"
        if not self.used:
            why = "the robot has no geometry" if not self.problems else "its geometry cannot be read"
            found.append(f"links: {why}: {along}")
        else:
            names = [body_name(self.robot, body) for body in sorted({rod.body for rod in bones})]
            found.append(f"links without readable geometry ({_some(names)}): {along}")
        if self.problems:
            found.append(f"not read: {_some([_short(each) for each in dict.fromkeys(self.problems)], 1)}")
        return found


def _primitive_capsules(primitive: Primitive) -> list[fit.Fit]:
    """Capsules around a simple solid; spheres and capsules are themselves."""
    sizes = primitive.sizes
    if primitive.kind == "sphere":
        return [(np.zeros(3), np.zeros(3), sizes[0])]
    if primitive.kind == "capsule":
        end = np.array([0.0, 0.0, sizes[1] / 2])
        return [(-end, end, sizes[0])]
    outside = 1.0 / math.cos(math.pi / SIDES)  # of a prism whose faces touch the cylinder
    if primitive.kind == "cylinder":
        return [fit.enclosing_capsule(cylinder(outside * sizes[0], sizes[1], sides=SIDES).vertices)]
    if primitive.kind == "ellipsoid":
        round_mesh = sphere(outside**2, sides=SIDES)
        return [fit.enclosing_capsule(round_mesh.vertices * np.array(sizes))]
    return fit.mesh_capsules(primitive.mesh())


def _moved(capsule: fit.Fit, pose: Transform) -> fit.Fit:
    start, end, radius = capsule
    first, last = (times(pose.rotation, point) + pose.translation for point in (start, end))
    return first, last, radius


def _same(first: Capsule, second: Capsule) -> bool:
    """Two leaves of a link may be at one place."""
    ends = np.allclose(first.start, second.start) and np.allclose(first.end, second.end)
    return first.body == second.body and bool(ends)


def _some(names: Sequence[str], most: int = _NAMED) -> str:
    """The first names, and how many there are more."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def _short(problem: str) -> str:
    return problem if len(problem) <= 200 else problem[:197] + "…"
