"""Vectors, symmetric matrices, spatial vectors and inertias over any scalar.

Spatial vectors are ordered (angular, linear) and (moment, force), as in Rodriguez and Kozłowski; an inertia is taken
about the origin of the frame it is expressed in. A rotation about one axis stays a planar pair (c, s) = (cos, sin):
turning a vector costs 4 multiplications and 2 additions, a symmetric matrix 8 and 7 instead of the 27 and 18 of a
3×3 product. The compiler removes zeros, so nothing here treats them specially.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from linkwise.scalar import Scalar


class Tensor:
    """What all quantities of this module share: NumPy leaves ``array * tensor`` to the tensor."""

    __slots__ = ()
    __array_ufunc__ = None


@dataclass(slots=True, eq=False)
class Vector(Tensor):
    """A 3-vector."""

    x: Scalar
    y: Scalar
    z: Scalar

    def __add__(self, other: Vector) -> Vector:
        return Vector(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other: Vector) -> Vector:
        return Vector(self.x - other.x, self.y - other.y, self.z - other.z)

    def __neg__(self) -> Vector:
        return Vector(-self.x, -self.y, -self.z)

    def __rmul__(self, scale: Scalar) -> Vector:
        return Vector(scale * self.x, scale * self.y, scale * self.z)

    def __iter__(self) -> Iterator[Scalar]:
        return iter((self.x, self.y, self.z))

    def dot(self, other: Vector) -> Scalar:
        return self.x * other.x + self.y * other.y + self.z * other.z

    def cross(self, other: Vector) -> Vector:
        return Vector(
            self.y * other.z - self.z * other.y,
            self.z * other.x - self.x * other.z,
            self.x * other.y - self.y * other.x,
        )

    def rotated(self, R: Matrix) -> Vector:
        """R v."""
        return R @ self

    def turn_x(self, c: Scalar, s: Scalar) -> Vector:
        """The vector turned about x by the angle with cosine c and sine s."""
        return Vector(self.x, c * self.y - s * self.z, s * self.y + c * self.z)

    def turn_z(self, c: Scalar, s: Scalar) -> Vector:
        """The vector turned about z by the angle with cosine c and sine s."""
        return Vector(c * self.x - s * self.y, s * self.x + c * self.y, self.z)


def zero_vector() -> Vector:
    return Vector(0.0, 0.0, 0.0)


@dataclass(slots=True, eq=False)
class Symmetric(Tensor):
    """A symmetric 3×3 matrix."""

    xx: Scalar
    xy: Scalar
    xz: Scalar
    yy: Scalar
    yz: Scalar
    zz: Scalar

    def __add__(self, other: Symmetric) -> Symmetric:
        return Symmetric(*(a + b for a, b in zip(self, other, strict=True)))

    def __sub__(self, other: Symmetric) -> Symmetric:
        return Symmetric(*(a - b for a, b in zip(self, other, strict=True)))

    def __rmul__(self, scale: Scalar) -> Symmetric:
        return Symmetric(*(scale * a for a in self))

    def __iter__(self) -> Iterator[Scalar]:
        return iter((self.xx, self.xy, self.xz, self.yy, self.yz, self.zz))

    def __matmul__(self, v: Vector) -> Vector:
        return Vector(
            self.xx * v.x + self.xy * v.y + self.xz * v.z,
            self.xy * v.x + self.yy * v.y + self.yz * v.z,
            self.xz * v.x + self.yz * v.y + self.zz * v.z,
        )

    def matrix(self) -> Matrix:
        return Matrix(self.xx, self.xy, self.xz, self.xy, self.yy, self.yz, self.xz, self.yz, self.zz)

    def column(self, k: int) -> Vector:
        return self.matrix().column(k)

    def rotated(self, R: Matrix) -> Symmetric:
        """R S Rᵀ."""
        full = R.times(self.matrix()).times(R.transposed())
        return Symmetric(full.xx, full.xy, full.xz, full.yy, full.yz, full.zz)

    def turn_x(self, c: Scalar, s: Scalar) -> Symmetric:
        """R S Rᵀ for a turn about x. The trace of the turned 2×2 block does not change, which saves its half."""
        w = s * (self.yy - self.zz) + (2.0 * c) * self.yz
        sw = s * w
        return Symmetric(
            self.xx,
            c * self.xy - s * self.xz,
            s * self.xy + c * self.xz,
            self.yy - sw,
            c * w - self.yz,
            self.zz + sw,
        )

    def turn_z(self, c: Scalar, s: Scalar) -> Symmetric:
        """R S Rᵀ for a turn about z."""
        w = s * (self.xx - self.yy) + (2.0 * c) * self.xy
        sw = s * w
        return Symmetric(
            self.xx - sw,
            c * w - self.xy,
            c * self.xz - s * self.yz,
            self.yy + sw,
            s * self.xz + c * self.yz,
            self.zz,
        )


def zero_symmetric() -> Symmetric:
    return Symmetric(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def diagonal(value: Scalar) -> Symmetric:
    return Symmetric(value, 0.0, 0.0, value, 0.0, value)


def outer(v: Vector, scaled: Vector) -> Symmetric:
    """v·scaledᵀ where ``scaled`` is a multiple of v, so that the product is symmetric."""
    return Symmetric(
        v.x * scaled.x, v.x * scaled.y, v.x * scaled.z, v.y * scaled.y, v.y * scaled.z, v.z * scaled.z
    )


@dataclass(slots=True, eq=False)
class Matrix(Tensor):
    """A general 3×3 matrix, row by row."""

    xx: Scalar
    xy: Scalar
    xz: Scalar
    yx: Scalar
    yy: Scalar
    yz: Scalar
    zx: Scalar
    zy: Scalar
    zz: Scalar

    def __iter__(self) -> Iterator[Scalar]:
        return iter((self.xx, self.xy, self.xz, self.yx, self.yy, self.yz, self.zx, self.zy, self.zz))

    def __add__(self, other: Matrix) -> Matrix:
        return Matrix(*(a + b for a, b in zip(self, other, strict=True)))

    def __sub__(self, other: Matrix) -> Matrix:
        return Matrix(*(a - b for a, b in zip(self, other, strict=True)))

    def __matmul__(self, v: Vector) -> Vector:
        return Vector(
            self.xx * v.x + self.xy * v.y + self.xz * v.z,
            self.yx * v.x + self.yy * v.y + self.yz * v.z,
            self.zx * v.x + self.zy * v.y + self.zz * v.z,
        )

    def transposed_times(self, v: Vector) -> Vector:
        return Vector(
            self.xx * v.x + self.yx * v.y + self.zx * v.z,
            self.xy * v.x + self.yy * v.y + self.zy * v.z,
            self.xz * v.x + self.yz * v.y + self.zz * v.z,
        )

    def times(self, other: Matrix) -> Matrix:
        columns = [
            self @ Vector(other.xx, other.yx, other.zx),
            self @ Vector(other.xy, other.yy, other.zy),
            self @ Vector(other.xz, other.yz, other.zz),
        ]
        return Matrix(*(scalar for row in zip(*columns, strict=True) for scalar in row))

    def column(self, k: int) -> Vector:
        return Vector(
            (self.xx, self.xy, self.xz)[k], (self.yx, self.yy, self.yz)[k], (self.zx, self.zy, self.zz)[k]
        )

    def row(self, k: int) -> Vector:
        return self.transposed().column(k)

    def rotated(self, R: Matrix) -> Matrix:
        """R B Rᵀ."""
        return R.times(self).times(R.transposed())

    def transposed(self) -> Matrix:
        return Matrix(self.xx, self.yx, self.zx, self.xy, self.yy, self.zy, self.xz, self.yz, self.zz)

    def turn_x(self, c: Scalar, s: Scalar) -> Matrix:
        """R B Rᵀ for a turn about x: trace and skew part of the turned block stay what they are."""
        w = s * (self.yy - self.zz) + c * (self.yz + self.zy)
        sw, cw = s * w, c * w
        return Matrix(
            self.xx,
            c * self.xy - s * self.xz,
            s * self.xy + c * self.xz,
            c * self.yx - s * self.zx,
            self.yy - sw,
            cw - self.zy,
            s * self.yx + c * self.zx,
            cw - self.yz,
            self.zz + sw,
        )

    def turn_z(self, c: Scalar, s: Scalar) -> Matrix:
        """R B Rᵀ for a turn about z."""
        w = s * (self.xx - self.yy) + c * (self.xy + self.yx)
        sw, cw = s * w, c * w
        return Matrix(
            self.xx - sw,
            cw - self.yx,
            c * self.xz - s * self.yz,
            cw - self.xy,
            self.yy + sw,
            s * self.xz + c * self.yz,
            c * self.zx - s * self.zy,
            s * self.zx + c * self.zy,
            self.zz,
        )


def skew(v: Vector) -> Matrix:
    """The matrix of v × (·)."""
    return Matrix(0.0, -v.z, v.y, v.z, 0.0, -v.x, -v.y, v.x, 0.0)


def shifted_square(l: Vector, h: Vector) -> Symmetric:
    """−l̂ ĥ − ĥ l̂ as a symmetric matrix: how a first moment h changes an inertia when the origin moves by l."""
    xx, yy, zz = l.x * h.x, l.y * h.y, l.z * h.z
    return Symmetric(
        2.0 * (yy + zz),
        -(l.x * h.y + l.y * h.x),
        -(l.x * h.z + l.z * h.x),
        2.0 * (xx + zz),
        -(l.y * h.z + l.z * h.y),
        2.0 * (xx + yy),
    )


@dataclass(slots=True, eq=False)
class Spatial(Tensor):
    """A spatial vector: a motion (angular, linear) or a force (moment, force)."""

    angular: Vector
    linear: Vector

    @property
    def moment(self) -> Vector:
        return self.angular

    @property
    def force(self) -> Vector:
        return self.linear

    def __iter__(self) -> Iterator[Vector]:
        return iter((self.angular, self.linear))

    def __add__(self, other: Spatial) -> Spatial:
        return Spatial(self.angular + other.angular, self.linear + other.linear)

    def __sub__(self, other: Spatial) -> Spatial:
        return Spatial(self.angular - other.angular, self.linear - other.linear)

    def __neg__(self) -> Spatial:
        return Spatial(-self.angular, -self.linear)

    def __rmul__(self, scale: Scalar) -> Spatial:
        return Spatial(scale * self.angular, scale * self.linear)

    def rotated(self, R: Matrix) -> Spatial:
        return Spatial(self.angular.rotated(R), self.linear.rotated(R))

    def turn_x(self, c: Scalar, s: Scalar) -> Spatial:
        return Spatial(self.angular.turn_x(c, s), self.linear.turn_x(c, s))

    def turn_z(self, c: Scalar, s: Scalar) -> Spatial:
        return Spatial(self.angular.turn_z(c, s), self.linear.turn_z(c, s))

    def dot(self, other: Spatial) -> Scalar:
        return self.angular.dot(other.angular) + self.linear.dot(other.linear)


def zero_spatial() -> Spatial:
    return Spatial(zero_vector(), zero_vector())


@dataclass(slots=True, eq=False)
class RigidInertia(Tensor):
    """Spatial inertia of a rigid body about its frame's origin: mass m, first moment h = m·c, second moment I."""

    mass: Scalar
    first_moment: Vector
    second_moment: Symmetric

    def __iter__(self) -> Iterator[Any]:
        return iter((self.mass, self.first_moment, self.second_moment))

    def __add__(self, other: RigidInertia) -> RigidInertia:
        return RigidInertia(
            self.mass + other.mass,
            self.first_moment + other.first_moment,
            self.second_moment + other.second_moment,
        )

    def __matmul__(self, motion: Spatial) -> Spatial:
        return Spatial(
            self.second_moment @ motion.angular + self.first_moment.cross(motion.linear),
            self.mass * motion.linear + motion.angular.cross(self.first_moment),
        )

    def rotated(self, R: Matrix) -> RigidInertia:
        return RigidInertia(self.mass, self.first_moment.rotated(R), self.second_moment.rotated(R))

    def turn_x(self, c: Scalar, s: Scalar) -> RigidInertia:
        return RigidInertia(self.mass, self.first_moment.turn_x(c, s), self.second_moment.turn_x(c, s))

    def turn_z(self, c: Scalar, s: Scalar) -> RigidInertia:
        return RigidInertia(self.mass, self.first_moment.turn_z(c, s), self.second_moment.turn_z(c, s))

    def shifted(self, l: Vector) -> RigidInertia:
        """The same body about an origin from which the old origin lies at l."""
        moved = self.first_moment + self.mass * l
        # I − l̂ĥ − ĥl̂ − m l̂l̂, with the two last written as one product: l̂(ĥ + ½m l̂) twice
        half = self.first_moment + (0.5 * self.mass) * l
        return RigidInertia(self.mass, moved, self.second_moment + shifted_square(l, half))


