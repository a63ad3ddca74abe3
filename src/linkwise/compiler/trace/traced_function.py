"""From a function of arrays to a program: written out if that is short enough, else with loops; see ``rolled``."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from linkwise.compiler.ir.graph import Graph
from linkwise.compiler.ir.loops import Array
from linkwise.compiler.ir.program import Dtype, Program, Recorded, Shape, lower
from linkwise.compiler.ir.walks import reachable
from linkwise.compiler.trace import rolled
from linkwise.compiler.trace.loop_derivatives import Tree
from linkwise.compiler.trace.procedure import ProcedureNest
from linkwise.compiler.trace.rolled import Rolled, Site, TooLongError, Unrolled, tracing
from linkwise.compiler.trace.rolled_statements import Finished, Resolved
from linkwise.compiler.trace.room import in_one_room
from linkwise.compiler.trace.traced_arrays import Stored, copied, index
from linkwise.language import plain

Outputs = dict[str, Any]
"""Arrays of symbols and numbers, or arrays in memory."""


class TracedFunction:
    """A function of arrays, traced: written out if that is short enough, else with loops.

    Args:
        function: takes an array of symbols for each input and gives {name: array}.
        inputs: their shapes.
        label: name of the program.
        longest: operations up to which a loop is unrolled inside a program with loops; by default ``rolled.UNROLLED``.
        loops: whether it is long in any case: what is ``straight`` in it need not be traced to know that.
        constant_time: whether work that ``language.needed`` would leave out is always done.
        in_place: whether arrays that are results are the outputs themselves, not copied to them.
    """

    def __init__(
        self,
        function: Callable[..., Outputs],
        inputs: Mapping[str, Shape],
        label: str,
        *,
        longest: int | None = None,
        loops: bool = False,
        constant_time: bool = False,
        in_place: bool = False,
    ):
        self.in_place = in_place
        self.function, self.inputs, self.label = function, dict(inputs), label
        self.longest, self.loops, self.constant_time = longest, loops, constant_time
        self.recorded: Recorded | None = None
        with contextlib.suppress(TooLongError):
            self.recorded = None if loops else self._recorded(rolled.MOST_NODES)
        if self.recorded is not None:
            self.shapes = {key: shape for key, (shape, _) in self.recorded.items()}
            return
        outputs = self._trace_loops()
        self.shapes = {key: tuple(value.shape) for key, value in outputs.items()}

    def _trace_loops(self) -> Outputs:
        """Find the loops that are unrolled in a program with loops."""
        trace, outputs = self._rolled(frozenset())
        self._unrolled = trace.short_loops()
        trace.graph.finish()
        return outputs

    def is_long(self, times: int = 1) -> bool:
        """Whether a program with ``times`` as many operations has loops."""
        if self.recorded is None:
            return True
        nodes = reachable(node for _, values in self.recorded.values() for node in values)
        return times * len(nodes) > rolled.MOST_NODES

    def program(self, dtype: Dtype, *, fused: bool = True) -> Program | ProcedureNest:
        """The program in this precision, with or without fused multiply-adds."""
        if self.recorded is not None:
            return self._lowered(self.recorded, dtype)
        trace, _ = self._rolled(self._unrolled)
        finished = Finished(trace.checked(), self.label, dtype, fused=fused)
        trace.graph.finish()
        nest = ProcedureNest(
            self.label,
            dtype,
            tuple(finished.arrays),
            finished.body,
            tables=finished.tables,
            operations=finished.operations,
            unfused=lambda: self.program(dtype, fused=False),  # type: ignore[arg-type,return-value]
            fused=fused,
            shapes=self.shapes,
        )
        return nest if self.loops else in_one_room(nest, "tables")

    def tree(self, by: Sequence[str]) -> Tree | None:
        """The loops of the function, for its derivatives by these inputs; None where there are none."""
        if self.recorded is not None:
            self._trace_loops()
        trace, _ = self._rolled(self._unrolled)
        tree = Tree(Resolved(trace.checked(), self.label), by)
        return tree if tree.has_loops else None

    def another(
        self, function: Callable[..., Outputs], inputs: Mapping[str, Shape], label: str
    ) -> TracedFunction:
        """A function that is made from this one, such as its derivative, traced by the same rules."""
        return TracedFunction(function, inputs, label, longest=self.longest, constant_time=self.constant_time)

    def straight(self, dtype: Dtype) -> Program:
        """The program without loops, whatever its length."""
        return self._lowered(self.recorded or self._recorded(None), dtype)

    def _lowered(self, recorded: Recorded, dtype: Dtype) -> Program:
        sizes = {key: math.prod(shape) for key, shape in self.inputs.items()}
        return lower(recorded, sizes, name=self.label, dtype=dtype)

    def _recorded(self, most: int | None) -> Recorded:
        graph = Graph()
        with tracing(Unrolled(graph, most)):
            given = {key: _symbols(graph, key, shape) for key, shape in self.inputs.items()}
            outputs = self.function(**given)
        return {
            key: (tuple(value.shape), [graph.lift(plain(x)) for x in value.flat])
            for key, value in outputs.items()
        }

    def _rolled(self, unrolled: frozenset[Site]) -> tuple[Rolled, Outputs]:
        trace = Rolled(Graph(), unrolled, self.longest, self.constant_time)
        with tracing(trace):
            outputs = self.function(**{key: trace.given(key, shape) for key, shape in self.inputs.items()})
            for key, value in outputs.items():
                if self.in_place and _is_whole(trace, value):
                    _become_output(trace, key, value)
                else:
                    _written(trace, key, value)
        trace.end()
        return trace, outputs


def _symbols(graph: Graph, key: str, shape: Shape) -> np.ndarray:
    array = np.empty(shape, object)
    array[...] = np.array([*graph.inputs(key, array.size), None], object)[:-1].reshape(shape)
    return array


def _is_whole(trace: Rolled, value: Any) -> bool:
    """Whether a result is a whole array in memory."""
    if not isinstance(value, Stored) or trace.arrays[value.array].kind != "scratch":
        return False
    array, dense = trace.arrays[value.array], Stored(trace, value.array, value.shape).strides
    return value.strides == dense and math.prod(value.shape) == array.columns * array.rows  # type: ignore[operator]


def _become_output(trace: Rolled, key: str, value: Stored) -> None:
    del trace.arrays[value.array]  # outputs are in the order of results
    trace.arrays[value.array] = Array(value.array, "output", math.prod(value.shape), label=key)


def _written(trace: Rolled, key: str, value: Any) -> None:
    """An output, which may be called like an input."""
    label = f"{key} out" if key in trace.arrays else key
    trace.arrays[label] = Array(label, "output", math.prod(value.shape), label=key)
    if value.shape:
        copied(trace, Stored(trace, label, tuple(value.shape)), value)
    else:
        trace.write(label, index(0), value[()])
