"""``simulate``: one call from a plant, a controller and a reference to a simulated motion."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from linkwise.algorithms.singularity import may_be_singular
from linkwise.compiler.arrays import is_foreign
from linkwise.control import Controller
from linkwise.errors import ShapeError, UnknownNameError
from linkwise.functions import mechanism_of
from linkwise.model.checks import check_moves
from linkwise.model.model import suggest
from linkwise.robot import Robot
from linkwise.simulate import noise
from linkwise.simulate.integrators import INTEGRATORS
from linkwise.simulate.loop import RECORDABLE, ClosedLoop
from linkwise.simulate.plant import Plant
from linkwise.simulate.reference import source_of
from linkwise.simulate.result import Result

FUSED_JOINTS = 16
"""Up to here a whole step is compiled into one kernel; larger robots are stepped from Python."""


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
) -> Result:
    """Simulate a controlled robot, or a batch of them, for ``duration`` [s].

    ``plant``: a robot, or a ``Plant`` with sensors, drives and stiction. ``controller``: one of
    ``linkwise.control``, whose model may differ from the plant's robot; or any function ``f(t, q, qd, (q_d,
    qd_d, qdd_d)) -> tau`` of arrays (..., n), which is called from Python. ``reference``: a trajectory, a
    list of them (one per robot), positions (..., n), or ``Moves``.

    ``step`` [s] is that of the ``integrator``, "rk4" or "semi_implicit_euler". The controller samples every
    ``control_period`` [s], a whole number of steps (default: every step), and holds its torque in between;
    with ``continuous=True`` it runs inside the integrator instead. ``delay``: control periods from
    measurement to torque.

    ``q`` and ``qd`` (..., n) are the initial state (default: where the reference begins); their leading axes
    are the batch. ``vary`` gives other values for every robot, (..., size): gains (kp, kd, ki), "payload"
    (ten numbers, see ``Robot.kernel``), labels of ``robot.parameter_labels``, or numbers of sensors and
    drives. With arrays of CuPy, PyTorch or JAX among ``q``, ``qd`` and ``vary`` all robots are simulated
    where these are, with the same bits, and the results are of the same kind.

    A row is recorded every ``every`` control periods: q, qd, tau, and what ``record`` names: command,
    q_measured, qd_measured, memory. Random numbers depend on ``seed``, robot and step alone: the same
    whatever the batch, the number of threads or the speed of the machine; ``first`` is the number of the
    batch's first robot. ``fused=False`` steps from Python (the definition; slow).
    """
    plant = Plant(plant) if isinstance(plant, Robot) else plant
    robot = plant.robot
    check_moves(robot)
    period, substeps = _timing(step, control_period)
    steps = round(duration / period)
    if steps < 0 or not math.isclose(steps * period, duration, rel_tol=1e-9, abs_tol=1e-12):
        raise ValueError(
            f"duration: expected a whole number of control periods of {period:g} s, got {duration:g} s"
        )
    if integrator not in INTEGRATORS:
        raise UnknownNameError(f"integrator: no {integrator!r}; {suggest(integrator, INTEGRATORS)}")
    if delay < 0 or every < 1:
        raise ValueError(f"delay and every: expected at least 0 and 1, got {delay} and {every}")
    for name in record:
        if name not in RECORDABLE:
            raise UnknownNameError(f"record: no {name!r}; {suggest(name, RECORDABLE)}")
    source = source_of(np.zeros(robot.dof) if reference is None else reference, robot.dof)
    sensors = plant.sensors
    if continuous and (
        substeps > 1 or delay or sensors.noisy or sensors.counts or sensors.differs or not plant.drives.ideal
    ):
        raise ValueError(
            "continuous=True: a controller inside the integrator has no samples, delay, sensors or drives"
        )
    traced = isinstance(controller, Controller)
    if traced and controller.robot.dof != robot.dof:
        raise ShapeError(
            f"controller: its model has {controller.robot.dof} joints, the plant has {robot.dof}"
        )
    if not traced and continuous:
        raise ValueError(
            "continuous=True: a Python function is sampled; use a controller of linkwise.control"
        )

    vary = dict(vary or {})
    parameters = [name for name in vary if name == "payload" or robot.is_parameter(name)]
    loop = ClosedLoop(
        plant,
        controller if traced else _placeholder(robot),
        source,
        integrator,
        continuous,
        substeps > 1,
        delay,
        tuple(parameters),
        tuple(dict.fromkeys(("q", "qd", "tau", *record))),
    )
    given = _given(loop, step, substeps, vary, q, qd)
    batch = np.broadcast_shapes(source.batch(), *(tuple(value.shape[:-1]) for value in given.values()))
    on_device = any(map(is_foreign, given.values()))
    if on_device and not traced:
        raise ValueError(
            "arrays on a GPU need a controller of linkwise.control: a Python function runs on the CPU"
        )
    if not is_foreign(given["q"]):
        given["q"] = np.broadcast_to(given["q"], (*batch, robot.dof))
        if not parameters:
            _refuse_singular(robot, given["q"])
    if sensors.noisy:
        given["stream"] = noise.streams(seed, first + math.prod(batch), dtype)[first:].reshape(*batch, 2)
    if traced and (fused or on_device or (fused is None and robot.dof <= FUSED_JOINTS)):
        tables = source.tables(steps, period, loop.places)
        final, written = loop.kernel()(
            {**given, **tables}, steps=steps, every=every, dtype=dtype, threads=threads
        )
    else:
        from linkwise.simulate.python_loop import run_from_python

        final, written = run_from_python(loop, controller, given, batch, steps, every, period, dtype)
    t = np.arange(0, steps, every) * period
    named = {name.removeprefix("record_"): array for name, array in written.items()}
    known = None if reference is None else source.moment(t, batch, robot.dof)
    return Result(
        robot,
        t,
        named.pop("q"),
        named.pop("qd"),
        named.pop("tau"),
        known,
        final["q"],
        final["qd"],
        steps * period,
        named,
    )


def _timing(step: float, control_period: float | None) -> tuple[float, int]:
    """(control period, integration steps in it)."""
    if not (math.isfinite(step) and step > 0):
        raise ValueError(f"step: expected a positive time in seconds, got {step!r}")
    if control_period is None:
        return step, 1
    substeps = round(control_period / step)
    if substeps < 1 or not math.isclose(substeps * step, control_period, rel_tol=1e-9):
        raise ValueError(
            f"control_period: expected a whole number of steps of {step:g} s, got {control_period!r}"
        )
    return substeps * step, substeps


def _given(loop: ClosedLoop, step: float, substeps: int, vary: dict, q, qd) -> dict[str, np.ndarray]:
    """Everything that is carried or a parameter, by name, (..., size)."""
    n = loop.dof
    given: dict[str, np.ndarray] = dict(loop.numbers(step, substeps))
    allowed = [*given, *loop.varied]
    for name, value in vary.items():
        if name not in allowed:
            raise UnknownNameError(f"vary: no {name!r}; {suggest(name, ('payload', *allowed))}")
        array = value if is_foreign(value) else np.asarray(value, dtype=float)
        size = loop.interface.parameters[name]
        if tuple(array.shape[-1:]) != (size,):
            raise ShapeError(f"vary: {name} needs shape (..., {size}), got {tuple(array.shape)}")
        given[name] = array
    start = loop.source.moment(np.zeros(1), loop.source.batch(), n)
    given["q"] = start[0][..., 0, :] if q is None else _state("q", q, n)
    given["qd"] = start[1][..., 0, :] if qd is None else _state("qd", qd, n)
    if "memory" in loop.interface.carried:
        given["memory"] = np.zeros(loop.interface.carried["memory"])
    if "line" in loop.interface.carried:
        given["line"] = np.zeros(loop.interface.carried["line"])
    if "sensed" in loop.interface.carried:
        if is_foreign(given["q"]):
            raise ValueError("q: sensors that take differences need the initial positions as a NumPy array")
        given["sensed"] = loop.plant.sensors.memory(given["q"])
    if "number" in loop.interface.carried:
        given["number"] = np.zeros(1)
    return given


def _refuse_singular(robot: Robot, q: np.ndarray) -> None:
    """A joint that moves no inertia is named before the first step, which would make everything NaN."""
    if may_be_singular(mechanism_of(robot)):
        robot.inverse_mass_matrix(q)


def _state(name: str, value, n: int) -> np.ndarray:
    array = value if is_foreign(value) else np.asarray(value, dtype=float)
    if tuple(array.shape[-1:]) != (n,):
        raise ShapeError(f"{name}: expected shape (..., {n}), got {tuple(array.shape)}")
    return array


def _placeholder(robot: Robot) -> Controller:
    from linkwise.control import Passive

    return Passive(robot)
