"""A robot prepared for computing: moving links only, every joint axis turned onto z.

The frames of a file are chosen for readability. Here each link gets a frame in which the arithmetic is shortest:

* fixed joints are lumped;
* the link's joint axis is z, so a joint turn is a planar pair (c, s);
* x is the common normal of the link's own axis and its (first) child's, so that child lies at
  Rx(α)·Rz(q + θ) as in the modified Denavit–Hartenberg convention; further children need one more turn Rz(φ);
* the origin slides along a revolute axis to where a component of the lever from the parent vanishes; a prismatic
  link's origin lies on its parent's at q = 0;
* the base frame is aligned with the first joint;
* a link behind a ball or floating joint keeps the frame of the file, in whose axes its velocities are given.

None of this is visible outside: poses, Jacobians, wrenches and parameters are given in the frames of the file.
Angles within 8e-12 rad of a multiple of a right angle are taken as that multiple: 1.57079632679 in a file means π/2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar, cast, overload

import numpy as np

from linkwise.core.products import length, times
from linkwise.model.axes import MOVING_TYPES, Axis, JointValue, joint_value, parts_of, single
from linkwise.model.cleaning import RIGHT_ANGLE_TOLERANCE, clean, clean_inertia, clean_rotation, snapped
from linkwise.model.fluid import numbers_of
from linkwise.model.joint import Joint
from linkwise.model.model import Model
from linkwise.model.transform import Transform, cosine, sine
from linkwise.model.traversal import Traversal
from linkwise.scalar import Scalar, cos, sin
from linkwise.spatial import ArticulatedInertia, Matrix, RigidInertia, Spatial, Symmetric, Vector, zero_vector

PARALLEL_TOLERANCE = RIGHT_ANGLE_TOLERANCE  # sine of the angle under which two axes count as parallel
SLIDE_SINE = (
    0.1  # sine of the twist under which an origin would slide too far to the common normal, and lose digits
)


Turned: TypeAlias = "tuple[Scalar, Scalar, Scalar] | tuple[Matrix, Vector]"
"""Where a joint is, see ``MovingLink.turned``."""
Turnable = TypeVar("Turnable", Vector, Matrix, Symmetric, Spatial, RigidInertia, ArticulatedInertia)


@dataclass(frozen=True)
class Turn:
    """A constant turn about one axis: the angle [rad] and its cosine and sine, exact at right angles."""

    angle: float
    c: float
    s: float

    @classmethod
    def by(cls, angle: float) -> Turn:
        right = round(angle / (math.pi / 2)) * (math.pi / 2)
        if abs(angle - right) < RIGHT_ANGLE_TOLERANCE:
            angle = right
        return cls(angle, cosine(angle), sine(angle))

    @property
    def is_right(self) -> bool:
        """Whether the turn only swaps axes and signs."""
        return 0.0 in (self.c, self.s)


@dataclass(frozen=True)
class Follow:
    """A coordinate that is the sum of ratio times another link's, over (link, ratio), plus an offset [rad or m]."""

    leaders: tuple[tuple[int, float], ...]
    offset: float


