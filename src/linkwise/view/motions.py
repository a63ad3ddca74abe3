"""Default motions: to and fro, and through random points, within the velocity limits."""

from __future__ import annotations

import numpy as np

from linkwise.motion import PiecewisePolynomial, Trajectory, quintic_spline
from linkwise.robot.robot import Robot
from linkwise.view.live import ranges

EASY = 0.6  # fraction of the velocity limits
UNHURRIED = (1.2, 0.4)  # [rad/s], [m/s]: speeds of joints without a velocity limit
SHORTEST = 0.8  # [s] from point to point


def to_and_fro(robot: Robot, q: np.ndarray) -> Trajectory:
    """From q to the opposite end of every joint's range, and back."""
    lower, upper = ranges(robot)
    middle = (lower + upper) / 2
    there = np.clip(middle - 0.5 * (q - middle) + 0.15 * (upper - lower), lower, upper)
    return through(robot, [q, there, q])


def random_points(robot: Robot, q: np.ndarray, *, seed: int = 0, count: int = 4) -> Trajectory:
    """From q through random points within the limits, and back."""
    lower, upper = ranges(robot)
    inner = 0.15 * (upper - lower)
    points = np.random.default_rng(seed).uniform(lower + inner, upper - inner, (count, robot.dof))
    return through(robot, [q, *points, q])


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
