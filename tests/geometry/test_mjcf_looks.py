"""What an MJCF file shows: geoms and meshes where MuJoCo puts them."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.geometry.visuals import read_looks

CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]], dtype=float)
FACES = ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))

ARM = """<mujoco model="arm">
<compiler angle="radian" meshdir="assets"/>
<default><default class="visual"><geom group="2" type="mesh" mass="0" contype="0" conaffinity="0"/></default>
<default class="collision"><geom group="3" mass="0"/></default></default>
<asset><mesh file="part.stl" scale="0.1 0.1 0.2"/>
<mesh name="turned" file="part.stl" refpos="0.5 0 0" refquat="0.7071067811865476 0 0 0.7071067811865476"/>
<material name="red" rgba="1 0 0 1"/></asset>
<worldbody><geom type="plane" size="1 1 1"/><geom type="box" size="0.1 0.2 0.3" pos="0 0 0.3" rgba="0 1 0 1"/>
<body name="upper" pos="0 0 1" euler="0.3 0.2 0.1"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
<joint name="j1" axis="0 0 1"/><geom class="visual" mesh="part" material="red" pos="0.1 0 0" euler="0 0.5 0"/>
<geom class="collision" type="sphere" size="1"/>
<body name="lower" pos="0 0.5 0"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
<joint name="j2" axis="1 0 0" pos="0 0.1 0" ref="0.4"/><frame pos="0 0 0.2"><geom class="visual" mesh="turned"/></frame>
<geom type="capsule" mass="0" size="0.05" fromto="0 0 0 0 0.3 0.3"/></body></body></worldbody></mujoco>"""


def stl() -> bytes:
    text = ["solid part"]
    for face in FACES:
        text.append("facet normal 0 0 0 outer loop")
        text += ["vertex " + " ".join(map(str, CORNERS[k])) for k in face]
        text.append("endloop endfacet")
    return "\n".join([*text, "endsolid part"]).encode()


def binary_stl() -> bytes:
    kind = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attributes", "<u2")])
    records = np.zeros(len(FACES), kind)
    records["corners"] = CORNERS[np.array(FACES)]
    return b"\0" * 80 + len(FACES).to_bytes(4, "little") + records.tobytes()


@pytest.fixture
def arm(tmp_path):
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "part.stl").write_bytes(binary_stl())
    path = tmp_path / "arm.xml"
    path.write_text(ARM)
    return path


def test_geoms_by_group_and_colour(arm):
    found = read_looks(arm)
    assert not found.problems
    assert [(v.link, v.part.colour) for v in found.visuals] == [
        ("world", (0, 255, 0)),
        ("upper", (255, 0, 0)),
        ("lower", None),
        ("lower", None),
    ]
    assert np.ptp(found.visuals[0].part.mesh.vertices, axis=0) == pytest.approx([0.2, 0.4, 0.6])


def test_geoms_that_collide(arm, tmp_path):
    found = read_looks(arm, purpose="collision")
    kinds = [(v.link, v.part.primitive.kind, v.part.primitive.sizes) for v in found.visuals]
    assert kinds[:2] == [("world", "box", (0.2, 0.4, 0.6)), ("upper", "sphere", (1.0,))]
    assert kinds[2][:2] == ("lower", "capsule")
    assert kinds[2][2] == pytest.approx((0.05, 0.3 * np.sqrt(2)))
    (tmp_path / "assets" / "part.stl").unlink()
    assert read_looks(arm).missing == {"upper", "lower"}
    assert not read_looks(arm, purpose="collision").missing


def test_meshes_are_where_mujoco_puts_them(arm):
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_path(str(arm))
    state = mujoco.MjData(model)
    q = np.array([0.7, -0.3])
    state.qpos[:] = q
    mujoco.mj_forward(model, state)
    robot = lw.load(arm)
    ours = [v for v in read_looks(arm).visuals if len(v.part.mesh.faces) == len(FACES)]
    theirs = [g for g in range(model.ngeom) if model.geom_type[g] == mujoco.mjtGeom.mjGEOM_MESH]
    assert len(ours) == len(theirs) == 2
    for visual, geom in zip(ours, theirs, strict=True):
        pose = robot.pose(q, visual.link) @ visual.pose.matrix
        here = visual.part.mesh.vertices @ pose[:3, :3].T + pose[:3, 3]
        mesh = model.geom_dataid[geom]
        first, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
        turn = state.geom_xmat[geom].reshape(3, 3)
        there = model.mesh_vert[first : first + count] @ turn.T + state.geom_xpos[geom]
        for point in there:
            assert np.linalg.norm(here - point, axis=1).min() < 1e-6


def test_problems_do_not_stop_the_rest(arm, tmp_path):
    (tmp_path / "assets" / "part.stl").unlink()
    found = read_looks(arm)
    assert [v.link for v in found.visuals] == ["world", "lower"]
    assert found.problems
    assert all("assets/part.stl: no such file" in problem for problem in found.problems)


def test_nothing_outside_the_folder_is_read(tmp_path):
    (tmp_path / "secret.stl").write_bytes(stl())
    inner = tmp_path / "mine"
    inner.mkdir()
    for folder in ("..", str(tmp_path), "."):
        path = inner / "arm.xml"
        path.write_text(
            ARM.replace('meshdir="assets"', f'meshdir="{folder}"').replace("part.stl", "../secret.stl")
        )
        assert len(read_looks(path).visuals) == 2


def test_a_scene_that_includes_a_robot_shows_it(arm):
    scene = arm.parent / "scene.xml"
    scene.write_text(f'<mujoco><include file="{arm.name}"/></mujoco>')
    assert [each.link for each in read_looks(scene).visuals] == [
        each.link for each in read_looks(arm).visuals
    ]
    scene.write_text('<mujoco><include file="../elsewhere.xml"/></mujoco>')
    looks = read_looks(scene)
    assert looks.visuals == ()
    assert "elsewhere.xml" in looks.problems[0]