@dataclass(frozen=True)
class MovingLink:
    """One moving link with its inner joint, in its prepared frame."""

    index: int
    parent: int  # −1: the base
    children: tuple[int, ...]
    joint_name: str
    axes: tuple[Axis, ...]  # in the link's frame; one axis lies along z
    branch: Turn  # Rz(φ): only where a link has several children
    twist: Turn  # Rx(α)
    offset: Turn  # Rz(θ), added to the joint angle
    lever: Vector  # from the parent's origin to this link's (at q = 0), in the parent's axes
    inertia: RigidInertia
    rotor_inertia: float
    viscous_friction: float
    coulomb_friction: tuple[float, float]
    file_frame: Transform  # the pose of the file's link frame in this frame
    parameter_frame: Transform  # the pose of the frame in which the file gives the inertial parameters
    terms: Mapping[str, float] = field(
        default_factory=dict[str, float]
    )  # numbers of further laws, see ``joint_laws``
    follows: Follow | None = None  # the link whose coordinate moves this one as well
    orientation: Matrix | None = None  # of the joint in the parent, for ball and floating joints
    drag: tuple[tuple[Scalar, ...], ...] = ()
    """What a fluid resists: rotation (9 numbers) and centre (3) in this frame, then those of ``fluid.numbers_of``."""

    @property
    def free(self) -> bool:
        """Whether the joint turns about all axes, so that its position holds a quaternion."""
        return len(self.axes) > 1

    @property
    def floating(self) -> bool:
        return len(self.axes) == 6

    @property
    def turns(self) -> bool:
        """Whether the joint changes the orientation of its link."""
        return self.axes[0].turns

    @property
    def slides(self) -> bool:
        """Whether the joint moves the origin of its link."""
        return any(not axis.turns or axis.screws for axis in self.axes)

    def turned(self, q: JointValue) -> Turned:
        """Where the joint is at the coordinate q: (c, s, d) for one axis, the cosine and sine of its turn about z and
        its slide along z; (rotation, position) for a ball or floating joint."""
        if self.free:
            numbers = parts_of(q)
            position = Vector(*numbers[:3]) if self.floating else zero_vector()
            return quaternion_rotation(numbers[-4:]), position
        axis, q = self.axes[0], single(q)
        if not axis.turns:
            return self.offset.c, self.offset.s, q
        d = axis.pitch * q if axis.screws else 0.0
        if self.offset.is_right:
            c, s = cos(q), sin(q)
            return self.offset.c * c - self.offset.s * s, self.offset.s * c + self.offset.c * s, d
        angle = q + self.offset.angle
        return cos(angle), sin(angle), d

    def placed(self, turned: Turned) -> Placement:
        """Where the link lies in its parent; ``turned`` is what the method of that name gave."""
        if self.orientation is not None:
            rotation, position = cast("tuple[Matrix, Vector]", turned)
            lever = self.lever + self.orientation @ position if self.floating else self.lever
            return FreePlacement(self, self.orientation.times(rotation), lever)
        c, s, d = cast("tuple[Scalar, Scalar, Scalar]", turned)
        if not self.slides:
            return Placement(self, c, s, self.lever)
        axis = Vector(0.0, 0.0, 1.0).turn_x(self.twist.c, self.twist.s).turn_z(self.branch.c, self.branch.s)
        return Placement(self, c, s, self.lever + d * axis)

    def at_rest(self) -> Placement:
        """Where the link lies in its parent at q = 0."""
        if self.orientation is not None:
            return FreePlacement(self, self.orientation, self.lever)
        return self.placed((self.offset.c, self.offset.s, 0.0))

    def moved(self, rates: JointValue) -> Spatial:
        """Hᵀ q̇ = Σ axis·rate, in the link's axes."""
        first, *others = self.axes
        rate, *rest = parts_of(rates)
        motion = first.motion(rate)
        for axis, rate in zip(others, rest, strict=True):
            motion = motion + axis.motion(rate)
        return motion

    def felt(self, x: Spatial) -> JointValue:
        """H x: the components of a spatial force along the joint's axes."""
        return joint_value([axis.felt(x) for axis in self.axes])

    def carried(self, V: Spatial, rates: JointValue) -> Spatial:
        """V × Hᵀq̇: how the joint's motion changes because the link, which moves with V, carries its axes along."""
        if self.free:
            w, v = self.moved(rates)
            return Spatial(V.angular.cross(w), V.linear.cross(w) + V.angular.cross(v))
        axis, rates = self.axes[0], single(rates)
        if not axis.turns:
            return Spatial(zero_vector(), axis.crossed(V.angular, rates))
        turning = Spatial(axis.crossed(V.angular, rates), axis.crossed(V.linear, rates))
        if not axis.screws:
            return turning
        return turning + Spatial(zero_vector(), axis.crossed(V.angular, axis.pitch * rates))

    def bias(self, above: Vector, rates: JointValue) -> Spatial:
        """What the link's acceleration gains by the joint's rates: (ω × ω_J, (ω_p + ω) × v_J).

        ω_p (``above``) and ω are the angular velocities of the parent and the link, (ω_J, v_J) is the motion of the
        joint, all in the link's axes; the acceleration is that of the link's origin.
        """
        if not self.free:
            axis, rates = self.axes[0], single(rates)
            turning = axis.crossed(above, rates) if axis.turns else zero_vector()
            if not self.slides:
                return Spatial(turning, zero_vector())
            speed = axis.pitch * rates if axis.turns else rates
            return Spatial(turning, axis.crossed(above, 2.0 * speed))
        w, v = self.moved(rates)
        sliding = (above + (above + w)).cross(v) if self.floating else zero_vector()
        return Spatial(above.cross(w), sliding)


