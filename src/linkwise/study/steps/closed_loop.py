"""A closed-loop simulation at every point: ``run = { simulate = "tracking", duration = 1.0, … }``.

The controller uses the study's robot as it is; the simulated robot has the parameters and the payload of the point.
Gains (kp, kd, ki), the ends of the reference and the initial state may vary, too. A point gives the errors and
torques of its whole motion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.core.once import once
from linkwise.errors import LinkwiseError
from linkwise.robot.robot import Robot
from linkwise.study import quantities
from linkwise.study.quantities import JOINT, Quantity
from linkwise.study.schema import StudySettings, numbers
from linkwise.study.steps.base import Arrays, Step
from linkwise.study.steps.robot_parameters import RobotParameters

GAINS = ("kp", "kd", "ki")
OUTPUTS = {
    "max_error": (("rad", "m"), "largest position error"),
    "rms_error": (("rad", "m"), "root of the mean squared position error"),
    "final_error": (("rad", "m"), "position error at the end"),
    "max_torque": (("N·m", "N"), "largest torque"),
}
_COPIES = 8  # arrays of the size of a motion that are alive at the same time

Source = str | tuple[float, ...]
"""The name of a variable, or numbers."""


@dataclass(frozen=True, eq=False)
class ClosedLoopStep(Step):
    """A plant, a controller and a reference, and what differs from point to point."""

    name: str
    robot: Robot
    controller: Any
    plant: Any
    options: Mapping[str, Any]
    ends: Mapping[str, Source]
    """Of the reference: from, to, duration."""
    initial: Mapping[str, Source]
    """q and qd, where they do not begin on the reference."""
    gains: tuple[str, ...]
    """Those that vary."""
    parameters: RobotParameters

    @property
    def takes(self) -> tuple[str, ...]:  # type: ignore[override]
        named = [s for s in (*self.ends.values(), *self.initial.values()) if isinstance(s, str)]
        return (*dict.fromkeys(named), *self.gains, *self.parameters.takes)

    def gives(self) -> tuple[str, ...]:
        return tuple(f"{self.name}.{output}" for output in OUTPUTS)

    def quantity(self, robot: Robot, name: str, shape: tuple[int, ...]) -> Quantity:
        (revolute, prismatic), text = OUTPUTS[name.rsplit(".", 1)[-1]]
        return Quantity(name, shape, (JOINT,), quantities.per_joint(robot, revolute, prismatic), text)

    def bytes_per_point(self) -> int:
        period = self.options.get("control_period") or self.options["step"]
        rows = self.options["duration"] / period / self.options["every"]
        return int(_COPIES * 8 * self.robot.dof * rows)

    def computed(self, given: Arrays, first: int) -> dict[str, np.ndarray]:
        from linkwise.simulate import Moves, simulate

        count = len(next(iter(given.values()))) if given else 1
        n = self.robot.dof
        ends = {
            key: self._rows(source, given, count, 1 if key == "duration" else n)
            for key, source in self.ends.items()
        }
        vary = dict(self.parameters.arrays(given))
        vary |= {gain: np.broadcast_to(given[gain].reshape(count, -1), (count, n)) for gain in self.gains}
        state = {key: self._rows(source, given, count, n) for key, source in self.initial.items()}
        simulation = simulate(
            self.plant,
            self.controller,
            Moves(ends["from"], ends["to"], ends["duration"][:, 0]),
            vary=vary,
            threads=1,
            warn=False,
            **self._first_number(first),
            **state,
            **self.options,
        )
        error = np.broadcast_to(simulation.error, (count, *simulation.error.shape[-2:]))
        largest, torque = np.abs(error).max(axis=-2), np.abs(simulation.tau).max(axis=-2)
        mean = np.add.reduce(np.square(error), axis=-2) * (1.0 / error.shape[-2])
        results = (largest, np.sqrt(mean), error[:, -1], torque)
        return {name: np.broadcast_to(x, (count, n)) for name, x in zip(self.gives(), results, strict=True)}

    def _first_number(self, first: int) -> dict[str, Any]:
        """Noise belongs to the number of the point, not to its place in a block."""
        return {"first": first} if self._noisy else {}

    @once
    def _noisy(self) -> bool:
        return bool(self.plant.sensors.noisy)

    @staticmethod
    def _rows(source: Source, given: Arrays, count: int, size: int) -> np.ndarray:
        values = given[source].reshape(count, -1) if isinstance(source, str) else np.array(source)
        return np.broadcast_to(values, (count, size))


def read(
    name: str, table: StudySettings, robot: Robot, parameters: RobotParameters, seed: int
) -> ClosedLoopStep:
    """The step of an entry with the key ``simulate``."""
    from linkwise.control import CONTROLLERS, named
    from linkwise.simulate import Drives, Plant, Sensors

    kind = table.choice("simulate", list(CONTROLLERS))
    given, varied = _gains(table, CONTROLLERS[kind], robot) if CONTROLLERS[kind].feedback else ({}, ())
    if CONTROLLERS[kind].has_frame and "frame" in table:
        given["frame"] = table.get("frame", str)
    reference = StudySettings(table.get("reference", dict), table.where("reference"))
    zero = (0.0,) * robot.dof
    ends = {
        "from": _source(reference, "from", robot.dof, zero),
        "to": _source(reference, "to", robot.dof, None),
        "duration": _source(reference, "duration", 1, (table.get("duration", float),)),
    }
    reference.finish()
    initial = {key: _source(table, key, robot.dof, None) for key in ("q", "qd") if key in table}
    options: dict[str, Any] = {
        "duration": table.get("duration", float),
        "step": table.get("step", float, 1e-3),
        "control_period": table.get("control_period", float, None),
        "integrator": table.get("integrator", str, "rk4"),
        "every": table.whole("every", 1, 1),
        "delay": table.whole("delay", 0, 0),
        "seed": seed,
    }
    try:
        controller = named(kind, robot, torque_limits=table.raw("torque_limits"), **given)
        sensors = Sensors(**_options(table, "sensors"))
        plant = Plant(robot, sensors=sensors, drives=Drives(**_options(table, "drives")))
    except (LinkwiseError, ValueError, TypeError) as error:
        raise table.fail("", str(error)) from None
    return ClosedLoopStep(name, robot, controller, plant, options, ends, initial, varied, parameters)


def _gains(table: StudySettings, law: Any, robot: Robot) -> tuple[dict[str, Any], tuple[str, ...]]:
    """(arguments of ``control.named``, names of gains that vary): numbers, the name of the variable of the same
    name, or a frequency."""
    from linkwise.control import Gains

    inner = StudySettings(table.get("gains", dict), table.where("gains"))
    if "frequency" in inner:
        frequency = _one_or_all(numbers(inner.raw("frequency"), inner.where("frequency")))
        damping = _one_or_all(numbers(inner.raw("damping", 1.0), inner.where("damping")))
        integral = inner.get("integral", bool, None)
        inner.finish()
        try:
            has_integral = bool(np.any(law.gains_for(robot, frequency, damping).ki))
        except ValueError as error:
            raise inner.fail("", str(error)) from None
        if integral is not None and integral != has_integral:
            does = "has" if has_integral else "has no"
            raise inner.fail(
                "integral", f"{table.raw('simulate')} {does} integral action; leave this key out"
            )
        return {"frequency": frequency, "damping": damping}, ()
    varied = []
    values = {}
    for gain in GAINS:
        value = inner.raw(gain, 0.0 if gain == "ki" else 1.0)
        if isinstance(value, str):
            if value != gain:
                raise inner.fail(gain, f'a gain that varies is the variable of its own name: "{gain}"')
            varied.append(gain)
            value = 0.0 if gain == "ki" else 1.0
        values[gain] = _one_or_all(numbers(value, inner.where(gain)))
    inner.finish()
    try:
        return {"gains": Gains(**values)}, tuple(varied)
    except ValueError as error:
        raise inner.fail("", str(error)) from None


def _one_or_all(values: list[float]) -> Any:
    return values[0] if len(values) == 1 else np.array(values)


def _source(table: StudySettings, key: str, size: int, default: tuple[float, ...] | None) -> Source:
    value = table.raw(key, default)
    if value is None:
        raise table.fail(key, "missing; expected numbers or the name of a variable")
    if isinstance(value, str):
        return value
    values = numbers(value, table.where(key))
    if len(values) not in (1, size):
        raise table.fail(key, f"expected 1 or {size} numbers, got {len(values)}")
    return tuple(values * size if len(values) == 1 else values)


def _options(table: StudySettings, key: str) -> dict[str, Any]:
    """The table of that name with lists as arrays."""
    given = table.get(key, dict, {})
    return {name: np.array(value) if isinstance(value, list) else value for name, value in given.items()}
