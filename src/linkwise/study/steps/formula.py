"""A formula: ``load = "max(abs(tau) / effort_limit)"``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwise.compiler.kernel import Kernel
from linkwise.core.once import once
from linkwise.robot import user
from linkwise.robot.robot import Robot
from linkwise.study import quantities
from linkwise.study.expression import CONSTANTS, Expression, parse
from linkwise.study.quantities import Quantity
from linkwise.study.steps.base import Arrays, Step


def constants(robot: Robot) -> dict[str, Any]:
    """Names that every formula may use: pi, and the limits of the joints, each an array (n,)."""
    limits = [joint.limits for joint in robot.coordinate_joints]
    return {
        **CONSTANTS,
        "lower_limit": _array([float(x.lower) for x in limits]),
        "upper_limit": _array([float(x.upper) for x in limits]),
        "velocity_limit": _array([float(x.largest_velocity) for x in limits]),
        "effort_limit": _array([float(x.largest_effort) for x in limits]),
    }


def _array(values: list[float]) -> np.ndarray:
    return np.array(values, dtype=object)


@dataclass(eq=False)
class FormulaStep(Step):
    """An expression over variables and results."""

    name: str
    robot: Robot
    expression: Expression
    unit: str = ""
    traceable = True
    _kernels: dict[tuple, Kernel] = field(default_factory=dict, repr=False)

    @once
    def _constants(self) -> dict[str, Any]:
        return constants(self.robot)

    @property
    def takes(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(name for name in self.expression.names if name not in self._constants)

    def traced(self, known: Mapping[str, Any]) -> dict[str, Any]:
        return {self.name: self.expression.value({**self._constants, **known})}

    def quantity(self, robot: Robot, name: str, shape: tuple[int, ...]) -> Quantity:
        return quantities.derived(robot, name, shape, self.unit)

    def computed(self, given: Arrays, first: int) -> dict[str, np.ndarray]:
        """For results that come as arrays: the formula is a kernel of its own."""
        count = len(next(iter(given.values())))
        shapes = tuple((name, given[name].shape[1:]) for name in self.takes)
        if shapes not in self._kernels:
            self._kernels[shapes] = self._kernel(dict(shapes))
        rows = [given[name].reshape(count, -1) for name in self.takes]
        return {self.name: self._kernels[shapes](*rows, threads=1)}

    def _kernel(self, shapes: Mapping[str, tuple[int, ...]]) -> Kernel:
        sizes = {name: int(np.prod(shape, dtype=int)) for name, shape in shapes.items()}

        def formula(**symbols: np.ndarray) -> Any:
            known = {name: s.reshape(shapes[name]) if shapes[name] else s[0] for name, s in symbols.items()}
            return {"value": self.traced(known)[self.name]}

        return user.kernel_of(formula, {name: (size,) for name, size in sizes.items()})


def read(name: str, text: str, where: str, robot: Robot, unit: str = "") -> FormulaStep:
    """The step of a formula."""
    return FormulaStep(name, robot, parse(text, where), unit)
