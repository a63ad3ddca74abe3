"""Whether a controller gets nearer to its target: it arrives, rests elsewhere, or moves without getting nearer.

The rule is arithmetic over any scalar: Python, the real-time loop and C packages have the same one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from linkwise.scalar import Scalar, maximum, minimum, where

APPROACHING, NOT_MOVING, WANDERING = 0.0, 1.0, 2.0
"""Codes. The last one stays until the memory is set to zeros: for another target."""
PATIENCE = 2.0
"""[s] without getting nearer after which there is no progress."""
NEARER, NEARER_BY = 0.95, 0.1
"""There is progress below this part of the smallest distance so far, or by so much [rad or m]."""
NEAR = 0.02
"""Distance [rad or m] at which the target counts as reached."""
RESTING = 0.02
"""Of the speed limits, below which the arm rests."""
MEMORY = ("smallest", "waited", "begun", "lost")
"""The smallest distance so far, the time without a smaller one [s], whether there was a sample, whether it wandered."""


@dataclass
class Progress:
    """What is known of the way to one target."""

    distance: float = np.inf
    """The last one [rad or m]."""
    arrived: bool = False
    """Whether the arm rests near its target."""
    memory: np.ndarray = field(default_factory=lambda: np.zeros(len(MEMORY)), repr=False)


def judged(
    distance: Scalar, speed: Scalar, period: Scalar, memory: Sequence[Scalar]
) -> tuple[list[Scalar], list[Scalar]]:
    """([code, whether the arm has arrived, distance], the next memory).

    Args:
        distance: to the target [rad or m].
        speed: the largest one of a joint, by its limit.
        period: since the last sample [s]; 0 at first.
        memory: of the last sample; zeros at first.
    """
    smallest, waited, begun, lost = memory
    first = begun <= 0.5
    nearer = (distance < NEARER * smallest) | (distance < smallest - NEARER_BY) | first
    waited = where(nearer, 0.0, waited + period)
    smallest = where(nearer, where(first, distance, minimum(distance, smallest)), smallest)
    near, rests = distance <= NEAR, speed <= RESTING
    code = where(near | (waited <= PATIENCE), APPROACHING, where(rests, NOT_MOVING, WANDERING))
    lost = where(code > 1.5, 1.0, lost)
    code = where(lost > 0.5, WANDERING, code)
    arrived = where(near & rests, 1.0, 0.0)
    return [code, arrived, distance], [smallest, waited, 1.0 + 0.0 * distance, lost]


def largest(values: Sequence[Scalar]) -> Scalar:
    """The largest one of some scalars."""
    found = values[0]
    for value in values[1:]:
        found = maximum(found, value)
    return found
