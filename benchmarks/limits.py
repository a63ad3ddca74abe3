"""How near compiled kernels come to the limit of their own mix of instructions on one core.

The operations of one block of states are counted in the compiler's text: fused multiply-adds, products, sums, quotients
(those of sines and cosines are among them), logic (selections, signs), shuffles (rows of states are transposed), loads
(inputs, and constants as operands) and stores (outputs). The bound is measured in the same run: a loop with the same
numbers of operations of every kind, in which no operation waits for another and nothing is moved between registers and
the stack. What is missing to 100 % are waiting times, spills and the fetching of long code.

Spills are counted in the assembly of x86 processors; llvm-mca's estimate of one block [cycles] is given where it is
installed (its model of a processor may be wrong by half). Times are the best of interleaved rounds.

    python benchmarks/limits.py [--robot panda] [--function inverse_dynamics] [--bits 256] [--states 1024] [--rounds 40]
                                [--json]
"""

from __future__ import annotations

import argparse
import ctypes
import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import linkwise as lw
from linkwise.compiler.emit import peak
from linkwise.compiler.emit.lanes import Lanes
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.native import RUN
from linkwise.compiler.runtime import host, machine

FUNCTIONS = (
    "inverse_dynamics",
    "forward_dynamics",
    "inverse_dynamics_derivatives",
    "forward_dynamics_derivatives",
)
_PATTERNS = {
    "fused": r"= call .*@llvm\.fma",
    "product": r"= fmul ",
    "sum": r"= f(add|sub) ",
    "quotient": r"= fdiv |= call .*@llvm\.sqrt",
    "logic": r"= (select|and|or|xor|fcmp|icmp) <|= call .*@llvm\.fabs|= fneg ",
    "shuffle": r"= (shufflevector|insertelement|extractelement) ",
    "load": r"= load ",
    "store": r"  store ",
}
_LARGEST = 600  # operations of one turn of the loop: it has to fit into the caches for instructions


def counted(text: str) -> dict[str, int]:
    """How many operations of each kind a block of states takes, by the text of the module."""
    lines = text.split("\nblock:\n")[-1].split("\nnext:\n")[0].split("\ncopy_back:\n")[0].splitlines()
    counts = {
        kind: sum(bool(re.search(pattern, line)) for line in lines) for kind, pattern in _PATTERNS.items()
    }
    signs = sum("= fneg " in line for line in lines)
    counts["logic"] -= signs  # options of the operations that use them
    arithmetic = re.compile("|".join(_PATTERNS[kind] for kind in ("fused", "product", "sum", "quotient")))
    counts["load"] += sum(line.count("splat (") for line in lines if arithmetic.search(line))
    return counts


def assembly(text: str) -> str:
    import llvmlite.binding as llvm

    machine._initialize()
    target: Any = machine._target_machine()
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = target.triple, str(target.target_data)
    return target.emit_assembly(module)


def spills(text: str) -> int:
    """Moves between registers and the stack, and operands that are read from there (x86)."""
    return len(re.findall(r"^\s+v\w+\s.*\(%r[sb]p\)", text, re.MULTILINE))


def simulated(text: str) -> float | None:
    """Cycles of a block by llvm-mca; branches and calls are left out."""
    tool = shutil.which("llvm-mca")
    if tool is None:
        return None
    body = text.split("\nrun:\n")[-1].split(".Lfunc_end")[0]
    kept = [
        line
        for line in body.splitlines()
        if re.match(r"\s+[a-z]", line) and not re.match(r"\s+(j|call|ret|push|pop)", line)
    ]
    turns = 10
    command = [
        tool,
        f"-mcpu={_processor()}",
        f"-iterations={turns}",
        "-instruction-info=0",
        "-resource-pressure=0",
    ]
    done = subprocess.run(command, input="\n".join(kept), capture_output=True, text=True)
    found = re.search(r"Total Cycles:\s+(\d+)", done.stdout)
    return None if found is None else int(found[1]) / turns


def _processor() -> str:
    import llvmlite.binding as llvm

    return llvm.get_host_cpu_name()


