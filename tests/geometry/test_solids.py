"""Meshes of simple solids are closed and look outward: their volumes, summed over triangles, are the solids'."""

import math

import numpy as np
import pytest

from linkwise.geometry import solids


def volume(mesh: solids.Mesh) -> float:
    a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
    return float(np.einsum("fi,fi->f", a, np.cross(b, c)).sum() / 6)


CASES = {
    "sphere": (solids.sphere(0.5, sides=80), 4 / 3 * math.pi * 0.5**3),
    "cylinder": (solids.cylinder(0.3, 2.0, sides=200), math.pi * 0.3**2 * 2.0),
    "box": (solids.box((1.0, 2.0, 3.0)), 6.0),
    "ring": (solids.ring(1.0, 0.1, sides=200), 2 * math.pi**2 * 1.0 * 0.1**2),
    "capsule": (
        solids.capsule(np.array([1.0, 2, 3]), np.array([2.0, 4, 1]), 0.4, sides=80, rings=20),
        math.pi * 0.4**2 * 3.0 + 4 / 3 * math.pi * 0.4**3,
    ),
    "joined": (solids.joined([solids.box((1, 1, 1)), solids.box((1, 1, 1))]), 2.0),
    "mirrored": (solids.box((1.0, 2.0, 3.0)).scaled((-1, 1, 2)), 12.0),
}


@pytest.mark.parametrize("name", CASES)
def test_volume(name):
    mesh, wanted = CASES[name]
    assert volume(mesh) == pytest.approx(wanted, rel=0.03)  # polygons stand in for circles
    assert mesh.faces.max() < len(mesh.vertices)


def test_a_frame_with_any_z_axis():
    for direction in np.random.default_rng(0).normal(size=(50, 3)):
        pose = solids.from_z_to(direction)
        np.testing.assert_allclose(
            pose.rotation @ [0, 0, 1], direction / np.linalg.norm(direction), atol=1e-14
        )
        assert np.linalg.det(pose.rotation) == pytest.approx(1.0)
