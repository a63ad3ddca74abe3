"""The safe stop as a function: torques that bring an arm to rest after a fault, in the modes of the two-rate runtime.

The reference of the stop starts at the last good position and velocity, decelerates evenly during the first half of the
stop time, and stands still after that. Torques are those of computed torque along it: with feedback where measured
states are good, of the model alone where they are not or have a number that is not finite. The mode "hold" ends with
the torques that hold the arm against gravity, "ramp" scales all torques down to zero over the stop time. Torques are
finite and bounded for all inputs (``control/bounds.py``), as in ``realtime/stop.c``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.compiler.kernel import Kernel
from linkwise.control import ComputedTorque, Gains, Reference
from linkwise.control.bounds import LARGEST, all_finite, clipped
from linkwise.control.controller import symbolic_links, traced_kernel
from linkwise.errors import UnknownNameError, suggest
from linkwise.functions.parameters import parameter_sizes
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar, all_of, where

MODES = ("hold", "ramp")


def stop_kernel(
    robot: Robot,
    gains: Gains,
    mode: str,
    stop_time: float,
    *,
    torque_limits: Sequence[float] | None = None,
    dtype: str = "float64",
    inputs: Sequence[str] = (),
    frame: str | None = None,
) -> Kernel:
    """(time, stop_q, stop_qd, q, qd, feedback, inputs) -> tau.

    Args:
        robot: joints with one coordinate each.
        gains: of the feedback.
        mode: "hold" or "ramp".
        stop_time: [s].
        torque_limits: [N·m or N]; None: those of the robot.
        dtype: "float64" or "float32".
        inputs: parameters of the model that stay inputs: "payload" or labels.
        frame: that carries the payload; None: the only leaf.

    Raises:
        UnknownNameError: there is no such mode.
    """
    if mode not in MODES:
        raise UnknownNameError(f"stop: no mode {mode!r}; {suggest(mode, MODES)}")
    n, law = robot.dof, ComputedTorque(robot, gains, torque_limits=torque_limits)
    numbers = {name: [float(x) for x in values] for name, values in law.gains.items()}
    fastest = np.where(np.isfinite(robot.velocity_limits), robot.velocity_limits, LARGEST)

    def stopping(time, stop_q, stop_qd, q, qd, feedback, **others) -> dict[str, list[Scalar]]:
        links = symbolic_links(robot, others, frame) if others else law.links()
        now: Any = where(time[0] <= stop_time, where(time[0] > 0.0, time[0], 0.0), stop_time)  # NaN: the end
        wanted = _reference(stop_q, stop_qd, fastest, now, 0.5 * stop_time)
        good = all_of(feedback[0] > 0.5, all_finite([*q, *qd]))
        at = [where(good, x, y) for x, y in zip(q, wanted.q, strict=True)]
        rates = [where(good, x, y) for x, y in zip(qd, wanted.qd, strict=True)]
        tau = law.commanded(links, numbers, at, rates, wanted, (), 0.0).tau
        if mode == "ramp":
            left = where(now < stop_time, 1.0 - now * (1.0 / stop_time), 0.0)
            tau = [left * x for x in tau]
        return {"tau": tau}

    sizes = {"time": 1, "stop_q": n, "stop_qd": n, "q": n, "qd": n, "feedback": 1}
    sizes |= parameter_sizes(robot, tuple(inputs))
    return traced_kernel("safe_stop", stopping, sizes, {"tau": (n,)}, dtype, None)


def _reference(q, qd, fastest: np.ndarray, time: Any, braking: float) -> Reference:
    """From q, qd to rest with constant deceleration, then still."""
    moves = time < braking
    part = where(moves, time * (1.0 / braking), 1.0)
    speeds = [clipped(v, -float(most), float(most)) for v, most in zip(qd, fastest, strict=True)]
    way = braking * (part - 0.5 * (part * part))
    return Reference(
        [x + v * way for x, v in zip(q, speeds, strict=True)],
        [v * (1.0 - part) for v in speeds],
        [where(moves, v * (-1.0 / braking), 0.0) for v in speeds],
    )
