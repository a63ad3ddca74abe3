"""Machine code of two versions of Linkwise in one process, taken in turns: times, compile times and bits.

Other work on a machine slows both alike, so ratios hold where times do not. Each version writes its own LLVM text, in
a process of its own; this process compiles and runs both.

    git worktree add ../before COMMIT
    python benchmarks/versions.py ../before/src [--repeats 400] [--quick] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

FUNCTIONS = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "inverse_mass_matrix", "coriolis_matrix")
FUNCTIONS += ("inverse_dynamics_derivatives", "forward_dynamics_derivatives")
LONG = (("inverse_dynamics", "newton_euler"), ("forward_dynamics", "kalman"))
STEPS = 20


# -- in a process with one version ------------------------------------------------------------------------------------


def texts(quick: bool) -> dict[str, dict[str, Any]]:
    """LLVM text of many programs, with what a call must know."""
    import linkwise as lw

    try:
        from linkwise.compiler.runtime import host
        from linkwise.robot import kernels
    except ImportError:  # version 0.2
        from linkwise import kernels  # type: ignore[attr-defined,no-redef]
        from linkwise.compiler import host  # type: ignore[attr-defined,no-redef]

    found: dict[str, dict[str, Any]] = {}
    robot = lw.load("two_link" if quick else "panda")
    for dtype in ("float64", "float32"):
        for function in FUNCTIONS[:1] if quick else FUNCTIONS:
            program = robot.kernel(function).program(dtype)
            for width in (1, host.lanes(dtype)):
                found[f"{function} {dtype} x{width}"] = _dense(program, width)
        if not quick:
            found[f"closed loop {dtype}"] = _rollout(robot, dtype, host.lanes(dtype))
    kernels.STRAIGHT_LINE_LIMIT = 0
    for links in (8,) if quick else (64, 256):
        for function, algorithm in LONG:
            program = lw.random_robot(4, links).kernel(function, algorithm=algorithm).program("float64")
            found[f"{function} of {links} links"] = _dense(program, host.lanes("float64"))
    return found


def _module(program: Any, width: int) -> str:
    from linkwise.compiler.emit import blocks

    try:
        from linkwise.compiler.shapes import nest
    except ImportError:  # versions without loops in the intermediate representation
        if hasattr(program, "step"):
            from linkwise.compiler.emit import rollout  # type: ignore[attr-defined]

            return rollout.module(program, width)
        return blocks.module(program, width)
    return blocks.module(nest(program), width)


def _dense(program: Any, width: int) -> dict[str, Any]:
    inputs = [size for _, size in program.inputs]
    outputs = [int(np.prod(shape)) for _, shape in program.outputs]
    room = program.scratch_scalars(width) if hasattr(program, "scratch_scalars") else 0
    scratch = width * (sum(inputs) + sum(outputs)) + room
    return {
        "text": _module(program, width),
        "dtype": program.dtype,
        "sizes": [inputs, outputs],
        "scratch": scratch,
    }


def _rollout(robot: Any, dtype: str, width: int) -> dict[str, Any]:
    from linkwise.control import Gains, GravityPD
    from linkwise.simulate.loop import ClosedLoop
    from linkwise.simulate.plant import Plant
    from linkwise.simulate.reference import source_of

    controller = GravityPD(robot, Gains(400.0, 40.0))
    source = source_of(np.zeros(robot.dof), robot.dof)
    loop = ClosedLoop(Plant(robot), controller, source, "semi_implicit_euler", False, False, 0, (), ("q",))
    program = loop.kernel().program(dtype)  # type: ignore[arg-type]
    interface = program.interface
    assert not interface.feeds
    arrays = [*interface.carried.values(), *interface.parameters.values()]
    arrays += [int(np.prod(shape)) for shape in interface.written.values()]
    return {"text": _module(program, width), "dtype": dtype, "arrays": arrays, "scratch": 1}


# -- both -------------------------------------------------------------------------------------------------------------


def written_by(source: Path, quick: bool) -> dict[str, dict[str, Any]]:
    command = [sys.executable, __file__, "--texts", *(["--quick"] if quick else [])]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def raced(pair: list[dict[str, Any]], repeats: int) -> dict[str, Any]:
    """Best times of both [ns per state, s to compile], and whether they give the same bits."""
    from linkwise.compiler.native import RUN
    from linkwise.compiler.runtime import machine

    compiling, codes = [np.inf, np.inf], {}
    for _ in range(3):
        for k, made in enumerate(pair):
            start = time.thread_time()
            compiled = machine.compile_text(made["text"])
            compiling[k] = min(compiling[k], time.thread_time() - start)
            codes.setdefault(k, machine.load(compiled))
    made, rng, count = pair[1], np.random.default_rng(0), 64
    if "sizes" in made:
        given, results = (
            [rng.normal(size=(count, size)).astype(made["dtype"]) for size in sizes]
            for sizes in made["sizes"]
        )
        words = [a.ctypes.data for a in (*results, *given)] + made["sizes"][0]
    else:
        results = [0.1 * rng.normal(size=(count, size)).astype(made["dtype"]) for size in made["arrays"]]
        words = [STEPS, STEPS, *(word for a in results for word in (a.ctypes.data, a.shape[1]))]
    first = [a.copy() for a in results]
    arguments, scratch = np.array(words, np.int64), np.zeros(made["scratch"] + 16, made["dtype"])
    where, room = arguments.ctypes.data, scratch.ctypes.data + -scratch.ctypes.data % 64
    runs = [RUN(codes[k].functions["run"]) for k in (0, 1)]
    best, found = [np.inf, np.inf], {}
    for turn in range(repeats):
        for k in (0, 1) if turn % 2 else (1, 0):
            for array, start in zip(results, first, strict=True):
                array[:] = start
            begin = time.perf_counter_ns()
            runs[k](0, count, where, room)
            best[k] = min(best[k], (time.perf_counter_ns() - begin) / count)
            found.setdefault(k, [array.copy() for array in results])
    same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(found[0], found[1], strict=True))
    return {"ns": best, "compile_s": compiling, "same_bits": same}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("other", type=Path, nargs="?", help="the folder src of the other version")
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--quick", action="store_true", help="small programs, a few repeats")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--texts", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.texts:
        print(json.dumps(texts(options.quick)))
        return
    here = Path(__file__).parent.parent / "src"
    versions = [written_by(source, options.quick) for source in (options.other or here, here)]
    report = {}
    if not options.json:
        print(f"{'':36} {'before [ns]':>12} {'now [ns]':>10} {'ratio':>6} {'compile':>8}  bits")
    for name in versions[1]:
        row = report[name] = raced(
            [version[name] for version in versions], 5 if options.quick else options.repeats
        )
        if not options.json:
            (before, now), (slow, compiled) = row["ns"], row["compile_s"]
            bits = "same" if row["same_bits"] else "differ"
            print(
                f"{name:36} {before:12.2f} {now:10.2f} {now / before:6.3f} {compiled / slow:8.3f}  {bits}",
                flush=True,
            )
    if options.json:
        print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
