"""Along a given path in the shortest time: ``time_optimal``.

The path is divided into cells, in each of which the acceleration u along the path is constant. Two passes of
reachability analysis (``reachability``) give the fastest speed at all grid points, with limits at four samples of every
cell. Between samples limits are checked at the peaks of parabolas through them. What is exceeded there by little is
repaired by a motion that is slower as a whole; otherwise the cell keeps a margin and the passes are repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.errors import ArgumentError, ShapeError
from linkwise.motion import arguments
from linkwise.motion.shortest_time import one_call, verified
from linkwise.motion.shortest_time.cells import (
    SAMPLES,
    Cells,
    SplineCells,
    cubics,
    spline_blocks,
    spline_nodes,
)
from linkwise.motion.shortest_time.infeasible import explained, not_kept
from linkwise.motion.shortest_time.one_call import KEPT, ROUNDS, SETTLED, SETTLING, SLOWER
from linkwise.motion.shortest_time.optimal_jerk import JerkLimited
from linkwise.motion.shortest_time.optimal_motion import (
    InfeasiblePathError,
    TimeOptimal,
    TimeOptimalMotions,
    grid_times,
)
from linkwise.motion.shortest_time.path_limits import (
    CREEP,
    Limits,
    Strips,
    check_speed,
    limits_of,
)
from linkwise.motion.shortest_time.path_shape import path_cells
from linkwise.motion.shortest_time.paths import Splines, joint_path, way_points
from linkwise.motion.shortest_time.reachability import Found, passes
from linkwise.motion.shortest_time.turning import with_turning_points
from linkwise.motion.trajectory import Moment
from linkwise.robot.robot import Robot

CELLS = 100
MUCH_SLOWER = 0.5  # the same on the finest grid
REFINED = 3  # grids, each with cells half as long, before the attempt ends
ATTEMPTS = 8  # grids, each with cells halved in which the motion exceeds a limit
LAW = 0.6  # cells of the time law of motions with limited jerk, for each cell along the path
BLOCK = 64  # paths in one call of the passes


def time_optimal(
    robot: Robot,
    path: Any,
    *,
    torque=None,
    velocity=None,
    acceleration=None,
    jerk=None,
    tip_speed: float | None = None,
    frame: str | None = None,
    friction: bool = True,
    start_speed: float = 0.0,
    end_speed: float = 0.0,
    cells: int = CELLS,
    grid=None,
    threads: int | None = None,
) -> TimeOptimal | TimeOptimalMotions:
    """The motion along a path that takes the shortest time under all limits.

    Without ``jerk`` it is found by two passes of reachability analysis. With it, an interior-point method makes the
    speed along the path smooth; that takes longer, and its time is a little above the shortest one.

    Args:
        robot: the robot, with its friction and payload.
        path: way-points (m, n), connected by a cubic spline; a motion of ``linkwise.motion``, whose timing is not used;
            or a function of a number from 0 to 1 that gives n positions. Many paths at once: way-points (paths, m, n),
            or a list of paths.
        torque: limits [N·m or N] in place of the robot's: one number, (n,), or (2, n) with the lowest and the highest.
        velocity: limits [rad/s or m/s] in place of the robot's, one number or (n,).
        acceleration: limits [rad/s² or m/s²], one number or (n,); by default none.
        jerk: limits [rad/s³ or m/s³], one number or (n,); by default none, and accelerations jump. With it paths start
            and end at rest and without acceleration, and points where their curvature jumps are passed at rest.
        tip_speed: limit of the speed of a frame's origin [m/s]; by default none.
        frame: the frame of ``tip_speed``; by default the only leaf.
        friction: whether torques include friction.
        start_speed: speed at the start, √Σq̇² [rad/s or m/s].
        end_speed: speed at the end, likewise.
        cells: number of cells of the grid along the path; more give a shorter time, about in proportion to 1/cells.
        grid: the grid points themselves, ascending from 0 to 1, as fractions of the distance along the path.
        threads: number of threads for many paths.

    Returns:
        A motion, or for many paths ``TimeOptimalMotions``.

    Raises:
        InfeasiblePathError: no motion along the path keeps the limits; the message names where and which limit.
        ConstraintError: the path breaks a constraint of the robot.
    """
    arguments.check_robot(robot)
    limits = limits_of(robot, torque, velocity, acceleration, tip_speed, frame, flag("friction", friction))
    speeds = check_speed("start_speed", start_speed), check_speed("end_speed", end_speed)
    cells = arguments.whole("cells", cells, 4)
    if grid is not None:
        grid = _checked_grid(grid)
    if not limits.bound:
        raise ArgumentError(
            f"time_optimal: {robot.name} has no torque limits, and without them or acceleration= the time has no bound"
        )
    if jerk is not None:
        return _smooth(limits, path, _jerks(robot, jerk, speeds), cells, grid)
    if isinstance(path, (list, tuple)) and path and not _are_numbers(path):
        made = [_cells(robot, one, cells, grid, f"path[{k}]") for k, one in enumerate(path)]
        return TimeOptimalMotions(_many(limits, made, speeds, threads))
    points = arguments.finite("path", path) if not (callable(path) or _is_path(path)) else None
    if points is not None and points.ndim == 3:
        return _many_splines(limits, points, cells, grid, speeds, threads)
    one = _cells(robot, path if points is None else points, cells, grid, "path")
    return _in_one_call(limits, one, speeds) or _single(limits, one, speeds)


def _jerks(robot: Robot, jerk: Any, speeds: tuple[float, float]) -> np.ndarray:
    jerks = arguments.limits("jerk", jerk, robot.dof)
    if not (jerks > 0).all():
        raise ValueError(f"jerk: expected positive limits, got {jerk!r}")
    if any(speeds):
        raise ValueError("start_speed, end_speed: with jerk= a path starts and ends at rest")
    return jerks


def _smooth(limits: Limits, path: Any, jerk: np.ndarray, cells: int, grid: np.ndarray | None) -> Any:
    """Motions with limited jerk, one by one."""
    many = isinstance(path, np.ndarray) and path.ndim == 3
    if many or (isinstance(path, (list, tuple)) and path and not _are_numbers(path)):
        motions: list[Any] = []
        for one in path:
            try:
                single = _smooth(limits, one, jerk, cells, grid)
                motions.append((single.duration, partial(_same, single)))
            except InfeasiblePathError as error:
                motions.append(error)
        return TimeOptimalMotions(motions)
    along = _cells(limits.robot, path, cells, grid, "path")
    return JerkLimited(limits, along, jerk, max(12, round(LAW * cells)))


def _is_path(path: Any) -> bool:
    from linkwise.motion.shortest_time.paths import JointPath
    from linkwise.motion.trajectory import Trajectory

    return isinstance(path, (Trajectory, JointPath))


def _are_numbers(path: Sequence[Any]) -> bool:
    """Whether a list holds the way-points of one path: rows of numbers."""
    first = path[0]
    return not callable(first) and not _is_path(first) and np.ndim(first) < 2


def _checked_grid(grid: Any) -> np.ndarray:
    points = arguments.finite("grid", grid)
    if (
        points.ndim != 1
        or len(points) < 3
        or points[0] != 0
        or points[-1] != 1
        or not (np.diff(points) > 0).all()
    ):
        raise ValueError("grid: expected at least three fractions, ascending from 0 to 1")
    return points


def _cells(robot: Robot, path: Any, count: int, grid: np.ndarray | None, name: str) -> Cells:
    """The grid of one path."""
    if callable(path) or _is_path(path):
        return path_cells(joint_path(robot, path, name), count, grid)
    if not isinstance(path, (np.ndarray, list, tuple)):
        joint_path(robot, path, name)  # raises
    splines = Splines(way_points(path, robot.dof, name)[np.newaxis])
    return SplineCells(splines.knots[0], splines.coefficients[0], spline_nodes(splines, count, grid)[0])


# -- one path ---------------------------------------------------------------------------------------------------------


def _in_one_call(limits: Limits, cells: Cells, speeds: tuple[float, float]) -> TimeOptimal | None:
    """The motion along one path by one call of compiled code; None where that finds none."""
    rows = None if any(speeds) else one_call.rows_of(limits)
    if rows is None or not isinstance(cells, SplineCells):
        return None
    knots, coefficients, nodes = cells.knots, cells.coefficients, cells.nodes
    (found,) = one_call.fastest(
        limits, rows, knots[np.newaxis], coefficients[np.newaxis], nodes[np.newaxis], 1
    )
    return None if found is None else _checked(limits, SplineCells(knots, coefficients, found.nodes), found)


def _checked(limits: Limits, cells: SplineCells, found: one_call.Fastest) -> TimeOptimal | None:
    """The motion, if limits are kept where that was unclear."""
    x = found.x
    if found.unclear.size:
        one, most = cells.lengths[np.newaxis], np.full(1, SLOWER)
        (x,), (kept,), _ = verified.slower(limits, _along(cells), x[np.newaxis], one, most, 1, found.unclear)
        if not kept:
            return None
    return TimeOptimal(limits, cells, x)


def _single(limits: Limits, cells: Cells, speeds: tuple[float, float]) -> TimeOptimal:
    """The motion along one path, on a finer grid where limits could not be kept."""
    beyond: verified.Excess | None = None
    x = np.zeros(0)
    for attempt in range(ATTEMPTS):
        cells = with_turning_points(limits, cells)
        moment = Moment(*(array[np.newaxis] for array in cells.samples()))
        last = attempt == ATTEMPTS - 1
        problem = Problem(limits, moment, cells.lengths[np.newaxis], cells.stops[np.newaxis], speeds, 1)
        if last or attempt >= REFINED - 1:
            problem.slower = MUCH_SLOWER
        problem.plan_faster(min(SLOWER * 4.0**attempt, MUCH_SLOWER))
        problem.solve()
        if problem.failed[0] and problem.faster.any():
            problem.plan_faster(0.0)
            problem.solve()
        if problem.failed[0]:
            raise explained(problem, cells, 0)
        if not problem.kept[0]:
            if attempt >= REFINED - 1:
                break
            cells = cells.halved(np.arange(len(cells.lengths)))
            continue
        most = np.zeros(1) if any(speeds) else np.full(1, MUCH_SLOWER if last else SLOWER)
        x, kept, beyond = verified.slower(
            limits, _along(cells), problem.x, cells.lengths[np.newaxis], most, 1
        )
        still = (x[0, :-1] == 0) & (x[0, 1:] == 0)  # such cells are never left
        if kept[0] and not still.any():
            return TimeOptimal(limits, cells, x[0])
        passed = _passed_too_fast(cells, x[0], beyond)
        if passed.size and not last:
            ends = np.isin(passed, (0, len(cells.lengths)))
            if ends.any():
                raise _bent_end(passed[ends][0] == 0)
            cells = cells.with_stops(passed)
        elif not last:
            cells = cells.halved(np.flatnonzero((beyond.part > 0) | still))
        elif kept[0]:
            fraction = float(cells.fractions[int(np.argmax(still))])
            raise InfeasiblePathError(
                f"no motion was found that passes {fraction:.1%} of the path with a speed above zero",
                fraction,
            )
    if beyond is not None:
        raise not_kept(limits, cells, x[0], beyond)
    raise InfeasiblePathError(
        f"the limits of {limits.robot.name} were not kept along the path with {len(cells.lengths)} cells; "
        "is a derivative of the path not continuous?"
    )


def _bent_end(first: bool) -> InfeasiblePathError:
    """A speed is given at an end at which the path's own motion comes to rest along a bend."""
    name = "start_speed" if first else "end_speed"
    return InfeasiblePathError(
        f"{name}: the motion that gives the path rests there, and the curvature of its path has no bound: a limit is "
        "exceeded next to it at any speed",
        0.0 if first else 1.0,
    )


