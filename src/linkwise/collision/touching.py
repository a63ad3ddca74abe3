"""Whether the meshes of two bodies touch: exactly, for some postures, on trees of spheres around triangles.

Spheres around links show where links may touch; these meshes show where they do. That decides which links touch by
construction.
"""

from __future__ import annotations

import numpy as np

from linkwise.core.products import times

TOUCH = 1e-4  # [m] by which edges are longer at both ends: faces that lie on each other touch
AT_ONCE = 1 << 11  # pairs of nodes that are looked at together
FIRST_ONES = 1 << 10  # of these that are divided at first
_RAYS = np.array([[0.36, 0.48, 0.8], [-0.8, 0.6, 0.0], [0.48, -0.64, 0.6]])  # that leave a solid or do not
_INSIDE = 1e-9  # [m²] triangles with smaller sides of a parallelogram are none


class Surface:
    """Triangles of a body in a tree; each node has a sphere around its triangles.

    Args:
        parts: triangles (k, 3, 3) of each of its meshes [m].
    """

    def __init__(self, parts: list[np.ndarray]):
        self.parts = [part for part in parts if len(part)]
        triangles = np.concatenate([np.zeros((0, 3, 3)), *self.parts])
        depth = max(0, int(np.ceil(np.log2(max(1, len(triangles))))))
        middle = triangles.mean(axis=1)
        order = np.minimum(np.arange(1 << depth), max(0, len(triangles) - 1))[None]
        for _ in range(depth if len(triangles) else 0):
            place = middle[order]
            axis = np.ptp(place, axis=1).argmax(axis=1)
            along = np.take_along_axis(place, axis[:, None, None], axis=2)[:, :, 0]
            half = order.shape[1] // 2
            halves = np.argpartition(along, half, axis=1)
            order = np.take_along_axis(order, halves, axis=1).reshape(-1, half)
        self.triangles = triangles[order.ravel()] if len(triangles) else triangles
        self.depth = depth
        rows = np.ascontiguousarray(self.triangles.reshape(-1, 3).T)
        self.centres: list[np.ndarray] = []
        self.radii: list[np.ndarray] = []
        for level in range(depth + 1 if len(triangles) else 0):
            points = rows.reshape(3, 1 << level, -1)
            centre = 0.5 * (points.min(axis=2) + points.max(axis=2))
            away = points - centre[:, :, None]
            away *= away
            self.centres.append(np.ascontiguousarray(centre.T))
            self.radii.append(np.sqrt((away[0] + away[1] + away[2]).max(axis=1)))

    def __len__(self) -> int:
        return len(self.triangles) if self.parts else 0


def touching(first: Surface, second: Surface, poses: np.ndarray) -> np.ndarray:
    """In which postures meshes touch, or one has a mesh of the other inside, (postures,).

    Args:
        first: triangles of one body.
        second: triangles of another one, in its own axes.
        poses: of the second body in axes of the first, shape (postures, 3, 4).
    """
    if not len(first) or not len(second):
        return np.zeros(len(poses), bool)
    turn, shift = poses[:, :, :3], poses[:, :, 3]
    found = _inside(first, second, turn, shift)
    stack = [(0, 0, np.arange(len(poses)), np.zeros(len(poses), int), np.zeros(len(poses), int))]
    while stack:
        one, two, state, a, b = stack.pop()
        left = ~found[state]
        state, a, b = state[left], a[left], b[left]
        if not len(state):
            continue
        if len(state) > AT_ONCE:
            stack.append((one, two, state[AT_ONCE:], a[AT_ONCE:], b[AT_ONCE:]))
            state, a, b = state[:AT_ONCE], a[:AT_ONCE], b[:AT_ONCE]
        place = (turn[state] * second.centres[two][b][:, None]).sum(axis=-1) + shift[state]
        away = place - first.centres[one][a]
        reach = first.radii[one][a] + second.radii[two][b] + 2.0 * TOUCH
        square = (away * away).sum(axis=1)
        near = np.flatnonzero(square <= reach * reach)
        if len(near) > FIRST_ONES:  # those that are deepest in each other touch most probably, and come first
            near = near[np.argpartition(square[near] / (reach * reach)[near], FIRST_ONES)]
            later = near[FIRST_ONES:]
            stack.append((one, two, state[later], a[later], b[later]))
            near = near[:FIRST_ONES]
        state, a, b = state[near], a[near], b[near]
        if one == first.depth and two == second.depth:
            here = second.triangles[b]
            moved = (turn[state][:, None] * here[:, :, None]).sum(axis=-1) + shift[state][:, None]
            found[state[_cross(first.triangles[a], moved)]] = True
            continue
        if one < first.depth and (two == second.depth or first.radii[one].max() >= second.radii[two].max()):
            a, b, state = np.concatenate([2 * a, 2 * a + 1]), np.tile(b, 2), np.tile(state, 2)
            one += 1
        else:
            b, a, state = np.concatenate([2 * b, 2 * b + 1]), np.tile(a, 2), np.tile(state, 2)
            two += 1
        stack.append((one, two, state, a, b))
    return found


