"""A distance that is kept along a whole path, not only at samples of it.

A piece of a path lies in the hull of its control points. So every position of it is at most as far from its middle as
the farthest control point, joint by joint, and a clearance changes by no more than that times the longest levers
(``Validity.speed_factors``). Pieces of which that does not prove the wanted clearance are divided.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linkwise.collision.validity.kernel import BoundWorld
from linkwise.collision.validity.validity import Validity
from linkwise.collision.world import World
from linkwise.core.products import times
from linkwise.solve import linear

LEVELS = 10  # of pieces in pieces
MOST_PARTS = 4  # of a piece; as many as the clearance in its middle asks for
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
        between: positions (2, n) between which paths stay; by default those of ``Validity.speed_factors``.
    """

    def __init__(
        self, validity: Validity, world: World, clearance: float = 0.0, between: np.ndarray | None = None
    ):
        self.validity, self._bound = validity, BoundWorld(world, "float64", clearance + LOOKED_FOR)
        factors = validity.speed_factors if between is None else validity.speed_factors_between(*between)
        self.factors = np.concatenate(factors)
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
        for level in range(LEVELS + 1):
            middle = 0.25 * (control[:, 0] + 2.0 * control[:, 1] + control[:, 2])
            away = np.abs(control - middle[:, None]).max(axis=1)
            clearance = self.clearances(middle)
            change = linear.product(away, self.factors.T)
            room = clearance - ROUNDING - wanted
            bound = (clearance - change - ROUNDING).min(axis=1, initial=np.inf)
            enough = (room >= change).all(axis=1)
            failed[owner[(room < 0.0).any(axis=1)]] = True
            if level == LEVELS:
                failed[owner[~enough]] = True
            ready = enough | failed[owner]
            done.append((owner[ready], begin[ready], end[ready], bound[ready]))
            if ready.all():
                break
            left = ~ready
            ratio = (change[left] / np.maximum(room[left], ROUNDING)).max(axis=1, initial=0.0)
            parts = np.clip(np.ceil(ratio), 2, MOST_PARTS).astype(int)
            control, owner, begin, end = _in_parts(control[left], owner[left], begin[left], end[left], parts)
        owners, begins, ends, bound = (np.concatenate(each) for each in zip(*done, strict=True))
        least = np.full(len(pieces), np.inf)
        np.minimum.at(least, owners, bound)
        return Proof(~failed, least, owners, begins, ends, bound)

    def _divided(self, pieces: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Pieces in parts that move the robot by about ``FIRST``."""
        travel = times(np.abs(np.diff(pieces, axis=1)).sum(axis=1), self.most)
        counts = np.maximum(1, np.ceil(travel / FIRST)).astype(int)
        owner = np.arange(len(pieces))
        return _in_parts(pieces, owner, np.zeros(len(pieces)), np.ones(len(pieces)), counts)


def _part(control: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Control points of parts of parabolas, from one parameter to another."""
    a, b, c = control.transpose(1, 0, 2)
    u, v = begin[:, None], end[:, None]
    first = (1 - u) ** 2 * a + 2 * u * (1 - u) * b + u * u * c
    last = (1 - v) ** 2 * a + 2 * v * (1 - v) * b + v * v * c
    middle = (1 - u) * (1 - v) * a + (u * (1 - v) + v * (1 - u)) * b + u * v * c
    return np.stack([first, middle, last], axis=1)


def _in_parts(
    control: np.ndarray, owner: np.ndarray, begin: np.ndarray, end: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Each interval in a number of parts of the same length."""
    row = np.repeat(np.arange(len(control)), counts)
    place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    first, last = place / counts[row], (place + 1) / counts[row]
    size = (end - begin)[row]
    return _part(control[row], first, last), owner[row], begin[row] + first * size, begin[row] + last * size
