"""Simulation with an adaptive step, by SciPy: when accuracy matters more than speed.

The step follows the error, so there are no samples and no sensors: the controller is a continuous function of
the state. Coulomb friction is smoothed, F·tanh(q̇/``smoothing``), because an adaptive integrator would stop
at every change of sign; stiction needs the fixed-step ``simulate``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linkwise.algorithms import joint_terms
from linkwise.control import Controller
from linkwise.errors import LinkwiseError, ShapeError, needed
from linkwise.functions import mechanism_of
from linkwise.model.checks import check_moves
from linkwise.model.mechanism import Mechanism
from linkwise.robot import Robot
from linkwise.simulate import arguments
from linkwise.simulate.arguments import SimulationError
from linkwise.simulate.reference import Source, source_of
from linkwise.simulate.result import Result


class IntegrationError(LinkwiseError, ArithmeticError):
    """The adaptive integrator gave up; the message says when and why."""


def simulate_adaptive(
    robot: Robot,
    controller: Controller | None = None,
    reference: Any = None,
    *,
    duration: float,
    q=None,
    qd=None,
    rows: int = 201,
    method: str = "DOP853",
    rtol: float = 1e-10,
    atol: float = 1e-12,
    friction: bool = True,
    smoothing: float = 1e-3,
) -> Result:
    """One robot for ``duration`` [s]; the state at ``rows`` evenly spaced times.

    ``controller`` (None: no torques) is evaluated as a continuous law; its memory counts as further states
    whose rate is what one second would add. ``method``, ``rtol``, ``atol``: see
    ``scipy.integrate.solve_ivp``. ``smoothing`` [rad/s or m/s] is the speed over which Coulomb friction
    changes its sign.
    """
    solve_ivp = needed("scipy.integrate", "simulate").solve_ivp
    check_moves(robot)
    arguments.check_single_coordinates(robot)
    duration = arguments.number("duration", duration, above=0.0)
    rows = arguments.whole("rows", rows, 2)
    for name, value in (("rtol", rtol), ("atol", atol), ("smoothing", smoothing)):
        arguments.number(name, value, above=0.0)
    law = _Law(
        robot, controller, source_of(np.zeros(robot.dof) if reference is None else reference, robot.dof)
    )
    n, links = robot.dof, mechanism_of(robot)

    def rate(t: float, state: np.ndarray) -> np.ndarray:
        tau, change = law.torques(t, state)
        v = state[n : 2 * n]
        if friction:
            tau = tau - _smoothed_friction(links, state[:n], v, smoothing)
        return np.concatenate([v, robot.forward_dynamics(state[:n], v, tau, friction=False), change])

    t = np.linspace(0.0, duration, rows)
    initial = np.concatenate([law.start(q, qd), np.zeros(law.memory)])
    found = solve_ivp(rate, (0.0, duration), initial, method=method, t_eval=t, rtol=rtol, atol=atol)
    if not found.success or not math.isclose(found.t[-1], duration):
        raise IntegrationError(
            f"{method} stopped at {found.t[-1] if found.t.size else 0.0:.6g} s: {found.message}"
        )
    states = found.y.T
    return Result(
        robot,
        t,
        states[:, :n],
        states[:, n : 2 * n],
        np.array([law.torques(time, state)[0] for time, state in zip(t, states, strict=True)]),
        None if reference is None else law.source.moment(t, (), n),
        states[-1, :n],
        states[-1, n : 2 * n],
        duration,
    )


class _Law:
    """A controller as a continuous function of time and state (q, q̇, memory)."""

    def __init__(self, robot: Robot, controller: Controller | None, source: Source):
        if controller is not None and not isinstance(controller, Controller):
            raise SimulationError(
                "controller: expected one of linkwise.control: it runs inside the integrator"
            )
        self.dof, self.source = robot.dof, source
        # over one second the memory changes by its rate
        self.kernel = None if controller is None else controller.kernel(1.0)
        self.memory = 0 if controller is None else controller.memory_size

    def start(self, q: Any, qd: Any) -> np.ndarray:
        """The initial q and q̇: given, or where the reference begins; shape (2n,)."""
        planned = self.source.moment(np.zeros(1), (), self.dof)
        found = []
        for name, value, begin in (("q", q, planned[0]), ("qd", qd, planned[1])):
            found.append(arguments.array(name, begin[0] if value is None else value))
            if found[-1].shape != (self.dof,):
                raise ShapeError(f"{name}: expected shape ({self.dof},), got {found[-1].shape}")
        return np.concatenate(found)

    def torques(self, t: float, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(torques, rate of the memory)."""
        n = self.dof
        if self.kernel is None:
            return np.zeros(n), np.zeros(0)
        moment = [part[0] for part in self.source.moment(np.array([t]), (), n)]
        if not self.memory:
            return self.kernel(state[:n], state[n : 2 * n], *moment), np.zeros(0)
        tau, following = self.kernel(state[:n], state[n : 2 * n], *moment, state[2 * n :])
        return tau, following - state[2 * n :]


def _smoothed_friction(links: Mechanism, q: np.ndarray, qd: np.ndarray, smoothing: float) -> np.ndarray:
    """Friction with F·tanh(q̇/``smoothing``) in the place of the jump F·sgn q̇."""
    smooth = np.array(joint_terms.smooth_friction(links, q, qd), dtype=float)
    pairs = [joint_terms.dry_friction_limits(link, v) for link, v in zip(links, qd, strict=True)]
    forward, backward = np.array(pairs, dtype=float).reshape(-1, 2).T
    return smooth + np.where(qd > 0, forward, backward) * np.tanh(qd / smoothing)
