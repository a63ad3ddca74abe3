"""The types of joints, and their axes: how each moves its link, the component of a force along it, and its column of an
inertia.

A joint is a set of axes in its link's own frame, each with a rate: S q̇ = Σ axis·rate. Every axis lies along a
coordinate axis of that frame, so its products pick components instead of multiplying by zeros and ones. All that
differs between turning, sliding and screwing joints is written here; the algorithms go over ``link.axes``. Formats have
their own names for some types: ``formats/urdf/reader.py`` and ``formats/mjcf/joint.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from linkwise.scalar import Scalar
from linkwise.spatial import ArticulatedInertia, RigidInertia, Spatial, Tensor, Vector, zero_vector


@dataclass(frozen=True)
class Axis:
    """Turning about (or sliding along) coordinate axis ``k`` of the link's frame.

    A turning axis may be a screw: ``pitch`` metres of advance along the axis for every radian.
    """

    turns: bool
    k: int = 2
    pitch: Scalar = 0.0

    @property
    def screws(self) -> bool:
        return self.turns and not (isinstance(self.pitch, float) and self.pitch == 0.0)

    def motion(self, rate: Scalar) -> Spatial:
        """Hᵀ·rate: the link's motion in its parent, in the link's axes."""
        along = self._along(rate)
        if not self.turns:
            return Spatial(zero_vector(), along)
        return Spatial(along, self._along(self.pitch * rate) if self.screws else zero_vector())

    def felt(self, x: Spatial) -> Scalar:
        """H·x: the component of a spatial force along the axis."""
        if not self.turns:
            return component(x.linear, self.k)
        turning = component(x.angular, self.k)
        return turning + self.pitch * component(x.linear, self.k) if self.screws else turning

    def column(self, P: ArticulatedInertia) -> Spatial:
        """P Hᵀ."""
        if not self.turns:
            return Spatial(P.B.column(self.k), P.C.column(self.k))
        turning = Spatial(P.A.column(self.k), P.B.row(self.k))
        return turning + self.pitch * Axis(False, self.k).column(P) if self.screws else turning

    def rigid_column(self, body: RigidInertia) -> Spatial:
        """The same for a rigid body: I e and e × h for a turn, h × e and m e for a slide."""
        m, h, I = body
        if not self.turns:
            return Spatial(-_cross_unit(self.k, h), self._along(m))
        turning = Spatial(I.column(self.k), _cross_unit(self.k, h))
        return turning + self.pitch * Axis(False, self.k).rigid_column(body) if self.screws else turning

    def crossed(self, v: Vector, rate: Scalar) -> Vector:
        """v × e·rate for the axis' unit vector e."""
        return -rate * _cross_unit(self.k, v)

    def _along(self, value: Scalar) -> Vector:
        parts: list[Scalar] = [0.0, 0.0, 0.0]
        parts[self.k] = value
        return Vector(*parts)


def component(v: Vector, k: int) -> Scalar:
    return (v.x, v.y, v.z)[k]


def _cross_unit(k: int, v: Vector) -> Vector:
    """e_k × v."""
    if k == 0:
        return Vector(0.0, -v.z, v.y)
    if k == 1:
        return Vector(v.z, 0.0, -v.x)
    return Vector(-v.y, v.x, 0.0)


TURNING = (Axis(True, 0), Axis(True, 1), Axis(True, 2))
SLIDING = (Axis(False, 0), Axis(False, 1), Axis(False, 2))

QUATERNION = ("qx", "qy", "qz", "qw")
"""Names of the position coordinates that are an orientation."""


@dataclass(frozen=True)
class JointType:
    """What a joint may do.

    Args:
        axes: of the joint's motion, in the order of its velocities. One axis lies along the joint's ``axis``.
        positions: what its position coordinates are called behind its name; none: one number, named after the joint.
        velocities: the same for velocities.
        screws: whether it also advances by ``pitch`` for every radian.
    """

    axes: tuple[Axis, ...]
    positions: tuple[str, ...] = ()
    velocities: tuple[str, ...] = ()
    screws: bool = False

    @property
    def free(self) -> bool:
        """Whether it turns about all axes."""
        return bool(self.positions)

    @property
    def nq(self) -> int:
        """Number of position coordinates."""
        return len(self.positions) or 1

    @property
    def turns(self) -> bool:
        """Whether the first position coordinate is an angle or part of an orientation."""
        return self.positions[0] in QUATERNION if self.free else self.axes[0].turns

    @property
    def slides(self) -> bool:
        """Whether its only position coordinate is a length."""
        return not self.free and not self.axes[0].turns


MOVING_TYPES = {
    "revolute": JointType(TURNING[2:]),
    "continuous": JointType(TURNING[2:]),  # a revolute joint without limits
    "prismatic": JointType(SLIDING[2:]),
    "helical": JointType(TURNING[2:], screws=True),
    "ball": JointType(TURNING, QUATERNION, ("wx", "wy", "wz")),
    "floating": JointType(
        TURNING + SLIDING, ("x", "y", "z", *QUATERNION), ("wx", "wy", "wz", "vx", "vy", "vz")
    ),
}
JOINT_TYPES = (*MOVING_TYPES, "fixed")


@dataclass(init=False, eq=False)
class Several(Tensor):
    """One scalar for each axis of a joint that has several: rates, accelerations, torques.

    Joints with one axis use a plain scalar instead, so that code for all joints has no overhead for them.
    """

    __slots__ = ("parts",)
    parts: tuple[Scalar, ...]

    def __init__(self, parts: Sequence[Scalar]):
        self.parts = tuple(parts)

    def __iter__(self) -> Iterator[Scalar]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __add__(self, other: Several) -> Several:
        return Several([a + b for a, b in zip(self.parts, other.parts, strict=True)])

    def __sub__(self, other: Several) -> Several:
        return Several([a - b for a, b in zip(self.parts, other.parts, strict=True)])

    def __rmul__(self, scale: Scalar) -> Several:
        return Several([scale * a for a in self.parts])


JointValue: TypeAlias = "Scalar | Several"
"""A quantity of one joint: a rate, an acceleration, a torque."""


def parts_of(value: JointValue) -> tuple[Scalar, ...]:
    """The scalars of a joint quantity: itself, or those of ``Several``."""
    return value.parts if isinstance(value, Several) else (value,)


def joint_value(parts: Sequence[Scalar]) -> JointValue:
    """The inverse of ``parts_of``."""
    return parts[0] if len(parts) == 1 else Several(parts)


def single(value: JointValue) -> Scalar:
    """The scalar of a joint with one axis."""
    return value  # type: ignore[return-value]  # only joints with several axes have another type


def times(scale: Scalar, value: JointValue) -> JointValue:
    """A multiple of a joint quantity."""
    product: Any = scale * single(value)  # ``Several`` multiplies its parts
    return product