def quaternion_rotation(quaternion: Sequence[Scalar]) -> Matrix:
    """The rotation of a quaternion (x, y, z, w) of any length but zero: its square divides."""
    x, y, z, w = quaternion
    xx, yy, zz, ww = x * x, y * y, z * z, w * w
    two = 2.0 / (((xx + yy) + zz) + ww)
    xs, ys, zs = x * two, y * two, z * two
    xy, xz, yz = x * ys, x * zs, y * zs
    wx, wy, wz = w * xs, w * ys, w * zs
    xx, yy, zz = x * xs, y * ys, z * zs
    return Matrix(
        *(1.0 - (yy + zz), xy - wz, xz + wy),
        *(xy + wz, 1.0 - (xx + zz), yz - wx),
        *(xz - wy, yz + wx, 1.0 - (xx + yy)),
    )


@dataclass(slots=True, eq=False)
class Placement:
    """Link axes against parent axes. ``lever`` runs from the parent's origin to the link's, in the parent's axes."""

    link: MovingLink
    c: Scalar
    s: Scalar
    lever: Vector

    def outward(self, x: Turnable) -> Turnable:
        """A vector (or matrix, or inertia) of the parent's axes, in the link's axes."""
        branch, twist = self.link.branch, self.link.twist
        return x.turn_z(branch.c, -branch.s).turn_x(twist.c, -twist.s).turn_z(self.c, -self.s)

    def inward(self, x: Turnable) -> Turnable:
        """A vector (or matrix, or inertia) of the link's axes, in the parent's axes."""
        branch, twist = self.link.branch, self.link.twist
        return x.turn_z(self.c, self.s).turn_x(twist.c, twist.s).turn_z(branch.c, branch.s)

    def motion_from_parent(self, parent: Spatial) -> Spatial:
        """A⁻¹φᵀ: a motion of the parent's body, taken at the link's origin, in the link's axes."""
        return self.outward(Spatial(parent.angular, parent.linear + parent.angular.cross(self.lever)))

    def force_to_parent(self, x: Spatial) -> Spatial:
        """φA: a spatial force on the link, about the parent's origin, in the parent's axes."""
        force = self.inward(x.force)
        return Spatial(self.inward(x.moment) + self.lever.cross(force), force)


class FreePlacement(Placement):
    """The same behind a ball or floating joint: ``rotation`` turns vectors of the link's axes into the parent's."""

    __slots__ = ("rotation",)

    def __init__(self, link: MovingLink, rotation: Matrix, lever: Vector):
        super().__init__(link, 0.0, 0.0, lever)
        self.rotation = rotation

    def outward(self, x: Turnable) -> Turnable:
        return x.rotated(self.rotation.transposed())

    def inward(self, x: Turnable) -> Turnable:
        return x.rotated(self.rotation)


