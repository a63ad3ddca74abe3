"""What every controller is: a pure function of scalars.

Its inputs are the measured state, the reference, its own memory and its gains; its results are torques and the memory
for the next sample. Scalars may be numbers, arrays or symbols, so the same code runs in Python, is compiled to a
kernel or C, and is fused with friction, dynamics and integrator into one loop (see ``linkwise.simulate``). e = q −
q_d throughout.
"""

from __future__ import annotations

import copy
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from linkwise.algorithms import coordinates
from linkwise.arguments.flags import flag
from linkwise.compiler.kernel import Kernel, traced_kernel
from linkwise.control.bounds import Command, bounded, commanded
from linkwise.control.gains import Gains
from linkwise.errors import UnknownNameError, suggest
from linkwise.functions.parameters import PAYLOAD, parameter_sizes, with_symbols
from linkwise.functions.table import mechanism_of
from linkwise.model.mechanism import Mechanism
from linkwise.robot.robot import Robot
from linkwise.scalar import Condition, Scalar

LIMITS = "torque_limits"
"""Name of the torque limits among the settings of a law."""
UNITS = {
    "kp": "proportional gains [1/s^2]",
    "kd": "derivative gains [1/s]",
    "ki": "integral gains [1/s^3]",
    LIMITS: "largest torques or forces [N*m or N], not negative; a huge number is none",
}
"""What settings are, in words, where a law does not say otherwise."""


@dataclass(frozen=True)
class Reference:
    """Where the joints should be: q_d (nq scalars), q̇_d and q̈_d (n each)."""

    q: Sequence[Scalar]
    qd: Sequence[Scalar]
    qdd: Sequence[Scalar]


