"""What makes the first check of a robot quick changes no result: loops over bodies, bounds before pairs, threads."""

import numpy as np
import pytest
from mesh_arm import mesh_arm

import linkwise as lw
from linkwise.collision import Sphere, Validity, World, body_pairs, cover, spheres
from linkwise.collision.validity import nests


@pytest.mark.parametrize("many", [False, True])
def test_distances_of_written_out_and_looped_centres(many, monkeypatch):
    """Spheres of a tree with sliding, turning and following joints, against distances of single spheres."""
    robot = lw.random_robot(3, 7, tree=True, joints="RP")
    monkeypatch.setattr(nests, "LOOPED", 3 if many else 24)
    monkeypatch.setattr(nests, "WHOLE", 3 if many else 12)
    monkeypatch.setattr(nests, "FEW_PAIRS", 3 if many else 128)
    monkeypatch.setattr(nests, "CHUNK", 2)
    checks = Validity(robot)
    rng = np.random.default_rng(1)
    q, centre = rng.uniform(-2.0, 2.0, (20, robot.nq)), rng.uniform(-1.0, 1.0, (4, 3))
    world = World([Sphere(each, 0.1) for each in centre])
    poses = body_pairs.body_poses_of(robot, q)
    own = checks.spheres
    placed = _placed(poses[:, own.body], own.centre)
    away = np.linalg.norm(placed[:, :, None] - centre, axis=-1) - own.radius[:, None] - 0.1
    found = checks.clearances(q, world)
    moving = [body for body in own.bodies if body >= 0]
    for k, body in enumerate(moving):
        assert np.allclose(found.world[:, k], away[:, own.of(body)].min(axis=(1, 2)), atol=1e-9)
    for k, pairs in enumerate(checks.pairs.compared.values()):
        one, two = (placed[:, pairs[:, side]] for side in (0, 1))
        gaps = np.linalg.norm(one - two, axis=-1) - own.radius[pairs].sum(axis=1)
        assert np.allclose(found.itself[:, k], gaps.min(axis=1), atol=1e-9)
    least = found.least()
    sure = np.abs(least) > 1e-4
    assert sure.sum() > 15
    assert 0 < (least < 0.0).sum() < len(least)
    assert (checks.in_collision(q, world) == (least < 0.0))[sure].all()
    assert ("sphere" in _loops(checks)) == many


def _placed(poses: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Points (k, 3) by poses (states, k, 3, 4)."""
    return np.einsum("skij,kj->ski", poses[..., :3], points) + poses[..., 3]


def _loops(checks: Validity) -> set[str]:
    """Names of the loops of a program."""
    from linkwise.compiler.ir.loops import For, statements

    return {each.name for each in statements(checks.collision_kernel.program.body) if isinstance(each, For)}


def test_usual_distances_and_touching_pairs_are_those_of_all_postures():
    """Bounds of bodies leave out work alone."""
    robot = lw.random_robot(5, 9, tree=True, joints="R")
    checks = Validity(robot, divided=False)
    own, found = checks.spheres, checks.pairs
    assert robot.nq == robot.dof
    lower, upper = body_pairs.position_range(robot, None, None)
    q = np.random.default_rng(0).uniform(lower, upper, (body_pairs.POSTURES, robot.dof))
    poses = body_pairs.body_poses_of(robot, q)
    placed = _placed(poses[:, own.body], own.centre)
    usual = []
    for key, pairs in found.compared.items():
        way = placed[: body_pairs.USUAL, pairs[:, 0]] - placed[: body_pairs.USUAL, pairs[:, 1]]
        gaps = np.linalg.norm(way, axis=-1) - own.radius[pairs].sum(axis=1)
        median = np.median(np.minimum(gaps.min(axis=1), body_pairs.FAR_APART))
        assert abs(found.usual[key] - max(0.0, median)) < 1e-5
        usual.append(found.usual[key])
    assert min(usual) < body_pairs.FAR_APART
    assert max(usual) == body_pairs.FAR_APART
    postures, touching = body_pairs._Postures(robot, own), 0
    near_ones = postures.not_far([*found.compared])
    assert 0 < len(near_ones) < len(found.compared)  # of the others no sphere is looked at
    for first in own.bodies:
        for second in own.bodies:
            if first < second:
                near = postures.near_bounds(first, [second])[0]
                share = postures.touching(first, second, near)
                mine, theirs = own.of(first), own.of(second)
                away = np.linalg.norm(placed[:, mine][:, :, None] - placed[:, theirs][:, None], axis=-1)
                wanted = (away < own.radius[mine][:, None] + own.radius[theirs]).mean(axis=0).ravel()
                assert np.allclose(0.0 if share is None else share, wanted, atol=2.0 / body_pairs.POSTURES)
                touching += share is not None
    assert touching > 0


def test_a_choice_that_needs_more_than_wanted_ends_early():
    """Exactly where the whole choice has more."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        covers = rng.random((rng.integers(1, 60), rng.integers(1, 30))) < rng.uniform(0.02, 0.4)
        whole = cover._chosen(covers)
        assert (covers[:, whole].any(axis=1) == covers.any(axis=1)).all()
        for most in range(len(whole) + 3):
            found = cover._at_most(covers, most)
            assert (found is None) == (len(whole) > most)
            assert found is None or np.array_equal(found, whole)


def test_threads_change_no_sphere(tmp_path, monkeypatch):
    """One thread and three."""
    file = mesh_arm(tmp_path, seed=4, joints=2)
    rows = []
    for threads in ("1", "3"):
        monkeypatch.setenv("LINKWISE_CACHE", str(tmp_path / f"cache{threads}"))
        monkeypatch.setenv("LINKWISE_THREADS", threads)
        spheres._spheres.cache_clear()
        found = spheres.spheres_of(lw.load(file))
        assert found.divide is not None
        small = found.divide(tuple(range(len(found))))
        rows.append((found.centre, found.radius, *small))
    for one, two in zip(*rows, strict=True):
        assert np.array_equal(one, two)
