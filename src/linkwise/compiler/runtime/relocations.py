"""What a linker has to know about a processor: its relocations, and a jump to an address that is known later.

The numbers are those of the ELF supplements for the x86-64 and the AArch64 architecture. Places are offsets in the
image, which begins at a page; so the distance of two places and the low twelve bits of one are known when it is linked.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

_PAGE = 0xFFF
_SCALES = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4}  # ADD and LDST8 to LDST128 _ABS_LO12_NC


class UnsupportedObject(Exception):
    """The object file contains something that this linker does not support."""


@dataclass(frozen=True)
class Processor:
    """``jump`` is followed by the eight bytes of the address that it jumps to; ``filler`` is never executed."""

    jump: bytes
    filler: bytes
    relocate: Callable[[bytearray, int, int, int], None]
    """(code, kind, place, target with its addend)"""


def _x86_64(code: bytearray, kind: int, here: int, target: int) -> None:
    if kind not in (2, 4):  # R_X86_64_PC32, R_X86_64_PLT32
        raise UnsupportedObject(f"relocation {kind} of x86-64")
    _store(code, here, "<i", target - here)


def _aarch64(code: bytearray, kind: int, here: int, target: int) -> None:
    match kind:
        case 260:  # R_AARCH64_PREL64
            _store(code, here, "<q", target - here)
        case 261:  # R_AARCH64_PREL32
            _store(code, here, "<i", target - here)
        case 282 | 283:  # R_AARCH64_JUMP26, R_AARCH64_CALL26
            _insert(code, here, _words(target - here, 26), 0x03FFFFFF)
        case 280:  # R_AARCH64_CONDBR19
            _insert(code, here, _words(target - here, 19) << 5, 0x00FFFFE0)
        case 273:  # R_AARCH64_LD_PREL_LO19
            _insert(code, here, _words(target - here, 19) << 5, 0x00FFFFE0)
        case 274:  # R_AARCH64_ADR_PREL_LO21
            _insert_address(code, here, target - here)
        case 275:  # R_AARCH64_ADR_PREL_PG_HI21
            _insert_address(code, here, (target >> 12) - (here >> 12))
        case _ if kind in _SCALES:
            low, scale = target & _PAGE, _SCALES[kind]
            if low & ((1 << scale) - 1):
                raise UnsupportedObject(f"an address that is no multiple of {1 << scale} (relocation {kind})")
            _insert(code, here, (low >> scale) << 10, 0x003FFC00)
        case _:
            raise UnsupportedObject(f"relocation {kind} of AArch64")


def _words(distance: int, bits: int) -> int:
    """A distance in instructions, as the low bits of a word."""
    if distance & 3:
        raise UnsupportedObject("a jump between instructions")
    return _fitting(distance >> 2, bits)


def _insert_address(code: bytearray, here: int, distance: int) -> None:
    """The 21 bits of ADR and ADRP: two in one place, nineteen in another."""
    bits = _fitting(distance, 21)
    _insert(code, here, (bits & 3) << 29 | (bits >> 2) << 5, 0x60FFFFE0)


def _fitting(value: int, bits: int) -> int:
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise UnsupportedObject(f"a distance that needs more than {bits} bits")
    return value & ((1 << bits) - 1)


def _insert(code: bytearray, here: int, bits: int, mask: int) -> None:
    (word,) = struct.unpack_from("<I", code, here)
    struct.pack_into("<I", code, here, (word & ~mask & 0xFFFFFFFF) | bits)


def _store(code: bytearray, here: int, form: str, value: int) -> None:
    try:
        struct.pack_into(form, code, here, value)
    except struct.error:
        raise UnsupportedObject("a distance that does not fit") from None


PROCESSORS = {
    62: Processor(bytes.fromhex("ff2500000000"), b"\x90", _x86_64),  # jmp [rip]
    183: Processor(bytes.fromhex("5000005800021fd6"), b"\0", _aarch64),  # ldr x16, here + 8; br x16
}
"""By their number in the head of an ELF file."""
