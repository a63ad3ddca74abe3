"""One <joint> of an MJCF file, with its defaults, as numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from linkwise.core.products import times
from linkwise.formats.mjcf.settings import MjcfSettings, flag, unit
from linkwise.formats.xml import Element
from linkwise.model.joint import Limits
from linkwise.model.transform import Transform

Ends = tuple[float, float]
EVERY: Ends = (-math.inf, math.inf)
TYPES = {"hinge": "revolute", "slide": "prismatic", "ball": "ball", "free": "floating"}


@dataclass(frozen=True)
class MjcfJoint:
    """``anchor`` [m] and ``axis`` are in the body's frame; ``ref`` is q in the pose that the file draws."""

    type: str
    axis: tuple[float, float, float]
    anchor: np.ndarray
    ref: float
    limits: Limits  # without those of its actuators
    forces: Ends  # of all its actuators together, as it allows [N·m or N]
    rotor_inertia: float
    viscous_friction: float
    coulomb_friction: float
    terms: dict[str, float]
    carries: bool  # whether its motor carries what gravcomp of bodies would
    rest: float  # the position at which springs of tendons are at rest
    springdamper: (
        tuple[float, float] | None
    )  # time constant [s] and damping ratio, which fix stiffness and damping

    @property
    def one_axis(self) -> bool:
        return self.type in ("revolute", "prismatic")


def read_joint(joint: Element, frame: Transform, settings: MjcfSettings) -> MjcfJoint:
    """From an element with its defaults; ``frame`` is the pose of the <frame> around it in the body."""
    kind = joint.get("type", "hinge")
    if kind not in TYPES:
        raise joint.error(f"type {kind!r} is not supported; expected one of {', '.join(TYPES)}")
    if kind == "free" and joint.number("frictionloss", 0.0) != 0.0:
        raise joint.error(
            "frictionloss of a free joint, which MuJoCo applies along the axes of the world, is not supported"
        )
    own_axis = joint.numbers("axis", 3) if "axis" in joint.attrib else (0.0, 0.0, 1.0)
    pos = joint.numbers("pos", 3) if "pos" in joint.attrib else (0.0, 0.0, 0.0)
    hinge = kind == "hinge"
    if kind == "ball":
        _ball_range(joint, settings)
    one_axis = kind in ("hinge", "slide")
    ref = joint.number("ref", 0.0) if one_axis else 0.0
    x, y, z = times(frame.rotation, unit(joint, "axis", own_axis)).tolist()
    return MjcfJoint(
        type=TYPES[kind],
        axis=(x, y, z),
        anchor=times(frame.rotation, np.array(pos)) + frame.translation,
        ref=settings.angle(ref) if hinge else ref,
        limits=_limits(joint, hinge, settings) if one_axis else Limits(),
        forces=(range_of(joint, "actuatorfrcrange", "actuatorfrclimited", settings) if one_axis else None)
        or EVERY,
        rotor_inertia=joint.number("armature", 0.0),
        viscous_friction=_damping(joint) if settings.dampers else 0.0,
        coulomb_friction=joint.number("frictionloss", 0.0) if settings.frictionloss else 0.0,
        terms={**(_spring(joint, hinge, settings) if settings.springs else {}), **_of_free_joint(joint)},
        carries=flag(joint, "actuatorgravcomp", False),
        rest=_rest(joint, hinge, settings),
        springdamper=_springdamper(joint),
    )


def _of_free_joint(joint: Element) -> dict[str, float]:
    """MuJoCo's armature of a free joint resists along the axes of the world, as an inertia without weight does."""
    armature = joint.number("armature", 0.0)
    return {"world_rotor_inertia": armature} if joint.get("type") == "free" and armature else {}


def _rest(joint: Element, hinge: bool, settings: MjcfSettings) -> float:
    rest = joint.number("springref", 0.0)
    return settings.angle(rest) if hinge else rest


def _springdamper(joint: Element) -> tuple[float, float] | None:
    given = coefficients(joint, "springdamper")
    if not any(given):
        return None
    if min(given) <= 0:
        raise joint.error(f"springdamper={joint.get('springdamper')!r}: expected two positive numbers")
    return given[0], given[1]


def _spring(joint: Element, hinge: bool, settings: MjcfSettings) -> dict[str, float]:
    """A linear spring; other springs are refused."""
    stiffness, *higher = (*coefficients(joint, "stiffness"), 0.0)
    if any(higher):
        raise joint.error(f"stiffness={joint.get('stiffness')!r}: only linear springs are supported")
    if not stiffness and not any(coefficients(joint, "springdamper")):
        return {}
    if joint.number("springyield", 0.0) != 0.0:
        raise joint.error("springyield: springs that yield are not supported")
    if joint.get("type", "hinge") == "free":
        raise joint.error("stiffness: springs at a free joint are not supported")
    if joint.get("type", "hinge") == "ball":
        return {"stiffness": stiffness}
    return {"stiffness": stiffness, "spring_reference": _rest(joint, hinge, settings)}


def _damping(joint: Element) -> float:
    linear, *higher = (*coefficients(joint, "damping"), 0.0)
    if any(higher):
        raise joint.error(f"damping={joint.get('damping')!r}: only damping linear in the speed is supported")
    return linear


def _limits(joint: Element, hinge: bool, settings: MjcfSettings) -> Limits:
    lower, upper = EVERY
    if (ends := range_of(joint, "range", "limited", settings)) is not None:
        lower, upper = (settings.angle(end) for end in ends) if hinge else ends
    return Limits(lower, upper)


def range_of(joint: Element, values: str, switch: str, settings: MjcfSettings) -> Ends | None:
    """The ends of a range that counts. Without a switch it does where its first end is the lower one, so "0 0", which
    is also what MuJoCo writes for no range, is none."""
    limited = joint.get(switch, "auto")
    if limited not in ("true", "false", "auto"):
        raise joint.error(f"{switch}={limited!r}: expected true, false or auto")
    lower, upper = joint.numbers(values, 2) if values in joint.attrib or limited == "true" else (0.0, 0.0)
    if limited == "auto" and not settings.autolimits and (lower, upper) != (0.0, 0.0):
        raise joint.error(
            f"{values} without {switch}, which is needed where the <compiler> has autolimits='false'"
        )
    if limited == "true" and lower >= upper:
        raise joint.error(f"{values}={joint.get(values)!r}: expected two numbers, the lower one first")
    return (lower, upper) if limited == "true" or (limited == "auto" and lower < upper) else None


def _ball_range(joint: Element, settings: MjcfSettings) -> None:
    """The range of a ball joint limits the angle of its rotation, which is not kept."""
    if "range" not in joint.attrib:
        return
    ends = range_of(joint, "range", "limited", settings)
    if ends is not None and ends[0] != 0.0:
        raise joint.error(f"range={joint.get('range')!r}: the first number is 0 for a ball joint")
    if ends is not None:
        joint.warn("the range of a ball joint is not kept")


def coefficients(element: Element, key: str) -> tuple[float, ...]:
    """An attribute of one or more numbers; none when it is absent."""
    return element.numbers(key, len(element.text_of(key).split())) if key in element.attrib else ()
