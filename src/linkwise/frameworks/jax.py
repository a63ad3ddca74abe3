"""Kernels inside JAX: one primitive, computed through XLA's foreign-function interface.

The primitive takes the inputs of an ``Operation`` in one precision, each with the leading axes of the result or with
none of them (one row for all states), and has the rules that JAX's transformations ask for:

- ``jit`` and everything that compiles: a call of the target that ``xla`` registers;
- ``vmap``: one more leading axis, for the inputs that have it; rows that all states share stay single;
- ``jvp``, ``jacfwd``: the primitive of ``Operation.tangent``, which is linear in its directions;
- ``grad``, ``jacrev``: the transpose of that, the primitive of ``Operation.gradient``.

Both derivatives are the same primitive again, so ``hessian`` and derivatives of any order work.
"""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false
# (the type checker takes the packages torch and jax for the files of that name here)
from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from linkwise.compiler.kernel import Kernel
from linkwise.compiler.runtime import threads as thread_counts
from linkwise.frameworks.operation import Operation, operation
from linkwise.frameworks.xla import Target, target_of
from linkwise.gpu.errors import DeviceError

if TYPE_CHECKING:
    from linkwise.compiler.parametric import ParametricKernel

_kernel = Primitive("linkwise_kernel")
_kernel.multiple_results = True


# -- calls ------------------------------------------------------------------------------------------------------------


def call(kernel: Kernel, args: Sequence[Any], out: Any = None, threads: int | None = None) -> Any:
    """The outputs as JAX's arrays; several outputs come as a tuple. NumPy's arrays may be among the inputs."""
    if out is not None:
        raise DeviceError("out: JAX arrays cannot be written to")
    of, number = operation(kernel), thread_counts.wanted(threads)
    if any(isinstance(value, jax.core.Tracer) for value in args):
        return _outputs(of, number, args)
    return _compiled(of, number)(*args)


@functools.cache
def _compiled(of: Operation, threads: int) -> Any:
    def linkwise(*args: Any) -> Any:
        return _outputs(of, threads, args)

    linkwise.__name__ = f"linkwise_{of.kernel.name}"
    return jax.jit(linkwise)


def _outputs(of: Operation, threads: int, args: Sequence[Any]) -> Any:
    given = [jnp.asarray(value) for value in args]
    of.check_shapes([value.shape for value in given])
    names = of.dtype([value.dtype.name for value in given])
    dtype, result = (jax.dtypes.canonicalize_dtype(jnp.dtype(name)) for name in names)
    try:
        batch = jnp.broadcast_shapes(*(value.shape[:-1] for value in given))
    except ValueError:
        raise of.no_broadcast([value.shape for value in given]) from None
    rows = [_as_rows(value.astype(dtype), batch) for value in given]
    found = _bound(*rows, of=of, base=None, by=(), threads=threads, batch=batch)
    found = [part.astype(result) for part in found]
    return found[0] if len(found) == 1 else tuple(found)


def _as_rows(value: Any, batch: tuple[int, ...]) -> Any:
    """With all leading axes of the batch, or with none of them."""
    if value.shape[:-1] == batch or value.ndim == 1:
        return value
    if math.prod(value.shape[:-1]) == 1:
        return value.reshape(value.shape[-1:])
    return jnp.broadcast_to(value, (*batch, value.shape[-1]))


def _bound(*args: Any, **parameters: Any) -> Any:
    """The primitive; inside ``shard_map`` its inputs all vary along the same axes of the mesh, so that gradients by
    those that did not are summed over the devices."""
    varies = [_varying_axes(value) for value in args]
    axes = frozenset().union(*varies)
    args = tuple(
        value if own == axes else _pvary(value, tuple(axes - own))
        for value, own in zip(args, varies, strict=True)
    )
    return _kernel.bind(*args, **parameters)


def _varying_axes(value: Any) -> frozenset[str]:
    """The axes of the mesh along which an array inside ``shard_map`` differs; its name has changed in JAX 0.10."""
    kind = jax.typeof(value)
    manual = getattr(kind, "manual_axis_type", None)
    return frozenset(getattr(kind, "vma", ()) if manual is None else manual.varying)


def _pvary(value: Any, axes: tuple[str, ...]) -> Any:
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(value, axes, to="varying")
    return jax.lax.pvary(value, axes)


# -- rules ------------------------------------------------------------------------------------------------------------


def _implementation(*args: Any, **parameters: Any) -> Any:
    return _jitted(tuple(parameters.items()))(*args)


@functools.cache
def _jitted(parameters: tuple) -> Any:
    return jax.jit(functools.partial(_kernel.bind, **dict(parameters)))


