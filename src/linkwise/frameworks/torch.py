"""Kernels as operators of PyTorch: ``torch.compile``, ``torch.func``, double backward, ``torch.export``, CUDA graphs.

Every kernel becomes one operator of the library ``linkwise``, named by its content, when it is first needed. The
operator takes tensors of one precision on one device and broadcasts their leading axes. Its rules:

- CPU and CUDA: the kernel's machine code, or its launch on the current stream;
- Meta (fake tensors): shapes alone, for ``torch.compile`` and ``torch.export``;
- Autograd: ``backward`` is the operator of ``Operation.gradient``, ``jvp`` that of ``Operation.tangent``;
- vmap: one more leading axis.

Plain tensors without gradients and transformations do not need these rules: ``call`` computes them directly.
"""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false
# (the type checker takes the packages torch and jax for the files of that name here)
from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from numpy import ndarray
from torch import from_numpy
from torch.autograd import forward_ad

from linkwise import gpu
from linkwise.compiler.kernel import Kernel
from linkwise.frameworks.operation import Operation, operation
from linkwise.gpu.call import common_place

if TYPE_CHECKING:
    from linkwise.compiler.parametric import ParametricKernel

_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16)
}
_LIBRARY = torch.library.Library("linkwise", "FRAGMENT")
_MOST_SUBSETS = 4  # inputs up to which the gradients by all subsets of them are defined for a compiled graph
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_SHORT = (torch.float16, torch.bfloat16)
_transforms, _modes = torch._C._are_functorch_transforms_active, torch._C._len_torch_dispatch_stack
_traces, _grad_enabled = torch._C._get_tracing_state, torch.is_grad_enabled


class Operator:
    """One operator and its rules."""

    def __init__(self, of: Operation):
        self.operation = of
        inputs = ", ".join(f"Tensor a{k}" for k in range(len(of.sizes)))
        outputs = ", ".join("Tensor" for _ in of.shapes)
        outputs = outputs if len(of.shapes) == 1 else f"({outputs})"
        name = f"linkwise::{of.name}"
        _LIBRARY.define(f"{of.name}({inputs}) -> {outputs}", tags=(torch.Tag.pt2_compliant_tag,))
        self.op = getattr(torch.ops.linkwise, of.name).default
        self.function = _autograd_function(self)
        _LIBRARY.impl(of.name, self.on_cpu, "CPU")
        _LIBRARY.impl(of.name, self.on_cuda, "CUDA")
        _LIBRARY.impl(of.name, self.autograd, "Autograd", with_keyset=True)
        torch.library.register_fake(name, self.fake, lib=_LIBRARY)
        torch.library.register_vmap(name, self.vmap, lib=_LIBRARY)

    # -- rules --------------------------------------------------------------------------------------------------------

    def on_cpu(self, *args: Any) -> Any:
        found = self.operation.kernel(*(value.detach().numpy() for value in args))
        return _as_tensors(found)

    def on_cuda(self, *args: Any) -> Any:
        return gpu.call(self.operation.kernel, [value.detach() for value in args])

    def fake(self, *args: Any) -> Any:
        of = self.operation
        of.check_shapes([value.shape for value in args])
        batch = self._batch(args)
        made = tuple(args[0].new_empty((*batch, *shape)) for shape in of.shapes)
        return made[0] if len(made) == 1 else made

    def autograd(self, keyset: Any, *args: Any) -> Any:
        if not _differentiates(args):
            return self._below(keyset, args)
        if not torch._C._are_functorch_transforms_active():
            return self.function.apply(keyset, *args)
        with (
            torch._functorch.utils.enable_single_level_autograd_function()
        ):  # this is one level of torch.func
            return self.function.apply(keyset, *args)

    def _below(self, keyset: Any, args: Sequence[Any]) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            return self.op.redispatch(keyset & torch._C._after_autograd_keyset, *args)

    def vmap(self, info: Any, dims: Sequence[int | None], *args: Any) -> Any:
        rank = max(value.dim() - (dim is not None) for value, dim in zip(args, dims, strict=True))
        moved = [
            value if dim is None else _lifted(value.movedim(dim, 0), rank + 1)
            for value, dim in zip(args, dims, strict=True)
        ]
        found = self.op(*moved)
        return found, 0 if len(self.operation.shapes) == 1 else (0,) * len(self.operation.shapes)

    def _batch(self, args: Sequence[Any]) -> Any:
        try:
            return torch.broadcast_shapes(*(value.shape[:-1] for value in args))
        except RuntimeError:
            raise self.operation.no_broadcast([value.shape for value in args]) from None

    # -- derivatives --------------------------------------------------------------------------------------------------

    def backward(self, args: Sequence[Any], needed: Sequence[bool], cotangents: Sequence[Any]) -> list[Any]:
        of = self.operation
        by = tuple(k for k, need in enumerate(needed) if need)
        batch = self._batch(args)
        rows = [
            args[0].new_zeros((*batch, size)) if bar is None else bar.reshape(*batch, size)
            for bar, size in zip(cotangents, of.rows, strict=True)
        ]
        found = operator_of(of.gradient(by)).op(*args, *rows)
        gradients = iter((found,) if len(by) == 1 else found)
        return [
            next(gradients).sum_to_size(value.shape) if need else None
            for value, need in zip(args, needed, strict=True)
        ]

    def tangent(self, args: Sequence[Any], directions: Sequence[Any]) -> Any:
        by = tuple(k for k, direction in enumerate(directions) if direction is not None)
        return operator_of(self.operation.tangent(by)).op(*args, *(directions[k] for k in by))


