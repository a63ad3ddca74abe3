"""The parts of an MJCF file that act on an arm from outside its tree: harmless, kept as data, or refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from linkwise.errors import UnknownNameError, suggest
from linkwise.formats.mjcf.defaults import ACTUATORS, Defaults
from linkwise.formats.mjcf.joint import MjcfJoint, coefficients
from linkwise.formats.mjcf.settings import MjcfSettings, flag
from linkwise.formats.xml import Element
from linkwise.model.constraints import Constraint, Point, Weld
from linkwise.model.joint import Mimic
from linkwise.model.motors import Motor
from linkwise.model.transform import Transform

WORLD = "world"
MOTOR = ("stiffness", "damping", "frictionloss", "armature")  # what a fixed tendon may have
UNSTRETCHED = -1.0  # as springlength: the length at which all joints are at rest


def check_sections(root: Element, defaults: Defaults, settings: MjcfSettings) -> None:
    """Refuse what would change the motion and cannot be represented.

    The other sections (assets, contacts, sensors, keyframes …) have no influence on the equation of motion of the tree.
    """
    for section in root:
        for element in section:
            if section.tag == "tendon":
                _tendon(defaults.resolve(element, kind="tendon"), settings)
            elif section.tag == "actuator":
                _actuator(element, defaults)


def _tendon(tendon: Element, settings: MjcfSettings) -> None:
    """A tendon that only measures or pulls does not change the motion; one with stiffness, damping or limits does.

    Fixed tendons with springs, friction or armature are motors of several joints, see ``read_motors``.
    """
    supported = MOTOR if tendon.tag == "fixed" else ()
    for key, acts in _acting(settings).items():
        if acts and key not in supported and any(coefficients(tendon, key)):
            raise tendon.error(f"{key}={tendon.get(key)!r} of such a tendon is not supported")


def _acting(settings: MjcfSettings) -> dict[str, bool]:
    """The mechanics that a tendon may have, and whether the file's options leave them on."""
    return {
        "stiffness": settings.springs,
        "damping": settings.dampers,
        "frictionloss": settings.frictionloss,
        "armature": True,
    }


def read_motors(
    root: Element,
    defaults: Defaults,
    settings: MjcfSettings,
    joints: Mapping[str, MjcfJoint],
    *,
    of_read_joints: bool = False,
) -> list[Motor]:
    """Fixed tendons with springs, friction or armature: motors that turn with a weighted sum of joint positions; only
    those ``of_read_joints``, where a part of a model is attached."""
    motors: list[Motor] = []
    acting = _acting(settings)
    for given in [each for section in root if section.tag == "tendon" for each in section]:
        tendon = defaults.resolve(given, kind="tendon")
        numbers: dict[str, float] = {}
        for key in MOTOR:
            linear, *higher = (*coefficients(tendon, key), 0.0) if acting[key] else (0.0,)
            if any(higher):
                raise tendon.error(
                    f"{key}={tendon.get(key)!r}: only linear springs and dampers are supported"
                )
            numbers[key] = linear
        if tendon.tag != "fixed" or not any(numbers.values()):
            continue
        if of_read_joints and any(each.get("joint") not in joints for each in given):
            continue
        moved: dict[str, float] = {}
        for each in given:
            name = each.text_of("joint")
            if name not in joints:
                raise each.error(f"no joint {name!r}; {suggest(name, joints)}")
            moved[name] = moved.get(name, 0.0) + each.number("coef")
        loss = numbers["frictionloss"]
        name = tendon.get("name") or f"tendon_{len(motors) + 1}"
        terms = _tendon_spring(tendon, numbers["stiffness"], moved, joints) if numbers["stiffness"] else {}
        motors.append(Motor(name, moved, numbers["armature"], numbers["damping"], (loss, loss), terms))
    return motors


def _tendon_spring(
    tendon: Element, stiffness: float, moved: Mapping[str, float], joints: Mapping[str, MjcfJoint]
) -> dict[str, float]:
    """The spring of a fixed tendon; one that is slack over a range of lengths is not linear."""
    if tendon.number("springyield", 0.0) != 0.0:
        raise tendon.error("springyield: springs that yield are not supported")
    ends = coefficients(tendon, "springlength") or (UNSTRETCHED,)
    if min(ends) != max(ends):
        raise tendon.error(
            f"springlength={tendon.get('springlength')!r}: springs that are slack over a range are not supported"
        )
    rest = ends[0]
    if rest == UNSTRETCHED:
        rest = sum(factor * joints[name].rest for name, factor in moved.items())
    return {"stiffness": stiffness, "spring_reference": rest}


