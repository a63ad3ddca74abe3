"""Environments in which this machine computes as other processors do: other instructions of BLAS, NumPy and kernels."""

from __future__ import annotations

import importlib
import platform

from linkwise.compiler.runtime import host

KERNELS = {"SkylakeX": 512, "Zen": 256, "Haswell": 256, "Sandybridge": 128, "Nehalem": 128}
"""Of OpenBLAS, with the vectors [bits] of the processors that they were written for."""


def environments() -> dict[str, dict[str, str]]:
    """By the name of an OpenBLAS kernel; none where the processor is of another kind, or has no such instructions."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return {}
    found = {}
    for name, bits in KERNELS.items():
        if bits <= host.vector_bits():
            found[name] = {"OPENBLAS_CORETYPE": name, "LINKWISE_VECTOR_BITS": str(bits)}
    if "Nehalem" in found:
        found["Nehalem"]["NPY_DISABLE_CPU_FEATURES"] = " ".join(numpy_features())
    return found


def numpy_features() -> list[str]:
    """Instructions that NumPy uses here beyond those that every processor has: its sines and logarithms, too."""
    for module in ("numpy._core._multiarray_umath", "numpy.core._multiarray_umath"):
        try:
            core = importlib.import_module(module)
        except ImportError:
            continue
        return [name for name in core.__cpu_dispatch__ if core.__cpu_features__.get(name)]
    return []


CHECKED = (
    "SkylakeX",
    "Haswell",
    "Nehalem",
    "Zen",
    "Sandybridge",
)  # by .ci/processors: the first three that there are

if __name__ == "__main__":
    found = environments()
    for kind in [name for name in CHECKED if name in found][:3]:
        print(" ".join(f"{name}={value.replace(' ', ',')}" for name, value in found[kind].items()))
