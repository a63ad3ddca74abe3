"""Time-optimal motions: analytic cases, limits on dense grids, every kind of path, what fails and how."""

from __future__ import annotations

import math

import numpy as np
import pytest

import linkwise as lw
from linkwise import motion
from linkwise.motion.shortest_time import optimal_timing, reachability
from linkwise.motion.shortest_time.optimal_jerk import Smooth

RNG = np.random.default_rng(19)
PUMA = lw.load("puma560")
HOME = np.array([0.2, 0.4, -0.5, 0.3, 0.7, -0.1])
WAYS = HOME + RNG.uniform(-0.4, 0.4, (6, 4, 6))
TORQUE = 1.5 * np.abs(PUMA.inverse_dynamics(WAYS, 0 * WAYS + 1.0, 0 * WAYS)).max(axis=(0, 1)) + 12
LINE = np.array([[0.0, 0.0], [1.0, -0.5]])


@pytest.fixture(scope="module")
def arm():
    return lw.load("two_link")


def optimal(robot, path, **options) -> motion.TimeOptimal:
    found = motion.time_optimal(robot, path, **options)
    assert isinstance(found, motion.TimeOptimal)
    return found


def most_used(found: motion.TimeOptimal, points: int = 4001) -> float:
    """The largest fraction of any limit on a dense grid, with both sides of every grid point."""
    tiny = 1e-9 * found.duration
    t = np.concatenate(
        [np.linspace(0, found.duration, points), found.grid, found.grid - tiny, found.grid + tiny]
    )
    return max(values.max() for values in found.usage(np.clip(t, 0, found.duration)).values())


# -- known times ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("speed", "expected"), [(100.0, 2 * math.sqrt(2 / 3)), (1.0, 2 / 1 + 1 / 3)])
def test_a_double_integrator_takes_the_time_of_bang_bang(arm, speed, expected):
    """Two radians at 3 rad/s²: half of it faster and faster, half slower, or a phase of constant speed between."""
    found = optimal(arm, [[0.0, 0.0], [2.0, 0.0]], torque=1e9, velocity=speed, acceleration=3.0, cells=200)
    assert found.duration == pytest.approx(expected, rel=1e-3)
    assert found.duration >= expected * (1 - 1e-9)


def test_a_single_joint_is_as_fast_as_its_torque_allows():
    """Without gravity τ = I q̈: the time is 2 √(I d/τ)."""
    arm = lw.load("two_link", gravity=(0, 0, 0), lock={lw.load("two_link").joint_names[1]: 0.0})
    inertia = float(arm.mass_matrix(np.zeros(1))[0, 0])
    found = optimal(arm, [[0.0], [1.5]], torque=4.0, velocity=1e3, friction=False)
    assert found.duration == pytest.approx(2 * math.sqrt(inertia * 1.5 / 4.0), rel=2e-3)
    tau = arm.inverse_dynamics(*found.at(np.linspace(0.01, found.duration - 0.01, 50)), friction=False)
    assert np.quantile(np.abs(tau), 0.1) == pytest.approx(4.0, rel=5e-3)


def test_speeds_at_the_ends_are_met(arm):
    ways = [[0.0, 0.0], [1.0, 0.6]]
    found = optimal(arm, ways, torque=200.0, velocity=3.0, acceleration=8.0, start_speed=1.0, end_speed=0.5)
    assert np.linalg.norm(found.at(0.0).qd) == pytest.approx(1.0)
    assert np.linalg.norm(found.at(found.duration).qd) == pytest.approx(0.5)
    assert most_used(found) <= 1
    with pytest.raises(
        motion.InfeasiblePathError, match=r"start_speed: 2.9 is too fast .* at most 2 is"
    ) as error:
        optimal(arm, [[0.0, 0.0], [0.1, 0.0]], torque=200.0, velocity=3.0, acceleration=20.0, start_speed=2.9)
    assert error.value.fraction == 0
    with pytest.raises(motion.InfeasiblePathError, match="end_speed: 9 is too fast"):
        optimal(arm, ways, torque=200.0, velocity=3.0, acceleration=8.0, end_speed=9.0)


