"""What of a robot may touch what: shapes of links against the ground and against each other, joints and tendons at
their stops.

A contact is a set of shapes that are fixed to a frame, against the ground or against those of another frame. Every pair
of shapes gives a fixed number of *candidates* (``shapes.CANDIDATES``): each is three rows of the contact problem,
whether it touches or not, so the program has no lists and no branches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from linkwise import joint_laws
from linkwise.arguments.numbers import Numbers
from linkwise.errors import ModelError, UnknownNameError, suggest
from linkwise.model.quantity import finite
from linkwise.model.shapes import WORLD_ONLY, Place, Shape, candidates_of, coefficient, places

if TYPE_CHECKING:
    from linkwise.model.joint import Joint
    from linkwise.model.model import Model

DEFAULT_FRICTION = 0.8


@dataclass(frozen=True)
class Contact:
    """Shapes of a frame that may touch the ground or those of another frame.

    The shapes are those that ``radius``, ``points``, ``length`` and ``edges`` describe. Where none of them is given,
    they are the ``lw.Shape``s of the frame in the same list, and a point at the frame's origin where it has none.

    Args:
        frame: to which the shapes are fixed: a link or a named frame.
        other: another frame, whose ``lw.Shape``s are touched; it may be fixed to the base. None: the ground.
        friction: coefficient of Coulomb friction μ; None: the larger one of the two shapes, or that of the ground.
        radius: of spheres [m]; 0 makes them points.
        offset: centre of the only sphere, capsule or box in the frame [m].
        points: centres of several spheres in the frame [m], shape (k, 3), in place of ``offset``.
        length: of the axis of a capsule along z [m].
        edges: of a box about ``offset`` in the axes of the frame [m], shape (3,); no radius.
        shapes: in place of all of these; of several frames where ``nearest`` is given.
        other_shapes: of the other frame, in place of all that it has.
        nearest: only so many candidates, in every state those that are nearest to the ground; None: all of them.
            Every candidate costs time, whether it touches or not.
        restitution: part of the speed of approach with which the bodies part after an impact, 0 to 1.
        stiffness: of a soft contact [N/m], for each candidate; None: it is rigid.
        damping: of a soft contact [N·s/m].
        torsional_friction: moment against spinning about the normal over the normal force [m]; about 2/3 of μ times the
            radius of the area that touches.
        rolling_friction: moment against rolling over the normal force [m].
        margin: distance at which the shapes touch [m], as MuJoCo's; gaps are what is left until then. Negative: how
            deep they may be inside.
        name: in messages and in ``contact_names``; by default the frame's.
    """

    frame: str
    other: str | None = None
    friction: float | None = field(default=None, kw_only=True)
    radius: float = field(default=0.0, kw_only=True)
    offset: Sequence[float] = field(default=(0.0, 0.0, 0.0), kw_only=True)
    points: Sequence[Sequence[float]] | None = field(default=None, kw_only=True)
    length: float | None = field(default=None, kw_only=True)
    edges: Sequence[float] | None = field(default=None, kw_only=True)
    shapes: Sequence[Shape] = field(default=(), kw_only=True)
    other_shapes: Sequence[Shape] = field(default=(), kw_only=True)
    nearest: int | None = field(default=None, kw_only=True)
    restitution: float = field(default=0.0, kw_only=True)
    stiffness: float | None = field(default=None, kw_only=True)
    damping: float = field(default=0.0, kw_only=True)
    torsional_friction: float = field(default=0.0, kw_only=True)
    rolling_friction: float = field(default=0.0, kw_only=True)
    margin: float = field(default=0.0, kw_only=True)
    name: str = field(default="", kw_only=True)

    def __post_init__(self):
        put = object.__setattr__
        label = self.label
        if self.friction is not None:
            put(self, "friction", coefficient(f"{label}: friction", self.friction))
        put(self, "restitution", finite(f"{label}: restitution", self.restitution))
        if not 0.0 <= self.restitution <= 1.0:
            raise ModelError(f"{label}: restitution: expected a number from 0 to 1, got {self.restitution!r}")
        for what in ("torsional_friction", "rolling_friction"):
            put(self, what, coefficient(f"{label}: {what}", getattr(self, what)))
        put(self, "damping", finite(f"{label}: damping", self.damping))
        put(self, "margin", finite(f"{label}: margin", self.margin))
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
        put(self, "offset", places(f"{label}: offset", [self.offset])[0])
        points = [self.offset] if self.points is None else self.points
        put(self, "points", places(f"{label}: points", points))
        if self.edges is not None:
            put(self, "edges", _edges(f"{label}: edges", self.edges))
            if self.radius or len(points) > 1 or self.length is not None:
                raise ModelError(f"{label}: a box has no radius, no length and no points")
        put(self, "shapes", _own_shapes(f"{label}: shapes", self.shapes))
        put(self, "other_shapes", _own_shapes(f"{label}: other_shapes", self.other_shapes))
        if self.nearest is None and any(shape.frame != self.frame for shape in self.shapes):
            raise ModelError(f"{label}: shapes: those of other frames need nearest=")
        if any(shape.frame != self.other for shape in self.other_shapes):
            raise ModelError(f"{label}: other_shapes: expected shapes of {self.other!r}")
        if self.nearest is not None:
            Numbers(ModelError).whole(f"{label}: nearest", self.nearest, 1)
            if self.other is not None:
                raise ModelError(f"{label}: nearest: only for contacts with the ground")
            if self.torsional_friction or self.rolling_friction:
                raise ModelError(
                    f"{label}: nearest: not together with torsional_friction and rolling_friction, which belong to one "
                    "link each; give the contacts one by one"
                )
        if self.length is not None:
            put(self, "length", finite(f"{label}: length", self.length))
            if self.length < 0.0 or len(points) > 1:
                raise ModelError(
                    f"{label}: a capsule has one offset and a length of at least 0, got {self.length!r}"
                )

    @property
    def label(self) -> str:
        """Its name in messages."""
        against = "" if self.other is None else f" with {self.other}"
        return self.name or f"contact of {self.frame}{against}"

    @classmethod
    def box(cls, frame: str, size: Sequence[float], other: str | None = None, **options: Any) -> Contact:
        """A box: four candidates, against the ground the corners of the face that points down.

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
        """A capsule along the z axis of the frame: two candidates, against planes its end spheres.

        Args:
            frame: to which the capsule is fixed.
            radius: [m].
            length: of its axis, between the centres of the spheres [m].
            other: as for ``Contact``.
            options: others of ``Contact``; ``offset`` is the middle of the capsule.
        """
        return cls(frame, other, radius=radius, length=length, **options)

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
        object.__setattr__(self, "friction", coefficient("ground: friction", self.friction))
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
        object.__setattr__(self, "restitution", _restitution(f"stop of {self.joint}", self.restitution))