class Mechanism(Traversal, Sequence[MovingLink]):
    """The moving links of a robot, parents before children, and the two ways to go over them."""

    def __init__(
        self,
        name: str,
        links: Sequence[MovingLink],
        gravity: Vector,
        base: Transform,
        original: Mechanism | None = None,
        wind: Vector | None = None,
    ):
        self.name = name
        self.wind = zero_vector() if wind is None else wind  # of the fluid, in the prepared base frame
        self.original = (
            self if original is None else original
        )  # the same robot before its parameters were regrouped
        self.links = tuple(links)
        self.gravity = gravity  # in the prepared base frame
        self.base = base  # pose of the prepared base frame in the file's base frame

    def __len__(self) -> int:
        return len(self.links)

    @overload
    def __getitem__(self, k: int) -> MovingLink: ...
    @overload
    def __getitem__(self, k: slice) -> tuple[MovingLink, ...]: ...
    def __getitem__(self, k: int | slice) -> MovingLink | tuple[MovingLink, ...]:
        return self.links[k]

    @property
    def dof(self) -> int:
        """Number of velocity coordinates."""
        return sum(len(link.axes) for link in self.links)

    def grouped(self, values: Sequence[Scalar], *, positions: bool = False) -> list[JointValue]:
        """A flat list of numbers, those of each link after those of the links before, as one quantity per link
        (see ``axes.Several``)."""
        sizes = [len(link.axes) + (positions and link.free) for link in self.links]
        if all(size == 1 for size in sizes):
            return list(values)
        groups: list[JointValue] = []
        at = 0
        for size in sizes:
            groups.append(joint_value(list(values[at : at + size])))
            at += size
        return groups

    @property
    def coupled(self) -> bool:
        """Whether some links follow others, so that there are fewer coordinates than axes."""
        return any(link.follows is not None for link in self.links)

    def pairings(self, turned: Sequence[Turned], force: Callable[[int, Axis], Spatial]) -> list[list[Scalar]]:
        """A symmetric matrix over the velocity coordinates: the component along axis i of a force that belongs to
        axis j of the same link or of one beyond it. ``force(k, axis)`` is given on link k; zero between branches."""
        first = self.first_coordinates()
        n = self.dof
        matrix: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
        for j, (k, axis) in enumerate(self.coordinates()):
            x, link = force(k, axis), self.links[k]
            for i, own in enumerate(link.axes[: j - first[k] + 1], start=first[k]):
                matrix[i][j] = matrix[j][i] = own.felt(x)
            for a in self.ancestors(k):
                x = link.placed(turned[link.index]).force_to_parent(x)
                link = self.links[a]
                for i, own in enumerate(link.axes, start=first[a]):
                    matrix[i][j] = matrix[j][i] = own.felt(x)
        return matrix

    def first_coordinates(self) -> list[int]:
        """For every link the number of its first velocity coordinate."""
        starts: list[int] = []
        at = 0
        for link in self.links:
            starts.append(at)
            at += len(link.axes)
        return starts

    def coordinates(self) -> list[tuple[int, Axis]]:
        """For every velocity coordinate the link that it moves and its axis."""
        return [(link.index, axis) for link in self.links for axis in link.axes]

    def ancestors(self, k: int) -> list[int]:
        """The links between link k and the base, nearest first, without k."""
        found: list[int] = []
        k = self.links[k].parent
        while k >= 0:
            found.append(k)
            k = self.links[k].parent
        return found


def flat(values: Sequence[JointValue]) -> list[Scalar]:
    """One quantity per link as a flat list of joint coordinates: the inverse of ``Mechanism.grouped``."""
    return [part for value in values for part in parts_of(value)]


