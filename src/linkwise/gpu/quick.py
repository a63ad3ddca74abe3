"""The short path to a launch in Python, for dense arrays of known kinds.

It is taken by the first call of a kernel with arrays of a kind, which lets machine code make the following ones
(``connect``), by calls with ``fast=True``, and where machine code cannot be called directly.

What a call needs besides addresses (the kernel on the GPU, the number of blocks, strides, shapes of the results)
depends on the kinds of its arrays alone: library, GPU, precision and shape of each. It is made once and remembered
with the kernel as a ``Plan``; all other calls take the general path, which also has the messages.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from linkwise.gpu.connect import connect
from linkwise.gpu.device import DeviceKernel, device_kernel
from linkwise.gpu.frameworks import reader_of

if TYPE_CHECKING:
    from linkwise.compiler.kernel import Kernel

_MOST_PLANS = 1000  # of a kernel
_NAMES = {"float64", "float32"}


class Plan:
    """What a call needs besides addresses."""

    __slots__ = ("blocks", "input_bytes", "launch", "out_kinds", "output_bytes", "results", "several", "tail")

    def __init__(
        self, on_device: DeviceKernel, batch, count: int, strides, shapes, kinds, device: int, dtype: str
    ):
        function = on_device.function
        item = 8 if dtype == "float64" else 4
        self.launch = function.launch
        self.blocks = on_device.blocks(count)
        self.tail = (*strides, count)
        self.results: list[Any] = [((*batch, *shape), dtype, device) for shape in shapes]
        self.out_kinds = [(kinds[0][0], (*batch, *shape), device) for shape in shapes]
        self.output_bytes = [math.prod(shape) * item for shape, _, _ in self.results]
        self.input_bytes = [math.prod(shape) * item for _, shape, _ in kinds]
        self.several = len(shapes) > 1


def quick_call(kernel: Kernel, args: Sequence[Any], out: Any, fast: bool) -> Any:
    """The results, or None where the general path must be taken."""
    reader = reader_of(args[0])
    if reader is None:
        return None
    kinds, addresses = [], []
    read = reader.read
    kind = type(args[0])
    for value in args:
        if type(value) is not kind or (found := read(value)) is None:
            return None
        addresses.append(found[1])
        kinds.append(found[0])
    key = (reader, fast, *kinds)
    plan = kernel.on_device.get(key)
    if plan is None:
        plan = _planned(kernel, kind, reader, kinds, fast, key)
        if plan is None:
            return None
    device = kinds[0][2]
    if out is None:
        results = [reader.new(*result) for result in plan.results]
        starts = [reader.address(result) for result in results]
    else:
        results = out if plan.several else (out,)
        if type(results) not in (tuple, list) or len(results) != len(plan.out_kinds):
            return None
        starts = []
        for array, wanted in zip(results, plan.out_kinds, strict=True):
            found = read(array) if type(array) is kind else None
            if found is None or found[0] != wanted:
                return None
            starts.append(found[1])
        if _overlap(plan, starts, addresses):
            return None
    plan.launch(plan.blocks, reader.stream(device), *starts, *addresses, *plan.tail)
    return tuple(results) if plan.several else results[0]


def _overlap(plan: Plan, starts: list[int], addresses: list[int]) -> bool:
    """Whether an output shares memory with an input or another output."""
    for k, start in enumerate(starts):
        end = start + plan.output_bytes[k]
        for address, size in zip(addresses, plan.input_bytes, strict=True):
            if address < end and start < address + size:
                return True
        for other, size in zip(starts[:k], plan.output_bytes, strict=False):
            if other < end and start < other + size:
                return True
    return False


def _planned(
    kernel: Kernel, kind: type, reader: Any, kinds: list[tuple], fast: bool, key: tuple
) -> Plan | None:
    """A plan for arrays of these kinds, remembered; None where they need conversion, copies or a message."""
    device = kinds[0][2]
    dtype = reader.dtype_name(kinds[0][0])
    if dtype not in _NAMES or (kernel.dtype == "float32" and dtype == "float64"):
        return None
    batch: tuple[int, ...] = max((shape[:-1] for _, shape, _ in kinds), key=len)
    strides = []
    for (_, size), (precision, shape, place) in zip(kernel.inputs, kinds, strict=True):
        if precision != kinds[0][0] or place != device or not shape or shape[-1] != size:
            return None
        if shape[:-1] == batch:
            strides.append(size)
        elif math.prod(shape) == size:
            strides.append(0)
        else:
            return None
    count = math.prod(batch)
    if count == 0 or any(math.prod(shape) != count * size for (_, size), (_, shape, _), stride in zip(
        kernel.inputs, kinds, strides, strict=True) if stride):  # fmt: skip
        return None
    shapes = [shape for _, shape in kernel.outputs]
    on_device = device_kernel(kernel, dtype, device, fast, reader.stream(device))
    if not fast:
        connect(kernel, kind, dtype, device)
    if on_device.function.scratch:
        return None
    if len(kernel.on_device) > _MOST_PLANS:
        for old in [key for key, value in kernel.on_device.items() if isinstance(value, Plan)]:
            kernel.on_device.pop(old, None)
    plan = kernel.on_device[key] = Plan(on_device, tuple(batch), count, strides, shapes, kinds, device, dtype)
    return plan
