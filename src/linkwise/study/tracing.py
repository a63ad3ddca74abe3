"""From variables and steps to one program: random numbers and grid entries in, everything that can be traced out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from linkwise.compiler.ir.graph import Graph
from linkwise.compiler.ir.program import Program, lower
from linkwise.errors import LinkwiseError
from linkwise.robot.robot import Robot
from linkwise.study.errors import StudyError
from linkwise.study.quantities import STATES
from linkwise.study.sampling.variables import Variable
from linkwise.study.steps.base import Step


class Trace:
    """The symbols of a study: every variable and every result that needs nothing but traced ones."""

    def __init__(self, robot: Robot, variables: Sequence[Variable], steps: Sequence[Step]):
        self.graph = Graph()
        self.inputs = {v.name: v.draws or v.loaded for v in variables if v.draws or v.loaded}
        self.known: dict[str, Any] = {}
        for variable in variables:
            symbols = self.graph.inputs(variable.name, variable.draws or variable.loaded)
            if variable.draws and variable.design == "random":
                symbols = [2.0**-variable.bits * symbol for symbol in symbols]
            self.known[variable.name] = shaped(variable.traced(symbols), variable.quantity.shape)
        self._put_elements_together(robot, variables)
        self.steps: list[Step] = []
        self.later: list[Step] = []
        for step in steps:
            if step.traceable and all(name in self.known for name in step.takes):
                self.known.update(_trace_step(step, self.known))
                self.steps.append(step)
            else:
                self.later.append(step)

    def _put_elements_together(self, robot: Robot, variables: Sequence[Variable]) -> None:
        """q from q and q.elbow."""
        for base in STATES:
            elements = [v for v in variables if v.element is not None and v.element[0] == base]
            if not elements:
                continue
            whole = np.array(self.known.get(base, np.zeros(robot.dof)), dtype=object)
            for variable in elements:
                assert variable.element is not None
                whole[variable.element[1]] = self.known[variable.name]
            self.known[base] = whole

    def shape(self, name: str) -> tuple[int, ...]:
        return np.shape(self.known[name])

    def program(self, names: Sequence[str]) -> Program:
        """The program that computes these."""
        outputs = {}
        for name in names:
            value = self.known[name]
            flat = value.flat if isinstance(value, np.ndarray) else (value,)
            outputs[name] = (np.shape(value), [self.graph.lift(x) for x in flat])
        return lower(outputs, self.inputs, name="study")


def shaped(values: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """Scalars as one scalar or an object array."""
    if not shape:
        return values[0]
    array = np.empty(shape, dtype=object)
    array.flat[:] = list(values)
    return array


def _trace_step(step: Step, known: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return step.traced(known)
    except StudyError:
        raise
    except (LinkwiseError, ValueError, TypeError, IndexError) as error:
        raise StudyError(f"compute.{step.name}: {error}") from None
