"""Random paths of every class of motion, and paths that are hard: for benchmarks and tests of limits along paths.

Every function takes a robot and a random generator and returns (path, further arguments of ``time_optimal``); the path
is None where there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import linkwise as lw
from linkwise import motion


def middle(robot: lw.Robot) -> np.ndarray:
    """A position away from the limits of the joints."""
    low, high = (
        np.array([getattr(joint.limits, side) for joint in robot.coordinate_joints])
        for side in ("lower", "upper")
    )
    limited = np.isfinite(low) & np.isfinite(high)
    return np.where(limited, np.clip(0.5 * (np.where(limited, low, 0.0) + high), -1.5, 1.5), 0.3)


# -- classes of motion: (path, further limits) for a robot and a random generator --------------------------------------


def ways(robot: lw.Robot, rng: np.random.Generator, count: int | None = None) -> np.ndarray:
    size = int(rng.integers(3, 8)) if count is None else count
    return middle(robot) + rng.uniform(-0.8, 0.8, (size, robot.dof))


def times(rng: np.random.Generator, count: int) -> np.ndarray:
    return np.concatenate([[0.0], np.cumsum(rng.uniform(0.3, 1.0, count - 1))])


def way_points(robot, rng):
    return ways(robot, rng), {}


def clamped(robot, rng):
    points = ways(robot, rng)
    return motion.cubic_spline(times(rng, len(points)), points), {}


def natural(robot, rng):
    points = ways(robot, rng)
    return motion.cubic_spline(times(rng, len(points)), points, velocity=None), {}


def quintic_spline(robot, rng):
    points = ways(robot, rng)
    return motion.quintic_spline(times(rng, len(points)), points), {}


def quintic(robot, rng):
    start, end = ways(robot, rng, 2)
    speeds = rng.uniform(-2, 2, (2, robot.dof)) * rng.integers(0, 2, (2, 1))
    return motion.quintic(start, end, 1.0, velocity=tuple(speeds), acceleration=tuple(3 * speeds[::-1])), {}


def nonic(robot, rng):
    start, end = ways(robot, rng, 2)
    return motion.nonic(start, end, 1.0), {}


def trapezoidal(robot, rng):
    return motion.trapezoidal(*ways(robot, rng, 2), velocity=1.0, acceleration=rng.uniform(1, 9)), {}


def jerk_limited(robot, rng):
    return motion.jerk_limited(
        *ways(robot, rng, 2), velocity=1.0, acceleration=3.0, jerk=rng.uniform(5, 90)
    ), {}


def ramp(robot, rng):
    start, end = ways(robot, rng, 2)
    return motion.ramp(start, end, 1.0), {}


def fourier(robot, rng):
    sine, cosine = rng.uniform(-0.3, 0.3, (2, int(rng.integers(1, 5)), robot.dof))
    return motion.FourierSeries(middle(robot), sine, cosine, 3.0), {}


def slowed(robot, rng):
    quick: Any = motion.time_optimal(robot, ways(robot, rng), torque=1e3, velocity=2.0)
    return motion.slowed(quick, 1.7), {}


def samples(robot, rng):
    return motion.through_samples(clamped(robot, rng)[0].sampled(points=int(rng.integers(5, 30)))), {}


def function(robot, rng):
    centre, size, phase = ways(robot, rng, 1)[0], *rng.uniform(-1, 1, (2, robot.dof))
    return lambda s: [
        c + 0.4 * d * np.sin(5 * s + 3 * e) for c, d, e in zip(centre, size, phase, strict=True)
    ], {}


def again(robot, rng):
    """A time-optimal motion as the path of another one."""
    path = clamped(robot, rng)[0]
    try:
        return motion.time_optimal(robot, path, torque=1e3, velocity=1.0, acceleration=5.0, cells=40), {}
    except motion.LimitError:
        return None, {}


def cartesian(make: Callable) -> Callable:
    def made(robot, rng):
        for _ in range(10):
            q = ways(robot, rng, 1)[0]
            try:
                return make(robot, rng, q, robot.pose(q)), {}
            except lw.LinkwiseError:
                continue
        return None, {}

    return made


@cartesian
def line_of_tip(robot, rng, q, start):
    end = start.copy()
    end[:3, :3] = motion.turn_about(rng.uniform(-0.4, 0.4, 3)) @ start[:3, :3]
    end[:3, 3] += rng.uniform(-0.15, 0.15, 3)
    return motion.line(robot, start, end, duration=1.0, q=q)


@cartesian
def arc_of_tip(robot, rng, q, start):
    centre = start[:3, 3] + rng.uniform(-0.1, 0.1, 3)
    return motion.arc(
        robot, start, centre=centre, axis=rng.normal(size=3), angle=rng.uniform(0.5, 3), duration=1.0, q=q
    )


def with_acceleration(robot, rng):
    return clamped(robot, rng)[0], {"acceleration": 12.0}


def with_jerk(robot, rng):
    return ways(robot, rng, 4), {"jerk": 300.0, "cells": 40}


def with_jerk_curved(robot, rng):
    points = ways(robot, rng, 4)
    return motion.quintic_spline(times(rng, 4), points), {"jerk": 300.0, "cells": 40}


# -- hard paths -------------------------------------------------------------------------------------------------------


def _spline(robot, rng, points):
    """Way-points as they are, or a spline of one of three kinds through them."""
    kind = rng.integers(4)
    if kind == 0:
        return points
    if kind == 1:
        return motion.quintic_spline(times(rng, len(points)), points)
    return motion.cubic_spline(times(rng, len(points)), points, velocity=None if kind == 2 else (0.0, 0.0))


def repeated(robot, rng):
    """Way-points that are the same, or nearly."""
    points = ways(robot, rng)
    k, apart = int(rng.integers(len(points))), rng.choice([0, 1e-13, 1e-9, 1e-6, 1e-3])
    return np.insert(points, k, points[k] + apart * rng.normal(size=robot.dof), axis=0), {}


def short_segment(robot, rng):
    """A spline with two points that are close."""
    points = ways(robot, rng)
    k, apart = int(rng.integers(len(points))), rng.choice([1e-9, 1e-6, 1e-4, 1e-3, 1e-2])
    points = np.insert(points, k, points[k] + apart * rng.normal(size=robot.dof), axis=0)
    return motion.cubic_spline(times(rng, len(points)), points), {}


def short_time(robot, rng):
    """A spline with little time between two points: it goes far beyond both."""
    points = ways(robot, rng)
    t, k = times(rng, len(points)), int(rng.integers(1, len(points)))
    t[k:] += rng.choice([1e-6, 1e-4, 1e-3, 1e-2]) - (t[k] - t[k - 1])
    return motion.cubic_spline(t, points, velocity=None), {}


def turning_back(robot, rng):
    """To a point and back along the same line, or nearly."""
    first, second = ways(robot, rng, 2)
    third = first + rng.choice([0, 1e-12, 1e-8, 1e-4, 1e-2]) * rng.normal(size=robot.dof)
    return _spline(robot, rng, np.array([first, second, third, second])), {}


def almost_still(robot, rng):
    """A function whose tangent almost vanishes in the middle."""
    size, order = rng.choice([1e-10, 1e-7, 1e-5, 1e-3, 1e-2]), int(rng.integers(2, 5))
    a, b, c, m = (
        0.5 * rng.normal(size=robot.dof),
        size * rng.normal(size=robot.dof),
        0.3 * rng.normal(size=robot.dof),
        middle(robot),
    )
    return lambda s: [
        m[k] + a[k] * (s - 0.5) ** order + b[k] * (s - 0.5) + c[k] * (s - 0.5) ** (order + 1)
        for k in range(robot.dof)
    ], {}


def bump(robot, rng):
    """A line with a narrow bump at an unknown place."""
    width, height = 10 ** rng.uniform(-3.4, -1), rng.choice([1e-3, 1e-2, 0.1])
    place, m = rng.uniform(0.1, 0.9), middle(robot)
    along, up = rng.uniform(-0.8, 0.8, robot.dof), height * rng.normal(size=robot.dof)
    return lambda s: [
        m[k] + along[k] * s + up[k] / (1 + ((s - place) / width) ** 2) for k in range(robot.dof)
    ], {}


def ripple(robot, rng):
    """A line with a quick oscillation."""
    rate, size, m = 10 ** rng.uniform(1, 3), 10 ** rng.uniform(-5, -2), middle(robot)
    along, up = rng.uniform(-0.8, 0.8, robot.dof), size * rng.normal(size=robot.dof)
    return lambda s: [m[k] + along[k] * s + up[k] * np.sin(rate * s + k) for k in range(robot.dof)], {}


def harmonics(robot, rng):
    """A Fourier series with many harmonics."""
    count = int(rng.integers(10, 60))
    falls = np.arange(1.0, count + 1)[:, np.newaxis] ** int(rng.integers(3)) * np.sqrt(count)
    sine, cosine = rng.uniform(-0.3, 0.3, (2, count, robot.dof)) / falls
    return motion.FourierSeries(middle(robot), sine, cosine, 3.0), {}


def unequal(robot, rng):
    """Joints whose ranges differ by up to nine powers of ten."""
    size = 10 ** rng.uniform(-9, 0, robot.dof)
    size[rng.integers(robot.dof)] = 1.0
    return _spline(robot, rng, middle(robot) + (ways(robot, rng) - middle(robot)) * size), {}


def one_joint(robot, rng):
    points = np.repeat(middle(robot)[np.newaxis], 5, axis=0)
    points[:, rng.integers(robot.dof)] += rng.uniform(-0.8, 0.8, 5)
    return _spline(robot, rng, points), {}


def small(robot, rng):
    """Way-points that are 1e-8 to 1e-2 rad apart."""
    points = middle(robot) + 10 ** rng.uniform(-8, -2) * rng.normal(size=(4, robot.dof))
    return _spline(robot, rng, points), {}


def many_points(robot, rng):
    count = int(rng.integers(30, 120))
    points = middle(robot) + np.cumsum(0.03 * rng.normal(size=(count, robot.dof)), axis=0)
    return points if rng.random() < 0.5 else motion.cubic_spline(0.1 * np.arange(count), points), {}


def noisy_table(robot, rng):
    """Samples with noise of all columns."""
    table, size = (
        clamped(robot, rng)[0].sampled(points=int(rng.integers(5, 60))),
        rng.choice([1e-4, 1e-3, 1e-2]),
    )
    q, qd, qdd = (
        part + size * scale * rng.normal(size=part.shape)
        for part, scale in ((table.q, 0.1), (table.qd, 1.0), (table.qdd, 10.0))
    )
    return motion.through_samples(motion.Samples(table.t, q, qd, qdd)), {}


def with_end_speeds(robot, rng):
    path = _spline(robot, rng, ways(robot, rng))
    return path, {"start_speed": rng.uniform(0, 0.5), "end_speed": rng.uniform(0, 0.5)}


def with_few_cells(robot, rng):
    return _spline(robot, rng, ways(robot, rng)), {"cells": int(rng.integers(4, 20))}


def with_grid(robot, rng):
    inner = np.sort(rng.random(int(rng.integers(3, 30))))
    return _spline(robot, rng, ways(robot, rng)), {"grid": np.concatenate([[0.0], inner, [1.0]])}


def with_tip_speed(robot, rng):
    return _spline(robot, rng, ways(robot, rng)), {"tip_speed": 0.3}


def hard_with_jerk(robot, rng):
    kinds = (repeated, short_segment, turning_back, unequal, one_joint, small, almost_still, harmonics)
    return kinds[rng.integers(len(kinds))](robot, rng)[0], {"jerk": 300.0, "cells": 30}


CLASSES: dict[str, Callable] = {
    each.__name__: each
    for each in (
        way_points, clamped, natural, quintic_spline, quintic, nonic, trapezoidal, jerk_limited, ramp, fourier,
        slowed, samples, function, again, with_acceleration, with_jerk, with_jerk_curved,
    )
} | {"line": line_of_tip, "arc": arc_of_tip}  # fmt: skip

HARD: dict[str, Callable] = {
    each.__name__: each
    for each in (
        repeated, short_segment, short_time, turning_back, almost_still, bump, ripple, harmonics, unequal, one_joint,
        small, many_points, noisy_table, with_end_speeds, with_few_cells, with_grid, with_tip_speed, hard_with_jerk,
    )
}  # fmt: skip
