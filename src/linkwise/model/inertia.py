"""The ten inertial parameters of a body, and which of them are physically possible."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.core.products import times
from linkwise.errors import ModelError, ShapeError
from linkwise.model.transform import Transform

LABELS = ("m", "hx", "hy", "hz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")


@dataclass(frozen=True)
class Inertia:
    """Inertial parameters of a body, about the origin and along the axes of its link frame.

    mass [kg]; first_moment = mass·centre of mass [kg·m]; inertia_about_origin = (Ixx, Ixy, Ixz, Iyy, Iyz, Izz)
    [kg·m²], the entries of the inertia *matrix* (Ixy = −∫xy dm).
    """

    mass: float = 0.0
    first_moment: tuple[float, float, float] = (0.0, 0.0, 0.0)
    inertia_about_origin: tuple[float, float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    @classmethod
    def from_com(
        cls,
        mass: float,
        com: Sequence[float] | np.ndarray,
        inertia: Sequence[float] | np.ndarray,
        rotation: np.ndarray | None = None,
    ) -> Inertia:
        """An inertia from mass, centre of mass and the inertia about it.

        Args:
            mass: [kg].
            com: centre of mass [m] in the link frame.
            inertia: [kg·m²] about the centre of mass: 3×3, (Ixx, Ixy, Ixz, Iyy, Iyz, Izz) or a diagonal.
            rotation: turns the axes in which ``inertia`` is given into those of the link frame.
        """
        matrix = matrix_of(inertia)
        if rotation is not None:
            matrix = times(times(rotation, matrix), rotation.T)
        c = np.asarray(com, dtype=float)
        if c.shape != (3,):
            raise ShapeError(f"com: expected shape (3,), got {c.shape}")
        about_origin = matrix + mass * _steiner(c, c)
        return cls(float(mass), _vector(mass * c), _upper(about_origin))

    @classmethod
    def from_parameters(cls, parameters: Sequence[float]) -> Inertia:
        """From the ten parameters in the order of ``LABELS``."""
        values = _floats(parameters)
        if len(values) != 10:
            raise ShapeError(f"parameters: expected 10 values ({' '.join(LABELS)}), got {len(values)}")
        return cls(values[0], values[1:4], values[4:10])

    @property
    def parameters(self) -> tuple[float, ...]:
        """The ten parameters in the order of ``LABELS``."""
        return (self.mass, *self.first_moment, *self.inertia_about_origin)

    @property
    def com(self) -> np.ndarray:
        """Centre of mass [m], shape (3,); zero for a massless body."""
        return np.array(self.first_moment) / self.mass if self.mass != 0 else np.zeros(3)

    @property
    def matrix_about_origin(self) -> np.ndarray:
        """Inertia about the link frame's origin [kg·m²], shape (3, 3)."""
        return matrix_of(self.inertia_about_origin)

    @property
    def matrix_about_com(self) -> np.ndarray:
        """Inertia about the centre of mass [kg·m²], shape (3, 3)."""
        c = self.com
        return self.matrix_about_origin - self.mass * _steiner(c, c)

    @property
    def pseudo_inertia(self) -> np.ndarray:
        """The 4×4 pseudo-inertia [[½tr(I)·1 − I, h], [hᵀ, m]]; positive semidefinite for a possible body."""
        I = self.matrix_about_origin
        J = np.empty((4, 4))
        J[:3, :3] = 0.5 * np.trace(I) * np.eye(3) - I
        J[:3, 3] = J[3, :3] = self.first_moment
        J[3, 3] = self.mass
        return J

    @property
    def is_zero(self) -> bool:
        return not any(self.parameters)

    def expressed_in(self, pose: Transform) -> Inertia:
        """The same body in a frame in which this frame has the given pose."""
        R, p = pose.rotation, pose.translation
        h = times(R, np.array(self.first_moment))
        turned = times(times(R, self.matrix_about_origin), R.T)
        I = turned + 2.0 * _steiner(p, h) + self.mass * _steiner(p, p)
        return Inertia(self.mass, _vector(h + self.mass * p), _upper(I))

    def __add__(self, other: Inertia) -> Inertia:
        return Inertia.from_parameters(
            [a + b for a, b in zip(self.parameters, other.parameters, strict=True)]
        )

    def violations(self, tolerance: float = 1e-9) -> list[str]:
        """What makes this body impossible, in words; empty when nothing does.

        A body is possible when its mass is not negative and its pseudo-inertia is positive semidefinite, which
        contains the triangle inequalities of the principal moments.
        """
        found: list[str] = []
        if self.mass < 0:
            found.append(f"mass {self.mass:g} is negative")
        about_com = self.matrix_about_com
        scale = max(
            float(np.max(np.abs(about_com))), float(np.max(np.abs(self.inertia_about_origin))), 1e-300
        )
        moments = np.linalg.eigvalsh(about_com)
        listed = ", ".join(f"{m:.4g}" for m in moments)
        if moments[0] < -tolerance * scale:
            found.append(
                f"inertia about the centre of mass is not positive semidefinite (principal moments {listed})"
            )
        elif moments[0] + moments[1] < moments[2] - tolerance * scale:
            found.append(f"principal moments {listed} violate the triangle inequality")
        if self.mass == 0 and (any(self.first_moment) or any(self.inertia_about_origin)):
            found.append("mass is zero but moments are not")
        return found


def _steiner(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(a·b) 1 − ½(a bᵀ + b aᵀ). The diagonal sums the products of the other components, so that a body far out on an
    axis keeps all digits of its small inertia about that axis."""
    product = a * b
    matrix = -0.5 * (np.outer(a, b) + np.outer(b, a))
    matrix[np.diag_indices(3)] = [product[1] + product[2], product[0] + product[2], product[0] + product[1]]
    return matrix


def matrix_of(inertia: Sequence[float] | np.ndarray) -> np.ndarray:
    """The inertia matrix from a matrix, from (Ixx, Ixy, Ixz, Iyy, Iyz, Izz) or from a diagonal."""
    I = np.asarray(inertia, dtype=float)
    if I.shape == (3, 3):
        skew = np.abs(I - I.T)
        if (skew > 1e-6 * np.abs(I).max()).any():  # half of it would be ignored silently
            raise ModelError(f"inertia: expected a symmetric matrix, got {I.tolist()}")
        return I
    if I.shape == (6,):
        xx, xy, xz, yy, yz, zz = I
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if I.shape == (3,):
        return np.diag(I)
    raise ShapeError(f"inertia: expected shape (3, 3), (6,) or (3,), got {I.shape}")


def _upper(I: np.ndarray) -> tuple[float, float, float, float, float, float]:
    return (float(I[0, 0]), float(I[0, 1]), float(I[0, 2]), float(I[1, 1]), float(I[1, 2]), float(I[2, 2]))


def _vector(v: np.ndarray) -> tuple[float, float, float]:
    return float(v[0]), float(v[1]), float(v[2])


def _floats(values: Iterable[Any]) -> tuple[float, ...]:
    return tuple(float(v) for v in values)