def prepare(model: Model, *, slide: bool = True) -> Mechanism:
    """Choose the frames described above. ``slide=False`` leaves origins where the file has them on the axis."""
    joints = model.moving_joints
    n = len(joints)
    parents, poses = _places(model)
    children = _families(parents)
    axes = [None if joint.free else np.array(joint.axis) / length(joint.axis) for joint in joints]
    frames: list[Transform] = [Transform.identity()] * n  # prepared frame in the file's frame, per body
    base = _base_frame(model, children[-1], poses, axes)

    links: list[MovingLink] = []
    bodies = model.bodies()
    for k, joint in enumerate(joints):
        outer = frames[parents[k]] if parents[k] >= 0 else base
        # the file frame of this link in the parent's prepared frame, at q = 0
        here = outer.inverse() @ poses[k]
        if joint.free:
            frames[k] = Transform.identity()
            turns = (Turn.by(0.0), Turn.by(0.0), Turn.by(0.0))
            lever, orientation = (
                clean(here.translation),
                Matrix(*clean_rotation(here.rotation).ravel().tolist()),
            )
        else:
            primary = parents[k] >= 0 and children[parents[k]][0] == k and axes[parents[k]] is not None
            frames[k], turns, lever = _one_axis_frame(k, joint, here, primary, children, poses, axes, slide)
            orientation = None
        branch, twist, offset = turns
        inertia = bodies[k].expressed_in(frames[k].inverse())
        links.append(
            MovingLink(
                index=k,
                parent=parents[k],
                children=tuple(sorted(children[k])),
                joint_name=joint.name,
                axes=_axes_of(joint),
                branch=branch,
                twist=twist,
                offset=offset,
                lever=Vector(*lever),
                inertia=RigidInertia(
                    inertia.mass,
                    Vector(*clean(inertia.first_moment)),
                    Symmetric(*clean_inertia(inertia, frames[k].rotation)),
                ),
                rotor_inertia=joint.rotor_inertia,
                viscous_friction=joint.viscous_friction,
                coulomb_friction=joint.coulomb_friction,
                file_frame=frames[k].inverse(),
                parameter_frame=frames[k].inverse() @ model.carrier(joint.body_link)[1],
                follows=_follow(model, k),
                orientation=orientation,
                terms=joint.terms,
                drag=_drag(model, k, frames[k].inverse()),
            )
        )
    gravity = Vector(*clean(times(base.rotation.T, np.array(model.gravity))))
    wind = (0.0, 0.0, 0.0) if model.fluid is None else model.fluid.wind
    return Mechanism(
        model.name, links, gravity, base, wind=Vector(*clean(times(base.rotation.T, np.array(wind))))
    )


def _drag(model: Model, k: int, file_frame: Transform) -> tuple[tuple[float, ...], ...]:
    """What the fluid resists of link k."""
    if model.fluid is None:
        return ()
    rows: list[tuple[float, ...]] = []
    for body in model.fluid.bodies or ():
        carrier, pose = model.carrier(body.link)
        if carrier == k:
            place = file_frame @ pose @ body.pose
            rotation = clean_rotation(place.rotation).ravel().tolist()
            rows.append((*rotation, *place.translation.tolist(), *numbers_of(body, model.fluid)))
    return tuple(rows)


def _places(model: Model) -> tuple[list[int], list[Transform]]:
    """For every moving joint its parent body, and its child's file frame in that body's file frame at q = 0."""
    parents: list[int] = []
    poses: list[Transform] = []
    for joint in model.moving_joints:
        body, pose = model.carrier(joint.parent)
        parents.append(body)
        at = pose @ joint.origin
        poses.append(Transform(snapped(at.rotation), at.translation))
    return parents, poses


def _families(parents: Sequence[int]) -> list[list[int]]:
    """The children of every body, the largest branch first, else in the order of the file; the last entry is the
    base's."""
    n = len(parents)
    children: list[list[int]] = [[] for _ in range(n + 1)]
    for k, parent in enumerate(parents):
        children[parent].append(k)
    size = [1] * n
    for k in reversed(range(n)):
        if parents[k] >= 0:
            size[parents[k]] += size[k]
    for family in children:
        family.sort(key=lambda k: -size[k])
    return children


def _follow(model: Model, k: int) -> Follow | None:
    relation = model.followed[k]
    if relation is None:
        return None
    names = [joint.name for joint in model.moving_joints]
    return Follow(tuple((names.index(name), ratio) for name, ratio in relation.leaders), relation.offset)


def _axes_of(joint: Joint) -> tuple[Axis, ...]:
    """The axes of a joint, with its pitch."""
    kind = MOVING_TYPES[joint.type]
    return tuple(replace(axis, pitch=joint.pitch) for axis in kind.axes) if kind.screws else kind.axes