def _autograd_function(operator: Operator) -> Any:
    """What the Autograd rule of an operator applies where something is differentiated."""

    def forward(ctx: Any, keyset: Any, *args: Any) -> Any:
        ctx.save_for_backward(*args)
        ctx.save_for_forward(*args)
        ctx.set_materialize_grads(False)
        with torch.enable_grad(), _forward_mode():
            return operator._below(keyset, args)

    def backward(ctx: Any, *cotangents: Any) -> Any:
        return None, *operator.backward(ctx.saved_tensors, ctx.needs_input_grad[1:], cotangents)

    def jvp(ctx: Any, _: Any, *directions: Any) -> Any:
        with torch.enable_grad(), _forward_mode():
            primals = [_unpacked(value)[0] for value in ctx.saved_tensors]
            return operator.tangent(primals, directions)

    rules = {"forward": staticmethod(forward), "backward": staticmethod(backward), "jvp": staticmethod(jvp)}
    return type(f"Of_{operator.operation.name}", (torch.autograd.function._SingleLevelFunction,), rules)


def _forward_mode() -> Any:
    """Applying a function switches both modes off, but levels of ``torch.func`` below this one may need them."""
    return forward_ad._set_fwd_grad_enabled(True)


def _differentiates(args: Sequence[Any]) -> bool:
    if torch.is_grad_enabled() and torch._C._any_requires_grad(*args):
        return True
    if forward_ad._current_level < 0 and not torch._C._are_functorch_transforms_active():
        return False
    return any(_unpacked(value)[1] is not None for value in args)


def _unpacked(value: Any) -> Any:
    """(primal, tangent or None) in forward mode; all levels of ``torch.func`` share the dual level 0."""
    return torch._VF._unpack_dual(value, level=0)


def _lifted(value: Any, rank: int) -> Any:
    """With axes of length 1 after the first, up to this number of axes."""
    return value[(slice(None), *(None,) * (rank - value.dim()))]


def _as_tensors(found: Any) -> Any:
    if isinstance(found, tuple):
        return tuple(torch.as_tensor(part) for part in found)
    return torch.as_tensor(found)


def operator_of(of: Operation) -> Operator:
    """The operator of an operation, defined when it is first asked for."""
    found = of.made.get(Operator)
    if found is None:
        found = of.made.setdefault(Operator, Operator(of))
    return found


# -- calls ------------------------------------------------------------------------------------------------------------


def call(kernel: Kernel, args: Sequence[Any], out: Any = None, threads: int | None = None) -> Any:
    """The outputs as tensors on the device of the inputs; several outputs come as a tuple."""
    if _is_plain(args):
        return _direct(kernel, args, out, threads)
    if out is not None:
        raise gpu.DeviceError(
            "out: cannot be given together with gradients or transformations; leave it out, or detach the inputs"
        )
    of = operation(kernel)
    if not all(isinstance(value, torch.Tensor) and value.device == args[0].device for value in args):
        common_place(of.labels, args)  # has the message
    return apply(operator_of(of), args)


def apply(operator: Operator, args: Sequence[Any]) -> Any:
    """The operator on tensors of any precision, see ``Operation.dtype``."""
    dtype, result = (
        _DTYPES[name] for name in operator.operation.dtype([_name(value.dtype) for value in args])
    )
    return _converted(operator.op(*(value.to(dtype) for value in args)), result)


def _converted(found: Any, dtype: Any) -> Any:
    return tuple(part.to(dtype) for part in found) if isinstance(found, tuple) else found.to(dtype)


def _name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _is_plain(args: Sequence[Any]) -> bool:
    """Whether these are tensors with nothing around them: no gradients, no transformation, nobody who traces."""
    if _transforms() or _modes() or forward_ad._current_level >= 0 or _traces() is not None:
        return False
    differentiable = _grad_enabled()
    for value in args:
        if type(value) not in _PLAIN or (value.requires_grad and differentiable) or value.is_meta:
            return False
    return True


