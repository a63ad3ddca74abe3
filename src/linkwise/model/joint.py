"""What a joint is: its type, axis, limits, and the numbers of what it adds to the equation of motion."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise import joint_laws
from linkwise.arguments.flags import flag_or_none
from linkwise.errors import ModelError, UnknownNameError, suggest
from linkwise.model.axes import MOVING_TYPES, JointType
from linkwise.model.hints import Hinted
from linkwise.model.transform import Transform

if TYPE_CHECKING:
    from linkwise.model.model import Model

SAME_END = 1e-9  # relative, and [rad or m]: ends of ranges that differ by rounding meet


@dataclass(frozen=True)
class Limits:
    """Limits of a joint as its file states them: position [rad or m], speed [rad/s or m/s], effort [N·m or N].

    Formats that need a number for speed and effort have 0 where it is unknown, so a limit of 0 (or less) is no limit:
    comparisons with limits use ``largest_velocity`` and ``largest_effort``.
    """

    lower: float = -math.inf
    upper: float = math.inf
    velocity: float = math.inf
    effort: float = math.inf

    @property
    def largest_velocity(self) -> float:
        """The speed limit; infinity where none is stated."""
        return self.velocity if self.velocity > 0.0 else math.inf

    @property
    def largest_effort(self) -> float:
        """The effort limit; infinity where none is stated."""
        return self.effort if self.effort > 0.0 else math.inf


@dataclass(frozen=True)
class Mimic:
    """q = multiplier·q(joint) + offset, and more terms factor·q(other) where ``also`` has them.

    ``coupled``: the joint has no coordinate of its own and follows the other one exactly. Else the relation is data and
    the coordinate stays independent (as in Pinocchio). None, where a file does not say, counts as independent until
    ``load`` decides.
    """

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0
    coupled: bool | None = None
    also: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "coupled", flag_or_none("coupled", self.coupled))

    @property
    def leaders(self) -> tuple[tuple[str, float], ...]:
        """(joint, factor) of all that is followed."""
        return ((self.joint, self.multiplier), *self.also)


@dataclass(frozen=True)
class Joint(Hinted):
    """A joint between two links.

    ``origin`` is the pose of the child link's frame in the parent's at q = 0; ``axis`` is a unit vector in the child's
    frame. rotor_inertia is seen at the joint [kg·m² or kg], viscous_friction [N·m·s/rad or N·s/m];
    coulomb_friction = (forward, backward) are two magnitudes [N·m or N] for positive and negative speed; a number is
    both. ``body`` names the link, fixed to the child, in whose frame inertial parameters are labelled (the child itself
    if empty).
    ``terms`` are the numbers of further laws by name (``stiffness``, ``spring_reference``; see
    ``linkwise.joint_laws``); those that are missing are zero.

    ``type``: revolute, continuous, prismatic, helical (a screw that advances ``pitch`` metres a radian), ball, floating
    or fixed. The position of a ball joint is a quaternion (x, y, z, w), that of a floating joint a point and a
    quaternion (x, y, z, qx, qy, qz, qw); their velocities are (angular, linear) in the child's own axes. Rotor inertia
    and friction of such a joint act on each of its velocities.
    """

    name: str
    type: str
    parent: str
    child: str
    origin: Transform = field(default_factory=Transform.identity)
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    limits: Limits = Limits()
    rotor_inertia: float = 0.0
    viscous_friction: float = 0.0
    coulomb_friction: tuple[float, float] = (0.0, 0.0)
    mimic: Mimic | None = None
    body: str = ""
    pitch: float = 0.0
    terms: Mapping[str, float] = field(default_factory=dict[str, float])

    def __post_init__(self):
        for name in self.terms:
            if name not in joint_laws.TERMS:
                raise UnknownNameError(
                    f"joint {self.name!r}: no term {name!r}; {suggest(name, joint_laws.TERMS)}"
                )
        object.__setattr__(self, "terms", {name: float(value) for name, value in self.terms.items()})
        friction = joint_laws.both_directions(self.coulomb_friction, f"joint {self.name!r}")
        object.__setattr__(self, "coulomb_friction", friction)

    def number(self, name: str) -> float:
        """A number of the joint by the end of its label: ``viscous_friction``, ``stiffness`` …"""
        found: Any = joint_laws.number(self, name)  # a joint of a model has floats
        return found

    @property
    def kind(self) -> JointType | None:
        """What its type may do; None where it does not move."""
        return MOVING_TYPES.get(self.type)

    @property
    def free(self) -> bool:
        """Whether the joint turns about all axes: a ball or floating joint."""
        return self.kind is not None and self.kind.free

    @property
    def nq(self) -> int:
        """Number of position coordinates."""
        return self.kind.nq if self.kind else 0

    @property
    def dof(self) -> int:
        """Number of velocity coordinates."""
        return len(self.kind.axes) if self.kind else 0

    @property
    def neutral(self) -> np.ndarray:
        """Position zero, shape (nq,)."""
        zero = np.zeros(self.nq)
        if self.free:
            zero[-1] = 1.0
        return zero

    def random(self, rng: np.random.Generator, shape: tuple[int, ...] = ()) -> np.ndarray:
        """Random positions, shape (*shape, nq), see ``Model.random``.

        Args:
            rng: the generator.
            shape: leading axes of the result.
        """
        if self.free:
            quaternion = rng.normal(size=(*shape, 4))
            quaternion /= np.linalg.norm(quaternion, axis=-1, keepdims=True)
            place = rng.uniform(-1.0, 1.0, (*shape, self.nq - 4))
            return np.concatenate([place, quaternion], axis=-1)
        reach = math.pi if self.turns else 1.0
        lower, upper = self.limits.lower, self.limits.upper
        if not math.isfinite(lower) and not math.isfinite(upper):
            lower, upper = -reach, reach
        lower = lower if math.isfinite(lower) else upper - 2.0 * reach
        upper = upper if math.isfinite(upper) else lower + 2.0 * reach
        return rng.uniform(lower, upper, (*shape, 1))

    @property
    def turns(self) -> bool:
        """Whether the joint's first coordinate is an angle or an orientation."""
        return self.kind is not None and self.kind.turns

    @property
    def slides(self) -> bool:
        """Whether the joint's only coordinate is a length."""
        return self.kind is not None and self.kind.slides

    @property
    def screws(self) -> bool:
        """Whether the joint advances by ``pitch`` for every radian."""
        return self.kind is not None and self.kind.screws

    @property
    def body_link(self) -> str:
        """The link in whose frame the inertial parameters of what this joint moves are given."""
        return self.body or self.child

    @property
    def moves(self) -> bool:
        return self.kind is not None

    @property
    def revolute(self) -> bool:
        """Whether the joint turns about one axis and does nothing else."""
        return self.turns and not self.free and not self.screws

    def motion(self, q: float | Sequence[float]) -> Transform:
        """The pose of the child's frame in the parent's at the joint's position q, a number or a sequence of them."""
        if not self.moves:
            return self.origin
        numbers = np.ravel(q).astype(float).tolist()
        if len(numbers) != self.nq:
            raise ModelError(f"joint {self.name!r}: its position has {self.nq} numbers, got {len(numbers)}")
        if self.free:
            x, y, z, w = numbers[-4:]
            position = numbers[:3] if self.type == "floating" else (0.0, 0.0, 0.0)
            return self.origin @ Transform.from_quaternion(position, (w, x, y, z))
        if self.slides:
            return self.origin @ Transform.along(self.axis, numbers[0])
        turned = self.origin @ Transform.about(self.axis, numbers[0])
        return turned @ Transform.along(self.axis, self.pitch * numbers[0]) if self.pitch else turned


