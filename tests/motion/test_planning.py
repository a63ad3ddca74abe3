"""Planned motions touch nothing and keep limits, by coal on the meshes and by Pinocchio's torques."""

import re
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import linkwise as lw
from linkwise.collision import Box, Cuboid, HalfSpace, Sphere, World, validity_of
from linkwise.motion import Keep, MotionPlan, plan
from linkwise.motion.planning import planner
from linkwise.motion.planning.proof import LOOKED_FOR, Prover, _in_parts
from linkwise.motion.planning.rounded import control_points, largest_cuts, smooth_path, without_repeats
from linkwise.motion.planning.search import MOST_GOALS, Search, some_goals

sys.path.insert(0, str(Path(__file__).parents[1] / "collision"))
from mesh_arm import Coal, mesh_arm

SHELVES = World(
    [
        *(Box((0.45, -0.6, z), (0.9, 0.6, z + 0.03)) for z in (0.25, 0.7, 1.15)),
        Box((-0.9, -0.9, 0.3), (-0.45, -0.3, 1.3)),
        Cuboid((0.0, 0.75, 0.8), (0.3, 0.2, 0.9), [[0.8, -0.6, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, 1.0]]),
        Sphere((-0.5, 0.5, 1.0), 0.15),
        HalfSpace((0.0, 0.0, 1.0), -0.1),
    ]
)


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    file = mesh_arm(tmp_path_factory.mktemp("arm"), seed=4)
    return file, lw.load(file)


def free_positions(robot, world, count, seed):
    rng, found = np.random.default_rng(seed), []
    while len(found) < count:
        q = rng.uniform(-2.8, 2.8, (200, robot.nq))
        found += list(q[~robot.in_collision(q, world, clearance=0.005)])
    return np.array(found[:count])


def test_motions_by_coal_and_pinocchio(arm):
    """The real meshes at many points of each motion, and the torques of another engine."""
    file, robot = arm
    q = free_positions(robot, SHELVES, 24, 0)
    checks = validity_of(robot)
    meshes = Coal(file, robot, set(checks.pairs.compared), SHELVES)
    solved = 0
    for k, (start, goal) in enumerate(zip(q[::2], q[1::2], strict=True)):
        found = plan(robot, start, goal, SHELVES, seed=k, acceleration=20.0)
        if not found:
            assert found.status == "no path", found.message
            continue
        solved += 1
        motion = found.motion
        t = np.linspace(0.0, motion.duration, 800)
        moment = motion.at(t)
        assert np.allclose(moment.q[0], start, atol=1e-9)
        assert np.allclose(moment.q[-1], goal, atol=1e-9)
        assert not meshes(moment.q[::4]).any()
        assert found.clearance_along(t).min() >= found.clearance >= 0.0
        assert (np.abs(meshes.torques(moment)) <= robot.effort_limits * (1 + 1e-6)).all()
        assert (np.abs(moment.qd) <= robot.velocity_limits * (1 + 1e-9)).all()
        assert (np.abs(moment.qdd) <= 20.0 * (1 + 1e-6)).all()
        assert np.abs(np.diff(moment.q, axis=0)).max() < 0.1
    assert solved >= 6


def test_the_same_seed_gives_the_same_motion(arm):
    _, robot = arm
    start, goal = free_positions(robot, SHELVES, 2, 3)
    first, again, other = (
        plan(robot, start, goal, World(SHELVES.obstacles), seed=s, timing=False) for s in (1, 1, 2)
    )
    assert first
    assert np.array_equal(first.waypoints, again.waypoints)
    assert len(first.waypoints) == 2 or not np.array_equal(first.waypoints, other.waypoints)


def test_bounds_hold_between_samples(arm):
    """What is proved about pieces of random paths holds at many points of them."""
    _, robot = arm
    checks = validity_of(robot)
    prover, rng = Prover(checks, SHELVES), np.random.default_rng(0)
    proved = 0
    for start in free_positions(robot, SHELVES, 12, 1):
        points = start + np.cumsum(rng.normal(0.0, 0.15, (4, robot.nq)), axis=0)
        pieces = control_points(points, np.array([0.05, 0.08]))
        path = smooth_path(pieces)
        s = np.linspace(path.begin, path.end, 2000)
        q = path.at(s).q
        found = prover.prove(pieces, 0.0)
        actual = checks.distance(q, SHELVES)
        piece = np.clip(np.searchsorted(path.times, s, side="right") - 1, 0, len(pieces) - 1)
        assert (actual >= found.pieces[piece] - 1e-9).all()
        if actual.min() < 0.0:
            assert found.pieces.min() < 0.0
        proved += found.pieces.min() >= 0.0
        assert np.allclose(np.diff(q, axis=0) / np.diff(s)[:, None], path.at(s[:-1]).qd, atol=0.05)
    assert proved > 2


