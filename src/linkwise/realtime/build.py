"""Compiles C source with the system's compiler and loads it."""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from linkwise.errors import LinkwiseError

_TRIES = (("-O2", "-march=native"), ("-O2",))


class BuildError(LinkwiseError, RuntimeError):
    """The system's compiler is missing or failed; the message says which and why."""


def compiler() -> str:
    """The C compiler to use: $CC, else cc, gcc or clang."""
    wanted = os.environ.get("CC")
    for name in (wanted,) if wanted else ("cc", "gcc", "clang"):
        found = shutil.which(name)
        if found:
            return found
    looked = f"$CC = {wanted}" if wanted else "cc, gcc and clang"
    raise BuildError(
        f"the real-time runtime is built with a C compiler, and there is none (looked for {looked})"
    )


@functools.cache
def library(source: str) -> ctypes.CDLL:
    """Compile and load a C source, once per process; the files are removed after loading."""
    cc = compiler()
    with tempfile.TemporaryDirectory(prefix="linkwise-realtime-") as folder:
        text, binary = Path(folder) / "realtime.c", Path(folder) / "realtime.so"
        text.write_text(source, encoding="utf-8")
        said = ""
        for options in _TRIES:
            built = subprocess.run(
                [cc, "-std=c11", *options, "-shared", "-fPIC", "-pthread", "-o", binary, text, "-lm"],
                cwd=folder,  # an empty entry of CPATH means the current folder
                capture_output=True,
                text=True,
                check=False,
            )
            if built.returncode == 0:
                return ctypes.CDLL(str(binary))
            said = built.stderr
    first = next((line for line in said.splitlines() if "error" in line), said.strip())
    raise BuildError(f"{cc} could not build the runtime: {first}")
