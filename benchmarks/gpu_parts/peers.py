"""Other libraries on the same GPU in the same run.

frax, adam and MJX by the adapters of ``linkwise bench``, jitted and vectorised, with data on the device; their results
are compared before anything is timed. And the same graph as Linkwise's: compiled by XLA (JAX), and one call per
operation (PyTorch).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cupy
import numpy as np

import linkwise as lw
from gpu_parts.measuring import Size, device_seconds, host_seconds, kernel_of, random_states
from linkwise.bench import subject as subjects
from linkwise.bench.peers import find
from linkwise.bench.peers.base import INPUTS, Peer
from linkwise.compiler.ir.program import Program
from linkwise.compiler.kernel import Kernel

LIBRARIES = {"frax": 1 << 20, "mjx": 1 << 16, "adam": 1 << 16}  # and the number of states that each is given
COMPARED = ("inverse_dynamics", "forward_dynamics", "mass_matrix")


def time_libraries(robot: lw.Robot, late: Callable[[], bool]) -> list[dict[str, Any]]:
    """A row for every library, function and precision, beside Linkwise with the same states, until it is late."""
    os.environ.setdefault("JAX_PLATFORMS", "cuda")
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # leaves memory to CuPy
    plain = subjects.without_drives(robot)  # not every library has friction and rotor inertia
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        subject = subjects.Subject.of(plain, Path(folder))
        for name, most in LIBRARIES.items():
            found, missing = find(subject, (name,))
            rows += [{"library": name, "failed": reason} for reason in missing.values()]
            for peer in found:
                rows += _library_rows(peer, plain, Size.of("states", most), late)
    return rows


def _library_rows(peer: Peer, robot: lw.Robot, count: int, late: Callable[[], bool]) -> list[dict[str, Any]]:
    rows = []
    for function in COMPARED:
        for dtype in peer.precisions:
            if late():
                break
            drawn = subjects.random_states(robot, count)
            states = {key: np.asarray(values, dtype) for key, values in drawn.items()}
            task = peer.batch(function, states)
            if task is None:
                continue
            row: dict[str, Any] = {"library": peer.name, "version": peer.version, "function": function}
            row |= {"dtype": dtype, "states": count, "path": task.path}
            try:
                here = [states[key] for key in INPUTS[function]]
                wanted = getattr(robot, function)(*here)
                got = task.result()
                if got.dtype != wanted.dtype:
                    raise TypeError(f"computes in {got.dtype}")
                row["difference"] = float(np.abs(got - wanted).max() / np.abs(wanted).max())
                row["per_second"] = count / host_seconds(task.run, 10)
                row["linkwise_per_second"] = count / _own_seconds(robot, function, here)
            except Exception as error:  # a library that cannot do this does not end the run
                row["failed"] = f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"
            rows.append(row)
    return rows


def _own_seconds(robot: lw.Robot, function: str, here: list[np.ndarray]) -> float:
    kernel = kernel_of(robot, function)
    assert kernel is not None
    there = [cupy.asarray(a) for a in here]
    out = cupy.empty((len(here[0]), *kernel.outputs[0][1]), here[0].dtype)
    return device_seconds(lambda: kernel(*there, out=out))[0]


def print_libraries(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if "failed" in row:
            print(f"{row['library']:6} {row.get('function', '')} {row.get('dtype', '')}: {row['failed']}")
            continue
        ratio = row["linkwise_per_second"] / row["per_second"]
        print(
            f"{row['library']:6} {row['function']:18} {row['dtype']:8} {row['states']:8} states: "
            f"{row['per_second'] / 1e9:.4f} G/s, Linkwise {row['linkwise_per_second'] / 1e9:.3f} G/s, "
            f"{ratio:.0f} times; relative difference {row['difference']:.1e}"
        )


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
