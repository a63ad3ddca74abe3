"""A kernel or a Python function of the user's own: ``cg = { call = "package.module:name" }``.

It gets arrays (count, *shape) by name and gives an array (count, ...) or a dictionary of them. On a cluster the
module must be importable by the workers.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.compiler.kernel import Kernel
from linkwise.compiler.parametric import ParametricKernel
from linkwise.study.errors import StudyError
from linkwise.study.schema import StudySettings
from linkwise.study.steps.base import Arrays, Step


@dataclass(frozen=True, eq=False)
class CallStep(Step):
    """A function; ``sources`` gives the quantity that each of its arguments is."""

    name: str
    function: Callable[..., Any]
    sources: Mapping[str, str]
    outputs: tuple[str, ...]

    @property
    def takes(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(self.sources.values())

    def gives(self) -> tuple[str, ...]:
        return tuple(f"{self.name}.{output}" if output else self.name for output in self.outputs)

    def computed(self, given: Arrays, first: int) -> dict[str, np.ndarray]:
        values = {argument: given[source] for argument, source in self.sources.items()}
        count = len(next(iter(values.values())))
        if isinstance(self.function, (Kernel, ParametricKernel)):
            rows = [values[name].reshape(count, -1) for name, _ in self.function.inputs]
            outputs = self.function(*rows, threads=1)
        else:
            outputs = self.function(**values)
        if isinstance(outputs, Mapping):
            results = [np.asarray(outputs[output], dtype=float) for output in self.outputs]
        else:
            results = [
                np.asarray(x, dtype=float) for x in (outputs if isinstance(outputs, tuple) else (outputs,))
            ]
        for name, result in zip(self.gives(), results, strict=True):
            if result.shape[:1] != (count,):
                raise StudyError(f"compute.{name}: expected shape ({count}, …), got {result.shape}")
        return dict(zip(self.gives(), results, strict=True))


def imported(reference: str, where: str) -> Any:
    """The object named by ``package.module:name``."""
    module, _, attribute = reference.partition(":")
    if not attribute:
        raise StudyError(f'{where}: expected "package.module:name", got {reference!r}')
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise StudyError(f"{where}: cannot import {reference!r} ({error})") from None


def read(name: str, table: StudySettings, function: Any = None) -> CallStep:
    """The step of an entry with the key ``call``, or of a kernel or function itself."""
    if function is None:
        function = imported(table.get("call", str), table.where("call"))
    if isinstance(function, (Kernel, ParametricKernel)):
        arguments = [argument for argument, _ in function.inputs]
        outputs = [output for output, _ in function.outputs]
        outputs = [""] if len(outputs) == 1 else outputs
    elif callable(function):
        arguments = [p.name for p in inspect.signature(function).parameters.values()]
        outputs = [str(output) for output in table.get("outputs", list, [""])]
    else:
        raise table.fail("call", f"expected a function, got a {type(function).__name__}")
    if not arguments:
        raise table.fail("call", "the function takes no arguments")
    given = StudySettings(table.get("inputs", dict, {}), table.where("inputs"))
    sources = {argument: given.get(argument, str, argument) for argument in arguments}
    given.finish()
    return CallStep(name, function, sources, tuple(outputs))
