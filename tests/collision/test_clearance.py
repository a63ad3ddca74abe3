"""Distances of robots: against coal and dense samples; what is compared; bounds between samples; shapes from files."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.collision import Box, Clearance, Room, Tool, shapes_of
from linkwise.geometry.skeleton import body_poses

ARM = """<robot name="arm"><link name="base"><collision><geometry><box size="1 1 0.4"/></geometry>
<origin xyz="0 0 -0.2"/></collision></link>{links}</robot>"""
LINK = """<joint name="j{k}" type="revolute"><parent link="{parent}"/><child link="l{k}"/><origin xyz="{way}"/>
<axis xyz="{axis}"/><limit lower="-2.8" upper="2.8" velocity="2" effort="100"/></joint>
<link name="l{k}"><inertial><mass value="1"/><inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><origin xyz="0 0 0.25"/><geometry>{shape}</geometry></collision></link>"""
CYLINDER = '<cylinder radius="0.05" length="0.4"/>'


def arm(folder, shape=CYLINDER, joints=3) -> lw.Robot:
    """Three links of half a metre that stand upright; the joints turn about z, y, y."""
    parts = [
        LINK.format(
            k=k,
            parent=f"l{k - 1}" if k else "base",
            way="0 0 0.5" if k else "0 0 0.1",
            shape=shape,
            axis=axis,
        )
        for k, axis in zip(range(joints), ("0 0 1", "0 1 0", "0 1 0"), strict=False)
    ]
    path = folder / "arm.urdf"
    path.write_text(ARM.format(links="".join(parts)))
    return lw.load(path)


def _with_fingers(folder) -> lw.Robot:
    """The arm with two fingers at its third link."""
    text = (folder / "arm.urdf").read_text()
    for k, side in ((0, "0 0.04 0.5"), (1, "0 -0.04 0.5")):
        one = LINK.format(k=f"f{k}", parent="l2", way=side, shape='<sphere radius="0.05"/>', axis="1 0 0")
        text = text.replace("</robot>", one.replace('"lf', '"f') + "</robot>")
    (folder / "hand.urdf").write_text(text)
    return lw.load(folder / "hand.urdf")


@pytest.fixture(scope="module")
def puma() -> Clearance:
    return Clearance(lw.load("puma560"), Room(forbidden=[Box((0.3, 0.3, 0.2), (0.5, 0.6, 0.9))]))


def test_distances_are_those_of_coal(puma):
    coal = pytest.importorskip("coal", reason="coal is not installed")
    checks, rng = puma.checks, np.random.default_rng(0)
    for q in rng.uniform(puma.lower, puma.upper, (6, 6)):
        found = puma.distances(q)
        poses = [np.eye(4), *(pose.matrix for pose in body_poses(puma.robot, q))]

        def placed(k, poses=poses):
            c = checks.capsules[k]
            pose = poses[c.body + 1]
            start, end = (pose[:3, :3] @ p + pose[:3, 3] for p in (c.start, c.end))
            way = end - start
            z = way / max(np.linalg.norm(way), 1e-12) if way.any() else np.array([0, 0, 1.0])
            x = np.linalg.svd(z[None])[2][1]
            turn = np.column_stack([x, np.cross(z, x), z])
            shape = coal.Capsule(c.radius, float(np.linalg.norm(way)))
            return shape, coal.Transform3s(turn, (start + end) / 2)

        for n, (i, k) in enumerate(checks.pairs):
            theirs = coal.distance(*placed(i), *placed(k), coal.DistanceRequest(), coal.DistanceResult())
            if theirs > 0:
                assert found[n] == pytest.approx(theirs, abs=1e-6)
            else:
                assert found[n] <= 1e-6
        first = len(checks.pairs) + len(checks.grounded)
        for n, (k, box) in enumerate(checks.blocked):
            slab = checks.boxes[box]
            other = coal.Box(*slab.edges), coal.Transform3s(slab.pose.rotation, slab.pose.translation)
            theirs = coal.distance(*placed(k), *other, coal.DistanceRequest(), coal.DistanceResult())
            if theirs > 0:
                assert theirs - 2e-4 <= found[first + n] <= theirs + 1e-6


def test_kernel_and_arrays_agree_and_gradients_are_derivatives(puma):
    rng = np.random.default_rng(1)
    q = rng.uniform(puma.lower, puma.upper, (60, 6))
    values = puma.kernel(q)
    np.testing.assert_allclose(puma._of_arrays(q), values, atol=1e-12)
    weights = np.where(values > 0.01, rng.normal(size=values.shape), 0.0)
    weights[values > 1.0] = 0.0
    slope, way, h = puma.gradient(q, weights), rng.normal(size=q.shape), 1e-6
    numbers = ((puma.distances(q + h * way) - puma.distances(q - h * way)) * weights).sum(axis=1) / (2 * h)
    wrong = np.abs(numbers - (slope * way).sum(axis=1))
    assert np.median(wrong) < 1e-8
    assert (wrong < 1e-5).mean() > 0.9  # at a kink the nearest feature changes

    @lw.kernel(q=6)
    def nearest(q):
        found = puma.distances(q)
        least = found[0]
        for each in found[1:]:
            least = lw.minimum(least, each)
        return least

    np.testing.assert_allclose(nearest(q), puma.least(q), atol=1e-12)
    assert "double" in nearest.source("c")


def test_links_that_do_not_meet_against_floor_boxes_and_walls(tmp_path):
    """Capsules whose ends are no other capsule's ends: distances by hand from the poses, for kernel and arrays."""
    arm(tmp_path)
    text = (tmp_path / "arm.urdf").read_text().replace('<box size="1 1 0.4"/>', '<sphere radius="0.05"/>')
    (tmp_path / "ball.urdf").write_text(text)  # a capsule that does not move comes first
    robot = lw.load(tmp_path / "ball.urdf")
    box = Box((0.2, 0.1, 0.3), (0.5, 0.4, 0.8))
    low, high = np.array([-0.9, -1.1, -0.2]), np.array([1.0, 1.2, 1.3])
    found = Clearance(robot, Room(inside=Box(low, high), forbidden=[box], links=False))
    q = np.random.default_rng(2).uniform(-2.8, 2.8, (40, 3))
    values = found.kernel(q)
    np.testing.assert_allclose(found._of_arrays(q), values, atol=1e-12)
    capsules, along = found.checks.capsules, np.linspace(0.0, 1.0, 401)[:, None]
    for one in q[:12]:
        least = {kind: each.distance for kind, (each, _) in found.by_kind(one[None]).items()}
        poses = [np.eye(4), *(pose.matrix for pose in body_poses(robot, one))]
        moving = [c for c in capsules if c.body >= 0]
        ends = [[(poses[c.body + 1] @ [*p, 1.0])[:3] for p in (c.start, c.end)] for c in moving]
        radii = np.array([c.radius for c in moving])
        assert least["floor"] == pytest.approx(
            min(min(a[2], b[2]) - r for (a, b), r in zip(ends, radii, strict=True))
        )
        room = np.array([[np.minimum(p - low, high - p).min() for p in pair] for pair in ends])
        assert least["walls"] == pytest.approx((room.min(axis=1) - radii).min())
        lines = np.array([a + along * (b - a) for a, b in ends])
        outside = np.maximum(np.maximum(box.lower - lines, lines - box.upper), 0.0)
        away = (np.linalg.norm(outside, axis=2).min(axis=1) - radii).min()
        if away > 0.0:
            assert least["boxes"] == pytest.approx(away, abs=2e-3)


