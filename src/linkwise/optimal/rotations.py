"""Errors of orientations as rotation vectors, over any scalar; regular up to half a turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from linkwise.algorithms.manifold import SMALL
from linkwise.scalar import Scalar, atan2, cos, sin, sqrt, where

if TYPE_CHECKING:
    from linkwise.algorithms.dense import Rows


def quaternion_of(rotations: np.ndarray) -> np.ndarray:
    """Quaternions (x, y, z, w) of rotation matrices (..., 3, 3)."""
    flat = rotations.reshape(-1, 3, 3)
    found = np.array([quaternion_of_matrix(R.tolist()) for R in flat], dtype=float)
    found /= np.linalg.norm(found, axis=-1, keepdims=True)
    return found.reshape(*rotations.shape[:-2], 4)


def matrix_of_quaternion(quaternion: Sequence[Scalar]) -> Rows:
    """The rotation of any quaternion but zero."""
    from linkwise.model.mechanism import quaternion_rotation

    R = quaternion_rotation(quaternion)
    return [[R.xx, R.xy, R.xz], [R.yx, R.yy, R.yz], [R.zx, R.zy, R.zz]]


def quaternion_of_matrix(R: Rows) -> list[Scalar]:
    """A quaternion (x, y, z, w) of a rotation, not of length one: of four formulas the one with the largest entry."""
    (a, b, c), (d, e, f), (g, h, i) = R
    squares = [1.0 + a - e - i, 1.0 - a + e - i, 1.0 - a - e + i, 1.0 + a + e + i]  # 4x², 4y², 4z², 4w²
    rows = [
        [squares[0], b + d, c + g, h - f],
        [b + d, squares[1], f + h, c - g],
        [c + g, f + h, squares[2], d - b],
        [h - f, c - g, d - b, squares[3]],
    ]
    best, found = squares[3], rows[3]
    for square, row in zip(squares[:3], rows[:3], strict=True):
        larger = square > best
        best = where(larger, square, best)
        found = [where(larger, x, y) for x, y in zip(row, found, strict=True)]
    return found


def product_of_quaternions(a: Sequence[Scalar], b: Sequence[Scalar]) -> list[Scalar]:
    """The quaternion (x, y, z, w) of the turn b in the axes that the turn a leads to."""
    (x, y, z, w), (p, q, r, s) = a, b
    return [
        w * p + x * s + y * r - z * q,
        w * q - x * r + y * s + z * p,
        w * r + x * q - y * p + z * s,
        w * s - x * p - y * q - z * r,
    ]


def rotation_vector(R: Rows) -> list[Scalar]:
    """log R: axis times angle [rad], at most half a turn."""
    x, y, z, w = quaternion_of_matrix(R)
    flip = w < 0.0
    x, y, z, w = (where(flip, -v, v) for v in (x, y, z, w))
    square = x * x + y * y + z * z
    small = square < 1e-12 * (w * w)
    sine = sqrt(where(small, 1.0, square))
    # 2 atan(s/w)/s; for small angles 2/w (1 − (s/w)²/3)
    near = (2.0 - (2.0 / 3.0) * (square / where(small, w * w, 1.0))) / where(small, w, 1.0)
    scale = where(small, near, 2.0 * atan2(sine, w) / sine)
    return [scale * x, scale * y, scale * z]


def rotation_vector_slopes(w: Sequence[Scalar]) -> Rows:
    """∂φ by a turn in the rotated axes: 1 + ½ φ̂ + c φ̂², 3×3."""
    from linkwise.algorithms.manifold import _COTANGENT, _series  # pyright: ignore[reportPrivateUsage]

    x, y, z = w
    square = x * x + y * y + z * z
    small = square < SMALL
    half = 0.5 * sqrt(where(small, 1.0, square))
    far = (1.0 - half * cos(half) / sin(half)) / where(small, 1.0, square)
    c = where(small, _series(square, _COTANGENT), far)
    cross: Rows = [[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]]
    twice: Rows = [
        [a * b - (square if i == j else 0.0) for j, b in enumerate((x, y, z))]
        for i, a in enumerate((x, y, z))
    ]
    return [
        [(1.0 if i == j else 0.0) + 0.5 * cross[i][j] + c * twice[i][j] for j in range(3)] for i in range(3)
    ]
