"""Whether a controller gets nearer to its target: it arrives, rests elsewhere, or moves without getting nearer."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

APPROACHING, NOT_MOVING, WANDERING = "approaching", "not moving", "wandering"
PATIENCE = 2.0
"""[s] without getting nearer after which there is no progress."""
NEARER, NEARER_BY = 0.95, 0.1
"""There is progress below this part of the smallest distance so far, or by so much [rad or m]."""
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
        least = self._smallest
        if distance < NEARER * least or distance < least - NEARER_BY or self._since == -math.inf:
            self._smallest, self._since = min(distance, least), t
        if distance <= NEAR or t - self._since <= PATIENCE:
            return APPROACHING
        return NOT_MOVING if speed <= RESTING else WANDERING
