"""What a joint is: its type, axis, limits, and the numbers of what it adds to the equation of motion."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise import joint_laws
from linkwise.arguments.flags import flag_or_none
from linkwise.errors import ModelError, UnknownNameError, suggest
from linkwise.model.hints import Hinted
from linkwise.model.transform import Transform

if TYPE_CHECKING:
    from linkwise.model.model import Model

ONE_AXIS = ("revolute", "continuous", "prismatic", "helical")
FREE = {"ball": (4, 3), "floating": (7, 6)}  # numbers of position and velocity coordinates
MOVING = (*ONE_AXIS, *FREE)
JOINT_TYPES = (*MOVING, "fixed")


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
    coulomb_friction = (forward, backward) are two magnitudes [N·m or N] for positive and negative speed. ``body`` names
    the link, fixed to the child, in whose frame inertial parameters are labelled (the child itself if empty).
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

    def number(self, name: str) -> float:
        """A number of the joint by the end of its label: ``viscous_friction``, ``stiffness`` …"""
        found: Any = joint_laws.number(self, name)  # a joint of a model has floats
        return found

    @property
    def free(self) -> bool:
        """Whether the joint turns about all axes: a ball or floating joint."""
        return self.type in FREE

    @property
    def nq(self) -> int:
        """Number of position coordinates."""
        return FREE[self.type][0] if self.free else int(self.moves)

    @property
    def dof(self) -> int:
        """Number of velocity coordinates."""
        return FREE[self.type][1] if self.free else int(self.moves)

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
        return self.type in ("revolute", "continuous", "helical", "ball")

    @property
    def body_link(self) -> str:
        """The link in whose frame the inertial parameters of what this joint moves are given."""
        return self.body or self.child

    @property
    def moves(self) -> bool:
        return self.type in MOVING

    @property
    def revolute(self) -> bool:
        return self.type in ("revolute", "continuous")

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
        if self.type == "prismatic":
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