@dataclass(frozen=True)
class Tendon:
    """A length that stops at the ends of a range, in steps with contact: a weighted sum of joint positions, or that of
    a line through frames.

    Args:
        joints: the weight of every joint, by its name; revolute and prismatic ones.
        through: names of frames, in place of ``joints``: straight lines from each origin to the next one.
        lower: the least length, in units of weights times positions, or [m]; −inf: it has no such end.
        upper: the largest length; inf: it has no such end.
        restitution: part of its speed with which the length changes back, 0 to 1.
        name: in messages.
    """

    joints: Mapping[str, float] | tuple[tuple[str, float], ...] = ()
    through: Sequence[str] = field(default=(), kw_only=True)
    lower: float = field(default=-math.inf, kw_only=True)
    upper: float = field(default=math.inf, kw_only=True)
    restitution: float = field(default=0.0, kw_only=True)
    name: str = field(default="", kw_only=True)

    def __post_init__(self):
        put, label = object.__setattr__, self.label
        given = self.joints.items() if isinstance(self.joints, Mapping) else self.joints
        weights = tuple((joint, finite(f"{label}: weight of {joint}", weight)) for joint, weight in given)
        put(self, "joints", tuple((joint, weight) for joint, weight in weights if weight))
        put(self, "restitution", _restitution(label, self.restitution))
        lower, upper = float(self.lower), float(self.upper)
        if isinstance(self.through, str):
            raise ModelError(f"{label}: through: expected a list of frames, got {self.through!r}")
        put(self, "through", tuple(self.through))
        if self.through and (self.joints or len(self.through) < 2):
            raise ModelError(
                f"{label}: through: expected at least two frames and no joints, got {self.through}"
            )
        if not (self.joints or self.through):
            raise ModelError(f"{label}: joints: expected at least one weight that is not zero")
        if not (lower <= upper and (math.isfinite(lower) or math.isfinite(upper))):
            raise ModelError(
                f"{label}: expected a range with an end, the lower one first, got {lower} to {upper}"
            )
        put(self, "lower", lower)
        put(self, "upper", upper)

    @property
    def label(self) -> str:
        """In messages."""
        return f"tendon {self.name!r}" if self.name else "tendon"

    @property
    def weights(self) -> dict[str, float]:
        """The weight of every joint."""
        return dict(self.joints)

    def locked(self, positions: Mapping[str, float]) -> Tendon | None:
        """The tendon where these joints are fixed; None where nothing of it moves."""
        if self.through:
            return self
        weights = self.weights
        fixed = math.fsum(
            weight * positions[joint] for joint, weight in weights.items() if joint in positions
        )
        left = {joint: weight for joint, weight in weights.items() if joint not in positions}
        ends = {"lower": self.lower - fixed, "upper": self.upper - fixed}
        return replace(self, joints=left, **ends) if left else None


