"""The links and joints of robots made from others: on another base, with joints locked, with mimic joints coupled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from linkwise.errors import ModelError, UnknownNameError, suggest
from linkwise.model import compensation
from linkwise.model.constraints import CONSTRAINT_ERROR, Constraint
from linkwise.model.contacts import Part, locked_parts, moves
from linkwise.model.joint import Joint
from linkwise.model.link import Link
from linkwise.model.planar import planar_joints
from linkwise.model.quantity import finite

if TYPE_CHECKING:
    from linkwise.model.model import Model


def with_base(model: Model, base: str) -> dict[str, list[Any]]:
    """See ``Model.with_base``."""
    if base not in ("floating", "planar"):
        raise UnknownNameError(f"base: expected fixed, floating or planar, got {base!r}")
    roots = [joint for joint in model.joints if joint.parent == model.base]
    if base == "floating" and roots and all(joint.type == "floating" for joint in roots):
        return {}  # what the file's base carries floats already
    taken = {*model.frame_names, *(joint.name for joint in model.joints)}

    def unused(name: str) -> str:
        while name in taken:
            name = f"{name}_"
        return name

    world, root = unused("world"), unused("root_joint")
    if base == "floating":
        joints, between = [Joint(root, "floating", world, model.base)], list[str]()
    else:
        between, joints = planar_joints(root, world, model.base, world, unused)
    links = [Link(name) for name in (world, *between)]
    return {"links": [*links, *model.links], "joints": [*joints, *model.joints]}


def positions_of_lock(given: Any) -> dict[str, float]:
    """Positions by the names of joints, as ``Model.lock`` takes them."""
    if not isinstance(given, Mapping):
        names = cast("list[Any]", given) if isinstance(given, (list, tuple)) else [given]
        first = next((name for name in names if isinstance(name, str)), "joint1")
        raise ModelError(
            f"lock: expected joint names with positions, as in {{{first!r}: 0.0}}, got {given!r:.80}"
        )
    return dict(cast("Mapping[str, float]", given))


def locked(model: Model, positions: Mapping[str, float]) -> list[Joint]:
    """See ``Model.lock``. A fixed joint keeps nothing but its pose."""
    leaders = dict(zip((joint.name for joint in model.moving_joints), model.followed, strict=True))
    for name in positions:
        relation = leaders.get(name)
        if name not in model.joint_names and (relation is None or relation.joint not in positions):
            raise UnknownNameError(
                f"lock: {model.name} has no moving joint {name!r}; {suggest(name, model.joint_names)}"
            )
        for value in np.ravel(np.asarray(positions[name], dtype=object)):
            finite(f"lock: position of joint {name!r}", value)
    where: dict[str, Any] = dict(positions)
    for joint, relation in zip(model.moving_joints, model.followed, strict=True):
        if relation is not None and any(name in positions for name, _ in relation.leaders):
            if relation.also:
                raise ModelError(f"lock: joint {joint.name!r} follows several joints; they cannot be locked")
            follows = relation.multiplier * float(positions[relation.joint]) + relation.offset
            if abs(float(where.get(joint.name, follows)) - follows) > 1e-9:
                raise ModelError(
                    f"lock: joint {joint.name!r} follows {relation.joint!r} and is at {follows:g} then; "
                    "lock its leader only, or load the robot with mimic='independent'"
                )
            where[joint.name] = follows
    joints = [
        Joint(
            *(joint.name, "fixed", joint.parent, joint.child),
            origin=joint.motion(where[joint.name]),
            terms=joint.terms,
        )
        if joint.moves and joint.name in where
        else replace(joint, mimic=None)
        if joint.mimic is not None and joint.mimic.joint in where
        else joint
        for joint in model.joints
    ]
    return compensation.carried_over(model, joints)


def remaining(
    model: Model, constraints: Sequence[Constraint], parts: Sequence[Part], positions: Mapping[str, float]
) -> dict[str, Any]:
    """Constraints and contacts between what still moves, after joints were locked at positions."""
    return {
        "constraints": [constraint for constraint in constraints if not _is_settled(model, constraint)],
        "contacts": [part for part in locked_parts(parts, positions) if moves(model, part)],
    }


def _is_settled(model: Model, constraint: Constraint) -> bool:
    """Whether nothing moves between the two ends of a constraint, which must then coincide."""
    (body, here), (other, there) = (
        (-1, pose) if frame is None else (model.locate(frame)[0], model.locate(frame)[1] @ pose)
        for frame, pose in constraint.ends()
    )
    if body != other:
        return False
    gap = there.inverse() @ here
    turned = np.abs(gap.rotation - np.eye(3)).max() if constraint.rows == 6 else 0.0
    broken = max(float(np.linalg.norm(gap.translation)), float(turned))
    if broken > CONSTRAINT_ERROR and not constraint.compliance:
        raise ModelError(
            f"lock: these positions break the constraint {constraint.label!r} by {broken:.3g} m or rad; "
            "robot.meet_constraints finds positions that keep it"
        )
    return True


def with_mimics(model: Model, coupled: bool, undecided_only: bool) -> list[Joint] | None:
    """See ``Model.with_mimics``; None where nothing changes. Motors of several joints always follow them."""
    motors = {motor.name for motor in model.motors}

    def changed(joint: Joint) -> Joint:
        relation = joint.mimic
        if not joint.moves or relation is None or relation.coupled == coupled or joint.name in motors:
            return joint
        if undecided_only and relation.coupled is not None:
            return joint
        return replace(joint, mimic=replace(relation, coupled=coupled))

    joints = [changed(joint) for joint in model.joints]
    return None if all(a is b for a, b in zip(joints, model.joints, strict=True)) else joints
