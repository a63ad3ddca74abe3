"""A lower bound of the smallest eigenvalue of the mass matrix for all positions, from the energies of pairs of links.

Twice the kinetic energy is q̇ᵀM(q)q̇ = Σ_k v_kᵀ I_k v_k + Σ_k r_k·q̇_k², with v_k = X_k(q_k)·v_parent + S_k·q̇_k.
Each link gives a part w_k of its energy to its own joint, and parts x of it to the joints that it carries. If

    w_k·v_kᵀI_k v_k + x_k·v_parentᵀI_parent v_parent + r_k·q̇_k² ≥ λ·q̇_k²   for all velocities and positions q_k

for every joint, the sum is at least λ·|q̇|². Each condition has one position in it, whatever the number of joints:
[[w I_k + x B(q_k), w I_k S], [·, w SᵀI_k S + r − λ]] must not be negative, where B is the inertia of the parent in the
axes of the link, a trigonometric polynomial of degree 2 (of a sliding joint: a polynomial). Going from the tips
to the base, each joint takes the smallest part of its parent that it needs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from linkwise.model.inertia import Inertia
from linkwise.robot.robot import Robot

_POINTS = 256
"""Positions of a joint at which a condition is checked."""
_HALVINGS = 30
_ROUNDING = 1e-11
"""Of eigenvalues of matrices of this size and their elements, relative to the largest: more than it can be."""


@dataclass(frozen=True)
class _Carried:
    """A joint with the link behind it, all at position 0 of the robot, in the axes of the base.

    Args:
        parent: number of the joint that carries it; −1: the base.
        screw: of the joint, (angular, linear).
        inertia: of the link, 6×6.
        rotor: rotor inertia [kg·m² or kg].
        low: least position.
        high: largest position.
    """

    parent: int
    screw: np.ndarray
    inertia: np.ndarray
    rotor: float
    low: float
    high: float


def least_inertia(robot: Robot) -> float:
    """A lower bound of the smallest eigenvalue of the mass matrix over all positions within the joint limits.

    Args:
        robot: any; 0 for robots with other than turning and sliding joints, or whose links are no bodies.
    """
    joints = _carried(robot)
    if joints is None or not _is_mass_matrix(robot, joints):
        return 0.0
    conditions = [None if j.parent < 0 else _Condition(j, joints[j.parent].inertia) for j in joints]
    low, high = 0.0, min(float(j.screw @ j.inertia @ j.screw) + j.rotor for j in joints)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _is_possible(middle, joints, conditions) else (low, middle)
    return low


def own_inertias(robot: Robot) -> np.ndarray:
    """The inertia of each joint's own link about its axis, with the rotor [kg·m² or kg].

    Args:
        robot: any; zeros for robots with other than turning and sliding joints, and where the energy of a link may be
            negative.
    """
    joints = _carried(robot)
    if joints is None or not _is_mass_matrix(robot, joints):
        return np.zeros(robot.dof)
    for joint in joints:
        sizes = np.diagonal(joint.inertia)
        scale = np.sqrt(np.where(sizes > 0, sizes, 1.0))
        if joint.rotor < 0 or np.linalg.eigvalsh(joint.inertia / np.outer(scale, scale))[0] < -_ROUNDING:
            return np.zeros(robot.dof)
    return np.array([float(j.screw @ j.inertia @ j.screw) + j.rotor for j in joints]) * (1 - _ROUNDING)


def _is_possible(value: float, joints: list[_Carried], conditions: list[_Condition | None]) -> bool:
    """Whether energies can be shared so that every joint has this much."""
    left = [1.0] * len(joints)
    for k in reversed(range(len(joints))):
        joint, condition = joints[k], conditions[k]
        if condition is None:
            own = float(joint.screw @ joint.inertia @ joint.screw)
            if left[k] * own * (1 - _ROUNDING) + joint.rotor < value:
                return False
            continue
        needed = condition.needed(value, left[k], left[joint.parent])
        if needed is None:
            return False
        left[joint.parent] -= needed
    return True


class _Condition:
    """The condition of one joint that is carried by another link."""

    def __init__(self, joint: _Carried, parent: np.ndarray):
        self.joint = joint
        turning = bool(np.any(joint.screw[:3]))
        turns = turning and joint.high - joint.low >= 2 * math.pi
        low, high = (0.0, 2 * math.pi) if turns else (joint.low, joint.high)
        self.positions = np.linspace(low, high, _POINTS + 1)
        self.parents = np.array([_seen(parent, joint.screw, q) for q in self.positions])
        bend = _bend(parent, joint.screw, turning)
        sizes = np.diagonal(joint.inertia + parent)
        scale = np.sqrt(np.where(sizes > 0, sizes, 1.0))
        between = ((high - low) / _POINTS) ** 2 / 8 * bend + _ROUNDING * np.outer(scale, scale)
        # xᵀEx ≤ Σ d_i·x_i² with d_i = Σ_j e_ij·t_j/t_i
        self.lost = np.diag((between * np.outer(1 / scale, scale)).sum(axis=1))
        self.scale = scale

    def needed(self, value: float, own: float, available: float) -> float | None:
        """The smallest part of the parent for which the condition holds, a little above; None: there is none."""
        if not self._holds(value, own, available):
            return None
        low, high = 0.0, available
        for _ in range(14):
            middle = (low + high) / 2
            low, high = (low, middle) if self._holds(value, own, middle) else (middle, high)
        return high

    def _holds(self, value: float, own: float, part: float) -> bool:
        S, inertia = self.joint.screw, own * self.joint.inertia
        column = inertia @ S
        corner = float(S @ column) + self.joint.rotor - value
        if corner <= 0:
            return False
        # the Schur complement of the corner, scaled so that its diagonal is about 1
        matrices = inertia + part * (self.parents - self.lost) - np.outer(column, column) / corner
        scaled = matrices / np.outer(self.scale, self.scale)
        return bool(np.linalg.eigvalsh(scaled)[:, 0].min() > 1e-12 * (1 + float(S @ column) / corner))


def _cross(v: np.ndarray) -> np.ndarray:
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def _rate(screw: np.ndarray) -> np.ndarray:
    """d/dq of motions seen from a frame that moves with a screw."""
    turn, slide = _cross(screw[:3]), _cross(screw[3:])
    return np.block([[turn, np.zeros((3, 3))], [slide, turn]])


def _moved(screw: np.ndarray, q: float) -> np.ndarray:
    """exp(rate·q), by Rodrigues' formula: rate³ is −rate for a unit turn without pitch, rate² is 0 for a slide."""
    rate = _rate(screw)
    if not np.any(screw[:3]):
        return np.eye(6) + q * rate
    return np.eye(6) + math.sin(q) * rate + (1 - math.cos(q)) * rate @ rate


