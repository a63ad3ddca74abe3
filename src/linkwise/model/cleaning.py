"""What a change of frame leaves of zeros, ones and right angles, made exact again."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from linkwise.model.inertia import Inertia

RIGHT_ANGLE_TOLERANCE = 8e-12  # [rad]; files that mean π/2 write at least eleven decimals
ROUND_OFF = 1e-14  # relative: what the change of frame leaves of a zero


def snapped(v: np.ndarray) -> np.ndarray:
    rounded = np.round(v)
    return rounded if np.max(np.abs(v - rounded)) < RIGHT_ANGLE_TOLERANCE else v


def clean_rotation(R: np.ndarray) -> np.ndarray:
    """A rotation that is nearly a swap of axes becomes exactly that; round-off next to zero becomes zero."""
    near = snapped(R)
    return np.where(np.abs(near) < 1e-15, 0.0, near)


def clean_inertia(inertia: Inertia, rotation: np.ndarray) -> list[float]:
    """The inertia about the origin without its round-off. A rotation that only swaps axes adds none to the diagonal:
    there a small moment beside a distant centre of mass is what the file says."""
    cleaned = clean(inertia.inertia_about_origin)
    if set(np.abs(rotation).ravel().tolist()) <= {0.0, 1.0}:
        smallest = ROUND_OFF * float(np.max(np.abs(inertia.matrix_about_com)))
        for k in (0, 3, 5):
            value = inertia.inertia_about_origin[k]
            cleaned[k] = value if abs(value) > smallest else 0.0
    return cleaned


def clean(values: ArrayLike, scale: float | None = None) -> list[float]:
    array = np.asarray(values, dtype=float)
    size = np.max(np.abs(array)) if scale is None else max(float(np.max(np.abs(array))), float(scale))
    return np.where(np.abs(array) <= ROUND_OFF * size, 0.0, array).tolist()
