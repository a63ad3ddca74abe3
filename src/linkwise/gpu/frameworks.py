"""The kinds of arrays on a GPU: how each is recognised, read and made, without a copy.

A framework's own attributes are used where they are public (they are faster than the protocols); JAX is reached
through DLPack, with CuPy's memory for the results because JAX's arrays cannot be written to.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple, Protocol

from linkwise.gpu.errors import DeviceError

NEEDS_CUPY = "needs CuPy: pip install linkwise[gpu]"


class View(NamedTuple):
    """An array as a kernel reads or writes it. ``owner`` keeps the memory alive."""

    owner: Any
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in scalars
    dtype: str


class Framework(Protocol):
    """What the dispatch needs of a kind of arrays."""

    name: str

    def owns(self, value: Any) -> bool: ...
    def device(self, value: Any) -> int | None:
        """The number of the GPU, None on the CPU."""
        ...

    def view(self, value: Any, stream: int) -> View:
        """The array as it is; ``stream`` will read it."""
        ...

    def stream(self, device: int) -> int:
        """The stream that the user's next operation on this GPU would go to."""
        ...

    def converted(self, value: Any, dtype: str) -> Any:
        """The same numbers in this precision."""
        ...

    def dense(self, value: Any, shape: tuple[int, ...]) -> Any:
        """A copy, broadcast to this shape, row by row in memory."""
        ...

    def empty(self, shape: tuple[int, ...], dtype: str, device: int) -> Any:
        """A new array to write to, which ``finished`` turns into a result."""
        ...

    def placed(self, array: Any, device: int) -> Any:
        """A NumPy array copied to a GPU."""
        ...

    def finished(self, made: Any) -> Any: ...
    def assign(self, target: Any, source: Any) -> None: ...


