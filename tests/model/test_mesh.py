"""Meshes: reading untrusted files, volumes and inertias beside MuJoCo's."""

import struct

import numpy as np
import pytest

import linkwise as lw
from linkwise.formats.mesh import MeshError, read_mesh, solid_of
from linkwise.model.hull import convex_hull

RNG = np.random.default_rng(3)

# an L-shaped prism: not convex, not centred
OUTLINE = np.array([[0, 0], [3, 0], [3, 1], [1, 1], [1, 2], [0, 2]]) * 0.1 + [0.05, -0.02]
VERTICES = np.array([[x, y, z] for z in (0.03, 0.1) for x, y in OUTLINE]).astype(np.float32).astype(float)
HALF = [(0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5)]
FACES = [
    *((a, c, b) for a, b, c in HALF),
    *((a + 6, b + 6, c + 6) for a, b, c in HALF),
    *((k, (k + 1) % 6, (k + 1) % 6 + 6) for k in range(6)),
    *((k, (k + 1) % 6 + 6, k + 6) for k in range(6)),
]
POLYGONS = [
    (5, 4, 3, 2, 1, 0),
    (6, 7, 8, 9, 10, 11),
    *((k, (k + 1) % 6, (k + 1) % 6 + 6, k + 6) for k in range(6)),
]


def obj(vertices=VERTICES, faces=FACES) -> bytes:
    lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in np.asarray(vertices).tolist()]
    return "\n".join([*lines, *("f " + " ".join(str(k + 1) for k in face) for face in faces)]).encode()


def stl(vertices=VERTICES, faces=FACES) -> bytes:
    data = struct.pack("<80xI", len(faces))
    for face in faces:
        data += bytes(12) + b"".join(struct.pack("<3f", *vertices[k]) for k in face) + b"\0\0"
    return data


def msh(vertices=VERTICES, faces=FACES) -> bytes:
    counts = struct.pack("<4i", len(vertices), 1, 1, len(faces))
    texture = np.zeros(5, dtype="<f4").tobytes()  # one normal, one pair of coordinates
    return counts + np.asarray(vertices, "<f4").tobytes() + texture + np.asarray(faces, "<i4").tobytes()


def text_stl(vertices=VERTICES, faces=FACES) -> bytes:
    facets = (
        "facet normal 0 0 0\nouter loop\n"
        + "".join("vertex {!r} {!r} {!r}\n".format(*vertices[k].tolist()) for k in face)
        + "endloop\nendfacet\n"
        for face in faces
    )
    return f"solid part\n{''.join(facets)}endsolid part\n".encode()


BODY = '<body name="a"><joint name="j" axis="1 2 3"/>{geoms}</body>'


def robots(tmp_path, mesh: str, geoms: str, files: dict[str, bytes], head: str = ""):
    """The same file here and in MuJoCo."""
    mujoco = pytest.importorskip("mujoco")
    for name, data in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    path = tmp_path / "model.xml"
    path.write_text(
        f"<mujoco>{head}<asset>{mesh}</asset><worldbody>{BODY.format(geoms=geoms)}</worldbody></mujoco>"
    )
    return lw.load(path), mujoco.MjModel.from_xml_path(str(path))


def agree(robot, peer):
    own = next(link for link in robot.links if link.name == "a").inertia
    theirs = lw.compat.inertia_from_mujoco(
        peer.body_mass[1], peer.body_ipos[1], peer.body_iquat[1], peer.body_inertia[1]
    )
    np.testing.assert_allclose(own.mass, theirs.mass, rtol=1e-12)
    np.testing.assert_allclose(own.com, theirs.com, atol=1e-12)
    scale = np.abs(theirs.matrix_about_com).max()
    np.testing.assert_allclose(own.matrix_about_com, theirs.matrix_about_com, atol=1e-11 * scale)


GEOM = '<geom type="mesh" mesh="part" pos=".1 .2 .3" euler="10 20 30"/>'


@pytest.mark.parametrize("rule", ["exact", "legacy", "shell", "convex"])
@pytest.mark.parametrize("scale", ["1 1 1", ".5 -1.3 .7"])
def test_rules(tmp_path, rule, scale):
    mesh = f'<mesh file="part.obj" inertia="{rule}" scale="{scale}"/>'
    agree(*robots(tmp_path, mesh, GEOM, {"part.obj": obj()}))


def test_legacy_is_the_rule_where_none_is_named_and_it_overcounts(tmp_path):
    robot, peer = robots(tmp_path, '<mesh file="part.stl"/>', GEOM, {"part.stl": stl()})
    agree(robot, peer)
    volume = solid_of(read_mesh(stl(), ".stl"), "exact").size
    assert robot.links[-1].inertia.mass > 1000 * volume * 1.01