def test_smooth_paths_are_their_parabolas():
    """Every piece is the curve of its control points, and its direction goes on at both ends of a cut corner."""
    rng = np.random.default_rng(4)
    points = rng.normal(size=(5, 3))
    pieces = control_points(points, 0.6 * largest_cuts(points))
    path = smooth_path(pieces)
    share = np.linspace(0.0, 1.0, 9)
    for k, (a, b, c) in enumerate(pieces):
        found = path.at(path.times[k] + share * (path.times[k + 1] - path.times[k])).q
        expected = [(1 - u) ** 2 * a + 2 * u * (1 - u) * b + u * u * c for u in share]
        np.testing.assert_allclose(found, expected, atol=1e-12)
    inner = path.times[1:-1]
    before, after = (path.at(inner + step).qd for step in (-1e-9, 1e-9))
    np.testing.assert_allclose(before, after, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(path.at(path.times).qd, axis=1), 1.0, atol=1e-9)
    ways, sizes = np.diff(points, axis=0), np.linalg.norm(np.diff(points, axis=0), axis=1)
    for k in (1, 2, 3):  # parabolas begin and end on the lines at their corner
        begin, corner, end = pieces[2 * k - 1]
        cut = 0.3 * min(sizes[k - 1], sizes[k])
        np.testing.assert_allclose(corner, points[k])
        np.testing.assert_allclose(begin, corner - cut * ways[k - 1] / sizes[k - 1])
        np.testing.assert_allclose(end, corner + cut * ways[k] / sizes[k])


def test_parts_of_parabolas_are_those_of_the_whole():
    rng = np.random.default_rng(5)
    control, counts = rng.normal(size=(3, 3, 4)), np.array([1, 3, 2])
    begin, end = np.array([0.0, 0.2, 0.5]), np.array([1.0, 0.8, 0.9])
    parts, owner, first, last = _in_parts(control, np.arange(3), begin, end, counts)
    assert owner.tolist() == [0, 1, 1, 1, 2, 2]
    np.testing.assert_allclose(first, [0.0, 0.2, 0.4, 0.6, 0.5, 0.7])
    np.testing.assert_allclose(last, [1.0, 0.4, 0.6, 0.8, 0.7, 0.9])

    def at(points, u):
        return (1 - u) ** 2 * points[0] + 2 * u * (1 - u) * points[1] + u * u * points[2]

    for part, k, a, b in zip(parts, owner, first, last, strict=True):
        for share in (0.0, 0.3, 0.5, 1.0):  # the control points are those of the interval from begin to end
            u = (a + share * (b - a) - begin[k]) / (end[k] - begin[k])
            np.testing.assert_allclose(at(part, share), at(control[k], u), atol=1e-12)


def test_passages_narrower_than_what_a_search_keeps_at_first(monkeypatch):
    """1.5 mm beside the first link, which has to pass; a search that keeps a centimetre finds no way."""
    robot = lw.load("two_link")
    checks = validity_of(robot)
    radius = checks.spheres.radius[checks.spheres.body == 0][0]
    world = World([Sphere((0.6, 0.2 + radius + 1.5e-3, 0.0), 0.2)])
    start, goal = np.array([-1.0, 0.3]), np.array([1.0, -0.3])
    found = plan(robot, start, goal, world, timing=False)
    assert found, found.message
    assert 0.0 < found.clearance < 1.6e-3
    q = found.path.at(np.linspace(0.0, found.path.duration, 2000)).q
    assert checks.distance(q, world).min() > 1e-3
    monkeypatch.setattr(planner, "LEVELS", planner.LEVELS[:1])
    assert plan(robot, start, goal, world, timing=False).status == "no path"


