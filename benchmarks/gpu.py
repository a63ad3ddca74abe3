"""Kernels on a GPU: are the bits those of the CPU, how fast are they, and how near to the limit of the memory?

Every function of a robot in both precisions is compared with the CPU's kernel on random states. Then the functions are
timed with data on the device, beside a copy on the same device in the same run: bytes are counted once for every scalar
that must be read or written. Small batches are timed beside the CPU. JAX (the same graph compiled by XLA) and PyTorch
(the same graph, one call per operation) run where they are installed. None of this computes contact.

    python benchmarks/gpu.py [--robot panda] [--states 1000000] [--json FILE] [--tune] [--seconds 400]

``--quick`` runs everything with a few states each: the figures mean nothing then.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import cupy
import numpy as np

import linkwise as lw
from linkwise import kernels
from linkwise.compiler.emit import cuda
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.program import Program
from linkwise.control import Gains, GravityPD
from linkwise.functions import FUNCTIONS, Setting
from linkwise.gpu import call, driver, nvrtc
from linkwise.gpu.device import DeviceKernel, device_kernel, rollout_kernel
from linkwise.simulate.loop import ClosedLoop
from linkwise.simulate.plant import Plant
from linkwise.simulate.reference import source_of

DTYPES = ("float32", "float64")
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
SMALL = (1, 64, 4096, 65536)
QUICK = {"states": 64, "steps": 5, "repeats": 2}  # sizes under --quick


class Size:
    """How much is measured: all of it, or just enough to see that everything runs."""

    quick = False

    @classmethod
    def of(cls, what: str, number: int) -> int:
        return min(number, QUICK[what]) if cls.quick else number


# -- measuring --------------------------------------------------------------------------------------------------------


def device_seconds(work: Callable[[], Any], repeats: int = 15, warm: int = 3) -> tuple[float, float]:
    """(median, spread between quartiles) of the time of one piece of work on the GPU."""
    repeats = Size.of("repeats", repeats)
    for _ in range(warm):
        work()
    marks = [(cupy.cuda.Event(), cupy.cuda.Event()) for _ in range(repeats)]
    for start, end in marks:
        start.record()
        work()
        end.record()
    marks[-1][1].synchronize()
    times = sorted(cupy.cuda.get_elapsed_time(*pair) * 1e-3 for pair in marks)
    return statistics.median(times), times[-len(times) // 4] - times[len(times) // 4]


def host_seconds(work: Callable[[], Any], repeats: int = 200) -> float:
    """Median wall time of one call."""
    repeats = Size.of("repeats", repeats)
    for _ in range(Size.of("repeats", 10)):
        work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def copy_bandwidth() -> float:
    """Bytes read and written per second by a device-to-device copy of 4 GiB."""
    source = cupy.random.random((Size.of("states", 1 << 29),), dtype=np.float64)
    target = cupy.empty_like(source)
    seconds, _ = device_seconds(
        lambda: cupy.cuda.runtime.memcpyAsync(
            target.data.ptr, source.data.ptr, source.nbytes, 3, cupy.cuda.get_current_stream().ptr
        )
    )
    return 2 * source.nbytes / seconds


# -- kernels and states -----------------------------------------------------------------------------------------------


def kernel_of(robot: lw.Robot, name: str, algorithm: str | None = None) -> Kernel | None:
    """As the robot's method takes it; None where that runs without a kernel."""
    function = FUNCTIONS[name]
    if ("constrain" in name or name == "impact") and not robot.constraint_rows:
        return None
    setting = Setting(
        robot, frame=robot.default_frame() if name in ("pose", "jacobian", "velocity") else None
    )
    setting = replace(setting, base_parameters=function.regroups)
    algorithm = function.algorithm(algorithm)
    if not kernels.compiles(function, setting, algorithm):
        return None
    try:
        return kernels.kernel(function, setting, algorithm)
    except TypeError:  # an algorithm that cannot be swept
        return None


