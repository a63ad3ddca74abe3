"""Where a call is computed: NumPy arrays on this machine's processors, arrays of other libraries where they are.

``linkwise.frameworks`` is above the compiler in the order of the package, so it is registered (``core.upper``) and
loaded with the first array of CuPy, PyTorch or JAX. Rollouts are loops over time and have an entry of their own there.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable
from typing import Any

from linkwise.compiler.runtime.arrays import is_foreign
from linkwise.core.upper import upper


@functools.cache
def _other_libraries() -> Any:
    return upper("frameworks")


def are_foreign(values: Iterable[Any]) -> bool:
    """Whether any of these is another library's array."""
    return any(map(is_foreign, values))


def call(kernel: Any, args: tuple[Any, ...], out: Any, threads: int | None) -> Any:
    """What ``Kernel.__call__`` gives, for arrays of other libraries."""
    return _other_libraries().call(kernel, args, out, threads)


def call_rollout(kernel: Any, *args: Any) -> Any:
    """What ``RolloutKernel.__call__`` gives, for arrays of other libraries."""
    return _other_libraries().call_rollout(kernel, *args)


def graph(kernel: Any, args: tuple[Any, ...], out: Any) -> Any:
    """What ``Kernel.graph`` gives."""
    return _other_libraries().graph(kernel, args, out)


def parametric_graph(kernel: Any, args: tuple[Any, ...], out: Any) -> Any:
    """What ``ParametricKernel.graph`` gives."""
    return _other_libraries().parametric_graph(kernel, args, out)


def rollout_graph(kernel: Any, *args: Any) -> Any:
    """What ``RolloutKernel.graph`` gives."""
    return _other_libraries().rollout_graph(kernel, *args)


# -- torch.compile ----------------------------------------------------------------------------------------------------


def is_compiling() -> bool:
    """Whether ``torch.compile`` or ``torch.export`` is tracing the caller."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_compiling()


def torch_calls() -> Any:
    """The module with what calls become there."""
    _load_torch_calls()
    return _torch_calls


_torch_calls: Any = None


def _load_torch_calls() -> None:
    global _torch_calls
    _torch_calls = upper("torch_calls")


# PyTorch's tracer cannot follow imports; it calls functions with this mark, and reads the variable afterwards.
_load_torch_calls._dynamo_marked_constant = True  # type: ignore[attr-defined]
