"""How fast compiled kernels run on this machine, beside its own limit.

A synthetic program, shaped like the inverse dynamics of an arm, is compiled for every vector width in both
precisions and run on one thread. The limit is the rate of independent fused multiply-adds, measured in the
same run by a kernel made of nothing else. Times are the best of many interleaved repeats.

    python benchmarks/kernel_speed.py [--joints 9] [--states 2048] [--json]
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import asdict, dataclass

import numpy as np

from linkwise import scalar as sc
from linkwise.bench.peak import Peak
from linkwise.compiler.emit import blocks
from linkwise.compiler.ir.program import Program, trace
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.native import RUN
from linkwise.compiler.runtime import host, machine
from linkwise.compiler.shapes import nest


def arm(joints: int, dtype: str) -> Program:
    """Outward velocities and accelerations, inward forces, with made-up dimensions."""

    def cross(a, b):
        return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]

    def add(*vectors):
        return [sum(parts[1:], parts[0]) for parts in zip(*vectors, strict=True)]

    def function(q, qd, qdd):
        velocity, turning, acceleration = [0.0] * 3, [0.0] * 3, [0.0, 0.0, 9.81]
        forces, moments, turns = [], [], []
        for k in range(joints):
            c, s = sc.cos(q[k]), sc.sin(q[k])

            def turn(v, c=c, s=s):
                return [c * v[0] + s * v[2], c * v[2] - s * v[0], -v[1]]

            arm_to_next = [0.1 + 0.01 * k, 0.0, 0.2]
            acceleration = turn(
                add(acceleration, cross(turning, arm_to_next), cross(velocity, cross(velocity, arm_to_next)))
            )
            velocity, turning = turn(velocity), turn(turning)
            turning = [
                turning[0] + velocity[1] * qd[k],
                turning[1] - velocity[0] * qd[k],
                turning[2] + qdd[k],
            ]
            velocity = [velocity[0], velocity[1], velocity[2] + qd[k]]
            centre = [0.03, 0.05 + 0.01 * k, -0.02]
            pull = add(acceleration, cross(turning, centre), cross(velocity, cross(velocity, centre)))
            force = [(3.0 - 0.2 * k) * x for x in pull]
            momentum = [(0.1 + 0.02 * i + 0.01 * k) * x for i, x in enumerate(velocity)]
            spin = [(0.1 + 0.02 * i + 0.01 * k) * x for i, x in enumerate(turning)]
            forces.append(force)
            moments.append(add(spin, cross(velocity, momentum), cross(centre, force)))
            turns.append((c, s, arm_to_next))
        force, moment, torques = [0.0] * 3, [0.0] * 3, [0.0] * joints
        for k in reversed(range(joints)):
            force, moment = add(force, forces[k]), add(moment, moments[k])
            torques[k] = moment[2]
            c, s, arm_to_next = turns[k]
            force, moment = ([c * v[0] - s * v[1], -v[2], s * v[0] + c * v[1]] for v in (force, moment))
            moment = add(moment, cross(arm_to_next, force))
        return torques

    inputs = {"q": joints, "qd": joints, "qdd": joints}
    return trace(function, inputs, {"tau": (joints,)}, name="arm", dtype=dtype)


@dataclass
class Row:
    """One line of the table."""

    dtype: str
    width: int
    compile_ms: float
    ns_per_state: float = math.inf
    gflops: float = 0.0
    limit_gflops: float = 0.0

    @property
    def share(self) -> float:
        return self.gflops / self.limit_gflops


class Runner:
    """A compiled program with its arrays, ready to be timed."""

    def __init__(self, program: Program, width: int, states: int):
        start = time.perf_counter()
        self.code = machine.load(machine.compile_text(blocks.module(nest(program), width)))
        self.compile_ms = 1e3 * (time.perf_counter() - start)
        self.run = RUN(self.code.functions["run"])
        generator = np.random.default_rng(0)
        sizes = [size for _, size in program.inputs]
        self.inputs = [generator.uniform(-3, 3, (states, size)).astype(program.dtype) for size in sizes]
        self.outputs = [np.zeros((states, *shape), program.dtype) for _, shape in program.outputs]
        words = [a.ctypes.data for a in (*self.outputs, *self.inputs)] + sizes
        self.arguments = np.array(words, np.int64)
        self.scratch = np.zeros(width * 8 * sum(sizes), program.dtype)
        self.states = states

    def seconds(self) -> float:
        start = time.perf_counter()
        self.run(0, self.states, self.arguments.ctypes.data, self.scratch.ctypes.data)
        return time.perf_counter() - start


def measure(joints: int, states: int, repeats: int = 30) -> list[Row]:
    rows, runners = [], []
    peaks = {dtype: Peak(dtype) for dtype in ("float64", "float32")}
    for dtype, widths in (("float64", (1, 2, 4, 8)), ("float32", (1, 4, 8, 16))):
        program = arm(joints, dtype)
        for width in (w for w in widths if w <= host.lanes(dtype)):
            runner = Runner(program, width, states)
            runners.append((runner, program.operations.total))
            rows.append(Row(dtype, width, runner.compile_ms))
    for _ in range(repeats):
        for row, (runner, operations) in zip(rows, runners, strict=True):
            row.ns_per_state = min(row.ns_per_state, 1e9 * runner.seconds() / states)
            row.gflops = operations / row.ns_per_state
            row.limit_gflops = max(row.limit_gflops, 1e-9 * peaks[row.dtype].measure(repeats=1))
    return rows


def call_overhead(joints: int) -> dict[str, float]:
    """Nanoseconds of one Python call for one state: through machine code, and the same through Python."""
    program = arm(joints, "float64")
    kernel = Kernel("arm", program.inputs, program.outputs, "float64", lambda dtype: program)
    kernel(*[np.full(joints, 0.5)] * 3)
    state = [np.full(joints, 0.5)] * 3
    times = {}
    for name, function, number in (
        ("machine code", kernel, 2000),
        ("Python", lambda *args: Kernel.__call__(kernel, *args), 200),
    ):
        best = math.inf
        for _ in range(30):
            start = time.perf_counter()
            for _ in range(number):
                function(*state)
            best = min(best, time.perf_counter() - start)
        times[name] = 1e9 * best / number
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--joints", type=int, default=9)
    parser.add_argument("--states", type=int, default=2048)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    operations = arm(options.joints, "float64").operations
    rows = measure(options.joints, options.states)
    calls = call_overhead(options.joints)
    if options.json:
        print(
            json.dumps(
                {"operations": operations.total, "rows": [asdict(r) for r in rows], "calls": calls}, indent=2
            )
        )
        return
    print(f"{options.joints} joints: {operations}; {options.states} states, one thread")
    if host.vector_bits() < 512:
        print(f"vectors of {host.vector_bits()} bits at most: wider ones were not measured")
    print(f"{'':10}{'lanes':>6}{'compile ms':>12}{'ns/state':>10}{'GFlop/s':>9}{'of FMA limit':>14}")
    for r in rows:
        print(
            f"{r.dtype:10}{r.width:6}{r.compile_ms:12.1f}{r.ns_per_state:10.1f}{r.gflops:9.1f}"
            f"{r.share:10.0%} of {r.limit_gflops:.0f}"
        )
    for name, nanoseconds in calls.items():
        print(f"one state from Python, {name}: {nanoseconds:.0f} ns")


if __name__ == "__main__":
    main()
