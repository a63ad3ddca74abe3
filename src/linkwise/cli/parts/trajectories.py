"""Motions: a quintic from one position to another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from linkwise.arguments.numbers import Numbers
from linkwise.files.tables import numbered


@dataclass(frozen=True)
class SampledMotion:
    """A motion sampled in time: t [s], shape (points,), if it is known; q, qd, qdd, shape (points, n)."""

    t: np.ndarray | None
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray

    def columns(self, *, states: bool = True) -> dict[str, np.ndarray]:
        """t, if it is known, and with ``states`` q1 …, qd1 …, qdd1 …, as the columns of a table."""
        table = {} if self.t is None else {"t": self.t}
        if states:
            table |= numbered("q", self.q) | numbered("qd", self.qd) | numbered("qdd", self.qdd)
        return table


def quintic(start: ArrayLike, end: ArrayLike, duration: float, points: int) -> SampledMotion:
    """From ``start`` to ``end`` in ``duration`` [s], at rest and without acceleration at both ends.

    ``linkwise.motion.quintic`` is the same polynomial in powers of t; this form, in fractions of the distance, meets
    both ends to the last bit, so that a command prints exactly the given positions.
    """
    duration = Numbers().time("duration", duration)
    if points < 2:
        raise ValueError(f"points: expected at least 2, got {points}")
    first, last = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    t = np.linspace(0.0, duration, points)
    u = (t / duration)[:, np.newaxis]
    way = last - first
    return SampledMotion(
        t,
        first + way * (u**3 * (10 - 15 * u + 6 * u**2)),
        way * (30 * u**2 * (1 - u) ** 2) / duration,
        way * (60 * u * (1 - u) * (1 - 2 * u)) / duration**2,
    )
