"""Names, orders and shapes of other libraries.

``from linkwise import compat as pin`` runs most of what one writes with Pinocchio; the functions of
robotics-toolbox-python are here as functions of a robot. Everything takes batches, (..., n).

Joint coordinates are Linkwise's; ``to_pinocchio``, ``to_mujoco``, ``to_frax`` and their inverses convert states, and
``coordinates(robot, engine, model)`` torques and mass matrices too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.arguments.described import described
from linkwise.arguments.explained import explain
from linkwise.errors import ShapeError
from linkwise.model import Inertia, Model, Transform
from linkwise.robot.engine_coordinates import Coordinates, coordinates, last
from linkwise.robot.robot import Robot

# -- Pinocchio's names: no friction, rotor inertia ("armature") included ----------------------------------------------


@described()
def rnea(robot: Robot, q, v, a) -> np.ndarray:
    """Pinocchio's ``rnea``: ``inverse_dynamics`` without friction [N·m or N], shape (..., n)."""
    return robot.inverse_dynamics(q, v, a, friction=False)


@described()
def aba(robot: Robot, q, v, tau) -> np.ndarray:
    """Pinocchio's ``aba``: ``forward_dynamics`` without friction [rad/s² or m/s²], shape (..., n)."""
    return robot.forward_dynamics(q, v, tau, friction=False)


@described()
def crba(robot: Robot, q) -> np.ndarray:
    """Pinocchio's ``crba``: ``mass_matrix``, shape (..., n, n), both triangles."""
    return robot.mass_matrix(q)


@described()
def computeMinverse(robot: Robot, q) -> np.ndarray:
    """Pinocchio's ``computeMinverse``: ``inverse_mass_matrix``, shape (..., n, n)."""
    return robot.inverse_mass_matrix(q)


@described()
def nonLinearEffects(robot: Robot, q, v) -> np.ndarray:
    """Pinocchio's ``nonLinearEffects``: ``bias_torques`` [N·m or N], shape (..., n)."""
    return robot.bias_torques(q, v)


@described()
def computeGeneralizedGravity(robot: Robot, q) -> np.ndarray:
    """Pinocchio's ``computeGeneralizedGravity``: ``gravity_torques`` [N·m or N], shape (..., n)."""
    return robot.gravity_torques(q)


@described()
def computeCoriolisMatrix(robot: Robot, q, v) -> np.ndarray:
    """Like Pinocchio's ``computeCoriolisMatrix``, shape (..., n, n): C v are the velocity torques, Ṁ − 2C is skew."""
    return robot.coriolis_matrix(q, v)


@described()
def computeRNEADerivatives(robot: Robot, q, v, a) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """∂τ/∂q, ∂τ/∂v and M, each (..., n, n)."""
    return robot.inverse_dynamics_derivatives(q, v, a, friction=False)


@described()
def computeABADerivatives(robot: Robot, q, v, tau) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """∂q̈/∂q, ∂q̈/∂v and M⁻¹, each (..., n, n)."""
    return robot.forward_dynamics_derivatives(q, v, tau, friction=False)


# -- names of robotics-toolbox-python: friction and motor inertia included --------------------------------------------


@described()
def rne(robot: Robot, q, qd, qdd) -> np.ndarray:
    """Toolbox ``rne``: ``inverse_dynamics`` with friction [N·m or N], shape (..., n)."""
    return robot.inverse_dynamics(q, qd, qdd)


@described()
def accel(robot: Robot, q, qd, torque) -> np.ndarray:
    """Toolbox ``accel``: ``forward_dynamics`` with friction [rad/s² or m/s²], shape (..., n)."""
    return robot.forward_dynamics(q, qd, torque)


@described()
def inertia(robot: Robot, q) -> np.ndarray:
    """Toolbox ``inertia``: ``mass_matrix`` with motor inertia, shape (..., n, n)."""
    return robot.mass_matrix(q)


@described()
def coriolis(robot: Robot, q, qd) -> np.ndarray:
    """Toolbox ``coriolis``: a *matrix*, shape (..., n, n); times qd it gives ``velocity_torques``."""
    return robot.coriolis_matrix(q, qd)


