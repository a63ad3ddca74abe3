"""Positions, velocities and torques of a robot as other engines number them.

Velocities of an engine are T(q) q̇, its accelerations T q̈ + Ṫ q̇ and, because power is the same in both, τ = Tᵀ
τ_engine and M = Tᵀ M_engine T. T turns base velocities into the axes that the engine uses; it also orders joints, and
has a row for each joint that follows another one where the engine keeps that joint as one of its own.

============  ===========================================================================================
Linkwise      floating: (x y z, quaternion x y z w); velocities (angular, linear) in the link's own axes
Pinocchio     the same positions; velocities (linear, angular) in the link's own axes; a continuous joint is
              (cos, sin), JointModelPlanar (x, y, cos, sin) with velocities in the link's axes
MuJoCo        quaternion w x y z; velocities linear in the axes of the world, then angular in the link's own
frax          with ``floating_base="quaternion"`` as MuJoCo
============  ===========================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.errors import ModelError, ShapeError, UnknownNameError
from linkwise.model import Model
from linkwise.model.joint import Joint

ENGINES = ("pinocchio", "mujoco", "frax")


@dataclass(frozen=True)
class JointPair:
    """One joint of ours (three for a planar base) and the engine's joint for it."""

    joint: Joint
    q: int  # our first position number
    v: int
    their_q: int
    their_v: int
    kind: str  # "one", "circle" (cos and sin), "ball", "floating" or "planar"
    ratio: float = 1.0  # of a joint that follows: q = ratio·q(leader) + offset
    offset: float = 0.0


