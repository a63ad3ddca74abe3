"""How fast distances can change: no faster than the speeds of the joints, each times its longest lever.

A point of a link that joint j moves has a speed of at most |q̇_j|·r_j from that joint, where r_j is the length of the
chain of frames from the joint to the point (1 for a joint that slides). The distance of two links changes by the joints
between them alone.
"""

from __future__ import annotations

import numpy as np

from linkwise.collision.checks import Checks
from linkwise.core.products import length
from linkwise.geometry.skeleton import BASE
from linkwise.model import Model
from linkwise.model.joint import Joint


def speed_factors(robot: Model, checks: Checks, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """F (comparisons, n) with |ḋ| ≤ F |q̇|, for joints of one axis between these positions.

    Args:
        robot: the robot.
        checks: what is compared.
        lower: positions [rad or m], shape (n,).
        upper: positions, shape (n,).
    """
    levers = Levers(robot, lower, upper)
    ends = [max(length(c.start), length(c.end)) for c in checks.capsules]
    rows: list[np.ndarray] = []
    for first, second in checks.pairs.tolist():
        one, two = checks.capsules[first].body, checks.capsules[second].body
        common = set(levers.path(one)) & set(levers.path(two))
        rows.append(levers.row(one, ends[first], common) + levers.row(two, ends[second], common))
    moving = [*(checks.grounded[:, 0] // 2).tolist(), *checks.blocked[:, 0].tolist()]
    rows += [levers.row(checks.capsules[k].body, ends[k], set()) for k in moving]
    return np.array(rows).reshape(-1, robot.dof)


class Levers:
    """Longest levers of the joints of a robot between positions.

    Args:
        robot: the robot.
        lower: positions [rad or m], shape (n,).
        upper: positions, shape (n,).
    """

    def __init__(self, robot: Model, lower: np.ndarray, upper: np.ndarray):
        self.robot = robot
        self.above = [robot.carrier(joint.parent)[0] for joint in robot.moving_joints]
        self.columns: list[list[tuple[int, float]]] = []  # coordinates that move each joint, and its rates
        names = list(robot.joint_names)
        largest = np.maximum(np.abs(lower), np.abs(upper))
        self.step: list[float] = []  # from the frame of the parent body to that of the body
        for joint, relation in zip(robot.moving_joints, robot.followed, strict=True):
            leaders = ((joint.name, 1.0),) if relation is None else relation.leaders
            offset = 0.0 if relation is None else abs(relation.offset)
            columns = [(names.index(leader), abs(rate)) for leader, rate in leaders]
            self.columns.append(columns)
            farthest = sum(rate * float(largest[column]) for column, rate in columns) + offset
            pose = robot.carrier(joint.parent)[1]
            way = length((pose @ joint.origin).translation)
            self.step.append(way + _slide(joint) * farthest)

    def path(self, body: int) -> list[int]:
        """The joints from the base to a body, the last one first."""
        found: list[int] = []
        while body != BASE:
            found.append(body)
            body = self.above[body]
        return found

    def row(self, body: int, end: float, common: set[int]) -> np.ndarray:
        """Largest speed of the points of a body, per rate of every coordinate, by joints that are not ``common``."""
        factors = np.zeros(self.robot.dof)
        lever = end
        for k in self.path(body):
            if k in common:
                break
            joint = self.robot.moving_joints[k]
            for column, rate in self.columns[k]:
                factors[column] += rate * ((lever if joint.turns else 0.0) + _slide(joint))
            lever += self.step[k]
        return factors


def _slide(joint: Joint) -> float:
    """Metres that a joint slides per unit of its position."""
    return 1.0 if joint.slides else abs(joint.pitch)
