"""A kernel as frameworks see it: a name made of its content, inputs, outputs, precisions, derivatives.

A derivative is an operation of its own, so that derivatives of any order work: ``tangent`` follows a direction from the
inputs to the outputs (forward mode), ``gradient`` follows cotangents back to the inputs (reverse mode). Each is a
kernel that is compiled when it is first computed.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from linkwise.core import forks
from linkwise.errors import DtypeError, ShapeError

if TYPE_CHECKING:
    from linkwise.compiler.kernel import Kernel

_KNOWN = "operation"  # in ``Kernel.on_device``
_SHORT = frozenset({"float16", "bfloat16"})
_CONVERTED = frozenset({"bool", *(f"{u}int{b}" for u in ("", "u") for b in (8, 16, 32, 64))})
_lock = forks.lock()


class Operation:
    """One kernel in both precisions. Operations of kernels with the same content have the same name."""

    def __init__(self, name: str, kernel: Kernel):
        self.name, self.kernel = name, kernel
        self.labels = tuple(label for label, _ in kernel.inputs)
        self.sizes = tuple(size for _, size in kernel.inputs)
        self.shapes = tuple(shape for _, shape in kernel.outputs)
        self.rows = tuple(math.prod(shape) for shape in self.shapes)
        self._derivatives: dict[tuple[str, tuple[int, ...]], Operation] = {}
        self.made: dict[Any, Any] = {}  # what a framework has made of it

    def tangent(self, by: tuple[int, ...]) -> Operation:
        """The change of the outputs for directions of these inputs, which follow the inputs."""
        return self._derivative("jvp", by)

    def gradient(self, by: tuple[int, ...]) -> Operation:
        """The gradients by these inputs; cotangents of the outputs, as rows, follow the inputs."""
        return self._derivative("vjp", by)

    def _derivative(self, what: str, by: tuple[int, ...]) -> Operation:
        found = self._derivatives.get((what, by))
        if found is None:
            made = getattr(self.kernel, what)(*(self.labels[k] for k in by))
            name = f"{self.name}_{what}{''.join(map(str, by))}"
            found = self._derivatives.setdefault((what, by), Operation(name, made))
        return found

    # -- checks -------------------------------------------------------------------------------------------------------

    def dtype(self, given: Sequence[str]) -> tuple[str, str]:
        """(precision of the computation, precision of the results) for inputs of these precisions.

        float64, or float32 where all inputs are float32 or shorter; float16 and bfloat16 are computed in float32, and
        where all inputs are of one of the two the results are rounded to it.
        """
        for label, name in zip(self.labels, given, strict=True):
            if name not in _SHORT and name not in ("float64", "float32") and name not in _CONVERTED:
                raise DtypeError(f"{label}: expected real numbers, got an array of {name}")
        kinds = set(given)
        if kinds and kinds <= _SHORT | {"float32"}:
            return "float32", given[0] if len(kinds) == 1 else "float32"
        single = self.kernel.dtype == "float32"
        return ("float32", "float32") if single else ("float64", "float64")

    def check_shapes(self, shapes: Sequence[Sequence[int]]) -> None:
        """Raise where a last axis is not as long as its input."""
        for label, size, shape in zip(self.labels, self.sizes, shapes, strict=True):
            if len(shape) == 0 or shape[-1] != size:
                raise ShapeError(f"{label}: expected shape (..., {size}), got {tuple(shape)}")

    def no_broadcast(self, shapes: Sequence[Sequence[int]]) -> ShapeError:
        listed = ", ".join(
            f"{label} {tuple(shape)}" for label, shape in zip(self.labels, shapes, strict=True)
        )
        return ShapeError(f"the leading axes of the inputs do not broadcast together: {listed}")


_BY_NAME: dict[str, Operation] = {}


def operation(kernel: Kernel) -> Operation:
    """The operation of a kernel, the same for all kernels of equal content."""
    found = kernel.on_device.get(_KNOWN)
    if found is None:
        digest = hashlib.sha256(repr(kernel.content()).encode()).hexdigest()[:16]
        name = f"{re.sub('[^A-Za-z0-9_]', '_', kernel.name)}_{digest}"
        with _lock:
            found = kernel.on_device[_KNOWN] = _BY_NAME.setdefault(name, Operation(name, kernel))
    return found
