"""Calls that are recorded once as a CUDA graph and repeated with the same memory: ``kernel.graph(...)``.

A graph reads its inputs and writes its outputs where they are, so nothing can be converted, broadcast into memory or
allocated when it is repeated: arrays that would need that are refused when it is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from linkwise.compiler.runtime.arrays import batch_shape, is_foreign
from linkwise.errors import DtypeError, ShapeError
from linkwise.gpu import driver
from linkwise.gpu.call import check_out, common_place, is_dense, overlap, row_stride, scratch_for
from linkwise.gpu.device import device_kernel
from linkwise.gpu.errors import DeviceError
from linkwise.gpu.frameworks import Framework, JaxArrays, View, reader_of

if TYPE_CHECKING:
    from linkwise.compiler.kernel import Kernel
    from linkwise.compiler.parametric import ParametricKernel

Work = Callable[[int], None]  # puts launches and copies on a stream


class Graph:
    """A recorded call. ``graph()`` repeats it with what ``inputs`` hold by then.

    Attributes:
        inputs: the arrays that are read; write new values into them (``graph.inputs[0][...] = q``).
        outputs: the arrays that are written by every repetition.
    """

    def __init__(
        self,
        name: str,
        place: Place,
        inputs: Any,
        outputs: Any,
        work: Work,
        kept: Any,
        result: Any = None,
    ):
        self.inputs, self.outputs = inputs, outputs
        self.name = name
        self._result = outputs if result is None else result
        self._kept = kept  # memory that the launches use besides inputs and outputs
        self._device, self._stream = place.device, place.current_stream
        self._recording = driver.Recording(driver.device(place.device), name, work)

    def replay(self) -> None:
        """Start the work on the library's current stream; nothing waits for it."""
        self._recording.start(self._stream(self._device))

    def __call__(self) -> Any:
        """``replay``, and the outputs as the call that was recorded gives them."""
        self._recording.start(self._stream(self._device))
        return self._result

    def __repr__(self) -> str:
        return f"<Graph of {self.name} on cuda:{self._device}>"


class Place:
    """The library and the GPU of the arrays of a graph."""

    def __init__(self, name: str, given: Mapping[str, Any], others: bool = False):
        """``others``: besides arrays on the GPU there may be NumPy's, which are copied there."""
        foreign = {key: value for key, value in given.items() if is_foreign(value)}
        if not foreign:
            raise DeviceError(
                f"{name}: a graph needs arrays of CuPy or PyTorch on a GPU, got arrays on the CPU; "
                "call the kernel instead"
            )
        checked = foreign if others else given
        framework, device = common_place(list(checked), list(checked.values()))
        if device is None:
            raise DeviceError(
                f"{name}: a graph needs arrays on a GPU, got {framework.name}'s on the CPU; call the kernel instead"
            )
        if isinstance(framework, JaxArrays):
            raise DeviceError(
                f"{name}: a graph writes to fixed arrays, and JAX's cannot be written to; use jax.jit"
            )
        if any(getattr(value, "requires_grad", False) for value in foreign.values()):
            raise DeviceError(f"{name}: gradients do not flow through a graph; detach the inputs")
        self.framework: Framework = framework
        self.device: int = device
        reader = reader_of(next(iter(foreign.values())))
        self.current_stream: Callable[[int], int] = framework.stream if reader is None else reader.stream

    def view(self, value: Any) -> View:
        return self.framework.view(value, 0)


def graph(kernel: Kernel, args: Sequence[Any], out: Any = None) -> Graph:
    """A kernel with these arrays as a graph; ``out``: arrays to write to, else new ones.

    Args:
        kernel: the kernel.
        args: its inputs: arrays of CuPy, PyTorch or JAX, shape (..., size).
        out: array to write to (a tuple of arrays for several outputs); by default new ones.
    """
    place = Place(kernel.name, dict(zip([name for name, _ in kernel.inputs], args, strict=True)))
    step = _Step(kernel, args, out, place)
    return Graph(kernel.name, place, tuple(args), step.outputs, step.run, step, result_of(step.outputs))


