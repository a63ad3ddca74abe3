"""New kernels from old ones: derivatives."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Container, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from linkwise.compiler.ir.derivative import jacobian, reverse, tangents
from linkwise.compiler.ir.program import Program, lower
from linkwise.compiler.trace.loop_derivatives import (
    Tree,
    adjoints_of_inputs,
    as_shape,
    jacobians,
    tangents_of_outputs,
)
from linkwise.errors import TraceError, UnknownNameError

if TYPE_CHECKING:
    from linkwise.compiler.kernel import Kernel


DERIVATIVE_COST = 3
"""About how many operations a value and its derivative in one direction have for each one of the value."""


def jacobian_kernel(kernel: Kernel, by: str) -> Kernel:
    """The derivative of every output by one input: shape of the output + (size of the input,)."""
    from linkwise.compiler.kernel import Kernel

    sizes = dict(kernel.inputs)
    _check_inputs(kernel, (by,), "jacobian")
    outputs = [(f"d{name}_d{by}", (*shape, sizes[by])) for name, shape in kernel.outputs]
    key = _key(kernel, "jacobian", (by,))
    tree = _loops(kernel, (by,))
    if tree is not None:
        shapes = {name: (*shape, sizes[by]) for name, shape in kernel.outputs}

        def function(**values: Any) -> dict[str, Any]:
            slopes = jacobians(tree, values, by, shapes)
            return {
                output: slopes[name] for (output, _), (name, _) in zip(outputs, kernel.outputs, strict=True)
            }

        return _of_loops(kernel, f"{kernel.name}_by_{by}", kernel.inputs, outputs, function, key)

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
    tree = _loops(kernel, by)
    if tree is not None:

        def function(**given: Any) -> dict[str, Any]:
            weights = {name: given[bar] for bar, (name, _) in zip(cotangents, kernel.outputs, strict=True)}
            gradients = adjoints_of_inputs(tree, {each: given[each] for each in sizes}, weights)
            return {output: gradients[each] for (output, _), each in zip(outputs, by, strict=True)}

        return _of_loops(kernel, name, inputs.items(), outputs, function, _key(kernel, "vjp", by))

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
    tree = _loops(kernel, by)
    if tree is not None:

        def function(**given: Any) -> dict[str, Any]:
            along = {each: given[dot] for dot, each in directions.items()}
            rates = tangents_of_outputs(tree, {each: given[each] for each in sizes}, along)
            return {
                output: rates[name] for (output, _), (name, _) in zip(outputs, kernel.outputs, strict=True)
            }

        return _of_loops(kernel, name, inputs.items(), outputs, function, _key(kernel, "jvp", by))

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


def _loops(kernel: Kernel, by: Sequence[str]) -> Tree | None:
    """The loops of a kernel whose derivatives would be long as one list of operations; None for others."""
    if kernel.traced is None or not kernel.traced.is_long(DERIVATIVE_COST):
        return None
    try:
        return kernel.traced.tree(by)
    except TraceError:  # what loops cannot hold is written out
        return None


def _of_loops(
    kernel: Kernel,
    name: str,
    inputs: Iterable[tuple[str, int]],
    outputs: Sequence[tuple[str, tuple[int, ...]]],
    function: Callable[..., dict[str, Any]],
    key: bytes | None,
) -> Kernel:
    """The kernel of a derivative that is a function with loops itself."""
    from linkwise.compiler.kernel import Kernel

    assert kernel.traced is not None
    inputs = list(inputs)
    shapes = dict(outputs)

    def shaped(**given: Any) -> dict[str, Any]:
        return {output: as_shape(value, shapes[output]) for output, value in function(**given).items()}

    traced = kernel.traced.another(shaped, {each: (size,) for each, size in inputs}, name)
    made = Kernel(name, inputs, outputs, kernel.dtype, traced.program, key)  # type: ignore[arg-type]
    made.written_out = traced.straight  # type: ignore[assignment]
    made.traced = traced
    return _shaped(kernel, made)


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