def _along(cells: Cells) -> verified.Along:
    def at(cell: np.ndarray, rho: np.ndarray) -> Moment:
        return cells.at(np.broadcast_to(cell[:, np.newaxis], rho.shape), rho)

    return verified.Along(at, cells.resting, cells.beside_rest)


def _passed_too_fast(cells: Cells, x: np.ndarray, found: verified.Excess) -> np.ndarray:
    """Grid points without a tangent that are passed while a limit is exceeded next to them."""
    beyond = cells.resting[found.part[cells.resting] > 0]
    last = x[beyond + 1] > 0
    first = x[beyond] > 0
    rest_last = found.rho[beyond] > 0.5
    return np.where(rest_last, beyond + 1, beyond)[np.where(rest_last, last, first)]


class Problem:
    """Paths with as many cells each, and the fastest speeds along them."""

    def __init__(
        self,
        limits: Limits,
        moment: Moment,
        lengths: np.ndarray,
        stops: np.ndarray,
        speeds: tuple[float, float],
        threads: int | None,
    ):
        arguments.check_keeps_constraints(limits.robot, moment.q, "path")
        rests = stops.copy()
        rests[:, 0], rests[:, -1] = speeds[0] == 0, speeds[1] == 0
        self.strips = strips = Strips(limits, moment, lengths, rests, threads)
        first = moment.qd
        tangents = np.stack([first[:, 0, 0], first[:, -1, -1]], axis=1)
        self.tangents = np.sqrt((tangents * tangents).sum(axis=-1))
        with np.errstate(over="ignore"):
            self.ends = (np.array(speeds) / self.tangents) ** 2
        self.most = strips.most()
        self.margin = np.broadcast_to(KEPT * strips.scale, strips.a[:, :, 0].shape)
        self.slower = SLOWER
        self.faster = np.zeros(len(lengths))
        self.x = self.least = self.greatest = np.zeros(0)
        self.failed = self.kept = np.zeros(0, dtype=bool)

    def plan_faster(self, part: float) -> None:
        """Plan motions with given speeds at their ends for higher ones: afterwards squares of speeds are smaller by
        ``part``, so that these motions, too, can become slower as a whole."""
        self.ends = self.ends * (1 - self.faster)[:, np.newaxis]
        self.faster = np.where(self.ends.any(axis=1), part, 0.0)
        self.ends = self.ends / (1 - self.faster)[:, np.newaxis]

    def solve(self, rounds: int = ROUNDS) -> None:
        """Passes with larger and larger margins until no limit is exceeded inside of a cell.

        Friction is that of the solution before: first that of creeping, then until the times settle.
        """
        strips, rubs = self.strips, self.strips.limits.rubs
        count, cells, samples, _ = strips.a.shape
        u, inside = np.zeros((count, cells, 1)), np.full((count, cells, samples), CREEP)
        most, times = self.most * (1 - KEPT), np.zeros(count)
        speeds = strips.speeds * (1 + KEPT)
        kept, x = np.zeros(count, dtype=bool), np.zeros((count, cells + 1))
        last = rounds + (SETTLING if rubs else 0) - 1
        left, some = np.arange(count), strips
        for turn in range(last + 1):
            rows = some.rows(self.margin[left], u[left], inside[left], sloping=turn > 0)
            given = (*rows, speeds[left], some.lengths, most[left], self.ends[left], strips.threads)
            passed = passes(*given, even=True)
            failed = self._failed(passed, left)
            if failed.any():  # perhaps for speeds that were left out
                for mine, other in zip(passed, passes(*given), strict=True):
                    mine[failed] = other[failed]
                failed = self._failed(passed, left)
            if turn == 0 or failed.any():
                self._note(passed, failed, left)
            passed.x[failed] = x[left[failed]]
            settled = np.ones(len(left), dtype=bool)
            if rubs:
                u[left], inside[left] = some.at_samples(passed.x)
                before = times[left]
                times[left] = now = grid_times(np.maximum(passed.x, CREEP), some.lengths)[:, -1]
                if turn <= SETTLING:
                    settled = np.abs(now - before) < SETTLED * now
            good = np.zeros(len(left), dtype=bool)
            # friction that is not that of the solution yet decides nothing
            chosen = np.flatnonzero(settled & ~failed)
            if chosen.size:
                good[chosen], slower = self._slowed(passed, some, left, chosen, first=turn == 0)
                x[left[good]], kept[left[good]] = slower[good[chosen]], True
            if (good | failed).all() or turn == last:
                break
            if turn >= (SETTLING if rubs else 0) or settled.all():
                self._keep_margins(passed.x, some, left, ~(failed | good), most)
            if good.any():
                left = left[~good]
                some = strips.of(left)
        self.x, self.kept = x, kept

    def _note(self, passed: Found, failed: np.ndarray, left: np.ndarray) -> None:
        """Remember which paths failed, and the intervals from which their ends can be reached."""
        if len(left) == len(self.ends):
            self.least, self.greatest, self.failed = passed.least, passed.greatest, failed
            return
        self.least[left], self.greatest[left] = passed.least, passed.greatest
        self.failed = np.zeros(len(self.ends), dtype=bool)
        self.failed[left] = failed

    def _slowed(
        self, found: Found, some: Strips, left: np.ndarray, chosen: np.ndarray, *, first: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which of the ``chosen`` paths keep all limits when they become a little slower as a whole, and the slower x.

        A slower motion needs torques between those of the faster one and those that hold still. The ``first`` pass has
        no margins, so what it found to be exceeded counts. ``some`` and ``found`` are those of the paths ``left``.
        """
        paths = left[chosen]
        given, faster = self.ends[paths].any(axis=1), self.faster[paths]
        x = found.x[chosen]
        if first and not some.limits.rubs:
            excess = found.excess[chosen].max(axis=1)
            slower = 1 - np.where(given, faster, 1.1 * excess)
            return excess <= self._allowed_excess[paths], x * slower[:, np.newaxis]
        if len(chosen) < len(left):
            some = some.of(chosen)
        slower, good, excess = x * (1 - faster)[:, np.newaxis], np.ones(len(x), dtype=bool), np.zeros(0)
        for _ in range(4 if self.slower == SLOWER else 40):  # friction changes with the speed
            excess = some.excess(slower).max(axis=1)
            good &= excess <= np.where(given, 0.0, self.slower)
            if not excess[good].any():
                return good, slower
            slower = slower * (1 - 1.1 * excess - 1e-7 * (excess > 0))[:, np.newaxis]
        return good & (excess == 0), slower

    @property
    def _allowed_excess(self) -> np.ndarray:
        """How much slower paths may become as a whole: by what was planned where speeds at the ends are given."""
        return np.where(self.ends.any(axis=1), np.maximum(self.faster / 1.1, 0.4 * KEPT), self.slower)

    def _keep_margins(
        self, x: np.ndarray, some: Strips, left: np.ndarray, paths: np.ndarray, most: np.ndarray
    ) -> None:
        """Larger margins where limits of ``paths`` among those ``left`` do not hold inside of cells."""
        scale = some.scale
        beyond, fast = some.beyond(x)
        paths = paths[:, np.newaxis]
        if not self.margin.flags.writeable:
            self.margin = self.margin.copy()
        self.margin[left] += np.where(
            (beyond > 0) & paths[..., np.newaxis], 1.1 * (beyond + KEPT * scale), 0.0
        )
        slower = 1 / np.where((fast > 1) & paths, 1 + 1.1 * (fast - 1 + KEPT), 1.0)
        own = most[left]
        own[:, 1:] *= slower
        own[:, :-1] *= slower
        most[left] = own

    def _failed(self, found: Found, left: np.ndarray) -> np.ndarray:
        """Which of the paths ``left`` cannot reach their end from their start."""
        low, high, start = found.least[:, 0], found.greatest[:, 0], self.ends[left, 0]
        return (high < low) | (start > high * (1 + 1e-9) + 1e-15) | (start < low * (1 - 1e-9) - 1e-15)


# -- many paths -------------------------------------------------------------------------------------------------------


def _many_splines(
    limits: Limits,
    points: np.ndarray,
    count: int,
    grid: np.ndarray | None,
    speeds: tuple[float, float],
    threads: int | None,
) -> TimeOptimalMotions:
    """Motions along splines through as many way-points each."""
    dof = limits.robot.dof
    if points.shape[2] != dof or points.shape[1] < 2:
        raise ShapeError(f"path: expected way-points of shape (paths, m, {dof}), m ≥ 2; got {points.shape}")
    near = np.linalg.norm(np.diff(points, axis=1), axis=-1) <= 1e-12
    rows = None if any(speeds) or near.any() else one_call.rows_of(limits)
    motions: list[Any] = []
    for splines, nodes in spline_blocks(points, BLOCK, count, grid):
        if rows is None:
            motions = [None] * len(points)
            break
        found = one_call.fastest(limits, rows, splines.knots, splines.coefficients, nodes, threads)
        for k, each in enumerate(found):
            motions.append(None)
            if each is None:
                continue
            cells = partial(SplineCells, splines.knots[k], splines.coefficients[k], each.nodes)
            if not each.unclear.size:
                duration = float(grid_times(each.x, np.diff(each.nodes))[-1])
                motions[-1] = (duration, partial(_motion, limits, cells, each.x))
            elif (single := _checked(limits, cells(), each)) is not None:
                motions[-1] = (single.duration, partial(_same, single))
    left = [k for k, motion in enumerate(motions) if motion is None]
    if left and (limits.turns or near.any()):
        made = [_cells(limits.robot, points[k], count, grid, f"path[{k}]") for k in left]
        others = _many(limits, made, speeds, threads)
    else:
        others = _spline_blocks(limits, points[left], count, grid, speeds, threads)
    for k, motion in zip(left, others, strict=True):
        motions[k] = motion
    return TimeOptimalMotions(motions)


def _spline_blocks(
    limits: Limits,
    points: np.ndarray,
    count: int,
    grid: np.ndarray | None,
    speeds: tuple[float, float],
    threads: int | None,
) -> list[Any]:
    """Motions as ``TimeOptimalMotions`` takes them, block by block with the same number of cells."""
    motions: list[Any] = []
    for splines, nodes in spline_blocks(points, BLOCK, count, grid):
        middle = 0.5 * (nodes[:, 1:] + nodes[:, :-1])
        piece = (middle[..., np.newaxis] >= splines.knots[:, np.newaxis, 1:-1]).sum(axis=-1)
        rows = np.arange(len(nodes))[:, np.newaxis]
        lengths = np.diff(nodes)
        local = (nodes[:, :-1] - splines.knots[rows, piece])[..., np.newaxis] + lengths[
            ..., np.newaxis
        ] * SAMPLES
        moment = cubics(splines.coefficients[rows, piece][:, :, np.newaxis], local[..., np.newaxis])
        made = [
            partial(SplineCells, splines.knots[k], splines.coefficients[k], nodes[k])
            for k in range(len(nodes))
        ]
        stops = np.zeros(nodes.shape, dtype=bool)
        start_of, span = (nodes[:, :-1] - splines.knots[rows, piece]).ravel(), lengths.ravel()
        table = splines.coefficients[rows, piece].reshape(-1, *splines.coefficients.shape[2:])

        def at(cell: np.ndarray, rho: np.ndarray, table=table, start=start_of, span=span) -> Moment:
            inside = start[cell, np.newaxis] + span[cell, np.newaxis] * rho
            return cubics(table[cell][:, np.newaxis], inside[..., np.newaxis])

        along = verified.Along(at, np.zeros(0, dtype=int), lambda cell, points: np.zeros((len(cell), points)))
        motions += _block(limits, moment, lengths, stops, made, along, speeds, threads)
    return motions


def _many(limits: Limits, made: list[Cells], speeds: tuple[float, float], threads: int | None) -> list[Any]:
    """Motions along paths of any kind: all get as many cells as the one with the most."""
    motions: list[Any] = []
    made = [with_turning_points(limits, cells) for cells in made]
    size = max((len(cells.lengths) for cells in made), default=0)
    for start in range(0, len(made), BLOCK):
        some = [_with(cells, size) for cells in made[start : start + BLOCK]]
        moment = Moment(
            *(np.stack(arrays) for arrays in zip(*(cells.samples() for cells in some), strict=True))
        )
        lengths, stops = (
            np.stack([cells.lengths for cells in some]),
            np.stack([cells.stops for cells in some]),
        )
        same = [partial(_same, cells) for cells in some]

        def at(cell: np.ndarray, rho: np.ndarray, some=some) -> Moment:
            path, own = np.divmod(cell, size)
            parts = [_along(some[k]).at(own[path == k], rho[path == k]) for k in np.unique(path)]
            return Moment(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

        def beside_rest(cell: np.ndarray, points: int, some=some) -> np.ndarray:
            path, own = np.divmod(cell, size)
            return np.concatenate([some[k].beside_rest(own[path == k], points) for k in np.unique(path)])

        resting = np.concatenate([k * size + cells.resting for k, cells in enumerate(some)])
        along = verified.Along(at, resting, beside_rest)
        motions += _block(limits, moment, lengths, stops, same, along, speeds, threads)
    return motions


def _with(cells: Cells, size: int) -> Cells:
    """The same path with so many cells: the longest are divided."""
    while (missing := size - len(cells.lengths)) > 0:
        longest = np.argsort(-cells.lengths, kind="stable")[:missing]
        cells = cells.halved(np.sort(longest))
    return cells


def _block(
    limits: Limits,
    moment: Moment,
    lengths: np.ndarray,
    stops: np.ndarray,
    made: Sequence[Callable[[], Cells]],
    along: verified.Along,
    speeds: tuple[float, float],
    threads: int | None,
) -> list[Any]:
    """Paths with as many cells each, as ``TimeOptimalMotions`` takes them; those that need a finer grid one by one."""
    problem = Problem(limits, moment, lengths, stops, speeds, threads)
    problem.plan_faster(SLOWER)
    problem.solve()
    most = np.where(problem.ends.any(axis=1), 0.0, SLOWER)
    problem.x, sound, _ = verified.slower(limits, along, problem.x, lengths, most, threads)
    durations = grid_times(problem.x, lengths)[:, -1]
    problem.kept &= sound & np.isfinite(durations)
    motions: list[Any] = []
    for k, cells in enumerate(made):
        if problem.failed[k] and not problem.faster[k]:
            motions.append(explained(problem, cells(), k))
            continue
        try:
            if problem.kept[k]:
                motions.append((float(durations[k]), partial(_motion, limits, cells, problem.x[k])))
            else:
                single = _single(limits, cells(), speeds)
                motions.append((single.duration, partial(_same, single)))
        except InfeasiblePathError as error:
            motions.append(error)
    return motions


def _motion(limits: Limits, cells: Callable[[], Cells], x: np.ndarray) -> TimeOptimal:
    return TimeOptimal(limits, cells(), x)


def _same(made: Any) -> Any:
    return made
