"""One chunk of a raw array as the bytes of a Zarr shard: smaller chunks, compressed one by one, and an index of them.

Zarr's own library could write these, too; here the bytes are made in the thread that computed them, and the store
decides how they reach the disk. Elements of a value come first (all samples of joint 1, of joint 2 …): that is how
they were computed, and neighbours in time are not alike, but the samples of one joint have common exponents.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.study.errors import needed

INNER_BYTES = 1 << 20
"""Of a compressed piece, about."""
CODECS = {"lz4": ("lz4", 5), "zstd": ("zstd", 3)}


@dataclass(frozen=True)
class Layout:
    """A raw array in the store: ``outer`` axes are those of the points, ``inner`` those of the value."""

    outer: tuple[int, ...]
    inner: tuple[int, ...]
    chunk: tuple[int, ...]
    """Of the outer axes: a shard."""
    dtype: str
    compression: str

    @property
    def split(self) -> tuple[int, int]:
        """(axis that pieces are cut along, length of a piece); pieces must be equal."""
        axis = next((k for k, n in enumerate(self.chunk) if n > 1), len(self.chunk) - 1)
        length = self.chunk[axis]
        size = math.prod(self.chunk) * math.prod(self.inner) * np.dtype(self.dtype).itemsize
        while size > INNER_BYTES and length % 2 == 0:
            length, size = length // 2, size // 2
        return axis, length

    def piece(self) -> tuple[int, ...]:
        """The shape of a piece, outer axes only."""
        axis, length = self.split
        return (*self.chunk[:axis], length, *self.chunk[axis + 1 :])

    def metadata(self) -> dict[str, Any]:
        """What Zarr is told when the array is made."""
        codecs = needed("zarr.codecs")
        order = (*range(len(self.outer), len(self.outer) + len(self.inner)), *range(len(self.outer)))
        compressors = None
        if self.compression != "none":
            name, level = CODECS[self.compression]
            size = np.dtype(self.dtype).itemsize
            compressors = codecs.BloscCodec(
                cname=name, clevel=level, shuffle="shuffle", typesize=size, blocksize=0
            )
        return {
            "shape": (*self.outer, *self.inner),
            "chunks": (*self.piece(), *self.inner),
            "shards": (*self.chunk, *self.inner),
            "dtype": self.dtype,
            "fill_value": np.nan,
            "filters": [codecs.TransposeCodec(order=order)] if self.inner else None,
            "compressors": compressors,
        }

    def key(self, place: tuple[int, ...]) -> str:
        """The file of a shard, relative to its array."""
        return "/".join(["c", *map(str, place), *["0"] * len(self.inner)])

    def encoded(self, values: np.ndarray, place: tuple[int, ...]) -> bytes:
        """The shard at a place in the grid of shards, for values (elements, points of the chunk)."""
        extent = tuple(min(c, n - p * c) for c, n, p in zip(self.chunk, self.outer, place, strict=True))
        data = values.reshape(*self.inner, *extent).astype(self.dtype, copy=False)
        if extent != self.chunk:
            whole = np.full((*self.inner, *self.chunk), np.nan, self.dtype)
            whole[(..., *(slice(n) for n in extent))] = data
            data = whole
        axis, length = self.split
        axis += len(self.inner)
        pieces = []
        for start in range(0, data.shape[axis], length):
            part = data[(slice(None),) * axis + (slice(start, start + length),)]
            pieces.append(self._compressed(np.ascontiguousarray(part)))
        return b"".join([*pieces, _index([len(piece) for piece in pieces])])

    def _compressed(self, part: np.ndarray) -> bytes:
        if self.compression == "none":
            return part.tobytes()
        name, level = CODECS[self.compression]
        blosc = needed("numcodecs").Blosc(name, level, 1, 0)
        return bytes(blosc.encode(part.reshape(-1)))


def _index(lengths: list[int]) -> bytes:
    """Offset and length of every piece, and a checksum of that (CRC-32C)."""
    words, offset = [], 0
    for length in lengths:
        words += [offset, length]
        offset += length
    table = struct.pack(f"<{len(words)}Q", *words)
    return table + struct.pack("<I", int(needed("google_crc32c").value(table)))
