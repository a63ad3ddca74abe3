"""The grid along a path: σ by its formula, smooth where derivatives by the path's own parameter jump or vanish."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import motion
from linkwise.motion.shortest_time.path_shape import _Floor, _hidden, _WithoutRests, path_cells
from linkwise.motion.shortest_time.paths import joint_path

RATES = np.array([1.0, 3.0, 0.5])
DIP = 0.97  # of each rate, by which it is lower in the middle of its piece


class Jumping(motion.Trajectory):
    """Along a parabola in three pieces, with rates that dip inside of each and jump between them."""

    dof, begin = 2, 0.0

    def __init__(self, unit: float):
        self.unit, self.end = unit, 3.0 * unit

    def _inside(self, t):
        s = np.asarray(t) / self.unit
        k = np.clip(np.floor(s), 0, 2).astype(int)
        z, rate = s - k, RATES[k]
        begin = np.concatenate([[0.0], np.cumsum(RATES)])[k] * (1 - DIP / 2)
        x = begin + rate * (z - DIP * (z / 2 - np.sin(2 * np.pi * z) / (4 * np.pi)))
        v = rate * (1 - DIP * np.sin(np.pi * z) ** 2) / self.unit
        a = -rate * DIP * np.pi * np.sin(2 * np.pi * z) / self.unit**2
        return motion.Moment(*(np.stack(pair, axis=-1) for pair in self._bent(x, v, a)))

    @staticmethod
    def _bent(x, v, a):
        return (x, 0.2 * x * x), (v, 0.4 * x * v), (a, 0.4 * (x * a + v * v))

    def corners(self):
        return np.arange(4.0) * self.unit


@pytest.fixture(scope="module")
def arm() -> lw.Robot:
    return lw.load("two_link")


@pytest.mark.parametrize("unit", [1.0, 1e-3, 1e3])
def test_sigma_passes_jumps_smoothly_and_has_its_length_in_any_unit(arm, unit):
    path = Jumping(unit)
    cells = path_cells(joint_path(arm, path), 240)
    assert not cells.stops.any()
    every = np.arange(len(cells.lengths))
    first, last = (cells.at(every, np.full(len(every), rho)).qd for rho in (0.0, 1.0))
    np.testing.assert_allclose(first[1:], last[:-1], atol=1e-7)
    jumps = np.flatnonzero(np.isclose(cells.nodes / unit, 1.0) | np.isclose(cells.nodes / unit, 2.0))
    assert len(jumps) == 2
    np.testing.assert_allclose(np.linalg.norm(first[jumps], axis=1), 1.0, atol=1e-6)  # the arc length there
    # w² = |q′|² + FLOOR² · mean(|q′|²) · β by its definition: β is 1 at most, and 0 of second order at jumps
    total, z = 0.0, (np.arange(20000) + 0.5) / 20000
    for k, shape in enumerate(((1 - z) ** 2, 16 * z**2 * (1 - z) ** 2, z**2)):
        square = (path.at((k + z) * unit).qd ** 2).sum(axis=-1)
        total += np.sqrt(square + 0.25 * square.mean() * shape).mean() * unit
    assert cells.lengths.sum() == pytest.approx(total, rel=2e-4)


def test_sigma_is_the_arc_length_where_tangents_vanish(arm):
    """Of any order, at the beginning and at the end."""
    a, b = np.array([0.0, 0.0]), np.array([1.0, -0.5])
    paths = {
        "of first order at both ends": motion.cubic_spline([0, 1, 2], [a, (a + b) / 2, b]),
        "of second order at both ends": motion.quintic(a, b, 3.0),
        "of second order at the beginning": lambda s: [s**3, -0.5 * s**6],
        "of third order at the end": lambda s: [(1 - s) ** 4, (1 - s) ** 8],
    }
    for name, path in paths.items():
        cells = path_cells(joint_path(arm, path), 60)
        assert len(cells.lengths) < 75, name  # nothing had to be divided
        resting = np.flatnonzero(cells.order)
        assert len(resting) == (2 if "both" in name else 1)
        cell, rho = np.meshgrid(resting, np.linspace(0.02, 1.0, 9), indexing="ij")
        np.testing.assert_allclose(np.linalg.norm(cells.at(cell, rho).qd, axis=-1), 1.0, rtol=2e-3)


def test_the_slope_of_the_floor_is_its_derivative():
    """Between points of rest of any order, and jumps."""
    points, s = np.array([0.0, 1.0, 2.5, 3.0]), np.linspace(0.0, 3.0, 601)
    orders = np.array([[0, 1], [2, 0], [0, 3], [1, 0]])
    floor = _Floor(points, orders, np.array([False, True, True, False]), s, 0.05 + np.sin(4 * s) ** 2)
    floor.size[:] = (1.0, 2.0, 3.0)
    h, inside = 1e-6, s[np.abs(s[:, np.newaxis] - points).min(axis=1) > 0.01]
    value, slope = floor.at(inside)
    assert np.abs(value).min() > 0.0
    expected = (floor.at(inside + h)[0] - floor.at(inside - h)[0]) / (2 * h)
    np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-7)


def test_cells_that_hide_a_bend_are_found_with_their_neighbours():
    """A second derivative that nine points of a cell do not see, in the first cell, in the middle and in the last."""

    class Straight:
        dof = 2

        @staticmethod
        def at(points):
            return motion.Moment(*(np.ones((*points.shape, 2)) for _ in range(3)))

    nodes, dense = np.linspace(0.0, 6.0, 7), np.linspace(0.0, 6.0, 61)
    for place, expected in ((0.3, [0, 1]), (3.3, [2, 3, 4]), (5.9, [4, 5])):
        bend = np.ones((61, 2))
        bend[round(10 * place), 1] = 50.0
        assert np.flatnonzero(_hidden(Straight, nodes, dense, bend)).tolist() == expected
    assert not _hidden(Straight, nodes, dense, np.ones((61, 2))).any()


def test_rests_of_a_path_are_left_out(arm):
    """Three of them, of different lengths: what is left is the path itself, from its beginning to its end."""
    rests = [(1.0, 1.5), (2.0, 3.0), (3.2, 3.3)]

    def moved(s):  # the same path without rests
        return s - sum(np.clip(s - first, 0.0, last - first) for first, last in rests)

    path = joint_path(arm, lambda s: [np.sin(moved(4.0 * s)), 0.3 * moved(4.0 * s)])
    scaled = [(first / 4.0, last / 4.0) for first, last in rests]
    left = _WithoutRests(path, scaled)
    assert left.end == pytest.approx((4.0 - 1.6) / 4.0)
    s = np.linspace(0.0, 2.4, 97)
    np.testing.assert_allclose(left.at(s / 4.0).q, np.stack([np.sin(s), 0.3 * s], axis=1), atol=1e-6)
    assert np.isin(np.round([1.0, 1.5, 1.7], 9), np.round(4.0 * left.corners(), 9)).all()