def _seen(inertia: np.ndarray, screw: np.ndarray, q: float) -> np.ndarray:
    """The inertia of the parent in the axes of a link whose joint is at q."""
    X = _moved(screw, q)
    return X.T @ inertia @ X


def _bend(inertia: np.ndarray, screw: np.ndarray, turning: bool) -> np.ndarray:
    """Bounds of the second derivatives of ``_seen`` by q, element by element."""
    rate = _rate(screw)
    if not turning:
        return 2 * np.abs(rate.T @ inertia @ rate) * (1 + 1e-9)
    samples = np.array([_seen(inertia, screw, 2 * math.pi * k / 5) for k in range(5)])
    harmonics = np.abs(np.fft.rfft(samples, axis=0)) * 2 / 5
    return (harmonics[1] + 4 * harmonics[2]) * (1 + 1e-9)


def _carried(robot: Robot) -> list[_Carried] | None:
    """The joints of a robot in the order of its coordinates; None where the method has no place for one."""
    moving = [j for j in robot.joints if j.type != "fixed"]
    if any(not (j.revolute or j.slides) or j.mimic is not None for j in moving):
        return None
    by_child = {j.child: j for j in robot.joints}

    def placed(link: str) -> np.ndarray:
        """Pose of a link at position 0, 4×4."""
        if link not in by_child:
            return np.eye(4)
        joint = by_child[link]
        return placed(joint.parent) @ joint.origin.matrix

    def carrier(link: str) -> int:
        while link in by_child and by_child[link].type == "fixed":
            link = by_child[link].parent
        return next((k for k, j in enumerate(moving) if j.child == link), -1)

    inertias = np.zeros((len(moving), 6, 6))
    for link in robot.links:
        number = carrier(link.name)
        if number >= 0:
            inertias[number] += _in_base(link.inertia, placed(link.name))
    found: list[_Carried] = []
    for k, joint in enumerate(moving):
        pose = placed(joint.child)
        axis = pose[:3, :3] @ np.asarray(joint.axis, dtype=float)
        axis /= np.linalg.norm(axis)
        slides = joint.slides
        screw = np.concatenate([0 * axis, axis] if slides else [axis, np.cross(pose[:3, 3], axis)])
        low, high = (float(side[k]) for side in (robot.limits.lower, robot.limits.upper))
        if not (math.isfinite(low) and math.isfinite(high)):
            low, high = -math.pi, math.pi
        parent = carrier(joint.parent)
        if parent >= k:
            return None
        found.append(_Carried(parent, screw, inertias[k], joint.rotor_inertia, low, high))
    return found


def _in_base(inertia: Inertia, pose: np.ndarray) -> np.ndarray:
    """The inertia of a body in the axes of the base, 6×6 for motions (angular, linear)."""
    R, p = pose[:3, :3], pose[:3, 3]
    own = np.block(
        [
            [inertia.matrix_about_origin, _cross(np.array(inertia.first_moment))],
            [_cross(np.array(inertia.first_moment)).T, inertia.mass * np.eye(3)],
        ]
    )
    to_link = np.block([[R.T, np.zeros((3, 3))], [-R.T @ _cross(p), R.T]])
    return to_link.T @ own @ to_link


def _is_mass_matrix(robot: Robot, joints: list[_Carried]) -> bool:
    """Whether these links have the mass matrix of the robot: it may have terms that are not here."""
    rng = np.random.default_rng(0)
    for _ in range(3):
        q = rng.uniform(-1.0, 1.0, robot.dof)
        expected = np.asarray(robot.mass_matrix(q))
        poses: list[np.ndarray] = []
        total = np.diag([j.rotor for j in joints])
        rows: list[np.ndarray] = []
        for k, joint in enumerate(joints):
            carried = np.eye(6) if joint.parent < 0 else poses[joint.parent]
            # motions of the base's axes to those of the link's frame at position 0
            poses.append(_moved(joint.screw, -q[k]) @ carried)
            row = np.zeros((6, len(joints)))
            if joint.parent >= 0:
                row += _moved(joint.screw, -q[k]) @ rows[joint.parent]
            row[:, k] += joint.screw
            rows.append(row)
            total = total + row.T @ joint.inertia @ row
        if not np.allclose(total, expected, rtol=1e-9, atol=1e-11 * np.abs(expected).max()):
            return False
    return True