@pytest.mark.parametrize(
    ("mesh", "geom"),
    [
        ('<mesh name="part" file="part.obj" refpos=".1 .2 .3" refquat="1 2 3 4" scale="2 1 .5"/>', GEOM),
        ('<mesh file="part.obj" inertia="exact"/>', '<geom type="mesh" mesh="part" mass="3"/>'),
        ('<mesh file="part.obj" inertia="shell"/>', '<geom type="mesh" mesh="part" density="2"/>'),
        ('<mesh file="part.obj" inertia="convex" maxhullvert="64"/>', GEOM),
        ('<mesh file="part.obj" class="half"/>', GEOM + '<geom size=".1"/>'),
        (f'<mesh name="part" vertex="{" ".join(map(repr, VERTICES.ravel().tolist()))}"/>', GEOM),
    ],
)
def test_attributes(tmp_path, mesh, geom):
    head = '<default><default class="half"><mesh scale=".5 .5 .5" inertia="exact"/></default></default>'
    agree(*robots(tmp_path, mesh, geom, {"part.obj": obj()}, head))


@pytest.mark.parametrize("kind", ["sphere", "capsule", "cylinder", "box", "ellipsoid"])
@pytest.mark.parametrize("rule", ["exact", "shell"])
def test_solids_fitted_to_a_mesh(tmp_path, kind, rule):
    bent = (VERTICES + 0.01 * np.random.default_rng(1).normal(size=VERTICES.shape)).astype(np.float32)
    geom = f'<geom type="{kind}" mesh="part" pos=".1 .2 .3" euler="10 20 30" fitscale="1.1"/>'
    mesh = f'<mesh file="part.obj" inertia="{rule}"/>'
    agree(*robots(tmp_path, mesh, geom, {"part.obj": obj(bent)}))
    with pytest.raises(lw.ModelError, match="fitaabb"):
        robots(tmp_path, mesh, geom, {}, '<compiler fitaabb="true"/>')


def test_polygons(tmp_path):
    agree(*robots(tmp_path, '<mesh file="part.obj"/>', GEOM, {"part.obj": obj(faces=POLYGONS)}))
    bent = VERTICES + 0.01 * RNG.normal(size=VERTICES.shape)
    quads = [(0, 5, 4, 3), (0, 3, 2, 1), (6, 7, 8, 9), (6, 9, 10, 11), *POLYGONS[2:]]
    files = {"part.obj": obj(bent.astype(np.float32), quads)}
    agree(*robots(tmp_path, '<mesh file="part.obj" inertia="exact"/>', GEOM, files))


def test_msh(tmp_path):
    counts = struct.pack("<4i", len(VERTICES), 0, 0, len(FACES))
    data = counts + np.asarray(VERTICES, "<f4").tobytes() + np.asarray(FACES, "<i4").tobytes()
    agree(*robots(tmp_path, '<mesh file="part.msh"/>', GEOM, {"part.msh": data}))


def test_only_the_first_object_of_a_file_counts(tmp_path):
    second = "\no second\n" + "".join(f"v {x + 1} {y} {z}\n" for x, y, z in VERTICES)
    text = b"o first\n" + obj() + (second + "f -1 -2 -3\nf -4 -5/1 -6//2\n").encode()
    agree(*robots(tmp_path, '<mesh file="part.obj"/>', GEOM, {"part.obj": text}))


def test_the_formats_are_one_mesh():
    solids = [
        solid_of(read_mesh(data, end), "exact")
        for data, end in ((obj(), ".obj"), (stl(), ".stl"), (text_stl(), ".stl"), (msh(), ".msh"))
    ]
    for solid in solids[1:]:
        assert solid.size == pytest.approx(solids[0].size, rel=1e-14)
        np.testing.assert_allclose(solid.inertia, solids[0].inertia, rtol=1e-12)
    assert solids[0].size == pytest.approx(0.04 * 0.07, rel=1e-6)


def test_hull():
    scipy = pytest.importorskip("scipy.spatial")
    for points in (
        RNG.normal(size=(300, 3)),
        np.array([[i, j, k] for i in range(4) for j in range(4) for k in range(4)]) * 1.0,
    ):
        faces = convex_hull(points)
        corners = points[faces] - points.mean(axis=0)
        signed = np.linalg.det(corners) / 6
        assert (signed > -1e-12).all()
        assert signed.sum() == pytest.approx(scipy.ConvexHull(points).volume, rel=1e-12)
    flat = np.c_[RNG.normal(size=(20, 2)), np.zeros(20)]
    with pytest.raises(ValueError, match="one plane"):
        convex_hull(flat)