@dataclass(slots=True, eq=False)
class ArticulatedInertia(Tensor):
    """A symmetric 6×6 inertia [[A, B], [Bᵀ, C]]: moments and forces from angular and linear accelerations."""

    A: Symmetric
    B: Matrix
    C: Symmetric

    def __iter__(self) -> Iterator[Any]:
        return iter((self.A, self.B, self.C))

    def __add__(self, other: ArticulatedInertia) -> ArticulatedInertia:
        return ArticulatedInertia(self.A + other.A, self.B + other.B, self.C + other.C)

    def __matmul__(self, motion: Spatial) -> Spatial:
        return Spatial(
            self.A @ motion.angular + self.B @ motion.linear,
            self.B.transposed_times(motion.angular) + self.C @ motion.linear,
        )

    def rotated(self, R: Matrix) -> ArticulatedInertia:
        return ArticulatedInertia(self.A.rotated(R), self.B.rotated(R), self.C.rotated(R))

    def turn_x(self, c: Scalar, s: Scalar) -> ArticulatedInertia:
        return ArticulatedInertia(self.A.turn_x(c, s), self.B.turn_x(c, s), self.C.turn_x(c, s))

    def turn_z(self, c: Scalar, s: Scalar) -> ArticulatedInertia:
        return ArticulatedInertia(self.A.turn_z(c, s), self.B.turn_z(c, s), self.C.turn_z(c, s))

    def shifted(self, l: Vector) -> ArticulatedInertia:
        """About an origin from which the old origin lies at l: φ P φᵀ with φ = [[1, l̂], [0, 1]]."""
        L = skew(l)
        lifted = self.B + L.times(self.C.matrix())
        # A + l̂ B'ᵀ + (l̂ Bᵀ)ᵀ, only the upper half is needed
        first = L.times(lifted.transposed())
        second = L.times(self.B.transposed())
        A = Symmetric(
            self.A.xx + (first.xx + second.xx),
            self.A.xy + (first.xy + second.yx),
            self.A.xz + (first.xz + second.zx),
            self.A.yy + (first.yy + second.yy),
            self.A.yz + (first.yz + second.zy),
            self.A.zz + (first.zz + second.zz),
        )
        return ArticulatedInertia(A, lifted, self.C)


def articulated(inertia: RigidInertia) -> ArticulatedInertia:
    """A rigid inertia as a 6×6 inertia."""
    return ArticulatedInertia(inertia.second_moment, skew(inertia.first_moment), diagonal(inertia.mass))


def zero_articulated() -> ArticulatedInertia:
    return ArticulatedInertia(zero_symmetric(), Matrix(*[0.0] * 9), zero_symmetric())


def zero_rigid() -> RigidInertia:
    return RigidInertia(0.0, zero_vector(), zero_symmetric())
