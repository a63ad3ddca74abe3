"""Spheres cover meshes; kernels for collisions and clearances agree with each other, with coal and with C."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
from mesh_arm import Coal, mesh_arm

import linkwise as lw
from linkwise.collision import (
    Box,
    Cuboid,
    HalfSpace,
    HeightField,
    PointCloud,
    Rod,
    Sphere,
    Validity,
    World,
    cover,
    read_world,
    spheres_of,
    validity_of,
    write_world,
)
from linkwise.collision.body_pairs import body_poses_of
from linkwise.collision.clearance import position_range
from linkwise.collision.cover import Cover
from linkwise.collision.fit import divided_edges
from linkwise.collision.spheres import FINE_EDGE, Spheres, _Triangles
from linkwise.collision.validity.kernel import BoundWorld
from linkwise.collision.world import COLUMNS
from linkwise.compiler.ir.interpret import run_nest
from linkwise.geometry.solids import box


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    file = mesh_arm(tmp_path_factory.mktemp("arm"), seed=2, height=0.14)
    return file, lw.load(file)


def some_world(seed: int) -> World:
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turn *= np.sign(np.linalg.det(turn))

    def place():
        return rng.uniform((-1.0, -1.0, 0.0), (1.0, 1.0, 1.2))

    return World(
        [
            *(Sphere(place(), 0.1) for _ in range(3)),
            *(Rod(place(), place(), 0.04) for _ in range(2)),
            *(Cuboid(place(), (0.1, 0.2, 0.3)) for _ in range(2)),
            Cuboid(place(), (0.3, 0.1, 0.2), turn),
            HalfSpace((0.1, 0.0, 1.0), -0.3),
        ]
    )


def postures(robot, count, seed=0):
    return np.random.default_rng(seed).uniform(-2.8, 2.8, (count, robot.nq))


@pytest.mark.parametrize("seed", [0, 1])
def test_spheres_cover_the_meshes(tmp_path, seed):
    """Random points of every triangle lie in a sphere of its body."""
    robot = lw.load(mesh_arm(tmp_path, seed, joints=3))
    rng = np.random.default_rng(seed)
    for count in (None, 60):
        spheres = spheres_of(robot, count=count)
        for body, parts in _Triangles(robot, ()).triangles.items():
            triangles = np.concatenate(parts)
            share = rng.dirichlet(np.ones(3), (5, len(triangles)))
            points = np.einsum("ktc,tcx->ktx", share, triangles).reshape(-1, 3)
            mine = spheres.of(body)
            away = np.linalg.norm(points[:, None] - spheres.centre[mine], axis=-1) - spheres.radius[mine]
            assert away.min(axis=1).max() <= 0.0
    assert spheres_of(robot, count=60).excess < spheres_of(robot, count=8).excess
    assert np.array_equal(spheres_of(robot).centre, spheres_of(robot, count=7 * 3).centre)


def test_small_spheres_cover_what_the_meshes_have_in_larger_ones(arm):
    """Random points of every triangle: in a sphere, and where that is divided in a group and a small sphere of it."""
    _, robot = arm
    checks, rng = validity_of(robot), np.random.default_rng(0)
    spheres, small = checks.spheres, checks.pairs.small
    assert len(small.groups) > 4
    assert small.rows[:, 3].max() < spheres.radius.max()

    def inside(points, rows):
        return np.linalg.norm(points[:, None] - rows[:, :3], axis=-1) <= rows[:, 3]

    for body, parts in _Triangles(robot, ()).triangles.items():
        triangles = np.concatenate(parts)
        share = rng.dirichlet(np.ones(3), (20, len(triangles)))
        points = np.einsum("ktc,tcx->ktx", share, triangles).reshape(-1, 3)
        mine = spheres.of(body)
        in_spheres = inside(points, np.column_stack([spheres.centre[mine], spheres.radius[mine]]))
        covered = np.zeros(len(points), bool)
        for column, sphere in enumerate(mine):
            groups = checks.pairs.of(sphere)
            if not groups:
                covered |= in_spheres[:, column]
            for group in groups:
                rows = small.rows[small.starts[group] : small.starts[group + 1]]
                in_group = inside(points, small.groups[group][None])[:, 0]
                covered |= in_spheres[:, column] & in_group & inside(points, rows).any(axis=1)
        assert covered.all()


def test_small_spheres_reach_little_beyond_a_plate():
    """Spheres about single triangles count with all that they reach beyond the surface."""
    mesh = box((0.1, 0.1, 0.02))
    whole = Cover([mesh.vertices[mesh.faces]])
    for excess in (4e-3, 3e-3):
        found = whole.part(divided_edges(whole.triangles, FINE_EDGE), excess, 10_000)
        assert (np.abs(found.centre[:, 2]) + found.radius - 0.01).max() < 1.5 * excess + 1e-3


def test_small_spheres_give_room_at_a_wrist(arm):
    """Fewer free postures are refused than by the spheres themselves, and none that collides is missed: by coal."""
    file, robot = arm
    checks, plain = validity_of(robot), Validity(robot, divided=False)
    q = postures(robot, 1500, 4)
    refused, refused_plain = checks.in_collision(q), plain.in_collision(q)
    touching = Coal(file, robot, set(checks.pairs.compared), World())(q)
    assert not (touching & ~refused).any()
    assert (refused & ~touching).mean() < 0.7 * (refused_plain & ~touching).mean()


def test_more_margin_is_larger_everywhere(arm):
    _, robot = arm
    plain, wide = spheres_of(robot), spheres_of(robot, margin=0.01)
    assert np.allclose(wide.radius - plain.radius, 0.01)
    assert isinstance(plain, Spheres)
    assert spheres_of(robot) is plain


@pytest.mark.parametrize("seed", [0, 1])
def test_no_collision_of_meshes_is_missed(arm, seed):
    """coal on the meshes: what touches there touches here."""
    file, robot = arm
    checks, world = validity_of(robot), some_world(seed)
    q = postures(robot, 1500, seed)
    meshes = Coal(file, robot, set(checks.pairs.compared), world)(q)
    spheres = robot.in_collision(q, world)
    assert not (meshes & ~spheres).any()
    assert 0.05 < meshes.mean() < spheres.mean() < 0.98


def test_collisions_are_negative_distances(arm):
    _, robot = arm
    checks = validity_of(robot)
    for seed in range(4):
        q, world = postures(robot, 500, seed), some_world(seed)
        distance = checks.distance(q, world)
        sure = np.abs(distance) > 1e-5
        assert ((distance < 0.0) == checks.in_collision(q, world))[sure].all()
        found = checks.clearances(q, world)
        missing = np.concatenate([found.world, found.itself], axis=1) - checks.wanted(0.03)
        sure = np.abs(missing).min(axis=1) > 1e-5
        assert ((missing < 0.0).any(axis=1) == checks.in_collision(q, world, clearance=0.03))[sure].all()
        near, gradient = checks.distance_gradient(q[:50], world)
        assert np.abs(near - distance[:50]).max() < 1e-12
        h = 1e-6
        for k in range(robot.nq):
            step = h * np.eye(robot.nq)[k]
            slope = (checks.distance(q[:50] + step, world) - checks.distance(q[:50] - step, world)) / (2 * h)
            assert (
                np.quantile(np.abs(slope - gradient[:, k]), 0.9) < 1e-6
            )  # it jumps where another pair is nearest


def test_every_body_of_robots_with_many_meets_obstacles():
    """17 bodies are compared in blocks that overlap; a small obstacle in each sphere is met."""
    robot = lw.random_robot(5, 17, tree=True, joints="R")
    names = [(a, b) for a in robot.link_names for b in robot.link_names if a != b]
    checks = Validity(robot, skip=names)
    q = robot.random(np.random.default_rng(1))
    for body, centre in zip(checks.spheres.body, checks.spheres.centre, strict=True):
        pose = body_poses_of(robot, q[None])[0, body]
        place = pose[:, :3] @ centre + pose[:, 3]
        for solid in (Sphere(place, 1e-3), Rod(place, place + 1e-3, 1e-3), Cuboid(place, (1e-3, 1e-3, 1e-3))):
            met = checks.in_collision(q, World([solid]))
            assert met == (checks.distance(q, World([solid])) < 0.0)
            assert met or body < 0
    assert not checks.in_collision(q, World([Sphere((50.0, 0.0, 0.0), 1e-3)]))


def test_the_excess_is_that_of_all_points():
    """Points whose bounds are small are not looked at: the largest distance is the same."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        corner = rng.normal(size=(400, 1, 3))
        triangles = corner + 0.05 * rng.normal(size=(400, 3, 3))
        centre, radius = corner[::20, 0], rng.uniform(0.1, 0.5, 20)
        found = cover.excess_of(centre, radius, triangles)
        k = np.arange(cover._SHOWN) + 0.5
        height, turn = 1.0 - 2.0 * k / cover._SHOWN, np.pi * (1.0 + 5.0**0.5) * k
        width = np.sqrt(1.0 - height**2)
        way = np.stack([width * np.cos(turn), width * np.sin(turn), height], axis=-1)
        points = (centre[:, None] + radius[:, None, None] * way).reshape(-1, 3)
        inside = (np.linalg.norm(points[:, None] - centre, axis=-1) < radius - 1e-5).any(axis=1)
        surface = np.concatenate([triangles.reshape(-1, 3), triangles.mean(axis=1)])
        far = np.linalg.norm(points[~inside][:, None] - surface, axis=-1).min(axis=1).max()
        assert abs(found - far) < 1e-5
        assert cover.excess_of(centre, radius, triangles, 2.0 * far) == 2.0 * far