class Controller(ABC):
    """A control law for one robot model, which may differ from the robot it controls.

    The numbers of a law, ``gains``, and its torque limits are its settings: constants of a kernel, or inputs of it
    with ``tunable``, whose values are then chosen in every sample. A law needs nothing for that: ``control`` gets the
    values from its argument ``gains``, in the shapes of those of the constructor.

    Args:
        robot: the model that the law uses, which may differ from the robot that is controlled.
        gains: numbers of the law by name: arrays (k,), mostly (n,), or matrices (k, m).
        torque_limits: bounds to which the torques are saturated [N·m or N], one number or (n,); None: the effort
            limits of the model where it has some, ``False``: none.
    """

    feedback: ClassVar[bool] = True
    """Whether the law has gains: then its constructor takes (robot, gains), else (robot)."""
    holds: ClassVar[bool] = False
    """Whether the law uses the constraints of its model: then where frames are held is part of its code."""
    has_frame: ClassVar[bool] = False
    """Whether the law has a tool: then its constructor takes ``frame``."""
    structure: tuple[str, ...] = ()
    """Gains that decide what has to be computed, such as a selection of directions: always constants of kernels."""
    signals: tuple[str, ...] = ()
    """Gains that are measured, such as a wrench: always inputs of the controller's kernel."""
    saturates: ClassVar[bool] = True
    """Whether torque limits matter to the law."""
    units: ClassVar[dict[str, str]] = {}
    """What gains are, with units in ASCII, where ``UNITS`` does not say it."""
    memory_size: int = 0
    """Scalars that the controller keeps from sample to sample, zero at the start."""

    def __init__(self, robot: Robot, gains: Mapping[str, np.ndarray], torque_limits=None):
        self.robot = robot
        self.gains = dict(gains)
        self.torque_limits: Any = limits_of_torque(robot, torque_limits)
        self.check_gains()

    def check_gains(self) -> None:  # noqa: B027  most laws take all gains
        """Raise a ValueError for gains with which no motion is stable; called for every change of gains in Python."""

    @classmethod
    def gains_for(cls, robot: Robot, frequency, damping=1.0) -> Gains:
        """The gains with which errors of an exact model decay like ë + 2ζω ė + ω² e = 0, with ω = ``frequency``
        and ζ = ``damping``.

        Args:
            robot: the robot.
            frequency: ω [rad/s], one number or (n,).
            damping: ζ, one number or (n,).
        """
        return Gains.from_frequency(frequency, damping)

    @classmethod
    def from_gains(cls, robot: Robot, gains: Gains, **options: Any) -> Controller:
        """A law that has ``feedback`` from its gains, those of ``gains_for`` or explicit ones.

        Args:
            robot: the model that the law uses.
            gains: its gains.
            options: further arguments of the law.
        """
        law: Any = cls
        return law(robot, gains, **options)

    @abstractmethod
    def control(
        self,
        links: Mechanism,
        gains: Mapping[str, Sequence[Scalar]],
        q: Sequence[Scalar],
        qd: Sequence[Scalar],
        reference: Reference,
        memory: Sequence[Scalar],
        period: Scalar,
    ) -> tuple[list[Scalar], list[Scalar]]:
        """The law: torques for one sample, over scalars.

        Args:
            links: those of the controller's model.
            gains: values of the gains by name: lists of scalars, for a matrix lists of rows.
            q: measured positions, nq scalars.
            qd: measured velocities, n scalars.
            reference: desired positions, velocities and accelerations.
            memory: what the law remembered after the last sample.
            period: the sample period [s].

        Returns:
            Torques, n scalars, which ``limited`` bounds, and the next memory.
        """

    def limited(self, links, gains, q, qd, reference, memory, period) -> tuple[list[Scalar], list[Scalar]]:
        """What ``control`` gives, within the torque limits; NaN stays NaN, so a simulation shows it.

        Args:
            links, gains, q, qd, reference, memory, period: as for ``control``.
        """
        tau, following = self.control(links, gains, q, qd, reference, memory, period)
        return self.saturated(tau), following

    def commanded(self, links, gains, q, qd, reference, memory, period) -> Command:
        """What goes to the motors: ``limited``, with the rule for numbers that are not finite (``bounds``).

        Args:
            links, gains, q, qd, reference, memory, period: as for ``control``.
        """
        wanted, following = self.control(links, gains, q, qd, reference, memory, period)
        return commanded(wanted, self.saturated(wanted), following, memory, self.valid_limits)

    def options(self) -> tuple:
        """What besides model, gains and limits decides what ``control`` computes."""
        return ()

    # -- shared
    # -----------------------------------------------------------------------------------------------------

    def links(self) -> Mechanism:
        """The model prepared for torques."""
        return mechanism_of(self.robot, base_parameters=True)

    def saturated(self, tau: Sequence[Scalar]) -> list[Scalar]:
        """The torques within the limits, none at joints without a motor; NaN stays NaN."""
        joints = self.robot.coordinate_joints
        motors = [joint.name not in self.robot.passive for joint in joints for _ in range(joint.dof)]
        return [
            bounded(t, limit) if motor else 0.0
            for t, limit, motor in zip(tau, self.torque_limits, motors, strict=True)
        ]

    # -- settings: gains and limits that may change at run time
    # -----------------------------------------------------------------------------------------------------

    def settings(self) -> dict[str, np.ndarray]:
        """Gains and torque limits by name, each as a vector: row by row for matrices; without ``structure``."""
        chosen = {name: values for name, values in self.gains.items() if name not in self.structure}
        found = {name: np.ravel(np.asarray(values, dtype=float)) for name, values in chosen.items()}
        return {**found, LIMITS: np.array(self.torque_limits)} if self.saturates else found

    def meaning(self, name: str) -> str:
        """What a setting is, in words."""
        return self.units.get(name, UNITS.get(name, name.replace("_", " ")))

    def shaped(self, values: Mapping[str, Sequence[Scalar]]) -> dict[str, Any]:
        """Gains for ``control``: vectors of scalars, lists of rows where the gain is a matrix; with ``structure``.

        Args:
            values: scalars by name, row by row; other names are passed on.
        """
        found: dict[str, Any] = {name: np.ravel(self.gains[name]).tolist() for name in self.structure}
        found |= values
        for name, own in self.gains.items():
            if np.ndim(own) == 2 and name in found:
                columns, flat = np.shape(own)[1], list(found[name])
                found[name] = [flat[k : k + columns] for k in range(0, len(flat), columns)]
        return found

    def with_gains(self, **values: Any) -> Controller:
        """The same law with other gains.

        Args:
            values: numbers by name, each of the shape of its gain or one number for all of it.

        Raises:
            UnknownNameError: the law has no such gain.
            ValueError: the numbers are not finite, have another shape, or no motion can be stable with them.
        """
        made = copy.copy(self)
        made.gains = dict(self.gains)
        for name, value in values.items():
            if name not in self.gains:
                raise UnknownNameError(
                    f"{type(self).__name__}: no gain {name!r}; {suggest(name, self.gains)}"
                )
            shape = np.shape(self.gains[name])
            try:
                made.gains[name] = np.array(np.broadcast_to(np.asarray(value, dtype=float), shape))
            except (TypeError, ValueError):
                raise ValueError(f"{name}: expected one number or shape {shape}, got {value!r}") from None
            if not np.isfinite(made.gains[name]).all():
                raise ValueError(f"{name}: expected finite numbers, got {value!r}")
        made.check_gains()
        return made

    def bound(self, limits: Sequence[Scalar]) -> Controller:
        """The same law with scalars as torque limits; one that is no number or negative is a fault of ``commanded``.

        Args:
            limits: n scalars [N·m or N]; infinite: no limit.
        """
        made = copy.copy(self)
        given: list[Any] = list(limits)
        made.torque_limits = given
        made.valid_limits = [x >= 0.0 for x in given]
        for name, part in vars(self).items():
            if isinstance(part, Controller):  # a law inside of this one
                setattr(made, name, part.bound(limits))
        return made

    valid_limits: Sequence[Condition] = ()
    """Conditions that torque limits which are inputs must meet; see ``bound``."""

    @property
    def known(self) -> bool:
        """Whether ``key`` is enough to find compiled code again: for the laws of this package. Another law is
        traced anew for every object, because what its ``control`` depends on is unknown."""
        return type(self).__module__.startswith("linkwise.")

    def key(self) -> bytes:
        """Stands for everything that ``control`` computes, the values of other gains than ``structure`` apart; see
        ``known``."""
        content = self.robot.content() if self.holds else self.robot.content_without_targets()
        fixed = [(name, np.ravel(self.gains[name]).tolist()) for name in self.structure]
        parts = (type(self).__qualname__, content, self.torque_limits.tobytes(), self.options(), fixed)
        return hashlib.sha256(repr(parts).encode()).digest()

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
        """The controller alone as a kernel: (q, qd, q_d, qd_d, qdd_d, memory, settings, inputs) -> (tau, next_memory,
        fault), gains and limits as constants, or as settings with ``tunable``.

        Its C source is what a digital controller with this sample period runs. Torques are finite and within their
        limits for all inputs: they are zero where a number that the law needs is not finite.

        Args:
            period: the sample period [s].
            dtype: "float64" or "float32".
            inputs: parameters of the model that stay inputs, see ``Robot.kernel``: "payload" or labels.
            frame: that carries the payload; None: the only leaf.
            fault: whether there is an output ``fault``, 1 where a number that the law needs is not finite, or a torque
                limit that is an input is negative, else 0.
            tunable: whether gains and torque limits are inputs, in the order of ``settings()``.
        """
        n, m = self.robot.dof, self.memory_size
        nq = self.robot.nq
        sizes = {"q": nq, "qd": n, "q_d": nq, "qd_d": n, "qdd_d": n, "memory": m}
        shapes: dict[str, tuple[int, ...]] = {"tau": (n,), "next_memory": (m,), "fault": (1,)}
        if not m:
            del sizes["memory"], shapes["next_memory"]
        if not flag("fault", fault):
            del shapes["fault"]
        settings = self.settings()
        tuned = tuple(settings) if flag("tunable", tunable) else tuple(self.signals)
        sizes |= {name: settings[name].size for name in tuned}
        sizes |= parameter_sizes(self.robot, tuple(inputs))
        constants = {name: values.tolist() for name, values in settings.items() if name != LIMITS}

        def law(q, qd, q_d, qd_d, qdd_d, **others) -> dict[str, Any]:
            memory = others.pop("memory", ())
            given = {name: others.pop(name) for name in tuned}
            own = self.bound(given.pop(LIMITS)) if LIMITS in given else self
            gains = self.shaped({**constants, **given})
            links = symbolic_links(self.robot, others, frame) if others else self.links()
            found = own.commanded(links, gains, q, qd, Reference(q_d, qd_d, qdd_d), memory, period)
            outputs = {"tau": found.tau, "next_memory": found.memory, "fault": [found.fault]}
            return {name: outputs[name] for name in shapes}

        fixed = [(name, constants[name]) for name in constants if name not in tuned]
        shapes_of_gains = [(name, np.shape(values)) for name, values in self.gains.items()]
        values = repr((period, tuple(inputs), frame, fault, tuned, fixed, shapes_of_gains)).encode()
        made = traced_kernel(
            type(self).__name__.lower(),
            law,
            sizes,
            shapes,
            dtype,
            self.key() + values if self.known else None,
            [name for name in tuned if name not in self.signals],
        )
        made.origin = (_remade_kernel, (self, period, dtype, tuple(inputs), frame, fault, bool(tunable)))
        return made

    def __repr__(self) -> str:
        gains = ", ".join(
            f"{name}={np.array2string(values, precision=4)}" for name, values in self.gains.items()
        )
        return f"<{type(self).__name__} of {self.robot.name}: {gains}>"


