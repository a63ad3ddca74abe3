"""What a robot must satisfy before anything is computed with it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.errors import ModelError, ModelWarning, warn
from linkwise.joint_laws import LAWS, Parameter
from linkwise.model.constraints import held_joints, joints_behind
from linkwise.model.contacts import tendons_of
from linkwise.model.quantity import LARGEST, in_range

SHOWN_NAMES = 6  # of a list in a message

if TYPE_CHECKING:
    from linkwise.model.joint import Joint
    from linkwise.model.model import Frame, Link, Model
    from linkwise.model.transform import Transform


def check_tree(links: Sequence[Link], joints: Sequence[Joint], frames: Sequence[Frame]) -> None:
    """One root, no cycle, every link reached once, names unique."""
    if not links:
        raise ModelError("a robot needs at least one link")
    _unique("link", (link.name for link in links))
    _unique("joint", (joint.name for joint in joints))
    _unique("frame", [*(link.name for link in links), *(frame.name for frame in frames)])
    names = {link.name for link in links}
    for joint in joints:
        _check_ends(joint, names)
    _check_reached(_root(links, joints), links, joints)
    for frame in frames:
        if frame.link not in names:
            raise ModelError(f"frame {frame.name!r}: its link {frame.link!r} does not exist")


def _check_ends(joint: Joint, names: Container[str]) -> None:
    """A known type, between two links that exist."""
    from linkwise.model.axes import JOINT_TYPES

    if joint.type not in JOINT_TYPES:
        raise ModelError(
            f"joint {joint.name!r}: unknown or unsupported type {joint.type!r}; "
            f"expected one of {', '.join(JOINT_TYPES)}"
        )
    for role, link in (("parent", joint.parent), ("child", joint.child)):
        if link not in names:
            raise ModelError(f"joint {joint.name!r}: its {role} link {link!r} does not exist")


def _root(links: Sequence[Link], joints: Sequence[Joint]) -> str:
    """The only link that is no joint's child."""
    entered: dict[str, str] = {}
    for joint in joints:
        if joint.child in entered:
            raise ModelError(
                f"link {joint.child!r} is the child of two joints, {entered[joint.child]!r} and {joint.name!r}"
            )
        entered[joint.child] = joint.name
    roots = [link.name for link in links if link.name not in entered]
    if not roots:
        raise ModelError(f"the joints form a cycle: every link is some joint's child ({_cycle(joints)})")
    if len(roots) > 1:
        raise ModelError(
            f"the robot has {len(roots)} roots ({', '.join(roots)}); expected one connected tree"
        )
    return roots[0]


def _check_reached(root: str, links: Sequence[Link], joints: Sequence[Joint]) -> None:
    """Every link is connected with the root."""
    by_parent: dict[str, list[str]] = {}
    for joint in joints:
        by_parent.setdefault(joint.parent, []).append(joint.child)
    reached, stack = {root}, [root]
    while stack:
        for child in by_parent.get(stack.pop(), []):
            reached.add(child)
            stack.append(child)
    if len(reached) < len(links):
        raise ModelError(f"the joints form a cycle ({_cycle([j for j in joints if j.child not in reached])})")


def check_numbers(
    links: Sequence[Link], joints: Sequence[Joint], frames: Sequence[Frame], gravity: Sequence[float]
) -> None:
    """Every number is finite and has a meaning."""
    if len(gravity) != 3 or not all(map(in_range, gravity)):
        raise ModelError(f"gravity: expected three finite numbers [m/s²], got {tuple(gravity)}")
    for link in links:
        _check_inertia(link)
    for joint in joints:
        _check_pose(f"joint {joint.name!r}: its origin", joint.origin)
        if joint.moves:
            _check_moving_joint(joint)
    for frame in frames:
        _check_pose(f"frame {frame.name!r}: its pose", frame.pose)


