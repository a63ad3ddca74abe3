"""Kernels as C, built by the system's compiler and called on arrays."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from linkwise.compiler.ir.loops import Nest


def call_c(kernel, folder: Path, *given: np.ndarray) -> list[np.ndarray]:
    """The outputs of a kernel's C code for one sample; skips where there is no compiler."""
    return c_function(kernel, folder)(*given)


def c_function(kernel, folder: Path) -> Callable[..., list[np.ndarray]]:
    """A kernel's C code as a function of one sample; skips where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    source, library = folder / f"{kernel.name}.c", folder / f"{kernel.name}.so"
    source.write_text(kernel.source("c"), encoding="utf-8")
    flags = ["-std=c99", "-O1", "-ffp-contract=off", "-Wall", "-Werror", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "-o", str(library), str(source), "-lm"], check=True)
    function = getattr(ctypes.CDLL(str(library)), kernel.name)

    def call(*given: np.ndarray) -> list[np.ndarray]:
        inputs = [np.ascontiguousarray(array, dtype=float) for array in given]
        outputs = [np.empty(shape) for _, shape in kernel.outputs]
        if isinstance(program := kernel.program(), Nest):  # loops need room
            outputs.append(
                np.empty(sum(array.columns for array in program.arrays if array.kind == "scratch"))
            )
        function(*(ctypes.c_void_p(array.ctypes.data) for array in (*inputs, *outputs)))
        return outputs[: len(kernel.outputs)]

    return call