def _one_axis_frame(
    k: int,
    joint: Joint,
    here: Transform,
    primary: bool,
    children: list[list[int]],
    poses: list[Transform],
    axes: Sequence[np.ndarray | None],
    slide: bool,
) -> tuple[Transform, tuple[Turn, Turn, Turn], list[float]]:
    """The prepared frame of link k in its file frame, the turns (φ, α, θ) to it, and its lever in the parent."""
    axis = axes[k]
    assert axis is not None
    z = times(here.rotation, axis)
    branch, twist = _twist(z, primary)
    shift = _slide(here.translation, z, joint.turns, slide)
    x = _normal(k, children, poses, axes, shift)
    frame = Transform(clean_rotation(np.column_stack([x, np.cross(axis, x), axis])), shift * axis)
    if not joint.turns:
        # the axis of a slide has a direction only: put the origin on the parent's
        frame = Transform(frame.rotation, -times(here.rotation.T, here.translation))
    relative = here @ frame
    partly = times(
        Transform.about((0, 0, 1), branch.angle).rotation, Transform.about((1, 0, 0), twist.angle).rotation
    )
    rest = times(partly.T, relative.rotation)
    offset = Turn.by(math.atan2(rest[1, 0], rest[0, 0]))
    lever = clean(relative.translation, length(here.translation))
    return frame, (branch, twist, offset), lever


def _base_frame(
    model: Model, first: list[int], poses: list[Transform], axes: Sequence[np.ndarray | None]
) -> Transform:
    """Aligned with the first joint, and turned so that gravity has no y component."""
    axis = axes[first[0]] if first else None
    if axis is None:
        return Transform.identity()
    k = first[0]
    z = snapped(times(poses[k].rotation, axis))
    gravity = np.array(model.gravity)
    across = gravity - times(gravity, z) * z
    if length(across) > 1e-9 * max(length(gravity), 1e-300):
        x = _unit_across(across, z)
    else:
        x = _perpendicular(z)
    return Transform(clean_rotation(np.column_stack([x, np.cross(z, x), z])), poses[k].translation)


def _twist(z: np.ndarray, primary: bool) -> tuple[Turn, Turn]:
    """(φ, α) with z = Rz(φ)·Rx(α)·e_z; φ = 0 for the child that x was chosen for."""
    if primary:
        return Turn.by(0.0), Turn.by(math.atan2(-z[1], z[2]))
    across = math.hypot(z[0], z[1])
    if across < PARALLEL_TOLERANCE:
        return Turn.by(0.0), Turn.by(0.0 if z[2] > 0 else math.pi)
    return Turn.by(math.atan2(z[0], -z[1])), Turn.by(math.atan2(across, z[2]))


def _slide(lever: np.ndarray, z: np.ndarray, turns: bool, slide: bool) -> float:
    """How far to move the origin along the axis so that one component of the lever vanishes."""
    if not (slide and turns):
        return 0.0
    if math.hypot(z[0], z[1]) < SLIDE_SINE:
        return -lever[2] / z[2]
    k = 1 if abs(z[1]) >= abs(z[0]) else 0
    return -lever[k] / z[k]


def _normal(
    k: int, children: list[list[int]], poses: list[Transform], axes: Sequence[np.ndarray | None], shift: float
) -> np.ndarray:
    """The x axis of link k in its file frame: the common normal with its first child's axis, where there is one."""
    own = axes[k]
    assert own is not None
    child = children[k][0] if children[k] else None
    across_child = axes[child] if child is not None else None
    if child is not None and across_child is not None:
        other = times(poses[child].rotation, across_child)
        normal = np.cross(own, other)
        if length(normal) > PARALLEL_TOLERANCE:
            return _toward_file_x(_unit_across(normal, own))
        gap = poses[child].translation - shift * own
        across = gap - times(gap, own) * own
        if length(across) > 1e-9 * max(length(gap), 1e-300):
            return _unit_across(across, own)
    return _perpendicular(own)


def _unit_across(v: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The direction of v, which is nearly across the unit vector z, made exactly so: where v is the difference of two
    nearly equal vectors, normalising it would amplify its round-off along z."""
    v = v / length(v)
    v = v - times(v, z) * z
    return v / length(v)


def _perpendicular(z: np.ndarray) -> np.ndarray:
    """A unit vector across z, along an axis of the file where possible."""
    for axis in np.eye(3):
        if abs(times(axis, z)) < 1e-9:
            return _unit_across(axis, z)
    k = int(np.argmin(np.abs(z)))
    x = np.eye(3)[k] - z[k] * z
    return x / length(x)


def _toward_file_x(normal: np.ndarray) -> np.ndarray:
    """Of the two directions of a normal, the one nearer to the file's own axes."""
    return normal if normal[int(np.argmax(np.abs(normal)))] > 0 else -normal
