"""The safe stop: torques that bring an arm to rest after a fault, for Python, the real-time loop and C packages.

The reference of the stop starts at the last good position and velocity, decelerates evenly during the first half of the
stop time, and stands still after that. Torques are those of computed torque along it: with feedback where measured
states are good, of the model alone where they are not or have a number that is not finite. A stop that ends without
torques scales them down to zero over the stop time; else it ends with those that hold the arm against gravity. Torques
are finite and bounded for all inputs (``bounds``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.compiler.kernel import Kernel, traced_kernel
from linkwise.control.bounds import LARGEST, all_finite, commanded
from linkwise.control.controller import Reference, symbolic_links
from linkwise.control.gains import Gains
from linkwise.control.inverse_dynamics import ComputedTorque
from linkwise.errors import UnknownNameError, suggest
from linkwise.functions.parameters import parameter_sizes
from linkwise.model.mechanism import Mechanism
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar, all_of, clipped, where

MODES = ("hold", "ramp")


@dataclass(frozen=True)
class Stop:
    """What is decided before a stop: constants of a package, settings of the real-time loop."""

    gains: Mapping[str, Sequence[Scalar]]
    """``kp`` and ``kd`` of the feedback, n scalars each."""
    duration: Scalar
    """[s], not negative."""
    ramp: Scalar
    """1: torques go down to zero; 0: the arm is held."""
    speed: Sequence[Scalar]
    """Largest speeds of the reference, n scalars."""
    effort: Sequence[Scalar]
    """Torque limits, n scalars."""


def stop_torques(
    law: ComputedTorque,
    links: Mechanism,
    stop: Stop,
    time: Scalar,
    start: tuple[Sequence[Scalar], Sequence[Scalar]],
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    feedback: Scalar,
) -> list[Scalar]:
    """Torques of one sample [N·m or N], n scalars.

    Args:
        law: of the robot.
        links: those of its model.
        stop: gains, duration, limits.
        time: since the fault [s]; that of the end where it is not a number.
        start: the last good position and velocity.
        q: measured positions.
        qd: measured velocities.
        feedback: 1 where these are good.
    """
    t: Any = time
    now = where(t <= stop.duration, where(t > 0.0, t, 0.0), stop.duration)
    wanted = _reference(*start, stop.speed, now, 0.5 * stop.duration)
    trusted: Any = feedback
    good = all_of(trusted > 0.5, all_finite([*q, *qd]))
    at = [where(good, x, y) for x, y in zip(q, wanted.q, strict=True)]
    rates = [where(good, x, y) for x, y in zip(qd, wanted.qd, strict=True)]
    tau, _ = law.control(links, stop.gains, at, rates, wanted, (), 0.0)
    limited = [clipped(x, -limit, limit) for x, limit in zip(law.saturated(tau), stop.effort, strict=True)]
    left = where(now < stop.duration, 1.0 - now * _inverse(stop.duration), 0.0)
    part = where(stop.ramp > 0.5, left, 1.0)
    return [part * x for x in commanded(tau, limited, (), ()).tau]


def _reference(
    q: Sequence[Scalar], qd: Sequence[Scalar], fastest: Sequence[Scalar], time: Scalar, braking: Scalar
) -> Reference:
    """From q, qd to rest with constant deceleration, then still."""
    t: Any = time
    moves = t < braking
    inverse = _inverse(braking)
    part = where(moves, t * inverse, 1.0)
    speeds: list[Any] = [clipped(v, -most, most) for v, most in zip(qd, fastest, strict=True)]
    way = braking * (part - 0.5 * (part * part))
    return Reference(
        [x + v * way for x, v in zip(q, speeds, strict=True)],
        [v * (1.0 - part) for v in speeds],
        [where(moves, -(v * inverse), 0.0) for v in speeds],
    )


def _inverse(duration: Scalar) -> Scalar:
    """1/duration; of no use where that is zero."""
    d: Any = duration
    return 1.0 / where(d > 0.0, d, 1.0)


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
    fastest, most = (
        np.where(np.isfinite(limits), limits, LARGEST).tolist()
        for limits in (robot.velocity_limits, law.torque_limits)
    )
    stop = Stop(numbers, stop_time, float(mode == "ramp"), fastest, most)

    def stopping(time, stop_q, stop_qd, q, qd, feedback, **others) -> dict[str, list[Scalar]]:
        links = symbolic_links(robot, others, frame) if others else law.links()
        return {"tau": stop_torques(law, links, stop, time[0], (stop_q, stop_qd), q, qd, feedback[0])}

    sizes = {"time": 1, "stop_q": n, "stop_qd": n, "q": n, "qd": n, "feedback": 1}
    sizes |= parameter_sizes(robot, tuple(inputs))
    return traced_kernel("safe_stop", stopping, sizes, {"tau": (n,)}, dtype, None)


def stop_kernel_with_settings(robot: Robot) -> Kernel:
    """The same with everything that is decided before as inputs.

    (time, stop_q, stop_qd, q, qd, feedback, kp, kd, duration, ramp, speed, effort) -> tau.

    Args:
        robot: joints with one coordinate each.
    """
    n, law = robot.dof, ComputedTorque(robot, Gains(1.0, 1.0), torque_limits=False)
    sizes = {"time": 1, "stop_q": n, "stop_qd": n, "q": n, "qd": n, "feedback": 1}
    sizes |= {"kp": n, "kd": n, "duration": 1, "ramp": 1, "speed": n, "effort": n}

    def stopping(time, stop_q, stop_qd, q, qd, feedback, kp, kd, duration, ramp, speed, effort):
        stop = Stop({"kp": kp, "kd": kd}, duration[0], ramp[0], speed, effort)
        return {"tau": stop_torques(law, law.links(), stop, time[0], (stop_q, stop_qd), q, qd, feedback[0])}

    key = b"safe stop" + repr(robot.content()).encode()
    return traced_kernel("safe_stop", stopping, sizes, {"tau": (n,)}, "float64", key)
