"""Small programs that together use everything a target must be able to do."""

from __future__ import annotations

import numpy as np

from linkwise import scalar as sc
from linkwise.compiler.ir import interpret
from linkwise.compiler.ir.graph import Graph
from linkwise.compiler.ir.program import Program, lower, trace


def sweep(n: int, dtype: str = "float64") -> Program:
    """An outward and an inward recursion over n joints, shaped like inverse dynamics."""

    def function(q, qd, qdd):
        rate, acceleration, forces, turns = [0.1, 0.2, 0.0], [0.0, 0.3, 9.81], [], []
        for k in range(n):
            c, s = sc.cos(q[k]), sc.sin(q[k])
            rate = [c * rate[0] + s * rate[1], c * rate[1] - s * rate[0], rate[2] + qd[k]]
            acceleration = [
                c * acceleration[0] + s * acceleration[2] - 0.3 * rate[1] * rate[2],
                c * acceleration[2] - s * acceleration[0] + 0.1 * (k + 1) * qdd[k],
                acceleration[1] - rate[0] * rate[2],
            ]
            forces.append([(1.5 + k) * x + 0.25 * y for x, y in zip(acceleration, rate, strict=True)])
            turns.append((c, s))
        total, torques = [0.0, 0.0, 0.0], [0.0] * n
        for k in reversed(range(n)):
            c, s = turns[k]
            total = [a + b for a, b in zip(total, forces[k], strict=True)]
            torques[k] = total[2] + 0.1 * total[0]
            total = [c * total[0] - s * total[1], s * total[0] + c * total[1], total[2] - 0.2 * total[1]]
        return torques

    return trace(function, {"q": n, "qd": n, "qdd": n}, {"tau": (n,)}, name="sweep", dtype=dtype)


def everything(dtype: str = "float64") -> Program:
    """Every operation, inputs of several sizes, and outputs of every kind."""
    graph = Graph()
    x, y, z = graph.inputs("x", 5), graph.inputs("y", 3), graph.inputs("z", 1)
    a, b, c, d, e = x
    small = a < b
    odd = graph.make("bit", (c,), 3)
    nodes = [
        a + b,
        a - y[0],
        b * c,
        c / d,
        -(a * d),
        graph.fma(a, b, c),
        graph.fma(-a, b, e),
        d.sqrt(),
        abs(e),
        small.where(a, b),
        (a <= b).where(c, d),
        graph.compare("eq", a, b).where(c, d),
        (small & odd).where(a, e),
        (small | odd).where(d, e),
        (~small).where(b, y[1]),
        odd.where(graph.one, graph.zero),
        graph.make("bit", (e,), 63 if dtype == "float64" else 31).where(graph.one, c),
        a,
        graph.const(0.1),
        z[0] * y[2],
        (a + b) * z[0],
    ]
    outputs = {
        "flat": ((len(nodes),), nodes),
        "matrix": ((3, 4), nodes[:12]),
        "single": ((), [nodes[0] * nodes[5]]),
        "constant": ((2,), [graph.const(2.5), graph.const(float("nan"))]),
        "copy": ((4,), [e, z[0], nodes[3], e]),
        "again": ((1,), [nodes[5]]),
    }
    return lower(outputs, {"x": 5, "y": 3, "z": 1}, name="everything", dtype=dtype)


def loop(dtype: str = "float64") -> Program:
    """Newton's iteration for a square root, after a bounded number of halvings: lanes stop at different
    times."""

    def function(x):
        def halve(value, count):
            return value * 0.5, count + 1.0

        start, count = sc.while_loop(lambda value, count: (value > 4.0) & (count < 40.0), halve, (x[0], 0.0))

        def step(guess, change, steps):
            new = 0.5 * (guess + x[0] / guess)
            return new, new - guess, steps + 1.0

        tolerance = 1e-13 if dtype == "float64" else 1e-5
        root, change, steps = sc.while_loop(
            lambda guess, change, steps: (abs(change) > tolerance * guess) & (steps < 100.0),
            step,
            (start + 0.5, x[0] + 1.0, 0.0),
        )
        return [[root, change], [steps + count, x[1]]]

    return trace(function, {"x": 2}, {"root": (2, 2)}, name="loop", dtype=dtype)


def samples(program: Program, count: int, seed: int = 0) -> list[np.ndarray]:
    """Inputs for so many states, some of them extreme."""
    generator = np.random.default_rng(seed)
    arrays = []
    for _, size in program.inputs:
        array = generator.normal(size=(count, size)) * 10.0 ** generator.integers(-3, 3, size=(count, size))
        arrays.append(array.astype(program.dtype))
    return arrays


def interpreted(program: Program, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """What the interpreter makes of every state."""
    states = [interpret.run(program, *[array[k] for array in inputs]) for k in range(len(inputs[0]))]
    return [np.array(list(column)) for column in zip(*states, strict=True)]


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal shape, type and bits; all NaNs count as equal, zeros of different sign do not."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    integer = np.uint64 if a.dtype == np.float64 else np.uint32
    nan = np.isnan(a)
    bits_a, bits_b = np.ascontiguousarray(a).view(integer), np.ascontiguousarray(b).view(integer)
    return bool(np.array_equal(nan, np.isnan(b)) and np.array_equal(bits_a[~nan], bits_b[~nan]))
