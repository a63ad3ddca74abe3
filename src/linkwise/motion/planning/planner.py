"""Collision-free motions in the shortest time: search, shortcuts, rounded corners, timing, each checked."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.collision.clearance import UNKNOWN, position_range
from linkwise.collision.validity.nests import ASKED
from linkwise.collision.validity.validity import Validity, validity_of, whole_turns
from linkwise.collision.world import World
from linkwise.core.summaries import Summarised, Summary
from linkwise.errors import ArgumentError
from linkwise.model.checks import check_outside_loops
from linkwise.model.coordinates import CoordinateLimits
from linkwise.motion import arguments
from linkwise.motion.kinematics.inverse import inverse_kinematics
from linkwise.motion.planning.constrained import ConstrainedSearch, finer
from linkwise.motion.planning.constraint import Keep
from linkwise.motion.planning.proof import Prover
from linkwise.motion.planning.rounded import control_points, largest_cuts, smooth_path, without_repeats
from linkwise.motion.planning.search import GAP, STEP, Search, some_goals
from linkwise.motion.shortest_time.optimal_motion import InfeasiblePathError, TimeOptimal
from linkwise.motion.shortest_time.optimal_timing import time_optimal
from linkwise.robot.robot import Robot

ROUNDS = 20_000  # of a search
ATTEMPTS = 4  # searches, each with positions closer to each other, until a path is proved
SPARE = 0.01  # [m] by which a search keeps away further than is wanted, where start and goal allow it
LEVELS = (  # of searches: part of that, longest edge of a tree [rad or m], rounds; the last one has all that are left
    (1.0, STEP, 400),
    (0.2, 0.5, 4000),
    (0.0, 0.5, ROUNDS),
)
SMALLEST_CUT = 0.01  # part of a corner's lines up to which a parabola is made smaller
SOLUTIONS = 8  # of inverse kinematics for a pose
CELLS = 40  # of the grid for the timing
DENSER = 5  # times that way-points under a constraint are doubled
CHECKED = 16  # points of a piece at which a constraint is checked
_LOST = 1e-6  # [rad or m] positions may be beyond a limit by rounding


@dataclass(frozen=True, eq=False, repr=False)
class MotionPlan(Summarised):
    """What ``plan`` found.

    ``status``: "solved"; "start collides", "goal collides", "goal unreachable", "start off constraint", "goal off
    constraint": nothing was searched; "no path": the
    search ended without one, which does not prove that there is none; "not proved": a path was found, but its clearance
    could not be proved; "no timing": no motion along the path keeps the limits. ``message`` says more.
    """

    status: str
    message: str
    robot: Robot
    world: World
    validity: Validity
    """The checks of the robot that were used."""
    waypoints: np.ndarray | None = None
    """Way-points (m, n) of the path before its corners were rounded."""
    path: Any = None
    """The path with rounded corners; its parameter is a distance [rad or m]."""
    motion: TimeOptimal | None = None
    """The motion in the shortest time under the limits; None with ``timing=False``."""
    clearance: float = float("nan")
    """A distance [m] to obstacles and between links that is kept all the way, proved between samples, too. Distances
    of more than 0.2 m beyond the wanted one are not told apart."""
    bounds: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    """Rows (begin, end, distance [m]): proved for this range of the path's parameter."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall time of the search with its shortcuts, of the proof with rounding, and of the timing [s]."""
    rounds: int = 0
    """Rounds of the search."""
    seed: int = 0

    @property
    def solved(self) -> bool:
        """Whether there is a path, and a motion where one was wanted."""
        return self.status == "solved"

    def __bool__(self) -> bool:
        return self.solved

    def clearance_along(self, t: Any) -> np.ndarray:
        """Smallest distance [m] to obstacles and between links at the times t [s] of the motion, shape (...).

        Args:
            t: times [s].
        """
        if self.motion is None:
            raise ArgumentError(f"the plan has no motion: {self.status}")
        return self.validity.distance(self.motion.at(t).q, self.world)

    def _summary(self) -> Summary:
        title = f"MotionPlan: {self.status}" + (f": {self.message}" if self.message else "")
        if not self.solved:
            return Summary(title, (), [])
        assert self.waypoints is not None
        rows: list[list[object]] = [["way-points", len(self.waypoints), ""]]
        if self.motion is not None:
            rows.append(["duration", f"{self.motion.duration:.4g}", "s"])
        rows.append(["proved clearance", f"{100 * self.clearance:.3g}", "cm"])
        for key, value in self.seconds.items():
            rows.append([f"time of the {key}", f"{1e3 * value:.3g}", "ms"])
        return Summary(title, ("", ">", ""), rows)


