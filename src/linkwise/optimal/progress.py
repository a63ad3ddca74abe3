"""Whether a controller gets nearer to its target: it arrives, it rests elsewhere, or it moves without getting nearer."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

APPROACHING, NOT_MOVING, WANDERING = "approaching", "not moving", "wandering"
PATIENCE = 2.0
"""[s] without getting nearer after which there is no progress."""
NEARER = 0.99
"""Part of the smallest distance so far below which there is progress."""
NEAR = 0.02
"""Distance [rad or m] at which the target counts as reached."""
RESTING = 0.02
"""Of the speed limits, below which the arm rests."""


@dataclass
class Progress:
    """The smallest distance so far, and since when [s]."""

    distance: float = math.inf
    """The last one [rad or m]."""
    arrived: bool = False
    """Whether the arm rests near its target."""
    _smallest: float = field(default=math.inf, repr=False)
    _since: float = field(default=-math.inf, repr=False)

    def judged(self, t: float, distance: float, speed: float) -> str:
        """One of the three words.

        Args:
            t: time [s].
            distance: to the target [rad or m].
            speed: the largest one of a joint, by its limit.
        """
        self.distance, self.arrived = distance, distance <= NEAR and speed <= RESTING
        if distance < NEARER * self._smallest or self._since == -math.inf:
            self._smallest, self._since = min(distance, self._smallest), t
        if distance <= NEAR or t - self._since <= PATIENCE:
            return APPROACHING
        return NOT_MOVING if speed <= RESTING else WANDERING
