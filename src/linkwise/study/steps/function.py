"""A function of the robot: ``tau = { function = "inverse_dynamics" }``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.errors import LinkwiseError
from linkwise.functions.table import FUNCTIONS, ITERATED, Function, Setting
from linkwise.robot import kernels
from linkwise.robot.robot import Robot
from linkwise.study import quantities
from linkwise.study.errors import StudyError
from linkwise.study.quantities import Quantity
from linkwise.study.schema import StudySettings, numbers
from linkwise.study.steps.base import Arrays, Step
from linkwise.study.steps.robot_parameters import RobotParameters

_WITH_FRAME = ("pose", "jacobian", "velocity")

Source = str | tuple[float, ...]
"""Where an argument comes from: the name of a variable or result, or numbers."""


@dataclass(frozen=True, eq=False)
class FunctionStep(Step):
    """One function, with one algorithm and settings."""

    name: str
    robot: Robot
    function: Function
    algorithm: str
    setting: Setting
    sources: Mapping[str, Source]
    parameters: RobotParameters

    @property
    def takes(self) -> tuple[str, ...]:  # type: ignore[override]
        return (*(s for s in self.sources.values() if isinstance(s, str)), *self.parameters.takes)

    @property
    def traceable(self) -> bool:  # type: ignore[override]
        return kernels.is_straight(self.function, self.setting, self.algorithm)

    @property
    def _outputs(self) -> dict[str, str]:
        """What the function calls its outputs, by the names they have in the study."""
        kinds = list(self.function.shapes(self.robot))
        return {self.name: kinds[0]} if len(kinds) == 1 else {f"{self.name}.{kind}": kind for kind in kinds}

    def gives(self) -> tuple[str, ...]:
        return tuple(self._outputs)

    def quantity(self, robot: Robot, name: str, shape: tuple[int, ...]) -> Quantity:
        return quantities.output(robot, name, self._outputs[name], shape, self.function.summary)

    def traced(self, known: Mapping[str, Any]) -> dict[str, Any]:
        from linkwise.functions.evaluation import outputs_of

        inputs: dict[str, list[Any]] = {}
        for argument, source in self.sources.items():
            value = known[source] if isinstance(source, str) else np.array(source, dtype=object)
            inputs[argument] = list(np.ravel(np.asarray(value, dtype=object)))
        inputs |= self.parameters.scalars(known)
        chosen = kernels.cheapest(self.function, self.setting, self.algorithm)
        outputs = outputs_of(self.function, chosen, self.algorithm, **inputs)
        shapes = self.function.shapes(self.robot)
        return {
            name: np.array(outputs[kind], dtype=object) if shapes[kind] else outputs[kind]
            for name, kind in self._outputs.items()
        }

    def computed(self, given: Arrays, first: int) -> dict[str, np.ndarray]:
        count = len(next(iter(given.values())))
        values = {
            argument: given[source] if isinstance(source, str) else np.array(source)
            for argument, source in self.sources.items()
        } | self.parameters.arrays(given)
        kernel = kernels.kernel(self.function, self.setting, self.algorithm)
        outputs = kernel(*(values[name] for name, _ in kernel.inputs), threads=1)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        shapes = self.function.shapes(self.robot).values()
        return {
            name: np.broadcast_to(array, (count, *shape))
            for name, array, shape in zip(self._outputs, outputs, shapes, strict=True)
        }


def read(name: str, table: StudySettings, robot: Robot, parameters: RobotParameters) -> FunctionStep:
    """The step of an entry with the key ``function``."""
    function_name = table.get("function", str)
    algorithm = table.get("algorithm", str, None)
    if function_name == "forward_dynamics" and algorithm in FUNCTIONS[ITERATED].algorithms:
        function_name = ITERATED
    table.choice("function", (*FUNCTIONS, function_name) if function_name in FUNCTIONS else FUNCTIONS)
    function = FUNCTIONS[function_name]
    frame = table.get("frame", str, None)
    wrench = table.get("wrench", bool, False)
    try:
        algorithm = function.algorithm(algorithm)
        if frame is None and (wrench or "payload" in parameters.inputs or function_name in _WITH_FRAME):
            frame = robot.default_frame()
        if frame is not None:
            robot.locate(frame)
        setting = Setting(
            robot,
            friction=table.get("friction", bool, True),
            frame=frame,
            wrench=wrench,
            tolerance=table.get("tolerance", float, None),
            limit=table.get("limit", int, None),
            base_parameters=function.regroups,
            parameters=parameters.inputs,
        )
        needed = function.input_sizes(setting)
    except StudyError:
        raise
    except LinkwiseError as error:
        raise table.fail("", str(error)) from None
    sources = _sources(table, {k: n for k, n in needed.items() if k not in parameters.inputs})
    if not kernels.compiles(function, setting, algorithm):
        raise table.fail("", f"{robot.name} has too many joints for {function_name} by {algorithm}")
    return FunctionStep(name, robot, function, algorithm, setting, sources, parameters)


def _sources(table: StudySettings, needed: Mapping[str, int]) -> dict[str, Source]:
    """Every argument comes from the quantity of its name unless ``inputs`` says otherwise."""
    given = StudySettings(table.get("inputs", dict, {}), table.where("inputs"))
    sources: dict[str, Source] = {}
    for argument, size in needed.items():
        value = given.raw(argument, argument)
        if isinstance(value, str):
            sources[argument] = value
            continue
        fixed = numbers(value, given.where(argument))
        if len(fixed) not in (1, size):
            raise given.fail(argument, f"expected 1 or {size} numbers, got {len(fixed)}")
        sources[argument] = tuple(fixed * size if len(fixed) == 1 else fixed)
    given.finish()
    return sources
