"""A distance that is kept along a whole path, not only at samples of it.

A piece of a path lies in the hull of its control points. So every position of it is at most as far from its middle as
the farthest control point, joint by joint, and a clearance changes by no more than that times the longest levers
(``Validity.speed_factors``). Pieces of which that does not prove the wanted clearance are halved.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linkwise.collision.validity.kernel import BoundWorld
from linkwise.collision.validity.validity import Validity
from linkwise.collision.world import World
from linkwise.core.products import times
from linkwise.solve import linear

HALVINGS = 14
FIRST = 0.04  # [m] motion of points of the robot in the pieces that are looked at first, about
LOOKED_FOR = 0.2  # [m] beyond what is wanted; larger clearances are not told apart
ROUNDING = 1e-6  # [m] taken off every clearance: rounding of positions and distances


class Proof(NamedTuple):
    """What is proved about each piece of a path: whether it has the wanted clearances, a clearance [m] that is kept in
    all of it, shape (pieces,); ``begin`` and ``end`` of intervals as parts of their pieces with their own bounds, and
    whose they are."""

    proved: np.ndarray
    pieces: np.ndarray
    owner: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    bound: np.ndarray


class Prover:
    """Proofs for one robot in one world.

    Args:
        validity: checks of the robot.
        world: the obstacles.
        clearance: the largest distance [m] that is wanted.
    """

    def __init__(self, validity: Validity, world: World, clearance: float = 0.0):
        self.validity, self._bound = validity, BoundWorld(world, "float64", clearance + LOOKED_FOR)
        self.factors = np.concatenate(validity.speed_factors)
        self.most = self.factors.max(axis=0, initial=0.0)

    def clearances(self, q: np.ndarray) -> np.ndarray:
        """All clearances [m] up to ``LOOKED_FOR`` beyond the wanted one, shape (states, comparisons)."""
        found = self.validity.clearance_kernel(q, self._bound, 1)
        return found[0] if len(found) == 1 else np.concatenate(found, axis=1)

    def prove(self, pieces: np.ndarray, wanted: np.ndarray) -> Proof:
        """Bounds of pieces; ``proved`` where they have all wanted clearances.

        Args:
            pieces: control points (pieces, 3, n).
            wanted: the clearances [m], shape (comparisons,).
        """
        control, owner, begin, end = self._divided(pieces)
        bound = np.empty(len(control))
        done: list[tuple[np.ndarray, ...]] = []
        failed = np.zeros(len(pieces), bool)
        for level in range(HALVINGS + 1):
            middle = 0.25 * (control[:, 0] + 2.0 * control[:, 1] + control[:, 2])
            away = np.abs(control - middle[:, None]).max(axis=1)
            clearance = self.clearances(middle)
            bounds = clearance - linear.product(away, self.factors.T) - ROUNDING
            bound = bounds.min(axis=1, initial=np.inf)
            enough = (bounds >= wanted).all(axis=1)
            failed[owner[(clearance - ROUNDING < wanted).any(axis=1)]] = True
            if level == HALVINGS:
                failed[owner[~enough]] = True
            ready = enough | failed[owner]
            done.append((owner[ready], begin[ready], end[ready], bound[ready]))
            if ready.all():
                break
            control, owner, begin, end = _halved(control[~ready], owner[~ready], begin[~ready], end[~ready])
        owners, begins, ends, bound = (np.concatenate(each) for each in zip(*done, strict=True))
        least = np.full(len(pieces), np.inf)
        np.minimum.at(least, owners, bound)
        return Proof(~failed, least, owners, begins, ends, bound)

    def _divided(self, pieces: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Pieces in parts that move the robot by about ``FIRST``."""
        travel = times(np.abs(np.diff(pieces, axis=1)).sum(axis=1), self.most)
        counts = np.maximum(1, np.ceil(travel / FIRST)).astype(int)
        owner = np.repeat(np.arange(len(pieces)), counts)
        place = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        begin, end = place / counts[owner], (place + 1) / counts[owner]
        return _part(pieces[owner], begin, end), owner, begin, end


def _part(control: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Control points of parts of parabolas, from one parameter to another."""
    a, b, c = control.transpose(1, 0, 2)
    u, v = begin[:, None], end[:, None]
    first = (1 - u) ** 2 * a + 2 * u * (1 - u) * b + u * u * c
    last = (1 - v) ** 2 * a + 2 * v * (1 - v) * b + v * v * c
    middle = (1 - u) * (1 - v) * a + (u * (1 - v) + v * (1 - u)) * b + u * v * c
    return np.stack([first, middle, last], axis=1)


def _halved(
    control: np.ndarray, owner: np.ndarray, begin: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    zero, half, one = (np.full(len(control), value) for value in (0.0, 0.5, 1.0))
    middle = 0.5 * (begin + end)
    return (
        np.concatenate([_part(control, zero, half), _part(control, half, one)]),
        np.concatenate([owner, owner]),
        np.concatenate([begin, middle]),
        np.concatenate([middle, end]),
    )