def test_only_the_parabola_that_is_in_the_way_becomes_smaller():
    """A proof that knows how far each corner may be cut off; the others keep the largest parabola."""
    points = np.random.default_rng(3).uniform(-1, 1, (5, 3))

    def rounded(allowed: np.ndarray, lines: bool = True):
        def prove(pieces, _):
            a, b, c = pieces.transpose(1, 0, 2)
            apart = np.linalg.norm(a - 2 * b + c, axis=1) / 4  # of a parabola and its corner
            own = np.abs(b[:, None] - points[1:-1]).max(axis=2).argmin(axis=1)
            proved, count = np.where(apart > 1e-9, apart <= allowed[own], lines), len(pieces)
            return SimpleNamespace(
                proved=proved, owner=np.arange(count), begin=np.zeros(count), end=np.ones(count), bound=apart
            )

        problem = planner._Problem.__new__(planner._Problem)
        problem.prover, problem.wanted = SimpleNamespace(prove=prove), 0.0
        return problem._rounded(points)

    largest = control_points(points, largest_cuts(points))
    free = rounded(np.full(3, np.inf))
    np.testing.assert_array_equal(free[0], largest)
    assert free[1][-1, 1] == pytest.approx(smooth_path(largest).times[-1])
    for corner in range(3):
        allowed = np.full(3, np.inf)
        allowed[corner] = 0.05
        pieces, _ = rounded(allowed)
        cuts = [np.linalg.norm(piece[:, 0] - points[k + 1]) for k, piece in enumerate(corners_of(pieces))]
        expected = largest_cuts(points)
        assert np.delete(cuts, corner) == pytest.approx(np.delete(expected, corner))
        a, b, c = corners_of(pieces)[corner].T
        assert 0.4 * 0.05 < np.linalg.norm(a - 2 * b + c) / 4 <= 0.05
        assert cuts[corner] < expected[corner]
        allowed[corner] = 0.0
        assert rounded(allowed) is None
    assert rounded(np.full(3, np.inf), lines=False) is None


def corners_of(pieces: np.ndarray) -> list[np.ndarray]:
    """Control points (n, 3) of the parabolas."""
    return [piece.T for piece in pieces if np.abs(piece[0] - 2 * piece[1] + piece[2]).max() > 1e-9]


def test_way_points_without_repeats_have_all_corners():
    """Corners of random paths that come back to earlier points; points that repeat or divide a line are left out."""
    rng = np.random.default_rng(0)
    for dof in (1, 2, 6):
        corners = rng.normal(size=(5, dof))[[0, 1, 0, 2, 3, 1, 4, 0]]
        if dof == 1:  # on a line only the places where it turns back are corners
            way = np.sign(np.diff(corners[:, 0]))
            corners = corners[[0, *(np.flatnonzero(way[1:] != way[:-1]) + 1), len(corners) - 1]]
        points = [corners[0]]
        for a, b in pairwise(corners):
            share = np.sort(
                np.r_[rng.uniform(size=int(rng.integers(0, 4))), np.ones(int(rng.integers(1, 3)))]
            )
            points += [a + s * (b - a) if s < 1.0 else b for s in share]
        assert np.array_equal(without_repeats(np.array(points)), corners)
    assert np.array_equal(without_repeats(np.ones((4, 2))), np.ones((1, 2)))


def test_clearances_that_are_looked_for_are_exact(arm):
    """The prover's clearances are those of ``clearances`` up to a bound, which stands for larger ones."""
    _, robot = arm
    checks = validity_of(robot)
    q = free_positions(robot, SHELVES, 200, 3)
    exact = np.concatenate(checks.clearances(q, SHELVES), axis=1)
    assert (exact > 0.5).any()
    for wanted in (0.0, 0.1):
        found = Prover(checks, SHELVES, wanted).clearances(q)
        assert np.abs(found - np.minimum(exact, LOOKED_FOR + wanted)).max() < 1e-12


def test_clearance_is_kept(arm):
    _, robot = arm
    start, goal = free_positions(robot, SHELVES, 40, 7)[[0, 1]]
    q = free_positions(robot, SHELVES, 60, 8)
    q = q[validity_of(robot).distance(q, SHELVES) > 0.035]
    start, goal = q[0], q[1]
    found = plan(robot, start, goal, SHELVES, clearance=0.03, timing=False)
    assert found.status in ("solved", "no path")
    if found:
        s = np.linspace(found.path.begin, found.path.end, 3000)
        assert validity_of(robot).distance(found.path.at(s).q, SHELVES).min() >= found.clearance >= 0.03
        assert np.allclose(found.bounds[0, 0], found.path.begin)
        assert np.allclose(found.bounds[-1, 1], found.path.end)
        assert np.allclose(found.bounds[1:, 0], found.bounds[:-1, 1])