def plan(
    robot: Robot,
    start: Any,
    goal: Any,
    world: World | Iterable[Any] | None = None,
    *,
    frame: str | None = None,
    seed: int = 0,
    clearance: float = 0.0,
    timing: bool = True,
    velocity: Any = None,
    acceleration: Any = None,
    torque: Any = None,
    constraint: Keep | None = None,
    rounds: int = ROUNDS,
    validity: Validity | None = None,
) -> MotionPlan:
    """A motion from a position to a goal that touches nothing, in the shortest time under the limits.

    A path is searched by two trees, shortened, and its corners are rounded; its clearance is proved between samples,
    too. Then ``time_optimal`` gives the motion along it. The result is the same for the same arguments and seed.

    Args:
        robot: the robot, with its payload.
        start: positions [rad or m], shape (n,).
        goal: positions (n,), several of them (k, n) of which one is reached (of more than 2048 the nearest half of
            as many, and some of the others), or a pose (4, 4) of the frame.
        world: the obstacles, ``linkwise.collision.World`` or a list of them; by default none.
        frame: of a goal that is a pose; by default the only leaf.
        seed: of the random numbers.
        clearance: distance [m] to keep to obstacles and between links; of links that are near each other by
            construction at most a quarter of the distance that they have in half of random postures.
        timing: False gives the path without a motion.
        velocity: limits [rad/s or m/s] in place of the robot's, one number or (n,).
        acceleration: limits [rad/s² or m/s²], one number or (n,); by default none.
        torque: limits [N·m or N] in place of the robot's, one number, (n,) or (2, n).
        constraint: what a frame keeps along the whole motion, ``linkwise.motion.Keep``; the path is checked between its
            way-points, too, at 16 points of each piece.
        rounds: of the search, at most.
        validity: checks of the robot with other spheres or pairs than the default ones.

    Returns:
        A plan; ``plan.status`` says whether there is a motion.

    Raises:
        ModelError: a constraint of the robot holds joints together.
    """
    arguments.check_robot(robot)
    check_outside_loops(robot, "a plan")
    timing, seed = flag("timing", timing), arguments.whole("seed", seed, 0, 2**63 - 1)
    rounds = arguments.whole("rounds", rounds, 1, 2**31)
    distance = arguments.limits("clearance", clearance, 1)[0]
    around = world if isinstance(world, World) else World(() if world is None else world)
    checks = validity_of(robot) if validity is None else validity
    limits = {"velocity": velocity, "acceleration": acceleration, "torque": torque}
    if constraint is not None and not isinstance(constraint, Keep):
        raise ArgumentError(f"constraint: expected linkwise.motion.Keep, got {type(constraint).__name__}")
    problem = _Problem(robot, around, checks, float(distance), seed, rounds, constraint)
    return problem.solve(start, goal, frame, timing, limits)


_Between = tuple[tuple[float, ...], tuple[float, ...]]


@lru_cache(maxsize=64)
def _search(validity: Validity, world: World, gap: float, between: _Between | None) -> Search:
    return Search(validity, world, gap=gap, between=None if between is None else np.array(between))


@lru_cache(maxsize=64)
def _prover(validity: Validity, world: World, clearance: float, between: _Between | None) -> Prover:
    return Prover(validity, world, clearance, None if between is None else np.array(between))


@lru_cache(maxsize=32)
def _ranges(robot: Robot) -> tuple[CoordinateLimits, tuple[np.ndarray, np.ndarray]]:
    """Limits of positions, infinite where there are none, and the range in which is searched."""
    return robot.limits, position_range(robot, None, None)


