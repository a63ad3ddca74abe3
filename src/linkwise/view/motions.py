"""Default motions: to and fro, and through random points, within the velocity limits and above the floor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.collision.heights import lowest_points, outermost
from linkwise.geometry.posture import up_of
from linkwise.geometry.skeleton import skeleton
from linkwise.geometry.solids import Mesh
from linkwise.motion import PiecewisePolynomial, Trajectory, quintic_spline
from linkwise.robot.robot import Robot
from linkwise.view.live import ranges
from linkwise.view.placing import floor_of, scene_box

EASY = 0.6  # fraction of the velocity limits
UNHURRIED = (1.2, 0.4)  # [rad/s], [m/s]: speeds of joints without a velocity limit
SHORTEST = 0.8  # [s] from point to point
TRIES = 6  # lists of random points
NEARER = (1.0, 0.8, 0.6, 0.4, 0.2, 0.1, 0.05)  # parts of the way to points
LOOKED_AT = 200  # positions of a motion at which the robot is above the floor
Meshes = Sequence[tuple[int, Mesh]]
"""Those of a file that are shown, in the frames of their bodies."""


def to_and_fro(robot: Robot, q: np.ndarray, meshes: Meshes = ()) -> Trajectory:
    """From q to the opposite end of every joint's range, and back."""
    lower, upper = ranges(robot)
    middle = (lower + upper) / 2
    there = np.clip(middle - 0.5 * (q - middle) + 0.15 * (upper - lower), lower, upper)
    return _above_floor(robot, q, [there[None]], meshes)


def random_points(
    robot: Robot, q: np.ndarray, meshes: Meshes = (), *, seed: int = 0, count: int = 4
) -> Trajectory:
    """From q through random points within the limits, and back."""
    lower, upper = ranges(robot)
    inner = 0.15 * (upper - lower)
    rng = np.random.default_rng(seed)
    options = [rng.uniform(lower + inner, upper - inner, (count, robot.dof)) for _ in range(TRIES)]
    return _above_floor(robot, q, options, meshes)


def _above_floor(
    robot: Robot, q: np.ndarray, options: list[np.ndarray], meshes: Meshes
) -> PiecewisePolynomial:
    """From q through the first of these lists of points that keep the robot above the floor, and back; if none does,
    through points nearer to q."""
    q = np.asarray(q, dtype=float)
    found = through(robot, [q, *options[0], q])
    if robot.nq != robot.dof:
        return found
    bones = skeleton(robot)
    low, high = scene_box(robot, bones, meshes, q)
    corners = outermost(meshes)
    start = float(lowest_points(robot, q[None], corners)[0])
    floor = min(floor_of(low, high, up_of(robot), bones.reach), start)
    for share in NEARER:
        for points in options:
            found = through(robot, [q, *(q + share * (points - q)), q])
            samples = found.at(np.linspace(found.begin, found.end, LOOKED_AT)).q
            if lowest_points(robot, samples, corners).min() >= floor - 1e-9:
                return found
    return through(robot, [q, *(q + 0.0 * options[0]), q])


def through(robot: Robot, points: list[np.ndarray]) -> PiecewisePolynomial:
    """Smooth motion through points, at rest at both ends, slower than EASY times the velocity limits."""
    speeds = easy_speeds(robot)
    ways = np.abs(np.diff(np.array(points), axis=0))
    times = np.concatenate([[0.0], np.cumsum(np.maximum((ways / speeds).max(axis=1) * 1.6, SHORTEST))])
    motion = quintic_spline(times, np.array(points))
    fastest = np.abs(motion.at(np.linspace(motion.begin, motion.end, 400)).qd).max(axis=0)
    return motion.stretched(max(1.0, float((fastest / speeds).max())))


def easy_speeds(robot: Robot) -> np.ndarray:
    """Speed of every joint that is easy to watch [rad/s or m/s]."""
    return np.array([_easy_speed(joint) for joint in robot.coordinate_joints])


def _easy_speed(joint) -> float:
    limit = joint.limits.largest_velocity
    return EASY * limit if np.isfinite(limit) and limit > 0 else UNHURRIED[0 if joint.revolute else 1]