def _actuator(actuator: Element, defaults: Defaults) -> None:
    """Torques are inputs here: how an actuator makes them does not matter, what it adds to the arm does."""
    for kind in {actuator.tag, *ACTUATORS}:  # all kinds of actuator share one set of defaults
        resolved = defaults.resolve(actuator, kind=kind)
        for key in ("armature", "damping"):
            if any(coefficients(resolved, key)):
                raise resolved.error(f"{key} of an actuator is not supported; give it to the joint instead")


def equalities(root: Element, defaults: Defaults, settings: MjcfSettings) -> Iterator[Element]:
    """The <equality> elements that count, with their defaults."""
    for section in root:
        if section.tag == "equality" and settings.equalities:
            for element in section:
                resolved = defaults.resolve(element, kind="equality")
                if flag(resolved, "active", True):
                    yield resolved


def read_mimics(
    found: Sequence[Element], joints: Mapping[str, MjcfJoint], tendons: Mapping[str, Element]
) -> dict[str, Mimic]:
    """Linear relations between joints, by the name of the one that follows."""
    relations: dict[str, Mimic] = {}
    still = [equality for equality in found if equality.tag == "joint" and "joint2" not in equality.attrib]
    for equality in found:
        if equality.tag in ("joint", "tendon") and equality not in still:
            mimic = _mimic if equality.tag == "joint" else partial(_tendon_mimic, tendons=tendons)
            follower, relation = mimic(equality, joints)
            if follower in relations and relation.multiplier and relation.joint not in relations:
                # solved for the other joint
                follower, relation = (
                    relation.joint,
                    Mimic(follower, 1 / relation.multiplier, -relation.offset / relation.multiplier),
                )
            if follower in relations:
                raise equality.error(f"joint {follower!r} follows {relations[follower].joint!r} already")
            relations[follower] = relation
    for equality in still:
        follower, relation = _held_joint(equality, joints, relations)
        relations[follower] = relation
    return relations


def _held_joint(
    equality: Element, joints: Mapping[str, MjcfJoint], relations: Mapping[str, Mimic]
) -> tuple[str, Mimic]:
    """A joint that an equality holds at a position follows another one at ratio zero."""
    follower = _joint_end(equality, "joint1", joints)
    leaders = [
        name
        for name, joint in joints.items()
        if name != follower and name not in relations and joint.type in ("revolute", "prismatic")
    ]
    if follower in relations or not leaders:
        raise equality.error(f"it holds joint {follower!r} still; remove it and lock the joint instead")
    constant = (*coefficients(equality, "polycoef"), 0.0)[0]
    return follower, Mimic(leaders[0], 0.0, constant + joints[follower].ref)


def _joint_end(equality: Element, key: str, joints: Mapping[str, MjcfJoint]) -> str:
    name = equality.text_of(key)
    if name not in joints:
        raise equality.error(f"no joint {name!r}; {suggest(name, joints)}")
    return name


def _tendon_mimic(
    equality: Element, joints: Mapping[str, MjcfJoint], tendons: Mapping[str, Element]
) -> tuple[str, Mimic]:
    """A fixed tendon is a weighted sum of joints; one over two joints, held at a length, makes one follow the other.

    MuJoCo relates the lengths' differences from those at ``ref``: Σ c (q − ref) = a₀ + a₁ Σ d (q − ref)."""
    given = coefficients(equality, "polycoef")
    constant, slope, *higher = (*given, *(0.0, 1.0, 0.0, 0.0, 0.0)[len(given) :])
    weights: dict[str, float] = {}
    for key, factor in (("tendon1", 1.0), ("tendon2", -slope)):
        if key == "tendon2" and key not in equality.attrib:
            continue
        for joint, weight in _weights(equality, key, joints, tendons):
            weights[joint] = weights.get(joint, 0.0) + factor * weight
    if "tendon2" in equality.attrib and any(higher):
        raise equality.error(f"polycoef={equality.get('polycoef')!r}: only linear relations are supported")
    moved = [name for name, weight in weights.items() if weight]
    if len(moved) != 2:
        raise equality.error(
            f"it relates {len(moved)} joints ({', '.join(moved)}); fixed tendons are supported between two"
        )
    follower, leader = moved
    ratio = -weights[leader] / weights[follower]
    offset = constant / weights[follower] + joints[follower].ref - ratio * joints[leader].ref
    return follower, Mimic(leader, ratio, offset)


