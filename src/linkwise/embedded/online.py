"""Online moves as C: three functions of one joint; ``online_move`` has the one of all joints."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from linkwise.compiler.kernel import Kernel
from linkwise.embedded.entry import Entry, EntryError, Options
from linkwise.motion.online import kernels
from linkwise.robot.robot import Robot

_WORDS = {
    "q": "position now [rad or m]",
    "qd": "velocity now [rad/s or m/s]",
    "qdd": "acceleration now [rad/s^2 or m/s^2]",
    "target": "position at the end [rad or m]",
    "target_velocity": "velocity at the end [rad/s or m/s]",
    "target_acceleration": "acceleration at the end [rad/s^2 or m/s^2]",
    "velocity_upper": "limit of velocity [rad/s or m/s], positive",
    "velocity_lower": "limit of velocity [rad/s or m/s], negative",
    "acceleration_upper": "limit of acceleration [rad/s^2 or m/s^2], positive",
    "acceleration_lower": "limit of acceleration [rad/s^2 or m/s^2], negative",
    "jerk": "limit of jerk [rad/s^3 or m/s^3], positive",
    "shortest": "shortest duration [s]",
    "duration": "of the move [s]",
    "durations": "of the ten phases of the first track, then of the second [s]",
    "jerks": "of the phases [rad/s^3 or m/s^3]",
    "weight": "of the first track; the second one has the rest",
    "time": "since the start of the move [s]",
    "fault": "1 where the joint has no such move, else 0",
}


def online_entries(robot: Robot, options: Options) -> list[Entry]:
    """The functions ``online_earliest``, ``online_plan`` and ``online_state``."""
    if robot.nq != robot.dof:
        raise EntryError(
            f"{robot.name}: online is for joints with one coordinate each, not ball or floating joints"
        )
    together = "online_move calls it for joints that arrive together"
    functions: tuple[tuple[Callable[[str], Kernel], str], ...] = (
        (
            kernels.earliest_kernel,
            f"shortest duration of a jerk-limited move of one joint to a target; {together}",
        ),
        (kernels.plan_kernel, "jerk-limited move of one joint in a duration that online_earliest gives"),
        (kernels.state_kernel, "reference of one joint at a time of its move"),
    )
    found: list[Entry] = []
    for make, summary in functions:
        kernel = make(options.dtype)
        words = {name: _WORDS[name] for name, _ in (*kernel.inputs, *kernel.outputs) if name in _WORDS}
        found.append(Entry(kernel.name, summary, kernel, options.dtype, words=words, states=_states))
    return found


def _states(count: int) -> Mapping[str, np.ndarray]:
    """Inputs of all three functions: moves from states within and beyond the limits."""
    rng = np.random.default_rng(3)

    def drawn(low: float, high: float) -> np.ndarray:
        return rng.uniform(low, high, (count, 1))

    given = {
        "q": drawn(-2, 2),
        "qd": drawn(-2, 2),
        "qdd": drawn(-6, 6),
        "target": drawn(-2, 2),
        "target_velocity": drawn(-0.5, 0.5),
        "target_acceleration": drawn(-1, 1),
        "velocity_upper": drawn(1, 3),
        "velocity_lower": -drawn(1, 3),
        "acceleration_upper": drawn(2, 5),
        "acceleration_lower": -drawn(2, 5),
        "jerk": drawn(5, 50),
    }
    shortest = drawn(0, 1)
    duration = kernels.earliest_kernel()(*given.values(), shortest)[:, np.newaxis]
    durations, jerks, weight, _ = kernels.plan_kernel()(*given.values(), duration)
    return {
        **given,
        "shortest": shortest,
        "duration": duration,
        "durations": durations,
        "jerks": jerks,
        "weight": weight[:, np.newaxis],
        "time": drawn(-0.5, 3),
    }
