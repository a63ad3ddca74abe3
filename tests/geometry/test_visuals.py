"""What a URDF file shows: shapes, meshes, colours; and that nothing outside its folder is ever read."""

import os

import numpy as np
import pytest

import linkwise as lw
from linkwise.geometry import meshes
from linkwise.geometry.meshes import read_mesh
from linkwise.geometry.visuals import find_mesh, read_looks

TRIANGLE = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], dtype=float)

TEXT_STL = b"solid\nfacet normal 0 0 1 outer loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop endfacet endsolid"
OBJ = b"mtllib /etc/passwd\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"
COLLADA = """<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit meter="0.001"/><up_axis>Z_UP</up_axis></asset>
<library_effects><effect id="red"><profile_COMMON><technique><phong><diffuse><color>1 0 0 1</color></diffuse></phong>
</technique></profile_COMMON></effect></library_effects>
<library_materials><material id="paint"><instance_effect url="#red"/></material></library_materials>
<library_geometries><geometry id="g"><mesh>
<source id="p"><float_array count="12">0 0 0 1000 0 0 0 1000 0 0 0 1000</float_array></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<polylist material="m" count="2"><input semantic="VERTEX" source="#v" offset="0"/><vcount>3 4</vcount>
<p>0 1 2 0 1 2 3</p></polylist></mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node><translate>0 0 500</translate>
<instance_geometry url="#g"><bind_material><technique_common><instance_material symbol="m" target="#paint"/>
</technique_common></bind_material></instance_geometry></node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#s"/></scene></COLLADA>"""


def binary_stl() -> bytes:
    record = np.zeros(1, meshes._STL_TRIANGLE)
    record["corners"] = TRIANGLE
    return b"\0" * 80 + (1).to_bytes(4, "little") + record.tobytes()


def urdf(*visuals: str) -> str:
    inside = "".join(f"<visual>{visual}</visual>" for visual in visuals)
    return (
        '<robot name="r"><material name="blue"><color rgba="0 0 1 1"/></material>'
        f'<link name="base">{inside}</link><link name="arm"/>'
        '<joint name="j" type="continuous"><parent link="base"/><child link="arm"/></joint></robot>'
    )


def looks(tmp_path, *visuals: str, **options):
    path = tmp_path / "arm.urdf"
    path.write_text(urdf(*visuals))
    return read_looks(path, **options)


@pytest.mark.parametrize(
    ("data", "ending"),
    [(binary_stl(), ".stl"), (TEXT_STL, ".stl"), (OBJ, ".obj")],
    ids=["binary", "text", "obj"],
)
def test_triangle(data, ending):
    if ending == ".obj":
        pytest.importorskip("trimesh")
    (part,) = read_mesh(data, ending, "file")
    assert sorted(map(tuple, part.mesh.vertices[part.mesh.faces[0]])) == sorted(map(tuple, TRIANGLE))


WHOLE = """<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1"><asset>UP</asset>
<library_geometries><geometry id="g" name="g"><mesh><source id="p"><float_array id="a" count="9">0 0 0 1 0 0 0 2 3
</float_array><technique_common><accessor count="3" source="#a" stride="3"><param name="X" type="float"/><param name="Y"
type="float"/><param name="Z" type="float"/></accessor></technique_common></source><vertices id="v"><input
semantic="POSITION" source="#p"/></vertices><triangles count="1"><input offset="0" semantic="VERTEX" source="#v"/>
<p>0 1 2</p></triangles></mesh></geometry></library_geometries><library_visual_scenes><visual_scene id="s" name="s">
<node id="n" name="n"><instance_geometry url="#g"/></node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#s"/></scene></COLLADA>"""


