"""New kernels from old ones: derivatives."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING

from linkwise.compiler.derivative import jacobian
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
