"""Feedback gains from what they mean: a natural frequency and a damping."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.arguments.flags import flag


@dataclass(frozen=True)
class Gains:
    """Proportional [1/s²], derivative [1/s] and integral [1/s³] gains, one number for all joints or (n,)
    each.
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
            if not (np.isfinite(array) & (array >= 0)).all():
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
        return bool(((kp > 0) & (kd > 0) & (ki >= 0) & (kd * kp > ki)).all())

    def vectors(self, dof: int) -> dict[str, np.ndarray]:
        """The gains by name, each (n,)."""
        found = {}
        for name in ("kp", "kd", "ki"):
            value = np.asarray(getattr(self, name), dtype=float)
            if value.shape not in ((), (dof,)):
                raise ValueError(f"{name}: expected one number or {dof}, got shape {value.shape}")
            found[name] = np.array(np.broadcast_to(value, (dof,)))
        return found