def _check_inertia(link: Link) -> None:
    if not all(map(in_range, link.inertia.parameters)):
        raise ModelError(
            f"link {link.name!r}: an inertial parameter is not finite or above {LARGEST:g}: "
            f"{link.inertia.parameters}"
        )
    if link.inertia.mass < 0:
        raise ModelError(f"link {link.name!r}: mass {link.inertia.mass:g} is negative")


def _check_pose(whose: str, pose: Transform) -> None:
    if not (np.abs([*pose.rotation.ravel(), *pose.translation]) <= LARGEST).all():
        raise ModelError(f"{whose} is not finite or above {LARGEST:g}")
    _check_rotation(whose, pose.rotation)


def _check_moving_joint(joint: Joint) -> None:
    length = math.sqrt(sum(a * a for a in joint.axis))
    if not abs(length - 1.0) < 1e-9:
        raise ModelError(f"joint {joint.name!r}: axis {joint.axis} is not a unit vector")
    for parameter, value in _law_numbers(joint):
        if not in_range(value):
            raise ModelError(
                f"joint {joint.name!r}: {parameter.text} {value!r} is not finite or above {LARGEST:g}"
            )
        if parameter.negative == "refused" and value < 0:
            raise ModelError(f"joint {joint.name!r}: {parameter.text} {value:g} is negative")
        if value >= parameter.below:
            raise ModelError(
                f"joint {joint.name!r}: {parameter.text} {value:g} is not below {parameter.below:g}"
            )
        if parameter.needed_by and joint.number(parameter.needed_by) and not value:
            raise ModelError(f"joint {joint.name!r}: {parameter.needed_by} needs a {parameter.name} above 0")
    if joint.number("world_rotor_inertia") and joint.type != "floating":
        raise ModelError(f"joint {joint.name!r}: world_rotor_inertia is for floating joints")
    if joint.number("load_friction") and (joint.free or joint.mimic is not None):
        raise ModelError(
            f"joint {joint.name!r}: load_friction is for joints of one axis that follow no other"
        )
    limits = joint.limits
    if any(math.isnan(v) for v in (limits.lower, limits.upper, limits.velocity, limits.effort)):
        raise ModelError(f"joint {joint.name!r}: a limit is NaN")
    relation = joint.mimic
    if relation is not None and not all(
        map(in_range, (relation.offset, *(factor for _, factor in relation.leaders)))
    ):
        raise ModelError(f"joint {joint.name!r}: its mimic relation is not finite")


def check_physics(model: Model, *, strict: bool, where: str) -> None:
    """Warn about (or, if strict, refuse) inertias that no body can have, joints that move no mass, friction that drives
    and limits that cannot be kept; sets of reduced parameters are exempt."""
    if model.reduced:
        return
    found = [
        f"link {link.name!r}: {violation}"
        for link in model.links
        if link.name != model.base
        for violation in link.inertia.violations()
    ]
    doubtful = {
        f"joint {joint.name!r}: {parameter.text} {value:g} is negative: {parameter.doubt}"
        for joint in model.moving_joints
        for parameter, value in _law_numbers(joint)
        if parameter.negative == "doubtful" and value < 0
    }
    found += sorted(doubtful)
    found += [
        f"joint {joint.name!r}: its {what} limit {value:g} is negative; taken as no limit"
        for joint in model.moving_joints
        for what, value in (("velocity", joint.limits.velocity), ("effort", joint.limits.effort))
        if value < 0
    ]
    found += _pinned(model)
    if (without := masslessness(model)) is not None:
        found.append(without)
    for violation in found:
        if strict:
            raise ModelError(f"{where}: {violation}")
        warn(f"{where}: {violation}", ModelWarning)


