"""Rotation matrices, rotation vectors and ZYZ Euler angles, for any leading axes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from linkwise.motion.arguments import shaped

POSES = 1e-4  # how far a rotation typed with a few digits may be from orthonormal


def check_poses(name: str, poses: np.ndarray) -> None:
    """Refuse what is no pose: a mirrored, scaled or sheared one would get the solution of another pose."""
    # one array, or one number, for every element: many times faster than products of small matrices
    single = poses.ndim == 2
    rows = poses.tolist() if single else np.ascontiguousarray(np.moveaxis(poses, (-2, -1), (0, 1)))

    def largest(numbers: Iterable[Any]) -> float:
        return max(abs(x) if single else np.abs(x).max(initial=0.0) for x in numbers)

    (a, b, c), (d, e, f), (g, h, k) = (row[:3] for row in rows[:3])
    products = (a * d + b * e + c * f, a * g + b * h + c * k, d * g + e * h + f * k)
    squares = (a * a + b * b + c * c - 1.0, d * d + e * e + f * f - 1.0, g * g + h * h + k * k - 1.0)
    determinant = a * (e * k - f * h) - b * (d * k - f * g) + c * (d * h - e * g)
    if largest((*products, *squares)) > POSES or largest([determinant - 1.0]) > 1.0:
        raise ValueError(
            f"{name}: expected poses, but the columns of a rotation are not orthonormal, right-handed"
        )
    x, y, z, one = rows[3]
    if largest((x, y, z, one - 1.0)) > POSES:
        raise ValueError(f"{name}: expected poses, whose last row is 0 0 0 1")


def turn_about(vector) -> np.ndarray:
    """The rotation by the length of a rotation vector [rad] about its direction: (..., 3) -> (..., 3, 3)."""
    vector = shaped("vector", vector, 3)
    angle = np.linalg.norm(vector, axis=-1)[..., np.newaxis, np.newaxis]
    K = cross_matrix(vector)
    # sin(x)/x and (1 - cos x)/x² without cancellation: np.sinc(y) = sin(πy)/(πy)
    first = np.sinc(angle / np.pi)
    second = 0.5 * np.sinc(angle / (2 * np.pi)) ** 2
    return np.eye(3) + first * K + second * (K @ K)


def rotation_vector(rotation) -> np.ndarray:
    """The rotation vector, at most π long, of a rotation matrix: (..., 3, 3) -> (..., 3)."""
    R = shaped("rotation", rotation, 3, 3)
    # the quaternion by the largest of its four components, so that nothing is divided by a small number
    trace = np.trace(R, axis1=-2, axis2=-1)
    diagonal = np.diagonal(R, axis1=-2, axis2=-1)
    squares = np.concatenate([trace[..., np.newaxis], 2 * diagonal - trace[..., np.newaxis]], axis=-1)
    S, D = R + np.swapaxes(R, -1, -2), R - np.swapaxes(R, -1, -2)
    skew = np.stack([D[..., 2, 1], D[..., 0, 2], D[..., 1, 0]], axis=-1)
    xy, xz, yz = S[..., 0, 1], S[..., 0, 2], S[..., 1, 2]
    a, b, c = skew[..., 0], skew[..., 1], skew[..., 2]
    one = 1 + squares
    candidates = np.stack(
        [
            np.stack([one[..., 0], a, b, c], axis=-1),
            np.stack([a, one[..., 1], xy, xz], axis=-1),
            np.stack([b, xy, one[..., 2], yz], axis=-1),
            np.stack([c, xz, yz, one[..., 3]], axis=-1),
        ],
        axis=-2,
    )
    best = np.argmax(squares, axis=-1)[..., np.newaxis, np.newaxis]
    q = np.take_along_axis(candidates, best, axis=-2)[..., 0, :]
    q = q / np.linalg.norm(q, axis=-1, keepdims=True)
    q = np.where(q[..., :1] < 0, -q, q)
    length = np.linalg.norm(q[..., 1:], axis=-1, keepdims=True)
    angle = 2 * np.arctan2(length, q[..., :1])
    return q[..., 1:] * np.where(length > 1e-12, angle / np.where(length > 1e-12, length, 1.0), 2.0)


def euler_zyz(angles) -> np.ndarray:
    """Rz(α)·Ry(β)·Rz(γ) for angles (α, β, γ) [rad], shape (..., 3)."""
    angles = shaped("angles", angles, 3)
    z, y = np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0])
    return (
        turn_about(angles[..., :1] * z) @ turn_about(angles[..., 1:2] * y) @ turn_about(angles[..., 2:] * z)
    )


def zyz_angles(rotation) -> np.ndarray:
    """(α, β, γ) [rad] with β in [0, π] of a rotation matrix; α = 0 where only α + γ or α − γ is defined."""
    R = shaped("rotation", rotation, 3, 3)
    beta = np.arctan2(np.hypot(R[..., 2, 0], R[..., 2, 1]), R[..., 2, 2])
    turned = np.hypot(R[..., 2, 0], R[..., 2, 1]) > 1e-12
    alpha = np.where(turned, np.arctan2(R[..., 1, 2], R[..., 0, 2]), 0.0)
    gamma = np.where(
        turned,
        np.arctan2(R[..., 2, 1], -R[..., 2, 0]),
        np.arctan2(R[..., 1, 0], R[..., 1, 1]),
    )
    return np.stack([alpha, beta, gamma], axis=-1)


def cross_matrix(v: np.ndarray) -> np.ndarray:
    """The matrix of v × (·): (..., 3) -> (..., 3, 3)."""
    x, y, z = np.moveaxis(np.asarray(v, dtype=float), -1, 0)
    o = np.zeros_like(x)
    return np.stack([np.stack([o, -z, y], -1), np.stack([z, o, -x], -1), np.stack([-y, x, o], -1)], -2)
