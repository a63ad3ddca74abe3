"""What <compiler> and <option> of an MJCF file say about how the rest is to be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.model.dh import radians
from linkwise.model.model import STANDARD_GRAVITY
from linkwise.model.transform import Transform, turn
from linkwise.model.xml import Element


@dataclass
class Settings:
    """MuJoCo's defaults; angles are degrees unless the file says radian."""

    degrees: bool = True
    eulerseq: str = "xyz"
    autolimits: bool = True
    inertiafromgeom: str = "auto"
    inertiagrouprange: tuple[float, float] = (0.0, 5.0)
    balanceinertia: bool = False
    boundmass: float = 0.0
    boundinertia: float = 0.0
    gravity: Sequence[float] = STANDARD_GRAVITY
    springs: bool = True
    dampers: bool = True
    frictionloss: bool = True
    equalities: bool = True

    def angle(self, value: float) -> float:
        """An angle of the file in radians."""
        return radians(value) if self.degrees else value

    def pose(self, element: Element) -> Transform:
        """pos with quat, axisangle, xyaxes, zaxis or euler."""
        pos = element.numbers("pos", 3) if "pos" in element.attrib else (0.0, 0.0, 0.0)
        given = [key for key in ("quat", "axisangle", "xyaxes", "zaxis", "euler") if key in element.attrib]
        if len(given) > 1:
            raise element.error(f"{given[0]!r} and {given[1]!r} exclude each other")
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
            y = unit(element, key, values[3:] - (values[3:] @ x) * x)
            return np.column_stack([x, y, np.cross(x, y)])
        rotation = np.eye(3)
        for letter, angle in zip(self.eulerseq, element.numbers("euler", 3), strict=True):
            step = turn("xyz".index(letter.lower()), self.angle(angle))
            # lower case turns about the axes as they have become, upper case about those of the parent
            rotation = rotation @ step if letter.islower() else step @ rotation
        return rotation


def read_settings(root: Element) -> Settings:
    """From all <compiler> and <option> elements; what changes the dynamics and is not known is refused."""
    settings = Settings()
    for section in root:
        if section.tag == "compiler":
            _compiler(section, settings)
        elif section.tag == "option":
            _option(section, settings)
    return settings


def _compiler(element: Element, settings: Settings) -> None:
    settings.degrees = (
        _choice(element, "angle", ("degree", "radian"), "degree" if settings.degrees else "radian")
        == "degree"
    )
    settings.eulerseq = element.get("eulerseq", settings.eulerseq)
    if len(settings.eulerseq) != 3 or set(settings.eulerseq.lower()) - set("xyz"):
        raise element.error(f"eulerseq={settings.eulerseq!r}: expected three of the letters x, y, z, X, Y, Z")
    settings.autolimits = flag(element, "autolimits", settings.autolimits)
    settings.balanceinertia = flag(element, "balanceinertia", settings.balanceinertia)
    settings.inertiafromgeom = _choice(
        element, "inertiafromgeom", ("false", "true", "auto"), settings.inertiafromgeom
    )
    if "inertiagrouprange" in element.attrib:
        low, high = element.numbers("inertiagrouprange", 2)
        settings.inertiagrouprange = (low, high)
    settings.boundmass = element.number("boundmass", settings.boundmass)
    settings.boundinertia = element.number("boundinertia", settings.boundinertia)
    if element.get("coordinate", "local") != "local":
        raise element.error("global coordinates are not supported (MuJoCo itself dropped them)")
    if element.number("settotalmass", -1.0) > 0:
        raise element.error("settotalmass, which rescales all masses, is not supported")


def _option(element: Element, settings: Settings) -> None:
    if "gravity" in element.attrib:
        settings.gravity = element.numbers("gravity", 3)
    for key in ("density", "viscosity"):
        if element.number(key, 0.0) != 0:
            raise element.error(f"{key}: forces of a surrounding fluid are not supported")
    switches = element.only("flag")
    if switches is None:
        return

    def on(*keys: str) -> bool:
        return all(_choice(switches, key, ("enable", "disable"), "enable") == "enable" for key in keys)

    if not on("gravity"):
        settings.gravity = (0.0, 0.0, 0.0)
    settings.springs = on("passive", "spring")
    settings.dampers = on("passive", "damper")
    settings.frictionloss = on("constraint", "frictionloss")
    settings.equalities = on("constraint", "equality")


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
    length = float(np.linalg.norm(v))
    if length < 1e-10:
        raise element.error(f"{key}: the vector has no direction")
    return v if abs(length - 1.0) < 1e-12 else v / length


def from_z_to(direction: np.ndarray) -> np.ndarray:
    """The smallest rotation that takes the z axis there; half a turn about x where any axis would do."""
    across = np.array([-direction[1], direction[0], 0.0])
    sine = float(np.linalg.norm(across))
    if sine < 1e-10:
        return np.eye(3) if direction[2] > 0 else turn(0, np.pi)
    return Transform.about((across / sine).tolist(), float(np.arctan2(sine, direction[2]))).rotation