def test_any_speed_from_which_the_path_is_long_enough_to_stop_is_possible(arm):
    """v² = 2 a d: the fastest start that can still be stopped at the end, and the fastest end after a start at rest."""
    options = {"torque": 1e9, "velocity": 100.0, "acceleration": 3.0}
    for distance in (0.2, 1.5):
        fastest = math.sqrt(2 * 3.0 * distance)
        for at_start in (True, False):
            name = "start_speed" if at_start else "end_speed"
            found = optimal(arm, [[0, 0], [distance, 0]], **options, **{name: 0.99995 * fastest})
            assert np.linalg.norm(found.at(0.0 if at_start else found.duration).qd) == pytest.approx(
                0.99995 * fastest
            )
            assert found.duration == pytest.approx(fastest / 3.0, rel=5e-3)
            with pytest.raises(motion.InfeasiblePathError, match="too fast" if at_start else "too slow"):
                optimal(arm, [[0, 0], [distance, 0]], **options, **{name: 1.0001 * fastest})


# -- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("friction", [False, True])
def test_no_limit_is_exceeded_on_a_dense_grid(friction):
    """And at nearly all times one is used up: no motion is faster. Coulomb friction jumps where a joint turns back."""
    options = {"torque": TORQUE, "velocity": 2.5, "friction": friction}
    many = motion.time_optimal(PUMA, WAYS, **options)
    assert isinstance(many, motion.TimeOptimalMotions)
    assert many.failures == [None] * len(WAYS)
    for k, found in enumerate(many):
        assert 0.98 < most_used(found) <= 1
        t = np.linspace(0, found.duration, 301)[1:-1]
        used = np.max([values.max(axis=-1) for values in found.usage(t).values()], axis=0)
        assert (used > 0.95).mean() > 0.8
        if friction:
            assert not [each for each in motion.check(found, PUMA) if each.quantity == "velocity"]
        if k == 0:
            alone = optimal(PUMA, WAYS[0], **options)
            assert alone.duration == pytest.approx(found.duration, rel=2e-3)


def test_the_motion_is_its_own_derivative_and_stays_on_the_path():
    found = optimal(PUMA, WAYS[0], torque=TORQUE, velocity=2.5)
    t = 0.5 * (found.grid[1:] + found.grid[:-1])
    step = 1e-6
    before, here, after = (found.at(t + side * step) for side in (-1, 0, 1))
    np.testing.assert_allclose((after.q - before.q) / (2 * step), here.qd, atol=1e-6)
    np.testing.assert_allclose((after.qd - before.qd) / (2 * step), here.qdd, atol=1e-4)
    np.testing.assert_array_equal(found.at(0.0).q, WAYS[0, 0])
    np.testing.assert_allclose(found.at(found.duration).q, WAYS[0, -1], atol=1e-14)
    dense = found.at(np.linspace(0, found.duration, 20001)).q
    for way in WAYS[0]:
        assert np.linalg.norm(dense - way, axis=1).min() < 1e-3


def test_torque_limits_may_differ_by_direction_and_payload_costs_time(arm):
    ways = [[0.3, 0.2], [1.2, -0.8], [0.2, 0.9]]
    low, high = np.array([-80.0, -30.0]), np.array([150.0, 25.0])
    found = optimal(arm, ways, torque=[low, high], velocity=10.0)
    tau = arm.inverse_dynamics(*found.at(np.linspace(0, found.duration, 4001)))
    assert ((tau > low) & (tau < high)).all()
    assert (tau - low).min() < 0.05
    loaded = arm.with_payload(1.0, (0.1, 0.0, 0.0), np.zeros((3, 3)))
    assert optimal(loaded, ways, torque=[low, high], velocity=10.0).duration > found.duration * 1.02


def test_the_tip_keeps_its_speed(arm):
    free = optimal(arm, [[0.3, 0.2], [1.2, -0.8]], torque=200.0, velocity=10.0)
    found = optimal(arm, [[0.3, 0.2], [1.2, -0.8]], torque=200.0, velocity=10.0, tip_speed=0.5)
    assert found.duration > free.duration
    t = np.linspace(0, found.duration, 2001)
    q, qd, _ = found.at(t)
    tip = np.linalg.norm(np.einsum("tij,tj->ti", arm.jacobian(q)[:, 3:], qd), axis=1)
    assert 0.499 < tip.max() <= 0.5
    assert "tip speed" in {each.quantity for each in found.active}


