"""Single functions on a GPU: bits beside the CPU's, throughput, gradients."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

import linkwise as lw
from gpu_parts.measuring import (
    DTYPES,
    Size,
    as_tuple,
    device_seconds,
    kernel_of,
    random_states,
    scalars,
)
from linkwise.compiler.kernel import Kernel
from linkwise.gpu import call
from linkwise.gpu.device import device_kernel


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
    found = device_kernel(kernel, dtype, cupy.cuda.runtime.getDevice(), fast).function.resources
    return {
        "per_second": count / seconds,
        "bytes_per_second": count * scalars(kernel) * item / seconds,
        "spread": spread / seconds,
        **found,
    }


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
            found = device_kernel(vjp, dtype, cupy.cuda.runtime.getDevice()).function.resources
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
