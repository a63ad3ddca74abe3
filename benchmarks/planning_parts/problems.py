"""Planning problems from a description: boxes, a table, shelves and a cage, in sizes that fit a robot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import linkwise as lw
from linkwise.collision import Box, Cuboid, HalfSpace, Rod, Sphere, World, validity_of
from linkwise.collision.clearance import position_range

SCENES = ("boxes", "table", "shelves", "cage")
APART = 0.012  # [m] clearance of start and goal


@dataclass(frozen=True)
class PlanningProblem:
    """A world, a start (n,), and a goal: all positions (k, n) with the same posture, whole turns of joints apart."""

    scene: str
    world: World
    start: np.ndarray
    goal: np.ndarray


def reach_of(robot: lw.Robot) -> float:
    """Farthest distance of the tip from the base in random postures [m]; of any leaf where the first one stays."""
    lower, upper = position_range(robot, None, None)
    q = np.random.default_rng(0).uniform(lower, upper, (500, robot.nq))
    tip = tips(robot, q)
    if len(robot.leaf_names) == 1 or np.ptp(tip, axis=0).max() > 0.0:
        return float(np.linalg.norm(tip, axis=1).max())
    places = [np.asarray(robot.pose(q, leaf))[:, :3, 3] for leaf in robot.leaf_names]
    return max(float(np.linalg.norm(each, axis=1).max()) for each in places)


def tips(robot: lw.Robot, q: np.ndarray) -> np.ndarray:
    """Positions of a tip [m], shape (states, 3)."""
    frame = robot.leaf_names[0] if len(robot.leaf_names) > 1 else None
    return np.asarray(robot.pose(q, frame))[:, :3, 3]


def problem(robot: lw.Robot, scene: str, number: int, reach: float) -> PlanningProblem | None:
    """A problem, the same for the same number; None where no start and goal are free."""
    rng = np.random.default_rng([number, SCENES.index(scene)])
    world, low, high = _WORLDS[scene](rng, reach)
    lower, upper = position_range(robot, None, None)
    q = rng.uniform(lower, upper, (6000, robot.nq))
    free = q[~validity_of(robot).in_collision(q, world, clearance=APART, threads=1)]
    if len(free) < 2:
        return None
    at = tips(robot, free)
    inside = free[((at >= low) & (at <= high)).all(axis=1)]
    chosen = inside if len(inside) >= 2 else free
    return PlanningProblem(scene, world, chosen[0], same_postures(robot, chosen[1], lower, upper))


def same_postures(robot: lw.Robot, q: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Positions within the limits that are whole turns of joints away from q, shape (k, n)."""
    found = [q]
    for k, joint in enumerate(robot.moving_joints[: len(q)]):
        if joint.turns and upper[k] - lower[k] > 2 * np.pi:
            turned = [each + turn * np.eye(len(q))[k] for each in found for turn in (-2 * np.pi, 2 * np.pi)]
            found += [each for each in turned if lower[k] <= each[k] <= upper[k]]
    return np.array(found)


def _boxes(rng: np.random.Generator, reach: float):
    obstacles: list = [HalfSpace((0.0, 0.0, 1.0), -0.15 * reach)]
    while len(obstacles) < 10:
        centre = rng.uniform((-reach, -reach, 0.0), (reach, reach, 1.1 * reach))
        if np.linalg.norm(centre[:2]) > 0.4 * reach:
            edges = rng.uniform(0.08, 0.3, 3) * reach
            turn = rng.uniform(-np.pi, np.pi)
            rotation = [[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0], [0, 0, 1]]
            obstacles.append(Cuboid(centre, edges, rotation))
    return World(obstacles), np.full(3, -2 * reach), np.full(3, 2 * reach)


def _table(rng: np.random.Generator, reach: float):
    height = rng.uniform(0.05, 0.25) * reach
    near, far = 0.3 * reach, reach
    obstacles: list = [Box((near, -0.7 * reach, height - 0.05 * reach), (far, 0.7 * reach, height))]
    obstacles.append(HalfSpace((0.0, 0.0, 1.0), -0.1 * reach))
    for _ in range(8):
        size = rng.uniform(0.04, 0.12, 3) * reach
        x, y = rng.uniform((near, -0.6 * reach), (0.9 * reach, 0.6 * reach))
        obstacles.append(Box((x, y, height), (x + size[0], y + size[1], height + 3 * size[2])))
    low, high = (near, -0.7 * reach, height + 0.03), (far, 0.7 * reach, height + 0.5 * reach)
    return World(obstacles), np.array(low), np.array(high)


def _shelves(rng: np.random.Generator, reach: float):
    near, far, thick = rng.uniform(0.4, 0.5) * reach, 0.9 * reach, 0.02 * reach
    bottom, gap = rng.uniform(0.0, 0.1) * reach, rng.uniform(0.4, 0.5) * reach
    half = 0.55 * reach
    heights = [bottom + k * gap for k in range(3)]
    obstacles: list = [Box((near, -half, z), (far, half, z + thick)) for z in heights]
    top = heights[-1] + thick
    obstacles += [Box((near, s * half - thick, bottom), (far, s * half + thick, top)) for s in (-1, 1)]
    obstacles.append(Box((far, -half, bottom), (far + thick, half, top)))
    obstacles.append(HalfSpace((0.0, 0.0, 1.0), -0.1 * reach))
    for _ in range(3):
        x, y = rng.uniform((near + 0.1 * reach, -0.8 * half), (far - 0.1 * reach, 0.8 * half))
        base = heights[int(rng.integers(2))] + thick
        obstacles.append(Rod((x, y, base + 0.03 * reach), (x, y, base + 0.12 * reach), 0.03 * reach))
    low, high = (0.8 * near, -half, bottom), (far, half, top + 0.1 * reach)
    return World(obstacles), np.array(low), np.array(high)


def _cage(rng: np.random.Generator, reach: float):
    count, radius = int(rng.integers(6, 9)), rng.uniform(0.55, 0.65) * reach
    turn = rng.uniform(0.0, 2 * np.pi) + 2 * np.pi * np.arange(count) / count
    x, y = radius * np.cos(turn), radius * np.sin(turn)
    obstacles: list = [Rod((a, b, 0.0), (a, b, 0.9 * reach), 0.02 * reach) for a, b in zip(x, y, strict=True)]
    obstacles.append(HalfSpace((0.0, 0.0, 1.0), -0.1 * reach))
    obstacles += [Sphere(rng.uniform((-1, -1, 1.2), (1, 1, 1.4)) * reach, 0.1 * reach) for _ in range(2)]
    return World(obstacles), np.full(3, -2 * reach), np.full(3, 2 * reach)


_WORLDS = {"boxes": _boxes, "table": _table, "shelves": _shelves, "cage": _cage}
