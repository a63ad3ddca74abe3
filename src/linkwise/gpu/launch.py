"""A kernel on one GPU, ready to be launched: from Python, or from machine code that has addresses only.

    prepared = prepare(kernel, "float64", device=0)
    launch(prepared, [*outputs, *inputs], count, stream)

Pointers are addresses on that GPU, outputs first; the stream is the driver's (CUstream). Nothing waits for the GPU and
nothing is allocated, so that launches can be captured in a graph. Machine code calls the C function at
``launch_address()``, ``int64_t launch(int64_t table, int64_t *words, int64_t count, int64_t stream)``, with
``prepared.address`` as the table and the parameters as ``prepared.words`` lays them out; 0 means that it was started.
It may be called by any thread, with or without the interpreter lock.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING

from linkwise.compiler.runtime import dispatch
from linkwise.gpu.device import DeviceKernel, device_kernel

if TYPE_CHECKING:
    from linkwise.compiler.kernel import Kernel


class Prepared:
    """One kernel in one precision on one GPU."""

    def __init__(self, kernel: Kernel, on_device: DeviceKernel):
        self.on_device = on_device
        self.strides = tuple(size for _, size in kernel.inputs)
        """Scalars from one row of each input to the next, where every state has its own; 0: one row for all."""
        words = len(kernel.outputs) + 2 * len(kernel.inputs) + 1 + (on_device.function.scratch > 0)
        self.table = on_device.function.table(words)
        self.address = ctypes.addressof(self.table)

    def scratch_bytes(self, count: int) -> int:
        """Bytes of memory that a launch for so many states needs besides its arrays; most kernels need none."""
        return self.on_device.scratch_bytes(count)

    def words(
        self, pointers: Sequence[int], count: int, strides: Sequence[int] | None = None, scratch: int = 0
    ) -> tuple[int, ...]:
        """The parameters of a launch: pointers, strides, number of states, scratch memory where it is needed."""
        room = (scratch,) if self.on_device.function.scratch else ()
        return (*pointers, *(self.strides if strides is None else strides), count, *room)


def prepare(kernel: Kernel, dtype: str, device: int, fast: bool = False) -> Prepared:
    """The kernel on this GPU, compiled and loaded when it is first needed."""
    place = (Prepared, dtype, device, fast)
    found = kernel.on_device.get(place)
    if found is None:
        found = kernel.on_device[place] = Prepared(kernel, device_kernel(kernel, dtype, device, fast))
    return found


def launch(
    prepared: Prepared,
    pointers: Sequence[int],
    count: int,
    stream: int,
    strides: Sequence[int] | None = None,
    scratch: int = 0,
) -> None:
    """Start the kernel for ``count`` states.

    Args:
        prepared: what ``prepare`` gave.
        pointers: addresses of all outputs, then of all inputs; rows are dense.
        count: number of states.
        stream: the driver's stream to put the launch on.
        strides: scalars from one row of each input to the next; default: every state has a row of its own.
        scratch: address of ``prepared.scratch_bytes(count)`` bytes, where that is not 0. They may be reused by work
            that comes later on the same stream.

    Raises:
        DeviceError: the driver refuses.
    """
    steps = prepared.strides if strides is None else strides
    prepared.on_device.run(pointers, (), steps, count, stream, scratch)


def launch_address() -> int:
    """The address of the C function that launches; 0 where machine code for calls is not available."""
    return dispatch.entry_points(wait=True).get("launch", 0)
