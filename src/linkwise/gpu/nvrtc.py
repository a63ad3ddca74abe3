"""NVIDIA's run-time compiler by its C interface: CUDA text to machine code for one architecture. It needs no GPU."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from linkwise.gpu.errors import DeviceError

_Program = ctypes.c_void_p


class Compiler:
    """One NVRTC library."""

    def __init__(self, path: str):
        self._library = ctypes.CDLL(path)
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
        self._library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = (major.value, minor.value)

    def compile(self, text: str, name: str, options: Sequence[str]) -> bytes:
        """Machine code for the architecture that the options name; a failure shows the compiler's first error."""
        library = self._library
        program = _Program()
        self._check(
            library.nvrtcCreateProgram(
                ctypes.byref(program), text.encode(), f"{name}.cu".encode(), 0, None, None
            ),
            name,
        )
        try:
            given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            if library.nvrtcCompileProgram(program, len(options), given):
                log = (
                    self._bytes(program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog")
                    .rstrip(b"\0")
                    .decode()
                )
                first = next(
                    (line for line in log.splitlines() if "error" in line), log.strip() or "no reason"
                )
                raise DeviceError(f"NVRTC {self.version[0]}.{self.version[1]} cannot compile {name}: {first}")
            return self._bytes(program, "nvrtcGetCUBINSize", "nvrtcGetCUBIN")
        finally:
            library.nvrtcDestroyProgram(ctypes.byref(program))

    def _bytes(self, program: _Program, size_of: str, get: str) -> bytes:
        size = ctypes.c_size_t()
        self._check(getattr(self._library, size_of)(program, ctypes.byref(size)), get)
        buffer = ctypes.create_string_buffer(size.value)
        self._check(getattr(self._library, get)(program, buffer), get)
        return buffer.raw

    def _check(self, code: int, doing: str) -> None:
        if code:
            raise DeviceError(f"NVRTC fails ({doing}): {self._library.nvrtcGetErrorString(code).decode()}")


@functools.cache
def compiler(newest_major: int | None = None) -> Compiler:
    """The newest library that is found, of at most this major version: a driver loads no code of a later one."""
    found = []
    for path in _candidates():
        try:
            found.append(Compiler(path))
        except (OSError, AttributeError):
            continue
    usable = [each for each in found if newest_major is None or each.version[0] <= newest_major]
    if not usable:
        versions = ", ".join(f"{a}.{b}" for a, b in (each.version for each in found))
        there = f"; found {versions}, the driver takes up to {newest_major}" if versions else ""
        raise DeviceError(
            f"the CUDA run-time compiler (libnvrtc) was not found{there}; pip install linkwise[gpu]"
        )
    return max(usable, key=lambda each: each.version)


def _candidates() -> Iterator[str]:
    """Places where the library may be: in PyPI's packages, in a toolkit, wherever the system looks."""
    package = importlib.util.find_spec("nvidia")
    for folder in (package.submodule_search_locations or ()) if package else ():
        for path in sorted(Path(folder).glob("*/lib/libnvrtc.so.*")):
            if ".alt." not in path.name:
                yield str(path)
    for root in filter(None, (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda")):
        for path in sorted(Path(root).glob("lib64/libnvrtc.so.*")):
            if path.name.count(".") == 2:  # libnvrtc.so.13: the link that names the major version
                yield str(path)
    yield from ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "nvrtc64_130_0.dll", "nvrtc64_120_0.dll")
