"""Triangle meshes of STL, OBJ and MSH files; volume and inertia of what they enclose by MuJoCo's rules.

Files are untrusted: sizes are bounded, every number is checked, and nothing but the given bytes is read.
Coordinates are rounded to single precision, which is what STL files hold and what MuJoCo keeps of every file.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass

import numpy as np

from linkwise.core.products import times
from linkwise.model.hull import convex_hull

MOST_FACES = 200_000  # of a file, as in MuJoCo's STL reader
MOST_BYTES = 64 * 1024 * 1024
MOST_CORNERS = 1000  # of one polygon of an OBJ file
LARGEST = 1e10  # coordinates beyond are no robot [m]
AXES = 1e-7  # relative size of the products of inertia that MuJoCo leaves where it finds principal axes
SMALLEST_VOLUME = 1e-15  # mjMINVAL of MuJoCo
RULES = ("legacy", "exact", "shell", "convex")
ENDINGS = (".stl", ".obj", ".msh")


class MeshError(ValueError):
    """What is wrong with a mesh, without the name of its file."""


@dataclass(frozen=True)
class Mesh:
    """Vertices [m], shape (n, 3), and triangles as three numbers of vertices each, shape (m, 3)."""

    vertices: np.ndarray
    faces: np.ndarray

    def scaled(self, scale: np.ndarray) -> Mesh:
        """A mirror image keeps its faces' fronts outside."""
        faces = self.faces[:, ::-1] if np.prod(scale) < 0 else self.faces
        return Mesh(self.vertices * scale, faces)


@dataclass(frozen=True)
class Solid:
    """A mesh of unit density: its volume [m³] or area [m²], its centroid [m] and ∫(r·r 1 − r rᵀ) about it."""

    size: float
    com: np.ndarray
    inertia: np.ndarray


def solid_of(mesh: Mesh, rule: str, most_hull_vertices: int = -1) -> Solid:
    """Volume (for a shell: area), centroid and inertia of unit density.

    ``exact``: signed tetrahedra under the faces. ``legacy``: their absolute values, which overcount what is not
    convex. ``shell``: the faces themselves. ``convex``: the convex hull. A mesh without faces is its convex hull.
    A hull with more than ``most_hull_vertices``, which MuJoCo would cut, is an error.
    """
    if rule == "convex" or not len(mesh.faces):
        try:
            mesh = Mesh(mesh.vertices, convex_hull(mesh.vertices))
        except ValueError as error:
            raise MeshError(f"it has no convex hull: {error}") from None
        vertices = len(np.unique(mesh.faces))
        if 0 < most_hull_vertices < vertices:
            raise MeshError(
                f"its convex hull has {vertices} vertices, and a hull cut to maxhullvert={most_hull_vertices} of them "
                "is not computed"
            )
    corners = mesh.vertices[mesh.faces]
    doubled = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    areas = np.linalg.norm(doubled, axis=1) / 2
    centres = corners.mean(axis=1)
    if not areas.sum() > 0:
        raise MeshError("its faces have no area")
    middle = times(areas, centres) / areas.sum()

    def volumes(apex: np.ndarray) -> np.ndarray:
        """Of the tetrahedra between the faces and a point."""
        volume = np.einsum("ij,ij->i", centres - apex, doubled) / 6
        return np.abs(volume) if rule == "legacy" else volume

    if rule == "shell":
        com, weights, share = middle, areas, 12.0
    else:
        weights = volumes(middle)
        total = float(weights.sum())
        if total < 0:
            raise MeshError("its volume is negative: the fronts of its faces are inside")
        if total < SMALLEST_VOLUME:
            raise MeshError("it encloses no volume; give its inertia='shell'")
        com = times(weights, 0.75 * centres + 0.25 * middle) / total
        weights, share = volumes(com), 20.0
    a, b, c = np.moveaxis(corners - com, 1, 0)
    second = sum(np.einsum("i,ij,ik->jk", weights, v, v) for v in (a, b, c, a + b + c)) / share
    return Solid(float(weights.sum()), com, _as_stored(np.trace(second) * np.eye(3) - second))