@described()
def gravload(robot: Robot, q) -> np.ndarray:
    """Toolbox ``gravload``: ``gravity_torques`` [N·m or N], shape (..., n)."""
    return robot.gravity_torques(q)


# -- ten inertial parameters ------------------------------------------------------------------------------------------

# ours:      m hx hy hz Ixx Ixy Ixz Iyy Iyz Izz
# Pinocchio: m hx hy hz Ixx Ixy Iyy Ixz Iyz Izz
_PINOCCHIO = np.array([0, 1, 2, 3, 4, 5, 7, 6, 8, 9])


def parameters_to_pinocchio(parameters: ArrayLike) -> np.ndarray:
    """Ten parameters (..., 10) in the order of ``Inertia.toDynamicParameters``; both are about the link's origin."""
    return last("parameters", parameters, 10)[..., _PINOCCHIO]


def parameters_from_pinocchio(parameters: ArrayLike) -> np.ndarray:
    """Ten parameters (..., 10) of ``Inertia.toDynamicParameters`` in our order."""
    return last("parameters", parameters, 10)[..., _PINOCCHIO]


def inertia_to_rtb(body: Inertia) -> tuple[float, np.ndarray, np.ndarray]:
    """(m, r, I) of a toolbox link: mass, centre of mass (3,), inertia about it as Ixx Iyy Izz Ixy Iyz Ixz."""
    I = body.matrix_about_com
    return body.mass, body.com, np.array([I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[1, 2], I[0, 2]])


def inertia_from_rtb(m: float, r: ArrayLike, I: ArrayLike) -> Inertia:
    """From m, r and I of a toolbox link: six numbers Ixx Iyy Izz Ixy Iyz Ixz, or a matrix, about the centre of mass.

    Args:
        m: mass [kg].
        r: centre of mass [m], shape (3,).
        I: inertia [kg·m²], shape (6,) or (3, 3).
    """
    given = np.asarray(I, dtype=float)
    if given.shape == (6,):
        xx, yy, zz, xy, yz, xz = given
        given = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return Inertia.from_com(m, np.asarray(r, dtype=float), given)


def inertia_to_mujoco(body: Inertia) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """(body_mass, body_ipos, body_iquat, body_inertia): principal moments about the centre of mass, largest first."""
    moments, axes = np.linalg.eigh(body.matrix_about_com)
    moments, axes = moments[::-1], axes[:, ::-1]
    if np.linalg.det(axes) < 0:
        axes = axes * np.array([1.0, 1.0, -1.0])
    return body.mass, body.com, quaternion_from_matrix(axes), moments


def inertia_from_mujoco(mass: float, ipos: ArrayLike, iquat: ArrayLike, moments: ArrayLike) -> Inertia:
    """From body_mass, body_ipos, body_iquat (w, x, y, z) and body_inertia of one body.

    Args:
        mass: [kg].
        ipos: centre of mass [m], shape (3,).
        iquat: orientation of the principal axes (w, x, y, z).
        moments: principal moments [kg·m²], shape (3,).
    """
    axes = matrix_from_quaternion(iquat)
    return Inertia.from_com(
        float(mass), np.asarray(ipos, dtype=float), np.diag(np.asarray(moments, dtype=float)), axes
    )


# -- quaternions: (w, x, y, z) here, in MuJoCo and in Eigen's constructor; (x, y, z, w) in ROS, Pinocchio, SciPy ------


def xyzw_from_wxyz(quaternion: ArrayLike) -> np.ndarray:
    """(..., 4): the scalar part moves to the end."""
    return np.roll(last("quaternion", quaternion, 4), -1, axis=-1)


def wxyz_from_xyzw(quaternion: ArrayLike) -> np.ndarray:
    """(..., 4): the scalar part moves to the front."""
    return np.roll(last("quaternion", quaternion, 4), 1, axis=-1)


