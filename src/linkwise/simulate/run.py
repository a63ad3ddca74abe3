"""``simulate``: one call from a plant, a controller and a reference to a simulated motion."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise import joint_laws
from linkwise.algorithms.singularity import may_be_singular
from linkwise.arguments.flags import flag, flag_or_none
from linkwise.compiler.runtime.arrays import is_foreign
from linkwise.control import Controller
from linkwise.control.controller import LIMITS, limits_of_torque
from linkwise.errors import ShapeError, SimulationWarning, SlowWarning, UnknownNameError, suggest, warn
from linkwise.functions.table import mechanism_of
from linkwise.model.checks import check_moves
from linkwise.model.constraints import TARGETS
from linkwise.model.contacts import candidate_count
from linkwise.model.inertia import LABELS
from linkwise.robot.contacting import MOST_CANDIDATES, too_many
from linkwise.robot.methods import without_names
from linkwise.robot.robot import Robot
from linkwise.simulate import arguments, noise
from linkwise.simulate.arguments import SimulationError
from linkwise.simulate.integrators import INTEGRATORS
from linkwise.simulate.loop import CONTACT_NUMBERS, RECORDABLE, TOUCH, ClosedLoop
from linkwise.simulate.plant import Plant
from linkwise.simulate.reference import source_of
from linkwise.simulate.result import Result
from linkwise.simulate.watch import Divergence, check_start, first_lost

MOST_REPEATED = 1_000_000
"""Control periods that are simulated again, with every row recorded, to find out when a motion diverged."""

Arrays = dict[str, Any]


def simulate(
    plant: Robot | Plant,
    controller: Controller | Callable[..., Any],
    reference: Any = None,
    *,
    duration: float,
    step: float = 1e-3,
    control_period: float | None = None,
    continuous: bool = False,
    integrator: str = "rk4",
    every: int = 1,
    q: Any = None,
    qd: Any = None,
    delay: int = 0,
    vary: Mapping[str, Any] | None = None,
    record: Sequence[str] = (),
    seed: int = 0,
    first: int = 0,
    dtype: str = "float64",
    threads: int | None = None,
    fused: bool | None = None,
    torque_limits: Any = None,
    stabilization: float | str | None = None,
    accuracy: float | None = None,
    warn: bool = True,
) -> Result:
    """Simulate a controlled robot, or a batch of them, for ``duration`` [s].

    With arrays of CuPy, PyTorch or JAX among ``q``, ``qd`` and ``vary`` all robots are simulated on their device, with
    the same bits, and the results are of the same kind. A motion that diverges, a joint that leaves its range (only
    stops of ``with_contacts`` hold it) and a constraint that is not kept cause a ``SimulationWarning`` and are part of
    the result: ``divergence``, ``diverged_at``, ``left_range``, ``unmet``.

    Args:
        plant: a robot, or a ``Plant`` with sensors, drives and stiction.
        controller: one of ``linkwise.control``, whose model may differ from the plant's robot; or any function
            ``f(t, q, qd, (q_d, qd_d, qdd_d)) -> tau`` of arrays (..., n), which is called from Python.
        reference: a trajectory, a list of them (one per robot), positions (..., n), or ``Moves``.
        duration: simulated time [s].
        step: step of the integrator [s].
        control_period: the controller samples this often [s], a whole number of steps (default: every step), and
            holds its torque in between.
        continuous: whether the controller runs inside the integrator instead of being sampled.
        integrator: "rk4" or "semi_implicit_euler". Robots with contacts take the step of ``Robot.contact_step``.
        every: control periods from one recorded row to the next.
        q: initial positions, (..., nq); by default the start of the reference. Leading axes are the batch.
        qd: initial velocities, (..., n).
        delay: control periods from measurement to torque.
        vary: other values for every robot, (..., size): gains of the controller (kp, kd, ki, …; matrices row by row),
            "torque_limits" of the controller, "payload" (ten numbers, see ``Robot.kernel``), labels of
            ``robot.parameter_labels``, numbers of sensors and drives, or "contact_friction" and "ground_height" of
            every candidate of contact.
        record: what is recorded besides q, qd and tau: command, q_measured, qd_measured, memory.
        seed: of random numbers, which depend on seed, robot and step alone: not on the batch, the number of threads
            or the speed of the machine.
        first: the number of the batch's first robot.
        dtype: "float64" or "float32".
        threads: number of threads.
        fused: whether all steps run in one kernel; False steps from Python (the definition; slow).
        torque_limits: bounds of a Python function's torques [N·m or N], one number or (n,): None for the effort limits
            of the plant's robot, False for none. A controller of ``linkwise.control`` has its own.
        stabilization: how constraints are kept: "projection" (the default: positions and velocities are corrected
            after every step) or a rate [1/s] at which errors decay (Baumgarte); 0.0 lets them drift.
        accuracy: residual that the steps of robots with contacts should have, 1e-6 by default; see
            ``Robot.contact_step``. Steps that do not reach it cause a ``SimulationWarning``.
        warn: False leaves the warnings out.

    Returns:
        The recorded rows, the final state, and what went wrong.

    Raises:
        SimulationError: an argument cannot be right; the message names it.
        SingularError: a joint moves no inertia in the initial state.
        ConstraintError: the initial state does not meet a constraint, which is named.
    """
    plant = Plant(plant) if isinstance(plant, Robot) else plant
    q, qd = without_names(plant.robot, {"q": q, "qd": qd}).arrays
    fused, warn = flag_or_none("fused", fused), flag("warn", warn)
    times = Times.of(duration, step, control_period, every)
    loop = closed_loop(
        plant,
        controller,
        reference,
        times,
        integrator=integrator,
        continuous=continuous,
        delay=delay,
        varied=tuple(vary or ()),
        record=record,
        torque_limits=torque_limits,
        stabilization=stabilization,
        accuracy=arguments.accuracy(accuracy),
    )
    given = _given(loop, times, dict(vary or {}), q, qd)
    batch = np.broadcast_shapes(loop.source.batch(), *(tuple(value.shape[:-1]) for value in given.values()))
    on_device = any(map(is_foreign, given.values()))
    _prepare_start(loop, given, batch)
    if plant.sensors.noisy:
        given["stream"] = _streams(seed, first, batch, dtype)
    in_kernel = _runs_in_kernel(loop, controller, on_device, fused)
    run = _run_kernel if in_kernel else _run_from_python
    final, written = run(loop, controller, given, batch, times, dtype, threads)
    found = _result(loop, times, batch, final, written, given, known=reference is not None)
    if warn and not on_device:
        _look_at(found, loop, times, given if in_kernel else None, batch, dtype)
    return found


Rows = tuple[dict[str, Any], dict[str, Any]]
"""The final state, and what was recorded."""


def _run_kernel(
    loop: ClosedLoop, _: Any, given: dict[str, Any], batch: Any, times: Times, dtype: Any, threads: int | None
) -> Rows:
    """All steps in machine code."""
    tables = loop.source.tables(times.steps, times.period, loop.places)
    return loop.kernel()(
        {**given, **tables}, steps=times.steps, every=times.every, dtype=dtype, threads=threads
    )


def _run_from_python(
    loop: ClosedLoop, controller: Any, given: dict[str, Any], batch: Any, times: Times, dtype: Any, _: Any
) -> Rows:
    """Step by step: the definition."""
    from linkwise.simulate.python_loop import run_from_python

    return run_from_python(loop, controller, given, batch, times.steps, times.every, times.period, dtype)


# -- what is simulated ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Times:
    """The times of a simulation in whole numbers: [s] only ``step``."""

    step: float
    substeps: int
    """Integration steps in a control period."""
    steps: int
    """Control periods."""
    every: int
    """Control periods from one recorded row to the next."""

    @classmethod
    def of(cls, duration: Any, step: Any, control_period: Any, every: Any) -> Times:
        step = arguments.number("step", step, above=0.0)
        substeps = 1
        if control_period is not None:
            substeps = arguments.multiple("control_period", control_period, step, "steps", 1)
        steps = arguments.multiple("duration", duration, step * substeps, "control periods", 0)
        return cls(step, substeps, steps, arguments.whole("every", every, 1))

    @property
    def period(self) -> float:
        """The control period [s]."""
        return self.step * self.substeps


def closed_loop(
    plant: Plant,
    controller: Controller | Callable[..., Any],
    reference: Any,
    times: Times,
    *,
    integrator: str,
    continuous: bool,
    delay: Any,
    varied: Sequence[str],
    record: Sequence[str],
    torque_limits: Any = None,
    stabilization: Any = None,
    accuracy: float | None = None,
) -> ClosedLoop:
    """The loop that these arguments of ``simulate`` describe, with all that does not fit refused."""
    robot, continuous = plant.robot, flag("continuous", continuous)
    check_moves(robot)
    arguments.check_sensors(robot, plant.sensors)
    if integrator not in INTEGRATORS:
        raise UnknownNameError(f"integrator: no {integrator!r}; {suggest(str(integrator), INTEGRATORS)}")
    for name in record:
        if name not in RECORDABLE:
            raise UnknownNameError(f"record: no {name!r}; {suggest(name, RECORDABLE)}")
    loop = ClosedLoop(
        plant,
        _law(controller, robot, torque_limits),
        source_of(robot.neutral if reference is None else reference, robot.dof, robot.nq),
        integrator,
        continuous,
        times.substeps > 1,
        arguments.whole("delay", delay, 0),
        tuple(name for name in varied if name == "payload" or robot.is_parameter(name)),
        tuple(dict.fromkeys(("q", "qd", "tau", *record))),
        arguments.stabilization(robot, stabilization),
        accuracy=accuracy,
        limits_vary=LIMITS in varied,
    )
    if continuous:
        _check_continuous(loop, controller)
    if candidate_count(robot) > MOST_CANDIDATES:
        raise SimulationError(too_many(robot))
    if robot.contact_parts and (continuous or loop.varied):
        raise SimulationError(
            f"{'continuous=True' if continuous else 'vary: ' + loop.varied[0]}: not for robots with contacts"
        )
    return loop


class _Called(Controller):
    """Takes the place of a Python function in a loop: it has limits, but no law to trace."""

    feedback = False

    def control(self, links, gains, q, qd, reference, memory, period):
        raise NotImplementedError("a Python function is called, not traced")


def _law(controller: Controller | Callable[..., Any], robot: Robot, torque_limits: Any) -> Controller:
    if not isinstance(controller, Controller):
        if not callable(controller):
            raise SimulationError(
                "controller: expected one of linkwise.control, such as "
                "linkwise.control.named('computed_torque', robot, frequency=10), or a function, "
                f"got {controller!r}"
            )
        return _Called(robot, {}, limits_of_torque(robot, torque_limits))
    if torque_limits is not None:
        raise SimulationError(
            "torque_limits: those of a controller of linkwise.control are its own; give them there"
        )
    if (controller.robot.nq, controller.robot.dof) != (robot.nq, robot.dof):
        raise ShapeError(
            f"controller: its model has {_sizes(controller.robot)}, the plant has {_sizes(robot)}"
        )
    return controller


def _sizes(robot: Robot) -> str:
    if robot.nq == robot.dof:
        return f"{robot.dof} joints"
    return f"{robot.nq} position and {robot.dof} velocity coordinates"


def _check_continuous(loop: ClosedLoop, controller: Any) -> None:
    sensors, drives = loop.plant.sensors, loop.plant.drives
    flaws = sensors.noisy or sensors.counts or sensors.differs or not drives.ideal
    if loop.substeps or loop.delay or flaws:
        raise SimulationError(
            "continuous=True: a controller inside the integrator has no samples, delay, sensors or drives"
        )
    if not isinstance(controller, Controller):
        raise SimulationError(
            "continuous=True: a Python function is sampled; use a controller of linkwise.control"
        )


# -- what goes in ---------------------------------------------------------------------------------------------


def _given(loop: ClosedLoop, times: Times, vary: Arrays, q: Any, qd: Any) -> Arrays:
    """Everything that is carried or a parameter, by name, (..., size)."""
    given: Arrays = dict(loop.numbers(times.step, times.substeps))
    allowed = [name for name in (*given, *loop.varied) if name != TARGETS]  # the robot's, as results say
    for name, value in vary.items():
        if name not in allowed:
            raise UnknownNameError(f"vary: no {name!r}; {suggest(name, ('payload', *allowed))}")
        signed = np.ndim(loop.controller.gains.get(name, 0.0)) == 2
        given[name] = _varied(name, value, loop.interface.parameters[name], signed)
    given["q"], given["qd"] = _start(loop, q, qd)
    carried = loop.interface.carried
    given |= {
        name: np.zeros(carried[name]) for name in ("memory", "line", "number", TOUCH) if name in carried
    }
    if "sensed" in carried:
        if is_foreign(given["q"]):
            raise SimulationError(
                "q: sensors that take differences need the initial positions as a NumPy array"
            )
        given["sensed"] = loop.plant.sensors.memory(given["q"])
    return given


LEAST = {
    **dict.fromkeys(
        ("kp", "kd", "ki", LIMITS, "position_noise", "velocity_noise", "resolution", "filter_gain"), 0.0
    ),
    "contact_friction": 0.0,
    **dict.fromkeys(("breakaway", "substeps"), 1.0),
}
"""The smallest values that make sense, by name."""
POSITIVE = ("step", "torque_per_volt", "volts", "volt_step", "rate")


def _varied(name: str, value: Any, size: int, signed: bool) -> Any:
    """Other values for every robot, (..., size); arrays on a GPU are not checked.

    Elements of matrices (``signed``) may be negative.
    """
    if is_foreign(value):
        found = value
    else:
        least = -math.inf if signed else LEAST.get(name, _least_of(name))
        above = 0.0 if name in POSITIVE else -math.inf
        found = arguments.array(f"vary: {name}", value, least=least, above=above)
        if name == "payload":
            arguments.array("vary: payload: mass", found[..., 0], least=0.0)
    if tuple(found.shape[-1:]) != (size,):
        raise ShapeError(f"vary: {name} needs shape (..., {size}), got {tuple(found.shape)}")
    return found


def _least_of(label: str) -> float:
    """The smallest value of a parameter of the robot: masses and rotor inertias are not negative."""
    name = label.rpartition(".")[2]
    refused = {p.name for law in joint_laws.LAWS for p in law.parameters if p.negative == "refused"}
    return 0.0 if name == LABELS[0] or name in refused else -math.inf


def _start(loop: ClosedLoop, q: Any, qd: Any) -> tuple[Any, Any]:
    """The initial state, (..., nq) and (..., n): given, or where the reference begins."""
    start = loop.source.moment(np.zeros(1), loop.source.batch(), loop.dof)
    found = []
    sizes = (loop.plant.robot.nq, loop.dof)
    for name, value, planned, size in zip(("q", "qd"), (q, qd), start[:2], sizes, strict=True):
        if value is None:
            value = planned[..., 0, :]
        found.append(arguments.state(name, value, size))
    return found[0], found[1]


def _streams(seed: Any, first: Any, batch: tuple[int, ...], dtype: str) -> np.ndarray:
    seed, first = arguments.whole("seed", seed, 0), arguments.whole("first", first, 0)
    return noise.streams(seed, first + math.prod(batch), dtype)[first:].reshape(*batch, 2)


def _prepare_start(loop: ClosedLoop, given: Arrays, batch: tuple[int, ...]) -> None:
    """Broadcast the initial positions to the batch, and refuse states in which the motion is not defined.

    Arrays on a GPU are not checked: that would wait for it.
    """
    robot = loop.plant.robot
    if is_foreign(given["q"]):
        return
    given["q"] = np.broadcast_to(given["q"], (*batch, robot.nq))
    if not loop.varied:
        _refuse_singular(robot, given["q"])
    if robot.constraints and not is_foreign(given["qd"]):
        check_start(robot, given["q"], given["qd"], loop.stabilization)


def _runs_in_kernel(loop: ClosedLoop, controller: Any, on_device: bool, fused: bool | None) -> bool:
    """Whether all steps run in one kernel, rather than being called from Python."""
    traced = isinstance(controller, Controller)
    if on_device and not traced:
        raise SimulationError(
            "arrays on a GPU need a controller of linkwise.control: a Python function runs on the CPU"
        )
    if traced and fused is None and not on_device and not loop.fits_a_kernel:
        size = f"{loop.dof} velocity coordinates"
        if loop.touches:
            size = f"{len(loop.plant.robot.contact_parts)} contacts and stops"
        warn(
            f"{loop.plant.robot.name}: the loop over time runs in Python; for {size} compiling it takes long. "
            "fused=True compiles it, fused=False accepts Python's loop",
            SlowWarning,
        )
    return traced and bool(fused or on_device or (fused is None and loop.fits_a_kernel))


def _refuse_singular(robot: Robot, q: np.ndarray) -> None:
    """A joint that moves no inertia is named before the first step, which would make everything NaN."""
    if may_be_singular(mechanism_of(robot)):
        robot.inverse_mass_matrix(q)


# -- what comes out -------------------------------------------------------------------------------------------


def _result(
    loop: ClosedLoop,
    times: Times,
    batch: tuple[int, ...],
    final: Arrays,
    written: Arrays,
    given: Arrays,
    *,
    known: bool,
) -> Result:
    t = np.arange(0, times.steps, times.every) * times.period
    named = {name.removeprefix("record_"): array for name, array in written.items()}
    return Result(
        loop.plant.robot,
        t,
        named.pop("q"),
        named.pop("qd"),
        named.pop("tau"),
        loop.source.moment(t, batch, loop.dof) if known else None,
        final["q"],
        final["qd"],
        times.steps * times.period,
        named,
        times.step,
        {name: given[name] for name in CONTACT_NUMBERS if name in given},
        loop.accuracy,
        final[TOUCH][..., -1] if TOUCH in final else None,
    )


def _look_at(
    found: Result, loop: ClosedLoop, times: Times, given: Arrays | None, batch: tuple[int, ...], dtype: str
) -> None:
    """Warn of motions that went wrong. ``given`` are the inputs of the kernel, where one was run."""
    lost = found.divergence
    if lost is not None:
        if given is not None:
            lost = _located(lost, found.robot, loop, times, given, batch, dtype)
            found.__dict__["divergence"] = lost
        count = int(found.diverged.sum())
        others = f" ({count} of {found.diverged.size} robots diverged)" if found.diverged.size > 1 else ""
        warn(f"{found.robot.name}: {lost}{others}", SimulationWarning)
    for broken in found.unmet:
        warn(f"{found.robot.name}: {broken}", SimulationWarning)
    if (inexact := found.inexact_contacts) is not None:
        warn(f"{found.robot.name}: {inexact}", SimulationWarning)
    left = int((found.beyond_range() & ~found.diverged[..., np.newaxis]).sum())
    if left:
        first = next(each for each in found.excursions() if not found.diverged[each.robot])
        others = f" (and {left - 1} more: see left_range)" if left > 1 else ""
        warn(f"{found.robot.name}: {first}{others}", SimulationWarning)


def _located(
    lost: Divergence,
    robot: Robot,
    loop: ClosedLoop,
    times: Times,
    given: Arrays,
    batch: tuple[int, ...],
    dtype: str,
) -> Divergence:
    """When exactly: the same robot again, which moves by the same bits, with every row recorded."""
    steps = min(round(lost.time / times.period) + 1, times.steps)
    if times.every == 1 or steps > MOST_REPEATED:
        return lost
    one = {
        name: np.broadcast_to(value, (*batch, np.shape(value)[-1]))[lost.robot]
        for name, value in given.items()
    }
    for name, table in loop.source.tables(steps, times.period, loop.places).items():
        one[name] = table if loop.interface.feeds[name].shared else table[lost.robot]
    final, written = loop.kernel()(one, steps=steps, every=1, dtype=dtype, threads=1)
    t = np.arange(steps + 1) * times.period
    q, qd = (np.vstack([written[f"record_{name}"], final[name]]) for name in ("q", "qd"))
    exact = first_lost(robot, t, q, qd)
    return lost if exact is None else Divergence(*exact, lost.robot)
