"""Tensors of PyTorch and JAX on the CPU: NumPy views of them go through the CPU's kernel, without a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise.compiler.kernel import Kernel


def call_on_host(kernel: Kernel, framework: str, args: Sequence[Any], out: Any, threads: int | None) -> Any:
    """The outputs as arrays of the same framework."""
    targets = out
    if out is not None:
        targets = tuple(host_view(o) for o in out) if isinstance(out, (tuple, list)) else host_view(out)
    result = kernel(*map(host_view, args), out=targets, threads=threads)
    if out is not None:
        return out
    results = [
        same_kind(np.asarray(r), framework) for r in (result if isinstance(result, tuple) else (result,))
    ]
    return results[0] if len(results) == 1 else tuple(results)


def host_view(value: Any) -> np.ndarray:
    """The same memory as NumPy's array; JAX's is read-only."""
    return value.detach().numpy() if hasattr(value, "detach") else np.asarray(value)


def same_kind(array: np.ndarray, framework: str) -> Any:
    if framework == "PyTorch":
        import torch

        return torch.from_numpy(array)
    import jax.numpy as jnp

    return jnp.asarray(array)
