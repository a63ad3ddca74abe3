"""One function of a package as C: its text, its arguments, its memory."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from linkwise.compiler.emit import c, clike
from linkwise.compiler.ir.operations import Operations
from linkwise.compiler.rollout import RolloutProgram
from linkwise.core.once import once
from linkwise.embedded.arguments import UNITS
from linkwise.embedded.entries import Entry

_SAVED = 512
"""Bytes of a frame besides values: saved registers, alignment, arguments of calls of the arithmetic in software."""
_LOCAL = re.compile(r"^\s+(?:const )?(?:double|float|bool|long|unsigned long long) \w+ = ", re.MULTILINE)
_NUMBER = re.compile(r"(?<![\w.])\d+\.\d*(?:e[+-]?\d+)?f?")


@dataclass(frozen=True, eq=False)
class Coded:
    """A function with its name in C. ``header`` is the package's header."""

    entry: Entry
    name: str
    header: str
    fma: bool = True
    constant_time: bool = False

    @once
    def function(self) -> c.CFunction:
        program = self.entry.program if self.fma else c.unfused(self.entry.program)
        return c.CFunction(program, self.name, self.entry.summary)

    @once
    def text(self) -> str:
        """The source."""
        return c.source(
            self.entry.program,
            function_name=self.name,
            description=self.entry.summary,
            fma=self.fma,
            constant_time=self.constant_time,
            package=c.Package((self.header, "lw_fma.h"), ("lw_fma", "lw_fmaf")),
        )

    @property
    def real(self) -> str:
        return self.function.real

    @property
    def arguments(self) -> list[c.Argument]:
        return self.function.arguments

    @property
    def room(self) -> int:
        """Scalars of memory that the caller gives."""
        return sum(a.size or 0 for a in self.arguments if a.array.kind == "scratch")

    @property
    def operations(self) -> Operations:
        """Of one call, or of one step of a loop."""
        program: Any = self.entry.program
        return program.step.operations if isinstance(program, RolloutProgram) else program.operations

    @property
    def stack_bound(self) -> int:
        """Bytes of stack that no compiler needs more of: one place for every value and constant of the function."""
        values = len(_LOCAL.findall(self.text)) + len(set(_NUMBER.findall(self.text)))
        return _SAVED + 8 * -(-values * (8 if self.real == "double" else 4) // 8)

    def comment(self) -> str:
        """The documentation in the header."""
        lines = [f"{self.name}: {self.entry.summary}.", ""]
        for a in self.arguments:
            unit = self.entry.words.get(a.array.title, UNITS.get(a.array.title, ""))
            lines.append(f"  {a.name:<12} {a.role}  {a.shape}{': ' if unit else ''}{unit}")
        lines += [
            f"  {number:<12} in   {c.NUMBERS.get(number, 'a whole number')}"
            for number in self.function.nest.numbers
        ]
        lines += self.function.returned()
        unit = " of a step" if self.function.nest.numbers else ""
        lines += ["", f"Cost{unit}: {self.operations}."]
        return clike.comment(lines, 110, indent=" " * 20)
