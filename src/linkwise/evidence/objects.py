"""Instructions and stack of a function, read from what compilers for several processors make of it."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from linkwise.compiler.runtime.host import is_x86
from linkwise.embedded import stack
from linkwise.embedded.processors import PROCESSORS, conditional_jumps

_TIMEOUT = 120.0
_START = re.compile(r"^[0-9a-f]+ <([^>]+)>:$")
_CALLS = re.compile(r"call\w*|bl|blx|jal|jalr")


def measured(sources: Mapping[str, str], functions: tuple[str, ...]) -> list[dict[str, Any]]:
    """Instructions and bytes of stack of functions, for every compiler that is installed.

    ``stack`` is that of the function itself (``-fstack-usage``), ``depth`` that of the deepest chain of calls in the
    compiler's call graph (None: there is no bound), and ``outside`` names functions of libraries, which do not count.
    Code without conditional jumps and calls executes each of its instructions once, so that a call takes exactly as
    many as there are. ``instructions`` is None where that is not so.

    Args:
        sources: texts of files by name, headers included; files that end in .c are compiled.
        functions: names of functions in C.
    """
    native = ("-O2", "-mfma") if is_x86() else ("-O2",)
    known = [("gcc", "objdump", platform.machine(), native)]
    known += [(p.compiler, f"{p.tools}objdump", p.title, tuple(p.flags.split())) for p in PROCESSORS]
    found = []
    for compiler, disassembler, title, flags in known:
        if not all(map(shutil.which, (compiler, disassembler))):
            continue
        texts = _disassembled(sources, compiler, disassembler, flags)
        depths = stack.depths(sources, compiler, flags)
        for name in functions:
            if name in texts:
                found.append(
                    {
                        "function": name,
                        "processor": title,
                        "compiler": f"{stack.version(compiler)}, {' '.join(flags)}",
                        "instructions": _instructions(texts[name]),
                        **_depth(depths.get(name)),
                    }
                )
    return found


def _depth(found: stack.Depth | None) -> dict[str, Any]:
    if found is None:
        return {"stack": None, "depth": None, "outside": []}
    return {"stack": found.own, "depth": None if found.open else found.bytes, "outside": list(found.outside)}


def _disassembled(
    sources: Mapping[str, str], compiler: str, disassembler: str, flags: tuple[str, ...]
) -> dict[str, str]:
    """Lines of every function by its name; empty where compiling fails."""
    found: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory(prefix="linkwise-objects-") as folder:
        for name, text in sources.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        for name in (n for n in sources if n.endswith(".c")):
            try:
                for command in (
                    [compiler, "-std=c99", *flags, "-c", name, "-o", "it.o"],
                    [disassembler, "-d", "--no-show-raw-insn", "it.o"],
                ):
                    done = subprocess.run(
                        command, cwd=folder, check=True, capture_output=True, text=True, timeout=_TIMEOUT
                    )
            except (OSError, subprocess.SubprocessError):
                return {}
            lines: list[str] = []
            for line in done.stdout.splitlines():
                if start := _START.match(line):
                    lines = found.setdefault(start[1], [])
                elif "\t" in line:
                    lines.append(line)
    return {name: "\n".join(lines) for name, lines in found.items()}


def _instructions(text: str) -> int | None:
    """How many a call executes; None where jumps or calls leave that open."""
    rows = [line.split("\t") for line in text.splitlines()]
    words = [row[1].split()[0] for row in rows if len(row) > 1 and row[1].split()]
    # constants behind the code and padding are no instructions
    words = [
        w for w in words if not w.startswith(".") and w not in ("nop", "nopw", "nopl", "data16", "xchg", "cs")
    ]
    with_bytes = "\n".join(f"{row[0]}\t\t" + "\t".join(row[1:]) for row in rows)
    if conditional_jumps(with_bytes) or any(_CALLS.fullmatch(w) for w in words):
        return None
    return len(words)