@pytest.mark.parametrize("axis", ["X_UP", "Y_UP", "Z_UP", None])
def test_the_up_axis_of_collada_is_ignored_as_by_pinocchio(axis, tmp_path):
    """Programs write Y_UP into files whose links have z up; spheres were a quarter turn beside the links."""
    pin = pytest.importorskip("pinocchio")
    up = f"<up_axis>{axis}</up_axis>" if axis else ""
    text = WHOLE.replace("UP", up)
    (part,) = read_mesh(text.encode(), ".dae", "file")
    (tmp_path / "part.dae").write_text(text)
    (tmp_path / "robot.urdf").write_text(
        '<robot name="r"><link name="l"><collision><geometry><mesh filename="part.dae"/></geometry></collision>'
        "</link></robot>"
    )
    file = str(tmp_path / "robot.urdf")
    shapes = pin.buildGeomFromUrdf(
        pin.buildModelFromUrdf(file), file, pin.GeometryType.COLLISION, package_dirs=[str(tmp_path)]
    )
    theirs = {tuple(np.round(x, 6)) for x in shapes.geometryObjects[0].geometry.vertices()}
    assert theirs == {tuple(np.round(x, 6)) for x in part.mesh.vertices}


def test_collada():
    (part,) = read_mesh(COLLADA.encode(), ".dae", "file")
    assert part.colour == (255, 0, 0)
    assert len(part.mesh.faces) == 3  # a triangle, and a quadrangle cut in two
    np.testing.assert_allclose(part.mesh.vertices.min(axis=0), [0, 0, 0.5])
    np.testing.assert_allclose(part.mesh.vertices.max(axis=0), [1, 1, 1.5])


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"not xml",
        b"<robot/>",
        COLLADA.replace("0 1 2 0 1 2 3", "0 1 2 0 1 2 9").encode(),
        COLLADA.replace('<?xml version="1.0"?>', '<!DOCTYPE x [<!ENTITY a "b">]>').encode(),
        COLLADA.replace("#g", "#nothing").encode(),
    ],
)
def test_bad_collada_is_refused(bad):
    with pytest.raises(lw.ModelError, match="file"):
        read_mesh(bad, ".dae", "file")


@pytest.mark.parametrize("bad", [b"", b"\0" * 90, b"solid s vertex 1 2", b"x" * 100, b"vertex a b c"])
def test_bad_stl_is_refused(bad):
    with pytest.raises(lw.ModelError, match="file"):
        read_mesh(bad, ".stl", "file")


def test_too_large_and_unknown_are_refused(monkeypatch):
    monkeypatch.setattr(meshes, "MAX_TRIANGLES", 0)
    with pytest.raises(lw.ModelError, match="triangles"):
        read_mesh(binary_stl(), ".stl", "file")
    monkeypatch.setattr(meshes, "MAX_BYTES", 10)
    with pytest.raises(lw.ModelError, match="bytes"):
        read_mesh(binary_stl(), ".stl", "file")
    with pytest.raises(lw.ModelError, match="unknown kind"):
        read_mesh(b"", ".exe", "file")


def test_shapes_and_colours(tmp_path):
    found = looks(
        tmp_path,
        '<origin xyz="0 0 1"/><geometry><box size="1 2 3"/></geometry><material name="blue"/>',
        '<geometry><sphere radius="0.1"/></geometry><material name="x"><color rgba="1 0.5 0 1"/></material>',
        '<geometry><cylinder radius="0.1" length="1"/></geometry>',
        '<geometry><capsule radius="0.1" length="1"/></geometry>',
    )
    assert not found.problems
    assert [visual.part.colour for visual in found.visuals] == [(0, 0, 255), (255, 128, 0), None, None]
    assert found.visuals[0].pose.translation[2] == 1


def test_meshes_are_found_in_the_file_s_own_folder(tmp_path):
    package = tmp_path / "arm_description"
    (package / "meshes").mkdir(parents=True)
    (package / "urdf").mkdir()
    (package / "meshes" / "a.stl").write_bytes(binary_stl())
    names = [
        "package://arm_description/meshes/a.stl",
        "../meshes/a.stl",
        "file://meshes/a.stl",
        "package://x/y/meshes/a.stl",
    ]
    path = package / "urdf" / "arm.urdf"
    path.write_text(
        urdf(*(f'<geometry><mesh filename="{name}" scale="2 2 2"/></geometry>' for name in names))
    )
    found = read_looks(path)
    assert len(found.visuals) == len(names), found.problems
    assert found.visuals[0].part.mesh.vertices.max() == 2


