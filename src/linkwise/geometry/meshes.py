"""Readers for untrusted mesh files: STL, OBJ, PLY, glTF (binary) and COLLADA, from bytes only.

No reader opens a second file: textures and material libraries are not followed.
"""

from __future__ import annotations

import io

import numpy as np

from linkwise.errors import ModelError, needed
from linkwise.geometry.solids import MAX_TRIANGLES, Colour, Mesh, Part

ENDINGS = (".stl", ".obj", ".ply", ".glb", ".dae")
MAX_BYTES = 64 * 1024 * 1024


def read_mesh(data: bytes, ending: str, where: str, *, shown: bool = True) -> list[Part]:
    """Parts of a mesh file.

    Args:
        data: contents of the file.
        ending: ".stl", ".obj", ".ply", ".glb" or ".dae".
        where: name of the file for error messages.
        shown: whether the mesh is drawn. If not, corners that renderers shade smoothly are not merged, and parts and
            colours of OBJ files are not told apart, which takes most of the time.

    Raises:
        ModelError: the file cannot be read, is too large, or has no triangles.
    """
    if ending not in ENDINGS:
        raise ModelError(f"{where}: unknown kind of mesh {ending!r}; known: {', '.join(ENDINGS)}")
    if len(data) > MAX_BYTES:
        raise ModelError(f"{where}: {len(data)} bytes is more than the {MAX_BYTES} that are read")
    if ending == ".dae":
        from linkwise.geometry.collada import read_collada

        parts = read_collada(data, where)
    elif ending == ".stl":
        mesh = _stl(data, where)
        parts = [Part(_smooth(mesh) if shown else mesh)]
    elif ending == ".obj" and not shown and (found := _plain_obj(data)) is not None:
        parts = [Part(found)]
    else:
        parts = _by_trimesh(data, ending, where)
    parts = [part for part in parts if len(part.mesh.faces)]
    if not parts:
        raise ModelError(f"{where}: it has no triangles")
    triangles = sum(len(part.mesh.faces) for part in parts)
    if triangles > MAX_TRIANGLES:
        raise ModelError(f"{where}: {triangles} triangles are more than the {MAX_TRIANGLES} that are shown")
    if not all(np.isfinite(part.mesh.vertices).all() for part in parts):
        raise ModelError(f"{where}: it has vertices that are not finite")
    return parts


_STL_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attributes", "<u2")])


def _stl(data: bytes, where: str) -> Mesh:
    """Binary or text STL."""
    count = int.from_bytes(data[80:84], "little") if len(data) >= 84 else -1
    if count >= 0 and len(data) == 84 + 50 * count:
        corners = np.frombuffer(data, _STL_TRIANGLE, offset=84)["corners"].astype(float).reshape(-1, 3)
    else:
        words = data.decode("ascii", errors="replace").split()
        places = [k for k, word in enumerate(words) if word == "vertex"]
        try:
            corners = np.array(
                [[float(x) for x in words[k + 1 : k + 4]] for k in places], dtype=float
            ).reshape(-1, 3)
        except ValueError as error:
            raise ModelError(f"{where}: neither a binary nor a text STL file ({error})") from None
    if not len(corners) or len(corners) % 3:
        raise ModelError(f"{where}: {len(corners)} vertices are no whole number of triangles")
    if not np.isfinite(corners).all():
        raise ModelError(f"{where}: it has vertices that are not finite")
    return Mesh(corners, np.arange(len(corners)).reshape(-1, 3))


def _smooth(mesh: Mesh, angle: float = 35.0) -> Mesh:
    """Merge corners at the same place whose face normals are similar, so that renderers shade them smoothly.

    Similar: the normals fall into the same cell of a grid of directions with about ``angle`` degrees.
    """
    corners = mesh.vertices[mesh.faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    length = np.linalg.norm(normals, axis=1, keepdims=True)
    normals = np.divide(normals, length, out=np.zeros_like(normals), where=length > 0)
    cell = np.rint(normals / np.radians(angle)).astype(np.int64)
    place = np.rint(
        mesh.vertices[mesh.faces.ravel()] / max(float(np.ptp(mesh.vertices)), 1e-12) * 2**20
    ).astype(np.int64)
    keys = np.column_stack([place, np.repeat(cell, 3, axis=0)])
    _, first, back = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return Mesh(mesh.vertices[mesh.faces.ravel()][first], back.reshape(-1, 3))


def _plain_obj(data: bytes) -> Mesh | None:
    """The triangles of an OBJ file that has nothing but triangles, whatever their materials; None of others."""
    lines = data.split(b"\n")
    points = [line for line in lines if line[:1] == b"v" and line[1:2] not in (b"n", b"t", b"p")]
    faces = [line[2:].split() for line in lines if line[:1] == b"f"]
    if b"\\" in data or not faces or any(len(face) != 3 for face in faces):
        return None
    words = b" ".join(line[2:] for line in points).split()
    if len(words) != 3 * len(points):
        return None
    try:
        vertices = np.array(words).astype(float).reshape(-1, 3)
        numbers = np.array([[int(corner.split(b"/", 1)[0]) for corner in face] for face in faces])
    except ValueError:
        return None
    return Mesh(vertices, numbers - 1) if 1 <= numbers.min() <= numbers.max() <= len(vertices) else None


def _by_trimesh(data: bytes, ending: str, where: str) -> list[Part]:
    trimesh = needed("trimesh", "view")
    try:
        loaded = trimesh.load(io.BytesIO(data), file_type=ending[1:], resolver=None)
        meshes = loaded.dump() if hasattr(loaded, "dump") else [loaded]
    except Exception as error:  # trimesh readers raise many types of errors
        raise ModelError(f"{where}: cannot be read: {type(error).__name__}: {error}") from error
    parts = []
    for mesh in meshes:
        if getattr(mesh, "faces", None) is not None and len(mesh.faces):
            parts.append(
                Part(Mesh(np.asarray(mesh.vertices, dtype=float), np.asarray(mesh.faces)), _main_colour(mesh))
            )
    return parts


def _main_colour(mesh) -> Colour | None:
    if getattr(mesh.visual, "kind", None) is None:
        return None
    try:
        red, green, blue = (int(c) for c in mesh.visual.to_color().main_color[:3])
    except Exception:  # a missing texture has no colour
        return None
    return red, green, blue