@pytest.mark.parametrize(
    ("data", "ending", "message"),
    [
        (b"", ".stl", "too short"),
        (struct.pack("<80xI", 4_000_000_000), ".stl", "4000000000 triangles; expected 1 to 200000"),
        (stl()[:-10], ".stl", "ends before the last"),
        (struct.pack("<80xI", 1) + struct.pack("<12f", *[float("nan")] * 12) + b"\0\0", ".stl", "finite"),
        (b"solid x\nfacet\nvertex 1 2 3\nendsolid", ".stl", "three vertices"),
        (b"solid x\nfacet\nvertex 1 2 x\nvertex 1 2 3\nvertex 1 2 3\n", ".stl", "'x' is not a number"),
        (b"vn 0 0 1\n", ".obj", "no vertices"),
        (b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 4\n", ".obj", "not there"),
        (b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 -4\n", ".obj", "not there"),
        (b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 0\n", ".obj", "corner"),
        (b"v 0 0\nf 1 1 1\n", ".obj", "three numbers"),
        (b"v 1e999 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", ".obj", "finite"),
        (b"v 1 0 0\nf 1 1\n", ".obj", "2 corners"),
        (b"x", ".dae", r"\.stl, \.obj, \.msh files, not \.dae"),
        (b"", ".msh", "too short"),
        (struct.pack("<4i", 10, 0, 0, 2**30), ".msh", "1073741824 triangles"),
        (msh()[:-4], ".msh", "and not the"),
    ],
)
def test_damaged_files(data, ending, message):
    with pytest.raises(MeshError, match=message):
        read_mesh(data, ending)


@pytest.mark.parametrize(
    ("faces", "rule", "message"),
    [
        ([(c, b, a) for a, b, c in FACES], "exact", "negative"),
        (FACES[:4], "exact", "no volume"),
        ([(0, 0, 0)], "shell", "no area"),
    ],
)
def test_what_encloses_nothing(faces, rule, message):
    with pytest.raises(MeshError, match=message):
        solid_of(read_mesh(obj(faces=faces), ".obj"), rule)


def model(tmp_path, mesh: str, head: str = "", folder: str = "."):
    place = tmp_path / folder / "model.xml"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(
        f"<mujoco>{head}<asset>{mesh}</asset><worldbody>{BODY.format(geoms=GEOM)}</worldbody></mujoco>"
    )
    return lw.load(place)


def test_the_missing_file_is_named(tmp_path):
    with pytest.raises(lw.ModelError, match=r"mesh file '.*meshes/part\.stl' is missing"):
        model(tmp_path, '<mesh file="part.stl"/>', '<compiler meshdir="meshes"/>')


def test_files_are_opened_only_in_the_folders_of_the_model(tmp_path):
    (tmp_path / "secret.stl").write_bytes(stl())
    (tmp_path / "robot" / "meshes").mkdir(parents=True)
    (tmp_path / "robot" / "part.stl").symlink_to(tmp_path / "secret.stl")
    for file in ("../secret.stl", str(tmp_path / "secret.stl"), "part.stl"):
        with pytest.raises(lw.ModelError, match=r"lies outside|expected a path relative"):
            model(tmp_path, f'<mesh name="part" file="{file}"/>', folder="robot")
    (tmp_path / "robot" / "linked").symlink_to(tmp_path)
    for folder in ("..", str(tmp_path), "linked", "meshes/../..", "\\\\server\\share", "C:/"):
        compiler = f'<compiler meshdir="{folder}"/>'
        with pytest.raises(lw.ModelError, match=r"lies outside|expected a path relative"):
            model(tmp_path, '<mesh name="part" file="secret.stl"/>', compiler, "robot")
    (tmp_path / "robot" / "meshes" / "part.stl").write_bytes(stl())
    (tmp_path / "robot" / "own").symlink_to(tmp_path / "robot" / "meshes")
    for folder in ("meshes", "own", "meshes/../meshes"):
        compiler = f'<compiler meshdir="{folder}"/>'
        assert model(tmp_path, '<mesh name="part" file="part.stl"/>', compiler, "robot").dof == 1


def test_a_hull_that_mujoco_would_cut_is_refused(tmp_path):
    (tmp_path / "part.obj").write_bytes(obj())
    with pytest.raises(lw.ModelError, match=r"10 vertices, and a hull cut to maxhullvert=6"):
        model(tmp_path, '<mesh file="part.obj" inertia="convex" maxhullvert="6"/>')


def test_the_switch_of_older_versions(tmp_path):
    (tmp_path / "part.obj").write_bytes(obj())
    robot = model(tmp_path, '<mesh file="part.obj"/>', '<compiler exactmeshinertia="true"/>')
    exact = solid_of(read_mesh(obj(), ".obj"), "exact").size
    assert robot.links[-1].inertia.mass == pytest.approx(1000 * exact, rel=1e-12)