def bodies_behind(model: Model, body: int) -> list[int]:
    """Numbers of a moving link and of those between it and the base, nearest first; none for the base, −1."""
    found: list[int] = []
    while body >= 0:
        found.append(body)
        body = model.carrier(model.moving_joints[body].parent)[0]
    return found


def followed_joints(joints: Sequence[Joint]) -> tuple[Mimic | None, ...]:
    """For each joint the relation to the joints that it finally follows: chains of relations are one relation."""
    by_name = {joint.name: joint for joint in joints}
    return tuple(
        _resolved(joint, by_name, [joint.name]) if joint.mimic is not None and joint.mimic.coupled else None
        for joint in joints
    )


def _resolved(joint: Joint, by_name: Mapping[str, Joint], seen: list[str]) -> Mimic:
    """The relation of a follower to joints with coordinates of their own; ``seen`` are the joints on the way to it."""
    assert joint.mimic is not None
    factors: dict[str, float] = {}
    offset = joint.mimic.offset
    for name, factor in joint.mimic.leaders:
        if name in seen:
            raise ModelError(f"joint {seen[0]!r} follows itself: {' → '.join([*seen, name])}")
        leader = by_name.get(name)
        if leader is None:
            raise ModelError(f"joint {seen[0]!r} follows {name!r}, which is no moving joint")
        if joint.free or leader.free:
            raise ModelError(f"joint {seen[0]!r}: a ball or floating joint neither follows nor leads another")
        if leader.mimic is None or not leader.mimic.coupled:
            factors[name] = factors[name] + factor if name in factors else factor
            continue
        inner = _resolved(leader, by_name, [*seen, name])
        offset = factor * inner.offset + offset
        for end, ratio in inner.leaders:
            through = factor * ratio
            factors[end] = factors[end] + through if end in factors else through
    (first, multiplier), *rest = factors.items()
    return Mimic(first, multiplier, offset, True, tuple(rest))


