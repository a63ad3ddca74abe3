"""Unpacking what a file has packed, up to a limit: a few bytes of it can stand for gigabytes."""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Callable
from typing import IO, Any

from linkwise.errors import needed
from linkwise.files.tables import bounds
from linkwise.files.tables.table import TableError

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
BLOCK = 1 << 20  # bytes that are unpacked at once


def unpacked(data: bytes, method: str, where: str) -> bytes:
    """The bytes that ``data`` stands for.

    Args:
        data: the packed bytes.
        method: "", "none", "bz2", "lz4" or "zstd".
        where: the place, for messages.
    """
    if method in ("", "none"):
        return data
    if method not in _METHODS:
        raise TableError(f"{where}: packed by {method!r}; expected one of {', '.join(_METHODS)}")
    allowed = bounds.limit(len(data))
    unpack = _METHODS[method]()
    try:
        found = unpack(data, allowed + 1)
    except MemoryError:
        raise
    except Exception as error:  # lz4 and zstandard have errors of their own
        raise TableError(f"{where}: damaged ({error})") from None
    bounds.check(f"{where}: unpacked", len(found), 1, len(data))
    return found


def unpack_file(source: IO[bytes], target: IO[bytes], where: str) -> None:
    """Unpack a file that was packed by zstd as a whole."""
    reader = needed("zstandard", "logs").ZstdDecompressor().stream_reader(source)
    total = 0
    try:
        while block := reader.read(BLOCK):
            total += len(block)
            bounds.check(f"{where}: unpacked", total, 1)
            target.write(block)
    except TableError:
        raise
    except Exception as error:
        raise TableError(f"{where}: damaged ({error})") from None


def zlib_size(source: IO[bytes], size: int, allowed: int) -> int:
    """How many bytes the next ``size`` bytes of a file stand for, counted up to ``allowed``."""
    unpack, total = zlib.decompressobj(), 0
    while size > 0 and total <= allowed and not unpack.eof:
        data = source.read(min(size, BLOCK))
        if not data:
            break
        size -= len(data)
        while data and total <= allowed:
            total += len(unpack.decompress(data, BLOCK))
            data = unpack.unconsumed_tail
    return total


def _bz2() -> Callable[[bytes, int], bytes]:
    return lambda data, limit: bz2.BZ2Decompressor().decompress(data, limit)


def _lz4() -> Callable[[bytes, int], bytes]:
    frame: Any = needed("lz4.frame", "logs")
    return lambda data, limit: frame.LZ4FrameDecompressor().decompress(data, max_length=limit)


def _zstd() -> Callable[[bytes, int], bytes]:
    package: Any = needed("zstandard", "logs")
    return lambda data, limit: package.ZstdDecompressor().stream_reader(data).read(limit)


_METHODS: dict[str, Callable[[], Callable[[bytes, int], bytes]]] = {"bz2": _bz2, "lz4": _lz4, "zstd": _zstd}