def test_jerk_is_limited_and_the_time_nearly_that_of_the_closed_form(arm):
    options = {"velocity": 1.5, "acceleration": 6.0, "jerk": 40.0}
    found = motion.time_optimal(arm, LINE, torque=1e6, cells=50, **options)
    closed = motion.jerk_limited(*LINE, **options)
    assert closed.duration <= found.duration < 1.01 * closed.duration
    t = np.linspace(0, found.duration, 4001)
    assert max(values.max() for values in found.usage(t).values()) <= 1
    steps = np.abs(np.diff(found.at(t).qdd, axis=0)).max() / (t[1] - t[0])
    assert steps <= 40.0 * (1 + 1e-6)
    inside = t[1:-1:100]
    rates = (found.at(inside + 1e-6).qdd - found.at(inside - 1e-6).qdd) / 2e-6
    np.testing.assert_allclose(found.jerk(inside), rates, atol=1e-3)
    np.testing.assert_allclose(found.at([0.0, found.duration]).qdd, 0.0, atol=1e-9)


def test_a_stretch_between_two_rests_follows_its_part_of_the_path():
    """r(ξ) from the first cell to the last one of the stretch, with its own derivatives."""
    cells = motion.time_optimal(PUMA, WAYS[0], torque=TORQUE, cells=24).cells
    first, last = 7, 19
    stretch, xi, h = Smooth(cells, first, last), np.linspace(0.03, 0.97, 40), 1e-5
    ends = np.array([0.0, 1.0])
    begin, end = (cells.at(np.array([k]), np.array([rho])).q[0] for k, rho in ((first, 0.0), (last - 1, 1.0)))
    np.testing.assert_allclose(stretch.at(ends)[0], [begin, end], atol=1e-12)
    _, one, two, _ = stretch.at(xi)
    after, before = stretch.at(xi + h), stretch.at(xi - h)
    np.testing.assert_allclose((after[0] - before[0]) / (2 * h), one, atol=1e-6 * np.abs(one).max())
    np.testing.assert_allclose((after[1] - before[1]) / (2 * h), two, atol=1e-4 * np.abs(two).max())


def test_jerk_with_friction_and_way_points():
    found = motion.time_optimal(PUMA, WAYS[0], torque=TORQUE, velocity=2.5, jerk=100.0, cells=40)
    assert 0.95 < most_used(found) <= 1
    free = optimal(PUMA, WAYS[0], torque=TORQUE, velocity=2.5)
    assert found.duration > free.duration
    with pytest.raises(ValueError, match="starts and ends at rest"):
        motion.time_optimal(PUMA, WAYS[0], torque=TORQUE, jerk=10.0, start_speed=1.0)


# -- kinds of paths ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        motion.quintic(*LINE, 3.0),  # its tangent vanishes at both ends, of second order
        motion.cubic_spline([0, 1, 2], [LINE[0], LINE.mean(axis=0), LINE[1]]),  # of first order
        motion.trapezoidal(*LINE, velocity=1.0, acceleration=2.0),
        motion.ramp(*LINE, 2.0),
        lambda s: [s, -0.5 * s],
        lambda s: [s * s * s, -0.5 * s * s * s],
        lambda s: [math.sin(math.pi / 2 * s), -0.5 * math.sin(math.pi / 2 * s)],  # cannot be traced
        [LINE[0], LINE[0], LINE.mean(axis=0), LINE.mean(axis=0), LINE[1]],  # repeated way-points
    ],
    ids=["quintic", "spline", "trapezoid", "ramp", "function", "cubed", "numbers", "repeated"],
)
def test_the_parameter_of_a_path_does_not_matter(arm, path):
    options = {"torque": 150.0, "velocity": 2.0, "acceleration": 12.0}
    expected = optimal(arm, LINE, **options)
    found = optimal(arm, path, **options)
    assert found.duration == pytest.approx(expected.duration, rel=5e-3)
    assert most_used(found, 1001) <= 1
    np.testing.assert_allclose(found.at([0.0, found.duration]).q, LINE, atol=1e-8)


