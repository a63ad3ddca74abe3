"""What a fluid resists of the bodies of an MJCF file: boxes with their inertias, or geoms as ellipsoids."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.formats.mjcf.geom import SIZES, geom_place
from linkwise.formats.mjcf.settings import MjcfSettings
from linkwise.formats.xml import Element
from linkwise.model.fluid import COEFFICIENTS, SMALLEST, DragBody, Fluid, inertia_box, principal_axes
from linkwise.model.inertia import Inertia
from linkwise.model.transform import Transform


def drag_bodies(
    link: str,
    inertia: Inertia,
    axes: np.ndarray,
    geoms: Sequence[tuple[Element, Transform]],
    settings: MjcfSettings,
) -> list[DragBody]:
    """What a fluid resists of a body: its geoms with ``fluidshape="ellipsoid"``, or the box with its inertia.

    Args:
        link: the name of the body.
        inertia: of the body, about the origin of its frame.
        axes: its principal axes, as MuJoCo takes them: a rotation.
        geoms: its geoms, with their defaults, and the <frame>s around them.
        settings: of the file.
    """
    if inertia.mass < SMALLEST:
        return []
    shaped = [(geom, frame) for geom, frame in geoms if geom.get("fluidshape", "none") == "ellipsoid"]
    if shaped:
        return [_ellipsoid(link, geom, frame, settings) for geom, frame in shaped]
    box = inertia_box(link, inertia, axes)
    return [] if box is None else [box]


def axes_of(
    inertia: Inertia, geoms: Sequence[tuple[Element, Transform]], settings: MjcfSettings
) -> np.ndarray:
    """The principal axes that MuJoCo takes for an inertia from geoms: those of the only one, if it is one."""
    if len(geoms) == 1:
        geom, frame = geoms[0]
        kind = geom.get("type", "sphere")
        if kind in SIZES and "mesh" not in geom.attrib:
            return (frame @ geom_place(geom, kind, settings)[0]).rotation
    return principal_axes(inertia.matrix_about_com)


def _ellipsoid(link: str, geom: Element, frame: Transform, settings: MjcfSettings) -> DragBody:
    kind = geom.get("type", "sphere")
    if kind not in SIZES or "mesh" in geom.attrib:
        raise geom.error("fluidshape='ellipsoid' of a mesh is not supported; give the geom type='ellipsoid'")
    pose, size = geom_place(geom, kind, settings)
    x = size[0]
    axes = {
        "sphere": lambda: (x, x, x),
        "capsule": lambda: (x, x, x + size[1]),
        "cylinder": lambda: (x, x, size[1]),
    }.get(kind, lambda: (x, size[1], size[2]))()
    given = (
        geom.numbers("fluidcoef", len(geom.text_of("fluidcoef").split()))
        if "fluidcoef" in geom.attrib
        else ()
    )
    a, b, c, d, e = (*given, *COEFFICIENTS[len(given) :])
    return DragBody(link, frame @ pose, "ellipsoid", axes, (a, b, c, d, e))


def fluid(bodies: Sequence[DragBody], settings: MjcfSettings) -> Fluid | None:
    """The fluid of a file; None where it has none."""
    if not settings.fluid:
        return None
    x, y, z = settings.wind
    return Fluid(settings.density, settings.viscosity, (x, y, z), tuple(bodies))
