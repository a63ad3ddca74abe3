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
from linkwise.simulate.reference import source_of
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
    if controller is not None and not isinstance(controller, Controller):
        raise SimulationError("controller: expected one of linkwise.control: it runs inside the integrator")
    n = robot.dof
    source = source_of(np.zeros(n) if reference is None else reference, n)
    start = source.moment(np.zeros(1), (), n)
    q0, qd0 = (
        arguments.array(name, planned[0] if value is None else value)
        for name, value, planned in (("q", q, start[0]), ("qd", qd, start[1]))
    )
    for name, value in (("q", q0), ("qd", qd0)):
        if value.shape != (n,):
            raise ShapeError(f"{name}: expected shape ({n},), got {value.shape}")
    law = (
        None if controller is None else controller.kernel(1.0)
    )  # over one second the memory changes by its rate
    memory = 0 if controller is None else controller.memory_size
    links = mechanism_of(robot)

    def torque(t: float, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if law is None:
            return np.zeros(n), np.zeros(0)
        moment = [part[0] for part in source.moment(np.array([t]), (), n)]
        answer = law(state[:n], state[n : 2 * n], *moment, *([state[2 * n :]] if memory else []))
        return (answer[0], answer[1] - state[2 * n :]) if memory else (answer, np.zeros(0))

    def rate(t: float, state: np.ndarray) -> np.ndarray:
        tau, change = torque(t, state)
        v = state[n : 2 * n]
        if friction:
            tau = tau - _smoothed_friction(links, state[:n], v, smoothing)
        return np.concatenate([v, robot.forward_dynamics(state[:n], v, tau, friction=False), change])

    t = np.linspace(0.0, duration, rows)
    initial = np.concatenate([q0, qd0, np.zeros(memory)])
    found = solve_ivp(rate, (0.0, duration), initial, method=method, t_eval=t, rtol=rtol, atol=atol)
    if not found.success or not math.isclose(found.t[-1], duration):
        raise IntegrationError(
            f"{method} stopped at {found.t[-1] if found.t.size else 0.0:.6g} s: {found.message}"
        )
    states = found.y.T
    torques = np.array([torque(time, state)[0] for time, state in zip(t, states, strict=True)])
    known = None if reference is None else source.moment(t, (), n)
    return Result(
        robot,
        t,
        states[:, :n],
        states[:, n : 2 * n],
        torques,
        known,
        states[-1, :n],
        states[-1, n : 2 * n],
        duration,
    )


def _smoothed_friction(links: Mechanism, q: np.ndarray, qd: np.ndarray, smoothing: float) -> np.ndarray:
    """Friction with F·tanh(q̇/``smoothing``) in the place of the jump F·sgn q̇."""
    smooth = np.array(joint_terms.smooth_friction(links, q, qd), dtype=float)
    pairs = [joint_terms.dry_friction_limits(link, v) for link, v in zip(links, qd, strict=True)]
    forward, backward = np.array(pairs, dtype=float).reshape(-1, 2).T
    return smooth + np.where(qd > 0, forward, backward) * np.tanh(qd / smoothing)
