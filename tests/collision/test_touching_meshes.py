"""Meshes that touch: by their triangles, by construction, and in the pairs of links that are compared."""

from itertools import product

import numpy as np
import pytest
from mesh_arm import mesh_arm

import linkwise as lw
from linkwise.collision import Validity, validity_of
from linkwise.collision.body_pairs import body_poses_of
from linkwise.collision.checks import are_apart
from linkwise.collision.cover import Cover, _beside
from linkwise.collision.spheres import enclosing_sphere, enclosing_spheres
from linkwise.collision.touching import Surface, relative, touching
from linkwise.errors import ModelWarning
from linkwise.geometry.solids import box
from linkwise.model import Transform

LINK = """<link name="{0}"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>{1}</link>"""
BOX = '<collision><origin xyz="{0}"/><geometry><box size="{1}"/></geometry></collision>'
JOINT = """<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/><axis xyz="0 0 1"/>
<limit lower="-3" upper="3" effort="9" velocity="2"/></joint>"""


def surface(edges, pose=None):
    mesh = box(edges) if pose is None else box(edges).moved(pose)
    return Surface([mesh.vertices[mesh.faces]])


def turns(rng, count):
    found = np.linalg.qr(rng.normal(size=(count, 3, 3)))[0]
    return found * np.sign(np.linalg.det(found))[:, None, None]


def depth_of_boxes(half, other, turn, shift):
    """By separating axes: above 0 where two boxes overlap [m]."""
    axes = [*np.eye(3), *turn.T, *(np.cross(a, b) for a, b in product(np.eye(3), turn.T))]
    axes = [axis / np.linalg.norm(axis) for axis in axes if np.linalg.norm(axis) > 1e-6]
    return min(
        np.abs(axis) @ half + np.abs(turn.T @ axis) @ other - abs(float(axis @ shift)) for axis in axes
    )


def test_boxes_touch_where_no_axis_separates_them():
    rng = np.random.default_rng(4)
    for _ in range(6):
        one, two = rng.uniform(0.02, 0.5, (2, 3))
        turn, shift = turns(rng, 200), rng.uniform(-0.3, 0.3, (200, 3))
        touch = touching(surface(one), surface(two), np.concatenate([turn, shift[:, :, None]], axis=2))
        depth = np.array([depth_of_boxes(one / 2, two / 2, *each) for each in zip(turn, shift, strict=True)])
        sure = np.abs(depth) > 3e-4
        assert touch.any()
        assert not touch.all()
        assert (touch == (depth > 0.0))[sure].all()


def test_faces_that_lie_on_each_other_and_boxes_inside_touch():
    shift = np.array([[0.1, 0.01, 0.02], [0.1005, 0.0, 0.0], [0.0, 0.0, 0.0], [0.02, 0.0, 0.0]])
    poses = np.concatenate([np.tile(np.eye(3), (4, 1, 1)), shift[:, :, None]], axis=2)
    small = surface((0.1, 0.05, 0.05))
    assert touching(surface((0.1, 0.1, 0.1)), small, poses).tolist() == [True, False, True, True]
    assert touching(surface((0.2, 0.2, 0.2)), small, poses).tolist() == [True, True, True, True]
    assert not touching(small, Surface([]), poses).any()


@pytest.mark.parametrize("edges", [(0.267, 0.194, 0.114), (0.4, 0.1, 0.1), (0.06, 0.05, 0.0039)])
def test_spheres_inside_a_box_stay_inside(edges):
    """Half of two faces had no points by which spheres inside were bounded: they were 62 mm beyond a box. The other
    face of a plate of 3.9 mm did not bound them, as a groove does not: they were 56 mm beyond it."""
    mesh = box(edges)
    cover = Cover([mesh.vertices[mesh.faces]])
    _, centre, radius = cover._inside.spheres(cover.triangles)
    assert (radius - (np.array(edges) / 2 - np.abs(centre)).min(axis=1)).max() < 0.015


def stacked(folder, gap, missing=False, looks_of_base=False):
    """A plate over a base with a gap, two joints above it, and a post beside it that the plate meets in some
    postures. ``looks_of_base``: the base has visual geometry alone."""
    post = BOX.format("0.05 0 0.06", "0.015 0.015 0.16")
    plate = BOX.format(f"0 0 {0.02 + gap}", "0.1 0.03 0.02")
    gone = '<collision><geometry><mesh filename="gone.stl"/></geometry></collision>'
    base = BOX.format("0 0 0", "0.06 0.06 0.02") + post
    file = folder / "stacked.urdf"
    file.write_text(
        '<robot name="stacked">'
        + LINK.format("base", base.replace("collision>", "visual>") if looks_of_base else base)
        + LINK.format("between", gone if missing else "")
        + LINK.format("plate", plate)
        + JOINT.format("first", "base", "between")
        + JOINT.format("second", "between", "plate")
        + "</robot>"
    )
    return lw.load(str(file))


def in_truth(checks, q):
    """In which states meshes of bodies that are not connected touch, (states,)."""
    robot = checks.robot
    poses = body_poses_of(robot, q)
    above = [robot.carrier(joint.parent)[0] for joint in robot.moving_joints]
    surfaces = {body: Surface(parts) for body, parts in checks.spheres.surfaces.items()}
    found = np.zeros(len(q), bool)
    for one, two in product(surfaces, surfaces):
        if one < two and are_apart(one, two, above):
            found |= touching(surfaces[one], surfaces[two], relative(poses[:, one], poses[:, two]))
    return found


