"""Walking does not depend on where north is: orders, targets and swings of a world that is turned are turned.

Gaits are usually tried along x, where the sine of the heading is zero and its sign does not count.
"""

import math

import numpy as np
import pytest
from test_walking import biped, quadruped

import linkwise as lw
from linkwise import optimal
from linkwise.optimal.walking.planner import table_of
from linkwise.optimal.walking.stages import orders_of


def placed(robot: lw.Robot, q: np.ndarray, turn: float, shift: np.ndarray) -> np.ndarray:
    """Positions of the same robot in a world that is turned about the vertical and shifted along the ground."""
    c, s = math.cos(turn), math.sin(turn)
    x, y, z, w = q[3:7]
    half = np.array([math.sin(0.5 * turn), math.cos(0.5 * turn)])
    # (0, 0, half[0], half[1]) times the quaternion
    quaternion = np.array(
        [
            half[1] * x - half[0] * y,
            half[1] * y + half[0] * x,
            half[1] * z + half[0] * w,
            half[1] * w - half[0] * z,
        ]
    )
    at = [c * q[0] - s * q[1] + shift[0], s * q[0] + c * q[1] + shift[1], q[2]]
    return np.r_[at, quaternion, q[7:]]


def turned(rows: np.ndarray, turn: float, shift: np.ndarray) -> np.ndarray:
    """Places (..., 2 or 3) in the other world."""
    c, s = math.cos(turn), math.sin(turn)
    found = np.array(rows, float)
    found[..., 0], found[..., 1] = c * rows[..., 0] - s * rows[..., 1], s * rows[..., 0] + c * rows[..., 1]
    found[..., :2] += shift
    return found


def turned_poses(rows: np.ndarray, turn: float, shift: np.ndarray) -> np.ndarray:
    """x, y [m] and heading."""
    found = turned(rows, turn, shift)
    found[..., 2] = rows[..., 2] + turn
    return found


def same_poses(a: np.ndarray, b: np.ndarray) -> None:
    np.testing.assert_allclose(a[..., :2], b[..., :2], atol=1e-9)
    np.testing.assert_allclose(np.exp(1j * a[..., 2]), np.exp(1j * b[..., 2]), atol=1e-9)


def samples(robot: lw.Robot, stand: np.ndarray, rng: np.random.Generator, count: int) -> list[tuple]:
    """Times, positions near standing that lean and head anywhere, velocities."""
    found, q = [], placed(robot, stand, rng.uniform(-3.0, 3.0), rng.normal(size=2))
    for k in range(count):
        qd = np.r_[0.3 * rng.normal(size=3), 0.5 * rng.normal(size=3), 0.2 * rng.normal(size=robot.dof - 6)]
        found.append((0.11 * k, q, qd))
        q = np.asarray(robot.integrate(q, 0.1 * qd))
    return found


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_orders_and_targets_of_a_turned_world_are_turned(seed):
    rng = np.random.default_rng(seed)
    turn, shift = rng.uniform(-3.0, 3.0), rng.normal(size=2)
    robot, stand = biped() if seed == 2 else quadruped(seed)
    gait = optimal.Gait([[0], [1]], swing=0.36, stance=0.1) if seed == 2 else ("trot", "walk")[seed]
    walks = [
        optimal.Walking(robot, gait, (0.4, -0.3, 0.7), stand=stand, begin=0.1, horizon=12, step=0.03)
        for _ in range(2)
    ]
    stages = walks[0].stages
    for t, q, qd in samples(walks[0].robot, walks[0].feet.stand, rng, 5):
        both = []
        for walk, place in zip(walks, (q, placed(robot, q, turn, shift)), strict=True):
            orders = walk._orders_at(t, t + 0.02, place, np.r_[place, qd])
            both.append((orders, stages.by_name(orders)))
        first, second = ({name: np.array(own) for name, own in each.items()} for _, each in both)
        assert set(first) == set(orders_of(stages.gait.feet))
        for name in ("time", "walks", "velocity"):
            np.testing.assert_allclose(first[name], second[name], atol=1e-9)
        for name in ("path", "trunk"):
            same_poses(turned_poses(first[name], turn, shift), second[name])
        np.testing.assert_allclose(turned(first["drift"], turn, np.zeros(2)), second["drift"], atol=1e-9)
        feet = first["feet"].reshape(-1, 3)
        np.testing.assert_allclose(turned(feet, turn, shift), second["feet"].reshape(-1, 3), atol=1e-9)
        assert np.abs(first["drift"]).min() > 1e-3
        same_tables(walks[0], *(table_of(walks[0].problem, stages, names) for _, names in both), turn, shift)


def same_tables(walk, first, second, turn, shift) -> None:
    """Numbers of all stages."""
    problem, robot = walk.problem, walk.robot
    for name in problem.parameters:
        a, b = first[:, problem.where(name)], second[:, problem.where(name)]
        if name in ("trunk.target", "end.target"):
            moved = np.array([placed(robot, row, turn, shift) for row in a])
            sign = np.sign((moved[:, 3:7] * b[:, 3:7]).sum(axis=1, keepdims=True))
            moved[:, 3:7] *= sign
            np.testing.assert_allclose(moved, b, atol=1e-9)
        elif name.endswith(".position"):
            np.testing.assert_allclose(turned(a, turn, shift), b, atol=1e-9)
        elif name.endswith(".orientation"):
            full = [placed(robot, np.r_[0, 0, 0, row], turn, shift)[3:7] for row in a]
            np.testing.assert_allclose(np.abs((np.array(full) * b).sum(axis=1)), 1.0, atol=1e-9)
        else:
            np.testing.assert_allclose(a, b, atol=1e-9, err_msg=name)


def test_footholds_move_towards_where_the_robot_is_pushed():
    """A trunk that is faster than commanded puts its feet further along what it moves by too much, in world axes."""
    robot, stand = quadruped(3)
    walk = optimal.Walking(robot, "trot", (0.0, 0.0, 0.0), stand=stand)
    for heading in (0.0, 0.9, -2.1):
        q = placed(walk.robot, walk.feet.stand, heading, np.zeros(2))
        qd = np.zeros(walk.robot.dof)
        qd[3:5] = 0.3, -0.2
        x = np.r_[q, qd]
        drift = np.array(walk.stages.by_name(walk._orders_at(0.0, 0.0, q, x))["drift"])
        c, s = math.cos(heading), math.sin(heading)
        world = np.array([c * 0.3 + s * 0.2, s * 0.3 - c * 0.2])
        np.testing.assert_allclose(drift, world * walk._reaction, atol=1e-9)
