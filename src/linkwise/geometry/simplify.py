"""Meshes with fewer triangles: vertices in the same cell of a grid become one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.geometry.solids import Mesh

HALVINGS = 10  # of the interval in which the size of the cells is searched
FINEST = 2.0**18  # cells along the longest edge


def simplified(mesh: Mesh, most: int) -> Mesh:
    """A mesh of at most ``most`` triangles, as fine as that allows; the same one if it has no more."""
    if len(mesh.faces) <= most:
        return mesh
    extent = float(np.ptp(mesh.vertices, axis=0).max()) or 1.0
    fine, coarse = extent / FINEST, extent
    for _ in range(HALVINGS):
        cell = (fine * coarse) ** 0.5
        if len(_kept(mesh, _owners(mesh, cell)[0])) <= most:
            coarse = cell
        else:
            fine = cell
    return _clustered(mesh, coarse)


def shared_out(meshes: Sequence[Mesh], most: int) -> list[int]:
    """How many triangles each mesh may have so that all have at most ``most``: in proportion to the squares of their
    sizes, as each is seen, and never more than it has."""
    counts = np.array([len(mesh.faces) for mesh in meshes], dtype=float)
    if counts.sum() <= most:
        return counts.astype(int).tolist()
    sizes = np.array(
        [np.ptp(mesh.vertices, axis=0).max() ** 2 if len(mesh.faces) else 0.0 for mesh in meshes]
    )
    few, many = 0.0, most / max(float(sizes[sizes > 0].min()), 1e-300)
    for _ in range(100):
        middle = (few + many) / 2
        few, many = (few, middle) if np.minimum(counts, middle * sizes).sum() > most else (middle, many)
    return np.floor(np.minimum(counts, few * sizes)).astype(int).tolist()


def _owners(mesh: Mesh, cell: float) -> tuple[np.ndarray, np.ndarray]:
    """(the number of every vertex's cell, how many vertices each cell has)."""
    x, y, z = np.floor((mesh.vertices - mesh.vertices.min(axis=0)) / cell).astype(np.int64).T
    _, owner, counts = np.unique((z << 40) + (y << 20) + x, return_inverse=True, return_counts=True)
    return owner.reshape(-1), counts


def _kept(mesh: Mesh, owner: np.ndarray) -> np.ndarray:
    """The triangles that still have three corners."""
    faces = owner[mesh.faces]
    a, b, c = faces.T
    return faces[(a != b) & (b != c) & (c != a)]


def _clustered(mesh: Mesh, cell: float) -> Mesh:
    """Each cell's vertices at their mean."""
    owner, counts = _owners(mesh, cell)
    sums = np.stack([np.bincount(owner, axis, len(counts)) for axis in mesh.vertices.T], axis=1)
    return Mesh(sums / counts[:, np.newaxis], _kept(mesh, owner))
