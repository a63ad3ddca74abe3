"""New kernels from old ones: derivatives."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

from linkwise.compiler.derivative import jacobian, reverse
from linkwise.compiler.program import Program, lower
from linkwise.errors import TraceError, UnknownNameError

if TYPE_CHECKING:
    from linkwise.compiler.kernel import Kernel


def jacobian_kernel(kernel: Kernel, by: str) -> Kernel:
    """The derivative of every output by one input: shape of the output + (size of the input,)."""
    from linkwise.compiler.kernel import Kernel

    sizes = dict(kernel.inputs)
    if by not in sizes:
        raise UnknownNameError(f"jacobian: {kernel.name} has no input {by!r}; it has {', '.join(sizes)}")
    outputs = [(f"d{name}_d{by}", (*shape, sizes[by])) for name, shape in kernel.outputs]

    def build(dtype: str) -> Program:
        program = kernel.program(dtype)
        if not isinstance(program, Program):
            raise TraceError(f"{kernel.name} has too many links to be differentiated as one formula")
        graph = program.source_values[0][0].graph
        inputs = graph.inputs(by, sizes[by])
        sources = [node for values in program.source_values for node in values]
        rows = jacobian(sources, inputs)
        nodes, start = {}, 0
        for name, shape in outputs:
            count = math.prod(shape[:-1])
            nodes[name] = (shape, [entry for row in rows[start : start + count] for entry in row])
            start += count
        return lower(nodes, sizes, name=f"{kernel.name}_by_{by}", dtype=dtype)  # type: ignore[arg-type]

    key = None
    if kernel.key is not None:
        key = hashlib.sha256(kernel.key + b"\0jacobian by " + by.encode()).digest()
    return Kernel(f"{kernel.name}_by_{by}", kernel.inputs, outputs, kernel.dtype, build, key)


def vjp_kernel(kernel: Kernel, by: Sequence[str]) -> Kernel:
    """Another kernel: the gradient of Σ cotangent · output by these inputs, in one pass back over the graph.

    It takes the inputs and then, for each output, ``<output>_bar``: its cotangent, row by row. It gives
    ``<input>_bar`` for each of ``by``.
    """
    from linkwise.compiler.kernel import Kernel

    sizes = dict(kernel.inputs)
    unknown = [name for name in by if name not in sizes]
    if unknown:
        raise UnknownNameError(f"vjp: {kernel.name} has no input {unknown[0]!r}; it has {', '.join(sizes)}")
    name = f"{kernel.name}_vjp"
    cotangents = {_bar(output, sizes): math.prod(shape) for output, shape in kernel.outputs}
    inputs = {**sizes, **cotangents}
    outputs = [(_bar(each, inputs), (sizes[each],)) for each in by]

    def build(dtype: str) -> Program:
        program = kernel.program(dtype)
        if not isinstance(program, Program):
            raise TraceError(f"{kernel.name} has too many links to be differentiated as one formula")
        graph = program.source_values[0][0].graph
        total = graph.zero
        for (bar, size), values in zip(cotangents.items(), program.source_values, strict=True):
            for weight, value in zip(graph.inputs(bar, size), values, strict=True):
                total = graph.add(total, graph.mul(weight, value))
        (row,) = reverse([total], [node for each in by for node in graph.inputs(each, sizes[each])])
        nodes, start = {}, 0
        for output, shape in outputs:
            nodes[output] = (shape, row[start : start + shape[0]])
            start += shape[0]
        return lower(nodes, inputs, name=name, dtype=dtype)  # type: ignore[arg-type]

    key = None
    if kernel.key is not None:
        key = hashlib.sha256(kernel.key + b"\0vjp by " + "\0".join(by).encode()).digest()
    return Kernel(name, inputs.items(), outputs, kernel.dtype, build, key)


def _bar(name: str, taken: Container[str]) -> str:
    """A name for the gradient by a value, other than those taken."""
    bar = f"{name}_bar"
    while bar in taken:
        bar += "_bar"
    return bar
