"""COLLADA (.dae) as robot files use it: triangles and polygons with diffuse colours, placed by a scene.

Textures, cameras, lights, skins and animations are ignored. So is ``<up_axis>``: RViz, MoveIt, Gazebo Classic and
Pinocchio take the coordinates as they are, and programs write Y_UP into files whose links have z up (MeshLab always).
XML is read by defusedxml: a file that declares a document type or an entity is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.etree.ElementTree import Element, ParseError

import numpy as np

from linkwise.core.products import times
from linkwise.errors import ModelError
from linkwise.geometry.solids import MAX_TRIANGLES, Colour, Mesh, Part

MAX_INSTANCES = 10_000
MAX_DEPTH = 100


def read_collada(data: bytes, where: str) -> list[Part]:
    """The parts of a COLLADA file, in metres and the file's axes."""
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    try:
        document = _Document(fromstring(data, forbid_dtd=True))
        with np.errstate(all="ignore"):  # numbers that are not finite are refused by the caller
            return document.parts()
    except DefusedXmlException as error:
        raise ModelError(
            f"{where}: it declares a document type or an entity, which is not allowed"
        ) from error
    except (ParseError, ValueError, LookupError, ArithmeticError, RecursionError) as error:
        raise ModelError(f"{where}: not a COLLADA file that can be read: {error}") from error


