"""Pairs of axes of which one carries the other: what sums over pairs go over.

The same loops serve code that is written out and code with loops (``functions.looped``): ``turns`` and ``numbers`` are
those of plain Python, or ``span`` and ``whole_numbers`` of the traced language.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Any

from linkwise.algorithms import coupling
from linkwise.model.mechanism import Mechanism

Place = Any
"""The number of an axis: a whole number, or one that depends on the turn of a loop."""


class Carriers:
    """For every axis the axes of its own link, and those of the links that carry it, nearest first.

    Args:
        links: the robot.
        turns: ``range``, or ``language.span``.
        numbers: ``tuple``, or ``language.whole_numbers``.
    """

    def __init__(
        self,
        links: Mechanism,
        turns: Callable[..., Iterable[Any]] = range,
        numbers: Callable[[Iterable[int]], Any] = tuple,
    ):
        self.count, self.turns = links.dof, turns
        own = coordinates_by_link(links)
        link_of = [k for k, _ in links.coordinates()]
        self.lists = [[*own[k], *(j for a in links.ancestors(k) for j in own[a])] for k in link_of]
        starts = [*accumulate(map(len, self.lists), initial=0)]
        self._starts = numbers(starts)
        self._others = numbers(start + len(own[k]) for start, k in zip(starts[:-1], link_of, strict=True))
        self._axes = numbers(a for each in self.lists for a in each)
        self.link = numbers(link_of)
        leaders, self.ratios = _leaders(links)
        self.leader = numbers(leaders)
        """For every axis the coordinate that moves it."""
        self.backward = numbers(max(leaders, default=0) - leader for leader in leaders)

    def axes(self) -> Iterable[Place]:
        return self.turns(self.count)

    def own(self, axis: Place) -> Iterator[Place]:
        """The axes of its link."""
        return self._listed(self._starts[axis], self._others[axis])

    def others(self, axis: Place) -> Iterator[Place]:
        """The axes of the links that carry its link."""
        return self._listed(self._others[axis], self._starts[axis + 1])

    def all(self, axis: Place) -> Iterator[Place]:
        return self._listed(self._starts[axis], self._starts[axis + 1])

    def _listed(self, first: Any, stop: Any) -> Iterator[Place]:
        for place in self.turns(first, stop):
            yield self._axes[place]


def coordinates_by_link(links: Mechanism) -> list[range]:
    """For every link the numbers of its velocity coordinates."""
    return [
        range(start, start + len(link.axes))
        for start, link in zip(links.first_coordinates(), links, strict=True)
    ]


def _leaders(links: Mechanism) -> tuple[list[int], list[float]]:
    """For every axis the coordinate that moves it, and by how much."""
    leaders, ratios = [0] * links.dof, [1.0] * links.dof
    for coordinate, (own, followers) in enumerate(coupling.leading(links)):
        leaders[own] = coordinate
        for axis, ratio in followers:
            leaders[axis], ratios[axis] = coordinate, ratio
    return leaders, ratios
