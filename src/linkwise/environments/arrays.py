"""Arrays of environments: NumPy on the CPU, or those of PyTorch, JAX and CuPy where they are."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as np

from linkwise.errors import ArgumentError, MissingExtraError

KINDS = ("numpy", "torch", "jax", "cupy")


def kind_for(device: str, wanted: str | None) -> str:
    """The library whose arrays are used on a device.

    Args:
        device: "cpu", "cuda" or "cuda:NUMBER".
        wanted: one of ``KINDS``; None: NumPy on the CPU; PyTorch or else CuPy on a GPU.
    """
    if device != "cpu" and device.split(":")[0] != "cuda":
        raise ArgumentError(f"device: expected 'cpu', 'cuda' or 'cuda:1', got {device!r}")
    if wanted is None:
        if device == "cpu":
            return "numpy"
        installed = [name for name in ("torch", "cupy") if importlib.util.find_spec(name) is not None]
        if not installed:
            raise MissingExtraError("environments on a GPU need PyTorch or CuPy: pip install torch")
        return installed[0]
    if wanted not in KINDS:
        raise ArgumentError(f"arrays: expected one of {', '.join(KINDS)}, got {wanted!r}")
    if wanted == "numpy" and device != "cpu":
        raise ArgumentError(f"arrays: NumPy's are on the CPU, the environments are on {device}")
    if importlib.util.find_spec(wanted) is None:
        raise MissingExtraError(f"arrays={wanted!r} needs the package: pip install {wanted}")
    return wanted


def placed(array: np.ndarray, kind: str, device: str) -> Any:
    """A copy of a NumPy array as one of another kind, on a device."""
    if kind == "numpy":
        return np.array(array)
    library: Any = importlib.import_module(kind)
    if kind == "torch":
        return library.tensor(array, device=device)
    number = int(device.split(":")[1]) if ":" in device else 0
    if kind == "jax":
        places = library.devices("cpu" if device == "cpu" else "cuda")
        return library.device_put(array, places[number])
    with library.cuda.Device(number):
        return library.asarray(array)


def on_host(array: Any) -> np.ndarray:
    """Any of these arrays as NumPy's."""
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "detach"):
        return array.detach().cpu().numpy()
    return array.get() if hasattr(array, "get") else np.asarray(array)


def assign(target: Any, array: np.ndarray, kind: str, device: str) -> Any:
    """Write into an array where that is possible, so that its address stays; else a new one."""
    if kind == "numpy":
        target[...] = array
        return target
    new = placed(array, kind, device)
    if kind == "torch":
        target.copy_(new)
        return target
    if kind == "cupy":
        target[...] = new
        return target
    return new


def side_by_side(first: Any, second: Any, kind: str) -> Any:
    """Two arrays joined along the last axis."""
    if kind == "numpy":
        return np.concatenate([first, second], axis=-1)
    if kind == "torch":
        import torch

        return torch.cat([first, second], dim=-1)
    library: Any = importlib.import_module("jax.numpy" if kind == "jax" else kind)
    return library.concatenate([first, second], axis=-1)