def quaternion_from_matrix(rotation: ArrayLike) -> np.ndarray:
    """(w, x, y, z) with w ≥ 0 of rotation matrices, shape (..., 3, 3) to (..., 4); poses (..., 4, 4) will do too."""
    R = np.asarray(rotation, dtype=float)
    if R.shape[-2:] not in ((3, 3), (4, 4)):
        raise ShapeError(f"rotation: expected shape (..., 3, 3) or (..., 4, 4), got {R.shape}")
    xx, yy, zz = R[..., 0, 0], R[..., 1, 1], R[..., 2, 2]
    # four times the square of each part, and the products that belong to the largest one: no cancellation anywhere
    squares = np.stack([1 + xx + yy + zz, 1 + xx - yy - zz, 1 - xx + yy - zz, 1 - xx - yy + zz], axis=-1)
    wx, wy, wz = R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]
    xy, xz, yz = R[..., 0, 1] + R[..., 1, 0], R[..., 0, 2] + R[..., 2, 0], R[..., 1, 2] + R[..., 2, 1]
    rows = np.stack(
        [
            np.stack([squares[..., 0], wx, wy, wz], axis=-1),
            np.stack([wx, squares[..., 1], xy, xz], axis=-1),
            np.stack([wy, xy, squares[..., 2], yz], axis=-1),
            np.stack([wz, xz, yz, squares[..., 3]], axis=-1),
        ],
        axis=-2,
    )
    largest = np.argmax(squares, axis=-1)[..., np.newaxis, np.newaxis]
    found = np.take_along_axis(rows, largest, axis=-2)[..., 0, :]
    found = found / np.linalg.norm(found, axis=-1, keepdims=True)
    return np.where(found[..., :1] < 0, -found, found)


def matrix_from_quaternion(quaternion: ArrayLike) -> np.ndarray:
    """Rotation matrices of (w, x, y, z) of any length, shape (..., 4) to (..., 3, 3)."""
    given = last("quaternion", quaternion, 4)
    flat = [Transform.from_quaternion((0, 0, 0), one).rotation for one in given.reshape(-1, 4)]
    return np.array(flat).reshape(*given.shape[:-1], 3, 3)


# -- spatial vectors: angular first here, linear first in Pinocchio and in the toolbox --------------------------------


def linear_first(spatial: ArrayLike, axis: int = -1) -> np.ndarray:
    """Wrenches (..., 6) as (force, moment), velocities as (linear, angular); ``axis=-2`` for the rows of a Jacobian.

    Args:
        spatial: spatial vectors, with six entries along ``axis``.
        axis: the axis of the six entries.
    """
    return np.roll(_six(spatial, axis), 3, axis=axis)


def angular_first(spatial: ArrayLike, axis: int = -1) -> np.ndarray:
    """Wrenches (..., 6) as (moment, force), velocities as (angular, linear); ``axis=-2`` for the rows of a Jacobian.

    Args:
        spatial: spatial vectors, with six entries along ``axis``.
        axis: the axis of the six entries.
    """
    return np.roll(_six(spatial, axis), 3, axis=axis)


def wrench_from_rtb(fext: ArrayLike) -> np.ndarray:
    """Our wrench (..., 6), which acts on the robot, for the toolbox's ``fext`` = (force, moment), which it exerts."""
    return -angular_first(fext)


# -- shapes and joint coordinates -------------------------------------------------------------------------------------


def columns(states: ArrayLike) -> np.ndarray:
    """(states, n) as (n, states) in Fortran order, which ``rneaInParallel`` needs; the same bytes where possible."""
    return np.asarray(states).T if np.ndim(states) == 2 else _refuse_states(states)


def rows(states: ArrayLike) -> np.ndarray:
    """(n, states), one column per state, as (states, n)."""
    return np.asarray(states).T if np.ndim(states) == 2 else _refuse_states(states)


def pinocchio_order(robot: Model, model: Any) -> np.ndarray:
    """The place of each of our velocities among those of a ``pinocchio.Model``, by name: ours = theirs[order].

    A floating joint has its linear velocities first there. Those of a planar joint are in the axes of its link there,
    in those of the plane here: their places are given, but ``pinocchio_rates`` is needed for their values.

    Args:
        robot: the robot.
        model: the ``pinocchio.Model``.
    """
    return np.argmax(pinocchio_rates(robot, model, robot.neutral), axis=-2)


def pinocchio_rates(robot: Model, model: Any, q: ArrayLike) -> np.ndarray:
    """T with v_theirs = T v_ours and τ_ours = Tᵀ τ_theirs at positions q (..., nq), shape (..., model.nv, n).

    It is a permutation, ``pinocchio_order``, where no joint is planar.

    Args:
        robot: the robot.
        model: the ``pinocchio.Model``.
        q: positions [rad or m], shape (..., nq).
    """
    return coordinates(robot, "pinocchio", model).velocity_matrix(q)