def test_nothing_outside_is_read(tmp_path):
    secret = tmp_path / "secret.stl"
    secret.write_bytes(binary_stl())
    own = tmp_path / "robots_of_mine" / "arm"
    own.mkdir(parents=True)
    os.symlink(secret, own / "link.stl")
    names = [
        str(secret),
        f"file://{secret}",
        "../../secret.stl",
        "package://../../secret.stl",
        "link.stl",
        "no.stl",
    ]
    found = looks(own, *(f'<geometry><mesh filename="{name}"/></geometry>' for name in names))
    assert not found.visuals
    assert len(found.problems) == len(names)
    assert all("no such file inside" in problem for problem in found.problems)


def test_a_folder_that_the_user_names(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.stl").write_bytes(binary_stl())
    (tmp_path / "arm").mkdir()
    shape = '<geometry><mesh filename="package://any/a.stl"/></geometry>'
    assert not looks(tmp_path / "arm", shape).visuals
    assert len(looks(tmp_path / "arm", shape, folders=[tmp_path / "elsewhere"]).visuals) == 1
    assert find_mesh("a.stl", [tmp_path / "arm"]) is None


def test_problems_do_not_stop_the_rest(tmp_path):
    (tmp_path / "bad.stl").write_bytes(b"nothing")
    found = looks(
        tmp_path,
        '<geometry><mesh filename="bad.stl"/></geometry>',
        '<geometry><mesh filename="a.exe"/></geometry>',
        '<geometry><torus radius="1"/></geometry>',
        "<geometry/>",
        '<geometry><box size="1 1 1"/></geometry>',
    )
    assert len(found.visuals) == 1
    assert len(found.problems) == 3


def test_other_files_show_nothing(tmp_path):
    path = tmp_path / "arm.toml"
    lw.save(lw.load("two_link"), path)
    assert read_looks(path).visuals == ()
    assert read_looks(tmp_path / "nothing.urdf").visuals == ()


def test_only_packages_are_searched_above_the_folder_of_a_file(tmp_path):
    """A robot in ``~/models`` must not see the home folder."""
    from linkwise.geometry.mesh_files import folders_of

    for inner in ("urdf", "models", "robot"):
        for mark in (None, "package.xml", "meshes", "collisions", "visual"):
            home = tmp_path / f"{inner} {mark}"
            (home / inner).mkdir(parents=True)
            if mark is not None:
                (home / mark).mkdir()
            roots = folders_of(home / inner / "arm.urdf", [])
            assert roots == [home / inner if mark is None else home]


OBJ_FILES = {
    "plain": b"v 0 0 0\nv 1 0 0\nv 0 2 0\nv 0 0 3\nf 1 2 3\nf 1 3 4\n",
    "materials": b"o a\nv 0 0 0\nv 1 0 0\nv 0 2 0\nvn 0 0 1\nvt 0 0\nusemtl x\nf 1/1/1 2/1/1 3/1/1\n"
    b"o b\nv 0 0 3\nusemtl y\nf 1//1 3//1 4//1\n",
    "quadrangle": b"v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3 4\n",
    "negative": b"v 0 0 0\nv 1 0 0\nv 0 2 0\nf -3 -2 -1\n",
    "colours": b"v 0 0 0 1 0 0\nv 1 0 0 1 0 0\nv 0 2 0 1 0 0\nf 1 2 3\n",
    "comment": b"# v 9 9 9\nv 0 0 0\nv 1 0 0\nv 0 2 0\nf 1 2 3\n",
    "windows": b"v 0 0 0\r\nv 1 0 0\r\nv 0 2 0\r\nf 1 2 3\r\n",
}


@pytest.mark.parametrize("name", OBJ_FILES)
def test_meshes_that_are_not_drawn_have_the_same_triangles(name):
    pytest.importorskip("trimesh")

    def triangles(parts):
        corners = np.concatenate([part.mesh.vertices[part.mesh.faces] for part in parts])
        return {frozenset(tuple(x) for x in triangle) for triangle in corners.round(9).tolist()}

    data = OBJ_FILES[name]
    assert triangles(read_mesh(data, ".obj", "file", shown=False)) == triangles(
        read_mesh(data, ".obj", "file")
    )


def test_a_face_of_a_corner_that_is_missing_is_no_triangle():
    with pytest.raises(lw.ModelError):
        read_mesh(b"v 0 0 0\nv 1 0 0\nv 0 2 0\nf 1 2 9\n", ".obj", "file", shown=False)
