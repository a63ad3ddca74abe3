"""Calls inside JAX and PyTorch beside the same calls with NumPy, and beside libraries that are written in them.

    python benchmarks/frameworks.py [--robot panda] [--states 64,4096,100000] [--rounds 9] [--json FILE] [--quick]
    python benchmarks/frameworks.py --table [--write docs/frameworks.md]

One state: a jitted loop of a thousand steps, each of which needs the result of the one before; beside it the machine
code alone, the same kernel called from Python with NumPy arrays, and adam, frax and MJX where they are installed, in a
loop of the same kind. Batches: one call of a jitted function, NumPy's call with the same number of threads. PyTorch: a
call with plain tensors, the operator itself, a compiled call, pytorch_kinematics where it is installed. ``--table``
runs every kind of call in every transformation and prints what works.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from frameworks_parts import table

import linkwise as lw
from linkwise.bench import peers
from linkwise.bench.subject import Subject, without_drives

STEPS = 1000
FUNCTIONS = ("inverse_dynamics", "forward_dynamics")
BEGIN, END = "<!-- table -->", "<!-- end of table -->"


def best(calls: dict[str, Callable[[], Any]], rounds: int, seconds: float = 0.02) -> dict[str, float]:
    """Seconds of each call, the best of interleaved rounds: the machine may be busy with something else."""
    found = {name: float("inf") for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            end = time.perf_counter() + seconds
            while True:
                start = time.perf_counter()
                call()
                now = time.perf_counter()
                found[name] = min(found[name], now - start)
                if now > end:
                    break
    return found


def one_state(robot: lw.Robot, function: str, others: dict[str, Any], rounds: int) -> dict[str, float]:
    """Microseconds of a step."""
    import jax

    rng = np.random.default_rng(0)
    state = [np.ascontiguousarray(a) for a in rng.normal(size=(3, robot.dof))]
    kernel = robot.kernel(function)
    native, out = kernel.native("float64", 1), np.empty((STEPS, robot.dof))
    words = np.array([a.ctypes.data for a in (out, *state)] + [0, 0, 0], np.int64)
    scratch = np.empty(native.room + kernel.row_size + 8)

    def looped(step: Callable[..., Any]) -> Callable[[], Any]:
        def loop(q: Any, qd: Any, third: Any) -> Any:
            return jax.lax.fori_loop(0, STEPS, lambda _, x: q + 1e-9 * step(x, qd, third), q)

        compiled = jax.jit(loop).lower(*state).compile()
        return lambda: compiled(*state).block_until_ready()

    def called() -> None:
        for _ in range(STEPS):
            kernel(*state)

    calls = {
        "machine code": lambda: native.run(0, STEPS, words.ctypes.data, scratch.ctypes.data),
        "NumPy call": called,
        "in a jitted loop": looped(kernel),
        "the loop alone": looped(lambda x, qd, third: x * qd),
        **{f"{name} in a jitted loop": looped(step) for name, step in others.items()},
    }
    return {name: 1e6 * seconds / STEPS for name, seconds in best(calls, rounds).items()}


def batches(
    robot: lw.Robot, function: str, count: int, others: dict[str, Any], rounds: int
) -> dict[str, float]:
    """Microseconds of a call."""
    import jax
    import torch

    rng = np.random.default_rng(0)
    arrays = list(rng.normal(size=(3, count, robot.dof)))
    given, tensors = [jax.numpy.asarray(a) for a in arrays], [torch.tensor(a) for a in arrays]
    kernel = robot.kernel(function)
    inside = jax.jit(kernel)

    def vectorised(step: Callable[..., Any]) -> Callable[[], Any]:
        compiled = jax.jit(jax.vmap(step))
        return lambda: compiled(*given).block_until_ready()

    calls = {
        "NumPy": lambda: kernel(*arrays),
        "JAX, jit": lambda: inside(*given).block_until_ready(),
        "PyTorch": lambda: kernel(*tensors),
        **{f"{name}, jit of vmap": vectorised(step) for name, step in others.items()},
    }
    return {name: 1e6 * seconds for name, seconds in best(calls, rounds).items()}


def torch_calls(robot: lw.Robot, function: str, rounds: int) -> dict[str, float]:
    """Microseconds of a call with one state."""
    import torch

    from linkwise.frameworks.operation import operation
    from linkwise.frameworks.torch import operator_of

    device = "cuda" if torch.cuda.is_available() else "cpu"
    state = list(np.random.default_rng(0).normal(size=(3, robot.dof)))
    tensors = [torch.tensor(a, device=device) for a in state]
    kernel, method = robot.kernel(function), getattr(robot, function)
    operator = operator_of(operation(kernel)).op
    compiled = torch.compile(method, fullgraph=True, backend="aot_eager")
    needed = [value.clone().requires_grad_() for value in tensors]
    calls = {
        "NumPy, method": lambda: method(*state),
        f"method, {device}": lambda: method(*tensors),
        f"operator, {device}": lambda: operator(*tensors),
        f"method with gradients, {device}": lambda: method(*needed),
        f"compiled, {device}": lambda: compiled(*tensors),
        f"torch.add, {device}": lambda: torch.add(tensors[0], tensors[1]),
    }
    return {name: 1e6 * seconds for name, seconds in best(calls, rounds).items()}


def kinematics_peer(robot: lw.Robot, urdf: Path | None, count: int, rounds: int) -> dict[str, float]:
    """Microseconds of poses of a batch beside pytorch_kinematics, where it is installed."""
    try:
        import pytorch_kinematics
    except ImportError:
        return {}
    import torch

    if urdf is None:
        return {}
    frame = robot.link_names[-1]
    chain = pytorch_kinematics.build_serial_chain_from_urdf(urdf.read_bytes(), frame).to(dtype=torch.float64)
    q = torch.tensor(np.random.default_rng(0).normal(size=(count, robot.dof)))
    np.testing.assert_allclose(robot.pose(q, frame), chain.forward_kinematics(q).get_matrix(), atol=1e-6)
    calls = {
        "poses, PyTorch": lambda: robot.pose(q, frame),
        "pytorch_kinematics": lambda: chain.forward_kinematics(q).get_matrix(),
    }
    return {name: 1e6 * seconds for name, seconds in best(calls, rounds).items()}


def jax_peers(robot: lw.Robot, folder: Path) -> tuple[dict[str, dict[str, Any]], dict[str, str], Path | None]:
    """Functions of adam, frax and MJX that JAX traces, by function and library; why others are missing; the URDF."""
    subject = Subject.of(robot, folder)
    found, missing = peers.find(subject, ("adam", "frax", "mjx"))
    functions: dict[str, dict[str, Any]] = {name: {} for name in FUNCTIONS}
    for peer in found:
        for name in FUNCTIONS:
            if (step := getattr(peer, "functions", {}).get(name)) is not None:
                functions[name][peer.name] = step
    return functions, missing, subject.urdf


def measured(robot: lw.Robot, counts: list[int], rounds: int) -> dict[str, dict[str, float]]:
    import jax

    jax.config.update("jax_enable_x64", True)
    with tempfile.TemporaryDirectory() as folder:
        others, missing, urdf = jax_peers(robot, Path(folder))
        for name, reason in missing.items():
            print(f"without {name}: {reason}", file=sys.stderr)
        found = {}
        for function in FUNCTIONS:
            found[f"{function}, one state [µs a step]"] = one_state(robot, function, others[function], rounds)
            for count in counts:
                title = f"{function}, {count} states [µs a call]"
                found[title] = batches(robot, function, count, others[function], rounds)
            found[f"{function} in PyTorch, one state [µs a call]"] = torch_calls(robot, function, rounds)
        poses = kinematics_peer(robot, urdf, counts[-1], rounds)
        return {**found, **({f"poses, {counts[-1]} states [µs]": poses} if poses else {})}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--robot", default="panda")
    parser.add_argument("--states", default="64,4096,100000")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--write", type=Path, help="page whose table is replaced")
    options = parser.parse_args()
    if options.table:
        text = table.tables()
        if options.write:
            page = options.write.read_text(encoding="utf-8")
            shown = re.compile(f"{BEGIN}.*?{END}", re.DOTALL)
            page = shown.sub(lambda _: f"{BEGIN}\n{text}\n{END}", page)
            options.write.write_text(page, encoding="utf-8")
        print(text)
        return
    counts = [8] if options.quick else [int(word) for word in options.states.split(",")]
    found = measured(without_drives(lw.load(options.robot)), counts, 1 if options.quick else options.rounds)
    for title, times in found.items():
        print(title)
        for name, value in times.items():
            print(f"  {name:32} {value:12.3f}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
