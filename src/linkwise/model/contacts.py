"""What of a robot may touch what: spheres and points of links against the ground, joints at their stops.

A contact is a set of spheres of one radius that are fixed to a frame; a point is a sphere of radius zero. Cylinders
are points of their rims, capsules the spheres at their ends, a box is the four corners of its lowest face. Every sphere
is one *candidate*: it gives three rows of the contact problem whether it touches or not, so the program has no lists
and no branches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.errors import ModelError, UnknownNameError, suggest
from linkwise.model.quantity import finite

if TYPE_CHECKING:
    from linkwise.model.model import Model

DEFAULT_FRICTION = 0.8
Place = tuple[float, float, float]


@dataclass(frozen=True)
class Contact:
    """Spheres of a frame that may touch the ground.

    Args:
        frame: to which the spheres are fixed: a link or a named frame.
        other: None, the ground; other frames are refused: contacts between links are not modelled.
        friction: coefficient of Coulomb friction μ; None: that of the ground.
        radius: of the spheres [m]; 0 makes them points.
        offset: centre of the only sphere in the frame [m].
        points: centres of several spheres in the frame [m], shape (k, 3), in place of ``offset``.
        edges: of a box about ``offset`` in the axes of the frame [m], shape (3,); no radius. The corners of the face
            that points down are four candidates.
        restitution: part of the speed of approach with which the bodies part after an impact, 0 to 1.
        stiffness: of a soft contact [N/m], for each candidate; None: it is rigid.
        damping: of a soft contact [N·s/m].
        torsional_friction: moment against spinning about the normal over the normal force [m]; about 2/3 of μ times the
            radius of the area that touches.
        rolling_friction: moment against rolling over the normal force [m].
        name: in messages and in ``contact_names``; by default the frame's.
    """

    frame: str
    other: str | None = None
    friction: float | None = field(default=None, kw_only=True)
    radius: float = field(default=0.0, kw_only=True)
    offset: Sequence[float] = field(default=(0.0, 0.0, 0.0), kw_only=True)
    points: Sequence[Sequence[float]] | None = field(default=None, kw_only=True)
    edges: Sequence[float] | None = field(default=None, kw_only=True)
    restitution: float = field(default=0.0, kw_only=True)
    stiffness: float | None = field(default=None, kw_only=True)
    damping: float = field(default=0.0, kw_only=True)
    torsional_friction: float = field(default=0.0, kw_only=True)
    rolling_friction: float = field(default=0.0, kw_only=True)
    name: str = field(default="", kw_only=True)

    def __post_init__(self):
        put = object.__setattr__
        label = self.label
        if self.friction is not None:
            put(self, "friction", _coefficient(f"{label}: friction", self.friction))
        put(self, "restitution", finite(f"{label}: restitution", self.restitution))
        if not 0.0 <= self.restitution <= 1.0:
            raise ModelError(f"{label}: restitution: expected a number from 0 to 1, got {self.restitution!r}")
        for what in ("torsional_friction", "rolling_friction"):
            value = _coefficient(f"{label}: {what}", getattr(self, what))
            if value and self.other is not None:
                raise ModelError(f"{label}: {what}: against the ground only")
            put(self, what, value)
        put(self, "damping", finite(f"{label}: damping", self.damping))
        if self.stiffness is not None:
            put(self, "stiffness", finite(f"{label}: stiffness", self.stiffness))
        if self.damping < 0.0 or (self.stiffness is not None and self.stiffness <= 0.0):
            raise ModelError(
                f"{label}: expected a stiffness above 0 [N/m] and a damping of at least 0 [N·s/m], got "
                f"{self.stiffness!r} and {self.damping!r}"
            )
        if self.stiffness is None and self.damping:
            raise ModelError(f"{label}: damping: a rigid contact has none; give stiffness= [N/m] as well")
        if self.stiffness is not None and self.restitution:
            raise ModelError(
                f"{label}: restitution: a soft contact bounces as its damping says; leave it out"
            )
        put(self, "radius", finite(f"{label}: radius", self.radius))
        if self.radius < 0.0:
            raise ModelError(f"{label}: radius: expected at least 0 [m], got {self.radius!r}")
        put(self, "offset", _places(f"{label}: offset", [self.offset])[0])
        points = [self.offset] if self.points is None else self.points
        put(self, "points", _places(f"{label}: points", points))
        if self.edges is not None:
            put(self, "edges", _edges(f"{label}: edges", self.edges))
            if self.radius or len(points) > 1 or self.other is not None:
                raise ModelError(f"{label}: a box has no radius and no points, and touches the ground only")

    @property
    def label(self) -> str:
        """Its name in messages."""
        against = "" if self.other is None else f" with {self.other}"
        return self.name or f"contact of {self.frame}{against}"

    @classmethod
    def box(cls, frame: str, size: Sequence[float], other: str | None = None, **options: Any) -> Contact:
        """A box: the four corners of the face that points down.

        Args:
            frame: to which the box is fixed, in whose axes its edges lie.
            size: its three edges [m].
            other: as for ``Contact``.
            options: others of ``Contact``; ``offset`` is the centre of the box.
        """
        return cls(frame, other, edges=size, **options)

    @classmethod
    def capsule(
        cls, frame: str, radius: float, length: float, other: str | None = None, **options: Any
    ) -> Contact:
        """The two end spheres of a capsule along the z axis of the frame: exact against planes.

        Args:
            frame: to which the capsule is fixed.
            radius: [m].
            length: of its axis, between the centres of the spheres [m].
            other: as for ``Contact``.
            options: others of ``Contact``; ``offset`` is the middle of the capsule.
        """
        half, centre = 0.5 * finite(f"contact of {frame}: length", length), _centre(frame, options)
        ends = [(centre[0], centre[1], centre[2] + along) for along in (-half, half)]
        return cls(frame, other, points=ends, radius=radius, **options)

    @classmethod
    def cylinder(
        cls,
        frame: str,
        radius: float,
        length: float,
        other: str | None = None,
        *,
        sides: int = 8,
        **options: Any,
    ) -> Contact:
        """Points on the two rims of a cylinder along the z axis of the frame: the prism with this many sides.

        Args:
            frame: to which the cylinder is fixed.
            radius: [m].
            length: [m].
            other: as for ``Contact``.
            sides: points on each rim.
            options: others of ``Contact``; ``offset`` is the middle of the cylinder.
        """
        half, centre = 0.5 * finite(f"contact of {frame}: length", length), _centre(frame, options)
        if sides < 3:
            raise ModelError(f"contact of {frame}: sides: expected at least 3, got {sides!r}")
        rim = finite(f"contact of {frame}: radius", radius)
        angles = [2.0 * math.pi * k / sides for k in range(sides)]
        points = [
            (centre[0] + rim * math.cos(a), centre[1] + rim * math.sin(a), centre[2] + along)
            for along in (-half, half)
            for a in angles
        ]
        return cls(frame, other, points=points, **options)


@dataclass(frozen=True)
class Ground:
    """The plane z = ``height`` of the world, which contacts without another frame touch.

    Args:
        friction: coefficient of Coulomb friction of contacts that have none of their own.
        height: of the plane in the base frame [m].
    """

    friction: float = DEFAULT_FRICTION
    height: float = 0.0

    def __post_init__(self):
        object.__setattr__(self, "friction", _coefficient("ground: friction", self.friction))
        object.__setattr__(self, "height", finite("ground: height", self.height))


@dataclass(frozen=True)
class Stop:
    """The ends of a joint's range stop it, in steps with contact.

    Args:
        joint: a revolute or prismatic joint with limits of its position.
        restitution: part of its speed with which it moves back, 0 to 1.
    """

    joint: str
    restitution: float = 0.0

    def __post_init__(self):
        value = finite(f"stop of {self.joint}: restitution", self.restitution)
        if not 0.0 <= value <= 1.0:
            raise ModelError(
                f"stop of {self.joint}: restitution: expected a number from 0 to 1, got {value!r}"
            )
        object.__setattr__(self, "restitution", value)


Part = Contact | Ground | Stop


def ground_of(parts: Iterable[Part]) -> Ground:
    """The ground that was given, or that of friction 0.8 at height zero."""
    return next((part for part in parts if isinstance(part, Ground)), Ground())


def contacts_of(parts: Iterable[Part]) -> tuple[Contact, ...]:
    """The contacts alone, each with a coefficient of friction."""
    parts = tuple(parts)
    friction = ground_of(parts).friction
    return tuple(
        part if part.friction is not None else replace(part, friction=friction)
        for part in parts
        if isinstance(part, Contact)
    )


def stops_of(parts: Iterable[Part]) -> tuple[Stop, ...]:
    return tuple(part for part in parts if isinstance(part, Stop))


def candidate_names(parts: Iterable[Part]) -> tuple[str, ...]:
    """One name for every candidate: that of its contact, with a number where it has several."""
    names: list[str] = []
    for contact in contacts_of(parts):
        name = contact.name or (
            contact.frame if contact.other is None else f"{contact.frame}:{contact.other}"
        )
        count = len(contact.points or ()) if contact.edges is None else 4
        names += [name] if count == 1 else [f"{name}[{k}]" for k in range(count)]
    return tuple(names)


def candidate_count(model: Model) -> int:
    """How many spheres and points may touch something."""
    return len(candidate_names(model.contact_parts))


def contact_rows(model: Model) -> int:
    """How many rows the problem of a step has: three for every candidate, one for joints that stop or rub."""
    if not model.contact_parts:
        return 0
    stopped = {stop.joint for stop in stops_of(model.contact_parts)}
    rubbing = {joint.name for joint in model.moving_joints if joint.coulomb_friction}
    return 3 * candidate_count(model) + len(stopped | rubbing)


def stops_for(model: Model, stops: bool | Sequence[str]) -> list[Stop]:
    """The joints that stop at the ends of their range: those named, or all that have one."""
    if isinstance(stops, bool):
        return [Stop(joint.name) for joint in model.coordinate_joints if _ends(joint)] if stops else []
    return [Stop(name) for name in stops]


def check_contacts(model: Model, parts: Sequence[Any]) -> None:
    """Refuse what a robot cannot have, by name."""
    if sum(isinstance(part, Ground) for part in parts) > 1:
        raise ModelError("contacts: expected one Ground, got several")
    for part in parts:
        if isinstance(part, Contact):
            if model.locate(part.frame)[0] < 0:
                raise ModelError(f"{part.label}: {part.frame!r} is fixed to the base, which does not move")
            if part.other is not None:
                raise ModelError(
                    f"{part.label}: contacts between links are not modelled; other=None is the ground"
                )
        elif isinstance(part, Stop):
            joints = {joint.name: joint for joint in model.coordinate_joints}
            if part.joint not in joints:
                raise UnknownNameError(f"stops: no joint {part.joint!r}; {suggest(part.joint, joints)}")
            if not _ends(joints[part.joint]):
                raise ModelError(f"stops: joint {part.joint!r} has no limits of its position")
        elif not isinstance(part, Ground):
            raise ModelError(f"contacts: expected Contact, Ground or Stop, got {part!r:.80}")


def _ends(joint: Any) -> bool:
    """Whether a joint's range ends somewhere."""
    limits = joint.limits
    return joint.nq == 1 and (math.isfinite(limits.lower) or math.isfinite(limits.upper))


def _coefficient(what: str, value: object) -> float:
    """A coefficient of friction: finite, not negative."""
    if isinstance(value, (float, int)) and value == math.inf:
        raise ModelError(f"{what}: expected a finite number, got inf; 1e3 is a contact that never slides")
    number = finite(what, value)
    if number < 0.0:
        raise ModelError(f"{what}: expected a number of at least 0, got {number!r}")
    return number


def _centre(frame: str, options: dict[str, Any]) -> Place:
    return _places(f"contact of {frame}: offset", [options.pop("offset", (0.0, 0.0, 0.0))])[0]


def _places(what: str, value: Any) -> tuple[Place, ...]:
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(f"{what}: expected positions [m] of shape (3,), got {value!r:.80}") from None
    if array.ndim != 2 or array.shape[1] != 3 or not len(array):
        raise ModelError(f"{what}: expected positions [m] of shape (3,), got shape {array.shape[1:]}")
    return tuple((finite(what, x), finite(what, y), finite(what, z)) for x, y, z in array.tolist())


def _edges(what: str, value: Any) -> Place:
    edges = _places(what, [value])[0]
    if min(edges) <= 0.0:
        raise ModelError(f"{what}: expected three lengths above 0 [m], got {edges}")
    return edges
