"""An observer of the state: joint velocities from measured positions and the torques that were applied.

S. Nicosia, P. Tomei, 1990: the model predicts, the error of the predicted position corrects. Differentiating an
encoder amplifies its noise; the observer has the model's accelerations and needs no derivative.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.compiler.kernel import Kernel, traced_kernel
from linkwise.control.gains import Gains
from linkwise.control.kalman_filter import METHOD, without_jumps
from linkwise.errors import LinkwiseError
from linkwise.functions.evaluation import outputs_of
from linkwise.functions.parameters import parameter_sizes
from linkwise.functions.table import Setting, function_named
from linkwise.model.checks import check_no_contacts
from linkwise.robot.robot import Robot

FRICTION_SPEED = 3e-3
"""Speed over which friction that jumps changes its direction [rad/s or m/s], at least."""


class ObserverError(LinkwiseError, ValueError):
    """There is no observer for this robot; the message says why."""


class StateObserver:
    """q̂⁺ = q̂ + h (v̂ + L_1 e), v̂⁺ = v̂ + h (q̈(q, v̂, τ) + L_2 e) with e = q − q̂ and the sample period h.

    q̈ is the robot's forward dynamics, with its friction and constraints; friction that jumps changes its direction over
    3e-3 rad/s or m/s, more where a step could turn a joint back and forth. Errors of an exact model decay like
    ë + L_1 ė + L_2 e = 0, up to the step h.

    Args:
        robot: the model, joints with one coordinate each.
        frequency: natural frequency of the error [rad/s], one number or (n,).
        damping: of the error.

    Raises:
        ObserverError: the robot has ball or floating joints.
    """

    def __init__(self, robot: Robot, frequency: float | np.ndarray = 100.0, damping: float = 1.0):
        if robot.nq != robot.dof:
            raise ObserverError(
                f"{robot.name}: the state observer takes joints with one coordinate each, not ball or floating joints"
            )
        check_no_contacts(robot, "the state observer")
        gains = Gains.from_frequency(frequency, damping).vectors(robot.dof)
        self.robot = robot
        self.position_gain, self.velocity_gain = gains["kd"], gains["kp"]

    def __repr__(self) -> str:
        return f"<StateObserver of {self.robot.name}>"

    def kernel(
        self,
        period: float,
        *,
        dtype: str = "float64",
        inputs: Sequence[str] = (),
        frame: str | None = None,
    ) -> Kernel:
        """One sample as a kernel: (q, tau, estimated_q, estimated_qd, inputs) -> (next_q, next_qd).

        Args:
            period: sample period [s].
            dtype: "float64" or "float32".
            inputs: parameters of the model that stay inputs: "payload" or labels.
            frame: that carries the payload; None: the only leaf.
        """
        n, inputs = self.robot.dof, tuple(inputs)
        sizes = {"q": n, "tau": n, "estimated_q": n, "estimated_qd": n, **parameter_sizes(self.robot, inputs)}
        model = without_jumps(self.robot, period, FRICTION_SPEED, inputs)
        setting = Setting(model, frame=frame, parameters=inputs, base_parameters=True)

        def sample(q, tau, estimated_q, estimated_qd, **others):
            given = {"q": q, "qd": estimated_qd, "tau": tau, **others}
            (qdd,) = outputs_of(function_named("forward_dynamics"), setting, METHOD, **given).values()
            e = [a - b for a, b in zip(q, estimated_q, strict=True)]
            rows = zip(e, estimated_q, estimated_qd, qdd, self.position_gain, self.velocity_gain, strict=True)
            new = [
                (x + period * (v + float(a) * d), v + period * (w + float(b) * d))
                for d, x, v, w, a, b in rows
            ]
            return {"next_q": [x for x, _ in new], "next_qd": [v for _, v in new]}

        numbers = (self.position_gain.tobytes(), self.velocity_gain.tobytes(), period, inputs, frame)
        content, shapes = (self.robot.content(), numbers), {"next_q": (n,), "next_qd": (n,)}
        return traced_kernel("state_observer", sample, sizes, shapes, dtype, content)
