"""Gradients in PyTorch and JAX: a kernel's derivative is another kernel, so gradients are computed as results are.

The backward pass calls the kernel's ``vjp``: one pass back over the graph of the function with the cotangents as
inputs, in PyTorch for those inputs alone that need a gradient. It is made at the first backward pass. In PyTorch it is
differentiable in its turn, so second derivatives work, too.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from linkwise.gpu.errors import DeviceError

if TYPE_CHECKING:
    from linkwise.compiler.kernel import Kernel

Call = Callable[..., Any]  # what computes: (kernel, args) -> a result, or a tuple of several


def wants_gradient(args: Sequence[Any]) -> Callable[..., Any] | None:
    """``through_torch`` or ``through_jax`` where a result must be differentiable, else None."""
    torch = sys.modules.get("torch")
    if torch is not None and any(isinstance(value, torch.Tensor) and value.requires_grad for value in args):
        return through_torch if torch.is_grad_enabled() else None
    jax = sys.modules.get("jax")
    if jax is not None and any(isinstance(value, jax.core.Tracer) for value in args):
        return through_jax
    return None


def refuse_out(out: Any) -> None:
    if out is not None:
        raise DeviceError("out: cannot be given together with gradients; leave it out, or detach the inputs")


# -- PyTorch ----------------------------------------------------------------------------------------------------------

_function: Any = None  # made when PyTorch is there


def through_torch(kernel: Kernel, args: Sequence[Any], compute: Call) -> Any:
    """The outputs as tensors with a backward function."""
    global _function
    if _function is None:
        _function = _torch_function()
    return _function.apply(kernel, compute, *args)


def _torch_function() -> Any:
    import torch

    class OfKernel(torch.autograd.Function):
        """``apply(kernel, compute, *inputs)``."""

        @staticmethod
        def forward(ctx: Any, kernel: Kernel, compute: Call, *args: Any) -> Any:
            results = compute(kernel, _detached(args))
            ctx.kernel = kernel
            ctx.save_for_backward(*args)
            return results

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            kernel, args = ctx.kernel, ctx.saved_tensors
            names = [name for name, _ in kernel.inputs]
            wanted = [name for name, need in zip(names, ctx.needs_input_grad[2:], strict=True) if need]
            if not torch.is_grad_enabled():  # no second derivatives are needed
                args, cotangents = _detached(args), _detached(cotangents)
            found = _pulled_back(kernel, wanted, args, cotangents)
            return (
                None,
                None,
                *(
                    found[name].sum_to_size(value.shape).to(value.dtype) if name in found else None
                    for name, value in zip(names, args, strict=True)
                ),
            )

    return OfKernel


def _detached(values: Sequence[Any]) -> tuple:
    return tuple(value.detach() if hasattr(value, "detach") else value for value in values)


def _pulled_back(
    kernel: Kernel, wanted: Sequence[str], args: Sequence[Any], cotangents: Sequence[Any]
) -> dict[str, Any]:
    """The gradients by input, of the whole batch; cotangents come in the outputs' shapes."""
    rows = [
        bar.reshape((*bar.shape[: bar.ndim - len(shape)], math.prod(shape)))
        for bar, (_, shape) in zip(cotangents, kernel.outputs, strict=True)
    ]
    made = kernel.vjp(*wanted)(*args, *rows)
    return dict(zip(wanted, made if isinstance(made, tuple) else (made,), strict=True))


# -- JAX --------------------------------------------------------------------------------------------------------------


def through_jax(kernel: Kernel, args: Sequence[Any], compute: Call) -> Any:
    """The outputs inside ``jax.grad``; inside ``jax.jit`` and ``jax.vmap`` ``compute`` says that it gets no arrays."""
    import jax

    names = [name for name, _ in kernel.inputs]

    def forward(*args: Any) -> tuple[Any, tuple]:
        return compute(kernel, args), args

    def backward(args: tuple, cotangent: Any) -> tuple:
        cotangents = cotangent if isinstance(cotangent, tuple) else (cotangent,)
        found = _pulled_back(kernel, names, args, [jax.numpy.asarray(bar) for bar in cotangents])
        return tuple(
            _summed(found[name], value.shape).astype(value.dtype)
            if jax.numpy.issubdtype(value.dtype, jax.numpy.floating)
            else None
            for name, value in zip(names, args, strict=True)
        )

    function = jax.custom_vjp(lambda *args: compute(kernel, args))
    function.defvjp(forward, backward)
    return function(*args)


def _summed(gradient: Any, shape: tuple[int, ...]) -> Any:
    """The sum over the axes along which an input of this shape was repeated."""
    ahead = gradient.ndim - len(shape)
    axes = [
        *range(ahead),
        *(ahead + k for k, length in enumerate(shape) if length == 1 != gradient.shape[ahead + k]),
    ]
    return gradient.sum(tuple(axes)).reshape(shape) if axes else gradient