def test_links_two_joints_apart_have_room_where_meshes_are_four_millimetres_apart(tmp_path, recwarn):
    """They collided everywhere: small spheres of both reach 4 mm beyond the meshes."""
    checks = Validity(stacked(tmp_path, 0.004))
    q = np.random.default_rng(0).uniform(-3.0, 3.0, (300, 2))
    truth, told = in_truth(checks, q), checks.in_collision(q)
    assert 30 < truth.sum() < 200
    assert not (truth & ~told).any()
    assert (~told).sum() > 0.8 * (~truth).sum()
    assert not checks.pairs.always
    assert not checks.pairs.unresolved
    assert not recwarn


def test_links_that_are_too_near_for_spheres_are_named(tmp_path):
    with pytest.warns(ModelWarning, match="spheres of base and plate touch in all postures"):
        checks = Validity(stacked(tmp_path, 0.0005))
    assert checks.pairs.unresolved == (("base", "plate"),)
    assert checks.in_collision(np.zeros((1, 2))).all()
    assert not Validity(checks.robot, skip=[("base", "plate")]).in_collision(np.zeros((1, 2))).any()


def test_looks_that_are_too_near_for_spheres_are_left_out(tmp_path, recwarn):
    """A file that has no collision geometry of a link does not ask for comparisons with it: a G1 collided with its own
    waist everywhere. What can be told apart is compared all the same."""
    checks = Validity(stacked(tmp_path, 0.0005, looks_of_base=True))
    assert checks.pairs.seen_only == (("base", "plate"),)
    assert not checks.pairs.unresolved
    assert not recwarn
    assert not checks.in_collision(np.zeros((1, 2))).any()
    wanted = Validity(checks.robot, compare=checks.pairs.seen_only)
    assert wanted.in_collision(np.zeros((1, 2))).all()
    apart = Validity(stacked(tmp_path, 0.004, looks_of_base=True))
    assert not apart.pairs.seen_only
    q = np.random.default_rng(0).uniform(-3.0, 3.0, (300, 2))
    truth = in_truth(apart, q)
    assert truth.any()
    assert not (truth & ~apart.in_collision(q)).any()


def test_spheres_around_many_sets_are_those_around_each():
    rng = np.random.default_rng(2)
    sets = [rng.normal(size=(count, 3)) for count in (1, 2, 7, 40, 199, 200, 450, 3000)]
    for points, (centre, radius) in zip(sets, enclosing_spheres(sets), strict=True):
        alone, same = enclosing_sphere(points)
        assert np.array_equal(centre, alone)
        assert radius == same
        assert np.linalg.norm(points - centre, axis=1).max() <= radius * (1 + 1e-12)
    assert enclosing_spheres([]) == []


def test_pieces_near_others_are_found_as_by_all_distances():
    rng = np.random.default_rng(3)
    place, size = rng.uniform(-0.2, 0.2, (2000, 3)), rng.uniform(0.0, 0.004, 2000)
    middle, around = rng.uniform(-0.05, 0.1, (300, 3)), rng.uniform(0.0, 0.01, 300)
    away = np.linalg.norm(place[:, None] - middle, axis=2) - around - size[:, None]
    near = away.min(axis=1)
    found = _beside(place, size, middle, around, 0.003)
    assert 20 < found.sum() < 1000
    assert (found == (near <= 0.003))[np.abs(near - 0.003) > 1e-6].all()


def test_meshes_that_touch_in_all_postures_are_listed(tmp_path, recwarn):
    """What touches by construction is not compared, but the rest of the same links is."""
    checks = Validity(stacked(tmp_path, -0.005))
    assert (("base", "plate"),) in (checks.pairs.always, checks.pairs.partly)
    assert not recwarn


def test_meshes_that_are_missing_are_said(tmp_path):
    with pytest.warns(ModelWarning, match=r"not read: .*gone.stl"):
        Validity(stacked(tmp_path, 0.05, missing=True))


@pytest.mark.parametrize("seed", [11, 14])
def test_no_touching_meshes_are_called_free(tmp_path, seed):
    """Parts of links that touch in 90 % of postures were not compared, also where they can be apart."""
    checks = validity_of(lw.load(mesh_arm(tmp_path, seed, joints=4, height=0.11)))
    assert not checks.pairs.always
    q = np.random.default_rng(seed).uniform(-2.8, 2.8, (60, 4))
    truth = in_truth(checks, q)
    assert truth.any()
    told = checks.in_collision(q)
    assert not (truth & ~told).any()
    assert (~told).sum() > 0.4 * (~truth).sum()


def test_surfaces_follow_their_link(tmp_path):
    """A mesh of a link that is fixed to another one is moved with it."""
    pose = Transform(turns(np.random.default_rng(1), 1)[0], [0.3, -0.1, 0.2])
    still = np.eye(4)[None, :3]
    assert touching(surface((0.1, 0.1, 0.1), pose), surface((0.1, 0.1, 0.1), pose), still).all()
    assert not touching(surface((0.1, 0.1, 0.1), pose), surface((0.1, 0.1, 0.1)), still).any()
