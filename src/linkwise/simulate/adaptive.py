"""Simulation with an adaptive step, by SciPy: when accuracy matters more than speed.

The step follows the error, so there are no samples and no sensors: the controller is a continuous function of
the state. Coulomb friction that jumps is smoothed, F·tanh(q̇/``smoothing``), because an adaptive integrator would stop
at every change of sign; stiction and contacts need the fixed-step ``simulate``. Friction with a ``friction_speed`` is
that of all dynamics.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linkwise.algorithms import coupling, joint_terms
from linkwise.algorithms.coordinates import position_rates
from linkwise.arguments.flags import flag
from linkwise.control import Controller
from linkwise.errors import LinkwiseError, ShapeError, needed
from linkwise.functions.table import mechanism_of
from linkwise.model.checks import check_moves
from linkwise.model.mechanism import Mechanism, flat
from linkwise.robot.methods import without_names
from linkwise.robot.robot import Robot
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
    stabilization: float | None = None,
) -> Result:
    """Simulate one robot with an adaptive step.

    Args:
        robot: the robot.
        controller: evaluated as a continuous law; its memory is integrated as further states. None: no torques.
        reference: as for ``simulate``.
        duration: [s].
        q: initial positions.
        qd: initial velocities.
        rows: number of evenly spaced times at which the state is recorded.
        method: of ``scipy.integrate.solve_ivp``.
        rtol: relative tolerance, see there.
        atol: absolute tolerance, see there.
        friction: whether joints have friction.
        smoothing: speed [rad/s or m/s] over which Coulomb friction changes its sign at joints that have no
            ``friction_speed``.
        stabilization: rate [1/s] at which errors of constraints decay; 20 by default.

    Raises:
        SimulationError: the robot has contacts, or an argument is wrong.
        IntegrationError: the integrator gave up.
    """
    solve_ivp = needed("scipy.integrate", "simulate").solve_ivp
    _check(robot)
    q, qd = without_names(robot, {"q": q, "qd": qd}).arrays
    duration = arguments.number("duration", duration, above=0.0)
    rows, friction = arguments.whole("rows", rows, 2), flag("friction", friction)
    for name, value in (("rtol", rtol), ("atol", atol), ("smoothing", smoothing)):
        arguments.number(name, value, above=0.0)
    source = source_of(robot.neutral if reference is None else reference, robot.dof, robot.nq)
    law = _Law(robot, controller, source)
    n, nq, links = robot.dof, robot.nq, mechanism_of(robot)
    decay = _rate_of_decay(robot, stabilization)

    def rate(t: float, state: np.ndarray) -> np.ndarray:
        tau, change = law.torques(t, state)
        q, v = state[:nq], state[nq : nq + n]
        if friction:
            tau = tau - _smoothed_friction(links, q, v, tau, smoothing)
        qdd = robot.forward_dynamics(q, v, tau, friction=False, stabilization=decay)
        rates: Any = position_rates(links, q.tolist(), v.tolist())
        return np.concatenate([rates, qdd, change])

    t = np.linspace(0.0, duration, rows)
    initial = np.concatenate([law.start(q, qd), np.zeros(law.memory)])
    found = solve_ivp(rate, (0.0, duration), initial, method=method, t_eval=t, rtol=rtol, atol=atol)
    if not found.success or not math.isclose(found.t[-1], duration):
        raise IntegrationError(
            f"{method} stopped at {found.t[-1] if found.t.size else 0.0:.6g} s: {found.message}"
        )
    states = found.y.T
    q, qd = robot.normalize(states[:, :nq]) if nq != n else states[:, :nq], states[:, nq : nq + n]
    return Result(
        robot,
        t,
        q,
        qd,
        np.array([law.torques(time, state)[0] for time, state in zip(t, states, strict=True)]),
        None if reference is None else law.source.moment(t, (), n),
        q[-1],
        qd[-1],
        duration,
    )


def _check(robot: Robot) -> None:
    check_moves(robot)
    if robot.contact_parts:
        raise SimulationError(
            f"{robot.name}: contacts need the fixed steps of simulate: velocities jump where something touches"
        )


class _Law:
    """A controller as a continuous function of time and state (q, q̇, memory)."""

    def __init__(self, robot: Robot, controller: Controller | None, source: Source):
        if controller is not None and not isinstance(controller, Controller):
            raise SimulationError(
                "controller: expected one of linkwise.control: it runs inside the integrator"
            )
        self.dof, self.nq, self.source = robot.dof, robot.nq, source
        # over one second the memory changes by its rate
        self.kernel = None if controller is None else controller.kernel(1.0)
        self.memory = 0 if controller is None else controller.memory_size

    def start(self, q: Any, qd: Any) -> np.ndarray:
        """The initial q and q̇: given, or where the reference begins; shape (nq + n,)."""
        planned = self.source.moment(np.zeros(1), (), self.dof)
        found = []
        for name, value, begin, size in (("q", q, planned[0], self.nq), ("qd", qd, planned[1], self.dof)):
            found.append(arguments.array(name, begin[0] if value is None else value))
            if found[-1].shape != (size,):
                raise ShapeError(f"{name}: expected shape ({size},), got {found[-1].shape}")
        return np.concatenate(found)

    def torques(self, t: float, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(torques, rate of the memory)."""
        n, end = self.dof, self.nq + self.dof
        if self.kernel is None:
            return np.zeros(n), np.zeros(0)
        moment = [part[0] for part in self.source.moment(np.array([t]), (), n)]
        q, qd, memory = state[: self.nq], state[self.nq : end], state[end:]
        if not self.memory:
            return self.kernel(q, qd, *moment), np.zeros(0)
        tau, following = self.kernel(q, qd, *moment, memory)
        return tau, following - memory


def _rate_of_decay(robot: Robot, stabilization: Any) -> float | None:
    """The rate of Baumgarte's stabilization [1/s] for a robot with constraints."""
    if not robot.constraints:
        return None
    rate = (
        arguments.DECAY
        if stabilization is None
        else arguments.number("stabilization", stabilization, least=0.0)
    )
    return rate or None


def _smoothed_friction(
    links: Mechanism, q: np.ndarray, qd: np.ndarray, tau: np.ndarray, smoothing: float
) -> np.ndarray:
    """Friction with F·tanh(q̇/``smoothing``) in the place of the jump F·sgn q̇, shape (n,)."""
    at, rates = coupling.expanded(links, list(q), positions=True), coupling.expanded(links, list(qd))
    smooth = np.array(flat(joint_terms.smooth_friction(links, at, rates)), dtype=float)
    speeds = np.array(flat(rates), dtype=float)
    given = np.array(flat(coupling.expanded(links, list(tau), forces=True)), dtype=float) - smooth
    axes = [links[k] for k, _ in links.coordinates()]
    pairs = [
        joint_terms.dry_friction_limits(link, v, carried)
        if joint_terms.direction_speed(link) is None
        else (0.0, 0.0)
        for link, v, carried in zip(axes, speeds, given, strict=True)
    ]
    forward, backward = np.array(pairs, dtype=float).reshape(-1, 2).T
    all_axes = smooth + np.where(speeds > 0, forward, backward) * np.tanh(speeds / smoothing)
    all_axes += np.array(
        flat(joint_terms.gradual_friction(links, rates, links.grouped(list(given)))), dtype=float
    )
    return np.array(coupling.reduced(links, list(all_axes), (True,)))
