"""How many numbers, or which words, the attributes of an MJCF file's arm and settings may have.

The reader itself checks what it reads. These are the attributes that it does not read (contact parameters, colours,
solver settings), and those of elements that happen not to count: MuJoCo refuses the file, so it is refused here.
"""

from __future__ import annotations

from typing import Any

from linkwise.formats.xml import Element

BOOL = ("true", "false")
AUTO = ("true", "false", "auto")
SWITCH = ("enable", "disable")

# an attribute has exactly (or, as a pair, at least and at most) so many numbers, or one of several words
Kind = int | tuple[int, int] | tuple[str, ...]

POSE: dict[str, Kind] = {"pos": 3, "quat": 4, "axisangle": 4, "xyaxes": 6, "zaxis": 3, "euler": 3}
SOLVER: dict[str, Kind] = {"solref": (1, 2), "solimp": (1, 5), "margin": 1}
SHAPE: dict[str, Kind] = {**POSE, "size": (1, 3), "fromto": 6, "rgba": 4}
FLUID = {"fluidshape": ("none", "ellipsoid"), "fluidcoef": (1, 5)}
JOINT_SOLVER: dict[str, Kind] = {
    f"{key}{what}": kind
    for what in ("limit", "friction")
    for key, kind in (("solref", (1, 2)), ("solimp", (1, 5)))
}
KINDS: dict[str, dict[str, Kind]] = {
    "compiler": {
        **{
            key: BOOL
            for key in ("strippath", "fitaabb", "usethread", "fusestatic", "discardvisual", "alignfree")
        },
        "saveinertial": BOOL,
        "boundmass": 1,
        "boundinertia": 1,
        "settotalmass": 1,
    },
    "option": {
        **{
            key: 1
            for key in ("timestep", "impratio", "tolerance", "ls_tolerance", "noslip_tolerance", "density")
        },
        **{key: 1 for key in ("ccd_tolerance", "sleep_tolerance", "viscosity", "o_margin")},
        **{key: 3 for key in ("gravity", "wind", "magnetic")},
        "o_solref": (1, 2),
        "o_solimp": (1, 5),
        "o_friction": (1, 5),
        "integrator": ("Euler", "RK4", "implicit", "implicitfast"),
        "cone": ("pyramidal", "elliptic"),
        "jacobian": ("dense", "sparse", "auto"),
        "solver": ("PGS", "CG", "Newton"),
    },
    "body": {**POSE, "gravcomp": 1, "mocap": BOOL},
    "frame": POSE,
    "inertial": {**POSE, "mass": 1, "diaginertia": 3, "fullinertia": 6},
    "joint": {
        **JOINT_SOLVER,
        **{key: 1 for key in ("margin", "ref", "springref", "armature", "frictionloss")},
        **{key: 2 for key in ("range", "actuatorfrcrange", "springdamper")},
        **{key: (1, 3) for key in ("damping", "stiffness")},
        "pos": 3,
        "axis": 3,
        "type": ("free", "ball", "slide", "hinge"),
        "limited": AUTO,
        "actuatorfrclimited": AUTO,
        "actuatorgravcomp": BOOL,
    },
    "geom": {
        **SHAPE,
        **SOLVER,
        **FLUID,
        **{key: 1 for key in ("mass", "density", "solmix", "gap", "fitscale")},
        "friction": (1, 3),
        "shellinertia": BOOL,
        "type": ("plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "sdf"),
    },
    "site": {
        **SHAPE,
        "type": ("sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "plane", "hfield", "sdf"),
    },
}
INTEGERS = {
    "geom": ("contype", "conaffinity", "condim", "group", "priority"),
    "joint": ("group",),
    "site": ("group",),
    "option": (
        *("iterations", "ls_iterations", "noslip_iterations", "ccd_iterations"),
        *("sdf_iterations", "sdf_initpoints"),
    ),
}
CONDIM = (1, 3, 4, 6)


def check_values(element: Element) -> None:
    """Refuse a value that MuJoCo refuses, in an element of the tree, the settings or the defaults of these. An empty
    list of numbers counts as not given, as there."""
    kinds = {**KINDS.get(element.tag, {}), **dict.fromkeys(INTEGERS.get(element.tag, ()), 1)}
    if element.tag == "flag":
        kinds = dict.fromkeys(element.attrib, SWITCH)
    for key, kind in kinds.items():
        text = element.get(key)
        if text is None:
            continue
        if isinstance(kind, tuple) and isinstance(kind[0], str):
            if text not in kind:
                raise element.error(f"{key}={text!r}: expected one of {', '.join(map(str, kind))}")
        elif not text.strip():
            del element.attrib[key]
        else:
            _check_numbers(element, key, kind)
    for key in INTEGERS.get(element.tag, ()):
        value = element.integer(key, 1)
        if key == "condim" and value not in CONDIM:
            raise element.error(f"condim={value}: expected one of {', '.join(map(str, CONDIM))}")


def _check_numbers(element: Element, key: str, kind: Any) -> None:
    if isinstance(kind, int):
        element.numbers(key, kind)
        return
    least, most = kind
    given = len(element.text_of(key).split())
    if not least <= given <= most:
        raise element.error(f"{key}={element.get(key)!r}: expected {least} to {most} numbers, got {given}")
    element.numbers(key, given)
