"""Tables of the programs of ``nests``: which spheres are compared, and groups of small spheres."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from linkwise.collision.body_pairs import BodyPairs
from linkwise.collision.spheres import Spheres

SPHERE = ("sphere_x", "sphere_y", "sphere_z", "sphere_r")
GROUP, SMALL = ("group_x", "group_y", "group_z", "group_r"), ("small_x", "small_y", "small_z", "small_r")


class Small:
    """Groups of small spheres of a robot in the order of tables; a sphere that is not divided is a group of one."""

    def __init__(self, spheres: Spheres, pairs: BodyPairs):
        self.pairs, small = pairs, pairs.small
        self.groups, self.rows, starts = small.groups, small.rows, small.starts
        self.places: dict[int, int] = {}  # groups of spheres that are not divided
        if len(self.groups):
            divided = set(small.parent.tolist())
            whole_ones = [k for k in range(len(spheres)) if k not in divided]
            self.places = {k: len(self.groups) + place for place, k in enumerate(whole_ones)}
            own = np.column_stack([spheres.centre[whole_ones], spheres.radius[whole_ones]])
            starts = np.append(starts, starts[-1] + 1 + np.arange(len(own)))
            self.groups, self.rows = np.concatenate([self.groups, own]), np.concatenate([self.rows, own])
        self.starts: list[int] = starts.tolist()
        owner = small.parent.tolist()
        owners = [[owner[k] if k >= 0 else -1 - k for k in pair] for pair in self.pairs.apart]
        self.partly = {(one, two) for one, two in owners}  # spheres of which some groups are not compared

    def __bool__(self) -> bool:
        return len(self.groups) > 0

    @property
    def constants(self) -> dict[str, np.ndarray]:
        groups, rows = (each if self else np.zeros((1, 4)) for each in (self.groups, self.rows))
        named = {key: groups[:, k] for k, key in enumerate(GROUP)}
        return named | {key: rows[:, k] for k, key in enumerate(SMALL)}

    def of(self, sphere: int) -> range:
        return self.pairs.of(sphere) or range(self.places[sphere], self.places[sphere] + 1)

    def runs(self, first: int, second: int) -> Iterator[tuple[int, int, int]]:
        """(group of the first, start, stop): ranges of groups of the second that it is compared with."""
        theirs = self.of(second)
        if (first, second) not in self.partly:
            yield from ((mine, theirs.start, theirs.stop) for mine in self.of(first))
            return
        names = [{self.of(k).start: -1 - k} if not self.pairs.of(k) else {} for k in (first, second)]
        for mine in self.of(first):
            start = theirs.start
            for other in (*theirs, theirs.stop):
                pair = (names[0].get(mine, mine), names[1].get(other, other))
                if other == theirs.stop or pair in self.pairs.apart:
                    if start < other:
                        yield mine, start, other
                    start = other + 1


def tables(
    spheres: Spheres, pairs: BodyPairs, small: Small, turned: Mapping[int, int]
) -> tuple[dict[str, list[int]], dict[str, np.ndarray]]:
    """Tables of whole numbers and constants.

    Body k: its spheres from ``sphere_starts[k]`` to ``sphere_starts[k + 1]``, the radius of its bounding sphere
    ``bound_radii[k]``. Pair of bodies k: places of their bounding spheres ``bound_first[k]`` and ``bound_second[k]``,
    the sum of their radii ``bound_reaches[k]``, and rows from ``row_starts[k]`` to ``row_stops[k]``. A row is a sphere
    of the first body: its place ``firsts``, and the range of numbers of ``seconds``, places of spheres of the second
    body, to ``stops`` those that are compared themselves and from there to ``ends`` those of which small spheres are
    compared; ``row_reaches`` are sums of its radius and that of the bounding sphere of the second body, ``reaches``
    those of two spheres, ``SPHERE`` the spheres in axes of their body at their places. Second sphere number t: a range
    of ``groups`` from ``group_starts[t]`` to ``group_starts[t + 1]``, groups of small spheres of the first sphere, each
    with a range of groups of the second one from ``run_starts`` to ``run_stops``. Group g: small spheres from
    ``small_starts[g]`` to ``small_starts[g + 1]``.

    Args:
        spheres: of the robot.
        pairs: of spheres that are compared.
        small: their groups of small spheres.
        turned: places of the poses of bodies of which small spheres are compared.
    """
    bodies, radius = spheres.bodies, spheres.radius
    bound = np.array([spheres.bound(body)[1] for body in bodies])
    place = {body: k for k, body in enumerate(bodies)}
    ends = [np.array([place[body] for body in each], int) for each in zip(*pairs.compared, strict=True)]
    one, two = ends or [np.zeros(0, int)] * 2
    number = np.repeat(np.arange(len(one)), [len(each) for each in pairs.compared.values()])
    first, second = np.concatenate([np.zeros((0, 2), int), *pairs.compared.values()]).T
    divided = np.zeros(len(spheres), bool)
    divided[pairs.small.parent] = True
    parted = divided[first] | divided[second]
    order = np.lexsort((parted, first, number))
    number, first, second, parted = (each[order] for each in (number, first, second, parted))
    begins = np.ones(len(first), bool)  # of a row
    begins[1:] = (first[1:] != first[:-1]) | (number[1:] != number[:-1])
    starts = np.flatnonzero(begins)
    stops = np.append(starts[1:], len(first))
    before = np.append(0, np.cumsum(parted))
    row_starts = np.searchsorted(number[starts], np.arange(len(one) + 1))
    group_starts, runs = _runs(small, first, second, parted)
    whole_tables: dict[str, np.ndarray | list[int]] = {
        "bound_first": 3 * one,
        "bound_second": 3 * two,
        "row_starts": row_starts[:-1],
        "row_stops": row_starts[1:],
        "pose_first": [turned.get(body, 0) for body, _ in pairs.compared],
        "pose_second": [turned.get(body, 0) for _, body in pairs.compared],
        "firsts": 3 * first[starts],
        "row_bounds": 3 * two[number[starts]],
        "starts": starts,
        "stops": stops - (before[stops] - before[starts]),
        "ends": stops,
        "seconds": 3 * second,
        "group_starts": group_starts,
        "groups": runs[:, 0],
        "run_starts": runs[:, 1],
        "run_stops": runs[:, 2],
        "small_starts": small.starts,
        "sphere_starts": np.searchsorted(spheres.body, [*bodies, np.inf]),
    }
    constants = {
        "bound_reaches": bound[one] + bound[two],
        "row_reaches": radius[first[starts]] + bound[two[number[starts]]],
        "reaches": radius[first] + radius[second],
        "radii": radius,
        "bound_radii": bound,
        **dict(zip(SPHERE, np.repeat(np.column_stack([spheres.centre, radius]), 3, axis=0).T, strict=True)),
        **small.constants,
    }
    filled = {key: values if len(values) else np.zeros(1) for key, values in constants.items()}
    return {key: np.asarray(values).tolist() or [0] for key, values in whole_tables.items()}, filled


def _runs(
    small: Small, first: np.ndarray, second: np.ndarray, parted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of pairs of spheres: where the runs of each begin (pairs + 1,), and rows (group of the first, start, stop) of
    runs of groups of the second."""
    if not small or not len(first):
        return np.zeros(len(first) + 1, int), np.zeros((0, 3), int)
    ranges = [small.of(k) for k in range(int(max(first.max(), second.max())) + 1)]
    start, stop = np.array([(each.start, each.stop) for each in ranges]).T
    counts = np.where(parted, stop[first] - start[first], 0)
    listed = {
        k: list(small.runs(int(first[k]), int(second[k])))
        for k in np.flatnonzero(parted).tolist()
        if (first[k], second[k]) in small.partly
    }
    for k, runs in listed.items():
        counts[k] = len(runs)
    begins = np.append(0, np.cumsum(counts))
    pair = np.repeat(np.arange(len(first)), counts)
    mine = start[first[pair]] + np.arange(len(pair)) - begins[pair]
    found = np.column_stack([mine, start[second[pair]], stop[second[pair]]])
    for k, runs in listed.items():
        found[begins[k] : begins[k + 1]] = np.array(runs, int).reshape(-1, 3)
    return begins, found
