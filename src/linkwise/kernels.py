"""From a function's name and a setting to arrays: picks the kernel and calls it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from linkwise import arrays
from linkwise.functions import Setting, function_named


def evaluate(name: str, setting: Setting, algorithm: str | None, given: Mapping[str, Any], out=None, threads=None) -> Any:
    """The outputs of a function for these inputs: one array, or a tuple where there are several outputs."""
    function = function_named(name)
    algorithm = function.algorithm(algorithm)
    results = tuple(arrays.evaluate(function, setting, algorithm, given).values())
    if out is not None:
        results[0][...]
        out[...] = results[0]
        results = (out, *results[1:])
    return results if len(results) > 1 else results[0]
