"""An observer of the state: joint velocities from measured positions and the torques that were applied.

S. Nicosia, P. Tomei, 1990: the model predicts, the error of the predicted position corrects. Differentiating an
encoder amplifies its noise; the observer has the model's accelerations and needs no derivative.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from linkwise.algorithms import coordinates
from linkwise.compiler.kernel import Kernel
from linkwise.control.controller import symbolic_links, traced_kernel
from linkwise.control.gains import Gains
from linkwise.errors import LinkwiseError
from linkwise.functions.parameters import parameter_sizes
from linkwise.functions.table import mechanism_of
from linkwise.model.mechanism import Mechanism
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar


class ObserverError(LinkwiseError, ValueError):
    """There is no observer for this robot; the message says why."""


class StateObserver:
    """q̂⁺ = q̂ + h (v̂ + L_1 e), v̂⁺ = v̂ + h (q̈(q, v̂, τ) + L_2 e) with e = q − q̂ and the sample period h.

    Errors of an exact model decay like ë + L_1 ė + L_2 e = 0, up to the step h.

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
        gains = Gains.from_frequency(frequency, damping).vectors(robot.dof)
        self.robot = robot
        self.position_gain, self.velocity_gain = gains["kd"], gains["kp"]

    def __repr__(self) -> str:
        return f"<StateObserver of {self.robot.name}>"

    def following(
        self,
        links: Mechanism,
        q: Sequence[Scalar],
        tau: Sequence[Scalar],
        estimated_q: Sequence[Scalar],
        estimated_qd: Sequence[Scalar],
        period: Scalar,
    ) -> tuple[list[Scalar], list[Scalar]]:
        """The next estimates of position and velocity, over scalars.

        Args:
            links: those of the model.
            q: measured positions.
            tau: torques applied from now on.
            estimated_q: the estimate of the position.
            estimated_qd: the estimate of the velocity.
            period: sample period [s].
        """
        e = coordinates.difference(links, estimated_q, q)
        qdd = coordinates.accelerations(links, q, estimated_qd, tau, friction=True).qdd
        rates = zip(e, estimated_qd, qdd, self.position_gain, self.velocity_gain, strict=True)
        changes = [(v + float(a) * x, w + float(b) * x) for x, v, w, a, b in rates]
        return (
            [x + period * d for x, (d, _) in zip(estimated_q, changes, strict=True)],
            [v + period * d for v, (_, d) in zip(estimated_qd, changes, strict=True)],
        )

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
        n = self.robot.dof
        sizes = {"q": n, "tau": n, "estimated_q": n, "estimated_qd": n}
        sizes |= parameter_sizes(self.robot, tuple(inputs))

        def sample(q, tau, estimated_q, estimated_qd, **others):
            links = (
                symbolic_links(self.robot, others, frame)
                if others
                else mechanism_of(self.robot, base_parameters=True)
            )
            found = self.following(links, q, tau, estimated_q, estimated_qd, period)
            return {"next_q": found[0], "next_qd": found[1]}

        numbers = (self.position_gain.tobytes(), self.velocity_gain.tobytes(), period, tuple(inputs), frame)
        key = hashlib.sha256(repr((self.robot.content(), numbers)).encode()).digest()
        return traced_kernel("state_observer", sample, sizes, {"next_q": (n,), "next_qd": (n,)}, dtype, key)
