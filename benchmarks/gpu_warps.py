"""Programs shared out among the warps of a block: how many warps, how many registers, how many values kept?

Every variant is compared with the CPU's bits and timed with data on the device. A variant is a function, a precision
and what its layout (``cuda_layout.WarpLayout``) has in place of that of the rule for single warps.

    python benchmarks/gpu_warps.py [--robot panda] [VARIANT ...] [--json FILE] [--processes 12]
    python benchmarks/gpu_warps.py forward_dynamics_derivatives:float64:parts=2,warps=4,resident=1,held=105

``FUNCTION.vjp`` is the gradient with respect to all inputs. A variant without a layout is what the rule chooses;
without variants, those of the functions of docs/gpu.md. ``--quick`` runs a few states: the figures mean nothing then.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import cupy
import numpy as np
from gpu_parts.measuring import Size, as_tuple, device_seconds, kernel_of, random_states, scalars

import linkwise as lw
from linkwise.compiler.emit.cuda import source as cuda
from linkwise.compiler.ir.program import Program
from linkwise.compiler.kernel import Kernel
from linkwise.gpu import driver, nvrtc
from linkwise.gpu.device import DeviceKernel

FUNCTIONS = ("forward_dynamics_derivatives", "inverse_dynamics_derivatives", "forward_dynamics.vjp")
FUNCTIONS += ("forward_dynamics", "coriolis_matrix", "regressor")
CHECKED = 40_011  # states whose bits are compared; the last block is not full


def kernel_named(robot: lw.Robot, name: str) -> Kernel:
    kernel = kernel_of(robot, name.removesuffix(".vjp"))
    assert kernel is not None, name
    return kernel.vjp(*(key for key, _ in kernel.inputs)) if name.endswith(".vjp") else kernel


def modules(robot: str, base: str, variant: str) -> list[cuda.Module]:
    """The kernels to try for a variant, in the order of preference."""
    name, dtype, *changes = variant.split(":")
    program = kernel_named(loaded(robot, base), name).program(dtype)
    assert isinstance(program, Program)
    if not changes:
        return list(cuda.variants(program))
    numbers = {key: int(value) for key, value in (each.split("=") for each in changes[0].split(","))}
    return [cuda.module(program, replace(cuda.chosen_layout(program), **numbers))]


def loaded(robot: str, base: str) -> lw.Robot:
    return lw.load(robot, base=base) if base else lw.load(robot)


def measured(kernel: Kernel, dtype: str, function: driver.Function, count: int) -> dict[str, Any]:
    """Bits beside the CPU's, then the time."""
    each, stream = DeviceKernel(function), cupy.cuda.get_current_stream().ptr
    sizes = [size for _, size in kernel.inputs]

    def run(there: Sequence[Any], out: Sequence[Any], states: int) -> None:
        each.run([a.data.ptr for a in out], [a.data.ptr for a in there], sizes, states, stream)

    few = Size.of("states", CHECKED)
    there = random_states(kernel, few, dtype, seed=3)
    out = [cupy.empty((few, *shape), dtype) for _, shape in kernel.outputs]
    for a in out:
        a[...] = np.nan  # what is not written differs
    run(there, out, few)
    wanted = as_tuple(kernel(*(cupy.asnumpy(a) for a in there)))
    whole = cupy.uint32 if dtype == "float32" else cupy.uint64
    different = sum(
        int((a.view(whole) != cupy.asarray(b).view(whole)).sum()) for a, b in zip(out, wanted, strict=True)
    )
    there = random_states(kernel, count, dtype)
    out = [cupy.empty((count, *shape), dtype) for _, shape in kernel.outputs]
    seconds, _ = device_seconds(lambda: run(there, out, count), 7, 2)
    item = np.dtype(dtype).itemsize
    return {
        "per_second": count / seconds,
        "bytes_per_second": count * scalars(kernel) * item / seconds,
        "different": different,
        **function.resources,
    }


def loaded_function(built: Sequence[tuple[cuda.Module, bytes]]) -> tuple[driver.Function, cuda.Module]:
    """The first that spills next to nothing, or the last, as ``gpu.device`` takes it."""
    for module, cubin in built:
        numbers = (module.threads, module.shared, module.resident, module.states, module.scratch)
        function = driver.Function(driver.device(0), cubin, module.name, *numbers)
        if function.resources["local"] <= 16:
            break
    return function, module


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("variants", nargs="*")
    parser.add_argument("--robot", default="panda")
    parser.add_argument("--base", default="", help="floating: on a moving base")
    parser.add_argument("--states", type=int, default=1 << 21)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--processes", type=int, default=0, help="that write kernels at the same time")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    Size.quick = options.quick
    variants = options.variants or [f"{name}:{d}" for name in FUNCTIONS for d in ("float32", "float64")]
    given = [options.robot] * len(variants), [options.base] * len(variants), variants
    if options.processes:  # before the driver is used, which does not survive a fork
        with ProcessPoolExecutor(options.processes) as pool:
            made = list(pool.map(modules, *given))
    else:
        made = list(map(modules, *given))
    compiler, on = nvrtc.compiler(driver.version()[0]), driver.device(0)
    flags = [*cuda.options(), f"--gpu-architecture={on.architecture}"]

    def build(each: Sequence[cuda.Module]) -> list[tuple[cuda.Module, bytes]]:
        return [(module, compiler.compile(module.text, module.name, flags)) for module in each]

    with ThreadPoolExecutor(max(1, options.processes)) as pool:
        built = list(pool.map(build, made))
    robot = loaded(options.robot, options.base)
    rows = {}
    for variant, each in zip(variants, built, strict=True):
        name, dtype, *_ = variant.split(":")
        try:
            function, module = loaded_function(each)
        except lw.LinkwiseError as error:  # more shared memory than there is
            print(f"{variant}: {error}")
            continue
        kernel = kernel_named(robot, name)
        count = Size.of("states", min(options.states, (4 << 30) // (8 * scalars(kernel))))
        row = rows[variant] = {**measured(kernel, dtype, function, count), "threads": module.threads}
        cupy.get_default_memory_pool().free_all_blocks()
        print(
            f"{variant:52} {row['per_second'] / 1e9:7.3f} G/s {row['bytes_per_second'] / 1e12:5.2f} TB/s, "
            f"{row['registers']} registers, {row['local']} local, {module.threads} threads, {module.shared} shared; "
            f"{row['different']} scalars differ",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