class _Document:
    def __init__(self, root: Element):
        for element in root.iter():  # ignore namespaces
            element.tag = element.tag.rpartition("}")[2]
        if root.tag != "COLLADA":
            raise ValueError(f"its root element is <{root.tag}>")
        self.root = root
        self.by_id = {element.get("id"): element for element in root.iter() if element.get("id")}
        self.instances = self.triangles = 0

    def parts(self) -> list[Part]:
        unit = self.root.find("asset/unit")
        to_metres = np.eye(4)
        to_metres[:3, :3] *= float("1" if unit is None else unit.get("meter", "1"))
        scene = self.root.find("scene/instance_visual_scene")
        if scene is None:
            geometries = self.root.iter("geometry")
            return [part for geometry in geometries for part in self.geometry(geometry, to_metres, {})]
        start = self.target(scene)
        return [part for node in start.findall("node") for part in self.node(node, to_metres)]

    def target(self, element: Element) -> Element:
        """Element that ``url="#name"`` refers to."""
        return self.by_id[element.get("url", "").removeprefix("#")]

    def node(self, node: Element, pose: np.ndarray, depth: int = 1) -> Iterator[Part]:
        if depth > MAX_DEPTH:  # also a node that is an instance of itself
            raise ValueError(f"nodes of its scene are more than {MAX_DEPTH} deep")
        self.instances += 1
        if self.instances > MAX_INSTANCES:
            raise ValueError(f"its scene has more than {MAX_INSTANCES} nodes")
        pose = times(pose, _placed(node))
        for instance in node.findall("instance_geometry"):
            colours = {
                bind.get("symbol"): self.colour(bind.get("target", ""))
                for bind in instance.iter("instance_material")
            }
            yield from self.geometry(self.target(instance), pose, colours)
        for child in node.findall("node"):
            yield from self.node(child, pose, depth + 1)
        for instance in node.findall("instance_node"):
            yield from self.node(self.target(instance), pose, depth + 1)

    def colour(self, material: str) -> Colour | None:
        found = self.by_id.get(material.removeprefix("#"))
        instance = None if found is None else found.find("instance_effect")
        effect = None if instance is None else self.by_id.get(instance.get("url", "").removeprefix("#"))
        text = None if effect is None else effect.findtext(".//diffuse/color")
        if text is None:
            return None
        red, green, blue = (round(255 * min(max(c, 0.0), 1.0)) for c in _floats(text)[:3])
        return red, green, blue

    def geometry(
        self, geometry: Element, pose: np.ndarray, colours: dict[Any, Colour | None]
    ) -> Iterator[Part]:
        mesh = geometry.find("mesh")
        if mesh is None:
            return
        for piece in (p for tag in ("triangles", "polylist", "polygons") for p in mesh.findall(tag)):
            found = self.piece(piece)
            if found is not None:
                self.triangles += len(found.faces)
                if self.triangles > MAX_TRIANGLES:
                    raise ValueError(f"its scene has more than the {MAX_TRIANGLES} triangles that are shown")
                moved = times(found.vertices, pose[:3, :3].T) + pose[:3, 3]
                faces = found.faces if np.linalg.det(pose[:3, :3]) >= 0 else found.faces[:, ::-1]
                yield Part(Mesh(moved, faces), colours.get(piece.get("material")))

    def piece(self, piece: Element) -> Mesh | None:
        """Triangles; corners with the same position and normal share a vertex."""
        inputs = {
            i.get("semantic"): (i.get("source", ""), int(i.get("offset", "0")))
            for i in piece.findall("input")
        }
        offsets = [offset for _, offset in inputs.values()]
        if min(offsets, default=0) < 0:
            raise ValueError("an input has a negative offset")
        width = 1 + max(offsets, default=0)
        loops = [_whole(p.text or "").reshape(-1, width) for p in piece.findall("p")]
        if not loops or "VERTEX" not in inputs:
            return None
        corners = np.concatenate(loops)
        sizes = (
            _whole(piece.findtext("vcount") or "")
            if piece.tag == "polylist"
            else np.array([len(p) for p in loops])
        )
        corners = (
            corners[: 3 * (len(corners) // 3)]
            if piece.tag == "triangles"
            else corners[_fans(sizes, len(corners))]
        )
        vertices = self.by_id[inputs["VERTEX"][0].removeprefix("#")]
        positions = [i for i in vertices.findall("input") if i.get("semantic") == "POSITION"]
        if not positions:
            raise ValueError("its vertices have no positions")
        points = self.points(positions[0].get("source", ""))
        keys = corners[:, [inputs["VERTEX"][1], *([inputs["NORMAL"][1]] if "NORMAL" in inputs else [])]]
        kept, back = np.unique(keys, axis=0, return_inverse=True)
        if len(kept) and not 0 <= kept[:, 0].min() <= kept[:, 0].max() < len(points):
            raise ValueError("a triangle refers to a missing vertex")
        return Mesh(points[kept[:, 0]], back.reshape(-1, 3))

    def points(self, source: str) -> np.ndarray:
        array = self.by_id[source.removeprefix("#")].find("float_array")
        if array is None:
            raise ValueError(f"the source {source} has no numbers")
        return _floats(array.text or "").reshape(-1, 3)


def _fans(sizes: np.ndarray, count: int) -> np.ndarray:
    """Corner indices of polygons with these sizes, split into triangles that share the polygon's first corner."""
    if (sizes < 0).any() or (sizes > count).any() or sizes.sum() > count:
        raise ValueError(f"its polygons have other corners than the {count} that are listed")
    starts = np.concatenate([[0], np.cumsum(sizes)])[:-1]
    kept = [
        (start, start + k, start + k + 1)
        for start, size in zip(starts, sizes, strict=True)
        for k in range(1, size - 1)
    ]
    return np.array(kept, dtype=np.int64).ravel()


def _placed(node: Element) -> np.ndarray:
    """Product of the node's transformations."""
    total = np.eye(4)
    for step in node:
        if step.tag not in ("matrix", "translate", "rotate", "scale"):
            continue
        numbers, one = _floats(step.text or ""), np.eye(4)
        if step.tag == "matrix":
            one = numbers.reshape(4, 4)
        elif step.tag == "translate":
            one[:3, 3] = numbers
        elif step.tag == "scale":
            one[[0, 1, 2], [0, 1, 2]] = numbers
        else:
            axis, angle = numbers[:3] / np.linalg.norm(numbers[:3]), np.radians(numbers[3])
            x, y, z = axis
            K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
            one[:3, :3] += np.sin(angle) * K + (1 - np.cos(angle)) * times(K, K)
        total = times(total, one)
    return total


def _floats(text: str) -> np.ndarray:
    return np.array(text.split(), dtype=float)


def _whole(text: str) -> np.ndarray:
    return np.array(text.split(), dtype=np.int64)