def test_what_is_compared(tmp_path):
    robot = arm(tmp_path)
    found = Clearance(robot)
    words = set(found.words)
    assert ("l0", "l2") in words  # not neighbours
    assert ("l0", "l1") not in words  # neighbours
    assert ("l2", "the floor") in words
    assert ("l2", "base") in words  # the box of the base
    assert found.contact(np.array([0.0, 2.7, 0.0])).second in ("the floor", "base")
    folded = found.contact(np.array([0.0, 1.4, 2.75]))
    assert {folded.first, folded.second} == {"l0", "l2"}
    assert folded.distance < 0.02
    assert "cm" in str(folded)
    alone = Clearance(robot, Room(links=False, floor=None))
    assert {second for _, second in alone.words} == {"base"}
    fingers = Clearance(_with_fingers(tmp_path))
    assert not {("f0", "f1"), ("f1", "f0")} & set(fingers.words)  # they close on each other
    assert ("l0", "f0") in fingers.words
    weightless = Clearance(robot.with_gravity((0, 0, 0)))
    assert "the floor" not in {second for _, second in weightless.words}


def test_what_always_touches_is_left_out_and_named(tmp_path):
    robot = arm(tmp_path)
    fat = Clearance(
        robot, Room(tool=Tool(0.7, frame="l2"))
    )  # reaches back to the first link in every posture
    assert "l0 and the tool" in fat.skipped
    assert ("l0", "l2") in fat.words
    free = Clearance(
        robot, Room(forbidden=[Box((-5, -5, -5), (5, 5, 5))])
    )  # a box around everything is not ignored
    assert free.least(np.zeros(3)) < -1.0


def test_floor_moves_and_tools_are_part_of_the_last_link(tmp_path):
    robot = arm(tmp_path)
    q = np.array([0.0, 2.0, 0.3])
    low, lower = (
        Clearance(robot, Room(floor=h, links=False)).by_kind(q[None])["floor"][0] for h in (0.0, -0.5)
    )
    assert lower.distance == pytest.approx(low.distance + 0.5)
    sphere = Clearance(robot, Room(tool=Tool(0.2, frame="l2"), links=False)).by_kind(q[None])["floor"][0]
    point = robot.pose(q, "l2")[2, 3]
    assert sphere.distance == pytest.approx(min(point - 0.2, low.distance), abs=1e-9)
    tilted = robot.with_gravity((-9.81, 0.0, 0.0))  # mounted on a wall: the floor is across gravity
    assert Clearance(tilted, Room(links=False)).contact(np.array([0.0, -1.0, 0.0])).distance < 0


