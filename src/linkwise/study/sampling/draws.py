"""The random numbers of ``philox`` on GPUs, one column after the other."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from linkwise.compiler.columns import Ticks
from linkwise.compiler.columns import block as random_block
from linkwise.compiler.emit.elementwise import elementwise


def fill_ticks(cupy: Any, ticks: Ticks, index: Any, columns: Any) -> None:
    """The random numbers of one variable for samples on the GPU, into their columns: ``philox.ticks`` in CUDA."""
    kernel, spare = _block_kernel(ticks.bits), cupy.empty(len(index))
    for block, parts in ticks.blocks():
        rows = [spare] * 4
        for part, row in parts:
            rows[part] = columns[row]
        kernel(index, np.uint64(block), *map(np.uint64, ticks.key), *rows)


@functools.cache
def _block_kernel(bits: int) -> Any:
    """One block of four words, as numbers."""
    import cupy

    return cupy.ElementwiseKernel(
        "uint64 index, uint64 block, uint64 key0, uint64 key1",
        "float64 x0, float64 x1, float64 x2, float64 x3",
        elementwise(random_block(bits)),
        "linkwise_study_draws",
    )