def test_goals_are_positions_sets_and_poses(arm):
    _, robot = arm
    q = free_positions(robot, SHELVES, 6, 11)
    several = plan(robot, q[0], q[1:4], SHELVES, timing=False)
    assert several
    assert np.abs(several.waypoints[-1] - q[1:4]).max(axis=1).min() < 1e-9
    lw6 = lw.load("ur10e")
    start = np.array([0.0, -1.2, 1.5, -1.0, -1.5, 0.0])
    target = lw6.pose(np.array([1.0, -1.0, 1.2, -0.8, -1.5, 0.4]))
    found = plan(lw6, start, target, [HalfSpace((0, 0, 1), -0.2)])
    assert found, found.message
    assert np.allclose(lw6.pose(found.motion.at(found.motion.duration).q), target, atol=1e-5)
    far = target.copy()
    far[:3, 3] = 5.0
    unreachable = plan(lw6, start, far)
    assert unreachable.status == "goal unreachable"
    assert re.search(r"the nearest are \S+ cm and \S+° away", unreachable.message)


def test_sets_of_very_many_goals():
    """A tree that began full found no path, and one that began with more ended in an IndexError."""
    robot, rng = lw.load("panda"), np.random.default_rng(0)
    goal = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.8, 0.0])
    wall = [Box((0.2, -0.3, -0.1), (0.9, -0.2, 0.7))]
    many = goal + rng.uniform(-0.1, 0.1, (8300, 7))
    for count in (8192, 8300):
        found = plan(robot, goal - np.eye(7)[0] * 1.2, many[:count], wall, timing=False)
        assert found, found.message
        assert np.abs(found.waypoints[-1] - many[:count]).max(axis=1).min() < 1e-9
    some = some_goals(goal, many)
    away = np.abs(many - goal).max(axis=1)
    assert len(some) == len(np.unique(some, axis=0)) == MOST_GOALS
    assert np.isin(np.sort(away)[: MOST_GOALS // 2], np.abs(some - goal).max(axis=1)).all()
    assert np.abs(some - goal).max() > 0.999 * away.max()
    assert np.array_equal(some_goals(goal, many[:5]), many[:5])


def test_what_cannot_be_solved_is_said(arm):
    _, robot = arm
    start, goal = free_positions(robot, SHELVES, 2, 5)
    inside = World([Sphere((0.0, 0.0, 0.0), 3.0)])
    away_from_it = Sphere((5.0, 5.0, 5.0), 0.1)
    found = plan(robot, start, goal, World([away_from_it, *inside.obstacles]))
    assert found.status == "start collides"
    assert "obstacle 2 of 2, a Sphere" in found.message
    away = robot.pose(goal)[:3, 3]
    if np.linalg.norm(away - robot.pose(start)[:3, 3]) > 0.3:
        assert plan(robot, start, goal, [Sphere(away, 0.05)]).status in ("goal collides", "start collides")
    cage = World([*SHELVES.obstacles])
    none = plan(robot, start, goal, cage, rounds=1, timing=False)
    assert none.status in ("solved", "no path")
    assert isinstance(none, MotionPlan)
    assert str(none)
    weak = plan(robot, start, goal, SHELVES, torque=1e-3)
    assert weak.status == "no timing"
    assert not weak
    with pytest.raises(lw.LinkwiseError, match="beyond its limits"):
        plan(robot, start, goal + 10.0)
    with pytest.raises(lw.LinkwiseError, match="goal"):
        plan(robot, start, np.zeros((2, 3)))
    for name, value in {"seed": -1, "rounds": 0, "clearance": -1.0, "timing": "yes"}.items():
        with pytest.raises((lw.LinkwiseError, ValueError, TypeError), match=name):
            plan(robot, start, goal, **{name: value})


def test_a_world_that_cannot_be_crossed(arm):
    """A search that finds nothing ends, and says so."""
    _, robot = arm
    start, goal = free_positions(robot, World(), 2, 6)
    search = Search(validity_of(robot), World([HalfSpace((0.0, 0.0, 1.0), -5.0)]))
    found = search.path(start, goal[None], seed=0, rounds=3)
    assert found.rounds <= 3
    assert search.is_free(np.array([start, start + 1e-3]))
    blocked = Search(validity_of(robot), World([Sphere((0.0, 0.0, 0.5), 2.0)]))
    found = blocked.path(start, goal[None], seed=0, rounds=50)
    assert found.path is None
    assert found.rounds == 50


def test_shortcuts_make_paths_shorter_and_keep_them_free(arm):
    """After every pass over the corners; the ends stay where they are."""
    _, robot = arm
    search = Search(validity_of(robot), SHELVES)
    points, shorter = free_positions(robot, SHELVES, 24, 8), 0
    for seed, ends in enumerate(points.reshape(12, 2, robot.nq)):
        found = [search.path(ends[0], ends[1:], seed=seed, rounds=4000, passes=k).path for k in (0, 1, 3)]
        if found[0] is None:
            continue
        lengths = [np.linalg.norm(np.diff(path, axis=0), axis=1).sum() for path in found]
        assert all(search.is_free(path) for path in found)
        assert all(np.allclose(path[[0, -1]], ends, atol=1e-6) for path in found)
        assert lengths[0] * (1 + 1e-6) >= lengths[1] >= lengths[2] * (1 - 1e-6)
        shorter += lengths[0] > 1.01 * lengths[2]
    assert shorter > 2


def test_a_constraint_is_kept_between_way_points():
    """A cup stays upright, on a plane or not, at many points of the motion; directions by poses of the robot."""
    solved = 0
    for name, kept in (
        ("panda", Keep(axis=(0, 0, 2), direction=(0, 0, -1), tilt=0.03)),
        ("ur10e", Keep(axis=(0, 1, 0), direction=(0, 0, 1), tilt=0.05, normal=(0, 0, 1), height=0.4)),
    ):
        robot, world = lw.load(name), World([Box((0.4, -0.05, -0.2), (0.8, 0.05, 0.2))])
        lower, upper = np.maximum(robot.limits.lower, -2.5), np.minimum(robot.limits.upper, 2.5)
        q = np.random.default_rng(1).uniform(lower, upper, (120, robot.nq))
        on, good = kept.projected(robot, q)
        assert good.sum() > 10
        assert (np.abs(on[good] - q[good]).max(axis=1) > 1e-3).all()
        free = on[good][~robot.in_collision(on[good], world, clearance=0.02)]
        near = free[np.argsort(np.abs(free - free[0]).sum(axis=1))]
        for goal in near[1:4]:
            found = plan(robot, near[0], goal, world, constraint=kept, rounds=200, acceleration=20.0)
            if not found:
                assert found.status in ("no path", "not proved"), found.message
                continue
            solved += 1
            t = np.linspace(0.0, found.motion.duration, 3000)
            moved = found.motion.at(t).q
            pose = robot.pose(moved)
            pointing = pose[:, :3, :3] @ np.array(kept.axis)
            assert (pointing @ np.array(kept.direction) >= np.cos(kept.tilt) - 1e-9).all()
            if kept.normal is not None:
                assert np.abs(pose[:, 2, 3] - kept.height).max() <= kept.distance
            assert found.clearance_along(t).min() >= found.clearance >= 0.0
            assert np.allclose(moved[[0, -1]], [near[0], goal], atol=1e-9)
    assert solved >= 3


def test_constraints_that_make_no_sense_are_refused(arm):
    _, robot = arm
    start, goal = free_positions(robot, World(), 2, 3)
    for wrong in ({}, {"axis": (0, 0, 1)}, {"normal": (0, 0, 0)}, {"normal": (0, 0, 1), "distance": 0.0}):
        with pytest.raises(lw.LinkwiseError):
            Keep(**wrong)
    with pytest.raises(lw.LinkwiseError, match="constraint"):
        plan(robot, start, goal, constraint="upright")
    high = Keep(normal=(0, 0, 1), height=50.0)
    assert plan(robot, start, goal, constraint=high).status == "start off constraint"
    here = Keep(normal=(0, 0, 1), height=float(robot.pose(start)[2, 3]))
    assert plan(robot, start, goal, constraint=here).status == "goal off constraint"
    assert not high.projected(robot, start[None])[1].any()