Part = Contact | Ground | Stop | Tendon | Shape


def _restitution(what: str, value: float) -> float:
    value = finite(f"{what}: restitution", value)
    if not 0.0 <= value <= 1.0:
        raise ModelError(f"{what}: restitution: expected a number from 0 to 1, got {value!r}")
    return value


@dataclass(frozen=True)
class Pairing:
    """Two shapes of a contact (or one and the ground), their friction, and how many candidates they give."""

    number: int
    """Of the contact."""
    contact: Contact
    first: Shape
    second: Shape | None
    friction: float
    count: int
    pool: tuple[Shape, ...] = ()
    """All shapes of a contact of which the nearest candidates are taken; ``first`` is one of them."""


def ground_of(parts: Iterable[Part]) -> Ground:
    """The ground that was given, or that of friction 0.8 at height zero."""
    return next((part for part in parts if isinstance(part, Ground)), Ground())


def contacts_of(parts: Iterable[Part]) -> tuple[Contact, ...]:
    """The contacts alone, each with a coefficient of friction where its shapes have none."""
    parts = tuple(parts)
    friction = ground_of(parts).friction
    given = {part.frame for part in parts if isinstance(part, Shape) and part.friction is not None}
    return tuple(
        part
        if part.friction is not None or {part.frame, part.other} & given
        else replace(part, friction=friction)
        for part in parts
        if isinstance(part, Contact)
    )


def shapes_of(parts: Iterable[Part], frame: str | None) -> tuple[Shape, ...]:
    """Those that were given for a frame."""
    return tuple(part for part in parts if isinstance(part, Shape) and part.frame == frame)


