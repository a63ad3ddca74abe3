"""Hand guiding: the arm floats, and a person moves it.

τ = g + s · f(q̇) − d q̇ + walls + joint limits. The friction compensation f drives the joints the way they move, so it
can put energy into the arm. Four rules bound that:

* It compensates a share (0.7) of the model's friction: while the true friction is larger, every motion loses energy.
* A joint slower than a rest speed gets none, so an arm at rest stays at rest.
* s falls to zero as the kinetic energy reaches ``guiding_energy``: the compensation cannot speed the arm up beyond it.
* What it gives out is counted: s falls to zero when ``friction_energy`` is used, and the count goes back
  only while the arm rests. An arm that runs because of a wrong model stops, and stays.

Walls and limits are springs with dampers, which give out no more than they took.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from linkwise.algorithms import coordinates, dense
from linkwise.arguments.numbers import Numbers
from linkwise.control.bounds import all_finite, or_zero
from linkwise.control.controller import Controller
from linkwise.control.task_space import law
from linkwise.control.task_space.avoidance import (
    LIMIT_DAMPING,
    LIMIT_FREQUENCY,
    LIMIT_STIFFNESS,
    MARGIN,
    limit_torques,
    limited_coordinates,
    usual_joint_inertia,
)
from linkwise.control.task_space.tool import pose_and_jacobian, product
from linkwise.functions.table import mechanism_of
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar, all_of, sqrt, where

DAMPING, SHARE, ENERGY, SPEED = "guiding_damping", "friction_share", "friction_energy", "compensation_speed"
KINETIC = "guiding_energy"
WALLS, WALL_STIFFNESS, WALL_DAMPING = "walls", "wall_stiffness", "wall_damping"
RATE = 0.5  # damping per inertia where none is given [1/s]
STROKE = 1.0  # of all joints, whose friction is the energy that may be given out [rad or m]
GUIDED = 1.0  # usual speed of all joints while they are guided, for the kinetic energy [rad/s or m/s]
REST = 0.02  # speed below which a joint rests [rad/s or m/s]
RECOVERY = 5.0  # rate at which the count goes back at rest [1/s]


class HandGuiding(Controller):
    """τ = g + s · friction − d q̇ + virtual walls + joint limits: the arm stays where a person leaves it.

    Args:
        robot: the model, with its friction.
        frame: the tool that walls hold back; None: the only leaf. Not needed without walls.
        damping: d [N·m·s/rad or N·s/m], one number or (n,); None: 0.5/s times the usual inertia of each joint.
        friction_share: of the model's friction that is compensated, 0 to 1.
        friction_energy: that the compensation may give out between two rests [J]; None: what friction takes over 1
            rad (or m) of every joint.
        guiding_energy: kinetic energy from which on nothing is compensated [J]; None: that of all joints at 1 rad/s or
            1 m/s with their usual inertia.
        compensation_speed: over which the compensation of dry friction turns its direction [rad/s or m/s].
        walls: planes that the tool's origin does not pass, (m, 4) each: normal (into the free side, in the axes of
            the base) and offset [m]; free is where normal · p ≥ offset. A gain.
        wall_stiffness: [N/m].
        wall_damping: [N·s/m], on the way in alone.
        margin: before a joint limit, where a spring begins [rad or m]; 0: no springs.
        torque_limits: see ``Controller``.

    Raises:
        ValueError: an argument cannot be right; the message names it.
    """

    feedback = False
    has_frame = True
    units: ClassVar[dict[str, str]] = {
        DAMPING: "damping of the joints [N*m*s/rad or N*s/m]",
        SHARE: "share of friction that is compensated [1]",
        ENERGY: "energy that the compensation may give out between two rests [J]",
        KINETIC: "kinetic energy from which on nothing is compensated [J]",
        SPEED: "speed over which the compensation turns its direction [rad/s or m/s]",
        WALLS: "normals and offsets of walls [1 and m]",
        WALL_STIFFNESS: "stiffness of walls [N/m]",
        WALL_DAMPING: "damping of walls [N*s/m]",
        LIMIT_STIFFNESS: "stiffness at joint limits [N*m/rad or N/m]",
        LIMIT_DAMPING: "damping at joint limits [N*m*s/rad or N*s/m]",
    }

    def __init__(
        self,
        robot: Robot,
        frame: str | None = None,
        *,
        damping: Any = None,
        friction_share: float = 0.7,
        friction_energy: float | None = None,
        guiding_energy: float | None = None,
        compensation_speed: float = 0.05,
        walls: Any = None,
        wall_stiffness: float = 3000.0,
        wall_damping: float = 100.0,
        margin: float = MARGIN,
        torque_limits: Any = None,
    ):
        check, inertia = Numbers(), usual_joint_inertia(robot)
        share = check.number(SHARE, friction_share, least=0.0)
        if share > 1.0:
            raise check.error(f"friction_share: expected a number from 0 to 1, got {share:g}")
        if friction_energy is None:
            friction_energy = STROKE * share * _friction_at(robot, 1.0) or 1.0
        if guiding_energy is None:
            guiding_energy = 0.5 * GUIDED**2 * float(inertia.sum())
        self.margin = check.number("margin", margin, least=0.0)
        self.places = limited_coordinates(robot, self.margin) if self.margin else []
        gains = {
            DAMPING: check.each(
                "damping", RATE * inertia if damping is None else damping, robot.dof, least=0.0
            ),
            SHARE: np.array([share]),
            ENERGY: np.array([check.number(ENERGY, friction_energy, least=0.0)]),
            KINETIC: np.array([check.number(KINETIC, guiding_energy, above=0.0)]),
            SPEED: np.array([check.number(SPEED, compensation_speed, above=0.0)]),
        }
        if self.places:
            w = LIMIT_FREQUENCY
            gains |= {LIMIT_STIFFNESS: w * w * inertia, LIMIT_DAMPING: 2.0 * w * inertia}
        self.located = None
        if frame is not None:  # without walls it is not used, but a wrong name is a mistake all the same
            robot.locate(frame)
        if walls is not None:
            gains[WALLS] = _planes(walls)
            gains[WALL_STIFFNESS] = np.array([check.number(WALL_STIFFNESS, wall_stiffness, least=0.0)])
            gains[WALL_DAMPING] = np.array([check.number(WALL_DAMPING, wall_damping, least=0.0)])
            self.located = robot.locate(frame)
        super().__init__(robot, gains, torque_limits)
        self.frame, self.memory_size = frame, 1

    def options(self) -> tuple[Any, ...]:
        return (self.frame, self.margin, sorted((name, len(values)) for name, values in self.gains.items()))

    def control(self, links, gains, q, qd, reference, memory, period):
        weight = coordinates.gravity_torques(links, q)
        eased = compensation(links, weight, q, qd, gains[SHARE][0], gains[SPEED][0])
        momentum, _ = coordinates.momentum(links, q, qd)
        share = law.fading(memory[0], gains[ENERGY][0])
        share = share * law.fading(0.5 * law.power(momentum, qd), gains[KINETIC][0])
        eased = [share * t for t in eased]
        drag = [-(d * v) for d, v in zip(gains[DAMPING], qd, strict=True)]
        tau = [a + b + c for a, b, c in zip(weight, eased, drag, strict=True)]
        if self.places:
            held = limit_torques(self.places, gains[LIMIT_STIFFNESS], gains[LIMIT_DAMPING], q, qd)
            tau = [a + b for a, b in zip(tau, held, strict=True)]
        if self.located is not None:
            tau = [a + b for a, b in zip(tau, self._walls(links, gains, q, qd), strict=True)]
        # a reading that is no number is a fault, also of a joint that carries nothing
        tau[0] = where(all_finite([*q, *qd]), tau[0], math.nan)
        used = law.energy_used(memory[0], period * law.power(eased, qd), gains[ENERGY][0])
        resting: Any = abs(qd[0]) < REST
        for v in qd[1:]:
            resting = all_of(resting, abs(v) < REST)
        rate = RECOVERY * period
        return tau, [or_zero(where(resting, used * (1.0 - where(rate > 1.0, 1.0, rate)), used))]

    def _walls(self, links, gains, q: Sequence[Scalar], qd: Sequence[Scalar]) -> list[Scalar]:
        """Torques of all walls."""
        assert self.located is not None
        _, p, J = pose_and_jacobian(links, q, self.located)
        velocity = product(J[3:], qd)
        force: list[Scalar] = [0.0, 0.0, 0.0]
        numbers = gains[WALLS]
        for k in range(0, len(numbers), 4):
            normal, offset = numbers[k : k + 3], numbers[k + 3]
            push = wall_force(
                offset - dense.dot(normal, p),
                dense.dot(normal, velocity),
                gains[WALL_STIFFNESS][0],
                gains[WALL_DAMPING][0],
            )
            force = [f + push * n for f, n in zip(force, normal, strict=True)]
        return [dense.dot(column, force) for column in dense.transposed(J[3:])]


def wall_force(depth: Scalar, speed: Scalar, stiffness: Scalar, damping: Scalar) -> Scalar:
    """Force of a wall along its normal [N]: a spring, and on the way in a damper that grows over the first millimetre.

    Args:
        depth: how far the tool is behind the wall [m].
        speed: of the tool along the normal [m/s], negative on the way in.
        stiffness: [N/m].
        damping: [N·s/m].
    """
    share: Any = 1000.0 * depth
    share = where(share > 1.0, 1.0, share)
    inward: Any = speed
    damper = where(inward < 0.0, damping * share * speed, 0.0)
    inside: Any = depth
    return where(inside > 0.0, stiffness * depth - damper, 0.0)


def compensation(links, weight, q, qd, share: Scalar, speed: Scalar) -> list[Scalar]:
    """A share of the model's friction along the motion [N·m or N]; that of dry friction grows over ``speed``."""
    smooth = coordinates.smooth_friction(links, q, qd)
    limits = coordinates.dry_friction_limits(links, qd, weight)
    eased: list[Scalar] = []
    for drag, (forward, backward), v in zip(smooth, limits, qd, strict=True):
        size: Any = abs(v)
        ahead: Any = v > 0.0
        beyond = where(size > REST, where(ahead, v - REST, v + REST), 0.0)
        direction = beyond / sqrt(beyond * beyond + speed * speed)
        eased.append(share * (where(size > REST, drag, 0.0) + where(ahead, forward, backward) * direction))
    return eased


def _friction_at(robot: Robot, speed: float) -> float:
    """The sum of all joints' friction at a speed, without gravity's load [N·m or N]."""
    links, n = mechanism_of(robot, base_parameters=True), robot.dof
    rubbed: Any = compensation(links, [0.0] * n, robot.neutral.tolist(), [speed] * n, 1.0, 1e-3)
    return float(np.abs(rubbed).sum())


def _planes(walls: Any) -> np.ndarray:
    check = Numbers()
    given = np.atleast_2d(check.array(WALLS, walls))
    if given.ndim != 2 or given.shape[1] != 4:
        raise check.error(f"walls: expected (m, 4): normals and offsets, got shape {given.shape}")
    size = np.linalg.norm(given[:, :3], axis=1)
    if not (size > 1e-9).all():
        raise check.error("walls: a normal must not be zero")
    return (given / size[:, None]).ravel()
