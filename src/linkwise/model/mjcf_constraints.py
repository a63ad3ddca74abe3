"""The parts of an MJCF file that act on an arm from outside its tree: harmless, kept as data, or refused."""

from __future__ import annotations

from collections.abc import Mapping

from linkwise.model.mjcf_defaults import Defaults
from linkwise.model.mjcf_joint import MjcfJoint, coefficients
from linkwise.model.mjcf_settings import Settings, flag
from linkwise.model.model import Mimic, suggest
from linkwise.model.xml import Element

ACTUATORS = (
    "general",
    "motor",
    "position",
    "velocity",
    "intvelocity",
    "orientation",
    "pid",
    "damper",
    "cylinder",
)
ACTUATORS += ("muscle", "adhesion", "dcmotor")


def refuse_includes(root: Element) -> None:
    """Another file is never opened, so a model spread over several cannot be read."""
    for element in root.iter():
        if element.tag in ("include", "attach", "replicate", "composite", "flexcomp"):
            assert isinstance(element, Element)
            raise element.error("not supported; load the model in MuJoCo and save it as one plain file")


def check_sections(root: Element, defaults: Defaults, settings: Settings) -> None:
    """Refuse what would change the motion and cannot be represented.

    The other sections (assets, contacts, sensors, keyframes …) have no influence on the equation of motion of the tree.
    """
    for section in root:
        for element in section:
            if section.tag == "tendon":
                _tendon(defaults.resolve(element, kind="tendon"), settings)
            elif section.tag == "deformable" and element.tag != "skin":
                raise element.error("deformable bodies are not supported")
            elif section.tag == "actuator":
                _actuator(element, defaults)


def _tendon(tendon: Element, settings: Settings) -> None:
    """A tendon that only measures or pulls is harmless; one with mechanics of its own is not."""
    active = {
        "stiffness": settings.springs,
        "damping": settings.dampers,
        "frictionloss": settings.frictionloss,
        "armature": True,
    }
    for key, acts in active.items():
        if acts and any(coefficients(tendon, key)):
            raise tendon.error(
                f"{key}={tendon.get(key)!r}: tendons with mechanics of their own are not supported"
            )


def _actuator(actuator: Element, defaults: Defaults) -> None:
    """Torques are inputs here: how an actuator makes them does not matter, what it adds to the arm does."""
    for kind in {actuator.tag, *ACTUATORS}:  # all kinds of actuator share one set of defaults
        resolved = defaults.resolve(actuator, kind=kind)
        for key in ("armature", "damping"):
            if any(coefficients(resolved, key)):
                raise resolved.error(f"{key} of an actuator is not supported; give it to the joint instead")


def read_mimics(
    root: Element, defaults: Defaults, settings: Settings, joints: Mapping[str, MjcfJoint]
) -> dict[str, Mimic]:
    """Linear relations between joints, by the name of the one that follows; others are refused."""
    found = {}
    for section in root:
        if section.tag != "equality" or not settings.equalities:
            continue
        for element in section:
            resolved = defaults.resolve(element, kind="equality")
            if flag(resolved, "active", True):
                follower, relation = _mimic(resolved, joints)
                found[follower] = relation
    return found


def _mimic(equality: Element, joints: Mapping[str, MjcfJoint]) -> tuple[str, Mimic]:
    if equality.tag != "joint":
        raise equality.error(
            f"equality constraints of type {equality.tag!r} (closed loops) are not supported"
        )
    follower = equality.text_of("joint1")
    if "joint2" not in equality.attrib:
        raise equality.error(f"it holds joint {follower!r} still; remove it and lock the joint instead")
    leader = equality.text_of("joint2")
    for name in (follower, leader):
        if name not in joints:
            raise equality.error(f"no joint {name!r}; {suggest(name, joints)}")
    given = coefficients(equality, "polycoef")
    constant, slope, *higher = (*given, *(0.0, 1.0, 0.0, 0.0, 0.0)[len(given) :])
    if any(higher):
        raise equality.error(f"polycoef={equality.get('polycoef')!r}: only linear relations are supported")
    # MuJoCo relates the displacements from ref
    offset = constant + joints[follower].ref - slope * joints[leader].ref
    equality.warn(
        f"joint {follower!r} stays an independent coordinate; its relation to {leader!r} is kept as data"
    )
    return follower, Mimic(leader, slope, offset)
