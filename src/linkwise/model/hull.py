"""The convex hull of points in space, by the quickhull method."""

from __future__ import annotations

import numpy as np

THICKNESS = (
    1e-12  # relative to the size of the cloud: how far a point must lie outside a face to be seen from there
)


def convex_hull(points: np.ndarray) -> np.ndarray:
    """Triangles of the hull (rows of three numbers of points, counter-clockwise from outside), shape (faces, 3).

    A ValueError says where the points lie in one plane.
    """
    cloud = _Cloud(points - points.mean(axis=0))
    cloud.start()
    while cloud.open_faces:
        cloud.grow(cloud.open_faces.pop())
    return np.array([corners for corners in cloud.corners if corners is not None], dtype=int)


class _Cloud:
    """The hull of a growing set of the points: faces, their neighbours, and the points outside each."""

    def __init__(self, points: np.ndarray):
        self.points = points
        self.thickness = THICKNESS * float(np.abs(points).max(initial=0.0))
        self.corners: list[tuple[int, int, int] | None] = []  # None: a face that was replaced
        self.normals: list[np.ndarray] = []
        self.outside: list[np.ndarray] = []  # numbers of points outside a face, each kept by one face
        self.face_of: dict[tuple[int, int], int] = {}  # the face to the left of each edge
        self.open_faces: list[int] = []

    def start(self) -> None:
        """The tetrahedron of four points that lie far apart."""
        p = self.points
        if len(p) < 4 or not np.isfinite(p).all():
            raise ValueError("fewer than four points")
        first = int(np.argmax(np.abs(p).max(axis=1)))
        a = int(np.argmax(np.linalg.norm(p - p[first], axis=1)))
        along = p - p[a]
        b = int(np.argmax(np.linalg.norm(along, axis=1)))
        direction = along[b] / max(float(np.linalg.norm(along[b])), 1e-300)
        c = int(np.argmax(np.linalg.norm(np.cross(along, direction), axis=1)))
        normal = np.cross(along[b], along[c])
        normal = normal / max(float(np.linalg.norm(normal)), 1e-300)
        height = along @ normal
        d = int(np.argmax(np.abs(height)))
        if abs(height[d]) <= self.thickness or len({a, b, c, d}) < 4:
            raise ValueError("all points lie in one plane")
        if height[d] > 0:
            b, c = c, b
        new = [self._add(face) for face in ((a, b, c), (a, d, b), (b, d, c), (c, d, a))]
        self._distribute(np.setdiff1d(np.arange(len(p)), (a, b, c, d)), new)

    def grow(self, face: int) -> None:
        """Extend the hull to the point farthest outside a face: faces visible from it are replaced by a cone to it."""
        own = self.corners[face]
        if own is None or not len(self.outside[face]):
            return
        distances = (self.points[self.outside[face]] - self.points[own[0]]) @ self.normals[face]
        apex = int(self.outside[face][np.argmax(distances)])
        seen, stack = {face}, [face]
        horizon: list[tuple[tuple[int, int], int]] = []
        while stack:
            corners = self.corners[stack.pop()]
            assert corners is not None
            for k in range(3):
                edge = corners[k], corners[(k + 1) % 3]
                other = self.face_of[edge[1], edge[0]]
                if other in seen:
                    continue
                base = self.corners[other]
                assert base is not None
                if (self.points[apex] - self.points[base[0]]) @ self.normals[other] > self.thickness:
                    seen.add(other)
                    stack.append(other)
                else:
                    horizon.append((edge, other))
        orphans = np.concatenate([self.outside[f] for f in seen])
        for f in seen:
            self.corners[f], self.outside[f] = None, orphans[:0]
        new = [self._add((a, b, apex)) for (a, b), other in horizon if other not in seen]
        self._distribute(orphans[orphans != apex], new)

    def _add(self, corners: tuple[int, int, int]) -> int:
        a, b, c = (self.points[k] for k in corners)
        normal = np.cross(b - a, c - a)
        number = len(self.corners)
        self.corners.append(corners)
        self.normals.append(normal / max(float(np.linalg.norm(normal)), 1e-300))
        self.outside.append(np.zeros(0, dtype=int))
        for k in range(3):
            self.face_of[corners[k], corners[(k + 1) % 3]] = number
        return number

    def _distribute(self, points: np.ndarray, faces: list[int]) -> None:
        """Each point is assigned to the first of the faces that it is outside of; the others lie inside."""
        for face in faces:
            corners = self.corners[face]
            assert corners is not None
            heights = (self.points[points] - self.points[corners[0]]) @ self.normals[face]
            seen = heights > self.thickness
            if seen.any():
                self.outside[face] = points[seen]
                self.open_faces.append(face)
                points = points[~seen]