def coordinate_joints(joints: Sequence[Joint], followed: Sequence[Mimic | None]) -> tuple[Joint, ...]:
    """The joints with coordinates of their own, with limits that their followers keep, too.

    A coordinate at which a follower q_f = r·q + c would leave its range is out of range, and q̇ is at most the
    follower's largest speed over |r|. Effort limits are those of motors: that of a follower, which others move, bounds
    no torque that is commanded. Where the leader's own is not stated, the motors that files put at the followers are
    the only ones known; they act on the coordinate with Σ |r|·effort.
    """
    own = {joint.name: joint for joint, relation in zip(joints, followed, strict=True) if relation is None}
    efforts = dict.fromkeys(own, 0.0)
    for joint, relation in zip(joints, followed, strict=True):
        if relation is None or joint.limits == Limits():
            continue
        if relation.also:
            raise ModelError(
                f"joint {joint.name!r}: it follows several joints, whose ranges its own limits cannot bound one by "
                "one; give it none"
            )
        leader, ratio = own[relation.joint], abs(relation.multiplier)
        own[relation.joint] = replace(leader, limits=_common(leader, joint, relation))
        efforts[relation.joint] += ratio * joint.limits.largest_effort if ratio else 0.0
    return tuple(
        replace(joint, limits=replace(joint.limits, effort=efforts[name]))
        if 0.0 < efforts[name] < joint.limits.largest_effort == math.inf
        else joint
        for name, joint in own.items()
    )


def leading_limits(follower: Joint, relation: Mimic) -> tuple[float, float, float]:
    """(lower, upper, largest speed) of its only leader at which a follower is at the limits of its own."""
    ends, ratio = (follower.limits.lower, follower.limits.upper), relation.multiplier
    if not ratio:
        kept = ends[0] <= relation.offset <= ends[1]
        return (-math.inf, math.inf, math.inf) if kept else (math.inf, -math.inf, math.inf)
    low, high = ((end - relation.offset) / ratio for end in (ends if ratio > 0.0 else ends[::-1]))
    return low + 0.0, high + 0.0, follower.limits.largest_velocity / abs(ratio)  # no −0


def _common(leader: Joint, follower: Joint, relation: Mimic) -> Limits:
    """The leader's limits within which the follower keeps its own."""
    ends = follower.limits.lower, follower.limits.upper
    low, high, fastest = leading_limits(follower, relation)
    lower, upper = max(leader.limits.lower, low), min(leader.limits.upper, high)
    if lower > upper and leader.limits.lower <= leader.limits.upper:
        if not math.isclose(lower, upper, rel_tol=SAME_END, abs_tol=SAME_END):
            raise ModelError(
                f"joint {follower.name!r} follows {leader.name!r} and stays within {ends[0]:g} and {ends[1]:g} at no "
                f"position of {leader.name!r} between {leader.limits.lower:g} and {leader.limits.upper:g}; correct "
                'these limits or the relation, or load the robot with mimic="independent"'
            )
        lower = upper  # the ends meet but for rounding
    limits = replace(leader.limits, lower=lower, upper=upper)
    return limits if fastest >= limits.largest_velocity else replace(limits, velocity=fastest)
