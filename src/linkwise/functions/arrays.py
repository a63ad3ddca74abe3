"""The array path: an algorithm run on NumPy arrays, one lane per state.

It is the reference that compiled kernels are tested against, and it is used where nothing is compiled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from linkwise.compiler.runtime.arrays import as_reals, batch_shape
from linkwise.functions.table import Function, Setting


def checked_inputs(
    sizes: Mapping[str, int], given: Mapping[str, Any]
) -> tuple[dict[str, np.ndarray], tuple[int, ...]]:
    """The inputs as float arrays of one precision, and their common batch shape."""
    arrays = [as_reals(name, given[name]) for name in sizes]
    batch = batch_shape(arrays, list(sizes.items()))
    single = bool(arrays) and all(array.dtype == np.float32 for array in arrays)
    dtype = np.float32 if single else np.float64
    return {name: np.asarray(array, dtype=dtype) for name, array in zip(sizes, arrays, strict=True)}, batch


def run_on_arrays(
    function: Function, setting: Setting, algorithm: str, given: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """The outputs by name, each of shape batch + its shape for one state."""
    from linkwise.functions.evaluation import outputs_of

    sizes = function.input_sizes(setting)
    arrays, batch = checked_inputs(sizes, given)
    dtype = np.result_type(*arrays.values()) if arrays else np.dtype(float)
    shapes = function.shapes(setting.model)
    lanes: dict[str, list[Any]] = {
        name: [array[..., k] for k in range(sizes[name])] for name, array in arrays.items()
    }
    with np.errstate(all="ignore"):
        values = outputs_of(function, replace(setting, dtype=str(dtype)), algorithm, **lanes)
    return {name: _stack(values[name], shape, batch, dtype) for name, shape in shapes.items()}


def _stack(nested: Any, shape: tuple[int, ...], batch: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Nested lists of lanes (or constants) as one array."""
    out = np.empty(batch + shape, dtype)
    for index in np.ndindex(*shape):
        value = nested
        for k in index:
            value = value[k]
        out[(..., *index)] = value
    return out