def test_a_state_does_not_depend_on_its_neighbours(arm):
    """Early exits of a group of lanes change nothing: one by one, in any order."""
    _, robot = arm
    checks, world, q = validity_of(robot), some_world(3), postures(robot, 67, 5)
    whole, distances = checks.in_collision(q, world), checks.clearances(q, world)
    order = np.random.default_rng(0).permutation(len(q))
    assert (checks.in_collision(q[order], world) == whole[order]).all()
    assert (checks.in_collision(q[7], world) == whole[7]).all()
    other = checks.clearances(q[order], world)
    assert np.array_equal(other.world, distances.world[order])
    assert np.array_equal(other.itself, distances.itself[order])


def test_positions_that_are_not_numbers_collide(arm):
    _, robot = arm
    q = np.zeros((3, robot.nq))
    q[0, 2], q[1, 4], q[2, 0] = np.nan, np.inf, 1e30
    assert validity_of(robot).in_collision(q, []).all()


def test_c_and_the_interpreter_return_the_same_bits(arm, tmp_path):
    _, robot = arm
    checks, world = validity_of(robot), some_world(0)
    q = postures(robot, 40, 9).astype(np.float32)
    kernel = checks.collision_kernel
    bound = BoundWorld(world, "float32", 0.01)
    (wanted,) = kernel(q, bound, 1)
    assert 0.0 < wanted.mean() < 1.0
    program, tables = kernel.program, [bound.tables[kind] for kind in COLUMNS]
    for row, value in zip(q[:4], wanted[:4], strict=True):
        memory = {kind: table.ravel() for kind, table in bound.tables.items()}
        out = np.zeros(1, np.float32)
        memory |= {"q": row, "margin": bound.margin, "collides": out}
        run_nest(program, memory, **{f"count_{kind}": len(bound.tables[kind]) for kind in COLUMNS})
        assert out[0] == value[0]
    if (compiler := shutil.which("cc")) is None:
        pytest.skip("no C compiler")
    source, library = tmp_path / "check.c", tmp_path / "check.so"
    source.write_text(kernel.source("c"), encoding="utf-8")
    flags = ["-std=c99", "-O1", "-ffp-contract=off", "-Wall", "-Werror", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "-o", library, source, "-lm"], check=True)
    function = ctypes.CDLL(str(library)).in_collision
    rooms = [np.empty(array.columns, np.float32) for array in program.arrays if array.kind == "scratch"]
    for row, value in zip(q, wanted, strict=True):
        out, one = np.zeros(1, np.float32), np.ascontiguousarray(row)
        given = [one, bound.margin, *tables, out, *rooms]
        counts = [ctypes.c_long(len(table)) for table in tables]
        function(*(ctypes.c_void_p(array.ctypes.data) for array in given), *counts)
        assert out[0] == value[0]


