"""Fixed point (Q31) tried: errors beside float32, overflow, and instructions on processors without floating point.

    python benchmarks/fixed_point.py --robots panda,puma560

Every value of the traced graph gets a power of two that bounds it over the states of a first sample, with a margin, and
is rounded to 31 bits below that. A second sample shows the errors against float64, and how often a bound is exceeded.
Sines and cosines are exact and then rounded; C for a Cortex-M3 takes them as arguments.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from processors import costs

import linkwise as lw
from linkwise.compiler.emit.formulas import simplified
from linkwise.compiler.ir.graph import Node
from linkwise.compiler.ir.walks import reachable
from linkwise.embedded import Options, Package
from linkwise.embedded.processors import BARE, Processor

NAMES = ("inverse_dynamics", "gravity_torques", "mass_matrix", "forward_dynamics")
OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "sin": np.sin,
    "cos": np.cos,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "sign": np.sign,
}


def evaluated(
    nodes: list[Node], given: dict[str, np.ndarray], rounded: Callable[[Node, Any], Any]
) -> dict[Node, Any]:
    """Every node for all states, rounded after every operation."""
    values: dict[Node, Any] = {}
    for node in nodes:
        if node.op == "const":
            value = np.float64(node.value)
        elif node.op == "input":
            name, k = node.value
            value = given[name][:, k]
        else:
            value = OPERATIONS[node.op](*(values[a] for a in node.args))
        values[node] = rounded(node, value)
    return values


def drawn(robot: lw.Robot, names: list[str], count: int, seed: int, faster: float) -> dict[str, np.ndarray]:
    """States: positions within a turn; velocities, accelerations and torques, ``faster`` times as large."""
    rng = np.random.default_rng(seed)
    size = {"q": np.pi, "qd": 2.0 * faster, "qdd": 2.0 * faster, "tau": 50.0 * faster}
    return {name: rng.uniform(-1, 1, (count, robot.dof)) * size[name] for name in names}


def tried(robot: lw.Robot, name: str, states: int, margin: int) -> dict[str, Any]:
    """Largest errors relative to the largest result, the share of states out of range, instructions."""
    program = robot.kernel(name, friction=False).program()
    outputs = [node for output in simplified(program) for node in output]
    nodes = reachable(outputs)
    names = [key for key, _ in program.inputs]
    first, second, faster = (drawn(robot, names, states, *args) for args in ((0, 1.0), (1, 1.0), (2, 2.0)))
    exact = evaluated(nodes, first, lambda node, value: value)
    tops = {n: margin + int(np.ceil(np.log2(max(float(np.max(np.abs(exact[n]))), 2.0**-20)))) for n in nodes}

    def error(rounded: Callable[[Node, Any], Any]) -> float:
        found, right = evaluated(nodes, second, rounded), evaluated(nodes, second, lambda node, value: value)
        scale = max(float(np.max(np.abs(right[n]))) for n in outputs)
        return max(float(np.max(np.abs(np.float64(found[n]) - right[n]))) for n in outputs) / scale

    def q31(node: Node, value: Any) -> Any:
        step = 2.0 ** (tops[node] - 31)
        return np.rint(value / step) * step

    def beyond(given: dict[str, np.ndarray]) -> float:
        found = evaluated(nodes, given, lambda node, value: value)
        out = [
            np.broadcast_to(np.abs(found[n]) >= 2.0 ** tops[n], (states,)) for n in nodes if n.op != "input"
        ]
        return float(np.any(out, axis=0).mean())

    return {
        "float32": error(lambda node, value: np.float32(value)),
        "q31": error(q31),
        "beyond": beyond(second),
        "faster": beyond(faster),
        "instructions": instructions(nodes, outputs, tops),
        "software": in_software(robot, name),
    }


def instructions(nodes: list[Node], outputs: list[Node], tops: dict[Node, int]) -> float:
    """Of straight-line C in Q31 on a Cortex-M3, without sines and cosines; NaN without a compiler."""
    lines = ["#include <stdint.h>", "void f(const int32_t *restrict x, int32_t *restrict y)", "{"]
    inputs = 0

    def shifted(text: str, by: int) -> str:
        return text if by == 0 else f"({text} >> {min(by, 31)})" if by > 0 else f"({text} * (1 << {-by}))"

    for n in nodes:
        v, top = f"v{n.index}", tops[n]
        a = [f"v{arg.index}" for arg in n.args]
        moved = [shifted(text, top - tops[arg]) for text, arg in zip(a, n.args, strict=True)]
        if n.op in ("input", "sin", "cos"):
            value, inputs = f"x[{inputs}]", inputs + 1
        elif n.op == "const":
            value = str(int(np.rint(n.value * 2.0 ** (31 - top))))
        elif n.op in ("add", "sub"):
            value = f"{moved[0]} {'+' if n.op == 'add' else '-'} {moved[1]}"
        elif n.op == "mul":
            value = f"(int32_t)(((int64_t){a[0]} * {a[1]}) >> {31 + top - tops[n.args[0]] - tops[n.args[1]]})"
        elif n.op == "div":
            value = f"(int32_t)(((int64_t){a[0]} << {max(0, 31 - top + tops[n.args[0]] - tops[n.args[1]])}) / {a[1]})"
        else:
            value = f"-{moved[0]}"
        lines.append(f"    const int32_t {v} = {value};")
    lines += [f"    y[{k}] = v{n.index};" for k, n in enumerate(outputs)]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "f.c").write_text("\n".join([*lines, "}"]), encoding="utf-8")
        command = ["arm-none-eabi-gcc", "-O2", "-mthumb", "-mcpu=cortex-m3", "-c", "f.c", "-o", "f.o"]
        try:
            subprocess.run(command, cwd=folder, check=True, capture_output=True)
            listed = ["arm-none-eabi-objdump", "-d", "f.o"]
            said = subprocess.run(listed, cwd=folder, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError):
            return float("nan")
    rows = [line.split("\t") for line in said.stdout.splitlines()]
    return sum(len(row) > 2 and not row[2].startswith(".word") for row in rows)


def in_software(robot: lw.Robot, name: str) -> str:
    """Instructions of float32 on the same processor, sines and cosines included, without fused multiply-adds."""
    processor = Processor(
        "cortex-m3",
        "Cortex-M3",
        "arm-none-eabi-",
        "qemu-system-arm",
        f"{BARE} -icount shift=10 -M mps2-an385 -kernel",
        "-O2 -mthumb -mcpu=cortex-m3",
        "-T check/cortex_m.ld --specs=rdimon.specs",
        "check/cortex_m.c",
    )
    if not processor.here:
        return "–"
    with tempfile.TemporaryDirectory() as place:
        package = Package(robot, [name], Options("float32", friction=False), fma=False, count=1)
        package.write(Path(place) / "package")
        (found,) = costs(Path(place) / "package", processor, list(package.functions), 20).values()
    return found.cells()[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robots", default="panda,puma560")
    parser.add_argument("--functions", default=",".join(NAMES))
    parser.add_argument("--states", type=int, default=2000)
    parser.add_argument("--margin", type=int, default=1, help="bits of margin above the largest value seen")
    given = parser.parse_args()
    columns = ("robot", "function", "error, float32", "error, Q31", "out of range", "at twice the speed")
    print(f"| {' | '.join((*columns, 'instructions, Q31', 'float32 in software'))} |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for name in given.robots.split(","):
        for function in given.functions.split(","):
            found = tried(lw.load(name), function, given.states, given.margin)
            print(
                f"| {name} | {function} | {found['float32']:.1e} | {found['q31']:.1e} | {100 * found['beyond']:.2g} % "
                f"| {100 * found['faster']:.2g} % | {found['instructions']:.0f} | {found['software']} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
