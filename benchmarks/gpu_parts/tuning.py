"""The same kernels under other layouts: which one is fastest, and whether the rule chooses it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import cupy

import linkwise as lw
from gpu_parts.closed_loops import robots_of
from gpu_parts.measuring import device_seconds, random_states
from linkwise.compiler.emit.cuda import source as cuda
from linkwise.compiler.ir.program import Program
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.rollout import RolloutProgram
from linkwise.gpu import driver, nvrtc
from linkwise.gpu.device import DeviceKernel
from linkwise.simulate.loop import ClosedLoop

Built = tuple[cuda.WarpLayout, cuda.Module, bytes]


def built(program: Program | RolloutProgram, layouts: Sequence[cuda.WarpLayout]) -> list[Built]:
    """The program compiled for every layout, several at a time."""
    compiler, on = nvrtc.compiler(driver.version()[0]), driver.device(0)
    options = [*cuda.options(), f"--gpu-architecture={on.architecture}"]

    def build(layout: cuda.WarpLayout) -> Built:
        module = cuda.module(program, layout)
        return layout, module, compiler.compile(module.text, module.name, options)

    with ThreadPoolExecutor(12) as pool:
        return list(pool.map(build, layouts))


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
    there = random_states(kernel, count, dtype)
    out = [cupy.empty((count, *shape), dtype) for _, shape in kernel.outputs]
    rows = []
    for layout, module, cubin in built(program, sorted(layouts, key=repr)):
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
                **function.resources,
            }
        )
    return sorted(rows, key=lambda row: -row["per_second"])


def tune_rollout(loop: ClosedLoop, dtype: str, count: int, steps: int) -> list[dict[str, Any]]:
    """The same closed loop with more or fewer warps."""
    program = loop.kernel().program(dtype)
    base = cuda.candidates(program)[-1]
    on_sm = base.warps * base.resident
    on = driver.device(0)
    layouts = [
        replace(base, warps=w, resident=t // w) for w in (1, 4) for t in (on_sm - 4, on_sm, on_sm + 4) if t
    ]
    given = robots_of(loop, count, dtype)
    interface = program.interface
    arrays = {name: cupy.asarray(value).astype(dtype) for name, value in given.items()}
    written = [cupy.empty((count, 1, *shape), dtype) for shape in interface.written.values()]
    rows = []
    for layout, module, cubin in built(program, layouts):
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
        rows.append({**label, "per_second": count * steps / seconds, **function.resources})
    return sorted(rows, key=lambda row: -row["per_second"])