def _abstract(*args: Any, of: Operation, batch: tuple[int, ...], **_: Any) -> Any:
    for label, value in zip(of.labels, args, strict=True):
        if value.shape[:-1] not in ((), batch):
            raise ValueError(f"{label}: expected leading axes {batch} or none, got shape {value.shape}")
    return [args[0].update(shape=(*batch, *shape), weak_type=False) for shape in of.shapes]


def _batched(args: Sequence[Any], dims: Sequence[Any], *, batch: tuple[int, ...], **parameters: Any) -> Any:
    size = next(value.shape[dim] for value, dim in zip(args, dims, strict=True) if dim is not None)
    rows = []
    for value, dim in zip(args, dims, strict=True):
        if dim is None:
            shared = value.ndim == 1
            rows.append(value if shared else jnp.broadcast_to(value, (size, *value.shape)))
            continue
        moved = jnp.moveaxis(value, dim, 0)
        if moved.ndim == 2 and batch:
            moved = jnp.broadcast_to(
                moved.reshape(size, *(1 for _ in batch), moved.shape[-1]), (size, *batch, moved.shape[-1])
            )
        rows.append(moved)
    found = _bound(*rows, batch=(size, *batch), **parameters)
    return found, [0] * len(found)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, of: Operation, **parameters: Any) -> Any:
    found = _bound(*primals, of=of, **parameters)
    by = tuple(k for k, tangent in enumerate(tangents) if not isinstance(tangent, ad.Zero))
    if not by:
        return found, [ad.Zero.from_primal_value(part) for part in found]
    parameters |= {"of": of.tangent(by), "base": of, "by": by}
    return found, _bound(*primals, *(tangents[k] for k in by), **parameters)


def _transposed(
    cotangents: Sequence[Any],
    *args: Any,
    of: Operation,
    base: Operation | None,
    by: tuple[int, ...],
    threads: int,
    batch: tuple[int, ...],
) -> Any:
    assert base is not None, "only the tangent of a kernel is linear"
    primals, directions = args[: -len(by)], args[-len(by) :]
    wanted = tuple(k for k, value in zip(by, directions, strict=True) if ad.is_undefined_primal(value))
    rows = [
        ad.instantiate_zeros(bar).reshape(*batch, size)
        for bar, size in zip(cotangents, base.rows, strict=True)
    ]
    parameters = {"of": base.gradient(wanted), "base": None, "by": (), "threads": threads, "batch": batch}
    found = iter(_bound(*primals, *rows, **parameters))
    gradients = []
    for value in directions:
        if not ad.is_undefined_primal(value):
            gradients.append(None)
            continue
        gradient = next(found)
        shared = len(value.aval.shape) == 1
        gradients.append(gradient.sum(tuple(range(len(batch)))) if shared and batch else gradient)
    return [*(None for _ in primals), *gradients]


def _lowered_on(platform: str) -> Any:
    def lower(ctx: Any, *args: Any, of: Operation, threads: int, batch: tuple[int, ...], **_: Any) -> Any:
        target = target_of(of, ctx.avals_in[0].dtype.name)
        attributes = {}
        if platform == "cpu":
            known = all(isinstance(length, int) for length in batch)
            target.prepare_cpu(math.prod(batch) if known else None)
            attributes["threads"] = np.int64(threads)
        else:
            target.prepare_cuda()
        return jax.ffi.ffi_lowering(target.name)(ctx, *args, **attributes)

    return lower


_kernel.def_impl(_implementation)
_kernel.def_abstract_eval(_abstract)
batching.primitive_batchers[_kernel] = _batched
ad.primitive_jvps[_kernel] = _jvp
ad.primitive_transposes[_kernel] = _transposed
for _platform in ("cpu", "cuda"):
    mlir.register_lowering(_kernel, _lowered_on(_platform), platform=_platform)


# -- executables from elsewhere ---------------------------------------------------------------------------------------


def register(kernel: Kernel | ParametricKernel) -> list[str]:
    """Register the targets of a kernel before an exported function that calls it is run; their names."""
    parts = (
        [kernel]
        if isinstance(kernel, Kernel)
        else [kernel.main, *([kernel.prelude] if kernel.prelude else [])]
    )
    targets = [target_of(operation(part), dtype) for part in parts for dtype in ("float64", "float32")]
    for target in targets:
        _prepare(target)
    return [target.name for target in targets]


def _prepare(target: Target) -> None:
    target.prepare_cpu(None)
    if jax.default_backend() == "gpu":
        target.prepare_cuda()


def export_checks(function: Any, *args: Any) -> list[Any]:
    """What ``jax.export.export(function, disabled_checks=...)`` needs: permission for the targets that it calls."""
    import jax.export

    text = function.lower(*args).as_text()
    names = sorted(set(re.findall(r"@(linkwise_\w+)\(", text)))
    return [jax.export.DisabledSafetyCheck.custom_call(name) for name in names]
