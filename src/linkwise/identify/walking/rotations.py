"""Orientations of a base over time: quaternions (x, y, z, w), their matrices and the angular velocity they mean."""

from __future__ import annotations

import numpy as np


def matrices(quaternions: np.ndarray) -> np.ndarray:
    """Rotations (..., 3, 3) from base to world, of quaternions (..., 4) of any length.

    Args:
        quaternions: (x, y, z, w), shape (..., 4).
    """
    x, y, z, w = np.moveaxis(quaternions / np.sqrt((quaternions**2).sum(axis=-1, keepdims=True)), -1, 0)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
    )
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def turned(rotations: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """R v of every sample, (N, 3).

    Args:
        rotations: shape (N, 3, 3), or one (3, 3).
        vectors: shape (N, 3).
    """
    return (rotations * vectors[..., None, :]).sum(axis=-1)


def turned_back(rotations: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Rᵀ v of every sample, (N, 3).

    Args:
        rotations: shape (N, 3, 3), or one (3, 3).
        vectors: shape (N, 3).
    """
    return turned(np.swapaxes(rotations, -1, -2), vectors)


def continuous(quaternions: np.ndarray) -> np.ndarray:
    """The same rotations without changes of sign from sample to sample; unit length.

    Args:
        quaternions: shape (N, 4).
    """
    unit = quaternions / np.sqrt((quaternions**2).sum(axis=1, keepdims=True))
    along = (unit[1:] * unit[:-1]).sum(axis=1)
    signs = np.concatenate([[1.0], np.cumprod(np.where(along < 0, -1.0, 1.0))])
    return unit * signs[:, None]


def angular_velocity(quaternions: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """ω = 2 q̄ q̇ in axes of the base, (N, 3); with second derivatives in place of ``rates`` it is ω̇.

    Args:
        quaternions: (x, y, z, w), shape (N, 4).
        rates: their derivatives, shape (N, 4).
    """
    v, w = quaternions[:, :3], quaternions[:, 3:]
    a, b = rates[:, :3], rates[:, 3:]
    length = (quaternions**2).sum(axis=1, keepdims=True)
    return 2.0 * (w * a - b * v - np.cross(v, a)) / length
