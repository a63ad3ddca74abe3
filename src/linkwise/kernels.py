"""From a function's name and a setting to results: finds or makes the kernel, calls it.

A kernel is made once per robot, function, algorithm and choice of options. What would be too large as straight-line
code runs on the array path instead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from linkwise import arrays
from linkwise.compiler.kernel import Kernel
from linkwise.functions import Function, Setting, function_named

STRAIGHT_LINE_LIMIT = 40_000  # estimated operations; beyond, code no longer fits the caches and compiles for seconds


def evaluate(name: str, setting: Setting, algorithm: str | None, given: Mapping[str, Any], out=None, threads=None) -> Any:
    """The outputs of a function for these inputs: one array, or a tuple where there are several outputs."""
    function = function_named(name)
    algorithm = function.algorithm(algorithm)
    if compiles(function, setting):
        found = kernel(function, setting, algorithm)
        return found(*(given[key] for key, _ in found.inputs), out=out, threads=threads)
    results = tuple(arrays.evaluate(function, setting, algorithm, given).values())
    if out is not None:
        results = _written(out, results)
    results = tuple(result if result.ndim else result[()] for result in results)
    return results if len(results) > 1 else results[0]


def compiles(function: Function, setting: Setting) -> bool:
    """Whether the function of this robot is small enough to be one straight program."""
    n = setting.model.dof
    return 0 < n and function.size(n) <= STRAIGHT_LINE_LIMIT


def kernel(function: Function, setting: Setting, algorithm: str, dtype: str = "float64") -> Kernel:
    """The compiled form of a function, made once per robot."""
    known = setting.model.__dict__.setdefault("_kernels", {})
    key = (function.name, algorithm, setting.options(), dtype)
    found = known.get(key)
    if found is None:
        found = known[key] = _make(function, setting, algorithm, dtype)
    return found


def _make(function: Function, setting: Setting, algorithm: str, dtype: str) -> Kernel:
    sizes = function.input_sizes(setting)
    shapes = function.shapes(setting.model)

    def build(precision: str):
        from linkwise.compiler.program import trace

        chosen = replace(setting, dtype=precision)
        return trace(
            lambda **inputs: function.evaluate(chosen, algorithm, **inputs),
            sizes,
            shapes,
            name=function.name,
            dtype=precision,  # type: ignore[arg-type]
        )

    identity = repr((setting.model.content(), algorithm, setting.options())).encode()
    return Kernel(function.name, sizes.items(), shapes.items(), dtype, build, hashlib.sha256(identity).digest())


def _written(out: Any, results: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    from linkwise.compiler.arrays import check_out

    targets = out if isinstance(out, tuple) else (out,)
    written = []
    for target, result in zip(targets, results, strict=True):
        if target is not None:
            check_out("out", target, result.shape, result.dtype)[...] = result
        written.append(result if target is None else target)
    return tuple(written)