def test_height_fields_and_point_clouds_are_covered():
    rng = np.random.default_rng(0)
    heights = rng.uniform(0.0, 0.3, (9, 7))
    field = HeightField(heights, 0.1, (-0.4, 0.2))
    rows = World([field]).solids["boxes"]
    x, y = rng.uniform(0.0, 0.8, 2000), rng.uniform(0.0, 0.6, 2000)
    i, k = (x / 0.1).astype(int), (y / 0.1).astype(int)
    u, v = x / 0.1 - i, y / 0.1 - k
    z = (1 - u) * ((1 - v) * heights[i, k] + v * heights[i, k + 1])
    z += u * ((1 - v) * heights[i + 1, k] + v * heights[i + 1, k + 1])
    points = np.stack([x - 0.4, y + 0.2, z], axis=-1)
    inside = (np.abs(points[:, None] - rows[:, :3]) <= rows[:, 3:] + 1e-12).all(axis=-1)
    assert inside.any(axis=1).all()
    cloud = rng.normal(size=(800, 3)) * 0.2
    rows = World([PointCloud(cloud, radius=0.02)]).solids["boxes"]
    assert len(rows) < 800
    around = (np.abs(cloud[:, None] - rows[:, :3]) <= rows[:, 3:] - 0.02 + 1e-9).all(axis=-1)
    assert around.any(axis=1).all()


