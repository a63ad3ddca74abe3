"""What this machine is: its vector width, and an identity that compiled code is filed under.

Both are needed before LLVM is loaded, because code from the cache runs without it.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import sys

from linkwise.core import system
from linkwise.errors import LinkwiseError

_VECTOR_BITS = ({"avx512f", "avx512dq", "avx512vl"}, 512), ({"avx2", "fma"}, 256)
_LONGEST_SVE = 512  # bits that are used; longer registers exist only in simulators
_SVE_LENGTH = 51  # PR_SVE_GET_VL: bytes, in the lower sixteen bits


@functools.cache
def description() -> str:
    """Processor and features, as the system states them for the first core."""
    fields = _cpuinfo() or _llvm_host()
    return f"{sys.platform} {platform.machine()} {fields} {sve_bits() or ''}".rstrip()


def is_x86() -> bool:
    """Whether the processor is of the family x86-64."""
    return platform.machine().lower() in ("x86_64", "amd64")


@functools.cache
def vector_bits() -> int:
    """Width of the vectors that are used: at most what the environment variable LINKWISE_VECTOR_BITS says.

    Narrower vectors give the same bits, later: so results of another processor can be checked on this one.
    """
    widest, text = _widest_vector(), os.environ.get("LINKWISE_VECTOR_BITS", "")
    if text and text not in ("128", "256", "512"):
        raise LinkwiseError(f"LINKWISE_VECTOR_BITS: expected 128, 256 or 512, got {text!r}")
    return min(widest, int(text)) if text else widest


def _widest_vector() -> int:
    """Width of the widest vector registers that are worth using: AVX-512, AVX2, long SVE; else 128 (SSE2, NEON)."""
    if sve_bits() > 128:
        return min(1 << (sve_bits().bit_length() - 1), _LONGEST_SVE)
    if not is_x86():
        return 128
    features = set(description().replace("+", " ").replace(",", " ").split())
    return next((bits for needed, bits in _VECTOR_BITS if needed <= features), 128)


@functools.cache
def vector_registers() -> int:
    """How many registers hold reals or vectors of them: 16 of x86, 32 with AVX-512 and of others."""
    if not is_x86():
        return 32
    return 32 if _widest_vector() == 512 else 16


@functools.cache
def sve_bits() -> int:
    """Length of this process's SVE registers, as Linux on AArch64 states it; 0 where there are none."""
    if sys.platform != "linux" or platform.machine() != "aarch64" or not system.c_function("prctl"):
        return 0
    found: int = ctypes.CDLL(None).prctl(_SVE_LENGTH, 0, 0, 0, 0)
    return 8 * (found & 0xFFFF) if found > 0 else 0


def lanes(dtype: str) -> int:
    """How many states fit side by side in a register."""
    return vector_bits() // (64 if dtype == "float64" else 32)


def _cpuinfo() -> str:
    """The constant fields of the first processor in /proc/cpuinfo; empty where there is no such file."""
    wanted = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags")
    wanted += ("Features", "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision")
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            first = file.read(8192).split("\n\n")[0]  # the kernel writes no more cores than are read
    except OSError:
        return ""
    pairs = (line.partition(":") for line in first.splitlines())
    return " ".join(value.strip() for name, _, value in pairs if name.strip() in wanted)


def _llvm_host() -> str:
    import llvmlite.binding as llvm

    return f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
