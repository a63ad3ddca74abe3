"""A function with a memory, called once per sample: as a kernel for one sample, or over a whole recording in one call.

    outputs, next_memory = function(inputs, memory)

Observers and recursive estimators are such functions. The kernel gives C; the rollout has the loop over samples inside
machine code. Both come from the same lines.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from linkwise import language
from linkwise.compiler.ir.program import Shape
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.rollout import NEXT, Feed, Interface, RolloutKernel, trace_rollout
from linkwise.compiler.trace.traced_function import TracedFunction
from linkwise.errors import ShapeError

MEMORY = "memory"
SAMPLES = "samples"


class Recursion:
    """One function with a memory.

    Args:
        name: of the function in generated code.
        inputs: the scalars of every input of one sample, by name.
        outputs: the shape of every output of one sample, by name.
        memory: scalars that are kept from sample to sample.
        function: takes a list of scalars per input and ``memory``; gives lists by the names of outputs and
            ``next_memory``.
        content: stands for everything that the function depends on.
    """

    def __init__(
        self,
        name: str,
        inputs: Mapping[str, int],
        outputs: Mapping[str, Shape],
        memory: int,
        function: Callable[..., Mapping[str, Any]],
        content: Any,
    ):
        self.name = name
        self.inputs = dict(inputs)
        self.outputs = dict(outputs)
        self.memory = memory
        self.function = function
        self.key = hashlib.sha256(repr((name, content)).encode()).digest()
        self._rollout: RolloutKernel | None = None

    def kernel(self, dtype: str = "float64") -> Kernel:
        """(inputs, memory) -> (outputs, next_memory), any leading axes."""
        sizes = {**self.inputs, MEMORY: self.memory}
        shapes = {**self.outputs, NEXT + MEMORY: (self.memory,)}

        def arrays(**given: Any) -> dict[str, Any]:
            scalars = {key: x if isinstance(x, language.Elements) else list(x) for key, x in given.items()}
            outputs = self.function(**scalars)
            return {key: language.array(outputs[key]) for key in shapes}

        def build(precision: str) -> Any:
            lengths = {key: (size,) for key, size in sizes.items()}
            return TracedFunction(arrays, lengths, self.name).program(precision)  # type: ignore[arg-type]

        return Kernel(self.name, sizes.items(), shapes.items(), dtype, build, self.key)

    def table(self, samples: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Checked samples of one shape: every input (..., samples, size), leading axes broadcast together."""
        given = {name: np.asarray(samples[name], dtype=float) for name in self.inputs}
        for name, array in given.items():
            if array.ndim < 2 or array.shape[-1] != self.inputs[name]:
                raise ShapeError(
                    f"{name}: expected shape (..., samples, {self.inputs[name]}), got {array.shape}"
                )
        try:
            joined = np.broadcast_shapes(*(array.shape[:-1] for array in given.values()))
        except ValueError:
            shapes = ", ".join(f"{name} {array.shape}" for name, array in given.items())
            raise ShapeError(f"the samples do not go together: {shapes}") from None
        return {name: np.broadcast_to(array, (*joined, array.shape[-1])) for name, array in given.items()}

    def over(
        self, samples: Mapping[str, Any], memory: Any, *, threads: int | None = None
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """(the outputs of all samples, (..., samples, *shape) by name; the last memory).

        Args:
            samples: every input, (..., samples, size), leading axes broadcast together.
            memory: the first memory, (..., size).
            threads: number of threads.
        """
        given = self.table(samples)
        joined = given[next(iter(given))].shape[:-1]
        table, count = np.concatenate(list(given.values()), axis=-1), joined[-1]
        final, written = self._rolled_out()(
            {SAMPLES: table.reshape(*joined[:-1], -1), MEMORY: np.asarray(memory, dtype=float)},
            steps=count,
            threads=threads,
        )
        return {name: written[name] for name in self.outputs}, final[MEMORY]

    def _rolled_out(self) -> RolloutKernel:
        if self._rollout is None:
            width = sum(self.inputs.values())
            feeds = {SAMPLES: Feed(width, width, shared=False)}
            interface = Interface({MEMORY: self.memory}, {}, feeds, self.outputs)

            def step(**values: Any) -> Mapping[str, Any]:
                given, at = {}, 0
                for name, size in self.inputs.items():
                    given[name] = values[SAMPLES][at : at + size]
                    at += size
                return self.function(**given, memory=values[MEMORY])

            self._rollout = RolloutKernel(
                self.name,
                interface,
                lambda dtype: trace_rollout(step, interface, name=self.name, dtype=dtype),
                self.key,
            )
        return self._rollout
