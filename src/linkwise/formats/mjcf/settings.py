"""What <compiler> and <option> of an MJCF file say about how the rest is to be read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from linkwise.core.products import length, times
from linkwise.formats.xml import Element
from linkwise.model.dh import radians
from linkwise.model.model import STANDARD_GRAVITY
from linkwise.model.transform import Transform, turn

TURNS = ("quat", "axisangle", "xyaxes", "zaxis", "euler")  # ways to write an orientation, one for an element
SHORTEST = 1e-6  # a vector below this length has no direction, as in MuJoCo


@dataclass
class MjcfSettings:
    """MuJoCo's defaults; angles are degrees unless the file says radian."""

    degrees: bool = True
    eulerseq: str = "xyz"
    autolimits: bool = True
    inertiafromgeom: str = "auto"
    inertiagrouprange: tuple[int, int] = (0, 5)
    balanceinertia: bool = False
    boundmass: float = 0.0
    boundinertia: float = 0.0
    settotalmass: float = -1.0
    meshdir: str = ""  # where mesh files are, from the folder of the model
    strippath: bool = False
    mesh_inertia: str = (
        "legacy"  # where a <mesh> does not say; older versions had exactmeshinertia for "exact"
    )
    alignfree: bool = False
    fusestatic: bool = False
    fitaabb: bool = False
    acceleration: Sequence[float] = STANDARD_GRAVITY  # gravity, before the flag that switches it off
    density: float = 0.0
    viscosity: float = 0.0
    wind: Sequence[float] = (0.0, 0.0, 0.0)
    flags: dict[str, bool] = field(default_factory=dict)  # what a <flag> says; everything else is enabled

    def on(self, *flags: str) -> bool:
        """Whether all of these are enabled."""
        return all(self.flags.get(name, True) for name in flags)

    @property
    def gravity(self) -> Sequence[float]:
        return self.acceleration if self.on("gravity") else (0.0, 0.0, 0.0)

    @property
    def springs(self) -> bool:
        return self.on("passive", "spring")

    @property
    def dampers(self) -> bool:
        return self.on("passive", "damper")

    @property
    def gravity_compensation(self) -> bool:
        """MuJoCo leaves it out where no passive force is left."""
        return self.springs or self.dampers

    @property
    def fluid(self) -> bool:
        """Whether a fluid resists motion; MuJoCo leaves it out where no passive force is left."""
        return bool(self.density or self.viscosity) and (self.springs or self.dampers)

    @property
    def frictionloss(self) -> bool:
        return self.on("constraint", "frictionloss")

    @property
    def equalities(self) -> bool:
        return self.on("constraint", "equality")

    def angle(self, value: float) -> float:
        """An angle of the file in radians."""
        return radians(value) if self.degrees else value

    def pose(self, element: Element) -> Transform:
        """pos with quat, axisangle, xyaxes, zaxis or euler."""
        pos = element.numbers("pos", 3) if "pos" in element.attrib else (0.0, 0.0, 0.0)
        given = [key for key in TURNS if key in element.attrib]
        rotation = self._rotation(element, given[0]) if given else np.eye(3)
        return Transform(rotation, np.array(pos))

    def _rotation(self, element: Element, key: str) -> np.ndarray:
        if key == "quat":
            quaternion = element.numbers("quat", 4)
            if not any(quaternion):
                raise element.error("quat: all four numbers are zero")
            return Transform.from_quaternion((0, 0, 0), quaternion).rotation
        if key == "axisangle":
            *axis, angle = element.numbers("axisangle", 4)
            return Transform.about(unit(element, key, axis).tolist(), self.angle(angle)).rotation
        if key == "zaxis":
            return from_z_to(unit(element, key, element.numbers("zaxis", 3)))
        if key == "xyaxes":
            values = np.array(element.numbers("xyaxes", 6))
            x = unit(element, key, values[:3])
            y = unit(element, key, values[3:] - times(values[3:], x) * x)
            return np.column_stack([x, y, np.cross(x, y)])
        rotation = np.eye(3)
        for letter, angle in zip(self.eulerseq, element.numbers("euler", 3), strict=True):
            step = turn("xyz".index(letter.lower()), self.angle(angle))
            # lower case turns about the axes as they have become, upper case about those of the parent
            rotation = times(rotation, step) if letter.islower() else times(step, rotation)
        return rotation


