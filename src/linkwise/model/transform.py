"""Poses: where one frame lies in another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.core.products import times

Numbers = Sequence[float] | np.ndarray


@dataclass(frozen=True, eq=False)
class Transform:
    """The pose of a frame in another: x_outer = rotation·x_inner + translation. Read-only arrays."""

    rotation: np.ndarray
    translation: np.ndarray

    def __post_init__(self):
        for name, shape in (("rotation", (3, 3)), ("translation", (3,))):
            array = np.array(getattr(self, name), dtype=float)
            if array.shape != shape:
                raise ValueError(f"{name}: expected shape {shape}, got {array.shape}")
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def __reduce__(self):
        return Transform, (self.rotation, self.translation)  # so that copies are read-only too

    @classmethod
    def identity(cls) -> Transform:
        return cls(np.eye(3), np.zeros(3))

    @classmethod
    def from_rpy(cls, xyz: Numbers = (0, 0, 0), rpy: Numbers = (0, 0, 0)) -> Transform:
        """URDF's origin: fixed-axis roll, pitch, yaw [rad] = Rz(yaw)·Ry(pitch)·Rx(roll).

        Args:
            xyz: translation [m], shape (3,).
            rpy: roll, pitch and yaw [rad], shape (3,).
        """
        roll, pitch, yaw = rpy
        return cls(times(times(turn(2, yaw), turn(1, pitch)), turn(0, roll)), np.asarray(xyz, dtype=float))

    @classmethod
    def from_quaternion(cls, xyz: Numbers, wxyz: Numbers) -> Transform:
        """From a quaternion (w, x, y, z) of any length; exact where it says a right angle, as (1, 1, 0, 0) does.

        Args:
            xyz: translation [m], shape (3,).
            wxyz: quaternion, shape (4,).
        """
        parts = [float(c) for c in wxyz]
        # by a power of two, which changes no digit: squares of very small or large numbers would leave the doubles
        power = math.frexp(max(map(abs, parts)))[1]
        w, x, y, z = (math.ldexp(c, -power) for c in parts)
        rotation = np.array(
            [
                [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
            ]
        )
        return cls(rotation / (w * w + x * x + y * y + z * z), np.asarray(xyz, dtype=float))

    @classmethod
    def along(cls, axis: Numbers, distance: float) -> Transform:
        """A translation along a unit axis.

        Args:
            axis: unit vector, shape (3,).
            distance: [m].
        """
        return cls(np.eye(3), distance * np.asarray(axis, dtype=float))

    @classmethod
    def about(cls, axis: Numbers, angle: float) -> Transform:
        """A turn about a unit axis through the origin [rad].

        Args:
            axis: unit vector, shape (3,).
            angle: [rad].
        """
        x, y, z = axis
        K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        return cls(np.eye(3) + sine(angle) * K + (1 - cosine(angle)) * times(K, K), np.zeros(3))

    def __matmul__(self, other: Transform) -> Transform:
        return Transform(
            times(self.rotation, other.rotation),
            times(self.rotation, other.translation) + self.translation,
        )

    def inverse(self) -> Transform:
        return Transform(self.rotation.T, -times(self.rotation.T, self.translation))

    @property
    def rpy(self) -> np.ndarray:
        """Roll, pitch, yaw [rad] such that ``from_rpy`` gives this rotation back."""
        # yaw first, then the other two of the matrix turned back by it: accurate in gimbal lock too, where yaw
        # is arbitrary and roll makes up for it
        R = self.rotation
        yaw = math.atan2(R[1, 0], R[0, 0])
        c, s = cosine(yaw), sine(yaw)
        pitch = math.atan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
        roll = math.atan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
        return np.array([roll, pitch, yaw])

    @property
    def matrix(self) -> np.ndarray:
        """The homogeneous matrix, shape (4, 4)."""
        T = np.eye(4)
        T[:3, :3] = self.rotation
        T[:3, 3] = self.translation
        return T


def cosine(angle: float) -> float:
    """cos, exact at multiples of a right angle (math.cos(pi/2) is 6e-17, which would add operations to every
    program)."""
    quarter = _quarters(angle)
    return math.cos(angle) if quarter is None else (1.0, 0.0, -1.0, 0.0)[quarter % 4]


def sine(angle: float) -> float:
    """sin, exact at multiples of a right angle."""
    quarter = _quarters(angle)
    return math.sin(angle) if quarter is None else (0.0, 1.0, 0.0, -1.0)[quarter % 4]


def _quarters(angle: float) -> int | None:
    """How many right angles this is, if it is a whole (and small) number of them."""
    if not math.isfinite(angle):
        raise ValueError(f"angle: expected a finite number [rad], got {angle!r}")
    quarters = angle / (math.pi / 2)
    # beyond some turns a rounded multiple of pi/2 is no right angle; beyond 2**53 every quotient is whole
    return round(quarters) if abs(quarters) <= 64 and quarters == round(quarters) else None


def turn(axis: int, angle: float) -> np.ndarray:
    """The rotation matrix of a turn about x (0), y (1) or z (2) [rad]."""
    c, s = cosine(angle), sine(angle)
    if axis == 0:
        return np.array([[1, 0, 0], [0, c, -s], [0, s, c]], dtype=float)
    if axis == 1:
        return np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]], dtype=float)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]], dtype=float)
