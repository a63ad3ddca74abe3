"""A kernel on one GPU: compiled for its architecture, kept in the cache of compiled code, launched on any stream."""

from __future__ import annotations

import functools
import hashlib
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from linkwise.compiler.runtime import cache
from linkwise.gpu import driver, nvrtc
from linkwise.gpu.errors import DeviceError

if TYPE_CHECKING:
    from linkwise.compiler.emit.cuda.source import Module
    from linkwise.compiler.kernel import Kernel
    from linkwise.compiler.rollout import RolloutKernel

_SPILLED = 16  # bytes per thread that cost less than the warps that fewer registers allow
_lock = threading.RLock()


class DeviceKernel:
    """One kernel in one precision, loaded on one GPU."""

    def __init__(self, function: driver.Function):
        self.function = function

    def blocks(self, count: int) -> int:
        """Blocks of a launch for so many states."""
        function = self.function
        blocks = -(-count // function.states)
        if blocks <= function.most_blocks:
            return blocks
        if function.grows:
            raise DeviceError(f"{function.name}: {count} states are more than one launch can take")
        return function.most_blocks

    def scratch_bytes(self, count: int) -> int:
        """Bytes of memory that a launch for so many states needs besides its arrays."""
        return self.blocks(count) * self.function.scratch if self.function.scratch else 0

    def run(
        self,
        outputs: Sequence[int],
        inputs: Sequence[int],
        strides: Sequence[int],
        count: int,
        stream: int,
        scratch: int = 0,
    ) -> None:
        """Start the computation of ``count`` states; addresses on the GPU and strides in scalars."""
        if count:
            room = (scratch,) if self.function.scratch else ()
            self.function.launch(self.blocks(count), stream, *outputs, *inputs, *strides, count, *room)


def device_kernel(
    kernel: Kernel, dtype: str, number: int, fast: bool = False, stream: int | None = None
) -> DeviceKernel:
    """The kernel on the GPU of this number, compiled when it is first needed.

    Args:
        kernel: the kernel.
        dtype: "float64" or "float32".
        number: the GPU, as the frameworks count them.
        fast: approximate sine, cosine and division.
        stream: the driver's stream that the first launch will go to, if it is known.

    Raises:
        DeviceError: the code is not on the GPU yet, and the stream is being captured.
    """
    known = kernel.on_device
    place = (dtype, number, fast)
    found = known.get(place)
    if found is None:
        with _lock:
            found = known.get(place)
            if found is None:
                on = driver.device(number)
                _refuse_capture(kernel.name, on, stream)
                found = known[place] = DeviceKernel(_loaded(kernel, dtype, on, fast))
    return found


def _refuse_capture(name: str, on: driver.Device, stream: int | None) -> None:
    """Compiling takes a second or so. A capture that stays open so long fails as soon as any other thread of the
    process asks the GPU something, and JAX, which does so all the time, stops working for the rest of the process."""
    if stream is not None and driver.is_capturing(on, stream):
        raise DeviceError(
            f"{name}: its code is not on cuda:{on.number} yet and cannot be loaded inside a stream capture; "
            "call it once with such arrays before the capture (CUDA graph) begins"
        )


def rollout_kernel(kernel: RolloutKernel, dtype: str, number: int, stream: int | None = None) -> DeviceKernel:
    """The rollout on the GPU of this number, compiled when it is first needed; ``stream``: see ``device_kernel``."""
    place = (dtype, number)
    with _lock:
        found = kernel.on_device.get(place)
        if found is None:
            from linkwise.compiler.emit.cuda import source as cuda

            on = driver.device(number)
            _refuse_capture(kernel.name, on, stream)
            key, options = _target(on, False)
            modules = lambda: list(cuda.variants(kernel.program(dtype)))  # noqa: E731
            function = loaded(key + kernel.identity(dtype), modules, on, options)
            found = kernel.on_device[place] = DeviceKernel(function)
    return found


def _target(on: driver.Device, fast: bool) -> tuple[bytes, tuple[str, ...]]:
    """(what code depends on besides its text, the compiler's options)."""
    from linkwise.compiler.emit.cuda import source as cuda

    options = (*cuda.options(fast), f"--gpu-architecture={on.architecture}")
    return f"cuda\0{nvrtc.compiler(driver.version()[0]).version}\0{options}\0".encode(), options


def _loaded(kernel: Kernel, dtype: str, on: driver.Device, fast: bool) -> driver.Function:
    """From the cache, by the kernel's key or at least by the text; else compiled and stored there."""
    from linkwise.compiler.emit.cuda import source as cuda

    target, options = _target(on, fast)

    @functools.cache
    def modules() -> list[Module]:
        return list(cuda.variants(kernel.program(dtype), fast=fast, shared=on.shared))

    identity = kernel.identity(dtype)
    if identity is None:
        identity = hashlib.sha256(modules()[-1].text.encode()).digest()
    return loaded(target + identity, modules, on, options)


def loaded(
    key: bytes, modules: Callable[[], Sequence[Module]], on: driver.Device, options: Sequence[str]
) -> driver.Function:
    """The first of these variants that spills next to nothing, or the last; from the cache where it is there."""
    entry = cache.key(key)
    stored = cache.load(entry)
    if stored is not None:
        return _function(on, stored)
    compiler = nvrtc.compiler(driver.version()[0])

    def compiled(made: Module) -> tuple[bytes, driver.Function]:
        cubin = compiler.compile(made.text, made.name, options)
        numbers = (made.threads, made.shared, made.resident, made.states, made.scratch)
        code = f"{made.name} {' '.join(map(str, numbers))}\n".encode() + cubin
        return code, _function(on, code)

    *bolder, last = modules()
    for made in bolder:
        code, function = compiled(made)
        if function.resources["local"] <= _SPILLED:
            break
    else:
        code, function = compiled(last)
    cache.store(entry, code)
    return function


def _function(on: driver.Device, stored: bytes) -> driver.Function:
    head, cubin = stored.split(b"\n", 1)
    name, *numbers = head.decode().split()
    return driver.Function(on, cubin, name, *map(int, numbers))
