"""Mesh files that are changed at random: triangles with vertices, or an error of Linkwise that names the file."""

import random
import struct
import warnings

import numpy as np
import pytest

from linkwise.errors import ModelError
from linkwise.geometry.meshes import read_mesh

COLLADA = """<?xml version="1.0" encoding="utf-8"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit meter="0.01" name="cm"/><up_axis>X_UP</up_axis></asset>
<library_effects><effect id="e"><profile_COMMON><technique><phong><diffuse><color>0.5 0.25 1 1</color></diffuse></phong>
</technique></profile_COMMON></effect></library_effects>
<library_materials><material id="m"><instance_effect url="#e"/></material></library_materials>
<library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="pa" count="12">0 0 0 1 0 0 0 1 0 0 0 1</float_array></source>
<source id="n"><float_array id="na" count="3">0 0 1</float_array></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<triangles material="s" count="2"><input semantic="VERTEX" source="#v" offset="0"/>
<input semantic="NORMAL" source="#n" offset="1"/><p>0 0 1 0 2 0 1 0 2 0 3 0</p></triangles>
<polylist material="s" count="1"><input semantic="VERTEX" source="#v" offset="0"/><vcount>4</vcount>
<p>0 1 2 3</p></polylist>
<polygons><input semantic="VERTEX" source="#v" offset="0"/><p>0 1 2</p><p>1 2 3 0</p></polygons>
</mesh></geometry></library_geometries>
<library_nodes><node id="k"><scale>1 -1 1</scale><instance_geometry url="#g"/></node></library_nodes>
<library_visual_scenes><visual_scene id="z"><node><matrix>1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1</matrix>
<rotate>0 0 1 90</rotate><translate>1 2 3</translate>
<instance_geometry url="#g"><bind_material><technique_common><instance_material symbol="s" target="#m"/>
</technique_common></bind_material></instance_geometry><node><instance_node url="#k"/></node></node></visual_scene>
</library_visual_scenes><scene><instance_visual_scene url="#z"/></scene></COLLADA>
"""

STL = (
    b"solid x\n"
    + b"facet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\n" * 2
)
BINARY_STL = bytes(80) + struct.pack("<I", 2) + struct.pack("<12fH", *range(12), 0) * 2
OBJ = b"mtllib x.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nvn 0 0 1\nusemtl a\nf 1//1 2//1 3//1\nf 1 2 4\nf -1 -2 -3\n"
PLY = (
    b"ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
    b"element face 1\nproperty list uchar int vertex_indices\nend_header\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n"
)
WORDS = (
    *(
        "",
        "-1",
        "nan",
        "inf",
        "-1e999",
        "1e308",
        "99999999999999999999999",
        "0.5",
        "x",
        "#",
        "#p",
        "#missing",
        "#z",
    ),
    *(
        "4294967296",
        "-9223372036854775809",
        "é",
        "\x00",
        "0 0 0 0 0",
        "1 2",
        "Z_UP",
        "VERTEX",
        "POSITION",
        "NORMAL",
    ),
)


def changed_text(text, rng):
    """A word, an attribute or a piece between two tags is changed, doubled, moved or removed."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        pieces = (
            text.replace(">", ">\0")
            .replace("<", "\0<")
            .replace('"', '\0"\0')
            .replace(" ", "\0 \0")
            .split("\0")
        )
        places = [k for k, piece in enumerate(pieces) if piece.strip()]
        if not places:
            break
        place = rng.choice(places)
        choice = rng.randrange(5)
        if choice < 3:
            pieces[place] = rng.choice(WORDS)
        elif choice == 3:
            pieces[place] *= 2
        else:
            pieces[place] = pieces[rng.choice(places)]
        text = "".join(pieces)
    return text


def changed_bytes(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        choice, place = rng.randrange(5), rng.randrange(len(data) or 1)
        if choice == 0:
            del data[place:]
        elif choice == 1:
            data[place : place + 4] = rng.choice(
                (b"\xff" * 4, b"\0\0\xc0\x7f", b"\0\0\x80\x7f", b"-1e9", b"9999")
            )
        elif choice == 2:
            data[place : place + rng.randrange(9)] = b""
        elif choice == 3:
            data[place:place] = data[: rng.randrange(30)]
        elif data:
            data[place % len(data)] ^= 1 << rng.randrange(8)
    return bytes(data)


def assert_read_or_refused(data, ending):
    """Whether it was read."""
    try:
        parts = read_mesh(data, ending, "arm.mesh")
    except ModelError as error:
        message = str(error)
    else:
        message = ""
    if message:
        assert message.startswith("arm.mesh")
        return False
    for part in parts:
        assert np.isfinite(part.mesh.vertices).all()
        assert part.mesh.faces.shape[1:] == (3,)
        assert 0 <= part.mesh.faces.min() <= part.mesh.faces.max() < len(part.mesh.vertices)
        assert part.colour is None or all(0 <= c <= 255 for c in part.colour)
    return True


SINGLE = [
    ('semantic="POSITION"', 'semantic="COLOR"'),  # StopIteration inside a generator
    ("<p>0 1 2 3</p>", "<p>0 1 2 99999999999999999999999</p>"),
    ("<p>0 1 2 3</p>", "<p>0 1 2 -1</p>"),
    ('offset="0"', 'offset="-1"'),
    ('encoding="utf-8"', 'encoding="nonsense"'),
    ('encoding="utf-8"', 'encoding="utf-16"'),
    ("0.5 0.25 1 1", "nan inf 1 1"),
    ("0.5 0.25 1 1", "0.5"),
    ('meter="0.01"', 'meter="1e308"'),
    ("<rotate>0 0 1 90</rotate>", "<rotate>0 0 0 90</rotate>"),
    ("<rotate>0 0 1 90</rotate>", "<rotate>0 0</rotate>"),
    ("1 0 0 0 0 1 0 0", "1e308 1e308 0 0 0 1e308 0 0"),
    ("<translate>1 2 3</translate>", "<translate>1</translate>"),
    ('url="#k"', 'url="#z"'),
    ('<instance_visual_scene url="#z"/>', '<instance_visual_scene url="#m"/>'),
]


def test_single_faults_of_collada():
    assert assert_read_or_refused(COLLADA.encode(), ".dae")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for old, new in SINGLE:
            assert old in COLLADA
            assert_read_or_refused(COLLADA.replace(old, new).encode(), ".dae")


def test_changed_collada():
    rng = random.Random(5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = sum(assert_read_or_refused(changed_text(COLLADA, rng).encode(), ".dae") for _ in range(1000))
    assert 50 < read < 950  # both happens


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("data", "ending"), [(STL, ".stl"), (BINARY_STL, ".stl"), (OBJ, ".obj"), (PLY, ".ply")]
)
def test_changed_meshes(data, ending):
    if ending != ".stl":
        pytest.importorskip("trimesh")
    rng = random.Random(6)
    assert assert_read_or_refused(data, ending)
    for _ in range(300):
        assert_read_or_refused(changed_bytes(data, rng), ending)
