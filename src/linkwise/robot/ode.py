"""A robot as an ordinary differential equation ẏ = f(t, y) for SciPy and other solvers; y = (q, q̇)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algorithms.coordinates import position_rates
from linkwise.arguments.flags import flag
from linkwise.compiler.runtime.arrays import Array
from linkwise.core.once import once
from linkwise.errors import ShapeError
from linkwise.functions.table import mechanism_of
from linkwise.model.checks import check_moves, check_no_contacts
from linkwise.robot.methods import without_names
from linkwise.robot.user import kernel

if TYPE_CHECKING:
    from linkwise.compiler.kernel import Kernel
    from linkwise.robot.robot import Robot

Torques = Callable[[float, np.ndarray, np.ndarray], Any]
STEP = 1e-7  # of finite differences of a torque function, relative to the size of a state


class Ode:
    """ẏ = f(t, y) of a robot; made by ``robot.as_ode``.

    ``solve_ivp(ode, (0.0, 1.0), ode.state(q, qd), jac=ode.jac)``. y has nq + n numbers: q, then q̇. Positions of ball
    and floating joints are integrated as their numbers, with the rate of a quaternion from the angular velocity; its
    length may drift, which changes nothing, because any length but zero means the same rotation. ``split`` gives it
    length one.
    """

    def __init__(
        self,
        robot: Robot,
        tau: Array | Torques | None = None,
        *,
        tau_jacobian: Callable[[float, np.ndarray, np.ndarray], tuple[Array, Array]] | None = None,
        friction: bool = True,
    ):
        check_moves(robot)
        check_no_contacts(robot, "as_ode")
        self.robot, self.friction = robot, flag("friction", friction)
        self._tau_jacobian = tau_jacobian
        self._follows: Torques | None = tau if callable(tau) else None
        self._fixed = np.zeros(robot.dof)
        if tau is not None and not callable(tau):
            self._fixed = self._one("tau", tau, robot.dof)

    @property
    def size(self) -> int:
        """Number of states, nq + n."""
        return self.robot.nq + self.robot.dof

    def state(self, q: Array | None = None, qd: Array | None = None) -> np.ndarray:
        """y of a position [rad or m], shape (nq,), and a velocity, shape (n,); by default neutral and at rest."""
        first = self.robot.neutral if q is None else self._one("q", q, self.robot.nq)
        second = np.zeros(self.robot.dof) if qd is None else self._one("qd", qd, self.robot.dof)
        return np.concatenate([first, second])

    def split(self, y: Array) -> tuple[np.ndarray, np.ndarray]:
        """q, shape (..., nq), with quaternions of length one, and q̇, shape (..., n), of states (nq + n, ...) as SciPy
        gives them: ``ode.split(solution.y)`` has a row for each time."""
        q, qd = self._parts(np.asarray(y, dtype=float))
        return (q if self.robot.nq == self.robot.dof else self.robot.normalize(q)), qd

    def torques(self, t: float, q: Array, qd: Array) -> np.ndarray:
        """τ [N·m or N] at a time and a state, shape (..., n)."""
        if self._follows is None:
            return self._fixed
        found = np.asarray(self._follows(t, np.asarray(q), np.asarray(qd)), dtype=float)
        if found.shape[-1:] != (self.robot.dof,):
            raise ShapeError(
                f"tau: expected a function that gives shape (..., {self.robot.dof}), got {found.shape}"
            )
        return found

    def __call__(self, t: float, y: Array) -> np.ndarray:
        """ẏ at a time [s] and a state, shape (nq + n,); several states are columns, shape (nq + n, k)."""
        q, qd = self._parts(np.asarray(y, dtype=float))
        tau = self.torques(t, q, qd)
        qdd = self.robot.forward_dynamics(q, qd, tau, friction=self.friction)
        rates = qd if self._rates is None else self._rates(q, qd)
        return np.concatenate([rates, qdd], axis=-1).T

    @property
    def jac(self) -> Callable[[float, Array], np.ndarray] | None:
        """∂ẏ/∂y as a function of t and y, shape (nq + n, nq + n); None for robots with constraints.

        Exact for the robot. A torque function is differentiated by finite differences unless ``tau_jacobian`` is given.
        """
        return None if self.robot.constraints else self._jacobian

    def _jacobian(self, t: float, y: Array) -> np.ndarray:
        q, qd = self._parts(np.asarray(y, dtype=float))
        nq, n = self.robot.nq, self.robot.dof
        tau = self.torques(t, q, qd)
        if self._rates is None:
            by_q, by_qd, by_tau = self.robot.forward_dynamics_derivatives(q, qd, tau, friction=self.friction)
            rates_by_q, rates_by_qd = np.zeros((nq, nq)), np.eye(n)
        else:
            accelerations, positions = self._slopes
            by_q, by_qd, by_tau = (each(q, qd, tau) for each in accelerations)
            rates_by_q, rates_by_qd = (each(q, qd) for each in positions)
        if self._follows is not None:
            tau_by_q, tau_by_qd = self._torque_slopes(t, q, qd, tau)
            by_q, by_qd = by_q + by_tau @ tau_by_q, by_qd + by_tau @ tau_by_qd
        return np.block([[rates_by_q, rates_by_qd], [by_q, by_qd]])

    def _torque_slopes(
        self, t: float, q: np.ndarray, qd: np.ndarray, tau: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """∂τ/∂q and ∂τ/∂q̇ of the torque function."""
        if self._tau_jacobian is not None:
            by_q, by_qd = self._tau_jacobian(t, q, qd)
            return np.asarray(by_q, dtype=float), np.asarray(by_qd, dtype=float)
        y = np.concatenate([q, qd])
        slopes = np.empty((len(tau), len(y)))
        for k in range(len(y)):
            step = STEP * max(1.0, abs(y[k]))
            moved = y.copy()
            moved[k] += step
            slopes[:, k] = (self.torques(t, moved[: len(q)], moved[len(q) :]) - tau) / step
        return slopes[:, : len(q)], slopes[:, len(q) :]

    @once
    def _rates(self) -> Kernel | None:
        """q̇ of the numbers of q from the velocities; None where they are the same."""
        robot = self.robot
        if robot.nq == robot.dof:
            return None
        links = mechanism_of(robot)

        @kernel(q=robot.nq, qd=robot.dof)
        def rates(q: Any, qd: Any) -> Any:
            return np.array(position_rates(links, list(q), list(qd)), dtype=object)

        return rates

    @once
    def _slopes(self) -> tuple[Sequence[Kernel], Sequence[Kernel]]:
        """Derivatives of q̈ and of the position rates by the numbers of q, by q̇ and by τ."""
        accelerations = self.robot.kernel("forward_dynamics", friction=self.friction)
        rates = self._rates
        assert rates is not None
        return [accelerations.jacobian(by) for by in ("q", "qd", "tau")], [
            rates.jacobian(by) for by in ("q", "qd")
        ]

    def _parts(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if y.ndim not in (1, 2) or len(y) != self.size:
            raise ShapeError(f"y: expected shape ({self.size},) or ({self.size}, k), got {y.shape}")
        rows = y.T
        return rows[..., : self.robot.nq], rows[..., self.robot.nq :]

    def _one(self, name: str, value: Array, size: int) -> np.ndarray:
        found = np.asarray(without_names(self.robot, {name: value}).arrays[0], dtype=float)
        if found.shape != (size,):
            raise ShapeError(f"{name}: expected shape ({size},), got {found.shape}")
        return found

    def __repr__(self) -> str:
        given = "tau(t, q, qd)" if self._follows else "constant tau" if self._fixed.any() else "no tau"
        return (
            f"<Ode of {self.robot.name!r}: {self.robot.nq} positions, {self.robot.dof} velocities, {given}>"
        )