def _remade_kernel(
    controller: Controller,
    period: float,
    dtype: str,
    inputs: tuple[str, ...],
    frame: str | None,
    fault: bool,
    tunable: bool,
) -> Kernel:
    """Unpickle a kernel."""
    return controller.kernel(period, dtype=dtype, inputs=inputs, frame=frame, fault=fault, tunable=tunable)


def symbolic_links(
    robot: Robot, values: Mapping[str, Sequence[Scalar]], frame: str | None = None
) -> Mechanism:
    """The model with symbols where parameters are inputs; a payload is at ``frame``, by default the only leaf."""
    frame = (frame or robot.default_frame()) if PAYLOAD in values else None
    return with_symbols(mechanism_of(robot), robot, frame, values, base_parameters=True)


def limits_of_torque(robot: Robot, torque_limits=None) -> np.ndarray:
    """The largest torques [N·m or N], shape (n,): those given (one number, n, or those of the joints behind a floating
    base), the robot's for None, and infinity for False or where the robot has none.
    """
    if torque_limits is None:
        return robot.effort_limits
    if torque_limits is False:
        return np.full(robot.dof, np.inf)
    floats = robot.coordinate_joints[0].type == "floating"
    try:
        given = np.asarray(torque_limits, dtype=float)
        if floats and given.shape == (robot.dof - 6,):
            given = np.concatenate([np.full(6, np.inf), given])
        found = np.array(np.broadcast_to(given, (robot.dof,)))
    except (TypeError, ValueError):
        motors = f" or {robot.dof - 6} (without those of the base)" if floats else ""
        raise ValueError(
            f"torque_limits: expected one number or {robot.dof}{motors}, got {torque_limits!r}"
        ) from None
    if not (found > 0).all():
        raise ValueError(f"torque_limits: expected positive numbers, got {found}")
    return found


def errors(
    links: Mechanism, q: Sequence[Scalar], qd: Sequence[Scalar], reference: Reference
) -> tuple[list[Scalar], list[Scalar]]:
    """(e, ė) with e = q − q_d; for ball and floating joints e is the step from q_d to q."""
    e = coordinates.difference(links, reference.q, q)
    return e, [a - b for a, b in zip(qd, reference.qd, strict=True)]
