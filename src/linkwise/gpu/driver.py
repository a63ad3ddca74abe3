"""The CUDA driver by its C interface: as much as is needed to load compiled kernels and launch them.

All frameworks use a GPU's primary context, and so does this module: their pointers and streams are valid here.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from linkwise.compiler.runtime import layout
from linkwise.gpu.errors import DeviceError

_SHARED_LIMIT = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_...
_SHARED_PER_BLOCK = 97  # CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
_REGISTERS, _LOCAL = 4, 3  # CU_FUNC_ATTRIBUTE_NUM_REGS, ..._LOCAL_SIZE_BYTES
_MULTIPROCESSORS = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
_MOST_BLOCKS = 2**31 - 1
_MOST_SCRATCH = 4 << 30  # bytes of a launch
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING
_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED
_CAPTURE_ELSEWHERE = (
    906  # CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: another stream of the context is being captured
)
_OUT_OF_MEMORY = 2
_PLAIN_SHARED = 48 << 10  # bytes that need no permission

_Pointer, _Int = ctypes.c_void_p, ctypes.c_int


@functools.cache
def _library() -> ctypes.CDLL:
    for name in ("libcuda.so.1", "libcuda.so", "nvcuda.dll"):
        try:
            library = ctypes.CDLL(name)
            break
        except OSError:
            continue
    else:
        raise DeviceError("no NVIDIA driver was found (libcuda.so.1); GPU arrays need one")
    library.cuLaunchKernel.argtypes = [_Pointer, *[ctypes.c_uint] * 7, _Pointer, _Pointer, _Pointer]
    library.cuDevicePrimaryCtxRetain.argtypes = [ctypes.POINTER(_Pointer), _Int]
    library.cuCtxPushCurrent_v2.argtypes = [_Pointer]
    library.cuCtxPopCurrent_v2.argtypes = [ctypes.POINTER(_Pointer)]
    library.cuCtxGetCurrent.argtypes = [ctypes.POINTER(_Pointer)]
    library.cuModuleLoadData.argtypes = [ctypes.POINTER(_Pointer), ctypes.c_char_p]
    library.cuModuleGetFunction.argtypes = [ctypes.POINTER(_Pointer), _Pointer, ctypes.c_char_p]
    library.cuFuncSetAttribute.argtypes = [_Pointer, _Int, _Int]
    library.cuFuncGetAttribute.argtypes = [ctypes.POINTER(_Int), _Int, _Pointer]
    library.cuDeviceGetAttribute.argtypes = [ctypes.POINTER(_Int), _Int, _Int]
    library.cuThreadExchangeStreamCaptureMode.argtypes = [ctypes.POINTER(_Int)]
    library.cuStreamCreate.argtypes = [ctypes.POINTER(_Pointer), ctypes.c_uint]
    library.cuStreamDestroy_v2.argtypes = [_Pointer]
    library.cuStreamBeginCapture_v2.argtypes = [_Pointer, _Int]
    library.cuStreamIsCapturing.argtypes = [_Pointer, ctypes.POINTER(_Int)]
    library.cuStreamEndCapture.argtypes = [_Pointer, ctypes.POINTER(_Pointer)]
    library.cuMemcpyDtoDAsync_v2.argtypes = [_Pointer, _Pointer, ctypes.c_size_t, _Pointer]
    library.cuGraphInstantiateWithFlags.argtypes = [ctypes.POINTER(_Pointer), _Pointer, ctypes.c_ulonglong]
    library.cuGraphLaunch.argtypes = [_Pointer, _Pointer]
    library.cuGraphDestroy.argtypes = [_Pointer]
    library.cuGraphExecDestroy.argtypes = [_Pointer]
    library.cuGetErrorString.argtypes = [_Int, ctypes.POINTER(ctypes.c_char_p)]
    result = library.cuInit(0)
    if result:
        raise DeviceError(f"the NVIDIA driver does not start: {_text(library, result)}")
    return library


def _text(library: ctypes.CDLL, code: int) -> str:
    text = ctypes.c_char_p()
    library.cuGetErrorString(code, ctypes.byref(text))
    return text.value.decode() if text.value else f"error {code}"


def _check(code: int, doing: str) -> None:
    if code:
        hint = "; too little GPU memory is free" if code == _OUT_OF_MEMORY else ""
        raise DeviceError(f"{doing}: {_text(_library(), code)}{hint}")


def version() -> tuple[int, int]:
    """The CUDA version that the driver supports."""
    number = _Int()
    _check(_library().cuDriverGetVersion(ctypes.byref(number)), "asking for the driver's version")
    return number.value // 1000, number.value % 1000 // 10


@dataclass(frozen=True)
class Device:
    """One GPU."""

    number: int
    context: int

    def attribute(self, which: int) -> int:
        value = _Int()
        _check(
            _library().cuDeviceGetAttribute(ctypes.byref(value), which, self.number),
            f"asking about cuda:{self.number}",
        )
        return value.value

    @property
    def architecture(self) -> str:
        """Such as sm_90."""
        return f"sm_{self.attribute(_MAJOR)}{self.attribute(_MINOR)}"

    @property
    def shared(self) -> int:
        """Bytes of shared memory that a block can have."""
        return self.attribute(_SHARED_PER_BLOCK)

    def __enter__(self) -> None:
        _check(_library().cuCtxPushCurrent_v2(self.context), f"using cuda:{self.number}")

    def __exit__(self, *_: object) -> None:
        _library().cuCtxPopCurrent_v2(ctypes.byref(_Pointer()))


@functools.cache
def device(number: int) -> Device:
    """A GPU by its number, as the frameworks count them."""
    library = _library()
    count = _Int()
    _check(library.cuDeviceGetCount(ctypes.byref(count)), "counting GPUs")
    if not 0 <= number < count.value:
        raise DeviceError(f"there is no cuda:{number}: the driver has {count.value} GPUs")
    context = _Pointer()
    _check(library.cuDevicePrimaryCtxRetain(ctypes.byref(context), number), f"opening cuda:{number}")
    return Device(number, context.value or 0)


def is_capturing(on: Device, stream: int) -> bool:
    """Whether work on this stream is being recorded into a CUDA graph instead of being done."""
    status = _Int()
    with on:
        code = _library().cuStreamIsCapturing(stream, ctypes.byref(status))
    if code == _CAPTURE_ELSEWHERE:
        return True
    _check(code, "asking whether a stream is being captured")
    return status.value != 0


@contextlib.contextmanager
def _during_capture() -> Iterator[None]:
    """Calls that a capture by another thread of the process would forbid, such as loading code, are allowed here."""
    mode = _Int(_RELAXED)
    exchange = _library().cuThreadExchangeStreamCaptureMode
    exchange(ctypes.byref(mode))
    try:
        yield
    finally:
        exchange(ctypes.byref(mode))  # the mode that was there before


def _address(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


class Function:
    """A kernel loaded on one GPU; all its parameters are 64 bits wide.

    ``resources``: registers of a thread, and bytes of memory per thread that did not fit into them ("local").
    ``resident``: blocks for each multiprocessor that are enough for any number of states; 0: one for every ``states``,
    which are what a block computes at a time (0: as many as it has threads). ``scratch``: bytes of global memory for
    each block, whose address is the last parameter.
    """

    def __init__(
        self,
        on: Device,
        cubin: bytes,
        name: str,
        threads: int,
        shared: int,
        resident: int = 0,
        states: int = 0,
        scratch: int = 0,
    ):
        self.device, self.name, self.threads, self.shared = on, name, threads, shared
        self.states, self.scratch = states or threads, scratch
        library = _library()
        with on, _during_capture():
            allowed = on.shared
            if shared > allowed:
                raise DeviceError(
                    f"{name} needs {shared} bytes of shared memory a block, cuda:{on.number} has {allowed}"
                )
            self.most_blocks = resident * on.attribute(_MULTIPROCESSORS) if resident else _MOST_BLOCKS
            if scratch:
                self.most_blocks = max(1, min(self.most_blocks, _MOST_SCRATCH // scratch))
            self._module = _Pointer()  # never unloaded: a launch may still be under way
            _check(library.cuModuleLoadData(ctypes.byref(self._module), cubin), f"loading {name}")
            self._function = _Pointer()
            code = library.cuModuleGetFunction(ctypes.byref(self._function), self._module, name.encode())
            _check(code, f"loading {name}")
            if shared > _PLAIN_SHARED:
                _check(library.cuFuncSetAttribute(self._function, _SHARED_LIMIT, shared), f"loading {name}")
            # Asking for the resources makes the driver load the code now; otherwise it does so at the first launch,
            # which may be inside a stream capture that forbids it.
            self.resources = self._resources()
        self.grows = not resident
        self._launch = library.cuLaunchKernel
        self._current = library.cuCtxGetCurrent
        self._idle: list[_Parameters] = []  # not in use by any thread

    def launch(self, blocks: int, stream: int, *words: int) -> None:
        """Start the kernel on a stream; nothing is waited for. ``words`` are its parameters."""
        try:
            parameters = self._idle.pop()
        except IndexError:
            parameters = _Parameters(len(words))
        parameters.pack(parameters.words, 0, *words)
        self._current(parameters.context_place)
        on = self.device
        if parameters.context.value == on.context:
            code = self._start(blocks, stream, parameters)
        else:
            with on:
                code = self._start(blocks, stream, parameters)
        self._idle.append(parameters)
        if code:
            _check(code, f"launching {self.name}")

    def _start(self, blocks: int, stream: int, parameters: _Parameters) -> int:
        return self._launch(
            self._function, blocks, 1, 1, self.threads, 1, 1, self.shared, stream, None, parameters.extra
        )

    def table(self, words: int) -> ctypes.Array[ctypes.c_int64]:
        """The function as machine code launches it (``compiler.entry.launches``) with so many parameters."""
        library = _library()
        return layout.Launch.table(
            start=_address(library.cuLaunchKernel),
            current=_address(library.cuCtxGetCurrent),
            enter=_address(library.cuCtxPushCurrent_v2),
            leave=_address(library.cuCtxPopCurrent_v2),
            context=self.device.context,
            function=self._function.value or 0,
            threads=self.threads,
            shared=self.shared,
            states=self.states,
            most_blocks=self.most_blocks,
            grows=int(self.grows),
            bytes=8 * words,
            scratch=self.scratch,
        )

    def _resources(self) -> dict[str, int]:
        """Registers of a thread, and bytes of memory per thread that did not fit into them."""
        return {"registers": self._attribute(_REGISTERS), "local": self._attribute(_LOCAL)}

    def _attribute(self, which: int) -> int:
        value = _Int()
        _check(_library().cuFuncGetAttribute(ctypes.byref(value), which, self._function), self.name)
        return value.value


class _Parameters:
    """Memory that holds the parameters of one launch while it is started; made once and used again."""

    def __init__(self, count: int):
        self.words = (ctypes.c_int64 * count)()
        self.pack = struct.Struct(f"{count}q").pack_into
        self.context = _Pointer()
        self.context_place = ctypes.byref(self.context)
        self._size = ctypes.c_size_t(8 * count)
        pairs = (1, ctypes.addressof(self.words), 2, ctypes.addressof(self._size), 0)  # CU_LAUNCH_PARAM_...
        self.extra = (_Pointer * len(pairs))(*pairs)


class Recording:
    """Work on one GPU that is recorded once and started many times, as a CUDA graph.

    ``work`` is called with a stream and starts launches and copies on it: nothing runs while they are recorded.
    """

    def __init__(self, on: Device, name: str, work: Callable[[int], None]):
        self._executable = _Pointer()
        library, doing = _library(), f"recording {name}"
        stream, graph = _Pointer(), _Pointer()
        with on:
            _check(library.cuStreamCreate(ctypes.byref(stream), _NON_BLOCKING), doing)
            try:
                _check(library.cuStreamBeginCapture_v2(stream, _RELAXED), doing)
                try:
                    work(stream.value or 0)
                finally:
                    code = library.cuStreamEndCapture(stream, ctypes.byref(graph))
                _check(code, doing)
                _check(library.cuGraphInstantiateWithFlags(ctypes.byref(self._executable), graph, 0), doing)
            finally:
                if graph:
                    library.cuGraphDestroy(graph)
                library.cuStreamDestroy_v2(stream)
        self._device, self._name = on, name
        self._launch, self._current = library.cuGraphLaunch, library.cuCtxGetCurrent

    def start(self, stream: int) -> None:
        """Start the work on a stream; nothing is waited for."""
        context = _Pointer()
        self._current(ctypes.byref(context))
        if context.value == self._device.context:
            code = self._launch(self._executable, stream)
        else:
            with self._device:
                code = self._launch(self._executable, stream)
        if code:
            _check(code, f"starting the graph of {self._name}")

    def __del__(self) -> None:
        if self._executable:  # work that is under way ends first
            _library().cuGraphExecDestroy(self._executable)


def copy(target: int, source: int, size: int, stream: int) -> None:
    """Copy so many bytes on a GPU, on a stream."""
    _check(_library().cuMemcpyDtoDAsync_v2(target, source, size, stream), "copying on the GPU")
