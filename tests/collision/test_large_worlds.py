"""Worlds of any size: no collision is missed because single precision rounds."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.collision import Box, Cuboid, HalfSpace, PointCloud, Rod, Sphere, World, validity_of
from linkwise.errors import ArgumentError

TURN = [[0.6, -0.8, 0.0], [0.8, 0.6, 0.0], [0.0, 0.0, 1.0]]


def solids(size):
    return [
        Sphere((0.0, 0.0, 0.1 - size), size),
        Box((-size, -size, -size), (size, size, 0.1)),
        Cuboid((0.0, 0.0, 0.1 - size / 2), (size, size, size), TURN),
        Rod((-size, 0.2, 0.3), (size, 0.21, 0.3), 0.1),
    ]


@pytest.mark.parametrize("size", [0.0, 1e-30, 1e-6, 3.0, 300.0, 3e3, 3e4])
def test_no_collision_is_missed(size):
    """Ground that was a sphere of 10⁶ m was missed by 14 mm and more (and is refused now)."""
    checks = validity_of(lw.load("panda"))
    q = np.random.default_rng(1).uniform(-2.8, 2.8, (2000, 7))
    q = q[~checks.in_collision(q)]
    for solid in (
        solids(size) if size else [Sphere((0.3, 0, 0.5), 0.0), Cuboid((0.3, 0, 0.5), (0, 0, 0), TURN)]
    ):
        hit, distance = checks.in_collision(q, [solid]), checks.distance(q, [solid])
        assert not (hit & (distance > 2e-4 + 2e-6 * size)).any(), solid
        assert not (~hit & (distance < 0.0)).any(), solid


def test_worlds_that_are_too_large_are_refused():
    for solid in solids(1e5):
        with pytest.raises(ArgumentError, match="a floor or wall without end is a HalfSpace"):
            World([solid])
    World([HalfSpace((0, 0, 1), -1e12)])


@pytest.mark.parametrize(("radius", "cell"), [(0.0, None), (1e-30, 1e-30), (0.01, 1e30)])
def test_clouds_of_odd_cells_contain_their_points(radius, cell, recwarn):
    points = np.random.default_rng(0).normal(size=(200, 3))
    boxes = World([PointCloud(points, radius, cell)]).solids["boxes"]
    away = np.abs(points[:, None] - boxes[:, :3]) - boxes[:, 3:]
    assert (away.max(axis=2) <= 1e-12).any(axis=1).all()
    assert not recwarn.list


def test_half_spaces_do_not_depend_on_the_length_of_their_normal():
    """Squares of long normals overflowed, so that nothing touched the half space; short ones were refused as zeros."""
    robot = lw.load("panda")
    q = np.random.default_rng(0).uniform(-1, 1, (200, 7))
    told = [
        robot.in_collision(q, World([HalfSpace((size, 0, 0.5 * size), -0.1)]))
        for size in (1.0, 1e200, 1e-200)
    ]
    assert 0 < told[0].mean() < 1
    assert (told[0] == told[1]).all()
    assert (told[0] == told[2]).all()
