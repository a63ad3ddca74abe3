"""The inertia of a body that an MJCF file describes by the solids it consists of."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from linkwise.formats.mjcf.mesh import Meshes
from linkwise.formats.mjcf.settings import MjcfSettings, flag, from_z_to, unit
from linkwise.formats.xml import Element
from linkwise.model.inertia import Inertia
from linkwise.model.transform import Transform

WATER = 1000.0  # MuJoCo's density where none is given [kg/m³]
SITE_SIZE = "0.005"  # where none is given [m]
ELLIPSOID_SHELL = 1e-6  # thickness of the shell by which MuJoCo approximates a surface [m]
SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}  # numbers that a solid needs


def geom_inertia(geom: Element, frame: Transform, settings: MjcfSettings, meshes: Meshes) -> Inertia | None:
    """The inertia of one <geom> (with its defaults) in the body's frame; None if it counts as no mass."""
    low, high = settings.inertiagrouprange
    if not low <= geom.integer("group", 0) <= high:
        return None
    kind = geom.get("type", "sphere")
    mass = geom.number("mass") if "mass" in geom.attrib else None
    density = geom.number("density", WATER)
    if mass == 0 or (mass is None and density == 0):
        return None
    if kind == "mesh" and "mesh" in geom.attrib:
        return _mesh_inertia(geom, mass, density, meshes).expressed_in(frame @ settings.pose(geom))
    if kind not in SIZES:
        raise geom.error(
            f"the body has no <inertial>, and the inertia of type {kind!r} is not computed here; "
            "add an <inertial>, or give the geom mass='0'"
        )
    pose, size = (
        _fitted(geom, kind, settings, meshes) if "mesh" in geom.attrib else geom_place(geom, kind, settings)
    )
    amount, moments = (
        shell_of(kind, size)
        if flag(geom, "shellinertia", False)
        else (_volume(kind, size), _moments(kind, size))
    )
    if mass is None:
        mass = density * amount  # of a shell: the density of its surface [kg/m²]
    own = Inertia.from_com(mass, (0, 0, 0), [mass * moment for moment in moments])
    return own.expressed_in(frame @ pose)


def _fitted(
    geom: Element, kind: str, settings: MjcfSettings, meshes: Meshes
) -> tuple[Transform, Sequence[float]]:
    """Pose and sizes of a simple solid that stands for a mesh: MuJoCo fits it to the box with the inertia of the mesh,
    whose z axis is the longest one."""
    if settings.fitaabb:
        raise geom.error(
            "fitaabb: solids fitted to the bounds of a mesh are not supported; add an <inertial>"
        )
    solid = meshes.solid(geom)
    moments, axes = np.linalg.eigh(solid.inertia)
    moments, axes = moments[::-1], axes[:, ::-1]
    axes = axes * np.array([1.0, 1.0, np.sign(np.linalg.det(axes))])
    x, y, z = (math.sqrt(max(0.0, 6 * (moments.sum() - 2 * moment) / solid.size)) / 2 for moment in moments)
    half = {
        "sphere": [(x + y + z) / 3],
        "capsule": [(x + y) / 2, max(0.0, z - (x + y) / 4)],
        "cylinder": [(x + y) / 2, z],
    }.get(kind, [x, y, z])
    scale = geom.number("fitscale", 1.0)
    return settings.pose(geom) @ Transform(axes, solid.com), [scale * size for size in half]


def _mesh_inertia(geom: Element, mass: float | None, density: float, meshes: Meshes) -> Inertia:
    """In the frame of the geom; the density of a shell is that of its surface [kg/m²]."""
    if "shellinertia" in geom.attrib:
        raise geom.error("shellinertia: for a mesh, give the <mesh> inertia='shell' instead")
    solid = meshes.solid(geom)
    if mass is None:
        mass = density * solid.size
    return Inertia.from_com(mass, solid.com, mass / solid.size * solid.inertia)


def check_geom(geom: Element, settings: MjcfSettings, moving: bool) -> None:
    """Refuse a geom (with its defaults) that MuJoCo refuses, also where its inertia does not count."""
    kind = geom.get("type", "sphere")
    for key in ("mass", "density"):
        if geom.number(key, 0.0) < 0:
            raise geom.error(f"{key}={geom.get(key)!r}: it cannot be negative")
    if kind == "plane" and moving:
        raise geom.error("a plane cannot move; only a body that is fixed to the world can have one")
    if kind == "plane" and ("size" not in geom.attrib or (*_sizes(geom), 0.0, 0.0, 0.0)[2] <= 0):
        raise geom.error("size: a plane needs three numbers, the last one positive")
    if kind in SIZES and "mesh" not in geom.attrib:
        geom_place(geom, kind, settings)
    else:
        settings.pose(geom)
        if "fromto" in geom.attrib:
            raise geom.error(f"fromto: a {kind} has no ends")


def site_pose(site: Element, settings: MjcfSettings) -> Transform:
    """The pose of a <site> (with its defaults) in what it stands in."""
    kind = site.get("type", "sphere")
    if kind == "mesh":
        return settings.pose(site)
    if kind not in SIZES:
        raise site.error(f"type={kind!r}: expected one of {', '.join(SIZES)}")
    given = site.get("size", "").split()
    size = " ".join([*given, *[SITE_SIZE] * (3 - len(given))])
    full = Element(site.tag, {**site.attrib, "size": size}, site.where, site.line, site.parent)
    return geom_place(full, kind, settings)[0]


