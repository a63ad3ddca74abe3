"""Generated CUDA kernels, compiled as C++ with ``shim.hpp`` and run on the CPU."""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from linkwise.compiler.emit.cuda.source import Module

HERE = Path(__file__).parent
COMPILER = shutil.which("g++")
# no optimisation: a kernel runs a few states, and without contraction every level gives the same bits
OPTIONS = ("-std=c++17", "-O0", "-ffp-contract=off", "-mfma", "-Wno-unknown-pragmas", "-fPIC")


@functools.cache
def shim() -> Path:
    """``shim.hpp`` beside its precompiled form, which all processes of a run share; plain if they share no folder."""
    shared = os.environ.get("LINKWISE_CACHE")
    if not shared:
        return HERE / "shim.hpp"
    folder = Path(shared) / "shim"
    if not folder.exists():
        Path(shared).mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=shared))
        shutil.copy(HERE / "shim.hpp", made)
        subprocess.run([COMPILER, *OPTIONS, made / "shim.hpp", "-o", made / "shim.hpp.gch"], check=True)
        try:
            made.rename(folder)  # with its content at once
        except OSError:  # another process was faster
            shutil.rmtree(made)
    return folder / "shim.hpp"


class OnCpu:
    """One module's kernel as a function of NumPy arrays."""

    def __init__(self, module: Module, folder: Path, pointers: int, sizes: int):
        call = ", ".join(
            f"*(typename argument<{k}, decltype({module.name})>::type *)&words[{k}]"
            for k in range(pointers + sizes + (1 if module.scratch else 0))
        )
        text = f"""
#include "{shim()}"
{module.text}
template <int k, class F> struct argument;
template <int k, class R, class A, class... Rest> struct argument<k, R(A, Rest...)> : argument<k - 1, R(Rest...)> {{}};
template <class R, class A, class... Rest> struct argument<0, R(A, Rest...)> {{ using type = A; }};
extern "C" void entry(long long *words, unsigned int blocks, unsigned int threads, int reversed)
{{
    launch(blocks, threads, reversed != 0, [=] {{ {module.name}({call}); }});
}}
"""
        folder.mkdir(exist_ok=True)
        source, library = folder / f"{module.name}.cpp", folder / f"{module.name}.so"
        source.write_text(text)
        command = [COMPILER, *OPTIONS, "-shared", source, "-o", library]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        self.module = module
        self._entry = ctypes.CDLL(str(library)).entry
        self._entry.argtypes = [ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint, ctypes.c_int]

    def __call__(
        self,
        outputs: Sequence[np.ndarray],
        inputs: Sequence[np.ndarray],
        sizes: Sequence[int],
        count: int,
        reverse=False,
        blocks: int | None = None,
    ) -> None:
        blocks = blocks or -(-count // (self.module.states or self.module.threads))
        words = [a.ctypes.data for a in (*outputs, *inputs)] + [*sizes]
        if self.module.scratch:
            memory = np.full(blocks * self.module.scratch, 0xFF, np.uint8)  # NaNs, as in shared memory
            words.append(memory.ctypes.data)
        words = np.array(words, np.int64)
        self._entry(words.ctypes.data, blocks, self.module.threads, int(reverse))
