"""Machine code that can be loaded without LLVM: one block of bytes that runs at any address.

LLVM emits an object file, which needs a linker. What the compiler makes of a program refers to nothing but
itself (its constants) and, rarely, to a few functions of the C library; so the linking is done here once,
when the code is compiled, and what is stored is position independent. Loading it takes a copy and one change
of the page protection.

Only ELF for x86-64 and AArch64 is handled, on Linux; otherwise ``link`` raises ``UnsupportedObject`` and the caller
uses LLVM. No memory is writable and executable at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import struct
import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

from linkwise.compiler.runtime.host import is_x86
from linkwise.compiler.runtime.relocations import PROCESSORS, UnsupportedObject
from linkwise.core import system
from linkwise.errors import LinkwiseError

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_ALLOCATED, _WRITABLE = 2, 1
_SYMBOLS, _RELOCATIONS, _ZEROS = 2, 4, 8
C_LIBRARY = frozenset({"fma", "fmaf", "memcpy", "memmove", "memset"})


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    start: int
    size: int
    link: int
    target: int  # of relocations: the section that they change
    alignment: int
    entry_size: int


class _Symbol(NamedTuple):
    name: int
    kind: int
    visibility: int
    section: int
    value: int
    size: int


@dataclass(frozen=True)
class Image:
    """Linked code. ``functions`` are offsets of entry points, ``imports`` of the words that take a C
    function."""

    code: bytes
    functions: dict[str, int]
    imports: dict[str, int]

    def pack(self) -> bytes:
        """As bytes: a line of names and offsets for the functions, one for the imports, then the code."""
        lines = (
            " ".join(f"{name} {place}" for name, place in d.items()) for d in (self.functions, self.imports)
        )
        return "\n".join((*lines, "")).encode() + self.code

    @classmethod
    def unpack(cls, data: bytes) -> Image:
        functions, imports, code = data.split(b"\n", 2)
        return cls(code, _places(functions), _places(imports))


def _places(line: bytes) -> dict[str, int]:
    words = line.decode().split()
    return {name: int(place) for name, place in zip(words[::2], words[1::2], strict=True)}


class LoadedImage:
    """Code in executable memory, which is freed with this object."""

    def __init__(self, image: Image):
        self._memory = mmap.mmap(-1, len(image.code), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._memory[:] = image.code
        for name, offset in image.imports.items():
            self._memory[offset : offset + 8] = struct.pack("<Q", system.c_function(name))
        self._pin = ctypes.c_char.from_buffer(
            self._memory
        )  # the map cannot be closed or moved while it is held
        start = ctypes.addressof(self._pin)
        if _mprotect()(start, len(image.code), mmap.PROT_READ | mmap.PROT_EXEC) != 0:
            raise LinkwiseError(f"the system refuses executable memory (error {ctypes.get_errno()})")
        flush = _cache_flush()
        if flush is not None:
            flush(start, start + len(image.code))
        self.functions = {name: start + offset for name, offset in image.functions.items()}
        self.size = len(image.code)


@functools.cache
def _mprotect() -> Any:
    """The system's function (start, size, protection)."""
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return protect


def can_load() -> bool:
    """Whether ``LoadedImage`` works here: on Linux, where code that was just written can be executed."""
    return sys.platform == "linux" and (is_x86() or _cache_flush() is not None)


@functools.cache
def _cache_flush() -> Any:
    """The function (start, end) that makes new instructions visible; None where there is none or it is not needed."""
    if is_x86():
        return None
    for library in (None, "libgcc_s.so.1", "libgcc_s.so"):
        with contextlib.suppress(OSError, AttributeError):
            flush = ctypes.CDLL(library).__getattr__("__clear_cache")
            flush.argtypes, flush.restype = (ctypes.c_void_p, ctypes.c_void_p), None
            return flush
    return None


def link(data: bytes) -> Image:
    """The image of an ELF object file."""
    if len(data) < _HEADER.size or data[:6] != b"\x7fELF\x02\x01":
        raise UnsupportedObject("not an ELF file of 64 bits")
    header = _HEADER.unpack_from(data)
    if header[1] != 1 or header[2] not in PROCESSORS:
        raise UnsupportedObject("not a relocatable ELF file for x86-64 or AArch64")
    processor = PROCESSORS[header[2]]
    starts = [header[6] + k * header[11] for k in range(header[12])]
    sections = [_Section._make(_SECTION.unpack_from(data, start)) for start in starts]
    code, places = _lay_out(data, sections)
    symbols, names = _symbols(data, sections)
    imports: dict[str, int] = {}

    def place(number: int) -> int:
        """Where a symbol is; a function of the C library gets a jump of its own at the end of the code."""
        symbol = symbols[number]
        if symbol.section in places:
            return places[symbol.section] + symbol.value
        name = names[number]
        if symbol.section != 0 or name not in C_LIBRARY:
            raise UnsupportedObject(f"symbol {name!r}")
        if name not in imports:
            code.extend(processor.filler * (-len(code) % 8) + processor.jump)
            imports[name] = len(code)
            code.extend(bytes(8))
        return imports[name] - len(processor.jump)

    for section in sections:
        if section.kind != _RELOCATIONS or section.target not in places:
            continue
        for offset, info, addend in _RELOCATION.iter_unpack(_content(data, section)):
            target = place(info >> 32) + addend
            processor.relocate(code, info & 0xFFFFFFFF, places[section.target] + offset, target)
    functions = {
        name: places[symbol.section] + symbol.value
        for name, symbol in zip(names, symbols, strict=True)
        if symbol.kind == 0x12 and symbol.section in places  # a global function
    }
    return Image(bytes(code), functions, imports)


def _content(data: bytes, section: _Section) -> bytes:
    return data[section.start : section.start + section.size]


def _lay_out(data: bytes, sections: list[_Section]) -> tuple[bytearray, dict[int, int]]:
    """The sections that take part at run time, one after the other, and where each begins."""
    code = bytearray()
    places: dict[int, int] = {}
    for number, section in enumerate(sections):
        if not section.flags & _ALLOCATED or not section.size:
            continue
        if section.flags & _WRITABLE or section.kind == _ZEROS:
            raise UnsupportedObject("writable data")
        code.extend(bytes(-len(code) % max(section.alignment, 1)))
        places[number] = len(code)
        code.extend(_content(data, section))
    return code, places


def _symbols(data: bytes, sections: list[_Section]) -> tuple[list[_Symbol], list[str]]:
    for section in sections:
        if section.kind == _SYMBOLS:
            symbols = [_Symbol._make(entry) for entry in _SYMBOL.iter_unpack(_content(data, section))]
            starts = [sections[section.link].start + symbol.name for symbol in symbols]
            return symbols, [data[start : data.index(b"\0", start)].decode() for start in starts]
    return [], []