def _pinned(model: Model) -> list[str]:
    """Joints that move within their own limits, but not within those of the joints that follow them."""
    from linkwise.model.joint import leading_limits

    own = {joint.name: joint.limits for joint in model.moving_joints}
    found: list[str] = []
    for joint in model.coordinate_joints:
        place, stated = joint.limits.lower, own[joint.name]
        if place != joint.limits.upper or stated.lower == stated.upper:
            continue
        names: list[str] = []
        for follower, relation in zip(model.moving_joints, model.followed, strict=True):
            if relation is not None and relation.joint == joint.name and not relation.also:
                lower, upper, _ = leading_limits(follower, relation)
                names += [repr(follower.name)] * (lower > stated.lower or upper < stated.upper)
        found.append(
            f"joint {joint.name!r} can be at {place:g} alone: elsewhere {', '.join(names)}, which follow"
            f"{'s' * (len(names) == 1)} it, would be out of range"
        )
    return found


def check_moves(model: Model) -> None:
    """Refuse a robot without a joint that moves, where there is nothing to compute."""
    if not model.moving_joints:
        raise ModelError(f"no joint of {model.name} moves, so there is nothing to compute")


def check_outside_loops(model: Model, what: str, frames: Sequence[str | None] | None = None) -> None:
    """Refuse to move joints one by one that a constraint moves together.

    Args:
        model: the robot.
        what: that would move them.
        frames: whose joints are moved; None: all joints are.
    """
    check_no_tendons(model, what)
    held = held_joints(model)
    if held and frames is not None:
        moved = {name for frame in frames for name in joints_behind(model, frame)}
        held = {name: label for name, label in held.items() if name in moved}
    if held:
        listed = ", ".join(list(held)[:SHOWN_NAMES]) + (", …" if len(held) > SHOWN_NAMES else "")
        raise ModelError(
            f"{what} of {model.name} would break the constraint {next(iter(held.values()))!r}: it moves {listed} as if "
            "they were free; lock these joints (robot.lock), leave the constraint out (robot.with_constraints(())), or "
            "use optimal.solve and simulate, which keep it"
        )


def check_no_tendons(model: Model, what: str) -> None:
    """Refuse a robot with tendons, whose ranges bound joints together: ``what`` knows those of single joints."""
    tendon = next(iter(tendons_of(model.contact_parts)), None)
    if tendon is not None:
        raise ModelError(
            f"{what} of {model.name} would not keep the range of {tendon.label}; leave it out (robot.with_contacts)"
        )


def check_no_contacts(model: Model, what: str) -> None:
    """Refuse a robot that touches things, where ``what`` would let it pass through them."""
    if model.contact_parts:
        raise ModelError(
            f"{what}: contacts of {model.name} are not supported; simulate has them, robot.with_contacts(()) leaves "
            "them out"
        )


def masslessness(model: Model) -> str | None:
    """What to say about joints that move no mass; None where all of them do."""
    names = model.massless_joints
    if not names:
        return None
    listed = ", ".join(names[:SHOWN_NAMES]) + (", …" if len(names) > SHOWN_NAMES else "")
    count = len(model.joint_names)
    moving = "1 joint moves" if count == 1 else f"{len(names)} of {count} joints move"
    return (
        f"{moving} no mass ({listed}): the links behind have neither mass nor inertia, so torques there are zero "
        "apart from friction and rotors, and forward dynamics is singular without rotor inertia; "
        "give the links their inertias, or lock these joints"
    )


def _law_numbers(joint: Joint) -> list[tuple[Parameter, Any]]:
    """Every number of the joint's laws."""
    return [pair for law in LAWS for pair in zip(law.parameters, law.numbers(joint), strict=True)]


def _check_rotation(whose: str, rotation: np.ndarray) -> None:
    error = float(np.abs(rotation @ rotation.T - np.eye(3)).max())
    if error > 1e-9 or np.linalg.det(rotation) < 0:
        raise ModelError(
            f"{whose} has no rotation matrix: R·Rᵀ differs from 1 by {error:.1e}, "
            f"det R = {np.linalg.det(rotation):.3g}"
        )


def _unique(what: str, names: Iterable[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ModelError(f"two {what}s are named {twice[0]!r}; names must be unique")


def _cycle(joints: Iterable[Joint]) -> str:
    return ", ".join(f"{joint.parent} → {joint.child}" for joint in joints)
