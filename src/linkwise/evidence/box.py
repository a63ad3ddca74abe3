"""Boxes of states: an interval for every number that a function takes, from the limits of a robot or given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwise.errors import LinkwiseError
from linkwise.robot.robot import Robot

SPEED = np.pi
"""Of joints for which the model has no limit [rad/s or m/s]."""
ACCELERATION = 10.0
"""Of all joints, if none is given [rad/s² or m/s²]."""
EFFORT = 100.0
"""Of joints for which the model has no limit [N·m or N]."""
PAYLOAD = (1.0, 0.1)
"""Largest mass of a payload [kg] and largest distance of its points from the frame that carries it [m]."""

_POSITIONS = ("q", "q_d")
_VELOCITIES = ("qd", "qd_d")
_ACCELERATIONS = ("qdd", "qdd_d")


class BoxError(LinkwiseError, ValueError):
    """A box cannot be made; the message says which argument is wrong."""


@dataclass(frozen=True)
class Box:
    """Lower and upper bounds of every input.

    Args:
        bounds: for each input by name (lower, upper), arrays of its numbers.
        assumed: sentences on limits that neither the model nor the caller gave.
    """

    bounds: Mapping[str, tuple[np.ndarray, np.ndarray]]
    assumed: tuple[str, ...] = field(default=())

    def middle(self, name: str) -> np.ndarray:
        low, high = self.bounds[name]
        return (low + high) / 2

    def draw(self, rng: np.random.Generator, count: int, corners: float = 0.5) -> dict[str, np.ndarray]:
        """Random states, (count, size) each.

        Args:
            rng: the source.
            count: how many.
            corners: part of the numbers that are one of their two bounds.
        """
        found = {}
        for name, (low, high) in self.bounds.items():
            inside = low + (high - low) * rng.random((count, len(low)))
            ends = np.where(rng.random(inside.shape) < 0.5, low, high)
            at_end = (rng.random(inside.shape) < corners) & (rng.random((count, 1)) < 0.9)
            found[name] = np.clip(np.where(at_end, ends, inside), low, high)
        return found

    def json(self) -> dict[str, Any]:
        """As lists of numbers."""
        return {name: [low.tolist(), high.tolist()] for name, (low, high) in self.bounds.items()}


def box_of(
    robot: Robot,
    inputs: Sequence[tuple[str, int]],
    *,
    values: Mapping[str, Any] | None = None,
    velocity: Any = None,
    acceleration: Any = None,
    payload: Sequence[float] | None = None,
    given: Mapping[str, tuple[Any, Any]] | None = None,
) -> Box:
    """The box of the inputs of a function.

    Args:
        robot: positions, velocities and efforts are those of its limits; a joint that may turn without end has ±π.
        inputs: (name, number of scalars) of the function.
        values: inputs that have one value: gains and limits of controllers.
        velocity: largest joint velocities [rad/s or m/s], one number or one for each joint; None: the limits of the
            robot.
        acceleration: largest joint accelerations [rad/s² or m/s²], one number or one for each joint.
        payload: largest mass of the payload [kg] and largest distance of its points from the frame that carries it
            [m], of functions that take one; every body of at most that mass in that ball is in the box.
        given: (lower, upper) of inputs by name, in place of all others.

    Raises:
        BoxError: an input is not known and was not given, or bounds are no interval.
    """
    limits, assumed = robot.limits, []
    n = robot.dof
    speed = np.asarray(limits.velocity if velocity is None else velocity, dtype=float) + np.zeros(n)
    without = not np.isfinite(speed).all()
    if without:
        speed = np.where(np.isfinite(speed), speed, SPEED)
    found: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for name, size in inputs:
        low: Any
        if given is not None and name in given:
            low, high = (np.asarray(x, dtype=float) + np.zeros(size) for x in given[name])
        elif values is not None and name in values:
            low = np.asarray(values[name], dtype=float) + np.zeros(size)
            if name == "torque_limits" and not np.isfinite(low).all():
                assumed.append(f"no torque limit in the model: {EFFORT:.6g} N·m")
                low = np.where(np.isfinite(low), low, EFFORT)
            high = low
        elif name in _POSITIONS and size == n == robot.nq:
            low, high = _one_turn(limits.lower, limits.upper)
            if unlimited := _not_periodic(robot):
                assumed.append(f"no range in the model ({name} of {', '.join(unlimited)}): 2π rad or m")
        elif name in _VELOCITIES and size == n:
            low, high = -speed, speed
            if without:
                assumed.append(f"no velocity limit in the model ({name}): {SPEED:.6g} rad/s")
        elif name in _ACCELERATIONS and size == n:
            most = np.asarray(ACCELERATION if acceleration is None else acceleration, dtype=float)
            if acceleration is None:
                assumed.append(f"accelerations ({name}): {ACCELERATION:.6g} rad/s²")
            low, high = -most + np.zeros(n), most + np.zeros(n)
        elif name == "tau" and size == n:
            effort = np.where(np.isfinite(limits.effort), limits.effort, EFFORT)
            if not np.isfinite(limits.effort).all():
                assumed.append(f"no effort limit in the model: {EFFORT:.6g} N·m")
            low, high = -effort, effort
        elif name == "payload" and size == 10:
            if payload is None:
                assumed.append(f"payload: at most {PAYLOAD[0]:.6g} kg within {PAYLOAD[1]:.6g} m of its frame")
            low, high = _payload(*(PAYLOAD if payload is None else payload))
        else:
            raise BoxError(f"{name}: no bounds are known for this input; give lower and upper bounds")
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()):
            raise BoxError(f"{name}: expected finite lower bounds below the upper ones, got {low} and {high}")
        found[name] = (low, high)
    return Box(found, tuple(assumed))


def _one_turn(lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ranges of positions; one turn where an end is missing."""
    turn = 2 * np.pi
    low = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - turn, -np.pi))
    return low, np.where(np.isfinite(upper), upper, np.where(np.isfinite(lower), lower + turn, np.pi))


def _not_periodic(robot: Robot) -> list[str]:
    """Joints without a range that are not where they were after one turn: sliding ones, screws, those with a spring,
    and those that another joint follows with a ratio that is no whole number."""
    parts = {
        relation.joint
        for relation in robot.followed
        if relation is not None and not float(relation.multiplier).is_integer()
    }
    return [
        joint.name
        for joint in robot.coordinate_joints
        if not np.isfinite([joint.limits.lower, joint.limits.upper]).all()
        and (not joint.revolute or joint.number("stiffness") or joint.name in parts)
    ]


def _payload(mass: float, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of m hx hy hz Ixx Ixy Ixz Iyy Iyz Izz about the origin, for every body of at most this mass in a ball.

    |h| ≤ m·r, 0 ≤ ∫(y² + z²) ≤ m·r² and |∫xy| ≤ m·r²/2.
    """
    if not (mass >= 0.0 and radius >= 0.0):
        raise BoxError(
            f"payload: expected a mass and a distance that are not negative, got {mass} and {radius}"
        )
    first, second = mass * radius, mass * radius**2
    high = np.array([mass, *[first] * 3, second, second / 2, second / 2, second, second / 2, second])
    low = -high
    low[[0, 4, 7, 9]] = 0.0
    return low, high
