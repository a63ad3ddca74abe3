"""Feedback gains: per joint or as matrices, and from what they mean, a natural frequency and a damping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.scalar import Scalar

ROUNDS = 20
"""In which inertias are made smaller until no motion is too fast."""


@dataclass(frozen=True)
class Gains:
    """Proportional [1/s²], derivative [1/s] and integral [1/s³] gains: one number for all joints, (n,), or a matrix
    (n, n) whose symmetric part is positive semidefinite.
    """

    kp: float | np.ndarray
    kd: float | np.ndarray
    ki: float | np.ndarray = 0.0

    def __post_init__(self):
        for name in ("kp", "kd", "ki"):
            value = getattr(self, name)
            try:
                array = np.asarray(value, dtype=float)
            except (TypeError, ValueError):
                raise ValueError(f"{name}: expected numbers, got {value!r}") from None
            if array.ndim == 2:
                _check_matrix(name, array)
            elif not (np.isfinite(array) & (array >= 0)).all():
                raise ValueError(f"{name}: expected finite numbers, none negative; got {value!r}")

    @classmethod
    def from_frequency(cls, frequency, damping=1.0, *, integral: bool = False) -> Gains:
        """Gains for errors that decay like ë + 2ζω ė + ω² e = 0.

        Args:
            frequency: ω [rad/s].
            damping: ζ.
            integral: whether there is a third pole at −ω, (s + ω)(s² + 2ζωs + ω²), for a controller with integral
                action.
        """
        integral = flag("integral", integral)
        try:
            w, z = np.asarray(frequency, dtype=float), np.asarray(damping, dtype=float)
        except (TypeError, ValueError):
            w = z = np.array(np.nan)
        if not ((w > 0) & np.isfinite(w)).all() or not ((z > 0) & np.isfinite(z)).all():
            raise ValueError(
                f"frequency and damping: expected positive numbers, got {frequency!r} and {damping!r}"
            )
        kp, kd, ki = w**2, 2 * z * w, np.zeros_like(w)
        if integral:
            kp, kd, ki = (1 + 2 * z) * w**2, (1 + 2 * z) * w, w**3
        return cls(*(gain if np.ndim(gain) else float(gain) for gain in (kp, kd, ki)))

    def stable(self) -> bool:
        """Whether s³ + kd s² + kp s + ki (without integral action s² + kd s + kp) has its roots left of the
        axis.
        """
        kp, kd, ki = (np.asarray(k, dtype=float) for k in (self.kp, self.kd, self.ki))
        if any(k.ndim == 2 for k in (kp, kd, ki)):
            return _stable(kp, kd, ki)
        return bool(((kp > 0) & (kd > 0) & (ki >= 0) & (kd * kp > ki)).all())

    def vectors(self, dof: int) -> dict[str, np.ndarray]:
        """The gains by name, each (n,), or (n, n) for a matrix."""
        found = {}
        for name in ("kp", "kd", "ki"):
            value = np.asarray(getattr(self, name), dtype=float)
            if value.shape not in ((), (dof,), (dof, dof)):
                raise ValueError(
                    f"{name}: expected one number or {dof}, or a matrix of {dof} x {dof}; got shape {value.shape}"
                )
            shape = value.shape if value.ndim == 2 else (dof,)
            found[name] = np.array(np.broadcast_to(value, shape))
        return found


def product(gain: Sequence[Any], values: Sequence[Scalar]) -> list[Scalar]:
    """A gain times a vector: joint by joint, or as a matrix where the gain has rows.

    Args:
        gain: n scalars, or rows of n scalars.
        values: n scalars.
    """
    if len(gain) and not isinstance(gain[0], Sequence):
        return [k * x for k, x in zip(gain, values, strict=True)]
    found: list[Scalar] = []
    for row in gain:
        first, *others = (k * x for k, x in zip(row, values, strict=True))
        total = first
        for term in others:
            total = total + term
        found.append(total)
    return found


def not_too_fast(inertia: np.ndarray, mobilities: np.ndarray, fastest: float) -> np.ndarray:
    """Inertias for gains with which no motion has less than 1/``fastest`` of the inertia that its gains are for, (n,).

    How much lighter is the largest eigenvalue of G diag(inertia) over the positions. Where it is too large, inertias
    of the directions that take part in its motion are made smaller, and have three digits.

    Args:
        inertia: those of the gains that are wanted [kg·m² or kg], (n,).
        mobilities: G, inverses of the inertias of the robot (positions, n, n).
        fastest: the bound.
    """
    for _ in range(ROUNDS):
        root = np.sqrt(inertia)
        rates, motions = np.linalg.eigh(root[:, None] * mobilities * root)
        rate, motion = rates[:, -1], motions[:, :, -1]
        fast = rate > 1.001 * fastest
        if not fast.any():
            return inertia
        smaller = (1.0 - motion[fast] ** 2 * (1.0 - fastest / rate[fast])[:, None]).min(axis=0)
        inertia = np.array([float(f"{x:.3g}") for x in inertia * smaller])
    return inertia


def _check_matrix(name: str, matrix: np.ndarray) -> None:
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name}: a matrix of gains is square, got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError(f"{name}: expected finite numbers")
    least = float(np.linalg.eigvalsh(0.5 * (matrix + matrix.T)).min(initial=0.0))
    if least < -1e-9 * float(np.abs(matrix).max(initial=0.0)):
        raise ValueError(
            f"{name}: the symmetric part of a matrix of gains must not have negative eigenvalues, got {least:g}"
        )


def _stable(kp: np.ndarray, kd: np.ndarray, ki: np.ndarray) -> bool:
    """Whether s³ + K_d s² + K_p s + K_i (without K_i the square) has its roots left of the axis, for matrices."""
    n = next(len(k) for k in (kp, kd, ki) if k.ndim == 2)
    blocks = [k if k.ndim == 2 else np.diag(np.broadcast_to(k, (n,))) for k in (kd, kp, ki)]
    blocks = blocks if np.any(ki) else blocks[:2]
    order = len(blocks)
    companion = np.zeros((order * n, order * n))
    companion[:n] = -np.hstack(blocks)
    companion[n:, :-n] = np.eye((order - 1) * n)
    return bool((np.linalg.eigvals(companion).real < 0.0).all())
