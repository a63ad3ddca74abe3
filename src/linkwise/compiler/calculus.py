"""New kernels from old ones: derivatives."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, TypeVar

from linkwise.compiler.ir.derivative import jacobian, reverse, tangents
from linkwise.compiler.ir.program import Program, lower
from linkwise.errors import TraceError, UnknownNameError

if TYPE_CHECKING:
    from linkwise.compiler.kernel import Kernel


def jacobian_kernel(kernel: Kernel, by: str) -> Kernel:
    """The derivative of every output by one input: shape of the output + (size of the input,)."""
    from linkwise.compiler.kernel import Kernel

    sizes = dict(kernel.inputs)
    _check_inputs(kernel, (by,), "jacobian")
    outputs = [(f"d{name}_d{by}", (*shape, sizes[by])) for name, shape in kernel.outputs]

    def build(dtype: str) -> Program:
        program = _straight(kernel, dtype)
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

    key = _key(kernel, "jacobian", (by,))
    return _shaped(kernel, Kernel(f"{kernel.name}_by_{by}", kernel.inputs, outputs, kernel.dtype, build, key))


def vjp_kernel(kernel: Kernel, by: Sequence[str]) -> Kernel:
    """Another kernel: the gradient of Σ cotangent · output by these inputs, in one pass back over the graph.

    It takes the inputs and then, for each output, ``<output>_bar``: its cotangent, row by row. It gives
    ``<input>_bar`` for each of ``by``.
    """
    from linkwise.compiler.kernel import Kernel

    sizes = dict(kernel.inputs)
    _check_inputs(kernel, by, "vjp")
    name = f"{kernel.name}_vjp"
    inputs = dict(sizes)
    cotangents = {
        _added(inputs, f"{output}_bar", math.prod(shape)): math.prod(shape)
        for output, shape in kernel.outputs
    }
    taken = dict(inputs)
    outputs = [(_added(taken, f"{each}_bar", sizes[each]), (sizes[each],)) for each in by]

    def build(dtype: str) -> Program:
        program = _straight(kernel, dtype)
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

    return _shaped(
        kernel, Kernel(name, inputs.items(), outputs, kernel.dtype, build, _key(kernel, "vjp", by))
    )


def jvp_kernel(kernel: Kernel, by: Sequence[str]) -> Kernel:
    """Another kernel: how the outputs change when these inputs change along one direction, in one forward pass.

    It takes the inputs and then ``<input>_dot`` for each of ``by``. It gives ``<output>_dot`` for each output.
    """
    from linkwise.compiler.kernel import Kernel

    sizes = dict(kernel.inputs)
    _check_inputs(kernel, by, "jvp")
    name = f"{kernel.name}_jvp"
    inputs = dict(sizes)
    directions = {_added(inputs, f"{each}_dot", sizes[each]): each for each in by}
    names: dict[str, tuple[int, ...]] = {}
    for output, shape in kernel.outputs:
        _added(names, f"{output}_dot", shape)
    outputs = list(names.items())

    def build(dtype: str) -> Program:
        program = _straight(kernel, dtype)
        graph = program.source_values[0][0].graph
        seeds = {
            node: seed
            for dot, each in directions.items()
            for node, seed in zip(
                graph.inputs(each, sizes[each]), graph.inputs(dot, sizes[each]), strict=True
            )
        }
        sources = [node for values in program.source_values for node in values]
        supply = iter(tangents(sources, seeds))
        nodes = {
            output: (shape, [next(supply) for _ in values])
            for (output, shape), values in zip(outputs, program.source_values, strict=True)
        }
        return lower(nodes, inputs, name=name, dtype=dtype)  # type: ignore[arg-type]

    return _shaped(
        kernel, Kernel(name, inputs.items(), outputs, kernel.dtype, build, _key(kernel, "jvp", by))
    )


def _shaped(kernel: Kernel, derivative: Kernel) -> Kernel:
    """A derivative takes matrices where its function does."""
    derivative.shapes = kernel.shapes
    return derivative


def _straight(kernel: Kernel, dtype: str) -> Program:
    """The program of a kernel that can be differentiated."""
    program = kernel.program(dtype)
    if isinstance(program, Program) or kernel.written_out is not None:
        return kernel.straight(dtype)
    raise TraceError(f"{kernel.name} has too many links to be differentiated as one formula")


def _check_inputs(kernel: Kernel, by: Sequence[str], what: str) -> None:
    sizes = dict(kernel.inputs)
    unknown = [name for name in by if name not in sizes]
    if unknown:
        raise UnknownNameError(
            f"{what}: {kernel.name} has no input {unknown[0]!r}; it has {', '.join(sizes)}"
        )


def _key(kernel: Kernel, what: str, by: Sequence[str]) -> bytes | None:
    """What the derivative depends on, if that is known of the kernel."""
    if kernel.key is None:
        return None
    return hashlib.sha256(kernel.key + f"\0{what} by ".encode() + "\0".join(by).encode()).digest()


T = TypeVar("T")


def _added(to: dict[str, T], name: str, value: T) -> str:
    """Add a value under a name that is not taken, which is given back."""
    free = _free_name(name, to)
    to[free] = value
    return free


def _free_name(name: str, taken: Container[str]) -> str:
    """The name with its ending repeated until it is none of those taken."""
    ending = name[name.rindex("_") :]
    while name in taken:
        name += ending
    return name
