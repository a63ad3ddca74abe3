"""Whole-body control of an arm as a controller among others: the tool and the joints follow a motion of the joints
within the limits of torques, velocities and positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.arguments.numbers import Numbers
from linkwise.compiler.kernel import Kernel
from linkwise.control.bounds import commanded
from linkwise.control.controller import LIMITS, Controller
from linkwise.control.gains import Gains
from linkwise.control.whole_body.law import WRITTEN_OUT, WholeBody
from linkwise.control.whole_body.limits import UNLIMITED, MotionLimits
from linkwise.control.whole_body.tasks import PoseTask, PostureTask, TaskError
from linkwise.language import array, empty, straight, zeros
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar, minimum

FREQUENCY = 10.0
"""Natural frequency where no gains are given [rad/s]."""
TOOL, POSTURE = "tool", "posture"
WEIGHTS = {TOOL: 1.0, POSTURE: 0.01}


class WholeBodyTracking(Controller):
    """``WholeBody`` with the pose of a frame and a posture as tasks, whose targets are a motion of the joints.

    Where no limit is active, errors decay like ë + k_d ė + k_p e = 0. Limits of torques are never exceeded, those of
    velocities and positions as long as the torques allow it; what cannot be followed is given up by the weights.

    Args:
        robot: the model; joints with one coordinate each.
        frame: the tool; None: the only leaf.
        gains: k_p [1/s²] and k_d [1/s] of both tasks, one number each; None: those of a natural frequency of 10 rad/s,
            critically damped. The law's gains are (weight, k_p, k_d) of each task.
        torque_limits: see ``Controller``.

    Raises:
        ValueError: an argument cannot be right; the message names it.
    """

    has_frame = True
    units: ClassVar[dict[str, str]] = {
        TOOL: "of the tool's pose: weight [1], proportional gain [1/s^2], derivative gain [1/s]",
        POSTURE: "of the posture: weight [1], proportional gain [1/s^2], derivative gain [1/s]",
    }

    def __init__(
        self, robot: Robot, frame: str | None = None, gains: Gains | None = None, *, torque_limits: Any = None
    ):
        if robot.nq != robot.dof:
            raise TaskError(
                f"{robot.name}: whole_body_tracking is for joints with one coordinate each; control.WholeBody takes "
                "floating bases and supports"
            )
        given = Gains.from_frequency(FREQUENCY) if gains is None else gains
        check = Numbers()
        kp, kd = (check.each(name, getattr(given, name), 1, least=0.0)[0] for name in ("kp", "kd"))
        self.frame = robot.default_frame() if frame is None else frame
        tasks = [PoseTask(self.frame, name=TOOL), PostureTask(name=POSTURE)]
        self.law = WholeBody(robot, tasks, MotionLimits(torque=torque_limits))
        super().__init__(
            robot, {name: np.array([weight, kp, kd]) for name, weight in WEIGHTS.items()}, torque_limits
        )

    @classmethod
    def from_gains(cls, robot: Robot, gains: Gains, **options: Any) -> WholeBodyTracking:
        """From gains.

        Args:
            robot: the model.
            gains: k_p and k_d.
            options: further arguments.
        """
        return cls(robot, gains=gains, **options)

    def check_gains(self) -> None:
        for name, (weight, *rates) in self.gains.items():
            if not weight > 0.0 or min(rates) < 0.0:
                raise TaskError(
                    f"{name}: expected a positive weight and gains from 0 on, got {self.gains[name]}"
                )

    def options(self) -> tuple[Any, ...]:
        return (self.frame, self.law.iterations)

    def control(self, links, gains, q, qd, reference, memory, period):
        state, motion = (q, qd), (reference.q, reference.qd, reference.qdd)
        q, qd, q_d, qd_d, qdd_d = (array(list(x)) for x in (*state, *motion))
        tau = self.sample(q, qd, q_d, qd_d, qdd_d, {name: list(gains[name]) for name in WEIGHTS}, period)
        return [tau[k] for k in range(self.robot.dof)], []

    def sample(
        self,
        q: Any,
        qd: Any,
        q_d: Any,
        qd_d: Any,
        qdd_d: Any,
        gains: Mapping[str, Sequence[Any]],
        period: Scalar,
    ) -> Any:
        """Torques (n,) of one sample, over arrays of ``language``.

        Args:
            q, qd: the state.
            q_d, qd_d, qdd_d: the reference.
            gains: weight, k_p and k_d by name of the task.
            period: of the sample [s].
        """
        limits = [
            x if isinstance(x, float) and x < UNLIMITED else minimum(x, UNLIMITED) for x in self._limits()
        ]
        bounds = self.law.bounds.with_torque(limits)
        law = self.law.with_bounds(replace(bounds, period=period))  # type: ignore[arg-type]
        targets = empty(law.target_slices()[-1][2].stop)
        straight(law.references, [q_d, qd_d, qdd_d], [targets])
        table = array([list(gains[name]) for name in WEIGHTS])
        given = {"q": q, "qd": qd, "targets": targets, "gains": table, "start": zeros(law.rows.count)}
        return law.sample(given).run()["tau"]

    def _limits(self) -> list[Any]:
        """Of the motors: numbers, or scalars where they are inputs."""
        limits = self.torque_limits
        return [float(limits[k]) if isinstance(limits, np.ndarray) else limits[k] for k in self.law.motors]

    def kernel(
        self,
        period: float,
        *,
        dtype: str = "float64",
        inputs: Sequence[str] = (),
        frame: str | None = None,
        fault: bool = False,
        tunable: bool = False,
    ) -> Kernel:
        """As ``Controller.kernel``, with loops and in constant time; parameters of the model cannot be inputs.

        Args:
            period: the sample period [s].
            dtype: "float64" or "float32".
            inputs: must be empty.
            frame: that carries the payload.
            fault: whether there is an output ``fault``.
            tunable: whether gains and torque limits are inputs.
        """
        from linkwise.compiler.trace.room import in_one_room
        from linkwise.compiler.trace.traced_function import TracedFunction

        if inputs:
            raise TaskError(
                "whole_body_tracking takes no parameters of the model at run time, such as a payload"
            )
        n, settings = self.robot.dof, self.settings()
        tuned = tuple(settings) if flag("tunable", tunable) else ()
        shapes = {name: (n,) for name in ("q", "qd", "q_d", "qd_d", "qdd_d")}
        shapes |= {name: settings[name].shape for name in tuned}
        fault = flag("fault", fault)

        def law(q: Any, qd: Any, q_d: Any, qd_d: Any, qdd_d: Any, **others: Any) -> dict[str, Any]:
            own = self.bound([others[LIMITS][k] for k in range(n)]) if LIMITS in others else self
            gains = {
                name: [(others if name in others else settings)[name][k] for k in range(3)]
                for name in WEIGHTS
            }
            assert isinstance(own, WholeBodyTracking)
            tau = own.sample(q, qd, q_d, qd_d, qdd_d, gains, period)
            wanted = [tau[k] for k in range(n)]
            found = commanded(wanted, own.saturated(wanted), [], [], own.valid_limits)
            outputs = {"tau": array(found.tau), "fault": array([found.fault])}
            return outputs if fault else {"tau": outputs["tau"]}

        traced: list[TracedFunction] = []

        def build(precision: Any) -> Any:
            if not traced:
                traced.append(
                    TracedFunction(
                        law,
                        shapes,
                        "whole_body_tracking",
                        longest=WRITTEN_OUT,
                        loops=True,
                        constant_time=True,
                    )
                )
            program: Any = traced[0].program(precision)
            return in_one_room(program, "tables")

        outputs = {"tau": (n,), "fault": (1,)} if fault else {"tau": (n,)}
        fixed = [(name, values.tolist()) for name, values in settings.items() if name not in tuned]
        key = self.key() + repr((period, fault, tuned, fixed)).encode()
        sizes = {name: shape[0] for name, shape in shapes.items()}
        return Kernel("whole_body_tracking", sizes.items(), outputs.items(), dtype, build, key)