def _cross(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Which pairs of triangles (k, 3, 3) have an edge of one through the other, or a corner in common."""
    found = np.zeros(len(first), bool)
    for k in range(3):
        away = first - second[:, [k, (k + 1) % 3, (k + 2) % 3]]
        found |= ((away * away).sum(axis=2) <= TOUCH * TOUCH).any(axis=1)
    for one, two in ((first, second), (second, first)):
        for k in range(3):
            start, end = one[:, k], one[:, (k + 1) % 3]
            way = end - start
            size = np.sqrt((way * way).sum(axis=1, keepdims=True))
            more = TOUCH * way / np.maximum(size, 1e-12)
            found |= _through(start - more, way + 2.0 * more, two, 1.0)
    return found


def _through(start: np.ndarray, way: np.ndarray, triangle: np.ndarray, longest: float) -> np.ndarray:
    """Which lines from a start along a way, up to a part of it, go through triangles (Möller and Trumbore 1997)."""
    origin, u, v = triangle[:, 0], triangle[:, 1] - triangle[:, 0], triangle[:, 2] - triangle[:, 0]
    across = _product(way, v)
    volume = (u * across).sum(axis=1)
    scale = np.where(np.abs(volume) > 1e-30, volume, np.inf)
    away = start - origin
    one = (away * across).sum(axis=1) / scale
    turned = _product(away, u)
    two = (way * turned).sum(axis=1) / scale
    part = (v * turned).sum(axis=1) / scale
    return (
        (np.abs(volume) > 1e-30)
        & (one >= 0.0)
        & (two >= 0.0)
        & (one + two <= 1.0)
        & (part >= 0.0)
        & (part <= longest)
    )


def _inside(first: Surface, second: Surface, turn: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """In which postures a corner of a mesh of one body, the first one, is inside a mesh of the other."""
    found = np.zeros(len(turn), bool)
    back = turn.transpose(0, 2, 1)
    for part in second.parts:
        point = (turn * part[0, 0]).sum(axis=-1) + shift
        found |= _enclosed(point, first)
    for part in first.parts:
        point = (back * (part[0, 0] - shift)[:, None]).sum(axis=-1)
        found |= _enclosed(point, second)
    return found


def _enclosed(points: np.ndarray, surface: Surface) -> np.ndarray:
    """Which points are inside: a ray crosses one of the meshes an odd number of times, in all directions."""
    found = np.zeros(len(points), bool)
    for part in surface.parts:
        low, high = part.min(axis=(0, 1)), part.max(axis=(0, 1))
        for number in np.flatnonzero(((points > low) & (points < high)).all(axis=1) & ~found).tolist():
            start = np.broadcast_to(points[number], (len(part), 3))
            found[number] = all(
                _through(start, np.broadcast_to(ray, start.shape), part, np.inf).sum() % 2 == 1
                for ray in _RAYS
            )
    return found


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Vector products of rows."""
    (x, y, z), (u, v, w) = a.T, b.T
    return np.stack([y * w - z * v, z * u - x * w, x * v - y * u], axis=-1)


def relative(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Poses of the second body in axes of the first one.

    Args:
        first: poses in base axes, shape (postures, 3, 4).
        second: poses, shape (postures, 3, 4).
    """
    back = first[:, :, :3].transpose(0, 2, 1)
    away = (back * (second[:, :, 3] - first[:, :, 3])[:, None]).sum(axis=-1)
    return np.concatenate([times(back, second[:, :, :3]), away[:, :, None]], axis=2)
