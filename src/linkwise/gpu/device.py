"""A kernel on one GPU: compiled for its architecture, kept in the cache of compiled code, launched on any stream."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from linkwise.compiler import cache
from linkwise.gpu import driver, nvrtc
from linkwise.gpu.errors import DeviceError

if TYPE_CHECKING:
    from linkwise.compiler.emit.cuda import Module
    from linkwise.compiler.kernel import Kernel

_MOST_BLOCKS = 2**31 - 1
_lock = threading.RLock()


class DeviceKernel:
    """One kernel in one precision, loaded on one GPU. Outputs, inputs and strides are in the order of the kernel."""

    def __init__(self, function: driver.Function):
        self.function = function

    def run(
        self, outputs: Sequence[int], inputs: Sequence[int], strides: Sequence[int], count: int, stream: int
    ) -> None:
        """Start the computation of ``count`` states; addresses on the GPU, strides in scalars."""
        if not count:
            return
        blocks = -(-count // self.function.threads)
        if blocks > _MOST_BLOCKS:
            raise DeviceError(f"{self.function.name}: {count} states are more than one launch can take")
        parameters = [ctypes.c_void_p(address) for address in (*outputs, *inputs)]
        sizes = [ctypes.c_int64(number) for number in (*strides, count)]
        self.function.launch(blocks, stream, [*parameters, *sizes])


def device_kernel(kernel: Kernel, dtype: str, number: int, fast: bool = False) -> DeviceKernel:
    """The kernel on the GPU of this number, compiled when it is first asked for."""
    known = kernel.on_device
    place = (dtype, number, fast)
    found = known.get(place)
    if found is None:
        with _lock:
            found = known.get(place)
            if found is None:
                found = known[place] = DeviceKernel(_loaded(kernel, dtype, driver.device(number), fast))
    return found


def _loaded(kernel: Kernel, dtype: str, on: driver.Device, fast: bool) -> driver.Function:
    """From the cache, by the kernel's key or at least by the text; else compiled and stored there."""
    from linkwise.compiler.emit import cuda

    compiler = nvrtc.compiler(driver.version()[0])
    options = (*cuda.options(fast), f"--gpu-architecture={on.architecture}")
    target = f"cuda\0{compiler.version}\0{options}\0".encode()

    @functools.cache
    def module() -> Module:
        return cuda.module(kernel.program(dtype), fast=fast)

    identity = kernel.identity(dtype)
    if identity is None:
        identity = hashlib.sha256(module().text.encode()).digest()
    entry = cache.key(target + identity)
    stored = cache.load(entry)
    if stored is None:
        made = module()
        cubin = compiler.compile(made.text, made.name, options)
        stored = f"{made.name} {made.threads} {made.shared}\n".encode() + cubin
        cache.store(entry, stored)
    head, cubin = stored.split(b"\n", 1)
    name, threads, shared = head.decode().split()
    return driver.Function(on, cubin, name, int(threads), int(shared))
