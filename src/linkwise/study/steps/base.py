"""What every step is: names in, named quantities out.

A step that can be traced becomes part of the study's one program; any other is called with arrays, a block of
points at a time, and must give every point the same result whatever the block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from linkwise.robot.robot import Robot
from linkwise.study import quantities
from linkwise.study.quantities import Quantity

Arrays = Mapping[str, np.ndarray]


class Step(ABC):
    """One entry of ``compute``."""

    name: str
    takes: tuple[str, ...]
    """Names of the variables and results that it needs."""
    traceable: bool = False

    def traced(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """The results for symbols: scalars or object arrays by name."""
        raise NotImplementedError

    @abstractmethod
    def computed(self, given: Arrays, first: int) -> dict[str, np.ndarray]:
        """The results for arrays (count, *shape) of the points from number ``first`` on, with one thread."""

    def tried(self, given: Arrays) -> dict[str, np.ndarray]:
        """As ``computed``, for the first points before a study begins: what cannot work anywhere is an error."""
        return self.computed(given, 0)

    def gives(self) -> tuple[str, ...]:
        """The names of its results."""
        return (self.name,)

    def quantity(self, robot: Robot, name: str, shape: tuple[int, ...]) -> Quantity:
        """What one of its results means."""
        return quantities.derived(robot, name, shape)

    def bytes_per_point(self) -> int:
        """Memory that it needs for a point beside its results, to choose how many are computed at a time."""
        return 0
