"""Constraints between frames of a robot, or between a frame and the world: a pose or a point that is held.

``Weld`` holds six directions, ``Point`` three. ``Coupling`` makes one joint follow another; it takes a coordinate away
instead of adding a force. Frames are named; the world is the base frame of the robot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from linkwise.errors import ModelError, UnknownNameError, suggest
from linkwise.model.joint import Joint, Mimic, bodies_behind
from linkwise.model.quantity import finite
from linkwise.model.transform import Transform

if TYPE_CHECKING:
    from linkwise.model.model import Model

CONSTRAINT_ERROR = 1e-3
"""[m or rad]: positions that are further from meeting a constraint break it."""
TARGETS = "targets"
"""The input of kernels with the targets of frames that are held to the world, see ``target_values``."""


@dataclass(frozen=True)
class Weld:
    """Holds a frame at a pose in the world, or to another frame.

    ``to``: a pose in the base frame (4×4 matrix or ``Transform``), or the name of another frame, in which the first one
    is held at ``pose`` (default: the two coincide). ``compliance``: see ``Point``.
    """

    frame: str
    to: str | Transform | Sequence[Sequence[float]] | np.ndarray
    pose: Transform | Sequence[Sequence[float]] | np.ndarray | None = None
    name: str = ""
    compliance: float = 0.0

    rows = 6

    @property
    def label(self) -> str:
        return self.name or _label("weld", self.frame, self.to)

    def ends(self) -> tuple[tuple[str, Transform], tuple[str | None, Transform]]:
        """(frame, pose in it) of both sides; None is the world."""
        if not isinstance(self.to, str):
            return (self.frame, Transform.identity()), (None, _pose(self.label, self.to))
        pose = Transform.identity() if self.pose is None else _pose(self.label, self.pose)
        return (self.frame, Transform.identity()), (self.to, pose)


@dataclass(frozen=True)
class Point:
    """Holds a point of a frame at a point of the world, or at a point of another frame; it may turn about it.

    ``offset``: the point in the first frame [m] (default: its origin). ``to``: a position in the base frame [m], or the
    name of another frame, in which the point is held at ``position`` (default: its origin). ``compliance`` makes it
    soft: the acceleration by which every direction gives way per unit of force [(m/s²)/N, (rad/s²)/(N·m)], MuJoCo's R.
    """

    frame: str
    to: str | Sequence[float] | np.ndarray
    position: Sequence[float] | np.ndarray = (0.0, 0.0, 0.0)
    offset: Sequence[float] | np.ndarray = (0.0, 0.0, 0.0)
    name: str = ""
    compliance: float = 0.0

    rows = 3

    @property
    def label(self) -> str:
        return self.name or _label("point", self.frame, self.to)

    def ends(self) -> tuple[tuple[str, Transform], tuple[str | None, Transform]]:
        own = (self.frame, _place(self.label, self.offset))
        if isinstance(self.to, str):
            return own, (self.to, _place(self.label, self.position))
        return own, (None, _place(self.label, self.to))


@dataclass(frozen=True)
class Coupling:
    """Joint ``follower`` moves at ``ratio`` times the coordinate of ``leader``, plus ``offset`` [rad or m]."""

    follower: str
    leader: str
    ratio: float = 1.0
    offset: float = 0.0


Constraint = Weld | Point


def with_couplings(model: Model, given: Sequence[Any]) -> list[Joint]:
    """The joints of a model, of which those that follow another by a ``Coupling`` do so.

    Args:
        model: the robot.
        given: constraints of all kinds.
    """
    relations: dict[str, Coupling] = {}
    names = [joint.name for joint in model.moving_joints]
    for coupling in (c for c in given if isinstance(c, Coupling)):
        for name in (coupling.follower, coupling.leader):
            if name not in names:
                raise UnknownNameError(f"coupling: no moving joint {name!r}; {suggest(name, names)}")
        other = relations.setdefault(coupling.follower, coupling)
        if other != coupling:
            raise ModelError(
                f"coupling: {coupling.follower!r} would follow both {other.leader!r} and {coupling.leader!r}; give one "
                "Coupling for each follower"
            )
    return [
        replace(joint, mimic=Mimic(c.leader, float(c.ratio), float(c.offset), True))
        if (c := relations.get(joint.name)) is not None
        else joint
        for joint in model.joints
    ]


def check_constraints(model: Model) -> None:
    """Refuse constraints and passive joints that a robot cannot have, by name."""
    for constraint in cast("tuple[Any, ...]", model.constraints):
        if not isinstance(constraint, (Weld, Point)):
            raise ModelError(f"constraints: expected Weld, Point or Coupling, got {constraint!r}")
        if not finite(f"{constraint.label}: compliance", constraint.compliance) >= 0.0:
            raise ModelError(f"{constraint.label}: compliance: expected a number of at least 0")
        bodies = [-1 if frame is None else model.locate(frame)[0] for frame, _ in constraint.ends()]
        if bodies[0] == bodies[1]:
            raise ModelError(f"{constraint.label}: both of its ends belong to the same link")
    for name in model.passive:
        if name not in model.joint_names:
            raise UnknownNameError(f"passive: no joint {name!r}; {suggest(name, model.joint_names)}")


def held_joints(model: Model) -> dict[str, str]:
    """Joints with coordinates on which constraints depend, with the label of the first such constraint."""
    found: dict[str, str] = {}
    for constraint in model.constraints:
        (one, _), (other, _) = constraint.ends()
        first, second = (
            joints_behind(model, one),
            set[str]() if other is None else joints_behind(model, other),
        )
        for joint in model.coordinate_joints:
            if joint.name in first ^ second:
                found.setdefault(joint.name, constraint.label)
    return found


def joints_behind(model: Model, frame: str | None) -> set[str]:
    """Names of the joints with coordinates that move a frame; None is the only leaf."""
    found: set[str] = set()
    for body in bodies_behind(model, model.locate(frame)[0]):
        relation = model.followed[body]
        leaders = [(model.moving_joints[body].name, 1.0)] if relation is None else relation.leaders
        found.update(name for name, _ in leaders)
    return found


def content(constraint: Constraint, *, targets: bool = True) -> tuple[Any, ...]:
    """What defines a constraint, as nested tuples; without ``targets`` not where in the world a frame is held."""
    ends = tuple(
        (frame, pose.rotation.tobytes(), pose.translation.tobytes()) if targets or frame is not None else ()
        for frame, pose in constraint.ends()
    )
    return type(constraint).__name__, constraint.label, ends, float(constraint.compliance)


def target_size(constraint: Constraint) -> int:
    """Numbers of the target of a frame that is held to the world; 0 where it is held to another frame."""
    return 0 if constraint.ends()[1][0] is not None else 12 if constraint.rows == 6 else 3


def target_values(constraints: Sequence[Constraint]) -> np.ndarray:
    """Targets of all frames that are held to the world: position [m], for welds then the rotation matrix row by row."""
    values: list[float] = []
    for constraint in constraints:
        if size := target_size(constraint):
            pose = constraint.ends()[1][1]
            values += [*pose.translation.tolist(), *pose.rotation.ravel().tolist()][:size]
    return np.array(values)


def _label(kind: str, frame: str, to: object) -> str:
    return f"{kind} of {frame} to {to if isinstance(to, str) else 'the world'}"


def _pose(whose: str, value: object) -> Transform:
    if isinstance(value, Transform):
        return value
    matrix = _numbers(whose, value)
    if matrix.shape != (4, 4):
        raise ModelError(f"{whose}: expected a pose of shape (4, 4), got shape {matrix.shape}")
    rotation = matrix[:3, :3]
    if np.abs(rotation @ rotation.T - np.eye(3)).max() > 1e-9 or np.linalg.det(rotation) < 0:
        raise ModelError(f"{whose}: its pose has no rotation matrix")
    return Transform(rotation, matrix[:3, 3])


def _place(whose: str, value: object) -> Transform:
    point = _numbers(whose, value)
    if point.shape != (3,):
        raise ModelError(f"{whose}: expected a position of shape (3,), got shape {point.shape}")
    return Transform(np.eye(3), point)


def _numbers(whose: str, value: object) -> np.ndarray:
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(f"{whose}: expected numbers or the name of a frame, got {value!r}") from None
    if not np.isfinite(array).all():
        raise ModelError(f"{whose}: a number is not finite")
    return array
