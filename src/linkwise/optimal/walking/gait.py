"""Gaits in world time: which feet swing when. Over any scalar.

The feet of a group swing together, one group after the other, with a time on all feet before every swing; a period has
all groups once. A foot is held by the ground whenever it does not swing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.errors import UnknownNameError, suggest
from linkwise.optimal import arguments
from linkwise.optimal.gaits import FEET, PATTERNS
from linkwise.scalar import Scalar, rint, where


@dataclass(frozen=True)
class Gait:
    """A periodic gait.

    Args:
        groups: numbers of the feet that swing together, group after group.
        swing: duration of a swing [s].
        stance: time on all feet before every swing [s].
    """

    groups: Sequence[Sequence[int]]
    swing: float = 0.24
    stance: float = 0.06

    def __post_init__(self):
        groups = tuple(tuple(int(foot) for foot in group) for group in self.groups)
        feet = sorted(foot for group in groups for foot in group)
        if feet != list(range(len(feet))) or not feet:
            raise arguments.ProblemError(f"groups: expected every foot once, got {self.groups!r:.80}")
        object.__setattr__(self, "groups", groups)
        arguments.number("swing", self.swing, above=0.0)
        arguments.number("stance", self.stance, least=0.0)

    @classmethod
    def named(cls, name: str, swing: float = 0.24, stance: float = 0.06) -> Gait:
        """A gait of four feet: "trot", "pace", "bound" or "walk".

        Args:
            name: of the gait.
            swing: duration of a swing [s].
            stance: time on all feet before every swing [s].
        """
        if name not in PATTERNS:
            raise UnknownNameError(f"gait: no gait {name!r}; {suggest(name, PATTERNS)}")
        return cls([[FEET.index(foot) for foot in group] for group in PATTERNS[name]], swing, stance)

    @property
    def feet(self) -> int:
        """Number of feet."""
        return sum(map(len, self.groups))

    @property
    def period(self) -> float:
        """After which every foot has swung once [s]."""
        return len(self.groups) * (self.swing + self.stance)

    @property
    def standing(self) -> float:
        """How long a foot is held between two swings [s]."""
        return self.period - self.swing

    def lift_off(self, foot: int) -> float:
        """When a foot leaves the ground, from the begin of a period on [s].

        Args:
            foot: its number.
        """
        number = next(k for k, group in enumerate(self.groups) if foot in group)
        return number * (self.swing + self.stance) + self.stance

    def since_lift_off(self, time: Scalar, foot: int) -> Scalar:
        """Time since the foot last left the ground, below a period [s]; it swings while this is below ``swing``.

        Args:
            time: since the begin of the gait [s].
            foot: its number.
        """
        whole: Any = (time - self.lift_off(foot)) * (1.0 / self.period)
        part: Any = whole - rint(whole)
        return self.period * where(part < 0.0, part + 1.0, part)

    def held(self, time: Scalar, foot: int) -> Scalar:
        """1 while the ground holds the foot, else 0.

        Args:
            time: since the begin of the gait [s].
            foot: its number.
        """
        since: Any = self.since_lift_off(time, foot)
        return where(since < self.swing, 0.0 * since, 0.0 * since + 1.0)