def test_corners_are_passed_at_rest_and_standing_takes_no_time(arm):
    class Bent(motion.Trajectory):
        """Along the first joint, a pause, along the second one; at constant speed."""

        dof, begin, end = 2, 0.0, 4.0

        def _inside(self, t):
            q = np.stack([np.clip(t, 0, 1), np.clip(t - 3, 0, 1)], axis=-1)
            qd = np.stack([(t < 1) * 1.0, (t > 3) * 1.0], axis=-1)
            return motion.Moment(q, qd, 0 * q)

        def corners(self):
            return np.array([0.0, 1.0, 3.0, 4.0])

    options = {"torque": 1e9, "velocity": 100.0, "acceleration": 4.0}
    found = optimal(arm, Bent(), cells=200, **options)
    assert found.duration == pytest.approx(2.0, rel=5e-3)  # twice 2 √(1/4)
    slowest = np.linalg.norm(found.at(np.linspace(0.2, found.duration - 0.2, 3001)).qd, axis=1)
    assert slowest.min() < 0.02


def test_straight_lines_of_the_tip():
    start = PUMA.pose(HOME)
    end = start.copy()
    end[:3, 3] += [0.05, -0.05, 0.03]
    move = motion.line(PUMA, start, end, duration=2.0, q=HOME)
    found = optimal(PUMA, move, torque=TORQUE, velocity=2.0, cells=30)
    assert most_used(found, 301) <= 1
    tips = PUMA.pose(found.at(np.linspace(0, found.duration, 50)).q)[:, :3, 3]
    across = np.cross(tips - start[:3, 3], end[:3, 3] - start[:3, 3])
    assert np.abs(across).max() < 1e-8


# -- results ----------------------------------------------------------------------------------------------------------


def test_what_is_active_when_and_pictures(arm, tmp_path):
    found = optimal(arm, LINE, torque=150.0, velocity=2.0, acceleration=12.0)
    active = found.active
    assert {(each.quantity, each.joint) for each in active} == {
        ("acceleration", arm.joint_names[0]),
        ("velocity", arm.joint_names[0]),
    }
    assert "acceleration of" in str(active[0])
    assert "<svg" in found.plot_limits(51).svg
    motion.write_csv(tmp_path / "move.csv", found)
    again = motion.read_csv(tmp_path / "move.csv")
    np.testing.assert_allclose(again.at(0.3).q, found.at(0.3).q, atol=1e-6)


def test_lists_mix_kinds_of_paths_and_failures_stay_single(arm):
    paths = [
        LINE,
        motion.quintic(*LINE, 1.0),
        [[0.0, 0.0], [0.0, 0.001], [0.4, 0.2], [0.1, -0.3], [1.0, 1.0]],
    ]
    many = motion.time_optimal(arm, paths, torque=150.0, velocity=2.0)
    assert len(many) == 3
    assert many.durations[1] == pytest.approx(many.durations[0], rel=5e-3)
    alone = optimal(arm, paths[2], torque=150.0, velocity=2.0)
    assert many[2].duration == pytest.approx(alone.duration, rel=5e-3)
    assert "3 paths" in repr(many)
    torques = np.abs(arm.gravity_torques(np.linspace([0, 0], [3, 0], 31)))[:, 0]
    light, heavy = 0.1 * np.argmin(torques), 0.1 * np.argmax(torques)
    ways = np.array([[[angle - 0.1, 0.0], [angle + 0.1, 0.0]] for angle in (light, heavy)])
    mixed = motion.time_optimal(arm, ways, torque=[0.6 * torques.max(), 1e6], velocity=2.0)
    assert mixed.failures[0] is None
    assert np.isnan(mixed.durations).tolist() == [False, True]
    with pytest.raises(motion.InfeasiblePathError, match="holds still"):
        mixed[1]


