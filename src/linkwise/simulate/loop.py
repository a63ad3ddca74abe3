"""The closed loop as one step over scalars: sensors, controller, drives, friction, dynamics, integrator.

The step is written once. Traced, it becomes a rollout: the loop over steps is inside the compiled code, the
state in registers. What is carried from step to step, besides q and q̇: the controller's memory, torques on
their way (a delay), the sensors' memory, and the number of the step where something depends on it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwise.algorithms.constrained.constraints import computed_in
from linkwise.algorithms.contact.candidates import prepared
from linkwise.compiler.ir.program import trace
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.rollout import NEXT, Interface, RolloutKernel, RolloutProgram, trace_rollout
from linkwise.control import Controller
from linkwise.control.controller import LIMITS
from linkwise.core.once import once
from linkwise.functions.parameters import parameter_sizes, with_symbols
from linkwise.functions.table import FUNCTIONS, mechanism_of
from linkwise.model.constraints import TARGETS, target_values
from linkwise.model.contacts import candidate_count, ground_of
from linkwise.model.mechanism import Mechanism
from linkwise.robot.kernels import made_once, shared
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar, where, while_loop
from linkwise.simulate import arguments
from linkwise.simulate.moving import Motion, needs_mass_matrix
from linkwise.simulate.noise import normal
from linkwise.simulate.plant import Plant
from linkwise.simulate.reference import Source

FUSED_OPERATIONS = {"forward_dynamics": 15_000, "contact_step": 120_000}
"""Estimated operations of an acceleration that needs the mass matrix, or of a step with contact, up to which the loop
over time is compiled into one kernel without being asked for; larger robots are stepped from Python. Others have no
limit: their code grows with the number of links."""
LONG_STAGE = 5_000
"""Estimated operations of an acceleration from which the stages of an integration step are turns of a loop, so that one
acceleration is compiled instead of four."""
CONTACT_NUMBERS = ("contact_friction", "ground_height")
WRENCH = "wrench"
"""Signal of laws that measure the wrench on the tool."""
TOUCH = "touch"
"""Carried by robots with contact, see ``Motion.touched``."""
RECORDABLE = ("q", "qd", "tau", "command", "q_measured", "qd_measured", "memory")
Values = Mapping[str, Sequence[Scalar]]


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """A controller and a plant, and how they are stepped. Two loops with equal keys have the same code."""

    plant: Plant
    controller: Controller
    source: Source
    integrator: str
    continuous: bool
    """Whether the controller runs inside the integrator; else its torque is held for a step."""
    substeps: bool
    """Whether there are several integration steps in a control period."""
    delay: int
    """Control periods between a measurement and the torque that follows from it."""
    varied: tuple[str, ...] = ()
    """Parameters of the plant's robot that are inputs: "payload" or labels."""
    record: tuple[str, ...] = ("q", "qd", "tau")
    stabilization: float | str = 0.0
    """Of constraints: a rate [1/s] or "projection", see ``Motion``."""
    payload_frame: str | None = None
    """That carries a payload which varies; None: the only leaf."""
    accuracy: float | None = None
    """Of contacts: largest residual; None for the default."""
    limits_vary: bool = False
    """Whether the torque limits of the controller are inputs."""
    written_out: bool = False
    """Whether a step has no loop over its stages, however long it is: code in constant time has none."""

    # -- what goes in and out
    # ---------------------------------------------------------------------------------------

    @property
    def dof(self) -> int:
        return self.plant.robot.dof

    @property
    def places(self) -> tuple[float, ...]:
        """Where in a step the reference is needed."""
        return (0.0, 0.5, 1.0) if self.continuous and self.integrator == "rk4" else (0.0,)

    @property
    def counted(self) -> bool:
        """Whether the number of the step matters."""
        return self.source.timed or self.plant.sensors.noisy or self.plant.push is not None

    @property
    def touches(self) -> bool:
        """Whether the plant's robot has contacts or stops."""
        return bool(self.plant.robot.contact_parts)

    @property
    def fits_a_kernel(self) -> bool:
        """Whether the loop over time is compiled without being asked for."""
        robot = self.plant.robot
        plain = not (self.touches or self.varied or robot.constraints)
        if plain and not needs_mass_matrix(mechanism_of(robot), self.plant.friction, ()):
            return True
        name = "contact_step" if self.touches else "forward_dynamics"
        return FUNCTIONS[name].size(robot) <= FUSED_OPERATIONS[name]

    def numbers(self, step: float, substeps: int) -> dict[str, np.ndarray]:
        """The parameters that are not the robot's, with their values: inputs of the kernel."""
        period = step * substeps
        settings = self.controller.settings()
        if not self.limits_vary:
            settings.pop(LIMITS, None)
        found = {"step": np.array([step]), **settings}
        if self.substeps:
            found["substeps"] = np.array([float(substeps)])
        if self.plant.friction:
            found["breakaway"] = np.array([self.plant.breakaway])
        found |= self.plant.sensors.numbers(self.dof, period) | self.plant.drives.numbers(self.dof)
        if self.plant.push is not None:
            found |= self.plant.push.numbers(self.dof)
        if self.touches:
            found |= contact_numbers(self.plant.robot)
        if (targets := target_values(self.plant.robot.constraints)).size:
            found[TARGETS] = targets
        return found | self.source.parameters(self.dof)

    @once
    def interface(self) -> Interface:
        n = self.dof
        nq = self.plant.robot.nq
        carried = {"q": nq, "qd": n}
        if self.controller.memory_size:
            carried["memory"] = self.controller.memory_size
        if self.delay:
            carried["line"] = self.delay * n
        if self.plant.sensors.differs:
            carried["sensed"] = 2 * n
        if self.counted:
            carried["number"] = 1
        if self.touches:
            carried[TOUCH] = 3 * candidate_count(self.plant.robot) + 1
        parameters = {name: np.shape(value)[-1] for name, value in self.numbers(1.0, 1).items()}
        if self.plant.sensors.noisy:
            parameters["stream"] = 2
        parameters |= parameter_sizes(self.plant.robot, self.varied)
        sizes = dict.fromkeys(RECORDABLE, (n,)) | {"memory": (self.controller.memory_size,)}
        sizes |= {"q": (nq,), "q_measured": (nq,)}
        written = {_written(name): sizes[name] for name in self.record}
        return Interface(carried, parameters, self.source.feeds(n, self.places), written)

    def links(self, values: Values) -> Mechanism:
        """The plant's robot, with symbols where parameters are inputs."""
        robot = self.plant.robot
        if not self.varied:
            return mechanism_of(robot, base_parameters=True)
        frame = (self.payload_frame or robot.default_frame()) if "payload" in self.varied else None
        symbols = {name: values[name] for name in self.varied}
        return with_symbols(mechanism_of(robot), robot, frame, symbols, base_parameters=True)

    def law(self, values: Values) -> tuple[Controller, dict[str, Any]]:
        """The controller, and its gains in their shapes.

        Args:
            values: scalars of parameters by name.
        """
        law = self.controller.bound(values[LIMITS]) if self.limits_vary else self.controller
        return law, law.shaped(values)

    # -- one step
    # ---------------------------------------------------------------------------------------------------

    def step(self, dtype: str, **values: Sequence[Scalar]) -> dict[str, list[Scalar]]:
        """One control period: the outputs of the rollout's step by name."""
        (h,) = values["step"]
        q, qd = list(values["q"]), list(values["qd"])
        memory = list(values.get("memory", ()))
        period = h * values["substeps"][0] if self.substeps else h
        number = values["number"][0] if self.counted else 0.0
        place = {p: k for k, p in enumerate(self.places)}

        def reference(at: float):
            at = at if at in place else 0.0
            return self.source.at(
                values, place[at], (number + at) * period if self.source.timed else 0.0, self.dof
            )

        def command(at: float, q, qd):
            law, gains = self.law(felt)
            return law.limited(law.links(), gains, q, qd, reference(at), memory, period)

        felt = self.with_wrench(values, number * period)
        sensors, drives = self.plant.sensors, self.plant.drives
        drawn = (
            [normal(values["stream"], number, float(k), dtype) for k in range(2 * self.dof)]
            if sensors.noisy
            else []
        )
        seen_q, seen_qd, sensed = sensors.measured(values, q, qd, values.get("sensed", ()), period, drawn)
        wanted, following = command(0.0, seen_q, seen_qd)
        sent, line = self._delayed(wanted, list(values.get("line", ())))
        tau = drives.driven(values, sent)

        if self.continuous:
            torque = lambda at, q, qd: wanted if at == 0.0 else command(at, q, qd)[0]  # noqa: E731
        else:
            torque = lambda at, q, qd: tau  # noqa: E731
        acting = self.pushed(values, torque, q, number * period)
        new_q, new_qd, touch = self.advanced(values, acting, q, qd, h, touch=values.get(TOUCH, ()))

        found = {NEXT + "q": new_q, NEXT + "qd": new_qd, NEXT + "memory": following, NEXT + "line": line}
        found |= {NEXT + "sensed": sensed, NEXT + "number": [number + 1.0], NEXT + TOUCH: touch}
        recorded = {
            "q": q,
            "qd": qd,
            "tau": tau,
            "command": wanted,
            "q_measured": seen_q,
            "qd_measured": seen_qd,
        }
        recorded["memory"] = memory
        found |= {_written(name): recorded[name] for name in self.record}
        return {name: found[name] for name in self.interface.outputs()}

    def with_wrench(self, values: Values, time: Scalar) -> Values:
        """The values, with the wrench of the plant's push where the law measures it at the same frame."""
        push, law = self.plant.push, self.controller
        if push is None or push.wrench is None or WRENCH not in law.signals:
            return values
        if (push.frame or self.plant.robot.default_frame()) != getattr(law, "frame", None):
            return values
        (begin,), (end,) = values["push_begin"], values["push_end"]
        now = [where(time < begin, 0.0, where(time < end, w, 0.0)) for w in values["push_wrench"]]
        return {**values, WRENCH: now}

    def pushed(self, values: Values, torque, q: Sequence[Scalar], time: Scalar):
        """``torque`` with the external force of the plant at a time [s], constant for a control period."""
        push = self.plant.push
        if push is None:
            return torque
        more = push.torques(self.links(values), self.plant.robot, values, q, time)
        return lambda at, q, qd: [a + b for a, b in zip(torque(at, q, qd), more, strict=True)]

    def _delayed(self, tau: list[Scalar], line: list[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
        """(the command of ``delay`` periods ago, the commands since)."""
        if not self.delay:
            return tau, []
        return line[: self.dof], [*line[self.dof :], *tau]

    def motion(self, values: Values) -> Motion:
        """How the plant moves, with symbols where parameters are inputs."""
        return Motion.of(
            self.plant.robot,
            self.links(values),
            self.plant.friction,
            self.stabilization,
            self.accuracy,
            values.get(TARGETS),
            large=self.large,
            looped=self.large and not (self.continuous or self.written_out),
        )

    @property
    def large(self) -> bool:
        """Whether the code of a step should be short."""
        return FUNCTIONS["forward_dynamics"].size(self.plant.robot) > LONG_STAGE

    def advanced(
        self,
        values: Values,
        torque,
        q,
        qd,
        h: Scalar,
        motion: Motion | None = None,
        touch: Sequence[Scalar] = (),
    ):
        """(q, q̇, touch) one control period later: one integration step, or several in a loop."""
        motion = self.motion(values) if motion is None else motion

        def once(q, qd, touch):
            if self.touches and touch:
                return motion.touched(values, torque(0.0, q, qd), q, qd, h, touch)
            return (*motion.advanced(values, self.integrator, torque, q, qd, h), [])

        if not self.substeps:
            return once(q, qd, list(touch))
        n, m, (count,) = len(q), len(q) + len(qd), values["substeps"]

        def body(k, *state):
            new = once(state[:n], state[n:m], list(state[m:]))
            return (k + 1.0, *new[0], *new[1], *new[2])

        _, *state = while_loop(lambda k, *_: k < count, body, (0.0 * count, *q, *qd, *touch))
        return state[:n], state[n:m], state[m:]

    # -- the kernel
    # -------------------------------------------------------------------------------------------------

    def key(self) -> bytes:
        """Identifies everything that the step computes; where frames are held to the world is an input."""
        robot = self.plant.robot
        sensors, drives = self.plant.sensors, self.plant.drives
        parts = (
            robot.content_without_targets(), self.plant.friction, self._pushing(),
            (sensors.noisy, sensors.counts, sensors.differs), (drives.ideal, drives.bits is None),
            self.controller.key(), type(self.source).__name__, self.integrator, self.continuous, self.substeps,
            self.delay, self.varied, self.record, self.stabilization, repr(self.interface), self.payload_frame,
            self.accuracy, self.limits_vary, self._matrices(), self.written_out,
        )  # fmt: skip
        return hashlib.sha256(repr(parts).encode()).digest()

    def _pushing(self) -> tuple[bool, str | None] | None:
        """What of the external force decides the code."""
        push = self.plant.push
        return None if push is None else (push.torque is None, push.frame)

    def _matrices(self) -> list[tuple[str, tuple[int, ...]]]:
        """Gains that are matrices, with their shapes."""
        return [(name, np.shape(v)) for name, v in self.controller.gains.items() if np.ndim(v) == 2]

    def kernel(self) -> RolloutKernel:
        """The rollout, made once per robot."""
        own = self.controller.known

        def make(robot: Robot) -> RolloutKernel:
            loop = replace(self, plant=replace(self.plant, robot=robot))
            identity = loop.key() if own else loop._traced_key()
            made = RolloutKernel("simulation", loop.interface, loop.program, identity)
            made.origin = (type(loop).kernel, (loop,))
            return shared(robot, made, ("simulation", identity))

        return made_once(self.plant.robot, ("rollout", self.key(), None if own else self.controller), make)

    def _traced_key(self) -> bytes:
        """Identifies a controller that is not one of this package: by its traced program."""
        from linkwise.compiler.emit import c

        return hashlib.sha256(c.source(self.program("float64").step).encode()).digest()

    def program(self, dtype: str) -> RolloutProgram:
        with computed_in(dtype):
            return trace_rollout(
                lambda **values: self.step(dtype, **values),
                self.interface,
                name="simulation",
                dtype=dtype,  # type: ignore[arg-type]
            )


def step_of(
    robot: Robot, links: Mechanism, integrator: str = "semi_implicit_euler", friction: bool = True
) -> Callable[..., Any]:
    """One integration step over scalars with the robot's constraints and contacts, as ``simulate`` has them by default:
    a function (q, qd, tau, step [s]) -> (q, qd)."""
    motion = Motion.of(robot, links, friction, arguments.stabilization(robot, None))
    values = {"breakaway": [1.0], **{name: x.tolist() for name, x in contact_numbers(robot).items()}}
    return lambda q, qd, tau, step: motion.advanced(values, integrator, lambda *_: tau, q, qd, step)


def step_kernel(robot: Robot, integrator: str = "semi_implicit_euler") -> Kernel:
    """One integration step of a robot: (q, qd, tau, step [s]) -> (q, qd), any leading axes."""
    n, nq = robot.dof, robot.nq
    sizes, shapes = {"q": nq, "qd": n, "tau": n, "step": 1}, {"next_q": (nq,), "next_qd": (n,)}

    def one_step(q, qd, tau, step):
        return step_of(robot, mechanism_of(robot, base_parameters=True), integrator)(q, qd, tau, step[0])

    def build(dtype: str):
        with computed_in(dtype):
            return trace(one_step, sizes, shapes, name="step", dtype=dtype)  # type: ignore[arg-type]

    key = hashlib.sha256(repr((robot.content(), integrator)).encode()).digest()
    made = Kernel("step", sizes.items(), shapes.items(), "float64", build, key)
    made.origin = (step_kernel, (robot, integrator))
    return made


def contact_numbers(robot: Robot) -> dict[str, np.ndarray]:
    """Friction and height of the ground of every candidate: inputs of the kernel, which may vary."""
    candidates = prepared(robot)
    ground = ground_of(robot.contact_parts)
    if not candidates:
        return {}
    return {
        "contact_friction": np.array([each.friction for each in candidates]),
        "ground_height": np.full(len(candidates), ground.height),
    }


def _written(name: str) -> str:
    return f"record_{name}"