def _direct(kernel: Kernel, args: Sequence[Any], out: Any, threads: int | None) -> Any:
    """Plain tensors: machine code on their memory, or a launch."""
    arrays = []
    for value in args:
        if not value.is_cpu or value.dtype in _SHORT:
            break
        arrays.append(value.detach().numpy() if value.requires_grad else value.numpy())
    else:
        if out is None:
            found = kernel(*arrays) if threads is None else kernel(*arrays, threads=threads)
            return from_numpy(found) if type(found) is ndarray else _as_tensors(found)
        several = isinstance(out, (tuple, list))
        kernel(*arrays, out=tuple(o.numpy() for o in out) if several else out.numpy(), threads=threads)
        return out
    if any(value.dtype in _SHORT for value in args):
        return _assigned(apply(operator_of(operation(kernel)), args), out)
    return gpu.call(kernel, args, out)


def _assigned(found: Any, out: Any) -> Any:
    if out is None:
        return found
    for target, part in zip(
        *((v if isinstance(v, (tuple, list)) else (v,)) for v in (out, found)), strict=True
    ):
        target.copy_(part)
    return out


def define(kernel: Kernel | ParametricKernel) -> list[str]:
    """Define the operators of a kernel and its gradients before a graph that was saved elsewhere is loaded."""
    parts = [kernel] if isinstance(kernel, Kernel) else [kernel.main, kernel.prelude]
    found = [operation(part) for part in parts if part is not None]
    for of in found:
        operator_of(of)
        _define_gradients(of)
    return [of.name for of in found]


# -- torch.compile ----------------------------------------------------------------------------------------------------
#
# PyTorch's tracer reads the functions below. What it cannot follow (which kernel a call means) is in functions that it
# calls and whose results it takes for constants. It passes numbers and text to them, so objects go as their ``id``,
# on which the compiled code then depends; results must be text, numbers or None.


def _constant(function: Any) -> Any:
    """A decorator for such a function."""
    function._dynamo_marked_constant = True
    return function


def traced_kernel(kernel: Any, args: Sequence[Any], out: Any) -> Any:
    """A call of a kernel while ``torch.compile`` or ``torch.export`` traces."""
    if out is not None:
        raise gpu.DeviceError("out: cannot be given inside torch.compile; copy the result instead")
    name, dtype, result = _kernel_plan(id(kernel), tuple(value.dtype for value in args)).split()
    return _planned(name, dtype, result, args)


def traced_method(method: Any, robot: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """A call of a robot's method while ``torch.compile`` or ``torch.export`` traces."""
    given = dict(zip(method.names, args)) | options  # noqa: B905  (PyTorch's tracer knows no strict=)
    if given.get("out") is not None:
        raise gpu.DeviceError("out: cannot be given inside torch.compile; copy the result instead")
    kinds = tuple(
        (name, value.dtype if isinstance(value, torch.Tensor) else None) for name, value in given.items()
    )
    constants = tuple(None if isinstance(value, torch.Tensor) else value for value in given.values())
    plan = _method_plan(id(method), id(robot), kinds, constants).split()
    found = _planned(plan[0], plan[1], plan[2], [given[name] for name in plan[4:]])
    return found[0] if plan[3] == "first" else found


def _planned(name: str, dtype: str, result: str, args: Sequence[Any]) -> Any:
    op = getattr(torch.ops.linkwise, name).default
    return _converted(op(*[value.to(_DTYPES[dtype]) for value in args]), _DTYPES[result])


@_constant
def _kernel_plan(kernel: int, dtypes: tuple[Any, ...]) -> str:
    """Name of the operator, precision of the computation and of the results."""
    of = operation(_object(kernel))
    operator_of(of)
    _define_gradients(of)
    return " ".join((of.name, *of.dtype([_name(dtype) for dtype in dtypes])))


@_constant
def _method_plan(method: int, robot: int, kinds: tuple, constants: tuple) -> str:
    """The same, whether the first output alone is meant, and the names of the inputs in their order."""
    dtypes = dict(kinds)
    given = {
        name: value if dtype is None else ... for (name, dtype), value in zip(kinds, constants, strict=True)
    }
    kernel, order, first = _object(method).chosen(_object(robot), given)
    not_given = [name for name in order if dtypes[name] is None]
    if not_given:
        raise gpu.DeviceError(f"{not_given[0]}: expected a tensor inside torch.compile")
    return " ".join(
        (_kernel_plan(id(kernel), tuple(dtypes[name] for name in order)), "first" if first else "all", *order)
    )


def _object(number: int) -> Any:
    """The object of an ``id``; the caller of the traced function holds it."""
    return ctypes.cast(number, ctypes.py_object).value


def _define_gradients(of: Operation) -> None:
    """Define what backward passes call: a graph from PyTorch's cache names it without having been traced."""
    inputs = range(len(of.sizes))
    if len(inputs) <= _MOST_SUBSETS:
        for size in inputs:
            for by in itertools.combinations(inputs, size + 1):
                operator_of(of.gradient(by))