def pairings(parts: Iterable[Part]) -> list[Pairing]:
    """Which shapes of which contacts may touch which, in the order of the candidates."""
    parts = tuple(parts)
    common = ground_of(parts).friction
    found: list[Pairing] = []
    for number, contact in enumerate(contacts_of(parts)):
        others: Sequence[Shape | None] = [None]
        if contact.other is not None:
            others = contact.other_shapes or shapes_of(parts, contact.other)
        if contact.nearest is not None:
            pool = tuple(_shapes_of_contact(parts, contact))
            count = min(contact.nearest, sum(candidates_of(shape, _GROUND) for shape in pool))
            friction = common if contact.friction is None else contact.friction
            found.append(Pairing(number, contact, pool[0], None, friction, count, pool))
            continue
        for first in _shapes_of_contact(parts, contact):
            for second in others:
                given = [s.friction for s in (first, second) if s is not None and s.friction is not None]
                friction = max(given, default=common) if contact.friction is None else contact.friction
                count = candidates_of(first, _GROUND if second is None else second)
                found.append(Pairing(number, contact, first, second, friction, count))
    return found


_GROUND = Shape("ground", "plane")


def _shapes_of_contact(parts: Sequence[Part], contact: Contact) -> Sequence[Shape]:
    """The shapes that it describes, else those of its frame, else a point."""
    frame, points = contact.frame, contact.points or ()
    if contact.shapes:
        return contact.shapes
    if contact.edges is not None:
        return [Shape(frame, "box", contact.edges, offset=contact.offset)]
    if contact.length is not None:
        return [Shape(frame, "capsule", (contact.radius, contact.length), offset=contact.offset)]
    if not contact.radius and tuple(points) == ((0.0, 0.0, 0.0),):
        own = shapes_of(parts, frame)
        if own:
            return own
    return [Shape(frame, "sphere", (contact.radius,), offset=point) for point in points]


def stops_of(parts: Iterable[Part]) -> tuple[Stop, ...]:
    return tuple(part for part in parts if isinstance(part, Stop))


def tendons_of(parts: Iterable[Part]) -> tuple[Tendon, ...]:
    return tuple(part for part in parts if isinstance(part, Tendon))


def locked_parts(parts: Iterable[Part], positions: Mapping[str, float]) -> list[Part]:
    """What is left of the parts where these joints are fixed."""
    found: list[Part] = []
    for part in parts:
        own = part.locked(positions) if isinstance(part, Tendon) else part
        if own is not None and not (isinstance(own, Stop) and own.joint in positions):
            found.append(own)
    return found


def candidate_names(parts: Iterable[Part]) -> tuple[str, ...]:
    """One name for every candidate: that of its contact, with a number where it has several."""
    counts: dict[int, int] = {}
    every = pairings(parts)
    for pairing in every:
        counts[pairing.number] = counts.get(pairing.number, 0) + pairing.count
    names: list[str] = []
    for number, contact in {pairing.number: pairing.contact for pairing in every}.items():
        name = contact.name or (
            contact.frame if contact.other is None else f"{contact.frame}:{contact.other}"
        )
        count = counts[number]
        names += [name] if count == 1 else [f"{name}[{k}]" for k in range(count)]
    return tuple(names)


def candidate_count(model: Model) -> int:
    """How many spheres and points may touch something."""
    return sum(pairing.count for pairing in pairings(model.contact_parts))


def contact_rows(model: Model) -> int:
    """How many rows the problem of a step has: three for every candidate, one for joints that stop or rub and for
    tendons."""
    if not model.contact_parts:
        return 0
    stopped = {stop.joint for stop in stops_of(model.contact_parts)}
    rubbing = {joint.name for joint in model.moving_joints if joint_laws.has_dry_friction(joint)}
    return 3 * candidate_count(model) + len(stopped | rubbing) + len(tendons_of(model.contact_parts))


def stops_for(model: Model, stops: bool | Sequence[str]) -> list[Stop]:
    """The joints that stop at the ends of their range: those named, or all that have one."""
    if isinstance(stops, bool):
        return [Stop(joint.name) for joint in model.coordinate_joints if _ends(joint)] if stops else []
    return [Stop(name) for name in stops]


