"""The random numbers of ``philox`` as machine code and on GPUs, one column after the other."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.compiler import host
from linkwise.compiler.emit import draws
from linkwise.compiler.philox import Key
from linkwise.study.native import Native, compiled


@dataclass(frozen=True)
class Ticks:
    """Columns of one variable: where the first one goes, how many there are, and how many bits each has."""

    key: Key
    row: int
    size: int
    bits: int

    def blocks(self) -> Iterator[tuple[int, list[tuple[int, int]]]]:
        """(number of a block, [(part of it, row that it goes to)])."""
        per_block = 4 if self.bits == 32 else 2
        for first in range(0, self.size, per_block):
            parts = range(min(per_block, self.size - first))
            yield first // per_block, [(part, self.row + first + part) for part in parts]


def generator(variables: Sequence[Ticks], stride: int, high: int = 0) -> Native:
    """Fills columns: ``run(first, count, [address])`` for the samples from ``first`` on.

    Column k begins ``k·stride`` numbers after the address; up to a vector more than ``count`` is written. ``high`` is
    the upper word of all indices.
    """
    return compiled(module(variables, stride, host.lanes("float64"), high))


def module(variables: Sequence[Ticks], stride: int, width: int, high: int = 0) -> str:
    """The LLVM text for vectors of ``width`` samples."""
    blocks = [
        draws.Block(variable.key, number, variable.bits, [(part, row * stride) for part, row in parts])
        for variable in variables
        for number, parts in variable.blocks()
    ]
    return draws.module(blocks, width, high)


def fill_ticks(cupy: Any, ticks: Ticks, index: Any, columns: Any) -> None:
    """The random numbers of one variable for samples on the GPU, into their columns: ``philox.ticks`` in CUDA."""
    kernel, spare = _block_kernel(), cupy.empty(len(index))
    for block, parts in ticks.blocks():
        rows = [spare] * 4
        for part, row in parts:
            rows[part] = columns[row]
        kernel(index, np.uint32(block), *map(np.uint32, ticks.key), np.int32(ticks.bits), *rows)


@functools.cache
def _block_kernel() -> Any:
    """One block of four words, as numbers."""
    import cupy

    return cupy.ElementwiseKernel(
        "uint64 index, uint32 block, uint32 key0, uint32 key1, int32 bits",
        "float64 x0, float64 x1, float64 x2, float64 x3",
        draws.CUDA,
        "linkwise_study_draws",
        preamble=draws.CUDA_WORDS,
    )
