"""The methods of ``Robot`` that show the inside of an algorithm: which there are, a filter's states, iterations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.compiler.runtime.arrays import Array
from linkwise.functions.table import FUNCTIONS, ITERATED, function_named
from linkwise.robot.methods import takes_names

if TYPE_CHECKING:
    from linkwise.robot import diagnose
    from linkwise.robot.robot import Robot


def algorithms(self: Robot, function: str) -> tuple[str, ...]:
    """Names that may be passed as ``algorithm=`` to this function, the default first."""
    names = tuple(function_named(function).algorithms)
    if function != "forward_dynamics":
        return names
    names += tuple(FUNCTIONS[ITERATED].algorithms)
    return (*names, *FUNCTIONS[function].scanned) if _can_be_scanned(self) else names


def _can_be_scanned(robot: Robot) -> bool:
    """Whether this is a chain with rotor inertia at every joint, see ``algorithms.parallel_scan``."""
    joints = robot.moving_joints
    if not joints or not all(joint.rotor_inertia > 0.0 for joint in joints):
        return False
    from linkwise.algorithms.parallel_scan import applies
    from linkwise.functions.table import mechanism_of

    return applies(mechanism_of(robot)) is None


def directions(self: Robot, q: Array, qd: Array, *, start: Array | None = None) -> np.ndarray:
    """The directions of friction at the samples of a motion, as ``inputs=("direction",)`` takes them.

    A joint with a ``presliding_distance`` remembers in which direction its gear was loaded; what its friction is
    depends on the motion before. ``robot.kernel("inverse_dynamics", inputs=("direction",))`` gives the torques.

    Args:
        q: positions, (..., samples, n), in the order of time.
        qd: velocities, of the same shape.
        start: directions at the first sample, (..., n) within [−1, 1]; by default as if the first step had been
            made once before.

    Returns:
        Numbers within [−1, 1], shape (..., samples, n).
    """
    from linkwise.robot.directions import directions_along

    return directions_along(self, q, qd, start)


@takes_names
def filter(self: Robot, q: Array, qd: Array, tau: Array, *, friction: bool = True) -> diagnose.FilterStates:
    """The Kalman filter of one state, joint by joint: P, D, gains, innovations, predicted states, costates."""
    from linkwise.robot import diagnose

    return diagnose.filter_states(self, q, qd, tau, flag("friction", friction))


@takes_names
def acceleration_parts(
    self: Robot, q: Array, qd: Array, tau: Array, *, friction: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rodriguez (10.2): the parts of q̈ due to torques (less friction), bias forces, and bias accelerations with
    gravity; each (..., n), their sum is q̈. How the last two share depends on where the links' frames lie."""
    from linkwise.robot import diagnose

    return diagnose.acceleration_parts(self, q, qd, tau, flag("friction", friction))


@takes_names
def conjugate_gradient(
    self: Robot,
    q: Sequence[float],
    qd: Sequence[float],
    tau: Sequence[float],
    *,
    preconditioned: bool = True,
    tolerance: float = 1e-9,
    limit: int | None = None,
    start: Sequence[float] | None = None,
) -> diagnose.Iterations:
    """One state by conjugate gradients, with its history of residuals (friction included in the torques).

    Args:
        q: positions, shape (nq,).
        qd: velocities, shape (n,).
        tau: torques, shape (n,).
        preconditioned: whether the diagonal of the mass matrix preconditions.
        tolerance: estimated error of q̈ relative to its largest component.
        limit: most iterations; 10 n.
        start: first estimate of q̈, shape (n,).
    """
    from linkwise.robot import diagnose

    diagnose.check_stop(tolerance, limit)
    return diagnose.conjugate_gradient_history(
        self,
        q,
        qd,
        tau,
        preconditioned=flag("preconditioned", preconditioned),
        tolerance=tolerance,
        limit=limit,
        start=start,
    )