def moves(model: Model, part: Part) -> bool:
    """Whether something moves between what a contact or a tendon is about; True of other parts."""
    if isinstance(part, Tendon):
        return not part.through or len({model.locate(frame)[0] for frame in part.through}) > 1
    if not isinstance(part, Contact):
        return True
    if part.other is None:
        return min(model.locate(frame)[0] for frame in (part.frame, *(s.frame for s in part.shapes))) >= 0
    return model.locate(part.frame)[0] != model.locate(part.other)[0]


def check_contacts(model: Model, parts: Sequence[Any]) -> None:
    """Refuse what a robot cannot have, by name."""
    if sum(isinstance(part, Ground) for part in parts) > 1:
        raise ModelError("contacts: expected one Ground, got several")
    for part in parts:
        if isinstance(part, Contact):
            _check_contact(model, parts, part)
        elif isinstance(part, Shape):
            if model.locate(part.frame)[0] >= 0 and part.kind in WORLD_ONLY:
                raise ModelError(f"{part.label}: it moves; a {part.kind} must be fixed to the base")
        elif isinstance(part, Stop):
            joints = {joint.name: joint for joint in model.coordinate_joints}
            if part.joint not in joints:
                raise UnknownNameError(f"stops: no joint {part.joint!r}; {suggest(part.joint, joints)}")
            if not _ends(joints[part.joint]):
                raise ModelError(f"stops: joint {part.joint!r} has no limits of its position")
            if joints[part.joint].limits.lower > joints[part.joint].limits.upper:
                raise ModelError(f"stops: joint {part.joint!r} has no position within its limits")
        elif isinstance(part, Tendon):
            _check_tendon(model, part)
        elif not isinstance(part, Ground):
            raise ModelError(f"contacts: expected Contact, Shape, Ground, Stop or Tendon, got {part!r:.80}")
    if parts:
        pairings(parts)  # refuses pairs that are not modelled


def _check_tendon(model: Model, tendon: Tendon) -> None:
    joints = {joint.name: joint for joint in model.moving_joints}
    if not moves(model, tendon):
        raise ModelError(f"{tendon.label}: through: all of its frames belong to one link")
    for name in tendon.weights:
        if name not in joints:
            raise UnknownNameError(f"{tendon.label}: no joint {name!r} that moves; {suggest(name, joints)}")
        if joints[name].nq != 1:
            raise ModelError(f"{tendon.label}: joint {name!r} has more than one position")


def _check_contact(model: Model, parts: Sequence[Any], contact: Contact) -> None:
    if not moves(model, contact):
        if contact.other is None:
            raise ModelError(f"{contact.label}: {contact.frame!r} is fixed to the base, which does not move")
        raise ModelError(f"{contact.label}: both frames belong to one link: nothing moves between them")
    if contact.other is not None and not (contact.other_shapes or shapes_of(parts, contact.other)):
        raise ModelError(
            f"{contact.label}: {contact.other!r} has no shape; give it one in the same list, as in "
            f"lw.Shape.box({contact.other!r}, (0.05, 0.05, 0.05))"
        )


def _ends(joint: Joint) -> bool:
    """Whether the range of a joint with a coordinate of its own ends somewhere."""
    return joint.nq == 1 and any(map(math.isfinite, (joint.limits.lower, joint.limits.upper)))


def _centre(frame: str, options: dict[str, Any]) -> Place:
    return places(f"contact of {frame}: offset", [options.pop("offset", (0.0, 0.0, 0.0))])[0]


def _own_shapes(what: str, value: Any) -> tuple[Shape, ...]:
    shapes = (value,) if isinstance(value, Shape) else tuple(value)
    if not all(isinstance(shape, Shape) for shape in shapes):
        raise ModelError(f"{what}: expected lw.Shape, got {value!r:.80}")
    return shapes


def _edges(what: str, value: Any) -> Place:
    edges = places(what, [value])[0]
    if min(edges) <= 0.0:
        raise ModelError(f"{what}: expected three lengths above 0 [m], got {edges}")
    return edges
