"""Kernels on a GPU: are the bits those of the CPU, how fast are they, and how near to the limit of the memory?

Every function of a robot in both precisions is compared with the CPU's kernel on random states. Then the functions are
timed with data on the device, beside a copy on the same device in the same run: bytes are counted once for every scalar
that must be read or written. Small batches are timed by every kind of call. JAX (the same graph compiled by XLA) and
PyTorch (the same graph, one call per operation) run where they are installed. None of this computes contact.

    python benchmarks/gpu.py [--robot panda] [--states 1000000] [--json FILE] [--tune] [--seconds 400]
    python benchmarks/gpu.py --small [STATES ...] --peers [--robot panda] [--json FILE]

``--quick`` runs everything with a few states each: the figures mean nothing then.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import cupy
from gpu_parts.closed_loops import check_rollout, closed_loop, time_rollout
from gpu_parts.functions import check_bits, time_function, time_gradients
from gpu_parts.measuring import DTYPES, Size, copy_bandwidth, kernel_of
from gpu_parts.peers import print_libraries, time_jax, time_libraries, time_torch
from gpu_parts.small import COUNTS, parts_of_a_call, print_small, small_batches
from gpu_parts.tuning import tune, tune_rollout

import linkwise as lw
from linkwise.compiler.kernel import Kernel
from linkwise.functions.table import FUNCTIONS
from linkwise.gpu import driver, nvrtc
from linkwise.gpu.device import device_kernel

TIMED = {  # function -> batch
    "inverse_dynamics": 1 << 24,
    "forward_dynamics": 1 << 24,
    "inverse_dynamics_derivatives": 1 << 22,
    "forward_dynamics_derivatives": 1 << 22,
    "mass_matrix": 1 << 23,
    "inverse_mass_matrix": 1 << 23,
    "gravity_torques": 1 << 24,
}
GOALS = {  # G evaluations/s, and the share of the copy's bandwidth
    ("inverse_dynamics", "float32"): (30.0, 0.80),
    ("inverse_dynamics", "float64"): (16.0, 0.90),
    ("forward_dynamics", "float32"): (18.0, None),
    ("forward_dynamics", "float64"): (6.5, None),
    ("inverse_dynamics_derivatives", "float32"): (3.0, None),
    ("forward_dynamics_derivatives", "float32"): (1.5, None),
}


class Report:
    """What was measured so far, written to the JSON file after every part."""

    def __init__(self, robot: lw.Robot, seconds: float, file: str | None) -> None:
        self.parts: dict[str, Any] = {"robot": robot.name, "joints": robot.dof}
        self.seconds, self.file = seconds, file
        self.began = time.perf_counter()

    @property
    def age(self) -> float:
        return time.perf_counter() - self.began

    def late(self) -> bool:
        """No further optional part may start."""
        return self.age > self.seconds

    def done(self, part: str, value: Any) -> None:
        self.parts[part] = value
        print(f"[{self.age:6.1f} s] {part}", flush=True)
        if self.file:
            with open(self.file, "w", encoding="utf-8") as file:
                json.dump(self.parts, file, indent=1)


@contextmanager
def freed() -> Iterator[None]:
    """Memory of the device is given back afterwards."""
    yield
    cupy.get_default_memory_pool().free_all_blocks()


def message_of(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"


# -- the parts --------------------------------------------------------------------------------------------------------


def functions(report: Report, found: dict[str, Kernel]) -> None:
    """Throughput of the functions in ``TIMED``."""
    speed: dict[str, Any] = {}
    for name, all_states in TIMED.items():
        for dtype in DTYPES:
            count = Size.of("states", all_states)
            with freed():
                speed[f"{name} {dtype}"] = {"states": count, **time_function(found[name], dtype, count)}
    for name in ("inverse_dynamics", "forward_dynamics"):
        count = Size.of("states", 1 << 24)
        speed[f"{name} float32 fast"] = {
            "states": count,
            **time_function(found[name], "float32", count, fast=True),
        }
    report.done("speed", speed)


def closed_loops(report: Report, robot: lw.Robot) -> None:
    loops: dict[str, Any] = {}
    for label, varied in (("closed loop", ()), ("closed loop, payloads", ("payload",))):
        for dtype, steps in (("float32", 1000), ("float64", 500)):
            loop = closed_loop(robot, varied)
            loops[f"{label} {dtype}"] = {
                **time_rollout(loop, dtype, Size.of("states", 1 << 20), Size.of("steps", steps)),
                "different_scalars": check_rollout(closed_loop(robot, varied, ("q", "qd", "tau")), dtype),
            }
            report.done("closed_loops", loops)


def gradients(report: Report, robot: lw.Robot) -> None:
    with freed():
        try:
            report.done("gradients", time_gradients(robot))
        except Exception as error:  # a missing or broken PyTorch does not end the run
            report.done("gradients", message_of(error))


def bits(report: Report, found: dict[str, Kernel], states: int) -> None:
    """Every function in both precisions beside the CPU."""
    different: dict[str, int | str] = {}
    for name, kernel in found.items():
        for dtype in DTYPES:
            if report.late():
                different[f"{name} {dtype}"] = "not compared: no time left"
                continue
            with freed():
                different[f"{name} {dtype}"] = check_bits(kernel, dtype, Size.of("states", states))
    report.done("different_scalars", different)


def peers(report: Report, kernel: Kernel, robot: lw.Robot) -> None:
    """Inverse dynamics by JAX and PyTorch, and other libraries."""
    rates: dict[str, Any] = {}
    for label, work in (("JAX", time_jax), ("PyTorch", time_torch)):
        if report.late():
            break
        name, count = f"{label} inverse_dynamics float32", Size.of("states", 1 << 22)
        with freed():
            try:
                rates[name] = count / work(kernel, count)
            except Exception as error:  # a missing or broken peer does not end the run
                rates[name] = message_of(error)
        report.done("peers", rates)
    with freed():
        report.done("libraries", time_libraries(robot, report.late))


def layouts(report: Report, robot: lw.Robot, found: dict[str, Kernel]) -> None:
    tuned: dict[str, Any] = {}
    for dtype in DTYPES:
        count, steps = Size.of("states", 1 << 19), Size.of("steps", 400)
        tuned[f"closed loop {dtype}"] = tune_rollout(closed_loop(robot), dtype, count, steps)
        report.done("tuned", tuned)
    for name, dtype in [*GOALS, ("mass_matrix", "float32")]:
        if report.late():
            break
        with freed():
            count = Size.of("states", min(TIMED[name], 1 << 23))
            tuned[f"{name} {dtype}"] = tune(found[name], dtype, count)
        report.done("tuned", tuned)


# -- the whole ---------------------------------------------------------------------------------------------------------


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robot", default="panda")
    parser.add_argument(
        "--states", type=int, default=1_000_000, help="random states for the comparison of bits"
    )
    parser.add_argument(
        "--seconds", type=float, default=400.0, help="optional parts start only before this time"
    )
    parser.add_argument(
        "--small", type=int, nargs="*", metavar="STATES", help="only small batches, by every kind of call"
    )
    parser.add_argument(
        "--peers", action="store_true", help="only frax, adam and MJX, where they are installed"
    )
    parser.add_argument("--tune", action="store_true", help="also time other layouts")
    parser.add_argument("--json", help="write all figures to this file")
    parser.add_argument("--quick", action="store_true", help="a few states each, to see that it runs")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    Size.quick = options.quick
    robot = lw.load(options.robot)
    report = Report(robot, options.seconds, options.json)
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    report.done(
        "device",
        {"name": properties["name"].decode(), "driver": driver.version(), "nvrtc": nvrtc.compiler().version},
    )
    if options.small is not None:
        report.done("parts_of_a_call", parts_of_a_call(robot))
        report.done("small", small_batches(robot, options.small or COUNTS))
        print_small(report.parts)
    if options.peers:
        report.done("libraries", time_libraries(robot, report.late))
        print_libraries(report.parts["libraries"])
    if options.small is not None or options.peers:
        return
    with freed():
        report.done("copy_bytes_per_second", copy_bandwidth())
    kernels = {name: kernel_of(robot, name) for name in FUNCTIONS}
    found = {name: kernel for name, kernel in kernels.items() if kernel is not None}
    with ThreadPoolExecutor(8) as pool:  # compiling is most of the work, and outside the interpreter lock
        pairs = [(name, dtype) for name in TIMED for dtype in DTYPES]
        list(pool.map(lambda pair: device_kernel(found[pair[0]], pair[1], 0), pairs))
    report.done("compiled", report.age)

    functions(report, found)
    closed_loops(report, robot)
    report.done("small", small_batches(robot, COUNTS))
    gradients(report, robot)
    bits(report, found, options.states)
    peers(report, found["inverse_dynamics"], robot)
    if options.tune:
        layouts(report, robot, found)
    print_table(report.parts)


def print_table(report: dict[str, Any]) -> None:
    copy = report["copy_bytes_per_second"]
    print(
        f"\n{report['device']['name']}, {report['robot']}, {report['joints']} joints; copy {copy / 1e12:.2f} TB/s"
    )
    print(f"{'':44} {'G/s':>7} {'of copy':>8} {'goal':>12} {'regs':>5} {'local':>6}")
    for label, row in report["speed"].items():
        name, dtype, *_ = label.split()
        rate, share = GOALS.get((name, dtype), (None, None))
        goal = "" if rate is None else f"{rate:g}" + (f" / {share:.0%}" if share else "")
        print(
            f"{label:44} {row['per_second'] / 1e9:7.2f} {row['bytes_per_second'] / copy:8.1%} {goal:>12} "
            f"{row['registers']:5} {row['local']:6}"
        )
    for label, rows in report.get("tuned", {}).items():
        best = ", ".join(
            f"{r['warps']}x{r['resident']}{'p' if r['persistent'] else ''} {r['per_second'] / 1e9:.2f}"
            f"{'*' if r['rule'] else ''} ({r['registers']}/{r['local']})"
            for r in rows[:7] + [r for r in rows[7:] if r["rule"]]
        )
        print(f"layouts of {label}: {best}")
    for label, row in report.get("closed_loops", {}).items():
        goal = {"closed loop float32": "20", "closed loop float64": "8"}.get(label, "")
        print(
            f"{label:44} {row['per_second'] / 1e9:7.2f} G steps/s, goal {goal or '-'}; {row['registers']} registers, "
            f"{row['local']} local; CPU {row['cpu_per_second'] / 1e9:.3f}; {row['different_scalars']} scalars differ"
        )
    print_small(report)
    gradients = report["gradients"]
    if isinstance(gradients, str):
        print(f"gradients through PyTorch: {gradients}")
    else:
        for label, row in gradients.items():
            print(
                f"{'gradient of ' + label:44} {row['per_second'] / 1e9:7.2f} G/s with its result, "
                f"{row['vjp_per_second'] / 1e9:.2f} alone, "
                f"{row['without_gradient_per_second'] / 1e9:.2f} the result alone; "
                f"{row['registers']} registers, {row['local']} local; {row['different_scalars']} scalars differ"
            )
    for label, rate in report.get("peers", {}).items():
        print(f"{label}: {rate if isinstance(rate, str) else f'{rate / 1e9:.3f} G/s'}")
    print_libraries(report["libraries"])
    wrong = {label: n for label, n in report["different_scalars"].items() if n}
    print(
        f"bits: {len(report['different_scalars']) - len(wrong)} of {len(report['different_scalars'])} identical",
        wrong or "",
    )


if __name__ == "__main__":
    main()
