"""Stack that functions need, measured with the C compiler that is here."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
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
    found: dict[str, int] = {}
    for text in _written(sources, compiler, (*flags, "-fstack-usage"))["su"]:
        found |= _read(text)
    return found


@dataclass(frozen=True)
class Depth:
    """Stack of one function with all that it calls.

    Args:
        own: bytes of the function alone, as ``-fstack-usage`` says.
        bytes: along the deepest chain of calls, as far as functions are in the sources.
        outside: functions of libraries that are called; their stack is not counted.
        open: whether a function calls itself or takes memory whose size depends on data, so that there is no bound.
    """

    own: int
    bytes: int
    outside: tuple[str, ...] = ()
    open: bool = False


def depths(
    sources: Mapping[str, str], compiler: str = "gcc", flags: tuple[str, ...] = ("-O2",)
) -> dict[str, Depth]:
    """Stack of every function by name with all that it calls, from the call graph of GCC (``-fcallgraph-info=su``).

    Args:
        sources: texts of files by name, headers included; files that end in .c are compiled.
        compiler: a GCC; empty where that is not possible.
        flags: further options.
    """
    frames: dict[str, int | None] = {}
    calls: dict[str, list[str]] = {}
    dynamic: set[str] = set()
    texts = _written(sources, compiler, (*flags, "-fstack-usage", "-fcallgraph-info=su"))
    own = {name: size for text in texts["su"] for name, size in _read(text).items()}
    for text in texts["ci"]:
        for title, label in _NODE.findall(text):
            if size := _BYTES.search(label):
                frames[title] = int(size[1])
                dynamic |= {title} if size[2] == "dynamic" else set()
        for caller, callee in _EDGE.findall(text):
            calls.setdefault(caller, []).append(callee)

    def depth(title: str, above: tuple[str, ...]) -> Depth:
        frame = frames.get(title)
        if frame is None:
            return Depth(0, 0, (title,))
        if title in above:
            return Depth(0, 0, open=True)
        inner = [depth(callee, (*above, title)) for callee in dict.fromkeys(calls.get(title, ()))]
        outside = tuple(dict.fromkeys(name for d in inner for name in d.outside))
        unknown = title in dynamic or any(d.open for d in inner)
        below = max((d.bytes for d in inner), default=0)
        return Depth(own.get(title.rsplit(":", 1)[-1], frame), frame + below, outside, unknown)

    return {title.rsplit(":", 1)[-1]: depth(title, ()) for title in frames}


_NODE = re.compile(r'node: \{ title: "([^"]+)" label: "([^"]*)"')
_EDGE = re.compile(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"')
_BYTES = re.compile(r"(\d+) bytes \((static|dynamic)")


def _written(sources: Mapping[str, str], compiler: str, flags: tuple[str, ...]) -> dict[str, list[str]]:
    """What a compiler writes besides objects, by the endings su and ci; nothing where that is not possible."""
    found: dict[str, list[str]] = {"su": [], "ci": []}
    if shutil.which(compiler) is None:
        return found
    with tempfile.TemporaryDirectory(prefix="linkwise-stack-") as folder:
        for name, text in sources.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        for name in (n for n in sources if n.endswith(".c")):
            command = [compiler, "-std=c99", *flags, "-c", name, "-o", f"{name}.o"]
            try:
                subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=_TIMEOUT)
            except (OSError, subprocess.SubprocessError):
                return found
        for ending, texts in found.items():
            texts += [file.read_text(encoding="utf-8") for file in sorted(Path(folder).glob(f"*.{ending}"))]
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
