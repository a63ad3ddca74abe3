"""Linkwise inside other frameworks: arrays of PyTorch and JAX, plain, traced and differentiated; CuPy's go to ``gpu``.

Nothing here is imported before such an array is given to a kernel, and no framework before it is in use.

======================  ==========================================================================================
``operation``           a kernel as a framework sees it: name by content, inputs, outputs, derivatives as operations
``torch``               operators of PyTorch
``jax``                 a primitive of JAX, computed through XLA's foreign-function interface
``xla``                 the handler that XLA calls, as machine code
======================  ==========================================================================================
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from linkwise import gpu
from linkwise.gpu import call_rollout, graph, parametric_graph, rollout_graph

if TYPE_CHECKING:
    from linkwise.compiler.kernel import Kernel

__all__ = ["call", "call_rollout", "graph", "parametric_graph", "rollout_graph"]

_BY_TYPE: dict[type, Callable[..., Any] | None] = {}


def call(kernel: Kernel, args: Sequence[Any], out: Any = None, threads: int | None = None) -> Any:
    """The outputs for these inputs, of the same kind on the same device; several outputs come as a tuple."""
    for value in args:
        kind = type(value)
        found = _BY_TYPE[kind] if kind in _BY_TYPE else _learnt(kind)
        if found is not None:
            return found(kernel, args, out, threads)
    return gpu.call(kernel, args, out, threads)


def _learnt(kind: type) -> Callable[..., Any] | None:
    """What computes arrays of this type, remembered; None: this one does not decide."""
    found = None
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if torch is not None and issubclass(kind, torch.Tensor):
        from linkwise.frameworks.torch import call as found
    elif jax is not None and issubclass(kind, (jax.Array, jax.core.Tracer)):
        from linkwise.frameworks.jax import call as found
    _BY_TYPE[kind] = found
    return found