def _between(robot: Robot, positions: np.ndarray) -> _Between | None:
    """The range in which is searched, wider where joints without limits are beyond it at a start or goal; None where
    it is that of ``_ranges``."""
    lower, upper = _ranges(robot)[1]
    least, most = positions.min(axis=0), positions.max(axis=0)
    if (least >= lower).all() and (most <= upper).all():
        return None
    low, high = np.where(least < lower, least - UNKNOWN, lower), np.where(most > upper, most + UNKNOWN, upper)
    return tuple(low.tolist()), tuple(high.tolist())


@lru_cache(maxsize=32)
def _turning(robot: Robot) -> np.ndarray:
    """Which coordinates may be changed by whole turns: joints without limits, see ``whole_turns``."""
    limits = _ranges(robot)[0]
    return whole_turns(robot) & np.isinf(limits.lower) & np.isinf(limits.upper)


class _Problem:
    """One start and one goal."""

    def __init__(
        self,
        robot: Robot,
        world: World,
        validity: Validity,
        clearance: float,
        seed: int,
        rounds: int,
        constraint: Keep | None,
    ):
        self.constraint = constraint
        self.robot, self.world, self.validity = robot, world, validity
        self.clearance, self.seed, self.rounds = clearance, seed, rounds
        self.between: _Between | None = None
        self.prover = _prover(validity, world, clearance, None)
        self.wanted = validity.wanted(clearance, 0.5 * ASKED)  # the search keeps more
        self.seconds: dict[str, float] = {"search": 0.0, "proof": 0.0}
        self.used = 0
        self._nearest = ""

    def solve(
        self, start: Any, goal: Any, frame: str | None, timing: bool, limits: dict[str, Any]
    ) -> MotionPlan:
        n = self.robot.nq
        first = self._inside("start", arguments.positions("start", start, n)[None])[0]
        if (least := self._least(first[None])[0]) <= 0.0:
            return self._failed("start collides", self._why(first))
        goals = self._goals(goal, frame, first)
        if not len(goals):
            return self._failed("goal unreachable", self._nearest)
        if self.constraint is not None:
            if (error := float(self.constraint.error(self.robot, first))) > 1.0:
                return self._failed("start off constraint", f"{error:.3g} times its tolerance away")
            errors = self.constraint.error(self.robot, goals)
            goals = goals[errors <= 1.0]
            if not len(goals):
                return self._failed("goal off constraint", f"{errors.min():.3g} times its tolerance away")
        distances = self._least(goals)
        away = distances > 0.0
        free = some_goals(first, goals[away])
        if not len(free):
            return self._failed("goal collides", self._why(goals[0]))
        room = min(least, float(distances[away].max()))
        self.between = _between(self.robot, np.vstack([first, free]))
        if self.between is not None:
            self.prover = _prover(self.validity, self.world, self.clearance, self.between)
        found = self._proved(first, free, min(SPARE, 0.5 * room))
        if isinstance(found, MotionPlan):
            return found
        points, pieces, bounds = found
        path = smooth_path(pieces)
        values = {"waypoints": points, "path": path, "clearance": float(bounds[:, 2].min()), "bounds": bounds}
        if not timing:
            return self._plan("solved", "", **values)
        begin = time.perf_counter()
        try:
            motion = time_optimal(self.robot, path, cells=CELLS, **limits)
        except InfeasiblePathError as error:
            return self._plan("no timing", str(error), **values)
        finally:
            self.seconds["timing"] = time.perf_counter() - begin
        return self._plan("solved", "", motion=motion, **values)

    def _plan(self, status: str, message: str, **values: Any) -> MotionPlan:
        common = {"rounds": self.used, "seed": self.seed, "seconds": dict(self.seconds)}
        return MotionPlan(status, message, self.robot, self.world, self.validity, **values, **common)

    def _failed(self, status: str, message: str) -> MotionPlan:
        return self._plan(status, message)

    # -- start and goal -----------------------------------------------------------------------------------------------

    def _inside(self, name: str, q: np.ndarray) -> np.ndarray:
        """Positions within the joint limits."""
        limits = _ranges(self.robot)[0]
        beyond = (q < limits.lower - _LOST) | (q > limits.upper + _LOST)
        if beyond.any():
            joint = int(np.argwhere(beyond)[0][1])
            raise ArgumentError(
                f"{name}: {self.robot.joint_names[joint]} = {q[beyond][0]:.6g} is beyond its limits, "
                f"{limits.lower[joint]:.6g} to {limits.upper[joint]:.6g}"
            )
        return np.clip(q, limits.lower, limits.upper)

    def _goals(self, goal: Any, frame: str | None, start: np.ndarray) -> np.ndarray:
        n = self.robot.nq
        given = arguments.finite("goal", goal)
        if given.shape == (4, 4) and (n != 4 or _is_pose(given)):
            return self._reaching(given, frame, start)
        if frame is not None:
            raise ArgumentError("frame: only for a goal that is a pose (4, 4)")
        if given.ndim not in (1, 2) or given.shape[-1] != n or not len(given):
            raise ArgumentError(
                f"goal: expected positions ({n},), several (k, {n}) or a pose (4, 4), got shape {given.shape}"
            )
        return self._inside("goal", np.atleast_2d(given))

    def _reaching(self, pose: np.ndarray, frame: str | None, start: np.ndarray) -> np.ndarray:
        """Positions that reach a pose, each of them once."""
        rng = np.random.default_rng(self.seed)
        lower, upper = _ranges(self.robot)[1]
        starts = np.vstack([start, rng.uniform(lower, upper, (4 * SOLUTIONS - 1, self.robot.nq))])
        poses = np.broadcast_to(pose, (len(starts), 4, 4))
        found = inverse_kinematics(
            self.robot, poses, frame=frame, start=starts, starts=4, strict=False, tolerance=1e-7
        )
        best = int(np.argmin(found.position_error + found.rotation_error))
        self._nearest = (
            "inverse kinematics found no positions for the pose inside the joint limits; the nearest are "
            f"{100 * found.position_error[best]:.2g} cm and {np.degrees(found.rotation_error[best]):.2g}° away"
        )
        if self.robot.dof < 6:
            self._nearest += f"; {self.robot.dof} joints reach few of all poses: give positions as the goal"
        kept: list[np.ndarray] = []
        turning, limits = _turning(self.robot), _ranges(self.robot)[0]
        for q in np.asarray(found.q)[np.asarray(found.converged)]:
            turns = np.round((q - start) / (2.0 * np.pi))
            q = np.where(turning, q - 2.0 * np.pi * turns, q)  # the same pose, with shorter ways to it
            if len(kept) < SOLUTIONS and all(np.abs(q - other).max() > 1e-3 for other in kept):
                kept.append(q)
        return np.clip(np.array(kept).reshape(-1, self.robot.nq), limits.lower, limits.upper)

    def _least(self, q: np.ndarray) -> np.ndarray:
        """How much more than the wanted clearances there is [m], the least of all."""
        return (self.prover.clearances(q) - self.wanted).min(axis=1, initial=np.inf)

    def _why(self, q: np.ndarray) -> str:
        clearances = self.prover.clearances(q[None])[0]
        worst = int(np.argmin(clearances - self.wanted))
        words, least = self.validity.words[worst], clearances[worst]
        if worst < len(self.wanted) - len(self.validity.pairs.compared) and self.world.obstacles:
            alone = [self.validity.clearances(q, World([each])).world[worst] for each in self.world.obstacles]
            k = int(np.argmin(alone))
            words += f" (obstacle {k + 1} of {len(alone)}, a {type(self.world.obstacles[k]).__name__})"
        pair = worst - (len(self.wanted) - len(self.validity.pairs.compared))
        if least < 0:
            words += f" overlap by {-1000 * least:.2g} mm"
            if pair >= 0 and list(self.validity.pairs.usual.values())[pair] == 0.0:
                words += ", as they do in most postures; Validity(robot, skip=[…]) leaves out pairs of links by name"
            return words
        return f"{words} are {1000 * least:.3g} mm apart, wanted more than {1000 * self.wanted[worst]:.3g} mm"

    # -- path ---------------------------------------------------------------------------------------------------------

    def _proved(
        self, start: np.ndarray, goals: np.ndarray, spare: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray] | MotionPlan:
        """Way-points, pieces of the path with rounded corners, and what is proved."""
        gap, left, proofs = GAP, self.rounds, 0
        levels = list(LEVELS) if self.constraint is None else [(1.0, STEP, self.rounds)]
        while proofs < ATTEMPTS:
            part, step, most = levels[0]
            begin = time.perf_counter()
            search = _search(self.validity, self.world, gap, self.between)
            kept = self.clearance + part * spare
            seed, rounds = self.seed + proofs, min(most, left) if len(levels) > 1 else left
            if self.constraint is None:
                found = search.path(start, goals, seed=seed, rounds=rounds, step=step, clearance=kept)
            else:
                constrained = ConstrainedSearch(self.robot, search, self.constraint, kept)
                found = constrained.path(start, goals, seed=seed, rounds=rounds)
            self.seconds["search"] += time.perf_counter() - begin
            self.used += found.rounds
            if found.path is None:
                left -= found.rounds
                if len(levels) == 1 or left < 1:
                    return self._failed("no path", f"none was found in {self.used} rounds of the search")
                levels.pop(0)
                continue
            begin = time.perf_counter()
            points = self._ends(found.path, start, goals)
            result = self._rounded(points) if self.constraint is None else self._kept(points)
            self.seconds["proof"] += time.perf_counter() - begin
            if result is not None:
                return points, *result
            gap *= 0.4
            proofs += 1
        return self._failed("not proved", f"the clearance of {ATTEMPTS} paths could not be proved")

    @staticmethod
    def _ends(path: np.ndarray, start: np.ndarray, goals: np.ndarray) -> np.ndarray:
        """Way-points with the exact start and goal."""
        points = path.copy()
        points[0] = start
        points[-1] = goals[int(np.argmin(np.abs(goals - path[-1]).max(axis=1)))]
        return without_repeats(points)

    def _kept(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """As ``_rounded``, with as many projected way-points as the constraint needs to be kept between them."""
        assert self.constraint is not None
        way: np.ndarray | None = points
        for _ in range(DENSER):
            if way is None or (result := self._rounded(way)) is None:
                return None
            if float(self.constraint.error(self.robot, _inner_points(result[0])).max()) <= 1.0:
                return result
            between = _ranges(self.robot)[1] if self.between is None else np.array(self.between)
            way = finer(self.robot, self.constraint, way, (between[0], between[1]))
        return None

    def _rounded(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Pieces with the largest parabolas that are proved, and rows (begin, end, bound) of the path's parameter."""
        if len(points) < 2:
            points = np.vstack([points, points + 1e-6])
        cuts = largest_cuts(points) if len(points) > 2 else np.zeros(0)
        share = np.ones(len(cuts))
        while True:
            pieces = control_points(points, share * cuts)
            proof = self.prover.prove(pieces, self.wanted)
            bad = ~proof.proved
            if not bad.any():
                return pieces, _rows(pieces, proof)
            curved = np.abs(pieces[:, 0] - 2.0 * pieces[:, 1] + pieces[:, 2]).max(axis=1) > 1e-12
            if (bad & ~curved).any():
                return None
            smaller = bad[curved]
            if len(smaller) != len(cuts) or (share[smaller] <= SMALLEST_CUT).any():
                return None
            share = np.where(smaller, 0.4 * share, share)


def _inner_points(pieces: np.ndarray) -> np.ndarray:
    """Positions of all pieces of a path at ``CHECKED`` parameters each."""
    u = np.linspace(0.0, 1.0, CHECKED)[:, None, None]
    a, b, c = pieces.transpose(1, 0, 2)
    return ((1 - u) ** 2 * a + 2 * u * (1 - u) * b + u * u * c).reshape(-1, pieces.shape[2])


def _rows(pieces: np.ndarray, proof: Any) -> np.ndarray:
    """(begin, end, bound) of intervals of the path's parameter, in order."""
    knots = smooth_path(pieces).times
    length = np.diff(knots)
    begin = knots[proof.owner] + proof.begin * length[proof.owner]
    end = knots[proof.owner] + proof.end * length[proof.owner]
    order = np.argsort(begin, kind="stable")
    return np.column_stack([begin, end, proof.bound])[order]


def _is_pose(matrix: np.ndarray) -> bool:
    return bool(np.array_equal(matrix[3], [0.0, 0.0, 0.0, 1.0]))
