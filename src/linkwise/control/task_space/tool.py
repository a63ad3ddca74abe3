"""The tool of a task-space law: where it is, where it should be, how it moves, and what inertia it shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.algorithms import centroidal, coordinates, coupling, dense, equation, kinematics
from linkwise.arguments.numbers import Numbers
from linkwise.control.controller import Reference
from linkwise.control.gains import not_too_fast
from linkwise.functions.table import mechanism_of
from linkwise.model.mechanism import Mechanism
from linkwise.model.transform import Transform
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar

Rows = list[list[Scalar]]
POSITIONS = 64
"""Random positions from which the usual inertia of a tool is taken."""
CANNOT_MOVE = 1e-6  # of the largest mobility
NEARLY_SINGULAR = 1e-4  # eigenvalues of a mobility with a unit diagonal that do not count
MOST_UNEQUAL, LIFTED = 100.0, 16.0
"""Ratio of the stiffnesses of a spring about two axes, at most; how many times the lesser one is raised, at most."""
MUCH_STIFFER = 30.0
"""Axes so much stiffer than the lightest get one stiffness: their difference pulls at that one where the tool is turned
away about them, by up to a half of it.
"""
SMALL_NULL = 0.02
FASTEST = 5.0
"""No mode of a spring is so many times as fast as meant: critical damping takes away twice its natural frequency, and
delays of d make that unstable from about 2ωd = 1 on: 10 ms at 50 rad/s. (Of 45 arms the UR10e comes nearest, 4.8.)
"""


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


def usual_inertia(robot: Robot, frame: str | None = None, axes: str = "tool") -> np.ndarray:
    """Inertia [kg·m²] and mass [kg] that a tool usually shows, as six numbers, rotations first, two digits each.

    Along an axis the inertia lies between 1/G_ii, with the other directions free, and Λ_ii, with them held (G = J
    M⁻¹ Jᵀ, Λ its inverse over directions in which the tool can move). The geometric mean of both, median over
    random positions; masses are the same in all directions. 1 along an axis about which the tool never turns.

    Args:
        robot: the robot.
        frame: the tool; None: the only leaf.
        axes: "tool", or "base": inertias are the same about all axes.
    """
    means = [_mean_inertias(G) for G in mobilities(robot, frame, "tool")]
    usual = np.array([_median(column) for column in np.array(means).reshape(-1, 6).T])
    usual[3:] = np.exp(np.log(usual[3:]).mean())
    if axes == "base":
        usual[:3] = np.exp(np.log(usual[:3]).mean())
    return np.array([float(f"{x:.2g}") for x in usual])


def spring_inertia(robot: Robot, frame: str | None = None, axes: str = "tool") -> np.ndarray:
    """Inertias [kg·m²] and masses [kg] that ω² turns into the stiffness of a spring at the tool, six numbers.

    The usual ones, with three changes for tools that turn far more easily about one axis, such as that of the last
    joint of a slender wrist. A spring that is turned away about another axis pulls at that one, too, with up to a
    seventh of its stiffness; so the least stiffness is raised, and the others are at most ``MOST_UNEQUAL`` times as
    large, and equal where they are much larger (``MUCH_STIFFER``). And no mode is more than ``FASTEST`` times as fast
    as meant in any position.

    Args:
        robot: the robot.
        frame: the tool; None: the only leaf.
        axes: of the spring, "tool" or "base".
    """
    inertia = usual_inertia(robot, frame, axes)
    turns = inertia[:3]
    least = np.clip(turns.max() / MOST_UNEQUAL, turns, LIFTED * turns)
    least = np.minimum(least, MOST_UNEQUAL * least.min())
    lightest, middle, _ = np.sort(least)
    inertia[:3] = np.where(middle > MUCH_STIFFER * lightest, np.minimum(least, middle), least)
    return not_too_fast(inertia, mobilities(robot, frame, axes), FASTEST**2)


def null_inertia(robot: Robot, frame: str | None = None) -> float:
    """Sum of the inertias that joints have in the null space of a tool [kg·m² or kg]: the trace of M − JᵀΛJ, median
    over random positions, ``SMALL_NULL`` of M's at least: arms without a null space have one in singular positions.

    Args:
        robot: the robot.
        frame: the tool; None: the only leaf.
    """
    tool = _in_random_positions(robot, frame)
    M, J = _by_lane(tool.M), _by_lane(tool.J)
    known = np.isfinite(M).all((-2, -1)) & np.isfinite(J).all((-2, -1))
    totals = np.trace(M[known], axis1=-2, axis2=-1)
    held = [_held_inertia(*each) for each in zip(M[known], J[known], strict=True)]
    inertias = np.maximum(totals - held, SMALL_NULL * totals)
    regular = inertias[np.isfinite(inertias)]
    return float(np.median(regular)) if len(regular) else 0.0


def _held_inertia(M: np.ndarray, J: np.ndarray) -> float:
    """Trace of JᵀΛJ, with Λ over directions in which the tool can move; NaN where M is singular."""
    try:
        half = np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        return np.nan
    J = np.linalg.solve(half, J.T)  # L⁻¹ Jᵀ
    size = np.sqrt(np.einsum("ij,ij->j", J, J))
    directions, values, _ = np.linalg.svd(J / np.where(size > 0.0, size, 1.0), full_matrices=False)
    held = half @ directions[:, values**2 > NEARLY_SINGULAR]
    return float(np.einsum("ij,ij->", held, held))


def _in_random_positions(robot: Robot, frame: str | None) -> Tool:
    """The tool at rest, with one lane per position."""
    lanes: Any = list(robot.random(np.random.default_rng(0), POSITIONS).T)
    links = mechanism_of(robot, base_parameters=True)
    return Tool.at(links, lanes, [0.0] * robot.dof, robot.locate(frame))


def mobilities(robot: Robot, frame: str | None, axes: str) -> np.ndarray:
    """J M⁻¹ Jᵀ of a tool in random positions, those that are finite, in its own axes or those of the base."""
    tool = _in_random_positions(robot, frame)
    G, T = _by_lane(tool.mobility), np.zeros((POSITIONS, 6, 6))
    T[:, :3, :3] = T[:, 3:, 3:] = _by_lane(tool.R) if axes == "tool" else np.eye(3)
    G = np.swapaxes(T, -1, -2) @ G @ T
    return G[np.isfinite(G).all((-2, -1))]


def _mean_inertias(G: np.ndarray) -> np.ndarray:
    """√(Λ_ii / G_ii) of one mobility; NaN along axes that cannot move."""
    size = np.diagonal(G)
    moves = size > CANNOT_MOVE * np.repeat([size[:3].max(), size[3:].max()], 3)
    scale = np.where(moves, 1.0 / np.sqrt(np.where(moves, size, 1.0)), 0.0)
    eigenvalues, vectors = np.linalg.eigh(scale[:, None] * G * scale)
    free = eigenvalues > NEARLY_SINGULAR
    inverse = ((vectors[:, free] ** 2) / eigenvalues[free]).sum(1)  # diagonal of the inverse
    return np.where(moves, scale * scale * np.sqrt(np.where(moves, inverse, 1.0)), np.nan)


def _median(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else 1.0


def _by_lane(rows: Any) -> np.ndarray:
    """A matrix of lanes as a matrix per lane."""
    return np.moveaxis(np.array([[np.broadcast_to(x, POSITIONS) for x in row] for row in rows]), -1, 0)
