"""What a kernel does with arrays that are not NumPy's: checks, conversion, broadcasting, launch.

The same rules as on the CPU: (..., size) inputs that broadcast together, float64 or float32 when all inputs are
float32, a copy only where memory is not rows of equal distance. Nothing waits for the GPU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from linkwise.arguments.flags import flag
from linkwise.compiler.runtime import arrays
from linkwise.errors import ShapeError
from linkwise.gpu.device import DeviceKernel, device_kernel
from linkwise.gpu.errors import DeviceError
from linkwise.gpu.frameworks import Framework, View, framework_of
from linkwise.gpu.quick import quick_call

if TYPE_CHECKING:
    from linkwise.compiler.kernel import Kernel

_REALS = frozenset({"float64", "float32"})
_CONVERTED = frozenset(
    {"float16", "bfloat16", "bool", *(f"{u}int{b}" for u in ("", "u") for b in (8, 16, 32, 64))}
)


def call(
    kernel: Kernel, args: Sequence[Any], out: Any = None, threads: int | None = None, *, fast: bool = False
) -> Any:
    """The outputs for these inputs, of the same kind on the same device; several outputs come as a tuple.

    Gradients and transformations of PyTorch and JAX belong to ``linkwise.frameworks``: call the kernel for them.

    Args:
        kernel: the kernel.
        args: its inputs: arrays of CuPy, PyTorch or JAX, shape (..., size).
        out: array to write to (a tuple of arrays for several outputs); by default new ones.
        threads: number of threads, for arrays on the CPU.
        fast: trades bits for speed on a GPU, in float32: approximate sine, cosine and division.
    """
    if fast is not False:
        fast = flag("fast", fast)
    results = quick_call(kernel, args, out, fast)
    if results is not None:
        return results
    if any(getattr(value, "requires_grad", False) for value in args):
        raise DeviceError(
            "linkwise.gpu.call gives no gradients: call the kernel itself, or detach the inputs"
        )
    return _computed(kernel, args, out, threads, fast)


def _computed(kernel: Kernel, args: Sequence[Any], out: Any, threads: int | None, fast: bool) -> Any:
    """Arrays of any shape, strides and precision, without gradients."""
    framework, device = common_place([name for name, _ in kernel.inputs], args)
    if device is None:
        from linkwise.gpu.host import call_on_host

        return call_on_host(kernel, framework.name, args, out, threads)
    stream = framework.stream(device)
    inputs, batch, dtype = _inputs(kernel, args, framework, stream)
    shapes = [(*batch, *shape) for _, shape in kernel.outputs]
    if out is None:
        results = targets = [framework.empty(shape, dtype, device) for shape in shapes]
    else:
        results = check_out(kernel, out, shapes, dtype, framework, device)
        targets = _targets(results, [view for view, _ in inputs], framework, device, stream)
    _launch(
        device_kernel(kernel, dtype, device, fast, stream),
        targets,
        inputs,
        math.prod(batch),
        framework,
        device,
        stream,
    )
    for result, target in zip(results, targets, strict=True):
        if result is not target:
            framework.assign(result, target)
    finished = [framework.finished(result) for result in results] if out is None else results
    return finished[0] if len(finished) == 1 else tuple(finished)


def _inputs(
    kernel: Kernel, args: Sequence[Any], framework: Framework, stream: int
) -> tuple[list[tuple[View, int]], tuple[int, ...], str]:
    """Every input as rows with their distance, the leading axes of all together, the precision."""
    names = [name for name, _ in kernel.inputs]
    views = [_as_reals(name, value, framework, stream) for name, value in zip(names, args, strict=True)]
    batch = arrays.batch_shape(views, kernel.inputs)  # type: ignore[arg-type]
    single = kernel.dtype == "float32" or (bool(views) and all(view.dtype == "float32" for view in views))
    dtype = "float32" if single else "float64"
    return [rows_of(view, batch, dtype, framework, stream) for view in views], batch, dtype


def _launch(
    on_device: DeviceKernel,
    targets: Sequence[Any],
    inputs: Sequence[tuple[View, int]],
    count: int,
    framework: Framework,
    device: int,
    stream: int,
) -> None:
    """Start the kernel for ``count`` states; nothing waits for it."""
    scratch = scratch_for(on_device, count, framework, device, stream)
    made = [framework.view(target, stream) for target in targets]
    on_device.run(
        [view.address for view in made],
        [view.address for view, _ in inputs],
        [stride for _, stride in inputs],
        count,
        stream,
        0 if scratch is None else scratch.address,
    )


def scratch_for(
    on_device: DeviceKernel, count: int, framework: Framework, device: int, stream: int
) -> View | None:
    """Memory that a launch needs besides its arrays, from the framework's allocator: it may be freed after the launch,
    because the framework reuses memory in the order of the stream. None: the kernel needs none."""
    needed = on_device.scratch_bytes(count)
    return framework.view(framework.empty((-(-needed // 8),), "float64", device), stream) if needed else None


def common_place(names: Sequence[str], args: Sequence[Any]) -> tuple[Framework, int | None]:
    """The framework and the GPU (None: the CPU) that all inputs share."""
    places = []
    for value in args:
        framework = framework_of(value)
        places.append((framework, None if framework is None else framework.device(value)))
    if any(place != places[0] for place in places):
        listed = ", ".join(
            f"{name} is {_spelled(framework, device, value)}"
            for name, (framework, device), value in zip(names, places, args, strict=True)
        )
        raise DeviceError(f"all inputs must be arrays of one kind on one device: {listed}")
    framework, device = places[0]
    assert framework is not None
    return framework, device


def _spelled(framework: Framework | None, device: int | None, value: Any) -> str:
    if framework is None:
        return f"a {type(value).__module__.split('.')[0]}.{type(value).__name__}".replace("builtins.", "")
    return f"{framework.name}'s on {'the CPU' if device is None else f'cuda:{device}'}"


def _as_reals(name: str, value: Any, framework: Framework, stream: int) -> View:
    view = framework.view(value, stream)
    if view.dtype in _REALS:
        return view
    if view.dtype not in _CONVERTED:
        raise arrays.DtypeError(f"{name}: expected real numbers, got an array of {view.dtype}")
    return framework.view(framework.converted(view.owner, "float64"), stream)


def rows_of(
    view: View, batch: tuple[int, ...], dtype: str, framework: Framework, stream: int
) -> tuple[View, int]:
    """An input as rows of equal distance (in scalars; 0: one row for all states), copied where it is not."""
    if view.dtype != dtype:
        view = framework.view(framework.converted(view.owner, dtype), stream)
    stride = row_stride(view.shape, view.strides, batch)
    if stride is None:
        size = view.shape[-1]
        view = framework.view(framework.dense(view.owner, (*batch, size)), stream)
        stride = size
    return view, stride


def row_stride(shape: Sequence[int], strides: Sequence[int], batch: Sequence[int]) -> int | None:
    """The distance of the rows of an array broadcast to ``batch`` if it is the same everywhere, else None."""
    if shape[-1] > 1 and strides[-1] != 1:
        return None
    missing = len(batch) - (len(shape) - 1)
    distance = expected = None
    for axis in reversed(range(len(batch))):
        if batch[axis] == 1:
            continue
        own = axis - missing
        step = 0 if own < 0 or shape[own] == 1 else strides[own]
        if distance is None:
            distance = step
        elif step != expected:
            return None
        expected = step * batch[axis]
    return shape[-1] if distance is None else distance if distance >= 0 else None


def check_out(
    kernel: Kernel, out: Any, shapes: list[tuple[int, ...]], dtype: str, framework: Framework, device: int
) -> list[Any]:
    """The caller's arrays for the outputs, one for each."""
    several = len(shapes) > 1
    if several and (not isinstance(out, (tuple, list)) or len(out) != len(shapes)):
        raise TypeError(f"out: expected {len(shapes)} arrays as a tuple, got {type(out).__name__}")
    given = list(out) if several else [out]
    for k, (array, shape) in enumerate(zip(given, shapes, strict=True)):
        label = f"out[{k}]" if several else "out"
        if framework_of(array) is not framework or framework.device(array) != device:
            raise DeviceError(
                f"{label}: expected an array of {framework.name} on cuda:{device}, got "
                f"{_spelled(framework_of(array), None, array)}"
            )
        view = framework.view(array, 0)
        if view.shape != shape:
            raise ShapeError(f"{label}: expected shape {shape}, got {view.shape}")
        if view.dtype != dtype:
            raise arrays.DtypeError(f"{label}: expected an array of {dtype}, got {view.dtype}")
    return given


def _targets(
    results: Sequence[Any], inputs: Sequence[View], framework: Framework, device: int, stream: int
) -> list[Any]:
    """What the kernel writes to: the results, or new memory where one is not dense or overlaps something else."""
    targets, others = [], list(inputs)
    for result in results:
        view = framework.view(result, stream)
        direct = is_dense(view) and not any(overlap(view, other) for other in others)
        targets.append(result if direct else framework.empty(view.shape, view.dtype, device))
        others.append(view)
    return targets


def is_dense(view: View) -> bool:
    """Whether rows follow each other without gaps."""
    expected = 1
    for length, step in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if length != 1 and step != expected:
            return False
        expected *= length
    return True


def overlap(a: View, b: View) -> bool:
    """Whether two arrays may share memory."""
    (first, last), (other_first, other_last) = _extent(a), _extent(b)
    return first < other_last and other_first < last


def _extent(view: View) -> tuple[int, int]:
    """The addresses that an array may reach (steps of frameworks may be negative in CuPy)."""
    item = 8 if view.dtype == "float64" else 4
    reach = [step * (length - 1) * item for length, step in zip(view.shape, view.strides, strict=True)]
    return view.address + sum(min(r, 0) for r in reach), view.address + sum(max(r, 0) for r in reach) + item
