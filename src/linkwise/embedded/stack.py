"""Stack that functions need, measured with the C compiler that is here."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

_TIMEOUT = 120.0  # [s] for one compilation


def measured(
    sources: Mapping[str, str], compiler: str = "gcc", flags: tuple[str, ...] = ("-O2",)
) -> dict[str, int]:
    """Bytes of stack of every function by name, as ``-fstack-usage`` says; empty where that is not possible.

    Args:
        sources: texts of files by name, headers included; files that end in .c are compiled.
        compiler: a compiler that knows ``-fstack-usage``.
        flags: further options.
    """
    if shutil.which(compiler) is None:
        return {}
    found: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="linkwise-stack-") as folder:
        for name, text in sources.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        for name in sources:
            if not name.endswith(".c"):
                continue
            command = [compiler, "-std=c99", *flags, "-fstack-usage", "-c", name, "-o", f"{name}.o"]
            try:
                subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=_TIMEOUT)
            except (OSError, subprocess.SubprocessError):
                return {}
            for file in Path(folder).glob("*.su"):
                found |= _read(file.read_text(encoding="utf-8"))
                file.unlink()
    return found


def version(compiler: str = "gcc") -> str:
    """The compiler and its processor in words."""
    number, machine = (
        subprocess.run(
            [compiler, option], check=True, capture_output=True, text=True, timeout=_TIMEOUT
        ).stdout.strip()
        for option in ("-dumpfullversion", "-dumpmachine")
    )
    return f"{compiler} {number} for {machine}"


def version_or_none() -> str:
    """The same; empty where there is no compiler that says it."""
    try:
        return version()
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""


def _read(text: str) -> dict[str, int]:
    rows = (line.split("\t") for line in text.splitlines())
    return {row[0].rsplit(":", 1)[-1]: int(row[1]) for row in rows if len(row) == 3}