@pytest.mark.parametrize("friction", [False, True])
def test_many_paths_move_as_each_of_them_alone(friction, monkeypatch):
    """With speeds at their ends, and mixed with other kinds of paths; friction settles sooner on some of them."""
    options = {"torque": TORQUE, "velocity": 2.5, "friction": friction}
    ends = {"start_speed": 0.3, "end_speed": 0.2}
    with monkeypatch.context() as patch:  # a block finds them all: none has to be looked at alone
        patch.setattr(optimal_timing, "_single", lambda *_: 1 / 0)
        many = motion.time_optimal(PUMA, WAYS[:4], **options, **ends)
    alone = [optimal(PUMA, ways, **options, **ends) for ways in WAYS[:4]]
    np.testing.assert_allclose(
        many.durations, [each.duration for each in alone], rtol=5e-3 if friction else 1e-9
    )
    mixed = [*WAYS[:3], motion.quintic(*WAYS[3][:2], 1.0)]
    together = motion.time_optimal(PUMA, mixed, **options)
    for k, path in enumerate(mixed):
        slower = optimal(PUMA, path, **options).duration  # on a grid with fewer points
        assert 0.9 * slower < together.durations[k] <= slower * (1 + 1e-3)
    assert max(most_used(each, 401) for each in (many[2], together[1], together[3])) <= 1


def test_cells_of_many_paths_are_checked_as_those_of_each(arm, monkeypatch):
    """Which cells lie beside a rest, and where points of a cell are, is counted over all paths of a list."""
    along: list[optimal_timing.verified.Along] = []
    monkeypatch.setattr(
        optimal_timing, "_block", lambda *args: along.append(args[5]) or [None] * len(args[4])
    )
    others = [motion.quintic([0.0, 0.1 * k], [0.6, 0.9 - k], 2.0) for k in range(2)]
    paths = [others[0], lambda s: [0.5 * s, 0.2 * s * s], others[1]]
    made = [optimal_timing._cells(arm, path, 12 + k, None, "path") for k, path in enumerate(paths)]
    limits = optimal_timing.limits_of(arm, 150.0, 2.0, None, None, None, True)
    optimal_timing._many(limits, made, (0.0, 0.0), 1)
    size = max(len(optimal_timing.with_turning_points(limits, cells).lengths) for cells in made)
    each = [optimal_timing._with(optimal_timing.with_turning_points(limits, cells), size) for cells in made]
    rho = np.tile([0.1, 0.4, 0.9], (3 * size, 1))
    together = along[0].at(np.arange(3 * size), rho)
    resting = [list(cells.resting) for cells in each]
    assert [len(cells) for cells in resting] == [2, 0, 2]
    assert along[0].resting.tolist() == [k * size + cell for k in range(3) for cell in resting[k]]
    points = along[0].beside_rest(along[0].resting, 9)
    np.testing.assert_array_equal(
        points, np.concatenate([cells.beside_rest(cells.resting, 9) for cells in each])
    )
    for k, cells in enumerate(each):
        alone = cells.at(np.arange(size)[:, None] + 0 * rho[:size].astype(int), rho[:size])
        for ours, theirs in zip(together, alone, strict=True):
            np.testing.assert_array_equal(ours[k * size : (k + 1) * size], theirs)


def test_where_a_path_is_not_possible_and_why(arm):
    hold = np.abs(arm.gravity_torques(np.linspace([0, 0], [3, 0], 301)))[:, 0].max()
    with pytest.raises(motion.InfeasiblePathError, match="of the path") as error:
        optimal(arm, [[0.0, 0.0], [3.1, 0.0]], torque=[0.8 * hold, 1e6], velocity=1.0)
    assert (error.value.joint, error.value.quantity) == (arm.joint_names[0], "torque")
    assert 0 < error.value.fraction < 1
    assert error.value.limit is not None
    assert abs(error.value.needed or 0) > abs(error.value.limit)


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ([[0.0, 0.0], [0.0, 0.0]], {}, "all way-points are the same"),
        (motion.hold([0.0, 0.0]), {}, "no joint moves"),
        ([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]], {}, r"shape \(m, 2\)"),
        (np.zeros((0, 2)), {}, r"shape \(m, 2\)"),
        ([[0.0, np.nan], [1.0, 1.0]], {}, "finite"),
        (lambda s: [s], {}, "expected 2 positions"),
        (lambda s: [s, 1 / (s - s)], {}, "not finite|cannot be traced|division"),
        (5, {}, r"shape \(m, 2\)"),
        (None, {}, "path"),
        (LINE, {"velocity": 0.0}, "positive limits"),
        (LINE, {"velocity": 1e-300}, "joint1|moves along the path"),
        (LINE, {"torque": [[1.0, 1.0], [-1.0, -1.0]]}, "lowest limits below"),
        (LINE, {"start_speed": -1.0}, "not negative"),
        (LINE, {"cells": 2}, "from 4 on"),
        (LINE, {"grid": [0.0, 0.7, 0.5, 1.0]}, "ascending"),
        (LINE, {"torque": np.inf}, "no bound"),
    ],
)
def test_wrong_input_is_refused_by_name(arm, path, options, message):
    with pytest.raises((ValueError, TypeError, ArithmeticError), match=message):
        motion.time_optimal(arm, path, **{"torque": 100.0, **options})


