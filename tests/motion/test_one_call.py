"""The shortest time as one call of compiled code: the same motions as by passes in NumPy, on random robots."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import linkwise as lw
from linkwise import motion
from linkwise.motion.shortest_time import one_call, reachability, turning, verified
from linkwise.motion.shortest_time.cells import SplineCells, spline_nodes
from linkwise.motion.shortest_time.path_limits import limits_of
from linkwise.motion.shortest_time.path_shape import path_cells
from linkwise.motion.shortest_time.paths import Splines, joint_path
from strategies import body, direction, pose

FRICTION = {"none": {}, "smooth": {"viscous_friction": 0.4}}
FRICTION["dry"] = {**FRICTION["smooth"], "coulomb_friction": 0.5}


def random_robot(joints: int, rng: np.random.Generator, friction: str = "none") -> lw.Robot:
    """A tree with turning and sliding joints."""
    links, made = [lw.Link("base")], []
    for k in range(joints):
        parent = links[int(rng.integers(max(0, k - 1), k + 1))].name
        kind = "prismatic" if rng.random() < 0.2 else "continuous"
        limits = lw.Limits(-2.0, 2.0) if kind == "prismatic" else lw.Limits()
        made.append(lw.Joint(f"joint{k}", kind, parent, f"link{k}", pose(rng), direction(rng), limits=limits))
        links.append(lw.Link(f"link{k}", body(rng)))
    values = {f"joint{k}.{name}": v for k in range(joints) for name, v in FRICTION[friction].items()}
    robot = lw.Robot(f"tree of {joints}", links, made)
    return robot.with_parameters(values) if values else robot


def limits_for(robot: lw.Robot, ways: np.ndarray) -> dict:
    """Torques that hold the robot and leave something for motion."""
    hold = np.abs(robot.gravity_torques(ways)).max(axis=(0, 1))
    inertia = robot.mass_matrix(ways).diagonal(axis1=-2, axis2=-1).max(axis=(0, 1))
    return {"torque": 1.3 * hold + 10.0 * inertia + 2.0, "velocity": 3.0}


def most_used(found: motion.TimeOptimal) -> float:
    t = np.concatenate([np.linspace(0, found.duration, 2001), found.grid * (1 - 1e-9)])
    return max(values.max() for values in found.usage(np.clip(t, 0, found.duration)).values())


def by_numpy(monkeypatch, *given, **options):
    with monkeypatch.context() as patch:
        patch.setattr(one_call, "rows_of", lambda limits: None)
        return motion.time_optimal(*given, **options)


@pytest.mark.parametrize(
    ("joints", "friction", "more"),
    [
        (1, "dry", {}),
        (2, "smooth", {"acceleration": 6.0}),
        (3, "none", {"acceleration": 8.0}),
        (5, "dry", {}),
        (8, "none", {}),
    ],
)
def test_random_robots_move_as_by_passes_in_numpy(joints, friction, more, monkeypatch):
    """Limits hold on a dense grid, some limit is used up, and times are those of the other way, or shorter."""
    rng = np.random.default_rng(joints)
    robot = random_robot(joints, rng, friction)
    ways = rng.uniform(-0.6, 0.6, (6, 4, joints))
    options = limits_for(robot, ways) | more
    solved = []
    original = one_call.fastest

    def counted(*given):
        solved.append(original(*given))
        return solved[-1]

    monkeypatch.setattr(one_call, "fastest", counted)
    many = motion.time_optimal(robot, ways, **options)
    other = by_numpy(monkeypatch, robot, ways, **options)
    assert sum(each is not None for each in solved[0]) >= (6 if friction != "dry" else 3)
    assert [failure is None for failure in many.failures] == [failure is None for failure in other.failures]
    for k, found in enumerate(many):
        assert 0.97 < most_used(found) <= 1
        assert found.duration <= other.durations[k] * (1 + (4e-3 if friction == "dry" else 1e-5))
        if friction != "dry":
            assert found.duration == pytest.approx(other.durations[k], rel=2e-3)
        assert np.allclose(found.at(found.duration).q, ways[k, -1], atol=1e-9)
    alone = motion.time_optimal(robot, ways[0], **options)
    assert isinstance(alone, motion.TimeOptimal)
    assert alone.duration == many.durations[0]
    assert (alone.x == many[0].x).all()  # the same bits


def test_paths_of_any_length_and_grid_share_programs(monkeypatch):
    """Programs have room for a few cells more; grids may be given."""
    robot = lw.load("two_link")
    rng = np.random.default_rng(3)
    known = one_call.program_of.cache_info().misses
    for points in (2, 3, 7, 8):
        ways = rng.uniform(-1.0, 1.0, (points, 2))
        options = limits_for(robot, ways[None])
        found = motion.time_optimal(robot, ways, **options)
        other = by_numpy(monkeypatch, robot, ways, **options)
        assert found.duration == pytest.approx(other.duration, rel=1e-5)
        assert len(found.x) == len(other.x)
    assert one_call.program_of.cache_info().misses <= known + 2
    grid = np.linspace(0, 1, 41) ** 1.3
    found = motion.time_optimal(robot, ways, grid=grid, **options)
    assert found.duration == pytest.approx(
        by_numpy(monkeypatch, robot, ways, grid=grid, **options).duration, rel=1e-5
    )


def test_what_is_not_possible_is_said_as_before(monkeypatch):
    robot = lw.load("two_link")
    ways = np.array([[[0.0, 0.0], [1.0, 0.5]]])
    for call in (motion.time_optimal, lambda *a, **o: by_numpy(monkeypatch, *a, **o)):
        with pytest.raises(motion.InfeasiblePathError, match="torque limit"):
            call(robot, ways[0], torque=0.5, velocity=3.0)
        assert call(robot, ways, torque=0.5, velocity=3.0).failures[0] is not None


def test_nine_points_are_judged_as_by_the_check_in_numpy():
    """The same bound for smooth, rough and jumping rows; 1 where that check takes more points."""
    rng = np.random.default_rng(0)
    z = np.linspace(0, 1, verified.POINTS[0])
    seen = set()
    for size in (1e-3, 0.3, 1.2):
        for _ in range(60):
            row = rng.normal() + size * (rng.normal() * z + rng.normal() * z**2 + rng.normal() * z**3)
            row = row + (rng.random() < 0.3) * 0.2 * (z > rng.random()) + rng.normal(scale=1e-4, size=z.size)
            low, high = -1.0, 1.0
            odd = np.abs(row[1::2] - verified._between(row[::2])).max()
            spread = verified.SPREAD * np.ptp(row)
            bounds = [
                verified._bound((side * (row - limit))[:, None])[0]
                for side, limit, near in ((1.0, high, row.max()), (-1.0, low, -row.min()))
                if near + spread > side * limit
            ]
            wanted = 1.0 if odd > verified.UNCLEAR else max([0.0, *bounds])
            assert one_call.judged_row(list(row), low, high) == pytest.approx(wanted, rel=1e-9, abs=1e-12)
            seen.add(np.sign(wanted) + (wanted == 1.0))
    assert seen == {0.0, 1.0, 2.0}


def test_joints_turn_back_at_grid_points():
    """Of random splines: at the added points a tangent is zero, and none changes its sign inside of a cell."""
    rng = np.random.default_rng(5)
    splines = Splines(rng.uniform(-1, 1, (20, 6, 4)))
    plain = spline_nodes(splines, 30)
    nodes = turning.spline_turning_points(splines.knots, splines.coefficients, plain)
    for k, row in enumerate(nodes):
        row = row[np.isfinite(row)]
        assert (np.diff(row) > 0).all()
        assert np.isin(plain[k], row).all()
        cells = SplineCells(splines.knots[k], splines.coefficients[k], row)
        added = ~np.isin(row[:-1], plain[k])
        first = cells.samples().qd
        assert (np.abs(first[added, 0]).min(axis=1) < 1e-8).all()
        inner = np.where(np.abs(first) < 2e-3, 0.0, first)
        assert ((inner.max(axis=1) <= 0) | (inner.min(axis=1) >= 0)).all()


def test_joints_of_any_path_turn_back_at_grid_points():
    """Functions whose tangents change quickly inside of a cell: the grid has their zeros, however they are bent."""
    limits = limits_of(random_robot(2, np.random.default_rng(1), "dry"), 50.0, 2.0, None, None, None, True)
    assert limits.turns
    bent = {
        "steep": (lambda s: [s, np.exp(9 * s) / 90 - 3 * s], [np.log(30) / 9]),
        "twice": (lambda s: [s + s * s, np.sin(7 * s)], [np.pi / 14, 3 * np.pi / 14]),
        "both": (lambda s: [(s - 0.43) ** 2, np.exp(-6 * s) + 2 * s], [np.log(3) / 6, 0.43]),
    }
    for name, (path, zeros) in bent.items():
        for count in (4, 13):
            cells = turning.with_turning_points(limits, path_cells(joint_path(limits.robot, path), count))
            every = np.arange(len(cells.lengths))
            sides = np.stack([cells.at(every, np.full(len(every), rho)).qd for rho in (1e-6, 0.5, 1 - 1e-6)])
            inner = np.where(np.abs(sides) < 1e-4, 0.0, sides)
            assert ((inner >= 0).all(axis=0) | (inner <= 0).all(axis=0)).all(), name
            away = np.abs(cells.nodes[:, np.newaxis] - zeros).min(axis=0)
            assert away.max() < 1e-9, name


@pytest.mark.parametrize("bend", [-4.0, -1.0, 0.1, 1.0, 4.0])
def test_cells_are_divided_where_bent_tangents_are_zero(bend):
    """exp(bend · ρ) has a known zero ρ after a shift, and rises by a factor of up to 50 inside of the cell."""
    zeros = np.random.default_rng(2).uniform(0.05, 0.95, 50)
    order = np.random.default_rng(3).permutation(50)
    joint = np.arange(50) % 3

    def at(cell, rho):
        tangents = np.ones((len(cell), 3))
        tangents[np.arange(len(cell)), joint[cell]] = np.exp(bend * rho) - np.exp(bend * zeros[cell])
        return SimpleNamespace(qd=tangents)

    cells = SimpleNamespace(at=at, divided_at=lambda cell, rho: (cell, rho))
    cell, rho = turning._divided(cells, order, joint[order])
    assert np.array_equal(cell, np.arange(50))
    np.testing.assert_allclose(rho, zeros, atol=1e-9)


def test_limits_that_no_program_has_go_the_other_way():
    robot = random_robot(2, np.random.default_rng(1), "dry")
    given = [robot, 50.0, 2.0, None, None, None, True]
    assert one_call.rows_of(limits_of(*given)) is not None
    assert one_call.rows_of(limits_of(*given[:4], 0.5, robot.frame_names[-1], True)) is None
    load = robot.with_parameters({"joint0.load_friction": 0.1})
    assert one_call.rows_of(limits_of(load, *given[1:])) is None
    assert one_call.rows_of(limits_of(load, *given[1:-1], False)) is not None


def test_joints_that_turn_back_together_divide_a_cell_once():
    """Three zeros in one cell, two of them at the same place, and one in another cell."""
    zeros = np.array([[0.3, 0.3, 0.6], [0.5, 2.0, 2.0]])
    cells = SimpleNamespace(
        at=lambda cell, rho: SimpleNamespace(qd=np.asarray(rho)[:, np.newaxis] - zeros[cell]),
        divided_at=lambda cell, rho: (cell, rho),
    )
    cell, rho = turning._divided(cells, np.array([0, 0, 0, 1]), np.array([2, 1, 0, 0]))
    assert cell.tolist() == [0, 0, 1]
    np.testing.assert_allclose(rho, [0.3, 0.6, 0.5], atol=1e-9)


def test_cells_are_judged_alike_in_any_unit():
    """Peaks between samples that pass a limit: the same cells and shares for newtons, kilonewtons and millinewtons."""
    rng, high = np.random.default_rng(8), np.array([1.4, 0.9])
    centre, most = rng.uniform(0.1, 0.9, (60, 2)), rng.uniform(0.5, 1.5, (60, 2)) * high

    def values(cell, points, unit):
        z = np.linspace(0, 1, points)[np.newaxis, :, np.newaxis]
        return unit * most[cell][:, None] * np.exp(-(((z - centre[cell][:, None]) / 0.045) ** 2))

    seen = []
    for unit in (1.0, 1e3, 1e-3):
        found = verified.exceeded(
            lambda cell, points, unit=unit: values(cell, points, unit),
            -unit * high,
            unit * high,
            unit * high,
            np.arange(60),
        )
        seen.append([(*each.cell.tolist(), *np.round(each.over, 9).tolist()) for each in found])
    passed = {int(cell) for each in seen[0] for cell in each[: len(each) // 2]}
    assert passed >= set(np.flatnonzero((most > 1.01 * high).any(axis=1)))
    assert seen[1] == seen[0] == seen[2]


def test_the_search_for_an_interval_ends_at_its_first_point():
    """Of random strips around u, from above and from below, with intervals far below 1."""
    rng, kinds = np.random.default_rng(6), set()
    for _ in range(60):
        size, r = 10.0 ** rng.uniform(-4, 2), rng.normal(size=4)
        middle, half = rng.normal(size=4), rng.uniform(0.0, 1.0, 4)
        strips = reachability.CellStrips(
            r.tolist(), (size * (middle - half)).tolist(), (size * (middle + half)).tolist()
        )
        cell = reachability._Cell(strips, 0.5, -1e6, 1e6)
        for start, way in ((4.0 * size, -1.0), (0.0, 1.0)):
            x, width = cell.outermost(start, way)
            grid = np.linspace(start, 4.0 * size - start, 401)
            fits = np.array([cell.width(float(at))[0] >= 0.0 for at in grid])
            kinds.add((bool(fits.any()), bool(fits[0])))
            if fits.any():
                assert width >= 0.0
                assert x == pytest.approx(grid[np.argmax(fits)], abs=0.011 * size)
    assert len(kinds) == 3