class Coordinates:
    """How an engine numbers the coordinates of a robot; arrays have shape (..., n) with any batch axes."""

    def __init__(self, robot: Model, engine: str, parts: list[JointPair], nq: int, nv: int):
        self.robot = robot
        self.parts = parts
        self.nq, self.nv = nq, nv
        self.scalar_first = engine != "pinocchio"
        self.in_world_axes = engine != "pinocchio"

    @property
    def square(self) -> bool:
        """Whether the engine has as many velocities as the robot, so that forces can be turned both ways."""
        return self.nv == self.robot.dof

    # -- to the engine --------------------------------------------------------------------------------------------

    def positions(self, q: ArrayLike) -> np.ndarray:
        """q (..., nq) as the engine's positions."""
        q = last("q", q, self.robot.nq)
        found = np.zeros((*q.shape[:-1], self.nq))
        for part in self.parts:
            at, to = part.q, part.their_q
            if part.kind in ("one", "circle"):
                value = part.ratio * q[..., at] + part.offset
                numbers = (value,) if part.kind == "one" else (np.cos(value), np.sin(value))
                for k, number in enumerate(numbers):
                    found[..., to + k] = number
            elif part.kind == "planar":
                found[..., to : to + 2] = q[..., at : at + 2]
                found[..., to + 2], found[..., to + 3] = np.cos(q[..., at + 2]), np.sin(q[..., at + 2])
            else:
                skip = 3 if part.kind == "floating" else 0
                found[..., to : to + skip] = q[..., at : at + skip]
                quaternion = _unit(q[..., at + skip : at + skip + 4])
                found[..., to + skip : to + skip + 4] = (
                    np.roll(quaternion, 1, axis=-1) if self.scalar_first else quaternion
                )
        return found

    def velocity_matrix(self, q: ArrayLike) -> np.ndarray:
        """T(q), shape (..., nv, dof): the engine's velocities per velocity of ours."""
        q = last("q", q, self.robot.nq)
        T = np.zeros((*q.shape[:-1], self.nv, self.robot.dof))
        for part in self.parts:
            at, to = part.v, part.their_v
            if part.kind in ("one", "circle"):
                T[..., to, at] = part.ratio
            elif part.kind == "ball":
                T[..., to : to + 3, at : at + 3] = np.eye(3)
            elif part.kind == "planar":
                T[..., to : to + 2, at : at + 2] = _plane(q[..., part.q + 2])
                T[..., to + 2, at + 2] = 1.0
            else:
                turn = _rotation(q[..., part.q + 3 : part.q + 7]) if self.in_world_axes else np.eye(3)
                T[..., to : to + 3, at + 3 : at + 6] = turn
                T[..., to + 3 : to + 6, at : at + 3] = np.eye(3)
        return T

    def velocities(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """v (..., dof) as the engine's velocities."""
        return _times(self.velocity_matrix(q), last("v", v, self.robot.dof))

    def accelerations(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> np.ndarray:
        """a (..., dof) as the engine's accelerations: T a + Ṫ v."""
        return _times(self.velocity_matrix(q), last("a", a, self.robot.dof)) + self._bias(q, v)

    def torques(self, q: ArrayLike, tau: ArrayLike) -> np.ndarray:
        """tau (..., dof) as the engine's forces: T⁻ᵀ τ."""
        self._check_square("torques")
        inverse = np.linalg.inv(self.velocity_matrix(q))
        return _times(np.swapaxes(inverse, -1, -2), last("tau", tau, self.robot.dof))

    # -- from the engine ------------------------------------------------------------------------------------------

    def own_positions(self, q: ArrayLike) -> np.ndarray:
        """The engine's positions (..., nq of the engine) as ours; angles of continuous joints in (−π, π]."""
        q = last("q", q, self.nq)
        found = np.zeros((*q.shape[:-1], self.robot.nq))
        for part in self.parts:
            at, to = part.their_q, part.q
            if part.ratio != 1.0 or part.offset != 0.0 or part.joint.name not in self.robot.joint_names:
                continue
            if part.kind == "one":
                found[..., to] = q[..., at]
            elif part.kind == "circle":
                found[..., to] = np.arctan2(q[..., at + 1], q[..., at])
            elif part.kind == "planar":
                found[..., to : to + 2] = q[..., at : at + 2]
                found[..., to + 2] = np.arctan2(q[..., at + 3], q[..., at + 2])
            else:
                skip = 3 if part.kind == "floating" else 0
                found[..., to : to + skip] = q[..., at : at + skip]
                quaternion = q[..., at + skip : at + skip + 4]
                found[..., to + skip : to + skip + 4] = (
                    np.roll(quaternion, -1, axis=-1) if self.scalar_first else quaternion
                )
        return found

    def own_velocities(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """The engine's velocities as ours; q (..., nq) are our positions."""
        return _times(np.linalg.pinv(self.velocity_matrix(q)), last("v", v, self.nv))

    def own_accelerations(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> np.ndarray:
        """The engine's accelerations as ours; q and v are our positions and velocities."""
        left = last("a", a, self.nv) - self._bias(q, v)
        return _times(np.linalg.pinv(self.velocity_matrix(q)), left)

    def own_torques(self, q: ArrayLike, tau: ArrayLike) -> np.ndarray:
        """The engine's forces as ours: Tᵀ τ, those on followers added to their leader."""
        return _times(np.swapaxes(self.velocity_matrix(q), -1, -2), last("tau", tau, self.nv))

    def own_matrix(self, q: ArrayLike, M: ArrayLike) -> np.ndarray:
        """The engine's mass matrix as ours: Tᵀ M T."""
        T = self.velocity_matrix(q)
        return np.swapaxes(T, -1, -2) @ np.asarray(M, dtype=float) @ T

    def own_inverse(self, q: ArrayLike, inverse: ArrayLike) -> np.ndarray:
        """The engine's inverse mass matrix as ours: T⁻¹ W T⁻ᵀ."""
        self._check_square("the inverse of a mass matrix")
        back = np.linalg.inv(self.velocity_matrix(q))
        return back @ np.asarray(inverse, dtype=float) @ np.swapaxes(back, -1, -2)

    # -- shared ---------------------------------------------------------------------------------------------------

    def _bias(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """Ṫ v: base velocities of the engine change because the base turns."""
        q, v = last("q", q, self.robot.nq), last("v", v, self.robot.dof)
        found = np.zeros((*np.broadcast_shapes(q.shape[:-1], v.shape[:-1]), self.nv))
        for part in self.parts:
            at, to = part.v, part.their_v
            if part.kind == "floating" and self.in_world_axes:
                w, linear = v[..., at : at + 3], v[..., at + 3 : at + 6]
                turn = _rotation(q[..., part.q + 3 : part.q + 7])
                found[..., to : to + 3] = _times(turn, np.cross(w, linear))
            elif part.kind == "planar":
                local = _times(_plane(q[..., part.q + 2]), v[..., at : at + 2])
                rate = v[..., at + 2]
                found[..., to], found[..., to + 1] = rate * local[..., 1], -rate * local[..., 0]
        return found

    def _check_square(self, what: str) -> None:
        if not self.square:
            raise ModelError(
                f"{self.robot.name}: {what} of {self.robot.dof} coordinates cannot be spread over the engine's "
                f"{self.nv}, which keeps joints that follow others as its own"
            )


def coordinates(robot: Model, engine: str, model: Any = None) -> Coordinates:
    """The numbering of an engine ("pinocchio", "mujoco" or "frax").

    ``model`` is a ``pinocchio.Model`` or ``mujoco.MjModel``, whose joints are found by their names (or, where it has no
    names, taken in their order). Without one the engine's joints are in the order of ours, each with the engine's own
    floating, ball or one-coordinate type.
    """
    if engine not in ENGINES:
        raise UnknownNameError(f"engine: no {engine!r}; valid: {', '.join(ENGINES)}")
    starts = _starts(robot)
    if model is None:
        parts = [JointPair(joint, q, v, q, v, _kind(joint)) for joint, q, v in starts]
        return Coordinates(robot, engine, parts, robot.nq, robot.dof)
    if engine == "frax":
        raise ModelError("model: frax has the joints in the order that it is given; leave the model out")
    theirs = _pinocchio_joints(model) if engine == "pinocchio" else _mujoco_joints(model)
    parts = _matched(robot, starts, theirs)
    covered = sum(_SIZES[part.kind][1] for part in parts)
    if covered != model.nv:
        raise ModelError(
            f"{robot.name}: the engine has {model.nv} velocities, of which {covered} belong to joints of this robot"
        )
    return Coordinates(robot, engine, parts, int(model.nq), int(model.nv))


_SIZES = {"one": (1, 1), "circle": (2, 1), "ball": (4, 3), "floating": (7, 6), "planar": (4, 3)}


def _kind(joint: Joint) -> str:
    return joint.type if joint.free else "one"


def _starts(robot: Model) -> list[tuple[Joint, int, int]]:
    found, q, v = [], 0, 0
    for joint in robot.coordinate_joints:
        found.append((joint, q, v))
        q, v = q + joint.nq, v + joint.dof
    return found


def _pinocchio_joints(model: Any) -> dict[str, tuple[str, int, int]]:
    """(kind, first position, first velocity) by name."""
    kinds = {sizes: kind for kind, sizes in _SIZES.items() if kind != "planar"}
    found = {}
    for k in range(1, model.njoints):
        size = int(model.nqs[k]), int(model.nvs[k])
        if size == (0, 0):  # a mimic joint that Pinocchio couples itself
            continue
        planar = "Planar" in model.joints[k].shortname()
        kind = "planar" if planar else kinds.get(size, "")
        found[model.names[k]] = (kind, int(model.idx_qs[k]), int(model.idx_vs[k]))
    return found


def _mujoco_joints(model: Any) -> dict[str, tuple[str, int, int]]:
    found = {}
    for k in range(model.njnt):
        kind = ("floating", "ball", "one", "one")[int(model.jnt_type[k])]
        name = model.joint(k).name or f"\0{k}"
        found[name] = (kind, int(model.jnt_qposadr[k]), int(model.jnt_dofadr[k]))
    return found


def _matched(
    robot: Model, starts: list[tuple[Joint, int, int]], theirs: dict[str, tuple[str, int, int]]
) -> list[JointPair]:
    own = {joint.name: (joint, q, v) for joint, q, v in starts}
    places = dict(theirs)
    if len(places) == len(robot.moving_joints) and any(name.startswith("\0") for name in places):
        places = dict(zip([joint.name for joint in robot.moving_joints], theirs.values(), strict=True))
    parts = []
    for joint, relation in zip(robot.moving_joints, robot.followed, strict=True):
        if joint.name not in places:
            continue  # coupled in the engine too, or part of its planar joint
        kind, to_q, to_v = places[joint.name]
        _, q, v = own[joint.name if relation is None else relation.joint]
        ratio, offset = (1.0, 0.0) if relation is None else (relation.multiplier, relation.offset)
        wanted = (_kind(joint),) if joint.free else ("one", "circle")
        if kind not in wanted:
            raise ModelError(
                f"{robot.name}: joint {joint.name!r} is {joint.type}, the engine has it as {kind}"
            )
        parts.append(JointPair(joint, q, v, to_q, to_v, kind, ratio, offset))
    for name, (kind, to_q, to_v) in places.items():
        if kind == "planar" and all(f"{name}_{axis}" in own for axis in ("x", "y", "theta")):
            joint, q, v = own[f"{name}_x"]
            parts.append(JointPair(joint, q, v, to_q, to_v, "planar"))
    covered = {part.v + k for part in parts for k in range(3 if part.kind == "planar" else part.joint.dof)}
    if missing := [joint.name for joint, _, v in starts if v not in covered]:
        raise ModelError(f"{robot.name}: the engine has no joint {missing[0]!r}")
    return parts


def last(name: str, values: ArrayLike, size: int) -> np.ndarray:
    array = np.asarray(values, dtype=float)
    if array.shape[-1:] != (size,):
        raise ShapeError(f"{name}: expected shape (..., {size}), got {array.shape}")
    return array


def _times(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return (matrices @ vectors[..., np.newaxis])[..., 0]


def _unit(quaternion: np.ndarray) -> np.ndarray:
    return quaternion / np.linalg.norm(quaternion, axis=-1, keepdims=True)


def _plane(angle: np.ndarray) -> np.ndarray:
    """Vectors of the world's x-y plane in axes turned by the angle."""
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([np.stack([c, s], axis=-1), np.stack([-s, c], axis=-1)], axis=-2)


def _rotation(quaternion: np.ndarray) -> np.ndarray:
    """(..., 3, 3) of (x, y, z, w)."""
    x, y, z, w = np.moveaxis(_unit(quaternion), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
