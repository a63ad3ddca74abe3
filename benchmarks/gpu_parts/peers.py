"""The same graph in other libraries: compiled by XLA (JAX), and one call per operation (PyTorch)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy

from gpu_parts.measuring import host_seconds, random_states
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.program import Program


def columns_function(program: Program, where: Callable, sqrt: Callable) -> Callable[..., list]:
    """A straight-line program as a function of the inputs' columns, with + - * / and two functions of a framework.

    Sines and cosines are the program's polynomials without the tests of single bits, which stand in for any quadrant:
    the same amount of arithmetic, for timing only.
    """

    def run(*inputs):
        known: dict[int, Any] = {}
        columns = {name: array for (name, _), array in zip(program.inputs, inputs, strict=True)}

        def value(node):
            if node.op == "const":
                return node.value
            if node.op == "input":
                return columns[node.value[0]][node.value[1]]
            return known[node.index]

        table = {
            "add": lambda a, b: a + b,
            "sub": lambda a, b: a - b,
            "mul": lambda a, b: a * b,
            "div": lambda a, b: a / b,
            "neg": lambda a: -a,
            "fma": lambda a, b, c: a * b + c,
            "abs": abs,
            "sqrt": sqrt,
            "lt": lambda a, b: a < b,
            "le": lambda a, b: a <= b,
            "bit": lambda a: a > 0,
            "select": where,
        }
        for node in program.nodes():
            known[node.index] = table[node.op](*map(value, node.args))
        return [value(node) for nodes in program.values for node in nodes]

    return run


def time_jax(kernel: Kernel, count: int) -> float:
    import jax
    import jax.numpy as jnp

    body = columns_function(kernel.program("float32"), jnp.where, jnp.sqrt)  # type: ignore[arg-type]

    def one(*rows):
        return jnp.stack(body(*rows))

    compiled = jax.jit(jax.vmap(one))
    there = [jnp.asarray(cupy.asnumpy(a)) for a in random_states(kernel, count, "float32")]
    compiled(*there).block_until_ready()
    return host_seconds(lambda: compiled(*there).block_until_ready(), 10)


def time_torch(kernel: Kernel, count: int) -> float:
    import torch

    body = columns_function(kernel.program("float32"), torch.where, torch.sqrt)  # type: ignore[arg-type]
    there = [torch.as_tensor(a, device="cuda") for a in random_states(kernel, count, "float32")]

    def work():
        one = torch.zeros(count, device="cuda")
        torch.stack(
            [c if isinstance(c, torch.Tensor) else one + c for c in body(*(a.T.contiguous() for a in there))],
            -1,
        )
        torch.cuda.synchronize()

    with torch.no_grad():
        return host_seconds(work, 5)
