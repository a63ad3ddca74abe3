"""Size of a robot's C code: lines, bytes, operations, and bytes of machine code where a C compiler is here."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from linkwise.robot.robot import Robot

FUNCTIONS = ("gravity_torques", "inverse_dynamics", "mass_matrix", "forward_dynamics")
_TIMEOUT = 20.0  # [s] for one compilation
LARGEST = 400_000  # [bytes] of source that is compiled here


@dataclass(frozen=True)
class Code:
    """The generated C of one function."""

    function: str
    lines: int
    bytes: int
    multiplications: int
    """With divisions."""
    additions: int
    machine: int | None
    """Bytes of instructions and constants, compiled with -O2 for this machine; None without a compiler."""


def code_sizes(robot: Robot) -> list[Code]:
    """The sizes of the functions that controllers need most."""
    found = []
    for name in FUNCTIONS:
        kernel = robot.kernel(name)
        source = kernel.source("c")
        count = kernel.operations
        found.append(
            Code(
                name,
                source.count("\n"),
                len(source.encode()),
                count.multiplications + count.divisions,
                count.additions,
                _compiled(source),
            )
        )
    return found


def compiler() -> str | None:
    """A C compiler of this machine; None where there is none."""
    return next((name for name in ("gcc", "clang", "cc") if shutil.which(name)), None)


def _compiled(source: str) -> int | None:
    """Bytes of the object file's instructions and constants."""
    tool = compiler()
    if tool is None or shutil.which("size") is None or len(source) > LARGEST:
        return None
    with tempfile.TemporaryDirectory(prefix="linkwise-size-") as folder:
        Path(folder, "f.c").write_text(source, encoding="utf-8")
        try:
            for command in ([tool, "-std=c99", "-O2", "-c", "f.c", "-o", "f.o"], ["size", "f.o"]):
                ran = subprocess.run(
                    command, cwd=folder, check=True, capture_output=True, text=True, timeout=_TIMEOUT
                )
            return int(ran.stdout.splitlines()[1].split()[0])
        except (OSError, subprocess.SubprocessError, ValueError, IndexError):
            return None
