"""The user's own functions as kernels: ``@lw.kernel(q=6, qd=6)``.

The function is called once with arrays of symbols. Arithmetic, NumPy's own array functions that only need arithmetic,
the functions below and the methods of robots work on them; what it returns becomes the kernel's output.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise import scalar
from linkwise.compiler.kernel import Kernel
from linkwise.errors import LinkwiseError, TraceError

if TYPE_CHECKING:
    from linkwise.compiler.graph import Graph

_HERE = str(Path(__file__).parent)


def kernel(*, dtype: str = "float64", **inputs: int) -> Callable[[Callable[..., Any]], Kernel]:
    """Compile a function of arrays. ``inputs`` gives the length of each argument: ``@lw.kernel(q=6, qd=6)``.

    The function gets one array of symbols per argument and returns a scalar, an array, a tuple of them (several
    outputs) or a dictionary of named ones. The kernel takes arrays (..., size), gives C and derivatives.

    Args:
        dtype: "float64" or "float32".
        **inputs: the number of scalars of each argument of the function.

    Returns:
        A decorator, which replaces the function by its kernel.

    Raises:
        TraceError: the function branches on a symbol or returns something else than scalars.
    """
    for name, size in inputs.items():
        if not isinstance(size, int) or size < 1:
            raise ValueError(f"{name}: expected the number of its scalars, got {size!r}")

    def decorate(function: Callable[..., Any]) -> Kernel:
        name = getattr(function, "__name__", "function")
        shapes = {key: value.shape for key, value in traced(function, inputs)[1].items()}

        def build(precision: str):
            from linkwise.compiler.program import lower

            graph, outputs = traced(function, inputs)
            nodes = {
                key: (value.shape, [graph.lift(x) for x in value.flat]) for key, value in outputs.items()
            }
            return lower(nodes, inputs, name=name, dtype=precision)  # type: ignore[arg-type]

        made = Kernel(name, inputs.items(), shapes.items(), dtype, build)
        made.__doc__ = function.__doc__
        if "<" not in (
            where := getattr(function, "__qualname__", "<")
        ):  # a name that other processes find, too
            made.__module__, made.origin = function.__module__, where
        return made

    return decorate


def traced(function: Callable[..., Any], inputs: dict[str, int]) -> tuple[Graph, dict[str, np.ndarray]]:
    """Call the function with symbols; its outputs by name, as arrays of symbols and numbers."""
    from linkwise.compiler.graph import Graph

    graph = Graph()
    symbols = {name: _array(graph.inputs(name, size)) for name, size in inputs.items()}
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
    return graph, {str(key): _output(str(key), value) for key, value in outputs.items()}


def _output(name: str, value: Any) -> np.ndarray:
    from linkwise.compiler.graph import CONDITIONS, Node

    try:
        array = np.array(value, dtype=object)
    except ValueError as error:
        raise TraceError(f"output {name}: {error}") from None
    for entry in array.flat:
        if not isinstance(entry, (Node, int, float, np.number)):
            raise TraceError(
                f"output {name}: expected numbers and traced values, got a {type(entry).__name__}"
            )
        if isinstance(entry, Node) and entry.op in CONDITIONS:
            raise TraceError(f"output {name}: a condition is no number; return lw.where(condition, 1.0, 0.0)")
    return array


def _array(nodes: list[Any]) -> np.ndarray:
    array = np.empty(len(nodes), dtype=object)
    array[:] = nodes
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