def test_joints_with_a_velocity_limit_of_zero_may_stand_but_not_move():
    """As in files that have zeros for what is not known."""
    arm = lw.load("two_link")
    speeds = [2.0, np.nextafter(0, 1)]
    assert np.isfinite(optimal(arm, [[0.0, 0.3], [1.0, 0.3]], torque=150.0, velocity=speeds).duration)
    with pytest.raises(motion.LimitError, match=f"{arm.joint_names[1]} moves along the path"):
        optimal(arm, LINE, torque=150.0, velocity=speeds)


def test_robots_with_free_joints_are_refused():
    with pytest.raises((lw.LinkwiseError, ValueError, TypeError), match="motions"):
        motion.time_optimal(lw.load("two_link", base="floating"), [[0.0], [1.0]])


# -- the passes and another library -----------------------------------------------------------------------------------


def test_the_passes_agree_with_a_search_over_the_speeds():
    """One cell: the greatest x from which u leads into the interval, by trying all."""
    rng = np.random.default_rng(1)
    shape = (8, 1, 4, 3)
    a, b, wide = rng.normal(size=shape), rng.normal(size=shape), rng.uniform(0.5, 2.0, shape)
    lengths, most, ends = np.full((8, 1), 0.1), np.full((8, 2), 9.0), np.tile([0.0, 0.2], (8, 1))
    found = reachability.passes(a, b, -wide, wide, np.full((8, 1, 4), 1e-6), lengths, most, ends, 1)
    x = np.linspace(0, 9, 90001)[:, np.newaxis]
    u = (0.2 - x) / 0.2
    for k in range(8):
        inside = np.abs(
            a[k, 0].ravel() * u + b[k, 0].ravel() * (x + 0.2 * u * np.repeat([0, 1 / 3, 2 / 3, 1], 3))
        )
        possible = x[(inside <= wide[k, 0].ravel()).all(axis=1), 0]
        if possible.size:
            assert found.greatest[k, 0] == pytest.approx(possible.max(), abs=2e-4)
            assert found.least[k, 0] == pytest.approx(possible.min(), abs=2e-4)
        else:
            assert found.greatest[k, 0] - found.least[k, 0] < 2e-4


def test_times_are_those_of_toppra():
    toppra = pytest.importorskip("toppra")
    from toppra import algorithm, constraint

    toppra.setup_logging("ERROR")
    scheme = constraint.DiscretizationType.Interpolation
    grid = np.linspace(0, 1, 201)
    for ways in WAYS[:2]:
        found = optimal(PUMA, ways, torque=TORQUE, velocity=2.5, friction=False, grid=grid)
        length = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(ways, axis=0), axis=1))])
        path = toppra.SplineInterpolator(length, ways, bc_type="natural")
        inverse = lambda q, qd, qdd: PUMA.inverse_dynamics(q, qd, qdd, friction=False)  # noqa: E731
        limits = [
            constraint.JointVelocityConstraint(np.tile([-2.5, 2.5], (6, 1))),
            constraint.JointTorqueConstraint(
                inverse, np.stack([-TORQUE, TORQUE], 1), np.zeros(6), discretization_scheme=scheme
            ),
        ]
        other = algorithm.TOPPRA(limits, path, gridpoints=length[-1] * grid, solver_wrapper="seidel")
        assert found.duration == pytest.approx(other.compute_trajectory(0, 0).duration, rel=5e-3)
