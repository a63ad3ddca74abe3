"""Gaits of legged robots as problems of optimal motion: which feet stand when, where they step, how the trunk moves.

``trot``, ``walk``, ``pace``, ``bound`` and ``jump`` give a ``Problem`` with a ``ContactSchedule``: solve it, or change
its values and costs first. The feet come down where the commanded velocity carries them; everything between is the
solver's.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.arguments.guesses import answer_for
from linkwise.core.products import times
from linkwise.errors import UnknownNameError, suggest
from linkwise.optimal import arguments
from linkwise.optimal.arguments import ProblemError
from linkwise.optimal.contact_schedule import ContactSchedule
from linkwise.optimal.contact_terms import FrictionCone
from linkwise.optimal.costs import Effort, JointTracking, TipTracking
from linkwise.optimal.problem import Problem
from linkwise.optimal.timings import Duration, Timings
from linkwise.robot.robot import Robot

__all__ = ["bound", "jump", "pace", "trot", "walk"]

SWING = np.array([2e3, 2e3, 2e4])
"""Weights of the places of a foot that swings [1/m²]; its height weighs more, or it would go through the ground."""
LANDING = 4e4
"""Of its height where it comes down, for that stage alone [1/m²]: it is held there, be it above or below the ground."""
FEET = ("front left", "front right", "rear left", "rear right")
PATTERNS = {
    "trot": (("front left", "rear right"), ("front right", "rear left")),
    "pace": (("front left", "rear left"), ("front right", "rear right")),
    "bound": (("front left", "front right"), ("rear left", "rear right")),
    "walk": (("rear right",), ("front right",), ("rear left",), ("front left",)),
    "jump": (FEET,),
}
"""Feet that swing at the same time, one group after the other."""


@dataclass(frozen=True)
class _Plan:
    """Stages of a gait: which feet stand, and where each foot shall be."""

    active: np.ndarray
    """(horizon, 4)."""
    places: np.ndarray
    """(horizon + 1, 4, 3) [m]."""
    swings: np.ndarray
    """(horizon + 1, 4), 1 where a place is asked for."""


def trot(robot: Robot, velocity: Sequence[float] = (0.5, 0.0, 0.0), **options: Any) -> Problem:
    """Diagonal pairs of feet swing in turn.

    Args:
        robot: a robot with a floating base and four feet.
        velocity: of the trunk: forward, to the left [m/s], and about the vertical [rad/s].
        **options: see ``walk``.
    """
    return _problem("trot", robot, velocity, options)


def pace(robot: Robot, velocity: Sequence[float] = (0.5, 0.0, 0.0), **options: Any) -> Problem:
    """The feet of one side swing in turn with those of the other.

    Args:
        robot: a robot with a floating base and four feet.
        velocity: of the trunk: forward, to the left [m/s], and about the vertical [rad/s].
        **options: see ``walk``.
    """
    return _problem("pace", robot, velocity, options)


def bound(robot: Robot, velocity: Sequence[float] = (0.5, 0.0, 0.0), **options: Any) -> Problem:
    """The front feet swing in turn with the rear ones.

    Args:
        robot: a robot with a floating base and four feet.
        velocity: of the trunk: forward, to the left [m/s], and about the vertical [rad/s].
        **options: see ``walk``.
    """
    return _problem("bound", robot, velocity, options)


def jump(robot: Robot, velocity: Sequence[float] = (0.0, 0.0, 0.0), **options: Any) -> Problem:
    """All feet leave the ground at once.

    Args:
        robot: a robot with a floating base and four feet.
        velocity: of the trunk: forward, to the left [m/s], and about the vertical [rad/s].
        **options: see ``walk``.
    """
    return _problem("jump", robot, velocity, options)


def walk(robot: Robot, velocity: Sequence[float] = (0.25, 0.0, 0.0), **options: Any) -> Problem:
    """One foot swings at a time.

    Args:
        robot: a robot with a floating base and four feet.
        velocity: of the trunk: forward, to the left [m/s], and about the vertical [rad/s].
        **options: ``feet``: names of the four frames, in any order; by default those of ``robot.contacts``.
            ``start``: positions (nq,) in which the robot stands; by default ``robot.neutral``. ``cycles``: how often
            every foot swings, 1 by default. ``swing`` and ``stance``: durations of a swing and of the time on all feet
            before it [s]. ``height``: of the feet above the ground in a swing [m]. ``step``: of the problem [s].
            ``friction``: coefficient of the ground. ``torque_limits``: as for ``Problem``. ``timings``: (shortest,
            longest) duration of swings and of the times on all feet, in units of those given: they are then chosen.
            ``price``: of a second, with ``timings``.
    """
    return _problem("walk", robot, velocity, options)


def _problem(gait: str, robot: Robot, velocity: Sequence[float], options: Mapping[str, Any]) -> Problem:
    if not isinstance(robot, Robot):
        raise ProblemError(f"robot: expected a Robot, got {type(robot).__name__}")
    known = inspect.getfullargspec(_made).kwonlyargs
    for name in options:
        if name not in known:
            raise UnknownNameError(f"{gait}: no option {name!r}; {suggest(name, known)}")
    return _made(gait, robot, velocity, **options)


def _made(
    gait: str,
    robot: Robot,
    velocity: Sequence[float],
    *,
    feet: Sequence[str] | None = None,
    start: Any = None,
    cycles: int = 1,
    swing: float = 0.24,
    stance: float = 0.08,
    height: float = 0.06,
    step: float = 0.02,
    friction: float = 0.7,
    torque_limits: Any = True,
    timings: tuple[float, float] | None = None,
    price: float = 0.0,
) -> Problem:
    rates = arguments.numbers("velocity", velocity, (3,))
    q = arguments.numbers("start", robot.neutral if start is None else start, (robot.nq,))
    names = _named(robot, feet, q)
    going = _in_base_axes(robot, q, rates)
    plan = _planned(
        gait,
        np.array([np.asarray(robot.pose(q, frame=name))[:3, 3] for name in names]),
        going,
        arguments.whole("cycles", cycles, 1),
        (_stages("swing", swing, step), _stages("stance", stance, step)),
        arguments.number("height", height, least=0.0),
        step,
        q[:3],
    )
    horizon = len(plan.active)
    n, target = robot.dof, _trunk(q, going, horizon, step)
    moving = np.tile([0.0, 0.0, rates[2], *rates[:2], *[0.0] * (n - 5)], (horizon + 1, 1))
    weight = np.concatenate([[20.0] * 3, [5.0, 5.0, 40.0], np.full(n - 6, 1.0)])
    speeds = np.concatenate([[1.0] * 6, np.full(n - 6, 0.02)])
    costs: list[Any] = [
        JointTracking(target, weight, velocity=moving, velocity_weight=speeds, name="trunk"),
        Effort(1e-3),
    ]
    costs += _of_feet(plan, names, step)
    chosen, more = _timed(plan, step, timings, price)
    costs += more
    end = JointTracking(
        target[-1], 10.0 * weight, velocity=moving[-1], velocity_weight=10.0 * speeds, name="end"
    )
    return Problem(
        robot,
        horizon=horizon,
        step=step,
        start=(q, np.zeros(n)),
        costs=costs,
        terminal=[end],
        limits=[FrictionCone(friction)],
        torque_limits=torque_limits,
        contacts=ContactSchedule(names, plan.active),
        timings=chosen,
    )


def _timed(
    plan: _Plan, step: float, timings: tuple[float, float] | None, price: float
) -> tuple[Timings | None, list[Any]]:
    """(durations of phases that are chosen, the cost of time)."""
    price = arguments.number("price", price, least=0.0)
    if timings is None:
        if price:
            raise ProblemError("price: it is for durations that are chosen; give timings=(shortest, longest)")
        return None, []
    if not isinstance(timings, (tuple, list)) or len(timings) != 2:
        raise ProblemError(f"timings: expected (shortest, longest), got {timings!r:.80}")
    changes = np.flatnonzero((np.diff(plan.active, axis=0) != 0.0).any(axis=1)) + 1
    return Timings(step * timings[0], step * timings[1], [0, *changes.tolist()]), [Duration(price)]


def _stages(name: str, duration: float, step: float) -> int:
    """How many stages a duration [s] has."""
    return max(1, round(arguments.number(name, duration, above=0.0) / step))


def _named(robot: Robot, feet: Sequence[str] | None, q: np.ndarray) -> list[str]:
    """The frames in the order of ``FEET``, by where they are beside the base."""
    if robot.coordinate_joints[0].type != "floating":
        raise ProblemError(f"{robot.name} has no floating base; load it with base='floating'")
    if feet is None:
        feet = list(dict.fromkeys(contact.frame for contact in robot.contacts or ()))
        if len(feet) != 4:
            raise ProblemError(
                f"feet: give the names of four frames; {robot.name} has {len(feet)} contacts to take them from"
            )
    if len(feet) != 4:
        raise ProblemError(f"feet: expected four frames, got {len(feet)}")
    base = np.asarray(robot.pose(q, frame=robot.coordinate_joints[0].child))
    away = {name: np.asarray(robot.pose(q, frame=name))[:3, 3] - base[:3, 3] for name in feet}
    places = {name: times(base[:3, :3].T, vector)[:2] for name, vector in away.items()}
    front = sorted(feet, key=lambda name: -places[name][0])
    return [
        name for pair in (front[:2], front[2:]) for name in sorted(pair, key=lambda name: -places[name][1])
    ]


def _of_feet(plan: _Plan, names: Sequence[str], step: float) -> Iterator[TipTracking]:
    """What feet are asked while they swing, and where they come down."""
    for k, name in enumerate(names):
        asked = plan.swings[:, k : k + 1] * SWING
        asked[landings(plan.active[:, k]), 2] = (
            LANDING / step
        )  # costs of stages are multiplied by their duration
        yield TipTracking(plan.places[:, k], asked, frame=name, name=name)


def landings(held: np.ndarray) -> np.ndarray:
    """The stages at whose begin a foot comes down, of those in which it is held."""
    return np.flatnonzero((held[1:] > 0.5) & (held[:-1] < 0.5)) + 1


def _planned(
    gait: str,
    feet: np.ndarray,
    rates: np.ndarray,
    cycles: int,
    stages: tuple[int, int],
    height: float,
    step: float,
    base: np.ndarray,
) -> _Plan:
    groups, (swing, stance) = PATTERNS[gait], stages
    active, places, swings = [], [], []
    now = feet.copy()
    period = len(groups) * (swing + stance) * step

    def add(held: np.ndarray, at: np.ndarray, count: int) -> None:
        for s in range(count):
            active.append(held)
            part = (s + 1) / count
            lift = np.where(held > 0.5, 0.0, height * math.sin(math.pi * part) ** 2)
            places.append(now + part * (at - now) + lift[:, None] * [0.0, 0.0, 1.0])
            swings.append(1.0 - held)

    for cycle in range(cycles):
        for number, group in enumerate(groups):
            add(np.ones(4), now, stance)
            held = np.array([0.0 if foot in group else 1.0 for foot in FEET])
            # a foot comes down where it stands under its hip half a period later
            elapsed = cycle * period + (number + 1) * (swing + stance) * step
            reached = _carried(feet, base, rates, elapsed + 0.5 * period - 0.5 * swing * step)
            then = np.where(held[:, None] > 0.5, now, reached)
            add(held, then, swing)
            now = then
    add(np.ones(4), now, stance)
    first = [feet]
    return _Plan(np.array(active), np.array(first + places), np.array([np.zeros(4), *swings]))


def _carried(points: np.ndarray, base: np.ndarray, rates: np.ndarray, time: float) -> np.ndarray:
    """Points on the ground that move with the trunk for a time."""
    angle = rates[2] * time
    c, s = math.cos(angle), math.sin(angle)
    turned = times((points - base)[:, :2], np.array([[c, s], [-s, c]]))
    moved = points.copy()
    moved[:, :2] = turned + base[:2] + _travelled(rates, time)
    return moved


def _travelled(rates: np.ndarray, time: float) -> np.ndarray:
    """Where the trunk is after a time, whose velocity turns with it [m]."""
    x, y, turn = rates
    angle = turn * time
    if abs(angle) < 1e-6:
        return np.array([x, y]) * time
    c, s = math.sin(angle) / turn, (1.0 - math.cos(angle)) / turn
    return np.array([c * x - s * y, s * x + c * y])


def _in_base_axes(robot: Robot, q: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Forward and to the left of a trunk at positions q, in the axes of the base; and the rate of its turn."""
    x, y = np.asarray(robot.pose(q, frame=robot.coordinate_joints[0].child))[:2, 0]
    size = max(math.hypot(x, y), 1e-300)
    c, s = x / size, y / size
    return np.array([c * rates[0] - s * rates[1], s * rates[0] + c * rates[1], rates[2]])


def _trunk(q: np.ndarray, going: np.ndarray, horizon: int, step: float) -> np.ndarray:
    """Targets of positions (horizon + 1, nq)."""
    target = np.tile(q, (horizon + 1, 1))
    for k in range(horizon + 1):
        time = k * step
        target[k, :2] += _travelled(going, time)
        half = 0.5 * going[2] * time
        target[k, 3:7] = _turned(math.sin(half), math.cos(half), q[3:7])
    return target


def _turned(s: float, c: float, q: np.ndarray) -> np.ndarray:
    """A turn about the vertical before the orientation q (x, y, z, w)."""
    x, y, z, w = q
    return np.array([c * x - s * y, c * y + s * x, c * z + s * w, c * w - s * z])


answer_for(__name__)