def test_world_files(tmp_path):
    world = World(
        [*some_world(0).obstacles, Box((0, 0, 0), (1, 1, 1)), HeightField([[0.0, 0.1], [0.2, 0.3]], 0.5),
         PointCloud([[0.0, 0.0, 1.0]])]
    )  # fmt: skip
    file = tmp_path / "world.json"
    write_world(world, file)
    again = read_world(file)
    for kind in COLUMNS:
        assert np.allclose(again.solids[kind], world.solids[kind], atol=1e-12)
    wrong = [
        ("[]", "expected"),
        ("{", "not a JSON file"),
        ('{"obstacles": [{"type": "ball"}]}', "obstacle 1: expected a"),
        ('{"obstacles": [{"type": "sphere", "centre": [0, 0, 0]}]}', "needs 'radius'"),
        ('{"obstacles": [{"type": "sphere", "centre": [0, 0], "radius": 1}]}', "three numbers"),
        ('{"obstacles": [{"type": "sphere", "centre": [0, 0, NaN], "radius": 1}]}', "finite"),
        ('{"obstacles": [{"type": "sphere", "centre": [0, 0, 0], "radius": -1}]}', "radius"),
        ('{"obstacles": [{"type": "sphere", "centre": [0, 0, 0], "radius": 1, "colour": 2}]}', "unknown key"),
        ('{"obstacles": [{"type": "box", "lower": [0, 0, 0]}]}', "a box needs"),
        ('{"obstacles": [{"type": "half_space", "normal": [0, 0, 0], "height": 0}]}', "direction"),
        ('{"obstacles": [{"type": "point_cloud", "points": "all"}]}', "expected numbers"),
    ]
    for text, words in wrong:
        file.write_text(text)
        with pytest.raises(lw.ModelError, match=words):
            read_world(file)


def test_pairs_by_name_and_by_srdf(arm, tmp_path):
    _, robot = arm
    before = validity_of(robot).pairs
    first = next(iter(before.compared))
    names = tuple("link0" if body < 0 else robot.moving_joints[body].body_link for body in first)
    skipped = Validity(robot, skip=[names])
    assert first not in skipped.pairs.compared
    assert skipped.pairs.left_out == (names,)
    srdf = tmp_path / "arm.srdf"
    srdf.write_text(
        f'<robot name="arm"><disable_collisions link1="{names[0]}" link2="{names[1]}" reason="Never"/>'
        '<disable_collisions link1="link0" link2="other" reason="Never"/></robot>'
    )
    assert first not in Validity(robot, srdf=srdf).pairs.compared
    assert (-1, 0) in Validity(robot, compare=[("link0", "link1")]).pairs.compared
    assert (-1, 0) not in before.compared
    with pytest.raises(lw.LinkwiseError, match="no link 'linkk1'"):
        Validity(robot, skip=[("link0", "linkk1")])
    srdf.write_text('<!DOCTYPE robot [<!ENTITY a "b">]><robot name="&a;"/>')
    with pytest.raises(lw.ModelError):
        Validity(robot, srdf=srdf)


