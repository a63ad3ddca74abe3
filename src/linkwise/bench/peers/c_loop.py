"""Generated C compiled with the system's compiler, and run over many states by a loop in C."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from linkwise.bench.peers.base import INPUTS, MATRICES, Peer, Refusal, States, Task

FLAGS = ("-O3", "-march=native", "-shared", "-fPIC", "-w")


def compiler() -> str:
    """The C compiler; without one there is nothing to compare."""
    for name in ("gcc", "clang", "cc"):
        if shutil.which(name):
            return name
    raise Refusal("needs a C compiler")


class CompiledFile:
    """``run`` of a compiled file: void run(long count, const real *inputs..., real *out)."""

    def __init__(self, source: str, folder: Path, name: str, inputs: int):
        path = folder / f"{name}.c"
        path.write_text(source, encoding="utf-8")
        library = folder / f"{name}.so"
        try:
            subprocess.run(
                [compiler(), *FLAGS, str(path), "-o", str(library), "-lm"],
                cwd=folder,  # an empty entry of CPATH means the current folder
                check=True,
                capture_output=True,
                text=True,
            )
        except subprocess.CalledProcessError as error:
            raise Refusal(f"the generated C does not compile: {error.stderr.splitlines()[0]}") from None
        self._run = ctypes.CDLL(str(library)).run
        self._run.argtypes = [ctypes.c_long, *[ctypes.c_void_p] * (inputs + 1)]
        self._run.restype = None

    def bound(self, given: Sequence[np.ndarray], out: np.ndarray):
        """A call without arguments."""
        arrays = (*given, out)
        words = (len(out), *(array.ctypes.data for array in arrays))

        def call(run=self._run, words=words, _kept=arrays) -> None:  # the arrays live as long as the call
            run(*words)

        return call


def loop_source(function: str, dtype: str, dof: int, call: str) -> str:
    """The loop over states: ``call`` are statements that use the pointers a0, a1, … and out."""
    real, inputs = real_of(dtype), range(len(INPUTS[function]))
    arguments = ", ".join(f"const {real} *a{k}" for k in inputs)
    steps = ", ".join(f"a{k} += {dof}" for k in inputs)
    size = dof * dof if function in MATRICES else dof
    return (
        f"\nvoid run(long count, {arguments}, {real} *out)\n{{\n"
        f"    for (long i = 0; i < count; ++i, {steps}, out += {size}) {{\n        {call}\n    }}\n}}\n"
    )


def real_of(dtype: str) -> str:
    """The type in C."""
    return "double" if dtype == "float64" else "float"


class CompiledC(Peer):
    """A library that writes C: a compiled file per function and precision."""

    precisions = ("float64", "float32")
    dof: int

    def __init__(self, dof: int):
        self.dof = dof
        self.order = np.arange(dof)
        self.folder = tempfile.TemporaryDirectory()
        self.loops: dict[tuple[str, str], CompiledFile] = {}

    def has(self, function: str) -> bool:
        """Whether the library writes this function."""
        raise NotImplementedError

    def source(self, function: str, dtype: str) -> str:
        """The generated file, with ``loop_source`` at its end."""
        raise NotImplementedError

    def one(self, function: str, states: States) -> Task | None:
        return self._task(function, {name: values[:1] for name, values in states.items()}, "ctypes call of C")

    def batch(self, function: str, states: States) -> Task | None:
        return self._task(function, states, "C loop")

    def _task(self, function: str, states: States, how: str) -> Task | None:
        if not self.has(function):
            return None
        given = [np.ascontiguousarray(states[name]) for name in INPUTS[function]]
        dtype, n = given[0].dtype.name, self.dof
        loop = self.loops.get((function, dtype))
        if loop is None:
            text, folder = self.source(function, dtype), Path(self.folder.name)
            loop = self.loops[function, dtype] = CompiledFile(text, folder, f"{function}_{dtype}", len(given))
        out = np.empty((len(given[0]), *((n, n) if function in MATRICES else (n,))), dtype)
        run = loop.bound(given, out)

        def result() -> np.ndarray:
            run()
            return out

        return Task(f"{how}, {compiler()} -O3 -march=native", run, result)
