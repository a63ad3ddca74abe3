"""The user's own functions as kernels: ``@lw.kernel(q=6, qd=6)``.

The function is called once with arrays of symbols. Arithmetic, NumPy's own array functions that only need arithmetic,
the functions below and the methods of robots work on them; what it returns becomes the kernel's output.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from linkwise import language, scalar
from linkwise.compiler.kernel import Kernel
from linkwise.errors import LinkwiseError, TraceError

_HERE = str(Path(__file__).parents[1])


def kernel(
    *, dtype: str = "float64", **inputs: int | tuple[int, ...]
) -> Callable[[Callable[..., Any]], Kernel]:
    """Compile a function of arrays; ``inputs`` are lengths or shapes of its arguments: ``@lw.kernel(q=6, A=(3, 3))``.

    The function gets one array of symbols per argument and returns a scalar, an array, a tuple of them (several
    outputs) or a dictionary of named ones. The kernel takes arrays (..., size) or (..., *shape), gives C and
    derivatives. Loops by ``lw.span`` are unrolled where the result is small, and compiled as loops where it is not.

    Args:
        dtype: "float64" or "float32".
        **inputs: the number of scalars, or the shape, of each argument of the function.

    Returns:
        A decorator, which replaces the function by its kernel.

    Raises:
        TraceError: the function branches on a symbol or returns something else than scalars.
    """
    shapes = {name: _checked_shape(name, size) for name, size in inputs.items()}
    return lambda function: kernel_of(function, shapes, dtype)


def kernel_of(
    function: Callable[..., Any], shapes: dict[str, tuple[int, ...]], dtype: str = "float64"
) -> Kernel:
    """The kernel of a function of arrays of these shapes."""
    from linkwise.compiler.trace.traced_function import TracedFunction

    name = getattr(function, "__name__", "function")
    sizes = {key: math.prod(shape) for key, shape in shapes.items()}

    traced = TracedFunction(lambda **symbols: _called(function, symbols), shapes, name)
    made = Kernel(name, sizes.items(), traced.shapes.items(), dtype, traced.program)  # type: ignore[arg-type]
    made.shapes = {key: shape for key, shape in shapes.items() if len(shape) > 1}
    made.written_out = traced.straight  # type: ignore[assignment]
    made.traced = traced
    made.__doc__ = function.__doc__
    where = getattr(function, "__qualname__", "<")
    if "<" not in where:  # a name that other processes find, too
        made.__module__, made.origin = function.__module__, where
    return made


def _checked_shape(name: str, size: Any) -> tuple[int, ...]:
    shape = size if isinstance(size, tuple) else (size,)
    if not shape or not all(isinstance(n, int) and not isinstance(n, bool) and n >= 1 for n in shape):
        raise ValueError(f"{name}: expected the number of its scalars or a shape, got {size!r}")
    return shape


def _called(function: Callable[..., Any], symbols: dict[str, Any]) -> dict[str, Any]:
    """Call the function with symbols; its outputs by name, as arrays of symbols and numbers."""
    name = getattr(function, "__name__", "function")
    try:
        returned = function(**symbols)
    except LinkwiseError:
        raise
    except Exception as error:
        where = _line_of(error)
        raise TraceError(f"{name} cannot be traced: {type(error).__name__}: {error}{where}") from error
    if isinstance(returned, dict):
        outputs = returned
    elif isinstance(returned, tuple):
        outputs = {f"output{k + 1}": value for k, value in enumerate(returned)}
    else:
        outputs = {name: returned}
    return {str(key): _output(str(key), value) for key, value in outputs.items()}


def _output(name: str, value: Any) -> Any:
    from linkwise.compiler.ir.graph import CONDITIONS, Node

    value = language.plain(value)
    if isinstance(value, language.Elements):
        return value
    try:
        array = np.array(value, dtype=object)
    except ValueError as error:
        raise TraceError(f"output {name}: {error}") from None
    for entry in array.flat:
        entry = language.plain(entry)
        if not isinstance(entry, (Node, int, float, np.number)):
            raise TraceError(
                f"output {name}: expected numbers and traced values, got a {type(entry).__name__}"
            )
        if isinstance(entry, Node) and entry.op in CONDITIONS:
            raise TraceError(f"output {name}: a condition is no number; return lw.where(condition, 1.0, 0.0)")
    return array


def _line_of(error: Exception) -> str:
    import traceback

    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(_HERE) and "site-packages" not in frame.filename:
            return f" ({Path(frame.filename).name}:{frame.lineno}: {(frame.line or '').strip()})"
    return ""


# -- functions of scalars and arrays, traced or not -------------------------------------------------------------------


def _elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        if any(isinstance(a, np.ndarray) and a.dtype == object for a in args):
            broadcast = np.broadcast_arrays(*(np.asarray(a, dtype=object) for a in args))
            out = np.empty(broadcast[0].shape, dtype=object)
            for k in np.ndindex(out.shape):
                out[k] = function(*(b[k] for b in broadcast))
            return out
        return function(*args)

    run.__name__ = function.__name__
    run.__doc__ = function.__doc__
    return run


sin = _elementwise(scalar.sin)
cos = _elementwise(scalar.cos)
sqrt = _elementwise(scalar.sqrt)
sign = _elementwise(scalar.sign)
where = _elementwise(scalar.where)
atan2 = _elementwise(scalar.atan2)
minimum = _elementwise(scalar.minimum)
maximum = _elementwise(scalar.maximum)