def test_links_that_are_fixed_to_each_other_are_left_out_together(tmp_path, recwarn):
    """``skip`` of one pair of links did nothing, in silence, where a tool is fixed to one of them."""
    box = '<collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision>'
    inertial = (
        '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    links = "".join(f'<link name="{name}">{inertial}{box}</link>' for name in ("base", "arm", "hand", "tool"))
    joints = "".join(
        f'<joint name="{child}_joint" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        '<origin xyz="0 0 0.4"/><axis xyz="0 1 0"/><limit lower="-0.5" upper="0.5" effort="1" velocity="1"/></joint>'
        for parent, child, kind in (
            ("base", "arm", "revolute"),
            ("arm", "hand", "revolute"),
            ("hand", "tool", "fixed"),
        )
    )
    file = tmp_path / "tool.urdf"
    file.write_text(f'<robot name="tool">{links}{joints}</robot>')
    robot = lw.load(file)
    pairs = validity_of(robot).pairs
    assert pairs.never == (("base", "hand"), ("base", "tool"))
    assert not Validity(robot, skip=pairs.never).pairs.compared
    assert not Validity(robot, skip=[("hand", "base"), ("tool", "base")]).pairs.compared
    assert not recwarn
    with pytest.warns(lw.ModelWarning, match="compared all the same.*: base and tool$"):
        assert (-1, 1) in Validity(robot, skip=[("base", "hand")]).pairs.compared


def test_every_pair_of_bodies_is_listed(arm):
    """Compared, or in a list that says why not; pairs that never touch are compared and listed."""
    for robot in (arm[1], lw.load("panda"), lw.load("ur10e")):
        checks = validity_of(robot)
        pairs, bodies = checks.pairs, checks.spheres.bodies

        def name(body, robot=robot):
            return robot.base if body == -1 else robot.moving_joints[body].body_link

        compared = {(name(a), name(b)) for a, b in pairs.compared}
        lists = [compared, set(pairs.always), set(pairs.left_out), set(pairs.connected)]
        every = {(name(a), name(b)) for a in bodies for b in bodies if a < b}
        assert set().union(*lists) == every
        assert sum(map(len, lists)) == len(every)
        assert set(pairs.never) <= compared
        assert not set(pairs.never) & set(pairs.always)
        q = np.random.default_rng(1).uniform(*position_range(robot, None, None), (200, robot.nq))
        words = checks.words[len(checks._checked.moving) :]
        touching = (checks.clearances(q).itself < 0.0).any(axis=0)
        often = {word for word, touches in zip(words, touching, strict=True) if touches}
        rare = {f"{a} and {b}" for a, b in pairs.never}
        assert not rare & often
        fewer = Validity(robot, skip=pairs.never)
        assert not set(fewer.pairs.never)
        assert set(fewer.pairs.left_out) == set(pairs.never)


def test_links_that_overlap_in_all_postures_are_left_out(tmp_path):
    """A thigh inside the trunk, by one part or another of it: each part does in less than 90 % of the postures."""
    collision = '<collision><origin xyz="{at}"/><geometry><{shape}/></geometry></collision>'
    inertial = (
        '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    shapes = (
        "box size='0.6 0.4 0.3'",
        "sphere radius='0.02'",
        "box size='0.08 0.5 0.08'",
        "box size='0.1 0.1 0.2'",
    )
    places = ("0 0 0", "0 0.3 0", "0 0 0", "0 0.6 0")
    links = [
        f'<link name="l{k}">{inertial}{collision.format(at=at, shape=shape)}</link>'
        for k, (at, shape) in enumerate(zip(places, shapes, strict=True))
    ]
    joints = [
        f'<joint name="j{k}" type="revolute"><parent link="l{k}"/><child link="l{k + 1}"/><axis xyz="{axis}"/>'
        '<limit lower="-1.5" upper="1.5" effort="10" velocity="1"/></joint>'
        for k, axis in enumerate(("1 0 0", "0 1 0", "0 1 0"))
    ]
    file = tmp_path / "trunk.urdf"
    file.write_text('<robot name="trunk">' + "".join(links + joints) + "</robot>")
    robot = lw.load(file)
    pairs = validity_of(robot).pairs
    assert ("l0", "l2") in pairs.always
    assert ("l0", "l3") not in pairs.always
    assert not validity_of(robot).in_collision(postures(robot, 500) / 2).all()
    assert ("l0", "l2") not in Validity(robot, compare=[("l0", "l2")]).pairs.always
    assert Validity(robot, compare=[("l0", "l2")]).in_collision(postures(robot, 500) / 2).all()


def test_bundled_robots_have_room_to_move():
    """Robots without geometry: spheres along the kinematics do not collide everywhere."""
    for name in lw.robots():
        robot = lw.load(name)
        limits = robot.limits
        lower = np.where(np.isfinite(limits.lower), limits.lower, -3.0)
        upper = np.where(np.isfinite(limits.upper), limits.upper, 3.0)
        q = np.random.default_rng(0).uniform(lower, upper, (300, robot.nq))
        assert robot.in_collision(q).mean() < 0.75, name
        assert robot.in_collision(q, [Sphere((0.0, 0.0, 0.0), 10.0)]).all()


def test_no_more_small_spheres_than_wanted_contain_any_triangles():
    """Solids, plates and loose triangles: with few spheres they are larger, and contain the triangles still."""
    rng = np.random.default_rng(3)
    solid, plate = box((0.2, 0.1, 0.3)), box((0.3, 0.3, 2e-3))
    loose = rng.uniform(-0.2, 0.2, (40, 1, 3)) + rng.normal(0.0, 0.02, (40, 3, 3))
    for triangles in (
        solid.vertices[solid.faces],
        plate.vertices[plate.faces],
        loose,
        loose[:1],
        loose[:1] * 0,
    ):
        cover = Cover([triangles])
        fine = divided_edges(cover.triangles, FINE_EDGE)
        radii = []
        for most in (6, 30):
            found = cover.part(fine, 4e-3, most)
            assert len(found.radius) <= most
            away = np.linalg.norm(fine - found.centre[found.owner][:, None], axis=-1)
            assert (away.max(axis=1) <= found.radius[found.owner] + 1e-12).all()
            radii.append(found.radius.max())
        assert radii[1] <= radii[0]


def test_triangles_beside_the_chosen_ones_add_few_spheres():
    """Far more separate triangles than those by which spheres are chosen: the spheres grow instead of becoming many."""
    rng = np.random.default_rng(0)
    triangles = rng.uniform(-0.5, 0.5, (1500, 1, 3)) + 0.004 * rng.normal(size=(1500, 3, 3))
    body = Cover([triangles])
    found = body.spheres(0.03)
    count = body.count(0.03)
    assert len(triangles) > 2 * cover.CHOSEN > 2 * count
    assert count < len(found.radius) <= 1.5 * count + 2
    far = np.linalg.norm(body.triangles - found.centre[found.owner][:, None], axis=-1).max(axis=1)
    assert (far <= found.radius[found.owner] + 1e-12).all()


def test_equal_links_are_covered_once(tmp_path, monkeypatch):
    """Two equal fingers and a palm: two coverings, and the fingers have the same spheres."""
    made = []
    monkeypatch.setenv("LINKWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("linkwise.collision.spheres.Cover", lambda parts: made.append(parts) or Cover(parts))
    file = mesh_arm(tmp_path, seed=5, joints=2)
    text = (tmp_path / "arm5.urdf").read_text().replace('filename="link2.stl"', 'filename="link1.stl"')
    (tmp_path / "arm5.urdf").write_text(text)
    spheres = spheres_of(lw.load(file), count=21)
    assert len(made) == 2
    first, second = spheres.of(0), spheres.of(1)
    assert np.array_equal(spheres.centre[first], spheres.centre[second])
    assert np.array_equal(spheres.radius[first], spheres.radius[second])
    assert spheres.divide is not None
    small = spheres.divide(tuple(range(len(spheres))))
    places = [small.groups[np.isin(small.parent, numbers)] for numbers in (first, second)]
    assert len(places[0]) > 0
    assert np.array_equal(*places)


def test_a_body_with_very_many_triangles_is_moved_no_farther_than_is_told(monkeypatch):
    """Corners go to the nearest points of a grid; none of the surface is farther from what is left than that."""
    rng = np.random.default_rng(3)
    centre = np.repeat(rng.uniform(-0.3, 0.5, (800, 1, 3)), 5, axis=0)
    body = [
        centre[:2500] + rng.normal(scale=0.0005, size=(2500, 3, 3)),
        centre[2500:] + rng.normal(size=(1500, 3, 3)),
    ]
    assert cover._with_fewer(body, 1.0) == (body, 0.0)
    monkeypatch.setattr(cover, "MOST_TRIANGLES", 100)
    found, moved = cover._with_fewer(body, 1.0)
    assert sum(map(len, found)) < 4000
    assert 0.0 < moved <= 0.5 * np.sqrt(3.0) * max(1.0 / cover.FINEST, 2e-3)
    for part, fewer in zip(body, found, strict=True):
        corners, places = part.reshape(-1, 3)[::7], fewer.reshape(-1, 3)
        nearest = np.array([np.linalg.norm(places - corner, axis=1).min() for corner in corners])
        assert nearest.max() <= moved * (1.0 + 1e-9)
