"""Facets of a cone that is given by its rays: the double description method.

T. Motzkin et al., "The double description method", 1953; K. Fukuda and A. Prodon, "Double description method
revisited", 1996. The facets of the cone of rays g are the extreme rays u of the polar cone g·u ≤ 0, which is built by
adding one g after the other: rays u beyond the new plane go, and each pair of neighbours on its two sides gives a
new one. Rays of a contact force at the corners of a sole are few, so tests over all pairs are quick enough.
"""

from __future__ import annotations

import numpy as np

from linkwise.core.products import times
from linkwise.solve import linear

ZERO = 1e-10
"""Products of unit vectors up to this are zero."""


def facets(rays: np.ndarray) -> np.ndarray:
    """C of C w ≤ 0 for the w = Σ λ g with λ ≥ 0, rows of length one, (facets, d).

    Args:
        rays: g as rows, (count, d), which span the space; no line lies in their cone.
    """
    G = np.array([row / np.sqrt((row * row).sum()) for row in np.asarray(rays, dtype=float)])
    order = _independent(G) if len(G) else []
    if len(order) < G.shape[1]:
        raise ValueError("expected rays that span the space")
    order += [k for k in range(len(G)) if k not in order]
    d = G.shape[1]
    U = -linear.inverse(G[order[:d]]).T
    for count in range(d, len(G)):
        U = _cut(_unit(U), G[order[:count]], G[order[count]])
    return _unit(U)


def _unit(U: np.ndarray) -> np.ndarray:
    return U / np.sqrt((U * U).sum(axis=1, keepdims=True))


def _independent(G: np.ndarray) -> list[int]:
    """Rows that span the space, by elimination: in every step the row with the largest rest."""
    rest, chosen = G.copy(), list[int]()
    for _ in range(G.shape[1]):
        sizes = (rest * rest).sum(axis=1)
        k = int(np.argmax(sizes))
        if sizes[k] < ZERO:
            break
        unit = rest[k] / np.sqrt(sizes[k])
        rest = rest - (rest * unit).sum(axis=1)[:, None] * unit
        chosen.append(k)
    return chosen


def _cut(U: np.ndarray, G: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Extreme rays of {u: G u ≤ 0, g·u ≤ 0} from those U of {u: G u ≤ 0}."""
    along = (U * g).sum(axis=1)
    beyond, before = np.flatnonzero(along > ZERO), np.flatnonzero(along < -ZERO)
    touched = np.abs(times(U, G.T)) < ZERO
    found = [U[along <= ZERO]]
    for i in beyond:
        for j in before:
            both = touched[i] & touched[j]
            if both.sum() < G.shape[1] - 2:
                continue
            holds_both = (touched & both).sum(axis=1) == both.sum()
            if holds_both.sum() == 2:  # neighbours: no other ray lies in all planes that they share
                found.append((along[i] * U[j] - along[j] * U[i])[None])
    return np.concatenate(found)
