"""Rodriguez's stacked operators as dense matrices, for small robots: the definition that recursions are tested against.

All spatial quantities are (angular, linear) in the prepared frame of each link, as in ``Robot.filter``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.functions.table import mechanism_of
from linkwise.spatial import Spatial, Vector


@dataclass(frozen=True)
class Operators:
    """x = Φ(M λ + b), λ = Φᵀ(Hᵀ q̈ + n + E λ₀), τ = H x + I_a q̈."""

    step: list[
        np.ndarray
    ]  # φ of each link: a force on it, about its parent's origin in the parent's axes; (6, 6)
    parent: list[int]
    phi: np.ndarray  # Φ, (6n, 6n): block (i, j) takes a force on link j to its ancestor i
    H: np.ndarray  # (n, 6n)
    inertia: np.ndarray  # block diagonal, (6n, 6n)
    rotor: np.ndarray  # (n,)
    root: np.ndarray  # E λ₀: what the accelerated base gives the links next to it, (6n,)

    @property
    def mass_matrix(self) -> np.ndarray:
        HP = self.H @ self.phi
        return HP @ self.inertia @ HP.T + np.diag(self.rotor)


def operators_of(robot, q) -> Operators:
    links = mechanism_of(robot)
    n = len(links)
    step, parent = [], []
    phi = np.eye(6 * n)
    H = np.zeros((n, 6 * n))
    M = np.zeros((6 * n, 6 * n))
    root = np.zeros(6 * n)
    for k, link in enumerate(links):
        placed = link.placed(link.turned(float(q[k])))
        columns = []
        for unit in np.eye(6).tolist():
            moved = placed.force_to_parent(Spatial(Vector(*unit[:3]), Vector(*unit[3:])))
            columns.append([*moved.angular, *moved.linear])
        step.append(np.array(columns, dtype=float).T)
        parent.append(link.parent)
        own = slice(6 * k, 6 * k + 6)
        H[k, 6 * k + (2 if link.turns else 5)] = 1.0
        m, h, I = link.inertia
        cross = np.array([[0, -h.z, h.y], [h.z, 0, -h.x], [-h.y, h.x, 0]])
        full = np.array([[I.xx, I.xy, I.xz], [I.xy, I.yy, I.yz], [I.xz, I.yz, I.zz]])
        M[own, own] = np.block([[full, cross], [cross.T, m * np.eye(3)]])
        if link.parent < 0:
            root[own] = step[k].T @ [0, 0, 0, *(-g for g in links.gravity)]
        else:  # parents come first, so their column is complete
            above = slice(6 * link.parent, 6 * link.parent + 6)
            phi[:, own] += phi[:, above] @ step[k]
    rotor = np.array([link.rotor_inertia for link in links])
    return Operators(step, parent, phi, H, M, rotor, root)


def biases_of(robot, ops: Operators, qd) -> tuple[np.ndarray, np.ndarray]:
    """(b, n) stacked, (6n,) each: bias forces and bias accelerations, from vectors and cross products alone.

    Accelerations are those of points (not the rates of velocity components in moving axes): a lever turning with ω
    gives ω × (ω × l), a slide on a turning link 2 ω × z q̇.
    """
    links = mechanism_of(robot)
    b, bias, turning = [], [], []
    for k, link in enumerate(links):
        step = ops.step[k]
        to_link = step[3:, 3:].T  # parent's axes -> link's axes
        lever_cross = step[:3, 3:] @ to_link  # l^ in the parent's axes
        above = turning[link.parent] if link.parent >= 0 else np.zeros(3)
        lever = np.array([lever_cross[2, 1], lever_cross[0, 2], lever_cross[1, 0]])
        n = np.zeros(6)
        n[3:] = to_link @ np.cross(above, np.cross(above, lever))
        w = to_link @ above
        z = np.array([0.0, 0.0, qd[k]])
        if link.turns:
            n[:3] = np.cross(w, z)
            w = w + z
        else:
            n[3:] += 2 * np.cross(w, z)
        own = ops.inertia[6 * k : 6 * k + 6, 6 * k : 6 * k + 6]
        h = np.array([*link.inertia.first_moment])
        b.append(np.concatenate([np.cross(w, own[:3, :3] @ w), np.cross(w, np.cross(w, h))]))
        bias.append(n)
        turning.append(w)
    return np.concatenate(b), np.concatenate(bias)