def _as_stored(inertia: np.ndarray) -> np.ndarray:
    """What MuJoCo keeps of the inertia of a mesh: its principal moments and axes by Jacobi rotations, which end at
    products of inertia below ``AXES`` of the largest entry. What is left of those is dropped."""
    axes = np.eye(3)
    turned, limit = inertia, AXES * np.abs(inertia).max()
    for _ in range(100):
        turned = times(times(axes.T, inertia), axes)
        row, column = max(((0, 1), (0, 2), (1, 2)), key=lambda at: abs(turned[at]))
        if abs(turned[row, column]) <= limit:
            break
        half = (turned[column, column] - turned[row, row]) / (2 * turned[row, column])
        tangent = math.copysign(1.0, half) / (abs(half) + math.sqrt(1 + half * half))
        cosine = 1 / math.sqrt(1 + tangent * tangent)
        step = np.eye(3)
        step[row, row] = step[column, column] = cosine
        step[row, column], step[column, row] = tangent * cosine, -tangent * cosine
        axes = times(axes, step)
    return times(axes * np.diag(turned), axes.T)


def read_mesh(data: bytes, ending: str) -> Mesh:
    """From the bytes of a file with this ending: ``.stl`` (binary or text), ``.obj`` or ``.msh``."""
    if ending not in ENDINGS:
        raise MeshError(f"meshes are read from {', '.join(ENDINGS)} files, not {ending or 'others'}")
    if len(data) > MOST_BYTES:
        raise MeshError(f"it has {len(data)} bytes; at most {MOST_BYTES} are read")
    if ending == ".obj":
        return _read_obj(data)
    if ending == ".msh":
        return _read_msh(data)
    return _read_text_stl(data) if _is_text_stl(data) else _read_binary_stl(data)


def checked(vertices: np.ndarray, faces: np.ndarray) -> Mesh:
    """A mesh of finite numbers whose faces name existing vertices, rounded to single precision."""
    if not np.isfinite(vertices).all() or np.abs(vertices).max(initial=0.0) > LARGEST:
        raise MeshError("a coordinate is not a finite number, or too large")
    if len(faces) > MOST_FACES:
        raise MeshError(f"it has {len(faces)} triangles; at most {MOST_FACES} are read")
    if len(faces) and (faces.min() < 0 or faces.max() >= len(vertices)):
        raise MeshError("a face names a vertex that is not there")
    return Mesh(vertices.astype(np.float32).astype(float), faces)


# -- STL --------------------------------------------------------------------------------------------------------------


def _is_text_stl(data: bytes) -> bool:
    return data[:5] == b"solid" and b"facet" in data[:1000]


def _read_binary_stl(data: bytes) -> Mesh:
    if len(data) < 84:
        raise MeshError("it is too short for an STL file")
    (count,) = struct.unpack_from("<I", data, 80)
    if not 0 < count <= MOST_FACES:
        raise MeshError(f"it says {count} triangles; expected 1 to {MOST_FACES}")
    if len(data) < 84 + 50 * count:
        raise MeshError(f"it says {count} triangles and ends before the last of them")
    facet = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
    corners = np.frombuffer(data, facet, count, 84)["corners"].reshape(-1, 3).astype(float)
    return checked(corners, np.arange(3 * count).reshape(-1, 3))


def _read_text_stl(data: bytes) -> Mesh:
    found = re.findall(rb"\bvertex[ \t]+(\S+)[ \t]+(\S+)[ \t]+(\S+)", data)
    if not found or len(found) % 3:
        raise MeshError(f"expected three vertices for each triangle, found {len(found)} in all")
    vertices = np.array([[_number(text) for text in row] for row in found])
    return checked(vertices, np.arange(len(vertices)).reshape(-1, 3))


def _read_msh(data: bytes) -> Mesh:
    """Numbers of vertices, normals, texture coordinates and faces, then these, all of four bytes."""
    if len(data) < 16:
        raise MeshError("it is too short for an MSH file")
    vertices, normals, texture, faces = struct.unpack_from("<4i", data)
    if not 4 <= vertices <= 3 * MOST_FACES or not 0 <= faces <= MOST_FACES or normals < 0 or texture < 0:
        raise MeshError(
            f"it says {vertices} vertices and {faces} triangles; expected 4 or more, and {MOST_FACES} at most"
        )
    start = 16 + 4 * (3 * vertices + 3 * normals + 2 * texture)
    if len(data) != start + 12 * faces:
        raise MeshError(f"it has {len(data)} bytes, and not the {start + 12 * faces} that its numbers say")
    points = np.frombuffer(data, "<f4", 3 * vertices, 16).reshape(-1, 3).astype(float)
    return checked(points, np.frombuffer(data, "<i4", 3 * faces, start).reshape(-1, 3).astype(int))


