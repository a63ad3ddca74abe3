"""The vocabulary that all LLVM text is written with: how many lanes, of what type, and a writer of
instructions."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
VECTOR_BYTES = 32  # of vectors whose constants are kept in memory as a whole
_ALIGNED = 64  # bytes: where tables begin
_AGAIN = re.compile(r"\.again\d+\b")
_SLOTS = re.compile(r"^.*%slot.*\n", re.MULTILINE)
_BYTES = np.array([b"\\%02X" % k for k in range(256)])  # as LLVM spells them


@dataclass(frozen=True)
class Lanes:
    """How many states are computed side by side, and in which precision."""

    width: int
    dtype: str

    @property
    def scalar(self) -> str:
        return "double" if self.dtype == "float64" else "float"

    @property
    def bits(self) -> int:
        return 64 if self.dtype == "float64" else 32

    @property
    def bytes(self) -> int:
        return self.bits // 8

    @property
    def quad(self) -> int:
        """Scalars in 128 bits, or all lanes where there are fewer."""
        return min(self.width, 128 // self.bits)

    @property
    def real(self) -> str:
        return self.vector(self.scalar)

    def vector(self, element: str, width: int | None = None) -> str:
        width = self.width if width is None else width
        return element if width == 1 else f"<{width} x {element}>"

    def splat(self, element: str, literal: str) -> str:
        """A constant in every lane."""
        return literal if self.width == 1 else f"splat ({element} {literal})"

    @property
    def stores_constants(self) -> bool:
        """Whether constants are kept in memory as whole vectors, which instructions read as operands.

        LLVM keeps one scalar and broadcasts it by an instruction of its own. AVX-512 broadcasts operands, and vectors
        of 128 bits are kept whole anyway.
        """
        return self.width * self.bytes == VECTOR_BYTES

    @property
    def suffix(self) -> str:
        """What LLVM appends to the names of its intrinsics."""
        return f"f{self.bits}" if self.width == 1 else f"v{self.width}f{self.bits}"


HEAD = "define void @run(i64 %first, i64 %count, ptr %arguments, ptr %scratch) nounwind alignstack(64) {"


def function(lines: list[str]) -> str:
    """The text of ``run`` around its lines; the stack is aligned for vectors."""
    return "\n".join([HEAD, "entry:", *lines, "}", ""])


class Writer:
    """Collects the instructions of a function."""

    def __init__(self):
        self.lines: list[str] = []
        self.first_lines: list[str] = []  # of the function's first block
        self.block = "entry"
        self._block_start = self._count = self._slots = 0
        self._free: dict[str, list[str]] = {}
        self._reads = 0  # of places on the stack
        self.spills = True  # whether long bodies use them
        self._known: dict[str, Any] = {}
        self._constants: dict[tuple[str, str], str] = {}
        self._bounded = False
        self.scopes = [0]
        """Numbers of the blocks around what is written that do not always run, the innermost last."""
        self._scopes = 0

    def value(self, instruction: str, name: str | None = None) -> str:
        """Write an instruction that has a result; the name of the result."""
        if name is None:
            self._count += 1
            name = f"%t{self._count}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def enter(self) -> None:
        """A block that does not always run begins; it ends with ``scopes.pop``."""
        self._scopes += 1
        self.scopes.append(self._scopes)

    def effect(self, instruction: str) -> None:
        """Write an instruction without a result."""
        self.lines.append(f"  {instruction}")

    def once(self, key: str, make: Callable[[], T]) -> T:
        """What is found once for the function that is written."""
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    def slot(self, kind: str, align: int) -> str:
        """A place on the stack for a value of this type, until it is free again."""
        if free := self._free.get(kind):
            return free.pop()
        self._slots += 1
        name = f"%slot{self._slots}"
        self.first_lines.append(f"  {name} = alloca {kind}, align {align}")
        return name

    def read_slot(self, kind: str, slot: str, name: str) -> str:
        """A value that was stored in a place on the stack, with a name that tells what it was called then."""
        self._reads += 1
        return self.value(f"load {kind}, ptr {slot}", f"{name.partition('.again')[0]}.again{self._reads}")

    def free(self, kind: str, slot: str) -> None:
        """A place on the stack may hold another value."""
        self._free.setdefault(kind, []).append(slot)

    def argument(self, kind: str, k: int) -> str:
        """Word k of the arguments of ``run``."""
        address = self.value(f"getelementptr i64, ptr %arguments, i64 {k}")
        return self.value(f"load {kind}, ptr {address}")

    def start_block(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label
        self._block_start = len(self.lines)

    @property
    def block_length(self) -> int:
        """Lines of the block so far."""
        return len(self.lines) - self._block_start

    def stored_constant(self, vector: str, text: str) -> str:
        """A constant vector as a load from the module's memory, which ``definitions`` defines."""
        name = self._constants.setdefault((vector, text), f"@vector{len(self._constants)}")
        return self.value(f"load {vector}, ptr {name}, align {VECTOR_BYTES}, !invariant.load !0")

    def schedule_as_written(self) -> None:
        """Instructions before and after this place keep their order."""
        self._bounded = True
        self.effect("call void @llvm.codeview.annotation(metadata !1)")

    def definitions(self) -> str:
        """What the module must define besides the function that was written."""
        text = "".join(
            f"{name} = private unnamed_addr constant {vector} {value}, align {VECTOR_BYTES}\n"
            for (vector, value), name in self._constants.items()
        )
        if self._constants:
            text += "!0 = !{}\n"
        if self._bounded:
            text += 'declare void @llvm.codeview.annotation(metadata)\n!1 = !{!"order"}\n'
        return text


def without_slots(text: str) -> str:
    """The text of a module in which no value goes to a ``slot``."""
    return _AGAIN.sub("", _SLOTS.sub("", text)) if "%slot" in text else text


def gathered(writer: Writer, lanes: Lanes, scalars: Sequence[str]) -> str:
    """One scalar in each lane."""
    if lanes.width == 1:
        return scalars[0]
    vector = "poison"
    for lane, scalar in enumerate(scalars):
        vector = writer.value(f"insertelement {lanes.real} {vector}, {lanes.scalar} {scalar}, i64 {lane}")
    return vector


def literal(value: float, dtype: str) -> str:
    """A constant as LLVM spells it exactly: the bits of a double, for a float those of the rounded number."""
    if dtype == "float32":
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            value = math.copysign(math.inf, value)
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def table(name: str, numbers: np.ndarray) -> str:
    """A constant of the module as bytes, which are written and read much faster than a list of numbers."""
    content = numbers.view(np.uint8)
    listed = _BYTES[content].tobytes().decode()
    return f'@{name} = private unnamed_addr constant [{len(content)} x i8] c"{listed}", align {_ALIGNED}\n'


def intrinsics(lanes: Lanes) -> str:
    """Declarations of what the spellings call."""
    real, suffix = lanes.real, lanes.suffix
    return "".join(
        f"declare {real} @llvm.{name}.{suffix}({', '.join([real] * count)})\n"
        for name, count in (("fma", 3), ("sqrt", 1), ("fabs", 1))
    )
