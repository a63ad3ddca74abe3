"""Capsules around points, capsules and meshes: they contain everything, and are not much larger."""

import numpy as np
import pytest

from linkwise.collision import fit
from linkwise.geometry import solids


def outside(points: np.ndarray, fits) -> float:
    """How far the farthest point is from all capsules."""
    gaps = []
    for start, end, radius in fits:
        along = end - start
        square = max(float(along @ along), 1e-300)
        part = np.clip((points - start) @ along / square, 0, 1)
        gaps.append(np.linalg.norm(points - start - part[:, None] * along, axis=1) - radius)
    return float(np.min(gaps, axis=0).max())


def surface(mesh: solids.Mesh, count: int = 4000) -> np.ndarray:
    rng = np.random.default_rng(1)
    weights = rng.dirichlet((1, 1, 1), count)
    return np.einsum(
        "ki,kix->kx", weights, mesh.vertices[mesh.faces[rng.integers(len(mesh.faces), size=count)]]
    )


MESHES = {
    "capsule": solids.capsule(np.zeros(3), np.array([0.3, 0.1, 0.2]), 0.06),
    "box": solids.box((0.4, 0.3, 0.05)),
    "elbow": solids.joined([solids.box((0.6, 0.1, 0.1)), solids.cylinder(0.07, 0.5)]),
}


@pytest.mark.parametrize("name", MESHES)
def test_every_point_of_a_mesh_is_inside(name):
    fits = fit.mesh_capsules(MESHES[name])
    assert outside(surface(MESHES[name]), fits) <= 1e-9
    one = fit.mesh_capsules(MESHES[name], 1)
    assert outside(surface(MESHES[name]), one) <= 1e-9
    assert sum(map(fit.volume, fits)) <= fit.volume(one[0])


def test_a_capsule_is_found_again_and_an_elbow_is_divided():
    start, end, radius = fit.mesh_capsules(MESHES["capsule"])[0]
    assert radius == pytest.approx(0.06, rel=0.05)
    assert np.linalg.norm(end - start) == pytest.approx(np.linalg.norm([0.3, 0.1, 0.2]), rel=0.1)
    assert len(fit.mesh_capsules(MESHES["elbow"])) > 1
    assert len(fit.mesh_capsules(solids.box((0.03, 0.02, 0.01)))) == 1


def test_fewer_capsules_contain_the_given_ones():
    rng = np.random.default_rng(2)
    given = [
        (p, p + 0.1 * rng.normal(size=3), r)
        for p, r in zip(rng.normal(size=(9, 3)), rng.uniform(0.02, 0.1, 9), strict=True)
    ]
    left = fit.reduced(given, 3)
    assert len(left) <= 3
    for start, end, radius in given:
        for centre in (start, end):
            way = rng.normal(size=(50, 3))
            points = centre + radius * way / np.linalg.norm(way, axis=1)[:, None]
            assert outside(points, left) <= 1e-9
    small = (np.zeros(3), np.array([0, 0, 0.1]), 0.02)
    large = (np.array([0, 0, -0.1]), np.array([0, 0, 0.3]), 0.05)
    assert fit.reduced([small, large], 6) == [large]