def loop_of(lanes: Lanes, counts: dict[str, int]) -> tuple[Callable[[], object], float]:
    """What runs the mix, and how many blocks of states that is worth."""
    total = sum(counts.values())
    part = min(1.0, _LARGEST / total)
    scaled = {kind: round(count * part) for kind, count in counts.items()}
    code = machine.load(machine.compile_text(peak.mixed(lanes, scaled)))
    run = RUN(code.functions["run"])
    scratch = np.zeros((peak.MIXED_BYTES + 64) // lanes.bytes, lanes.dtype)
    start = -scratch.ctypes.data % 64
    scratch[start // lanes.bytes :][: lanes.width] = 1.0
    turns = 300

    def action(kept: Any = (code, scratch)) -> None:
        run(0, turns, 0, scratch.ctypes.data + start)

    return action, turns * sum(scaled.values()) / total


def blocks_of(kernel: Kernel, dtype: str, width: int, states: int) -> Callable[[], object]:
    """What runs the kernel's machine code over a batch on this thread."""
    native = kernel.native(dtype, width)
    rng = np.random.default_rng(0)
    arrays = [np.zeros((states, int(np.prod(shape))), dtype) for _, shape in kernel.outputs]
    arrays += [rng.uniform(-1.0, 1.0, (states, size)).astype(dtype) for _, size in kernel.inputs]
    words = [a.ctypes.data for a in arrays] + [size for _, size in kernel.inputs]
    arguments = (ctypes.c_int64 * len(words))(*words)
    scratch = np.empty(width * kernel.row_size + native.room + 64, dtype)

    def action(kept: Any = (arrays, arguments, scratch)) -> None:
        native.run(0, states, ctypes.addressof(arguments), scratch.ctypes.data)

    return action


def measured(robot: lw.Robot, name: str, dtype: str, bits: int, states: int, rounds: int) -> dict[str, Any]:
    kernel: Any = robot.kernel(name)
    width = bits // (64 if dtype == "float64" else 32)
    text = kernel._natives[dtype].text(width)
    counts, written = counted(text), assembly(text)
    bound, blocks = loop_of(Lanes(width, dtype), counts)
    actions = [(blocks_of(kernel, dtype, width, states), states / width), (bound, blocks)]
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        for k, (action, number) in enumerate(actions):
            start = time.perf_counter()
            action()
            best[k] = min(best[k], (time.perf_counter() - start) / number)
    return {
        "function": name,
        "dtype": dtype,
        "bits": bits,
        "ns": 1e9 * best[0] / width,
        "bound_ns": 1e9 * best[1] / width,
        "share": best[1] / best[0],
        "operations": counts,
        "spills": spills(written),
        "mca_cycles": simulated(written),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robot", default="panda")
    parser.add_argument(
        "--function", action="append", help="may be repeated; default: dynamics and derivatives"
    )
    parser.add_argument(
        "--bits", type=int, action="append", help="of vectors; default: 128, 256, 512 as there are"
    )
    parser.add_argument("--states", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    robot = lw.load(options.robot)
    widest = host.vector_bits()
    if options.bits and max(options.bits) > widest:
        parser.error(f"--bits {max(options.bits)}: this processor has vectors of {widest} bits at most")
    widths = options.bits or [bits for bits in (128, 256, 512) if bits <= widest]
    if not options.json and widest < 512:
        print(f"vectors of {widest} bits at most: wider ones were not measured")
    rows = [
        measured(robot, name, dtype, bits, options.states, options.rounds)
        for name in options.function or FUNCTIONS
        for dtype in ("float64", "float32")
        for bits in widths
    ]
    if options.json:
        print(json.dumps({"robot": options.robot, "rows": rows}, indent=1))
        return
    kinds = "".join(f"{kind:>9}" for kind in peak.KINDS)
    print(
        f"{'function':30}{'dtype':>8}{'bits':>5}{'ns':>8}{'bound':>8}{'share':>7}{kinds}{'spills':>8}{'mca':>7}"
    )
    for row in rows:
        numbers = "".join(f"{row['operations'][kind]:9}" for kind in peak.KINDS)
        cycles = "" if row["mca_cycles"] is None else f"{row['mca_cycles']:.0f}"
        print(
            f"{row['function']:30}{row['dtype']:>8}{row['bits']:5}{row['ns']:8.1f}{row['bound_ns']:8.1f}"
            f"{row['share']:7.0%}{numbers}{row['spills']:8}{cycles:>7}"
        )


if __name__ == "__main__":
    main()