def parametric_graph(kernel: ParametricKernel, args: Sequence[Any], out: Any = None) -> Graph:
    """A kernel with a prelude as one graph: both parts are computed by every repetition.

    Args:
        kernel: the kernel.
        args: its inputs: arrays of CuPy, PyTorch or JAX, shape (..., size).
        out: array to write to (a tuple of arrays for several outputs); by default new ones.
    """
    place = Place(kernel.name, dict(zip([name for name, _ in kernel.inputs], args, strict=True)))
    states, parameters = list(args[: len(kernel.states)]), args[len(kernel.states) :]
    steps = []
    if kernel.prelude is None:
        states = list(args[: len(kernel.main.inputs)])
    else:
        steps.append(_Step(kernel.prelude, parameters, None, place))
        states.append(steps[0].outputs[0])
    steps.append(_Step(kernel.main, states, out, place))

    def work(stream: int) -> None:
        for step in steps:
            step.run(stream)

    outputs = steps[-1].outputs
    return Graph(kernel.name, place, tuple(args), outputs, work, steps, result_of(outputs))


def result_of(outputs: tuple) -> Any:
    return outputs[0] if len(outputs) == 1 else outputs


class _Step:
    """One launch with fixed arrays."""

    def __init__(self, kernel: Kernel, args: Sequence[Any], out: Any, place: Place):
        framework, device = place.framework, place.device
        views = [place.view(value) for value in args]
        dtype = fixed_dtype(kernel, views)
        batch = batch_shape(views, kernel.inputs)  # type: ignore[arg-type]
        self._strides = [
            fixed_stride(name, view, batch) for (name, _), view in zip(kernel.inputs, views, strict=True)
        ]
        shapes = [(*batch, *shape) for _, shape in kernel.outputs]
        if out is None:
            self.outputs = tuple(framework.empty(shape, dtype, device) for shape in shapes)
        else:
            self.outputs = tuple(check_out(kernel, out, shapes, dtype, framework, device))
        targets = [place.view(array) for array in self.outputs]
        _refuse_overlap(targets, views)
        self._count = math.prod(batch)
        self._on_device = device_kernel(kernel, dtype, device)
        self._scratch = scratch_for(self._on_device, self._count, framework, device, 0)
        self._addresses = [view.address for view in targets], [view.address for view in views]
        self._kept = (views, targets)

    def run(self, stream: int) -> None:
        scratch = 0 if self._scratch is None else self._scratch.address
        self._on_device.run(*self._addresses, self._strides, self._count, stream, scratch)


def fixed_dtype(kernel: Kernel, views: Sequence[View]) -> str:
    """The precision of all inputs, which a graph does not convert."""
    wanted = kernel.dtype if kernel.dtype == "float32" or not views else views[0].dtype
    wanted = wanted if wanted in ("float64", "float32") else "float64"
    for (name, _), view in zip(kernel.inputs, views, strict=True):
        if view.dtype != wanted:
            raise DtypeError(
                f"{name}: a graph reads its inputs where they are and expects {wanted}, got {view.dtype}; "
                "convert it first"
            )
    return wanted


def fixed_stride(name: str, view: View, batch: tuple[int, ...]) -> int:
    """Scalars from one row of an input to the next; 0: one row for all states."""
    found = row_stride(view.shape, view.strides, batch)
    if found is None:
        raise ShapeError(
            f"{name}: a graph reads its inputs where they are and expects rows of equal distance; "
            f"copy it to a contiguous array of shape {(*batch, view.shape[-1])} first"
        )
    return found


def _refuse_overlap(targets: Sequence[View], inputs: Sequence[View]) -> None:
    others = list(inputs)
    for k, target in enumerate(targets):
        if not is_dense(target) or any(overlap(target, other) for other in others):
            label = "out" if len(targets) == 1 else f"out[{k}]"
            raise ShapeError(
                f"{label}: a graph writes its outputs where they are and expects a contiguous array that shares "
                "no memory with inputs or other outputs"
            )
        others.append(target)


# -- rollouts ---------------------------------------------------------------------------------------------------------


def copies(pairs: Sequence[tuple[View, View]]) -> Work:
    """Copy sources to targets of the same shape and precision."""
    sized = [
        (t.address, s.address, math.prod(s.shape) * (8 if s.dtype == "float64" else 4)) for t, s in pairs
    ]

    def work(stream: int) -> None:
        for target, source, size in sized:
            if size:
                driver.copy(target, source, size, stream)

    return work
