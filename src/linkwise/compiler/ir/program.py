"""From a traced function to a program: the passes of the compiler in their order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from linkwise.compiler.ir import operations as operations_
from linkwise.compiler.ir.expand import expand
from linkwise.compiler.ir.fuse import fuse
from linkwise.compiler.ir.graph import Graph, Node
from linkwise.compiler.ir.operations import Operations
from linkwise.compiler.ir.rules import simplified_nodes, simplify
from linkwise.compiler.ir.schedule import Body, LoopRegion, schedule, scheduled
from linkwise.compiler.ir.verify import verify
from linkwise.compiler.ir.walks import loop_numbers, reachable
from linkwise.errors import TraceError, UnknownNameError

Dtype = Literal["float64", "float32"]
Shape = tuple[int, ...]
Recorded = dict[str, tuple[Shape, list[Node]]]
"""For each output its shape and its nodes, row by row."""

__all__ = [
    "Dtype",
    "Explanation",
    "LoopRegion",
    "Program",
    "Recorded",
    "Shape",
    "lower",
    "record",
    "trace",
    "unfused",
]


@dataclass(frozen=True)
class Explanation:
    """What an output depends on and what it costs when it is computed alone."""

    inputs: tuple[tuple[str, int], ...]
    operations: Operations
    parameters: tuple[str, ...] | None = None
    """Labels of the constants it depends on, where the kernel's maker knows them."""

    def __str__(self) -> str:
        names = ", ".join(f"{name}[{k}]" for name, k in self.inputs) or "constants only"
        text = f"depends on {names}; alone it costs {self.operations}"
        return (
            text if self.parameters is None else f"{text}; parameters: {', '.join(self.parameters) or 'none'}"
        )


@dataclass(frozen=True, eq=False)
class Program:
    """A scheduled list of IEEE operations with named inputs and outputs: all that a target needs to know."""

    name: str
    inputs: tuple[tuple[str, int], ...]
    """(name, number of scalars) in the order of the call."""
    outputs: tuple[tuple[str, Shape], ...]
    """(name, shape for one state)."""
    values: tuple[tuple[Node, ...], ...]
    """For each output its nodes, row by row; of any kind, also a constant, an input or a repeated node."""
    body: Body
    """What to compute, in order; see ``schedule``."""
    dtype: Dtype
    operations: Operations
    source_values: tuple[tuple[Node, ...], ...] = field(repr=False)
    """The outputs as they were traced, before any pass: for derivatives and other precisions."""
    fused: bool = True
    """Whether fused multiply-adds are used."""
    steady: tuple[str, ...] = ()
    """Inputs that are mostly the same for all states of a batch, such as gains; see ``emit.steady``."""

    def nodes(self) -> Iterator[Node]:
        """All scheduled nodes, those of loops included."""
        return scheduled(self.body)

    def explain(self, output: str, index: int | None = None) -> Explanation:
        """Which inputs output element ``index`` (row by row; None: all of them) depends on, and its cost
        alone.
        """
        names = [name for name, _ in self.outputs]
        if output not in names:
            raise UnknownNameError(f"{self.name} has no output {output!r}; it has {', '.join(names)}")
        values = simplify(self.source_values[names.index(output)])
        if index is not None:
            if not -len(values) <= index < len(values):
                raise IndexError(f"{output} has {len(values)} elements, there is no element {index}")
            values = [values[index]]
        order = {name: k for k, (name, _) in enumerate(self.inputs)}
        used = [node.value for node in reachable(values) if node.op == "input"]
        used.sort(key=lambda value: (order[value[0]], value[1]))
        return Explanation(tuple(used), operations_.count(values))


def trace(
    function: Callable[..., Any],
    inputs: Mapping[str, int],
    outputs: Mapping[str, Shape],
    *,
    name: str = "program",
    dtype: Dtype = "float64",
    fused: bool = True,
    steady: Sequence[str] = (),
) -> Program:
    """The program of a function of scalars.

    ``function`` is called with one list of symbols per input (``inputs`` gives their lengths) and returns one
    nested list of scalars per output: as a dictionary by name, or as a tuple in the order of ``outputs`` (a
    single output may come as itself). ``steady``: see ``Program``.
    """
    nodes = record(function, inputs, outputs, name=name)
    return replace(lower(nodes, inputs, name=name, dtype=dtype, fused=fused), steady=tuple(steady))