def random_states(kernel: Kernel, count: int, dtype: str, seed: int = 0) -> list[cupy.ndarray]:
    generator = cupy.random.default_rng(seed)
    scale = {"q": math.pi, "qd": 2.0, "qdd": 5.0, "tau": 20.0}
    return [
        ((generator.random((count, size), dtype=np.float32) * 2 - 1) * scale.get(name, 1.0)).astype(dtype)
        for name, size in kernel.inputs
    ]


def scalars(kernel: Kernel) -> int:
    """Scalars that one state reads and writes."""
    return sum(size for _, size in kernel.inputs) + sum(math.prod(shape) for _, shape in kernel.outputs)


def as_tuple(result: Any) -> tuple:
    return result if isinstance(result, tuple) else (result,)


# -- parts of the benchmark -------------------------------------------------------------------------------------------


def check_bits(kernel: Kernel, dtype: str, count: int) -> int:
    """How many scalars differ from the CPU's, in ``count`` random states (all NaNs are equal)."""
    integer = cupy.uint32 if dtype == "float32" else cupy.uint64
    chunk = max(1, min(count, (1 << 27) // max(scalars(kernel), 1)))
    different = 0
    for first in range(0, count, chunk):
        there = random_states(kernel, min(chunk, count - first), dtype, seed=first)
        got = as_tuple(kernel(*there))
        wanted = as_tuple(kernel(*(cupy.asnumpy(a) for a in there)))
        for a, b in zip(got, wanted, strict=True):
            b = cupy.asarray(b)
            same = (a.view(integer) == b.view(integer)) | (cupy.isnan(a) & cupy.isnan(b))
            different += int((~same).sum())
    return different


def time_function(kernel: Kernel, dtype: str, count: int, fast: bool = False) -> dict[str, float]:
    there = random_states(kernel, count, dtype)
    out = tuple(cupy.empty((count, *shape), dtype) for _, shape in kernel.outputs)
    target = out if len(out) > 1 else out[0]
    seconds, spread = device_seconds(lambda: call(kernel, there, target, fast=fast))
    item = np.dtype(dtype).itemsize
    found = device_kernel(kernel, dtype, cupy.cuda.runtime.getDevice(), fast).function.resources()
    return {
        "per_second": count / seconds,
        "bytes_per_second": count * scalars(kernel) * item / seconds,
        "spread": spread / seconds,
        **found,
    }


def tune(kernel: Kernel, dtype: str, count: int) -> list[dict[str, Any]]:
    """The same kernel under other layouts: warps of a block, blocks that must fit, outputs staged or not."""
    program = kernel.program(dtype)
    assert isinstance(program, Program)
    rule = cuda.chosen_layout(program)
    on_sm = rule.warps * rule.resident
    layouts = {*cuda.candidates(program)}
    for persistent in (False, True):
        for warps in (1, 2, 4):
            for total in (on_sm - 4, on_sm, on_sm + 4):
                if total >= 4:
                    chosen = replace(rule, warps=warps, resident=total // warps, persistent=persistent)
                    layouts.add(chosen)
    on = driver.device(0)
    compiler = nvrtc.compiler(driver.version()[0])
    options = [*cuda.options(), f"--gpu-architecture={on.architecture}"]

    def build(layout: cuda.WarpLayout):
        module = cuda.module(program, layout)
        return layout, module, compiler.compile(module.text, module.name, options)

    with ThreadPoolExecutor(12) as pool:
        built = list(pool.map(build, sorted(layouts, key=repr)))
    there = random_states(kernel, count, dtype)
    out = [cupy.empty((count, *shape), dtype) for _, shape in kernel.outputs]
    rows = []
    for layout, module, cubin in built:
        try:
            function = driver.Function(on, cubin, module.name, module.threads, module.shared, module.resident)
        except lw.LinkwiseError:
            continue
        each = DeviceKernel(function)
        outputs, inputs = [a.data.ptr for a in out], [a.data.ptr for a in there]
        strides = [size for _, size in kernel.inputs]
        stream = cupy.cuda.get_current_stream().ptr
        seconds, _ = device_seconds(lambda e=each: e.run(outputs, inputs, strides, count, stream), 7, 2)  # noqa: B023
        rows.append(
            {
                "warps": layout.warps,
                "resident": layout.resident,
                "persistent": layout.persistent,
                "rule": layout == rule,
                "per_second": count / seconds,
                **function.resources(),
            }
        )
    return sorted(rows, key=lambda row: -row["per_second"])


def latencies(robot: lw.Robot) -> list[dict[str, Any]]:
    """One call from Python until the result is there, and until the call returns, beside the CPU's."""
    rows = []
    for name in ("inverse_dynamics", "forward_dynamics"):
        kernel = kernel_of(robot, name)
        assert kernel is not None
        method = getattr(robot, name)
        for count in SMALL[:2] if Size.quick else SMALL:
            there = random_states(kernel, count, "float64")
            here = [cupy.asnumpy(a) for a in there]
            out = cupy.empty((count, robot.dof))

            def gpu(there=there, out=out, method=method):
                method(*there, out=out)
                cupy.cuda.get_current_stream().synchronize()

            def start(work):
                """Host time of a call while the GPU is busy with the calls before."""
                count = Size.of("repeats", 300)
                work()
                cupy.cuda.get_current_stream().synchronize()
                began = time.perf_counter()
                for _ in range(count):
                    work()
                seconds = (time.perf_counter() - began) / count
                cupy.cuda.get_current_stream().synchronize()
                return seconds

            rows.append(
                {
                    "function": name,
                    "states": count,
                    "gpu_finished": host_seconds(gpu),
                    "gpu_started": start(lambda k=kernel, t=there, o=out: k(*t, out=o)),
                    "method_started": start(lambda m=method, t=there, o=out: m(*t, out=o)),
                    "method_without_out": start(lambda m=method, t=there: m(*t)),
                    "gpu_alone": _graph_seconds(lambda k=kernel, t=there, o=out: k(*t, out=o)),
                    "cpu": host_seconds(lambda m=method, h=here: m(*h)),
                    "cpu_one_thread": host_seconds(lambda k=kernel, h=here: k(*h, threads=1)),
                }
            )
    return rows


def _graph_seconds(work: Callable[[], Any]) -> float:
    """Time of one launch among many of a graph: what is left without Python and without launching one by one."""
    count = Size.of("repeats", 100)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        work()
        stream.begin_capture()
        for _ in range(count):
            work()
        graph = stream.end_capture()
        seconds, _ = device_seconds(lambda: graph.launch(), 10, 2)
    stream.synchronize()
    return seconds / count


# -- closed loops -----------------------------------------------------------------------------------------------------


def closed_loop(
    robot: lw.Robot, varied: tuple[str, ...] = (), record: tuple[str, ...] = ("q",)
) -> ClosedLoop:
    """PD control with gravity compensation at a fixed point, semi-implicit Euler."""
    controller = GravityPD(robot, Gains(400.0, 40.0))
    source = source_of(np.zeros(robot.dof), robot.dof)
    return ClosedLoop(
        Plant(robot), controller, source, "semi_implicit_euler", False, False, 0, varied, record
    )


def robots_of(loop: ClosedLoop, count: int, dtype: str, seed: int = 0) -> dict[str, Any]:
    """Robots in random states with their own gains, and payloads where the loop has them."""
    generator = cupy.random.default_rng(seed)
    n = loop.dof

    def spread(size: int, low: float, high: float):
        return (generator.random((count, size), dtype=np.float32) * (high - low) + low).astype(dtype)

    given: dict[str, Any] = dict(loop.numbers(1e-3, 1))
    given |= {"q": spread(n, -1.0, 1.0), "qd": spread(n, -1.0, 1.0), "kp": spread(n, 50.0, 100.0)}
    given |= {"kd": spread(n, 5.0, 15.0), "target": spread(n, -1.0, 1.0)}
    if "payload" in loop.varied:
        payload = cupy.zeros((count, 10), dtype)
        payload[:, 0] = spread(1, 0.0, 2.0)[:, 0]
        payload[:, 3] = 0.05 * payload[:, 0]
        for k in (4, 7, 9):
            payload[:, k] = 0.01 * payload[:, 0]
        given["payload"] = payload
    return given


def time_rollout(loop: ClosedLoop, dtype: str, count: int, steps: int) -> dict[str, Any]:
    kernel = loop.kernel()
    given = robots_of(loop, count, dtype)
    seconds, spread = device_seconds(lambda: kernel(given, steps=steps, every=steps, dtype=dtype), 5, 1)
    function = rollout_kernel(kernel, dtype, cupy.cuda.runtime.getDevice()).function
    some, short = min(count, 65536), min(steps, 20)
    few = {name: cupy.asnumpy(value)[:some] for name, value in given.items()}
    few = {
        name: value if np.ndim(given[name]) > 1 else cupy.asnumpy(given[name]) for name, value in few.items()
    }
    here = host_seconds(lambda: kernel(few, steps=short, every=short, dtype=dtype), 3)
    return {
        "robots": count,
        "steps": steps,
        "per_second": count * steps / seconds,
        "spread": spread / seconds,
        "cpu_per_second": some * short / here,
        **function.resources(),
        "threads": function.threads,
    }


def check_rollout(loop: ClosedLoop, dtype: str) -> int:
    """Scalars that differ from the CPU's at the end and in every seventh row."""
    count, steps = Size.of("states", 20000), Size.of("steps", 60) // 7 * 7 or 7
    kernel = loop.kernel()
    given = robots_of(loop, count, dtype, seed=5)
    here = {name: cupy.asnumpy(value) for name, value in given.items()}
    different = 0
    for got, wanted in zip(
        kernel(given, steps=steps, every=7, dtype=dtype),
        kernel(here, steps=steps, every=7, dtype=dtype),
        strict=True,
    ):
        for name, a in got.items():
            b, a = wanted[name], cupy.asnumpy(a)
            different += int((~((a == b) | (np.isnan(a) & np.isnan(b)))).sum())
    return different


def tune_rollout(loop: ClosedLoop, dtype: str, count: int, steps: int) -> list[dict[str, Any]]:
    """The same closed loop with more or fewer warps."""
    program = loop.kernel().program(dtype)
    base = cuda.candidates(program)[-1]
    on_sm = base.warps * base.resident
    compiler, on = nvrtc.compiler(driver.version()[0]), driver.device(0)
    options = [*cuda.options(), f"--gpu-architecture={on.architecture}"]
    layouts = [
        replace(base, warps=w, resident=t // w) for w in (1, 4) for t in (on_sm - 4, on_sm, on_sm + 4) if t
    ]

    def build(layout: cuda.WarpLayout):
        module = cuda.module(program, layout)
        return layout, module, compiler.compile(module.text, module.name, options)

    with ThreadPoolExecutor(12) as pool:
        built = list(pool.map(build, layouts))
    given = robots_of(loop, count, dtype)
    interface = program.interface
    arrays = {name: cupy.asarray(value).astype(dtype) for name, value in given.items()}
    written = [cupy.empty((count, 1, *shape), dtype) for shape in interface.written.values()]
    rows = []
    for layout, module, cubin in built:
        try:
            function = driver.Function(on, cubin, module.name, module.threads, module.shared)
        except lw.LinkwiseError:
            continue
        words = [arrays[name].data.ptr for name in interface.carried]
        words += [a.data.ptr for a in written]
        words += [arrays[name].data.ptr for name in interface.parameters]
        words += [arrays[name].shape[-1] if arrays[name].ndim > 1 else 0 for name in interface.parameters]
        words += [steps, steps, 1, count]
        blocks, stream = DeviceKernel(function).blocks(count), cupy.cuda.get_current_stream().ptr
        seconds, _ = device_seconds(lambda f=function, w=words, b=blocks: f.launch(b, stream, *w), 3, 1)  # noqa: B023
        label = {
            "warps": layout.warps,
            "resident": layout.resident,
            "persistent": False,
            "rule": layout == base,
        }
        rows.append({**label, "per_second": count * steps / seconds, **function.resources()})
    return sorted(rows, key=lambda row: -row["per_second"])


# -- gradients ---------------------------------------------------------------------------------------------------------


def time_gradients(robot: lw.Robot) -> dict[str, Any]:
    """Gradients of Σ w·result through PyTorch: bits beside the CPU's, and the time with and without them."""
    import torch

    count = Size.of("states", 1 << 22)
    rows: dict[str, Any] = {}
    for name in ("inverse_dynamics", "forward_dynamics"):
        method, kernel = getattr(robot, name), kernel_of(robot, name)
        assert kernel is not None
        for dtype in DTYPES:
            made = [torch.as_tensor(a, device="cuda") for a in random_states(kernel, count, dtype)]
            weights = torch.randn_like(made[0])

            def step(arrays=made, weights=weights, method=method):
                given = [a.detach().requires_grad_() for a in arrays]
                return torch.autograd.grad(method(*given), given, weights)

            few = 100_000
            got = step([a[:few] for a in made], weights[:few])
            wanted = kernel.vjp()(*(a[:few].cpu().numpy() for a in (*made, weights)))
            different = sum(int((a.cpu().numpy() != b).sum()) for a, b in zip(got, wanted, strict=True))
            both, _ = device_seconds(step, 7, 2)  # both libraries work on the default stream
            alone, _ = device_seconds(lambda m=method, a=made: m(*a), 7, 2)
            vjp, inputs = kernel.vjp(), (*made, weights)
            back, _ = device_seconds(lambda k=vjp, a=inputs: k(*a), 7, 2)
            found = device_kernel(vjp, dtype, cupy.cuda.runtime.getDevice()).function.resources()
            rows[f"{name} {dtype}"] = {
                "states": count,
                "per_second": count / both,
                "vjp_per_second": count / back,
                "without_gradient_per_second": count / alone,
                "different_scalars": different,
                **found,
            }
            del made, weights, got
    torch.cuda.empty_cache()
    return rows


# -- the same graph by others -----------------------------------------------------------------------------------------


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


# -- the whole ---------------------------------------------------------------------------------------------------------


def main() -> None:
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
    parser.add_argument("--tune", action="store_true", help="also time other layouts")
    parser.add_argument("--json", help="write all figures to this file")
    parser.add_argument("--quick", action="store_true", help="a few states each, to see that it runs")
    options = parser.parse_args()
    Size.quick = options.quick
    robot = lw.load(options.robot)
    began = time.perf_counter()
    report: dict[str, Any] = {"robot": robot.name, "joints": robot.dof}

    def done(part: str, value: Any) -> None:
        report[part] = value
        print(f"[{time.perf_counter() - began:6.1f} s] {part}", flush=True)
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump(report, file, indent=1)

    def late() -> bool:
        return time.perf_counter() - began > options.seconds

    properties = cupy.cuda.runtime.getDeviceProperties(0)
    done(
        "device",
        {"name": properties["name"].decode(), "driver": driver.version(), "nvrtc": nvrtc.compiler().version},
    )
    done("copy_bytes_per_second", copy_bandwidth())
    cupy.get_default_memory_pool().free_all_blocks()
    copy = report["copy_bytes_per_second"]

    found = {name: kernel_of(robot, name) for name in FUNCTIONS}
    found = {name: kernel for name, kernel in found.items() if kernel is not None}
    with ThreadPoolExecutor(8) as pool:  # compiling is most of the work, and outside the interpreter lock
        list(
            pool.map(
                lambda pair: device_kernel(found[pair[0]], pair[1], 0),
                [(n, d) for n in TIMED for d in DTYPES],
            )
        )
    done("compiled", time.perf_counter() - began)

    speed: dict[str, Any] = {}
    for name, all_states in TIMED.items():
        for dtype in DTYPES:
            count = Size.of("states", all_states)
            speed[f"{name} {dtype}"] = {"states": count, **time_function(found[name], dtype, count)}
            cupy.get_default_memory_pool().free_all_blocks()
    for name in ("inverse_dynamics", "forward_dynamics"):
        count = Size.of("states", 1 << 24)
        speed[f"{name} float32 fast"] = {
            "states": count,
            **time_function(found[name], "float32", count, fast=True),
        }
    done("speed", speed)
    loops: dict[str, Any] = {}
    for label, varied in (("closed loop", ()), ("closed loop, payloads", ("payload",))):
        for dtype, steps in (("float32", 1000), ("float64", 500)):
            loop = closed_loop(robot, varied)
            loops[f"{label} {dtype}"] = {
                **time_rollout(loop, dtype, Size.of("states", 1 << 20), Size.of("steps", steps)),
                "different_scalars": check_rollout(closed_loop(robot, varied, ("q", "qd", "tau")), dtype),
            }
            done("closed_loops", loops)
    done("latency", latencies(robot))
    try:
        done("gradients", time_gradients(robot))
    except Exception as error:  # without PyTorch, or with one that is broken, the rest is still worth having
        done("gradients", f"{type(error).__name__}: {str(error).splitlines()[0][:120]}")
    cupy.get_default_memory_pool().free_all_blocks()

    bits: dict[str, int | str] = {}
    for name, kernel in found.items():
        for dtype in DTYPES:
            if late():
                bits[f"{name} {dtype}"] = "not compared: no time left"
                continue
            bits[f"{name} {dtype}"] = check_bits(kernel, dtype, Size.of("states", options.states))
            cupy.get_default_memory_pool().free_all_blocks()
    done("different_scalars", bits)

    peers: dict[str, Any] = {}
    for label, work in (("JAX", time_jax), ("PyTorch", time_torch)):
        if late():
            break
        try:
            count = Size.of("states", 1 << 22)
            peers[f"{label} inverse_dynamics float32"] = count / work(found["inverse_dynamics"], count)
        except Exception as error:  # a missing or broken peer is a line of the report, not an end
            peers[f"{label} inverse_dynamics float32"] = (
                f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"
            )
        cupy.get_default_memory_pool().free_all_blocks()
        done("peers", peers)

    if options.tune:
        tuned: dict[str, Any] = {}
        for dtype in DTYPES:
            tuned[f"closed loop {dtype}"] = tune_rollout(
                closed_loop(robot), dtype, Size.of("states", 1 << 19), Size.of("steps", 400)
            )
            done("tuned", tuned)
        for name, dtype in [*GOALS, ("mass_matrix", "float32")]:
            if late():
                break
            tuned[f"{name} {dtype}"] = tune(found[name], dtype, Size.of("states", min(TIMED[name], 1 << 23)))
            cupy.get_default_memory_pool().free_all_blocks()
            done("tuned", tuned)
    print_table(report, copy)


def print_table(report: dict[str, Any], copy: float) -> None:
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
    for row in report.get("latency", []):
        print(
            f"{row['function']:18} {row['states']:6} states: GPU {row['gpu_finished'] * 1e6:7.1f} us finished; start "
            f"{row['gpu_started'] * 1e6:.1f} kernel, {row['method_started'] * 1e6:.1f} method, "
            f"{row['method_without_out'] * 1e6:.1f} without out=; {row['gpu_alone'] * 1e6:.1f} in a graph; "
            f"CPU {row['cpu'] * 1e6:7.1f} us, one thread {row['cpu_one_thread'] * 1e6:7.1f} us"
        )
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
    wrong = {label: n for label, n in report["different_scalars"].items() if n}
    print(
        f"bits: {len(report['different_scalars']) - len(wrong)} of {len(report['different_scalars'])} identical",
        wrong or "",
    )


if __name__ == "__main__":
    main()
