"""Products with the inverse mass matrix, and rows of the supports, for one sample of whole-body control."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.algorithms import dense, factorised
from linkwise.control.whole_body.limits import Support
from linkwise.control.whole_body.tasks import State
from linkwise.functions.table import mechanism_of
from linkwise.joint_laws import is_zero
from linkwise.robot.robot import Robot


class Halves:
    """Products with M⁻¹ from half solutions: M = Lᵀ D L, so that r M⁻¹ kᵀ = (L⁻ᵀ r) D⁻¹ (L⁻ᵀ k), with few entries
    each.

    Args:
        robot: the robot.
        L: lower triangle.
        inverse: 1/D.
        M: where it is known.
    """

    def __init__(self, robot: Robot, L: Any, inverse: Any, M: Any = None):
        self.M = M
        links = mechanism_of(robot, base_parameters=True)
        self.robot, self.links, self.coupled, self.L, self.inverse = robot, links, links.coupled, L, inverse

    @classmethod
    def at(cls, robot: Robot, q: Any) -> Halves:
        """Those of positions q, symbols or numbers."""
        links = mechanism_of(robot, base_parameters=True)
        M = [list(row) for row in robot.mass_matrix(q)]
        return cls(robot, *(dense.factorised(M) if links.coupled else factorised.factorise(links, M)), M=M)

    @classmethod
    def of_numbers(cls, robot: Robot, numbers: Sequence[Any]) -> Halves:
        """From ``numbers`` of another one."""
        places, n = cls.places(robot), robot.dof
        L: list[list[Any]] = [[0.0] * n for _ in range(n)]
        for (i, k), value in zip(places, numbers[:-n], strict=True):
            L[i][k] = value
        return cls(robot, L, list(numbers[-n:]))

    @staticmethod
    def places(robot: Robot) -> list[tuple[int, int]]:
        """Where L has entries below its diagonal."""
        links = mechanism_of(robot, base_parameters=True)
        inner = factorised.inner_coordinates(links)
        return [(i, k) for i in range(robot.dof) for k in (range(i) if links.coupled else inner[i])]

    def numbers(self) -> list[Any]:
        """All that it is made from: entries of L, 1/D."""
        places = self.places(self.robot)
        return [*(self.L[i][k] for i, k in places), *self.inverse]

    def row(self, r: Sequence[Any]) -> list[Any]:
        """L⁻ᵀ r (L⁻¹ r of a robot with followers)."""
        if not self.coupled:
            return factorised.inward(self.links, self.L, r)
        found: list[Any] = []
        for i, value in enumerate(r):
            found.append(value - sum((self.L[i][k] * found[k] for k in range(i)), start=0.0))
        return found

    def product(self, first: Sequence[Any], second: Sequence[Any]) -> Any:
        """(L⁻ᵀ r) D⁻¹ (L⁻ᵀ k) of two half solutions."""
        terms = [
            a * b * c
            for a, b, c in zip(first, self.inverse, second, strict=True)
            if not (is_zero(a) or is_zero(c))
        ]
        return sum(terms[1:], start=terms[0]) if terms else 0.0

    def products(self, rows: Sequence[Any], columns: Sequence[Any]) -> list[Any]:
        """All products, row by row."""
        return [self.product(row, column) for row in rows for column in columns]

    def symmetric(self, rows: Sequence[Any]) -> list[Any]:
        """All products of rows with themselves, row by row."""
        half = {(i, j): self.product(rows[i], rows[j]) for i in range(len(rows)) for j in range(i + 1)}
        return [half[max(i, j), min(i, j)] for i in range(len(rows)) for j in range(len(rows))]

    def solved(self, net: Sequence[Any]) -> list[Any]:
        """M⁻¹ net."""
        if self.coupled:
            return dense.solved(self.L, self.inverse, net)
        half = [x * i for x, i in zip(self.row(net), self.inverse, strict=True)]
        return factorised.outward(self.links, self.L, half)


def flat(rows: Any) -> list[Any]:
    """A matrix row by row."""
    return [x for row in rows for x in row]


def support_rows(state: State, support: Support, damping: float) -> tuple[list[Any], list[Any]]:
    """(rows that do not accelerate, what J q̈ should be) of a support."""
    robot = state.robot
    axes = support.axes()
    J = robot.jacobian(state.q, support.frame)
    R = robot.pose(state.q, support.frame)[:3, :3]
    bias = robot.jacobian_rate(state.q, state.qd, support.frame)
    turn = J[:3] @ state.qd
    held: list[Any] = []
    wanted: list[Any] = []
    for point in () if support.sole else support.points:
        centre = R @ np.asarray(point, dtype=float)
        arm = (
            centre - float(support.radius) * axes[2]
        )  # a round foot rolls: what touches is always below its centre
        rows = [J[3 + a] + dense.cross(J[:3], arm)[a] for a in range(3)]
        own = [
            bias[3 + a] + (dense.cross(bias[:3], arm)[a] + dense.cross(turn, dense.cross(turn, centre))[a])
            for a in range(3)
        ]
        held += [sum(float(axes[a][b]) * rows[b] for b in range(3)) for a in range(3)]
        wanted += [-sum(float(axes[a][b]) * own[b] for b in range(3)) for a in range(3)]
    if (
        support.line
    ):  # a rigid body that turns accelerates its points towards each other: nothing can hold that
        along = support.along_line(R)
        both = [*along, *(-x for x in along)]
        part = 0.5 * sum(a * w for a, w in zip(both, wanted, strict=True))
        wanted = [w - part * a for a, w in zip(both, wanted, strict=True)]
    if support.sole:  # in the axes of the frame, in which its points do not move
        held = [sum(R[b, a] * J[at + b] for b in range(3)) for at in (0, 3) for a in range(3)]
        wanted = [-sum(R[b, a] * bias[at + b] for b in range(3)) for at in (0, 3) for a in range(3)]
    if damping:
        wanted = [w - damping * (row @ state.qd) for w, row in zip(wanted, held, strict=True)]
    return [list(row) for row in held], wanted