def record(
    function: Callable[..., Any], inputs: Mapping[str, int], outputs: Mapping[str, Shape], *, name: str
) -> Recorded:
    """What ``function`` computes, as nodes of a new graph: for each output its shape and its nodes row by row."""
    graph = Graph()
    returned: Any = function(**{key: graph.inputs(key, size) for key, size in inputs.items()})
    if not isinstance(returned, Mapping):
        if len(outputs) == 1:
            returned = dict(zip(outputs, (returned,), strict=True))
        elif len(returned) == len(outputs):
            returned = dict(zip(outputs, returned, strict=True))
        else:
            raise TraceError(f"{name} returned {len(returned)} outputs, expected {len(outputs)}")
    elif set(keys := list(cast(Mapping[str, Any], returned))) != set(outputs):
        raise TraceError(f"{name} returned {sorted(keys)}, expected {sorted(outputs)}")
    nodes: Recorded = {}
    for key, shape in outputs.items():
        nodes[key] = (tuple(shape), [graph.lift(x) for x in _flatten(returned[key], tuple(shape), key)])
    return nodes


def lower(
    outputs: Mapping[str, tuple[Shape, Sequence[Node]]],
    inputs: Mapping[str, int],
    *,
    name: str,
    dtype: Dtype = "float64",
    fused: bool = True,
    hardware: bool = False,
) -> Program:
    """The program for these outputs, each given as (shape, nodes row by row).

    ``fused=False`` does without fused multiply-adds, for processors that have none: other bits, about as
    accurate. ``hardware=True`` leaves sine and cosine to the machine.
    """
    sizes = [len(nodes) for _, nodes in outputs.values()]
    source = [node for _, nodes in outputs.values() for node in nodes]
    nodes = reachable(source)
    _check_loops(name, source, nodes)
    simplified, nodes = simplified_nodes(source, nodes)
    lowered = expand(simplified, dtype, fused=fused, hardware=hardware, nodes=nodes)
    if fused:
        lowered = fuse(lowered)
    program = Program(
        name=name,
        inputs=tuple(inputs.items()),
        outputs=tuple((key, tuple(shape)) for key, (shape, _) in outputs.items()),
        values=_split(lowered, sizes),
        body=schedule(lowered),
        dtype=dtype,
        operations=operations_.count(simplified, nodes),
        source_values=_split(source, sizes),
        fused=fused,
    )
    return verify(program)


def _check_loops(name: str, outputs: Sequence[Node], nodes: list[Node]) -> None:
    innermost, _ = loop_numbers(nodes)
    if any(innermost[node.index] >= 0 for node in outputs):
        raise TraceError(
            f"{name}: a value from inside a while_loop is used after it; return it as part of the state"
        )


def unfused(program: Program) -> Program:
    """The same function without fused multiply-adds."""
    return relowered(program, fused=False)


def relowered(program: Program, **options: bool) -> Program:
    """The same function with other options of ``lower``."""
    outputs = {
        name: (shape, nodes)
        for (name, shape), nodes in zip(program.outputs, program.source_values, strict=True)
    }
    made = lower(outputs, dict(program.inputs), name=program.name, dtype=program.dtype, **options)
    return replace(made, steady=program.steady)


def _split(nodes: Sequence[Node], sizes: Sequence[int]) -> tuple[tuple[Node, ...], ...]:
    parts: list[tuple[Node, ...]] = []
    start = 0
    for size in sizes:
        parts.append(tuple(nodes[start : start + size]))
        start += size
    return tuple(parts)


def _flatten(value: Any, shape: Shape, name: str) -> list[Any]:
    """The scalars of a nested list, row by row, checked against the shape."""
    level = [value]
    for axis, length in enumerate(shape):
        for part in level:
            if not hasattr(part, "__len__") or len(part) != length:
                found = len(part) if hasattr(part, "__len__") else "a scalar"
                raise TraceError(f"output {name}: expected shape {shape}, axis {axis} has {found}")
        level = [element for part in level for element in part]
    if len(level) != math.prod(shape):
        raise TraceError(f"output {name}: expected {math.prod(shape)} scalars, got {len(level)}")
    return level


def alive(program: Program) -> int:
    """The most values that are alive at once in the order of the schedule; those of loops count throughout."""
    order = list(program.nodes())
    last: dict[int, int] = {}
    for place, node in enumerate(order):
        for a in node.args:
            last[a.index] = place
    ends: dict[int, int] = {}
    now = most = 0
    for place, node in enumerate(order):
        if node.index in last:
            now += 1
            ends[last[node.index]] = ends.get(last[node.index], 0) + 1
        most = max(most, now)
        now -= ends.pop(place, 0)
    return most