def test_capsules_enclose_the_geometry_of_the_file(tmp_path):
    robot = arm(tmp_path)
    shapes = shapes_of(robot)
    assert shapes.notes == ("links: capsules around the collision geometry of arm.urdf",)
    assert [slab.edges for slab in shapes.slabs] == [(1.0, 1.0, 0.4)]
    angle = np.linspace(0, 2 * np.pi, 100)
    rim = np.column_stack([0.05 * np.cos(angle), 0.05 * np.sin(angle), np.full(100, 0.45)])
    for capsule in shapes.capsules:
        along = capsule.end - capsule.start
        part = np.clip((rim - capsule.start) @ along / (along @ along), 0, 1)
        away = np.linalg.norm(rim - capsule.start - part[:, None] * along, axis=1)
        assert away.max() <= capsule.radius
        assert capsule.radius < 0.06


def test_missing_meshes_and_robots_without_geometry_are_said_in_words(tmp_path):
    mesh = '<mesh filename="package://arm/meshes/link.stl"/>'
    shapes = shapes_of(arm(tmp_path, shape=mesh))
    assert "links without readable geometry" not in shapes.notes[0]
    text = " ".join(shapes.notes)
    assert "capsules along the kinematics with a radius of" in text
    assert "link.stl: no such file" in text
    shapes = shapes_of(lw.load("panda"))
    assert "the robot has no geometry" in shapes.notes[0]
    assert {c.radius for c in shapes_of(lw.load("panda"), radius=0.1).capsules} == {0.1}


def test_a_mesh_in_another_folder_and_a_mesh_as_tool(tmp_path):
    corners = 0.1 * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 5.0]])
    faces = ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))
    facets = "".join(
        "facet normal 0 0 0 outer loop "
        + " ".join(f"vertex {x} {y} {z}" for x, y, z in corners[list(f)])
        + " endloop endfacet "
        for f in faces
    )
    (tmp_path / "parts" / "arm" / "meshes").mkdir(parents=True)
    file = tmp_path / "parts" / "arm" / "meshes" / "link.stl"
    file.write_text(f"solid x {facets} endsolid x")
    robot = arm(tmp_path, shape='<mesh filename="package://arm/meshes/link.stl"/>')
    assert "no such file" not in " ".join(shapes_of(robot, meshes=[tmp_path / "parts"]).notes)
    shapes = shapes_of(arm(tmp_path), tool=Tool(mesh=file, frame="l2"))
    assert shapes.tool
    assert "the mesh link.stl" in shapes.notes[-1]
    with pytest.raises(lw.LinkwiseError, match=r"nowhere\.stl: no such file"):
        shapes_of(robot, tool=Tool(mesh=tmp_path / "nowhere.stl"))


def test_a_bound_holds_between_samples(tmp_path):
    found = Clearance(arm(tmp_path), Room(links=False))
    w = 2 * np.pi

    def motion(t):  # down and up again within a second, between samples at which the arm stands upright
        angle = 2.2 * np.sin(w * t) ** 2
        q = np.column_stack([0 * t, angle, 0 * t])
        qd = np.column_stack([0 * t, 2.2 * w * np.sin(2 * w * t), 0 * t])
        return q, qd

    most = np.array([0.0, 2.2 * w * 2 * w, 0.0])
    coarse = np.array([0.0, 0.5, 1.0])
    true = found.least(motion(np.linspace(0, 1, 5001))[0]).min()
    assert found.least(motion(coarse)[0]).min() > true + 0.05  # the samples do not show it
    for wanted in (true - 0.005, true + 0.005):
        bound, when = found.bound_along(motion, coarse, most, wanted)
        assert (bound >= wanted) == (wanted < true)
        assert bound <= true + 1e-9
        assert 0.0 <= when <= 1.0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Box((0, 0, 0), (0, 1, 1)), "lower corner below the upper one"),
        (lambda: Box((0, 0), (1, 1)), "expected three numbers"),
        (lambda: Room(forbidden=[Box((0, 0, 0))]), "finite corners"),
        (lambda: Room(floor=np.nan), "floor: expected a height"),
        (lambda: Room(clearance=-0.1), "clearance: expected a distance"),
        (lambda: Room(radius=0.0), "radius: expected a positive number"),
        (lambda: Tool(), "expected a positive radius"),
        (lambda: Clearance(lw.load("two_link"), Room(inside=Box(frames=["hand"]))), "no frame 'hand'"),
        (lambda: Clearance(lw.load("two_link"), Room(tool=Tool(0.1, frame="hand"))), "no frame 'hand'"),
        (lambda: Clearance(lw.load("two_link")).distances(np.zeros(3)), r"expected shape \(..., 2\)"),
    ],
)
def test_bad_rooms_are_named(make, words):
    with pytest.raises(ValueError, match=words):
        make()
