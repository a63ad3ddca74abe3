"""Inverse kinematics as C: the closed form of an arm, or the iteration with restarts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from linkwise.embedded.entry import Entry, EntryError, Options
from linkwise.motion.kinematics.closed_form import has_closed_form, nearest_kernel
from linkwise.motion.kinematics.restarts import fresh_state, restarting
from linkwise.motion.kinematics.starts import sampling_range
from linkwise.robot.robot import Robot

_WORDS = {
    "target": "pose, row by row without its last row: rotation, position [m]",
    "near": "positions that the solution is to be near to [rad or m]",
    "q": "positions [rad or m]; as an argument the first start",
    "lower": "limits of the positions [rad or m]",
    "upper": "limits of the positions [rad or m]",
    "low": "range of further starts [rad or m]",
    "high": "range of further starts [rad or m]",
    "progress": "of the search; (1, 0, infinity, 0, 0) at first, then what the last call gave",
    "about": "most steps of this call, length at which an angle counts [m], error that is enough, most steps of a "
    "start, most starts, place in the sequence of starts (0 to 1)",
    "error": "what is left: angular (3) [rad], linear (3) [m]; a solution only if it is small",
}


def inverse_kinematics_entries(robot: Robot, options: Options) -> list[Entry]:
    """The function ``inverse_kinematics``."""
    if robot.nq != robot.dof:
        raise EntryError(f"{robot.name}: inverse_kinematics is for joints with one coordinate each")
    frame = options.frame
    low, high = sampling_range(robot)

    def states(count: int) -> Mapping[str, np.ndarray]:
        rng = np.random.default_rng(2)
        q, near = rng.uniform(low, high, (2, count, robot.dof))
        rows = np.asarray(robot.pose(q, frame))[:, :3].reshape(count, 12)
        ends = {"lower": low, "upper": high, "low": low, "high": high}
        about = [40.0, 1.0, 1e-4 if options.dtype == "float32" else 1e-9, 20.0, 4.0, 0.5]
        given = {"target": rows, "near": near, "q": near, "progress": fresh_state(count)}
        given["about"] = np.tile(about, (count, 1))
        return given | {name: np.tile(values, (count, 1)) for name, values in ends.items()}

    if has_closed_form(robot, frame):
        kernel = nearest_kernel(robot, frame)
        summary = f"inverse kinematics of {robot.name} in closed form: the position within the limits next to another"
    else:
        kernel = restarting(robot, frame, "pose")
        summary = f"inverse kinematics of {robot.name} by damped least squares from one start after the other"
    words = {name: _WORDS[name] for name, _ in (*kernel.inputs, *kernel.outputs)}
    return [Entry("inverse_kinematics", summary, kernel, options.dtype, words=words, states=states)]