def q_to_pinocchio(robot: Model, model: Any, q: ArrayLike) -> np.ndarray:
    """Positions (..., nq) as the configuration of a ``pinocchio.Model``: continuous joints as cos and sin.

    Args:
        robot: the robot.
        model: the ``pinocchio.Model``.
        q: positions [rad or m], shape (..., nq).
    """
    return coordinates(robot, "pinocchio", model).positions(q)


def q_from_pinocchio(robot: Model, model: Any, q: ArrayLike) -> np.ndarray:
    """The configuration of a ``pinocchio.Model`` as positions (..., nq); continuous joints in (−π, π].

    Args:
        robot: the robot.
        model: the ``pinocchio.Model``.
        q: configurations, shape (..., model.nq).
    """
    return coordinates(robot, "pinocchio", model).own_positions(q)


# -- moving bases and ball joints: see ``robot.engine_coordinates`` --------------------------------------------


_OPTIONAL = {
    "v": "velocities, shape (..., n); none by default.",
    "a": "accelerations, shape (..., n); none by default.",
    "model": "the model of the engine, where its joints are in another order.",
}
_ours = described(**_OPTIONAL)
_theirs = described(q="positions as the engine has them, shape (..., nq of the engine).", **_OPTIONAL)


@_ours
def to_pinocchio(
    robot: Model, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None, *, model=None
):
    """q, (q, v) or (q, v, a) as Pinocchio has them: quaternions x y z w, base velocities linear before angular, both in
    the base's axes."""
    return _to(coordinates(robot, "pinocchio", model), q, v, a)


@_theirs
def from_pinocchio(
    robot: Model, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None, *, model=None
):
    """q, (q, v) or (q, v, a) from Pinocchio's: the inverse of ``to_pinocchio``."""
    return _from(coordinates(robot, "pinocchio", model), q, v, a)


@_ours
def to_mujoco(
    robot: Model, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None, *, model=None
):
    """qpos, (qpos, qvel) or (qpos, qvel, qacc) of MuJoCo: quaternions w x y z, base velocities linear in the axes of
    the world, then angular in the base's own."""
    return _to(coordinates(robot, "mujoco", model), q, v, a)


@_theirs
def from_mujoco(
    robot: Model, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None, *, model=None
):
    """q, (q, v) or (q, v, a) from MuJoCo's qpos, qvel and qacc: the inverse of ``to_mujoco``."""
    return _from(coordinates(robot, "mujoco", model), q, v, a)


@_ours
def to_frax(robot: Model, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None):
    """q, (q, v) or (q, v, a) of frax with ``floating_base="quaternion"``, its joints in the order of ours."""
    return _to(coordinates(robot, "frax"), q, v, a)


@_theirs
def from_frax(robot: Model, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None):
    """q, (q, v) or (q, v, a) from frax's: the inverse of ``to_frax``."""
    return _from(coordinates(robot, "frax"), q, v, a)


def _to(them: Coordinates, q: ArrayLike, v: ArrayLike | None, a: ArrayLike | None) -> Any:
    if v is None:
        return them.positions(q)
    moved = (them.positions(q), them.velocities(q, v))
    return moved if a is None else (*moved, them.accelerations(q, v, a))


def _from(them: Coordinates, q: ArrayLike, v: ArrayLike | None, a: ArrayLike | None) -> Any:
    own = them.own_positions(q)
    if v is None:
        return own
    rates = them.own_velocities(own, v)
    return (own, rates) if a is None else (own, rates, them.own_accelerations(own, rates, a))


# -- shared -----------------------------------------------------------------------------------------------------------


def _six(spatial: ArrayLike, axis: int) -> np.ndarray:
    array = np.asarray(spatial, dtype=float)
    if array.ndim < abs(axis) or array.shape[axis] != 6:
        raise ShapeError(f"spatial: expected 6 entries along axis {axis}, got shape {array.shape}")
    return array


def _refuse_states(states: ArrayLike) -> np.ndarray:
    raise ShapeError(f"states: expected two axes, got shape {np.shape(states)}")


explain(globals(), "compat")