def _sizes(geom: Element) -> tuple[float, ...]:
    given = len(geom.text_of("size").split())
    if given > 3:
        raise geom.error(f"size={geom.get('size')!r}: expected at most 3 numbers")
    return geom.numbers("size", given)


def geom_place(geom: Element, kind: str, settings: MjcfSettings) -> tuple[Transform, Sequence[float]]:
    """The pose of the solid in the body, and its sizes (half lengths and radii)."""
    size = list(_sizes(geom))
    pose = settings.pose(geom)
    if "fromto" not in geom.attrib:
        if len(size) < SIZES[kind]:
            raise geom.error(f"size: a {kind} needs {SIZES[kind]} numbers, got {len(size)}")
    else:
        if kind == "sphere":
            raise geom.error("fromto: a sphere has no ends")
        if pose.translation.any():
            raise geom.error("'pos' and 'fromto' exclude each other")
        ends = np.array(geom.numbers("fromto", 6))
        along = ends[:3] - ends[3:]
        half = float(np.linalg.norm(along)) / 2
        size = [*[size[0]] * (SIZES[kind] - 1), half]  # MuJoCo takes one number for both sides of a box
        pose = Transform(from_z_to(unit(geom, "fromto", along)), (ends[:3] + ends[3:]) / 2)
    size = size[: SIZES[kind]]
    if min(size) <= 0:
        raise geom.error(f"size: expected positive numbers, got {geom.get('size')!r}")
    return pose, size


def _volume(kind: str, size: Sequence[float]) -> float:
    if kind == "box":
        return 8 * size[0] * size[1] * size[2]
    if kind == "ellipsoid":
        return 4 / 3 * math.pi * size[0] * size[1] * size[2]
    r = size[0]
    ball = 4 / 3 * math.pi * r**3
    if kind == "sphere":
        return ball
    tube = 2 * math.pi * r**2 * size[1]
    return tube if kind == "cylinder" else tube + ball


def _moments(kind: str, size: Sequence[float]) -> tuple[float, float, float]:
    """Principal moments about the centre, along the solid's axes, for a mass of 1 kg."""
    if kind in ("box", "ellipsoid"):
        share = 1 / (3 if kind == "box" else 5)
        x, y, z = (s * s for s in size)
        return share * (y + z), share * (x + z), share * (x + y)
    r = size[0]
    if kind == "sphere":
        both = 2 / 5 * r**2
        return both, both, both
    half = size[1]
    caps = 0.0 if kind == "cylinder" else 2 * r / (2 * r + 3 * half)  # mass of the two half balls
    tube = 1 - caps
    across = tube * (r**2 / 4 + half**2 / 3) + caps * (2 / 5 * r**2 + half**2 + 3 / 4 * half * r)
    return across, across, tube * r**2 / 2 + caps * 2 / 5 * r**2


def shell_of(kind: str, size: Sequence[float]) -> tuple[float, tuple[float, float, float]]:
    """The area of the surface of a solid [m²], and its principal moments for a mass of 1 kg spread over it."""
    if kind == "box":
        a, b, c = size
        x, y, z = b * c, a * c, a * b  # of the faces across each axis, in eighths of their areas
        total = x + y + z

        def about(own: float, one: float, other: float, p: float, q: float) -> float:
            return (
                own * (p * p + q * q) / 3 + one * (p * p + q * q / 3) + other * (q * q + p * p / 3)
            ) / total

        return 8 * total, (about(x, y, z, b, c), about(y, x, z, a, c), about(z, x, y, a, b))
    if kind == "ellipsoid":
        return _ellipsoid_shell(size)
    r = size[0]
    ball = 4 * math.pi * r**2
    if kind == "sphere":
        both = 2 / 3 * r**2
        return ball, (both, both, both)
    half = size[1]
    ends = ball if kind == "capsule" else ball / 2
    area = 4 * math.pi * r * half + ends
    tube, caps = 1 - ends / area, ends / area
    of_caps = (
        (r**2 / 4 + half**2, r**2 / 2)
        if kind == "cylinder"
        else (2 / 3 * r**2 + half**2 + half * r, 2 / 3 * r**2)
    )
    across = tube * (r**2 / 2 + half**2 / 3) + caps * of_caps[0]
    return area, (across, across, tube * r**2 + caps * of_caps[1])


def _ellipsoid_shell(size: Sequence[float]) -> tuple[float, tuple[float, float, float]]:
    """As MuJoCo approximates it: Thomsen's formula for the area, and the difference of two solids."""
    a, b, c = size
    p = 1.6075
    area = 4 * math.pi * (((a * b) ** p + (a * c) ** p + (b * c) ** p) / 3) ** (1 / p)
    outer = [s + ELLIPSOID_SHELL for s in size]
    large, small = _volume("ellipsoid", outer), _volume("ellipsoid", size)
    pairs = zip(_moments("ellipsoid", outer), _moments("ellipsoid", size), strict=True)
    x, y, z = ((large * o - small * i) / (large - small) for o, i in pairs)
    return area, (x, y, z)
