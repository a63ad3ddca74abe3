"""One chunk of a raw array as the bytes of a Zarr shard: smaller chunks, compressed one by one, and an index of them.

Zarr's own library could write these, too; here the bytes are made in the thread that computed them, while they are in
its caches, and are written to the disk at once. Elements of a value come first (all samples of joint 1, of joint 2
…): that is how they were computed, and neighbours in time are not alike, but the samples of one joint have common
exponents.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.study.errors import needed
from linkwise.study.store import digests
from linkwise.study.store.files import Folder, PendingFile

INNER_BYTES = 1 << 20
"""Of a compressed piece, about."""
CODECS = {"zstd": ("zstd", 2), "lz4": ("lz4", 5)}
"""Name and level. Higher levels take much more time and make noise no smaller."""


@dataclass(frozen=True)
class ShardLayout:
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
        """Metadata for Zarr when the array is created."""
        codecs = needed("zarr.codecs")
        order = (*range(len(self.outer), len(self.outer) + len(self.inner)), *range(len(self.outer)))
        compressors: list[Any] = []
        if self.compression != "none":
            name, level = CODECS[self.compression]
            size = np.dtype(self.dtype).itemsize
            compressors.append(
                codecs.BloscCodec(cname=name, clevel=level, shuffle="shuffle", typesize=size, blocksize=0)
            )
        return {
            "shape": (*self.outer, *self.inner),
            "chunks": (*self.piece(), *self.inner),
            "shards": (*self.chunk, *self.inner),
            "dtype": self.dtype,
            "fill_value": np.nan,
            "filters": [codecs.TransposeCodec(order=order)] if self.inner else None,
            "compressors": [*compressors, codecs.Crc32cCodec()],
        }

    def key(self, place: tuple[int, ...]) -> str:
        """The file of a shard, relative to its array."""
        return "/".join(["c", *map(str, place), *["0"] * len(self.inner)])

    def shard(self, folder: Folder, array: str, place: tuple[int, ...]) -> Shard:
        """An empty shard for this place in the grid of shards of an array."""
        return Shard(self, place, folder.aside(f"{array}/{self.key(place)}"))

    @property
    def piece_bytes(self) -> int:
        return math.prod(self.piece()) * math.prod(self.inner) * np.dtype(self.dtype).itemsize

    def compressed(self, piece: np.ndarray) -> bytes:
        if self.compression == "none":
            return piece.tobytes()
        blosc = needed("numcodecs").Blosc
        return bytes(blosc(*CODECS[self.compression], blosc.SHUFFLE, 0).encode(piece.reshape(-1)))


class Shard:
    """A shard that is being filled: points come in their order, and a piece is compressed and written as soon as it
    is full.

    Blosc must run without threads of its own, which would write its blocks in random order; it has none in every
    thread but the main one.
    """

    def __init__(self, layout: ShardLayout, place: tuple[int, ...], file: PendingFile):
        self._layout, self._file = layout, file
        extent = [min(c, n - p * c) for c, n, p in zip(layout.chunk, layout.outer, place, strict=True)]
        self._left = math.prod(extent)
        self._piece = np.empty((math.prod(layout.inner), math.prod(layout.piece())), layout.dtype)
        self._filled = 0
        self._pieces: list[tuple[int, int]] = []
        """Length and checksum of each."""
        self._missing = 0

    def add(self, values: np.ndarray) -> None:
        """The next points, (elements, count); what does not belong to the shard is left out."""
        count = min(values.shape[1], self._left)
        self._left -= count
        start = 0
        while start < count:
            stop = min(count, start + self._piece.shape[1] - self._filled)
            self._piece[:, self._filled : self._filled + stop - start] = values[:, start:stop]
            self._filled += stop - start
            start = stop
            if self._filled == self._piece.shape[1]:
                self._flush()

    def _flush(self) -> None:
        data = self._layout.compressed(self._piece)
        checksum = digests.checksum(data)
        self._file.write(data)
        self._file.write(digests.behind(checksum))
        self._pieces.append((len(data) + digests.CHECKSUM_BYTES, checksum))
        self._filled = 0

    def finish(self) -> None:
        """The last piece, and the index of all."""
        if self._filled:
            self._piece[:, self._filled :] = np.nan
            self._flush()
        axis, length = self._layout.split
        self._missing = self._layout.chunk[axis] // length - len(self._pieces)
        self._file.write(digests.index([length for length, _ in self._pieces], self._missing))

    def put(self) -> digests.Entry:
        """Put the finished shard in its place; what its bytes are."""
        self._file.put()
        return digests.of_pieces(self._pieces, self._missing)

    def drop(self) -> None:
        self._file.drop()
