"""What of an MJCF file may touch what: geoms with ``contype``, ``conaffinity``, ``condim``, ``friction``, ``priority``,
and the pairs that ``<contact>`` names or excludes.

Contact is rigid here, so time constants in ``solref`` and ``solimp`` have no meaning. Shapes touch where their distance
is the sum of their margins, as in MuJoCo 4. A pair has its own numbers: those of its geoms do not count, as in MuJoCo.
A negative ``solref`` is a stiffness and a damping of accelerations: MuJoCo's normal force at rest is that of a spring
with −solref[0]/((1 − d) A), where d is the second number of ``solimp`` and 1/A the mass that the contact moves.
Friction against spinning and rolling is that of condim 4 and 6. Solids fitted to meshes are refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from linkwise.errors import ModelError
from linkwise.formats.mjcf.geom import SIZES, geom_place
from linkwise.formats.mjcf.joint import range_of
from linkwise.formats.mjcf.reader import WORLD
from linkwise.formats.xml import Element
from linkwise.geometry.contact_choice import Findings, Geom, Rubbing, Touching, hull_notes
from linkwise.geometry.height_files import height_field
from linkwise.geometry.mesh_files import MeshFiles
from linkwise.geometry.mjcf_looks import _mesh_name
from linkwise.geometry.mjcf_looks import _Reader as GeomReader
from linkwise.geometry.solids import joined
from linkwise.model import Transform
from linkwise.model.contacts import Tendon
from linkwise.model.shapes import Shape

MOST_CORNERS = 16
"""Corners that stand for the convex hull of a mesh."""
DEFAULT_FRICTION = "1 0.005 0.0001"
PAIR_FRICTION = "1 1 0.005 0.0001 0.0001"


@dataclass(frozen=True)
class _Law:
    """Numbers of a geom or of a pair that decide how it touches."""

    condim: int
    friction: tuple[float, ...]
    """Against sliding, spinning and rolling; of a pair 5 numbers, two for sliding and two for rolling."""
    solref: tuple[float, ...]
    solimp: float
    """The second number: the impedance that is reached."""
    margin: float

    @classmethod
    def of(cls, element: Element, friction: str) -> _Law:
        """Of an element with its defaults. ``friction``: what MuJoCo takes for numbers that are not given."""
        return cls(
            element.integer("condim", 3),
            _filled(element, "friction", friction),
            _filled(element, "solref", "0.02 1")[:2],
            _filled(element, "solimp", "0.9 0.95 0.001 0.5 2")[1],
            element.number("margin", 0.0),
        )

    def rubbing(self) -> Rubbing:
        """What of the numbers counts."""
        # of a pair those along the first and about the first of the two tangents
        sliding, *turning = (
            self.friction if len(self.friction) == 3 else [self.friction[k] for k in (0, 2, 3)]
        )
        stiffness, damping = self._softness()
        return Rubbing(
            sliding if self.condim > 1 else 0.0,
            turning[0] if self.condim > 3 else 0.0,
            turning[1] if self.condim > 4 else 0.0,
            stiffness,
            damping,
            self.margin,
        )

    def _softness(self) -> tuple[float, float]:
        """Stiffness [1/s²] and damping [1/s] for a mass of one kilogram; zeros: rigid.

        A ``solref`` of which one number is negative and the other is positive is replaced by the usual one in MuJoCo.
        """
        if self.solref[0] >= 0.0 or self.solref[1] > 0.0:
            return 0.0, 0.0
        rest = max(1.0 - self.solimp, 1e-4)
        return -self.solref[0] / rest, -self.solref[1] / rest


@dataclass(frozen=True)
class _MjcfGeom(Geom):
    """A geom with what decides about its contacts."""

    law: _Law = field(kw_only=True)
    contype: int = 1
    conaffinity: int = 1
    priority: int = 0
    solmix: float = 1.0


def mjcf_contacts(root: Element, files: MeshFiles) -> Findings:
    """Geoms that collide, and which pairs of them do. ``root`` has its includes expanded."""
    reader = _Contacts(root, files)
    geoms = list(reader.geoms())
    by_name = {geom.name: k for k, geom in enumerate(geoms) if geom.name}
    sections = [child for section in root if section.tag == "contact" for child in section]
    excluded = {frozenset((e.text_of("body1"), e.text_of("body2"))) for e in sections if e.tag == "exclude"}
    named: list[Touching] = []
    for pair in (e for e in sections if e.tag == "pair"):
        named.append(reader.pair(pair, by_name, geoms))
    settings = reader.settings
    for flag in ("contact", "constraint"):
        if not settings.on(flag):
            return Findings((), (), (f"the file's <flag {flag}='disable'/> turns all contacts off",))
    if settings.flags.get("override", False):
        raise root.error("<flag override='enable'/>: numbers of <option> for all contacts are not read")
    pairs: dict[frozenset[int], Touching] = {}
    for i, first in enumerate(geoms):
        for k in range(i + 1, len(geoms)):
            second = geoms[k]
            if frozenset((first.link, second.link)) in excluded:
                continue
            if first.contype & second.conaffinity or second.contype & first.conaffinity:
                pairs[frozenset((i, k))] = Touching(i, k, _combined(first, second).rubbing())
    for one in named:
        pairs[frozenset((one.first, one.second))] = one
    tendons = tuple(reader.limited_tendons()) if settings.on("limit") else ()
    return Findings(
        tuple(geoms),
        tuple(pairs.values()),
        (*reader.notes, *hull_notes(reader.hulls)),
        tendons=tendons,
        neighbours=not settings.on("filterparent"),
        stops=settings.on("limit"),
    )


def _combined(first: _MjcfGeom, second: _MjcfGeom) -> _Law:
    """That of the higher priority; of equal ones the larger friction, and a mean of what is soft. Margins add."""
    a, b = first.law, second.law
    margin = a.margin + b.margin
    if first.priority != second.priority:
        return replace(a if first.priority > second.priority else b, margin=margin)
    whole = first.solmix + second.solmix
    part = first.solmix / whole if whole > 0.0 else 0.5
    solref = tuple(map(min, a.solref, b.solref))
    if min(a.solref[0], b.solref[0]) > 0.0:
        solref = tuple(part * x + (1.0 - part) * y for x, y in zip(a.solref, b.solref, strict=True))
    return _Law(
        max(a.condim, b.condim),
        tuple(map(max, a.friction, b.friction)),
        solref,
        part * a.solimp + (1.0 - part) * b.solimp,
        margin,
    )


def _filled(element: Element, key: str, usual: str) -> tuple[float, ...]:
    """Numbers of an attribute; those that are not given at its end are the usual ones."""
    given, missing = element.get(key, "").split(), usual.split()
    if len(given) > len(missing):
        raise element.error(f"{key}={element.get(key)!r}: expected at most {len(missing)} numbers")
    full = {**element.attrib, key: " ".join([*given, *missing[len(given) :]])}
    return Element(element.tag, full, element.where, element.line, element.parent).numbers(key, len(missing))


class _Contacts(GeomReader):
    def __init__(self, root: Element, files: MeshFiles):
        super().__init__(root, files, "collision")
        self.notes: list[str] = []
        self.hulls: list[tuple[str, Shape, np.ndarray]] = []

    def limited_tendons(self) -> Iterator[Tendon]:
        """Tendons that end somewhere."""
        for given in (each for section in self.root if section.tag == "tendon" for each in section):
            tendon = self.defaults.resolve(given, kind="tendon")
            ends = range_of(tendon, "range", "limited", self.settings)
            if ends is None:
                continue
            options = {"lower": ends[0], "upper": ends[1], "name": tendon.get("name", "")}
            if tendon.tag == "fixed":
                weights: dict[str, float] = {}
                for part in given:
                    joint = part.text_of("joint")
                    weights[joint] = weights.get(joint, 0.0) + part.number("coef")
                yield Tendon(weights, **options)
                continue
            other = [part.tag for part in given if part.tag != "site"]
            if other:
                raise tendon.error(
                    f"contact=True: the range of a tendon with a <{other[0]}> is not modelled; of spatial "
                    "tendons those through sites alone are"
                )
            yield Tendon(through=[part.text_of("site") for part in given], **options)

    def geoms(self) -> Iterator[_MjcfGeom]:
        for section in (s for s in self.root if s.tag == "worldbody"):
            yield from self._geoms(section, WORLD, Transform.identity(), section.get("childclass"))

    def pair(self, pair: Element, by_name: dict[str, int], geoms: list[_MjcfGeom]) -> Touching:
        pair = self.defaults.resolve(pair)
        ends: list[int] = []
        for key in ("geom1", "geom2"):
            name = pair.text_of(key)
            if name not in by_name:
                raise pair.error(f"{key}={name!r}: no geom of this name that can touch")
            ends.append(by_name[name])
        law = _Law.of(pair, PAIR_FRICTION)  # numbers of the geoms do not count, also where the pair has none
        x, y, _, about_x, about_y = law.friction
        if (law.condim > 1 and x != y) or (law.condim > 4 and about_x != about_y):
            self.notes.append(
                f"{geoms[ends[0]].label} and {geoms[ends[1]].label}: friction is the same in all directions here, as "
                f"along the first axis of friction={pair.get('friction')!r}"
            )
        return Touching(ends[0], ends[1], law.rubbing(), named=True)

    def _geoms(
        self, parent: Element, link: str, frame: Transform, childclass: str | None
    ) -> Iterator[_MjcfGeom]:
        for child in parent:
            if child.tag == "frame":
                inner = frame @ self.settings.pose(child)
                yield from self._geoms(child, link, inner, child.get("childclass", childclass))
            elif child.tag == "body":
                inner_class = child.get("childclass", childclass)
                yield from self._geoms(child, child.get("name", ""), Transform.identity(), inner_class)
            elif child.tag in ("attach", "flexcomp", "composite", "replicate"):
                raise child.error(f"<{child.tag}>: contacts of what it makes are not read")
            elif child.tag == "geom":
                geom = self.defaults.resolve(child, childclass)
                if self._collides(geom):
                    yield self._read(geom, link, frame)

    def _collides(self, geom: Element) -> bool:
        named = {
            e.get(key)
            for s in self.root
            if s.tag == "contact"
            for e in s
            if e.tag == "pair"
            for key in ("geom1", "geom2")
        }
        return (
            geom.integer("contype", 1) != 0
            or geom.integer("conaffinity", 1) != 0
            or (geom.get("name") is not None and geom.get("name") in named)
        )

    def _read(self, geom: Element, link: str, frame: Transform) -> _MjcfGeom:
        if not link:
            raise geom.error("its body has no name, so its contacts cannot be read")
        kind = geom.get("type", "sphere")  # also where it names a mesh, to which the sphere is fitted then
        law = _Law.of(geom, DEFAULT_FRICTION)
        label = geom.get("name") or f"{kind} of {link}"
        pose, kind, sizes, grid = self._solid(geom, kind, label)
        pose = frame @ pose
        shape = Shape(
            link,
            kind,
            sizes,
            offset=pose.translation.tolist(),
            rotation=pose.rotation.tolist(),
            **grid,
        )
        return _MjcfGeom(
            link,
            shape,
            label,
            law.friction[0],
            geom.get("name", ""),
            law=law,
            contype=geom.integer("contype", 1),
            conaffinity=geom.integer("conaffinity", 1),
            priority=geom.integer("priority", 0),
            solmix=geom.number("solmix", 1.0),
        )

    def _field(self, geom: Element, label: str) -> tuple[tuple[float, float], np.ndarray]:
        """(extent, heights) of a height field."""
        name = geom.text_of("hfield")
        assets = [child for section in self.root if section.tag == "asset" for child in section]
        known = {_mesh_name(each): each for each in assets if each.tag == "hfield"}
        if name not in known:
            raise geom.error(f"no height field {name!r} in <asset>")
        folder = ""
        for section in (each for each in self.root if each.tag == "compiler"):
            folder = section.get("assetdir", folder)
        heights, extent, note = height_field(self.defaults.resolve(known[name]), folder, self.files.roots)
        self.notes.append(f"{label}: {note}")
        return extent, heights

    def _solid(
        self, geom: Element, kind: str, label: str
    ) -> tuple[Transform, str, tuple[float, ...], dict[str, Any]]:
        """(pose, kind of shape, sizes, corners or heights)."""
        if kind == "plane":
            return self.settings.pose(geom), "plane", (), {}
        if kind == "hfield":
            extent, heights = self._field(geom, label)
            return self.settings.pose(geom), "height_field", extent, {"heights": heights}
        if kind == "mesh":
            vertices = joined([part.mesh for part in self._mesh(geom)]).vertices
            hull = Shape.hull("mesh", vertices, most=MOST_CORNERS)
            self.hulls.append((label, hull, vertices))
            return self.settings.pose(geom), "hull", (), {"points": tuple(hull.points)}
        if kind not in SIZES:
            raise geom.error(f"type={kind!r}: its contacts are not modelled")
        if "mesh" in geom.attrib:
            raise geom.error(f"a {kind} that is fitted to a mesh: its contacts are not modelled")
        pose, size = geom_place(geom, kind, self.settings)
        if kind == "box":
            return pose, kind, tuple(2.0 * s for s in size), {}
        if kind in ("capsule", "cylinder"):
            return pose, kind, (size[0], 2.0 * size[1]), {}
        return pose, kind, tuple(size), {}


__all__ = ["ModelError", "mjcf_contacts"]
