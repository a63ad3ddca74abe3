"""The axes of a plane, and the three joints that move in it."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.model.planar import in_plane


@pytest.mark.parametrize(
    ("normal", "x", "y"),
    [
        ((0, 0, 1), (1, 0, 0), (0, 1, 0)),
        ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
        ((0, 1, 0), (0, 0, 1), (1, 0, 0)),
        ((0, 0, -1), (1, 0, 0), (0, -1, 0)),
    ],
)
def test_axes_of_planes_along_coordinate_axes(normal, x, y):
    assert in_plane(normal) == (x, y)


def test_axes_of_any_plane():
    for normal in np.random.default_rng(0).normal(size=(20, 3)):
        z = normal / np.linalg.norm(normal)
        axes = np.column_stack([*in_plane(z.tolist()), z])
        np.testing.assert_allclose(axes.T @ axes, np.eye(3), atol=1e-15)
        assert np.linalg.det(axes) == pytest.approx(1.0)


def test_a_planar_base_moves_in_the_ground():
    robot = lw.load("two_link", base="planar")
    pose = robot.pose([1.0, 2.0, np.pi / 2, 0.0, 0.0], frame=lw.load("two_link").base)
    np.testing.assert_allclose(pose[:3, 3], (1.0, 2.0, 0.0), atol=1e-15)
    np.testing.assert_allclose(pose[:3, 0], (0.0, 1.0, 0.0), atol=1e-15)
