"""How far a robot is from itself and from its room: distances, their gradients, and a lower bound along motions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from linkwise.algorithms import coupling, kinematics
from linkwise.algorithms.contact import distance as apart
from linkwise.arguments.numbers import Numbers
from linkwise.collision.bounds import speed_factors
from linkwise.collision.checks import FLOOR, Checks, all_checks, divided, together
from linkwise.collision.room import Room
from linkwise.collision.shapes import Shapes, shapes_of
from linkwise.compiler.kernel import Kernel
from linkwise.core.once import once
from linkwise.core.products import times
from linkwise.errors import ShapeError
from linkwise.functions.table import mechanism_of
from linkwise.geometry.skeleton import BASE, body_name
from linkwise.model import Transform
from linkwise.robot.robot import Robot
from linkwise.robot.user import kernel
from linkwise.solve import linear

POSTURES = 400  # random ones that show what touches by construction
OFTEN = 0.9  # share of them in which links touch that cannot be kept apart
NEAR = 0.8  # links that are never farther apart than this part of their radii are near by construction, as at a wrist
STILL = 0.05  # [m] a distance that varies less does not depend on the motion
FEW = 64  # states up to which compiling a kernel is not worth while
COMPILED = 250  # comparisons up to which one kernel computes all distances
UNKNOWN = 3.141592653589793  # [rad or m] range of joints without limits


@dataclass(frozen=True)
class Contact:
    """The smallest distance [m], negative where shapes overlap: between what, and where in the base frame [m]."""

    first: str
    second: str
    distance: float
    where: np.ndarray

    def __str__(self) -> str:
        place = "(" + ", ".join(f"{x:.2f}" for x in self.where) + ")"
        if self.distance < 0:
            return f"{self.first} is {-100 * self.distance:.1f} cm inside {self.second}, near {place} m"
        return f"{self.first} is {100 * self.distance:.1f} cm from {self.second}, near {place} m"


class Nearest(NamedTuple):
    """For chosen comparisons: unit normals (k, 3) along which the distance grows when the first moves, parts of the
    lengths of the first and the second capsule (k,), and the nearest points of the first (k, 3)."""

    normal: np.ndarray
    first: np.ndarray
    second: np.ndarray
    point: np.ndarray


class Clearance:
    """Distances of a robot to itself, a floor, walls and boxes.

    Links that a joint connects are not compared, nor fingers: last links that one link carries; nor what touches by
    construction: parts of links that do in nearly all postures within the joint limits, or that are never farther apart
    than their radii, as at a wrist; and parts of the room to which a part of a link has always the same distance.
    ``skipped`` lists what is not compared at all.

    Args:
        robot: the robot.
        room: what it must not touch; by default itself and a floor through the origin of the base frame.
        shapes: capsules of the links; by default ``shapes_of(robot)`` with the meshes, radius and tool of the room.
        lower: positions [rad or m], shape (nq,), below which joints do not go; by default their limits.
        upper: positions above which they do not go.
    """

    def __init__(
        self,
        robot: Robot,
        room: Room | None = None,
        *,
        shapes: Shapes | None = None,
        lower: np.ndarray | None = None,
        upper: np.ndarray | None = None,
    ):
        self.robot, self.room = robot, Room() if room is None else room
        if shapes is None:
            shapes = shapes_of(robot, meshes=self.room.meshes, radius=self.room.radius, tool=self.room.tool)
        self.shapes = shapes
        self.lower, self.upper = position_range(robot, lower, upper)
        self._use(all_checks(robot, shapes, self.room))
        self.skipped = self._leave_out_what_touches()

    # -- distances ----------------------------------------------------------------------------------------------------

    def distances(self, q: Any) -> Any:
        """Signed distances [m] of all comparisons, shape (..., comparisons); see ``words`` for what they are.

        Inside ``@linkwise.kernel`` q may be symbols.

        Args:
            q: positions [rad or m], shape (..., nq).
        """
        q = np.asarray(q)
        if q.shape[-1:] != (self.robot.nq,):
            raise ShapeError(f"q: expected shape (..., {self.robot.nq}), got {q.shape}")
        if q.dtype == object:
            return np.array(self._traced(q), dtype=object)
        flat = np.asarray(q, dtype=float).reshape(-1, self.robot.nq)
        few = len(flat) <= FEW or not 0 < len(self.checks) <= COMPILED
        found = self._of_arrays(flat) if few else self.kernel(flat)
        return np.asarray(found).reshape(*q.shape[:-1], len(self.checks))

    def least(self, q: np.ndarray) -> np.ndarray:
        """The smallest distance [m], shape (...), infinite where nothing is compared."""
        return self.distances(q).min(axis=-1, initial=np.inf)

    @once
    def kernel(self) -> Kernel:
        """All distances as one kernel of q."""

        @kernel(q=self.robot.nq)
        def clearances(q):
            return np.array(self._traced(q), dtype=object)

        return clearances

    def gradient(self, q: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Σ weight·∂distance/∂q, shape (states, nq).

        Args:
            q: positions [rad or m], shape (states, nq).
            weights: of every distance, shape (states, comparisons); zeros cost nothing.
        """
        rows, columns = np.nonzero(weights)
        ends = self._ends(q)
        factors = np.zeros_like(ends)
        if len(rows):
            near = self._nearest(ends, rows, columns)
            force = near.normal * weights[rows, columns, None]
            first, second = self._capsule_numbers(columns)
            for side, part in ((0, 1.0 - near.first), (1, near.first)):
                np.add.at(factors, (rows, 2 * first + side), part[:, None] * force)
            pair = second >= 0
            for side, part in ((0, 1.0 - near.second), (1, near.second)):
                np.add.at(factors, (rows[pair], 2 * second[pair] + side), -part[pair, None] * force[pair])
        by_pose = np.zeros((len(q), len(self.robot.moving_joints) + 1, 3, 4))
        for end, body in enumerate(self._body):
            by_pose[:, body] += factors[:, end, :, None] * self._point[end]
        return np.asarray(pose_gradient(self.robot)(q, by_pose[:, :-1].reshape(len(q), -1)))

    def contact(self, q: np.ndarray) -> Contact | None:
        """What is nearest at one position (nq,), or over several (states, nq); None where nothing is compared."""
        found = self.contact_and_row(q)
        return None if found is None else found[0]

    def contact_and_row(self, q: np.ndarray) -> tuple[Contact, int] | None:
        """The same, and the number of the state."""
        if not len(self.checks):
            return None
        states = np.atleast_2d(q)
        values = self.distances(states)
        row, column = np.unravel_index(int(np.argmin(values)), values.shape)
        return self._contact(states, values, int(row), int(column)), int(row)

    def _contact(self, q: np.ndarray, values: np.ndarray, row: int, column: int) -> Contact:
        near = self._nearest(self._ends(q[row : row + 1]), np.array([0]), np.array([column]))
        return Contact(*self.words[column], float(values[row, column]), near.point[0])

    def by_kind(self, q: np.ndarray) -> dict[str, tuple[Contact, int]]:
        """What is nearest over positions (states, nq), and in which state: to the "floor", to "walls" of the space that
        must not be left, to forbidden "boxes", and "links" among each other."""
        c, values = self.checks, self.distances(q)
        boxes = c.blocked[:, 1] >= len(self.shapes.slabs)
        floor = np.array([c.planes[k].words == FLOOR for k in c.grounded[:, 1]], dtype=bool)
        kinds = ["links"] * len(c.pairs) + ["floor" if each else "walls" for each in floor]
        kinds += ["boxes" if each else "links" for each in boxes]
        found: dict[str, tuple[Contact, int]] = {}
        for kind in ("floor", "walls", "boxes", "links"):
            columns = np.flatnonzero(np.array(kinds) == kind)
            if len(columns):
                row, at = np.unravel_index(int(np.argmin(values[:, columns])), (len(values), len(columns)))
                found[kind] = self._contact(q, values, int(row), int(columns[at])), int(row)
        return found

    @property
    def words(self) -> list[tuple[str, str]]:
        """What is compared with what."""
        c = self.checks
        name = self._name
        return [
            *((name(i), name(k)) for i, k in c.pairs),
            *((name(end // 2), c.planes[plane].words) for end, plane in c.grounded),
            *((name(k), c.boxes[box].name) for k, box in c.blocked),
        ]

    # -- along motions ------------------------------------------------------------------------------------------------

    def bound_along(
        self,
        motion: Callable[[np.ndarray], Sequence[np.ndarray]],
        t: np.ndarray,
        acceleration: np.ndarray,
        wanted: float,
        halvings: int = 16,
    ) -> tuple[float, float]:
        """A distance [m] that is kept at all times, between the given ones too, and the time [s] of the smallest bound.

        Between two times a distance changes no faster than the speeds of the joints allow (see
        ``bounds.speed_factors``); intervals in which that leaves less than ``wanted`` are halved. The bound is less
        than ``wanted`` if the distance is, or if it is not proved after so many halvings.

        Args:
            motion: gives q and q̇ (and more) at times (k,), each (k, n).
            t: times [s], shape (k,), ascending.
            acceleration: largest accelerations of the whole motion [rad/s² or m/s²], shape (n,).
            wanted: the distance to be proved [m].
            halvings: of intervals, at most.
        """
        if not len(self.checks):
            return np.inf, float(t[0])
        begin, end = t[:-1], t[1:]
        states = self._states(motion, t)
        a, b = [x[:-1] for x in states], [x[1:] for x in states]
        least, when = np.inf, float(t[0])
        factors = self._factors(a[2], b[2], _travel(begin, end, a[1], b[1], acceleration))
        for level in range(halvings + 1):
            travel = _travel(begin, end, a[1], b[1], acceleration)
            lower = (0.5 * (a[0] + b[0] - linear.product(travel, factors.T))).min(axis=1)
            open_ = lower < wanted
            sampled = np.minimum(a[0].min(axis=1), b[0].min(axis=1))
            done = ~open_ if level < halvings and not (sampled < wanted).any() else np.ones_like(open_)
            if done.any():
                first = int(np.argmin(np.where(done, lower, np.inf)))
                if lower[first] < least:
                    least, when = float(lower[first]), float(begin[first])
            if done.all():
                break
            begin, end = begin[open_], end[open_]
            a, b = [x[open_] for x in a], [x[open_] for x in b]
            middle = 0.5 * (begin + end)
            m = self._states(motion, middle)
            begin, end = np.concatenate([begin, middle]), np.concatenate([middle, end])
            a, b = _stacked(a, m), _stacked(m, b)
        return least, when

    def _states(self, motion, t: np.ndarray) -> list[np.ndarray]:
        q, qd = motion(t)[:2]
        return [self.distances(np.asarray(q)), np.abs(np.asarray(qd)), np.asarray(q)]

    def _factors(self, begin: np.ndarray, end: np.ndarray, travel: np.ndarray) -> np.ndarray:
        """``bounds.speed_factors`` between all positions of a motion, from those at the ends of intervals (k, n) and
        how far joints move in them, also where these are beyond the joint limits."""
        least, most = np.minimum(begin, end) - travel, np.maximum(begin, end) + travel
        lower = np.minimum(self.lower, least.min(axis=0, initial=np.inf))
        upper = np.maximum(self.upper, most.max(axis=0, initial=-np.inf))
        return speed_factors(self.robot, self.checks, lower, upper)

    # -- construction -------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Constants of the present comparisons."""
        capsules, c = self.checks.capsules, self.checks
        self._square = np.array([float(times(x.end - x.start, x.end - x.start)) for x in capsules])
        self._radius = np.array([x.radius for x in capsules])
        self._body = np.repeat([x.body for x in capsules], 2)  # of every end
        self._point = np.array([[*p, 1.0] for x in capsules for p in (x.start, x.end)]).reshape(-1, 4)
        self._normal = np.array([x.normal for x in c.planes]).reshape(-1, 3)
        self._height = np.array([x.height for x in c.planes])
        self._half = np.array([x.edges for x in c.boxes]).reshape(-1, 3) / 2
        self._turn = np.array([x.pose.rotation for x in c.boxes]).reshape(-1, 3, 3)
        self._middle = np.array([x.pose.translation for x in c.boxes]).reshape(-1, 3)

    def _leave_out_what_touches(self) -> tuple[str, ...]:
        """Removes comparisons of what touches by construction; names the pairs of which nothing is compared."""
        if not len(self.checks):
            return ()
        before = dict.fromkeys(self.words)
        touching = self._touching()
        remaining = self.checks.kept(~touching)
        self._use(divided(self.checks, touching))
        if len(self.checks):
            self._use(self.checks.kept(~self._touching()))
        self._use(together(remaining, self.checks))
        after = set(self.words)
        return tuple(f"{first} and {second}" for first, second in before if (first, second) not in after)

    def _touching(self) -> np.ndarray:
        """Which comparisons, (checks,), are those of shapes that touch by construction."""
        c = self.checks
        q = np.random.default_rng(0).uniform(self.lower, self.upper, (POSTURES, self.robot.nq))
        values = self._of_arrays(q)
        touching = values < self.room.clearance
        own = np.zeros(len(c), dtype=bool)  # parts of the robot with each other
        own[: len(c.pairs)] = True
        own[len(c) - len(c.blocked) :] = c.blocked[:, 1] < len(self.shapes.slabs)
        still = touching.all(axis=0) & (np.ptp(values, axis=0) <= STILL)
        first, second = self._capsule_numbers(np.arange(len(c)))
        thick = self._radius[first] + np.where(second >= 0, self._radius[second], 0.0)
        near = touching.any(axis=0) & (values.max(axis=0) <= NEAR * thick)
        return np.where(own, near | (touching.mean(axis=0) >= OFTEN), still)

    def _use(self, checks: Checks) -> None:
        """Make these the comparisons."""
        self.checks = checks
        self.__dict__.pop("kernel", None)  # it was made for those before
        self._prepare()

    # -- evaluation ---------------------------------------------------------------------------------------------------

    def _traced_ends(self, q: np.ndarray) -> list[tuple[Any, Any, Any]]:
        poses: dict[int, Any] = {BASE: np.eye(4)}
        found: list[tuple[Any, Any, Any]] = []
        for capsule in self.checks.capsules:
            if capsule.body not in poses:
                frame = self.robot.moving_joints[capsule.body].child
                poses[capsule.body] = np.asarray(self.robot.pose(q, frame))
            pose = poses[capsule.body]
            for point in (capsule.start, capsule.end):
                x, y, z = pose[:3, :3] @ point + pose[:3, 3]
                found.append((x, y, z))
        return found

    def _ends(self, q: np.ndarray) -> np.ndarray:
        """Ends of all capsules in the base frame, (states, 2·capsules, 3)."""
        base = np.broadcast_to(np.eye(4)[:3], (len(q), 1, 3, 4))
        poses = np.concatenate([np.asarray(body_poses(self.robot)(q)), base], axis=1)[
            :, self._body
        ]  # BASE is the last one
        return (poses * self._point[:, None]).sum(axis=-1)

    def _traced(self, q: np.ndarray) -> list[Any]:
        """All distances over scalars."""
        ends = self._traced_ends(q)
        square, radius = self._square.tolist(), self._radius.tolist()

        def segment(k: int) -> apart.Segment:
            return apart.Segment.between(ends[2 * k], ends[2 * k + 1], square[k])

        found = [
            apart.segment_distance(segment(i), segment(k)) - (radius[i] + radius[k])
            for i, k in self.checks.pairs.tolist()
        ]
        for end, plane in self.checks.grounded.tolist():
            normal, height = self._normal[plane].tolist(), float(self._height[plane])
            found.append(apart.plane_distance(ends[end], normal, height + radius[end // 2]))
        for k, box in self.checks.blocked.tolist():
            start, end = (
                self._in_box(np.array(p, dtype=object), box) for p in (ends[2 * k], ends[2 * k + 1])
            )
            line = apart.Segment.between(start, end, square[k])
            found.append(apart.segment_box_distance(line, self._half[box].tolist()) - radius[k])
        return found

    def _in_box(self, point: np.ndarray, box: int) -> tuple[Any, Any, Any]:
        x, y, z = self._turn[box].T @ (point - self._middle[box])
        return x, y, z

    def _of_arrays(self, q: np.ndarray) -> np.ndarray:
        """All distances of many states, (states, comparisons), by the same functions on arrays."""
        ends = self._ends(q)
        c, r = self.checks, self._radius
        parts = []
        i, k = c.pairs.T
        parts.append(apart.segment_distance(self._segments(ends, i), self._segments(ends, k)) - (r[i] + r[k]))
        end, plane = c.grounded.T
        points = _columns(ends[:, end])
        normal: Any = tuple(self._normal[plane].T)
        parts.append(apart.plane_distance(points, normal, self._height[plane] + r[end // 2]))
        k, box = c.blocked.T
        half: Any = tuple(self._half[box].T)
        parts.append(apart.segment_box_distance(self._segments_in_boxes(ends, k, box), half) - r[k])
        return np.concatenate([np.asarray(part, dtype=float).reshape(len(q), -1) for part in parts], axis=1)

    def _segments(self, ends: np.ndarray, k: np.ndarray) -> apart.Segment:
        return apart.Segment.between(
            _columns(ends[..., 2 * k, :]), _columns(ends[..., 2 * k + 1, :]), self._square[k]
        )

    def _segments_in_boxes(self, ends: np.ndarray, k: np.ndarray, box: np.ndarray) -> apart.Segment:
        start, end = (
            np.einsum("kji,...kj->...ki", self._turn[box], ends[..., 2 * k + side, :] - self._middle[box])
            for side in (0, 1)
        )
        return apart.Segment.between(_columns(start), _columns(end), self._square[k])

    def _nearest(self, ends: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> Nearest:
        """Normals and nearest points of chosen comparisons (row of ends, number of the comparison)."""
        c, count = self.checks, len(rows)
        normal, point = np.zeros((count, 3)), np.zeros((count, 3))
        first, second = np.zeros(count), np.zeros(count)
        p, g = len(c.pairs), len(c.pairs) + len(c.grounded)

        def picked(k: np.ndarray, at: np.ndarray) -> apart.Segment:
            here = ends[rows[at]]
            each = np.arange(len(k))
            start, end = _columns(here[each, 2 * k]), _columns(here[each, 2 * k + 1])
            return apart.Segment.between(start, end, self._square[k])

        at = np.flatnonzero(columns < p)
        if len(at):
            i, k = c.pairs[columns[at]].T
            one, two = picked(i, at), picked(k, at)
            first[at], second[at] = apart.nearest_parts(one, two)
            point[at] = np.stack(one.at(first[at]), axis=-1)
            way = point[at] - np.stack(two.at(second[at]), axis=-1)
            normal[at] = way / np.maximum(np.sqrt((way**2).sum(axis=1, keepdims=True)), 1e-9)
        at = np.flatnonzero((columns >= p) & (columns < g))
        if len(at):
            end, plane = c.grounded[columns[at] - p].T
            first[at], normal[at] = end % 2, self._normal[plane]
            point[at] = ends[rows[at], end]
        at = np.flatnonzero(columns >= g)
        if len(at):
            k, box = c.blocked[columns[at] - g].T
            here = ends[rows[at]]
            each = np.arange(len(k))
            local = [
                np.einsum("kji,kj->ki", self._turn[box], here[each, 2 * k + side] - self._middle[box])
                for side in (0, 1)
            ]
            line = apart.Segment.between(_columns(local[0]), _columns(local[1]), self._square[k])
            half: Any = tuple(self._half[box].T)
            first[at] = apart.nearest_part_to_box(line, half)
            way = np.stack(apart.box_direction(line.at(first[at]), half), axis=-1)
            way = way / np.maximum(np.sqrt((way**2).sum(axis=1, keepdims=True)), 1e-12)
            normal[at] = np.einsum("kij,kj->ki", self._turn[box], way)
            point[at] = np.stack(picked(k, at).at(first[at]), axis=-1)
        return Nearest(normal, first, second, point)

    def _capsule_numbers(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first capsule of comparisons, and the second one, −1 where it is none."""
        c = self.checks
        first = np.concatenate([c.pairs[:, 0], c.grounded[:, 0] // 2, c.blocked[:, 0]])
        second = np.concatenate([c.pairs[:, 1], np.full(len(c.grounded) + len(c.blocked), -1)])
        return first[columns], second[columns]

    def _name(self, capsule: int) -> str:
        if capsule in self.checks.tool:
            return "the tool"
        return body_name(self.robot, self.checks.capsules[capsule].body)


@lru_cache(maxsize=16)
def body_poses(robot: Robot) -> Kernel:
    """Rotations and translations of all moving bodies, (bodies, 3, 4)."""

    @kernel(q=robot.nq)
    def poses(q):
        return traced_poses(robot, q)

    return poses


@lru_cache(maxsize=16)
def pose_gradient(robot: Robot) -> Kernel:
    """Gradient of Σ factor·number of a pose, by q."""

    @kernel(q=robot.nq, factors=12 * len(robot.moving_joints))
    def projected(q, factors):
        return (traced_poses(robot, q).reshape(-1) * factors).sum()

    return projected.jacobian("q")


def traced_poses(robot: Robot, q: Sequence[Any]) -> np.ndarray:
    """Rotations and translations of all moving bodies over scalars, (bodies, 3, 4).

    Args:
        robot: the robot.
        q: its positions, of which each is a scalar.
    """
    links = mechanism_of(robot)
    placed = kinematics.link_poses(links, coupling.expanded(links, list(q), positions=True))
    rows: list[list[Any]] = []
    for body in range(len(links)):
        pose = kinematics.frame_pose(links, placed, body, Transform.identity())
        R, p = pose.rotation, pose.position
        rows += [[R.xx, R.xy, R.xz, p.x], [R.yx, R.yy, R.yz, p.y], [R.zx, R.zy, R.zz, p.z]]
    return np.array(rows, dtype=object).reshape(-1, 3, 4)


def _columns(points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return points[..., 0], points[..., 1], points[..., 2]


def _travel(
    begin: np.ndarray, end: np.ndarray, first: np.ndarray, last: np.ndarray, acceleration: np.ndarray
) -> np.ndarray:
    """How far joints move at most in intervals, from the speeds at their ends, (k, n)."""
    step = (end - begin)[:, None]
    return 0.5 * step * (first + last + step * acceleration)


def _stacked(first: list[np.ndarray], second: list[np.ndarray]) -> list[np.ndarray]:
    return [np.concatenate(pair) for pair in zip(first, second, strict=True)]


def position_range(
    robot: Robot, lower: np.ndarray | None, upper: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    limits = robot.limits
    n, given = robot.dof, Numbers().each
    low = (
        np.where(np.isfinite(limits.lower), limits.lower, -UNKNOWN)
        if lower is None
        else given("lower", lower, n)
    )
    high = (
        np.where(np.isfinite(limits.upper), limits.upper, UNKNOWN)
        if upper is None
        else given("upper", upper, n)
    )
    return low, np.maximum(high, low)