class CupyArrays:
    """CuPy, and whatever else has the CUDA array interface (the results are then CuPy's)."""

    name = "CuPy"

    @property
    def _cupy(self) -> Any:
        return _cupy()

    def owns(self, value: Any) -> bool:
        return hasattr(value, "__cuda_array_interface__")

    def device(self, value: Any) -> int | None:
        return self._array(value).device.id

    def _array(self, value: Any) -> Any:
        return value if isinstance(value, self._cupy.ndarray) else self._cupy.asarray(value)

    def view(self, value: Any, stream: int) -> View:
        array = self._array(value)
        item = array.itemsize
        strides = tuple(step // item for step in array.strides)
        return View(array, array.data.ptr, array.shape, strides, array.dtype.name)

    def stream(self, device: int) -> int:
        with self._cupy.cuda.Device(device):
            return self._cupy.cuda.get_current_stream().ptr

    def converted(self, value: Any, dtype: str) -> Any:
        return self._array(value).astype(dtype)

    def dense(self, value: Any, shape: tuple[int, ...]) -> Any:
        return self._cupy.ascontiguousarray(self._cupy.broadcast_to(self._array(value), shape)).copy()

    def empty(self, shape: tuple[int, ...], dtype: str, device: int) -> Any:
        cupy = self._cupy
        try:
            with cupy.cuda.Device(device):
                return cupy.empty(shape, dtype)
        except cupy.cuda.memory.OutOfMemoryError as error:
            raise DeviceError(f"cuda:{device} has too little free memory for the result: {error}") from None

    def placed(self, array: Any, device: int) -> Any:
        with self._cupy.cuda.Device(device):
            return self._cupy.asarray(array)

    def finished(self, made: Any) -> Any:
        return made

    def assign(self, target: Any, source: Any) -> None:
        target[...] = source


class TorchTensors:
    """PyTorch."""

    name = "PyTorch"

    @property
    def _torch(self) -> Any:
        return sys.modules["torch"]

    def owns(self, value: Any) -> bool:
        return "torch" in sys.modules and isinstance(value, self._torch.Tensor)

    def device(self, value: Any) -> int | None:
        if value.device.type not in ("cuda", "cpu"):
            raise DeviceError(f"a tensor on {value.device} cannot be used: expected one on cuda or cpu")
        return value.device.index if value.is_cuda else None

    def view(self, value: Any, stream: int) -> View:
        tensor = value.detach().resolve_neg()
        dtype = str(tensor.dtype).removeprefix("torch.")
        address = tensor.data_ptr()
        if not address and tensor.numel():
            raise DeviceError(
                "a tensor without memory of its own cannot be used: PyTorch hands out no numbers here"
            )
        return View(tensor, address, tuple(tensor.shape), tensor.stride(), dtype)

    def stream(self, device: int) -> int:
        return self._torch.cuda.current_stream(device).cuda_stream

    def converted(self, value: Any, dtype: str) -> Any:
        return value.to(getattr(self._torch, dtype))

    def dense(self, value: Any, shape: tuple[int, ...]) -> Any:
        return value.expand(shape).clone(memory_format=self._torch.contiguous_format)

    def empty(self, shape: tuple[int, ...], dtype: str, device: int) -> Any:
        torch = self._torch
        try:
            return torch.empty(shape, dtype=getattr(torch, dtype), device=f"cuda:{device}")
        except torch.OutOfMemoryError as error:
            first = str(error).split(". ")[0]
            raise DeviceError(f"cuda:{device} has too little free memory for the result: {first}") from None

    def placed(self, array: Any, device: int) -> Any:
        return self._torch.as_tensor(array, device=f"cuda:{device}")

    def finished(self, made: Any) -> Any:
        return made

    def assign(self, target: Any, source: Any) -> None:
        target.copy_(source)


class JaxArrays(CupyArrays):
    """JAX, outside ``jit``. Its streams wait for ours and ours for its, on the GPU."""

    name = "JAX"

    @property
    def _jax(self) -> Any:
        return sys.modules["jax"]

    def owns(self, value: Any) -> bool:
        return "jax" in sys.modules and isinstance(value, self._jax.Array)

    def device(self, value: Any) -> int | None:
        if isinstance(value, self._jax.core.Tracer):
            raise DeviceError(
                "a kernel cannot be called inside jax.jit or jax.vmap: JAX gives it no arrays there; "
                "call it outside jit, on the whole batch (jax.grad works)"
            )
        devices = value.devices()
        if len(devices) != 1:
            raise DeviceError(f"a JAX array on {len(devices)} devices cannot be used: put it on one of them")
        (device,) = devices
        return None if device.platform == "cpu" else device.local_hardware_id

    def view(self, value: Any, stream: int) -> View:
        cupy = self._cupy
        array = value if isinstance(value, cupy.ndarray) else cupy.from_dlpack(value)
        return super().view(array, stream)

    def converted(self, value: Any, dtype: str) -> Any:
        return self._cupy.from_dlpack(value).astype(dtype)

    def dense(self, value: Any, shape: tuple[int, ...]) -> Any:
        return super().dense(self._cupy.from_dlpack(value), shape)

    def finished(self, made: Any) -> Any:
        return self._jax.dlpack.from_dlpack(made)

    def assign(self, target: Any, source: Any) -> None:
        raise DeviceError("out: JAX arrays cannot be written to")


def _cupy() -> Any:
    try:
        import cupy
    except ImportError:
        raise DeviceError(f"this kind of GPU array {NEEDS_CUPY}") from None
    return cupy


FRAMEWORKS: tuple[Framework, ...] = (TorchTensors(), JaxArrays(), CupyArrays())


def framework_of(value: Any) -> Framework | None:
    """The framework of an array; None if it is none of them."""
    return next((framework for framework in FRAMEWORKS if framework.owns(value)), None)


# -- the short way ----------------------------------------------------------------------------------------------------


class Reader(Protocol):
    """How ``quick`` reads a framework's arrays: with as few steps as there are."""

    def read(self, value: Any) -> tuple[tuple[Any, tuple[int, ...], int], int] | None:
        """((precision, shape, GPU), address) of a dense array on a GPU; None for others."""
        ...

    def dtype_name(self, precision: Any) -> str: ...
    def new(self, shape: tuple[int, ...], dtype: str, device: int) -> Any: ...
    def address(self, value: Any) -> int: ...
    def stream(self, device: int) -> int: ...


class CupyReader:
    """CuPy's own arrays."""

    def __init__(self) -> None:
        import cupy

        self._new, self._device = cupy.ndarray, cupy.cuda.runtime.getDevice
        self._stream = cupy.cuda.get_current_stream
        self._empty = CupyArrays().empty

    def read(self, value):
        if not value._c_contiguous:
            return None
        memory = value.data
        return (value.dtype.char, value.shape, memory.device_id), memory.ptr

    def dtype_name(self, precision):
        return {"d": "float64", "f": "float32"}.get(precision, "")

    def new(self, shape, dtype, device):
        return self._empty(shape, dtype, device)

    def address(self, value):
        return value.data.ptr

    def stream(self, device):
        return self._stream(device).ptr


class TorchReader:
    """PyTorch's tensors, those without gradients."""

    def __init__(self) -> None:
        torch = sys.modules["torch"]
        self._dtypes = {torch.float64: "float64", torch.float32: "float32"}
        self._empty = TorchTensors().empty
        self._stream = getattr(torch._C, "_cuda_getCurrentRawStream", TorchTensors().stream)

    def read(self, value):
        if not value.is_cuda or value.requires_grad or not value.is_contiguous() or value.is_neg():
            return None
        address = value.data_ptr()
        return ((value.dtype, value.shape, value.get_device()), address) if address else None

    def dtype_name(self, precision):
        return self._dtypes.get(precision, "")

    def new(self, shape, dtype, device):
        return self._empty(shape, dtype, device)

    def address(self, value):
        return value.data_ptr()

    def stream(self, device):
        return self._stream(device)


_READERS: dict[type, Reader | None] = {}


def reader_of(value: Any) -> Reader | None:
    """The reader for arrays of exactly this type; None: they take the general path."""
    kind = type(value)
    try:
        return _READERS[kind]
    except KeyError:
        module = kind.__module__.partition(".")[0]
        made: Reader | None = None
        if module == "cupy" and kind.__name__ == "ndarray":
            made = CupyReader()
        elif module == "torch" and kind.__name__ == "Tensor":
            made = TorchReader()
        _READERS[kind] = made
        return made