def read_settings(root: Element) -> MjcfSettings:
    """From all <compiler> and <option> elements, later ones adding to earlier ones; what changes the dynamics and
    is not known is refused."""
    settings = MjcfSettings()
    for section in root:
        if section.tag == "compiler":
            _compiler(section, settings)
        elif section.tag == "option":
            _option(section, settings)
    for section in root:
        if settings.fluid and settings.fusestatic and "fusestatic" in section.attrib:
            raise section.error(
                "fusestatic in a fluid, which resists the fused bodies otherwise, is not supported"
            )
    return settings


def _compiler(element: Element, settings: MjcfSettings) -> None:
    settings.degrees = (
        _choice(element, "angle", ("degree", "radian"), "degree" if settings.degrees else "radian")
        == "degree"
    )
    settings.eulerseq = element.get("eulerseq", settings.eulerseq)
    if len(settings.eulerseq) != 3 or set(settings.eulerseq.lower()) - set("xyz"):
        raise element.error(f"eulerseq={settings.eulerseq!r}: expected three of the letters x, y, z, X, Y, Z")
    settings.meshdir = element.get("meshdir", element.get("assetdir", settings.meshdir))
    if "exactmeshinertia" in element.attrib:
        settings.mesh_inertia = "exact" if flag(element, "exactmeshinertia", False) else "legacy"
    settings.strippath = flag(element, "strippath", settings.strippath)
    settings.alignfree = flag(element, "alignfree", settings.alignfree)
    settings.autolimits = flag(element, "autolimits", settings.autolimits)
    settings.balanceinertia = flag(element, "balanceinertia", settings.balanceinertia)
    settings.inertiafromgeom = _choice(
        element, "inertiafromgeom", ("false", "true", "auto"), settings.inertiafromgeom
    )
    if "inertiagrouprange" in element.attrib:
        low, high = element.integers("inertiagrouprange", 2)
        settings.inertiagrouprange = (low, high)
    settings.boundmass = element.number("boundmass", settings.boundmass)
    settings.boundinertia = element.number("boundinertia", settings.boundinertia)
    if element.get("coordinate", "local") != "local":
        raise element.error("global coordinates are not supported (MuJoCo itself dropped them)")
    settings.settotalmass = element.number("settotalmass", settings.settotalmass)
    settings.fitaabb = flag(element, "fitaabb", settings.fitaabb)
    settings.fusestatic = flag(element, "fusestatic", settings.fusestatic)
    if settings.fusestatic and settings.inertiafromgeom == "true":
        raise element.error(
            "fusestatic with inertiafromgeom='true': MuJoCo drops the <inertial> of fused bodies then, which is not "
            "supported"
        )


def _option(element: Element, settings: MjcfSettings) -> None:
    if "gravity" in element.attrib:
        settings.acceleration = element.numbers("gravity", 3)
    settings.density = element.number("density", settings.density)
    settings.viscosity = element.number("viscosity", settings.viscosity)
    for key in ("density", "viscosity"):
        if getattr(settings, key) < 0:
            raise element.error(f"{key}={element.get(key)!r}: it cannot be negative")
    if "wind" in element.attrib:
        settings.wind = element.numbers("wind", 3)
    for switches in element:
        for key in switches.attrib:
            settings.flags[key] = _choice(switches, key, ("enable", "disable"), "enable") == "enable"


def _choice(element: Element, key: str, valid: Sequence[str], default: str) -> str:
    value = element.get(key, default)
    if value not in valid:
        raise element.error(f"{key}={value!r}: expected one of {', '.join(valid)}")
    return value


def flag(element: Element, key: str, default: bool) -> bool:
    return _choice(element, key, ("true", "false"), "true" if default else "false") == "true"


def unit(element: Element, key: str, vector: Sequence[float] | np.ndarray) -> np.ndarray:
    """The direction of a vector that must have one. A unit vector stays as it is, to the last bit."""
    v = np.array(vector, dtype=float)
    size = length(v)
    if size < SHORTEST:
        raise element.error(f"{key}: the vector has no direction (its length is below {SHORTEST:g})")
    return v if abs(size - 1.0) < 1e-12 else v / size


def from_z_to(direction: np.ndarray) -> np.ndarray:
    """The smallest rotation that takes the z axis there; half a turn about x where any axis would do."""
    across = np.array([-direction[1], direction[0], 0.0])
    sine = length(across)
    if sine < 1e-10:
        return np.eye(3) if direction[2] > 0 else turn(0, np.pi)
    return Transform.about((across / sine).tolist(), math.atan2(sine, direction[2])).rotation
