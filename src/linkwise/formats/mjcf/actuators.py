"""Torque limits of joints from the actuators of an MJCF file.

How an actuator makes its force does not matter here, how large it can become does. A control u within ``ctrlrange``
gives gain·u + bias where gain and bias are constant (motors); that of servos depends on the motion and is bounded by
``forcerange`` alone. The force acts on a joint times ``gear``, through a fixed tendon also times the joint's ``coef``.
``actuatorfrcrange`` of tendons and joints bounds the sum of all actuators.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from linkwise.errors import ModelWarning, warn
from linkwise.formats.mjcf.defaults import Defaults, merged
from linkwise.formats.mjcf.joint import EVERY, Ends, MjcfJoint, coefficients, range_of
from linkwise.formats.mjcf.settings import MjcfSettings
from linkwise.formats.xml import Element
from linkwise.model.joint import Joint, Limits

NONE: Ends = (0.0, 0.0)
FIXED = {"gaintype": "fixed", "biastype": "none", "dyntype": "none"}
SERVO = {**FIXED, "biastype": "affine", "biasprm": "0 -1 -1"}  # any slopes: they only say that motion counts
KINDS: dict[str, dict[str, str]] = {  # what a shortcut sets, whatever it inherits
    "motor": {**FIXED, "gainprm": "1"},
    "position": SERVO,
    "velocity": SERVO,
    "intvelocity": {**SERVO, "dyntype": "integrator"},
    "cylinder": {**FIXED, "biastype": "affine", "dyntype": "filter"},
    "plugin": {"gaintype": "plugin"},
    **{
        kind: {"gaintype": kind} for kind in ("orientation", "pid", "damper", "muscle", "adhesion", "dcmotor")
    },
}
GAINS = {"position": "kp", "velocity": "kv", "cylinder": "area"}  # attributes that are gainprm


def driven(
    root: Element,
    defaults: Defaults,
    settings: MjcfSettings,
    joints: Mapping[str, MjcfJoint],
    tendons: Mapping[str, Element],
) -> dict[str, Ends]:
    """The least and the largest torque or force of all actuators on each hinge or slide joint that has some."""
    forces: dict[str, Ends] = {}
    pulled: dict[str, list[tuple[float, Ends]]] = {}  # gears and forces of the actuators of each tendon
    for given in [each for section in root if section.tag == "actuator" for each in section]:
        actuator = _as_general(given, defaults)
        gear = (*coefficients(actuator, "gear"), 1.0)[0]
        force = _force(actuator, settings)
        if joint := actuator.get("joint") or actuator.get("jointinparent"):
            forces[joint] = together(forces.get(joint), _times(gear, force))
        elif (tendon := actuator.get("tendon")) in tendons:
            pulled.setdefault(str(tendon), []).append((gear, force))
    for name, pulls in pulled.items():
        tendon = defaults.resolve(tendons[name], kind="tendon")
        total = _total(pulls, range_of(tendon, "actuatorfrcrange", "actuatorfrclimited", settings))
        for joint, factor in _moved(tendon, tendons[name]):
            forces[joint] = together(forces.get(joint), _times(factor, total))
    return {name: ends for name, ends in forces.items() if name in joints and joints[name].one_axis}


def _total(pulls: Sequence[tuple[float, Ends]], bounds: Ends | None) -> Ends:
    """All actuators of a tendon. MuJoCo bounds the sum of their forces before their gears, which says little about the
    sum behind them where these differ."""
    gears = {gear for gear, _ in pulls}
    if len(gears) > 1:
        return reduce(together, (_times(gear, force) for gear, force in pulls))
    return _times(gears.pop(), _clipped(reduce(together, (force for _, force in pulls)), bounds))


def _moved(tendon: Element, parts: Element) -> Iterator[tuple[str, float]]:
    """The joints of a fixed tendon; the leverage of other tendons changes with the position."""
    if tendon.tag == "fixed":
        for part in parts:
            yield part.text_of("joint"), part.number("coef", 1.0)


def _as_general(actuator: Element, defaults: Defaults) -> Element:
    """An actuator as <general>, with its defaults. All kinds share one set of these, in the order of the file."""
    attributes: Mapping[str, str] = {}
    for kind, own in [*defaults.actuators(actuator), (actuator.tag, actuator.attrib)]:
        attributes = {**merged(attributes, own), **KINDS.get(kind, {})}
        if GAINS.get(kind) in own:
            attributes["gainprm"] = own[GAINS[kind]]
        if kind == "cylinder":
            attributes["biasprm"] = own.get("bias", attributes.get("biasprm", "0"))
            given = Element(kind, dict(own), actuator.where, actuator.line, actuator.parent)
            if "diameter" in own:
                attributes["gainprm"] = repr(math.pi / 4 * given.number("diameter") ** 2)
    return Element("general", dict(attributes), actuator.where, actuator.line, actuator.parent)


def _force(actuator: Element, settings: MjcfSettings) -> Ends:
    """The least and the largest force of an actuator, before its gear."""
    force = EVERY
    bias = coefficients(actuator, "biasprm") if actuator.get("biastype", "none") == "affine" else ()
    if (
        actuator.get("gaintype", "fixed") == "fixed"
        and actuator.get("biastype", "none") in ("none", "affine")
        and not any(bias[1:3])
    ):
        low, high = _times((*coefficients(actuator, "gainprm"), 1.0)[0], _input(actuator, settings))
        constant = (*bias, 0.0)[0]
        force = low + constant, high + constant
    return _clipped(force, range_of(actuator, "forcerange", "forcelimited", settings))


def _input(actuator: Element, settings: MjcfSettings) -> Ends:
    """The range of the control, or of the activation that follows it."""
    dynamics = actuator.get("dyntype", "none")
    control = range_of(actuator, "ctrlrange", "ctrllimited", settings) if settings.on("clampctrl") else None
    if dynamics == "none":
        return control or EVERY
    follows = dynamics in ("filter", "filterexact")  # the activation stays between the ends of the control
    return _clipped(
        (control or EVERY) if follows else EVERY, range_of(actuator, "actrange", "actlimited", settings)
    )


def _times(factor: float, ends: Ends) -> Ends:
    low, high = sorted(factor * end if factor else 0.0 for end in ends)
    return low, high


def _clipped(ends: Ends, bounds: Ends | None) -> Ends:
    if bounds is None:
        return ends
    low, high = (min(max(end, bounds[0]), bounds[1]) for end in ends)
    return low, high


def together(first: Ends | None, second: Ends | None) -> Ends:
    """The least and the largest sum of two forces, of which either may be missing."""
    (low, high), (more_low, more_high) = first or NONE, second or NONE
    return low + more_low, high + more_high


def with_effort(given: Joint, joint: MjcfJoint | None, forces: Ends | None, where: str) -> Limits:
    """The limits of a joint with that of its actuators' forces; an effort limit is the same in both directions."""
    if joint is None:
        return given.limits
    low, high = _clipped(forces or EVERY, joint.forces)
    effort = max(abs(low), abs(high))
    if abs(low + high) > 1e-9 * effort and math.isfinite(effort):
        warn(
            f"{where}: joint {given.name!r}: its actuators give {low:g} to {high:g}; kept as the limit {effort:g} in "
            "both directions",
            ModelWarning,
        )
    return replace(given.limits, effort=effort)