def _weights(
    equality: Element, key: str, joints: Mapping[str, MjcfJoint], tendons: Mapping[str, Element]
) -> Iterator[tuple[str, float]]:
    name = equality.text_of(key)
    if name not in tendons:
        raise equality.error(
            f"no tendon {name!r}; {suggest(name, tendons) if tendons else 'the file has none'}"
        )
    tendon = tendons[name]
    if tendon.tag != "fixed":
        raise equality.error(f"{key}={name!r}: equalities of {tendon.tag} tendons are not supported")
    for part in tendon:
        joint = part.text_of("joint")
        if joint not in joints:
            raise part.error(f"no joint {joint!r}; {suggest(joint, joints)}")
        if joints[joint].type not in ("revolute", "prismatic"):
            raise part.error(f"joint {joint!r}: a fixed tendon is over hinge and slide joints")
        yield joint, part.number("coef", 1.0)


def read_constraints(
    found: Iterable[Element], locate: Callable[[str], Transform], sites: Mapping[str, str]
) -> list[Constraint]:
    """<connect> and <weld> of bodies or sites; ``locate`` gives a body's pose in the world as the file draws it,
    ``sites`` the frame of each site."""
    constraints: list[Constraint] = []
    for equality in found:
        if equality.tag in ("joint", "tendon"):
            continue
        if equality.tag not in ("connect", "weld"):
            raise equality.error(f"equality constraints of type {equality.tag!r} are not supported")
        constraints.append(_loop(equality, locate, sites))
    return constraints


def _loop(equality: Element, locate: Callable[[str], Transform], sites: Mapping[str, str]) -> Constraint:
    name = equality.get("name", "")
    if "site1" in equality.attrib:
        given = [equality.text_of(key) for key in ("site1", "site2")]
        for site in given:
            if site not in sites:
                raise equality.error(f"no site {site!r}; {suggest(site, sites)}")
        first, second = (sites[site] for site in given)
        kind = Point if equality.tag == "connect" or not _holds_orientation(equality) else Weld
        return kind(first, second, name=name)
    first, second = equality.text_of("body1"), equality.get("body2", WORLD)
    try:
        here, there = locate(first), locate(second)
    except UnknownNameError as error:
        raise equality.error(str(error)) from None
    if equality.tag == "connect":
        anchor = np.array(equality.numbers("anchor", 3))
        place = there.inverse() @ Transform(np.eye(3), (here @ Transform(np.eye(3), anchor)).translation)
        return Point(first, second, place.translation.tolist(), anchor.tolist(), name)
    relative = here.inverse() @ there  # pose of body2 in body1, as the file draws it
    anchor = Transform(np.eye(3), np.array(coefficients(equality, "anchor") or (0.0, 0.0, 0.0)))
    if "relpose" in equality.attrib:
        x, y, z, *quaternion = equality.numbers("relpose", 7)
        if any(quaternion):  # MuJoCo takes its position as that of the anchor, not of the origin of body2
            relative = Transform.from_quaternion((x, y, z), quaternion) @ anchor.inverse()
    if not _holds_orientation(equality):
        place = (relative @ anchor).translation
        return Point(second, first, place.tolist(), anchor.translation.tolist(), name)
    return Weld(second, first, relative, name)


def _holds_orientation(weld: Element) -> bool:
    """MuJoCo scales the rows of the orientation: by zero they hold nothing, other numbers only change their units."""
    return weld.number("torquescale", 1.0) != 0.0


def _mimic(equality: Element, joints: Mapping[str, MjcfJoint]) -> tuple[str, Mimic]:
    follower, leader = (_joint_end(equality, key, joints) for key in ("joint1", "joint2"))
    given = coefficients(equality, "polycoef")
    constant, slope, *higher = (*given, *(0.0, 1.0, 0.0, 0.0, 0.0)[len(given) :])
    if any(higher):
        raise equality.error(f"polycoef={equality.get('polycoef')!r}: only linear relations are supported")
    # MuJoCo relates the displacements from ref
    offset = constant + joints[follower].ref - slope * joints[leader].ref
    return follower, Mimic(leader, slope, offset)
