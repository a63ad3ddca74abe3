"""Programs, their derivatives and counts, and what is written of them for every target, beside what is recorded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from random_programs import random_function
from sample_programs import everything, loop, samples, sweep

import linkwise as lw
from linkwise.compiler.ir import interpret
from linkwise.compiler.ir.program import Program, alive, trace, unfused
from linkwise.compiler.ir.unrolled import unrolled
from linkwise.compiler.shapes import nest
from linkwise.scalar import atan2, maximum, minimum, rint, sign, sqrt, summed
from linkwise.solve.factors import ldl, solve
from linkwise.solve.quadratic import interior_point
from linkwise.solve.tridiagonal import solve_tridiagonal
from recorded import Scenarios, packed, told
from recorded_robots import chain, floating, tree

scenarios = Scenarios("compiler")
TOKEN = re.compile(r"[A-Za-z_]+|<=|>=|==|&&|\|\||[-+*/<>=?:;,(){}\[\]]")
INTEGER = re.compile(r"(?<![\w.])\d+(?![\w.])")


def structure(text: str) -> dict[str, Any]:
    """How often each word and sign stands in a text, and the sum of its whole numbers: their order is free."""
    counts = Counter(TOKEN.findall(re.sub(r"\b[0-9a-f]{8,}\b", "", text)))
    kinds = {name: float(count) for name, count in sorted(counts.items()) if count > 1}
    numbers = [int(each) for each in INTEGER.findall(text)]
    whole = [float(len(numbers)), float(sum(numbers) % 2**40)]
    return packed({"kinds": list(kinds.values()), "whole": whole}) | {"words": " ".join(kinds)}


def odd(x: Any, y: Any) -> list[Any]:
    """Functions that are rarely used."""
    a, b, c = x
    return [
        atan2(a, b),
        atan2(-abs(b), y[0]),
        rint(3.0 * c),
        sign(a - b),
        maximum(a, minimum(b, c)),
        sqrt(a * a + b * b),
        summed([a, b, c, y[0], y[1]]),
        (a + b) * (a - b) + a * a - b * b,
        a / y[0] + b / y[0],
    ]


def programs() -> dict[str, Callable[[], Program]]:
    made: dict[str, Callable[[], Program]] = {
        "sweep": lambda: sweep(4),
        "everything": everything,
        "everything 32": lambda: everything("float32"),
        "loop": loop,
        "odd": lambda: trace(odd, {"x": 3, "y": 2}, {"z": (9,)}),
        "odd 32": lambda: trace(odd, {"x": 3, "y": 2}, {"z": (9,)}, dtype="float32"),
    }
    for seed in range(6):
        made[f"random {seed}"] = lambda seed=seed: trace(
            random_function(seed, 40 + 20 * seed), {"x": 3, "y": 2}, {"z": (6,)}
        )
    return made


@scenarios
def values_of_programs():
    found = {}
    for name, make in programs().items():
        program = make()
        inputs = samples(program, 3, 1)
        rows = [interpret.run(program, *[array[k] for array in inputs]) for k in range(3)]
        plain = interpret.run(unfused(program), *[array[0] for array in inputs])
        found[name] = {
            "values": [np.asarray(value, float) for value in rows[0]],
            "more": packed([[np.asarray(value, float) for value in row] for row in rows[1:]]),
            "plain": packed([np.asarray(value, float) for value in plain]),
            "counts": [str(program.operations), float(alive(program)), float(len(list(program.nodes())))],
            "explained": str(program.explain(program.outputs[0][0], 0)),
        }
    return found


@scenarios
def derivatives():
    found = {}
    for name in ("odd", "random"):
        function = odd if name == "odd" else random_function(3, 60, smooth=True)
        kernel = _kernel(function, name)
        rng = np.random.default_rng(5)
        x, y = rng.uniform(0.3, 1.7, (2, 3)), rng.uniform(0.5, 1.5, (2, 2))
        size = kernel(x, y).shape[-1]
        v = rng.normal(size=(2, size))
        found[name] = {
            "value": kernel(x, y),
            "by x": kernel.jacobian("x")(x, y),
            "by y": kernel.jacobian("y")(x, y),
            "vjp": packed(_all(kernel.vjp("x", "y")(x, y, v))),
            "jvp": packed(_all(kernel.jvp("x", "y")(x, y, rng.normal(size=(2, 3)), rng.normal(size=(2, 2))))),
        }
    return found


def _all(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple) else [found]


def _kernel(function: Any, name: str) -> Any:
    from linkwise.robot.user import kernel_of

    def values(x: Any, y: Any) -> Any:
        return function(list(x), list(y))

    values.__name__ = name
    return kernel_of(values, {"x": (3,), "y": (2,)})


@cache
def rolled() -> dict[str, tuple[Any, Any]]:
    """Kernels with matrices, small ones written out, large ones as loops; and their inputs."""

    def system(n: int) -> Any:
        @lw.kernel(A=(n, n), b=(n, 2))
        def solved(A: Any, b: Any) -> Any:
            return solve(*ldl(A), b)

        return solved

    def blocks(N: int, m: int) -> Any:
        @lw.kernel(D=(N, m, m), E=(N - 1, m, m), b=(N, m))
        def tridiagonal(D: Any, E: Any, b: Any) -> Any:
            return solve_tridiagonal(D, E, b)

        return tridiagonal

    @lw.kernel(P=(5, 5), q=5, A=(1, 5), b=1, G=(7, 5), h=7)
    def programme(P: Any, q: Any, A: Any, b: Any, G: Any, h: Any) -> Any:
        return interior_point(P, q, A, b, G, h, iterations=5)[0]

    @lw.kernel(A=(9, 9), b=9)
    def loops(A: Any, b: Any) -> Any:
        v, s = lw.zeros(9), lw.variable(0.5)
        for i in lw.span(9):
            for j in lw.span(i, 9):
                v[j] = v[j] * 0.5 + lw.sin(A[i, j]) * s.value
            s += lw.dot(A[:, i], b) * 0.1
            v[i] = lw.where(v[i] > 0.2, v[i] - b[i], s * v[i])
        return v

    rng = np.random.default_rng(2)

    def definite(*shape: int) -> np.ndarray:
        A = rng.normal(size=(*shape, shape[-1]))
        return (A[..., :, :, None] * A[..., :, None, :]).sum(axis=-3) + shape[-1] * np.eye(shape[-1])

    return {
        "small": (system(3), (definite(3), rng.normal(size=(3, 2)))),
        "large": (system(14), (definite(14), rng.normal(size=(14, 2)))),
        "blocks": (blocks(4, 3), (definite(4, 3), 0.3 * rng.normal(size=(3, 3, 3)), rng.normal(size=(4, 3)))),
        "programme": (
            programme,
            (definite(5), rng.normal(size=5), rng.normal(size=(1, 5)), np.zeros(1), rng.normal(size=(7, 5)),
             np.ones(7)),
        ),
        "loops": (loops, (rng.normal(size=(9, 9)), rng.normal(size=9))),
    }  # fmt: skip


@scenarios
def matrices_and_loops():
    found = {}
    for name, (kernel, given) in rolled().items():
        batches = {}
        for count in (1, 3, 19):
            scale = 1.0 + 0.01 * np.arange(count)
            batch = [np.multiply.outer(scale, array) for array in given]
            batches[f"batch {count}"] = np.asarray(kernel(*batch))
        found[name] = packed({"one": np.asarray(kernel(*given)), **batches})
    kernel, given = rolled()["loops"]
    found["by A"] = packed({"": kernel.jacobian("A")(*given), "b": kernel.jacobian("b")(*given)})
    return found


@scenarios
def loops_written_out():
    """Every operation that a call executes, and its results by the interpreter."""
    found = {}
    for name in ("large", "blocks", "loops"):
        kernel, given = rolled()[name]
        program = unrolled(nest(kernel.program("float64")))
        results = interpret.run(program, *[np.ravel(each) for each in given])
        found[name] = packed([np.asarray(each, float) for each in results]) | {
            "counts": str(program.operations),
            "alive": float(alive(program)),
            "inputs": str(program.inputs),
        }
    return found


FUNCTIONS = (
    "inverse_dynamics",
    "forward_dynamics",
    "mass_matrix",
    "jacobian",
    "inverse_dynamics_derivatives",
)


@scenarios
def batches_of_robots():
    """Machine code for single states, blocks of vectors and what is left over; also of loops over links."""
    found = {}
    for make in (chain, tree, floating):
        robot = make()
        for name in FUNCTIONS if make is chain else FUNCTIONS[:2]:
            kernel = robot.kernel(
                name, **({"frame": robot.moving_joints[-1].child} if name == "jacobian" else {})
            )
            rng = np.random.default_rng(4)
            given = [rng.uniform(-0.4, 0.6, (37, size)) for _, size in kernel.inputs]
            numbers = {}
            for count in (1, 37):
                results = _all(kernel(*(each[:count] for each in given)))
                numbers[str(count)] = [np.asarray(each) for each in results]
            numbers["single"] = [np.asarray(each) for each in _all(kernel(*(each[0] for each in given)))]
            found[f"{robot.name} {name}"] = packed(numbers) | {"counts": str(kernel.operations)}
    return found


@cache
def written() -> dict[str, Any]:
    kernels = {name: kernel for name, (kernel, _) in rolled().items() if name != "programme"}
    return kernels | {
        "dynamics": chain().kernel("inverse_dynamics"),
        "forward": floating().kernel("forward_dynamics"),
        "float32": chain().kernel("mass_matrix", dtype="float32"),
        "long": lw.random_robot(2, 9).kernel("inverse_dynamics"),
    }


def _texts(target: str) -> Any:
    def scenario() -> dict[str, Any]:
        found = {}
        for name, kernel in written().items():
            try:
                found[name] = structure(kernel.source(target))
            except (lw.LinkwiseError, ValueError) as error:
                found[name] = f"{type(error).__name__}: {error}"[:300]
        return found

    scenario.__name__ = f"texts_in_{target}"
    return scenario


for _target in ("c", "cuda", "python", "wasm"):
    scenarios(_texts(_target))


@scenarios
def python_that_runs():
    """What is written in Python gives the numbers of the kernel."""
    found = {}
    for name, kernel in written().items():
        text = told(kernel.source, "python")
        if text != "no error":
            continue
        code = kernel.source("python")
        space: dict[str, Any] = {}
        exec(code, space)  # the project's own text
        functions = [each for key, each in space.items() if callable(each) and not key.startswith("_")]
        rng = np.random.default_rng(6)
        given = [rng.uniform(-0.4, 0.6, size).tolist() for _, size in kernel.inputs]
        result = told(functions[-1], *given)
        found[name] = result if result != "no error" else packed(_numbers(functions[-1](*given)))
    return found


def _numbers(found: Any) -> list[np.ndarray]:
    if isinstance(found, dict):
        found = list(found.values())
    return [np.asarray(each, dtype=float) for each in (found if isinstance(found, tuple | list) else [found])]


@scenarios
def refusals():
    kernel = chain().kernel("inverse_dynamics")
    q = np.zeros(3)
    return {
        "target": told(kernel.source, "fortran"),
        "arguments": told(kernel, q, q),
        "shape": told(kernel, q, q, np.zeros(4)),
        "batches": told(kernel, np.zeros((2, 3)), np.zeros((3, 3)), q),
        "text": told(kernel, q, q, "abc"),
        "by": told(kernel.jacobian, "p"),
        "output": told(kernel.explain, "torque"),
        "element": told(kernel.explain, "tau", 7),
        "inputs": told(trace, odd, {"x": 2, "y": 2}, {"z": (9,)}),
        "outputs": told(trace, odd, {"x": 3, "y": 2}, {"z": (8,)}),
        "dtype": told(chain().kernel, "inverse_dynamics", dtype="float16"),
        "size": told(lw.kernel, x=0),
        "out": told(kernel, q, q, q, out=np.zeros(2)),
    }


test_results_are_those_recorded = scenarios.test()
test_every_record_has_its_scenario = scenarios.test_of_records()
