"""The tool of a task-space law: where it is, where it should be, how it moves, and what inertia it shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.algorithms import centroidal, coordinates, coupling, dense, equation, kinematics
from linkwise.arguments.numbers import Numbers
from linkwise.control.controller import Reference
from linkwise.functions.table import mechanism_of
from linkwise.model.mechanism import Mechanism
from linkwise.model.transform import Transform
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar

Rows = list[list[Scalar]]
POSITIONS = 64
"""Random positions from which the usual inertia of a tool is taken."""
CANNOT_MOVE = 1e-6  # of the largest eigenvalue of a mobility
POSE_SIZE = 12
"""Numbers of a target pose: the first three rows of its matrix."""


@dataclass(frozen=True, eq=False)
class Tool:
    """A frame in one state, in the axes of the base; rotations before translations."""

    R: Rows
    p: list[Scalar]
    J: Rows
    """6×n."""
    twist: list[Scalar]
    M: Rows
    """Mass matrix, n×n."""
    mobile: Rows
    """J M⁻¹ by rows, 6×n."""
    mobility: Rows
    """G = J M⁻¹ Jᵀ, 6×6."""

    @classmethod
    def at(cls, links: Mechanism, q: Sequence[Scalar], qd: Sequence[Scalar], frame: Any) -> Tool:
        """The tool in a state.

        Args:
            links: those of the model.
            q: positions, nq scalars.
            qd: velocities, n scalars.
            frame: (body, pose) of ``Robot.locate``.
        """
        R, p, J = pose_and_jacobian(links, q, frame)
        at = coupling.expanded(links, q, positions=True)
        solve, M = coordinates.solver(links, equation.mass_matrix(links, at))
        mobile = [solve(row) for row in J]
        return cls(R, p, J, product(J, qd), M, mobile, dense.symmetric_product(mobile, J))

    def torques(self, wrench: Sequence[Scalar]) -> list[Scalar]:
        """Jᵀ w [N·m or N] of a (moment, force) in the axes of the base."""
        return [dense.dot(column, wrench) for column in dense.transposed(self.J)]


@dataclass(frozen=True, eq=False)
class Target:
    """Where a tool should be and how it should move, in the axes of the base."""

    R: Rows
    p: list[Scalar]
    twist: list[Scalar]
    acceleration: list[Scalar]


def pose_and_jacobian(
    links: Mechanism, q: Sequence[Scalar], frame: tuple[int, Transform]
) -> tuple[Rows, list[Scalar], Rows]:
    """(rotation, position, Jacobian) of a frame over the robot's own coordinates."""
    at = coupling.expanded(links, q, positions=True)
    pose = kinematics.pose(links, at, *frame)
    J = coupling.reduced(links, kinematics.jacobian(links, at, *frame), (False, True))
    return [row[:3] for row in pose[:3]], [row[3] for row in pose[:3]], J


def acceleration_without_torques(
    links: Mechanism, q: Sequence[Scalar], qd: Sequence[Scalar], frame: tuple[int, Transform]
) -> list[Scalar]:
    """J̇ q̇ [rad/s², m/s²]."""
    if all(isinstance(x, float) and x == 0.0 for x in qd):
        return [0.0] * 6
    at, rates = coupling.expanded(links, q, positions=True), coupling.expanded(links, qd)
    return centroidal.jacobian_rate(links, at, rates, *frame)


def target_of(
    links: Mechanism,
    reference: Reference,
    frame: tuple[int, Transform],
    pose: Sequence[Scalar] | None = None,
) -> Target:
    """The target: a pose that does not move, or what the joint reference gives the tool.

    Args:
        links: those of the model.
        reference: of the joints.
        frame: (body, pose) of ``Robot.locate``.
        pose: twelve scalars, the first three rows of a 4×4 matrix; None: from the reference.
    """
    if pose is not None:
        rows = [list(pose[4 * i : 4 * i + 4]) for i in range(3)]
        return Target([row[:3] for row in rows], [row[3] for row in rows], [0.0] * 6, [0.0] * 6)
    R, p, J = pose_and_jacobian(links, reference.q, frame)
    bias = acceleration_without_torques(links, reference.q, reference.qd, frame)
    acceleration = [a + b for a, b in zip(product(J, reference.qdd), bias, strict=True)]
    return Target(R, p, product(J, reference.qd), acceleration)


def product(A: Rows, x: Sequence[Scalar]) -> list[Scalar]:
    """A x; zeros where x is the constant zero."""
    if not x or all(isinstance(each, float) and each == 0.0 for each in x):
        return [0.0] * len(A)
    return [dense.dot(row, x) for row in A]


def turned(R: Rows, x: Sequence[Scalar]) -> list[Scalar]:
    """A twist or wrench of axes R in those in which R is given; both halves are turned."""
    return [dense.dot(row, part) for part in (x[:3], x[3:]) for row in R]


def pose_given(pose: Any) -> np.ndarray:
    """Twelve numbers of a target pose (4, 4) or (3, 4), checked to be a rotation and a position [m]."""
    check = Numbers()
    given = check.array("target", pose)
    if given.shape not in ((4, 4), (3, 4)):
        raise check.error(f"target: expected a pose, 4×4 or 3×4, got shape {given.shape}")
    R = given[:3, :3]
    if np.abs(R @ R.T - np.eye(3)).max() > 1e-6 or np.linalg.det(R) < 0:
        raise check.error("target: its first three columns are no rotation")
    return given[:3].ravel()


def usual_inertia(robot: Robot, frame: str | None = None) -> np.ndarray:
    """Inertia [kg·m²] and mass [kg] that a tool usually shows, as six numbers: (i, i, i, m, m, m), two digits each.

    The geometric mean over directions, median over random positions, of 1/eigenvalue of the rotational and of the
    translational block of G = J M⁻¹ Jᵀ. Directions in which the tool cannot move do not count; where there are no
    others it is 1.

    Args:
        robot: the robot.
        frame: the tool; None: the only leaf.
    """
    lanes: Any = list(
        robot.random(np.random.default_rng(0), POSITIONS).T
    )  # scalars with one lane per position
    links = mechanism_of(robot, base_parameters=True)
    mobility = Tool.at(links, lanes, [0.0] * robot.dof, robot.locate(frame)).mobility
    G = np.array([[np.broadcast_to(entry, POSITIONS) for entry in row] for row in mobility])
    G = np.moveaxis(G, -1, 0)
    parts: list[float] = []
    for rows in (slice(0, 3), slice(3, 6)):
        block = G[:, rows, rows]
        means: list[float] = []
        for eigenvalues in np.linalg.eigvalsh(block[np.isfinite(block).all((-1, -2))]):
            free = eigenvalues[eigenvalues > CANNOT_MOVE * eigenvalues.max()]
            means += [float(np.exp(-np.log(free).mean()))] if eigenvalues.max() > 1e-12 else []
        parts += [float(f"{np.median(means):.2g}") if means else 1.0] * 3
    return np.array(parts)