# -- OBJ --------------------------------------------------------------------------------------------------------------


def _read_obj(data: bytes) -> Mesh:
    """Vertices and faces of the first object that has faces, which is what MuJoCo reads; a file without faces has
    vertices alone, whose convex hull counts."""
    vertices: list[list[float]] = []
    faces: list[tuple[int, ...]] = []
    complete = False  # whether the first object has ended
    for line in data.replace(b"\\\r\n", b" ").replace(b"\\\n", b" ").splitlines():
        word, *rest = line.split(b"#", 1)[0].split() or [b""]
        if word == b"v":
            if len(rest) < 3:
                raise MeshError(f"a vertex needs three numbers: {line[:60]!r}")
            vertices.append([_number(text) for text in rest[:3]])
        elif word in (b"o", b"g"):
            complete = complete or bool(faces)
        elif word == b"f" and not complete:
            if not 3 <= len(rest) <= MOST_CORNERS:
                raise MeshError(f"a face has {len(rest)} corners; expected 3 to {MOST_CORNERS}")
            faces.append(tuple(_index(text, len(vertices)) for text in rest))
            if len(faces) > MOST_FACES:
                raise MeshError(f"it has more than {MOST_FACES} faces")
    if not vertices:
        raise MeshError("it has no vertices")
    points = np.array(vertices)
    if not faces:
        return checked(points, np.zeros((0, 3), dtype=int))
    highest = max(max(face) for face in faces)
    if highest >= len(points):
        raise MeshError("a face names a vertex that is not there")
    triangles = [triangle for face in faces for triangle in triangulated(points, face)]
    return checked(points, np.array(triangles, dtype=int))


def _index(text: bytes, known: int) -> int:
    """A corner ``v``, ``v/vt``, ``v//vn`` or ``v/vt/vn``; negative numbers count back from the last vertex."""
    first = text.split(b"/", 1)[0]
    if not re.fullmatch(rb"-?[0-9]{1,9}", first) or not int(first):
        raise MeshError(f"a face has the corner {text[:30]!r}")
    number = int(first)
    if number < -known:
        raise MeshError("a face names a vertex that is not there")
    return number - 1 if number > 0 else known + number


def triangulated(points: np.ndarray, face: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """A quadrilateral is cut along its shorter diagonal, as in MuJoCo; other polygons ear by ear."""
    if len(face) == 3:
        a, b, c = face
        return [(a, b, c)]
    if len(face) == 4:
        a, b, c, d = face
        first, second = points[c] - points[a], points[d] - points[b]
        return [(a, b, c), (a, c, d)] if first @ first < second @ second else [(a, b, d), (b, c, d)]
    corners = points[list(face)]
    normal = np.cross(corners, np.roll(corners, -1, axis=0)).sum(axis=0)
    rest, triangles = list(face), list[tuple[int, int, int]]()
    while len(rest) > 3:
        ear = next((k for k in range(len(rest)) if _is_ear(points, rest, k, normal)), 0)
        triangles.append((rest[ear - 1], rest[ear], rest[(ear + 1) % len(rest)]))
        del rest[ear]
    return [*triangles, (rest[0], rest[1], rest[2])]


def _is_ear(points: np.ndarray, polygon: list[int], k: int, normal: np.ndarray) -> bool:
    """Whether corner k bulges outward and its triangle holds no other corner."""
    three = polygon[k - 1], polygon[k], polygon[(k + 1) % len(polygon)]
    a, b, c = (points[i] for i in three)
    if np.cross(b - a, c - b) @ normal <= 0:
        return False
    others = points[[i for i in polygon if i not in three]]
    inside = np.ones(len(others), dtype=bool)
    for start, end in ((a, b), (b, c), (c, a)):
        inside &= np.cross(end - start, others - start) @ normal > 0
    return not inside.any()


def _number(text: bytes) -> float:
    if not re.fullmatch(rb"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?", text) or len(text) > 60:
        raise MeshError(f"{text[:30].decode('ascii', 'replace')!r} is not a number")
    return float(text)
