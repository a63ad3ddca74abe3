"""Calls of the programs of ``nests``: configurations and a world in, collisions or clearances out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from linkwise.collision.world import COLUMNS, World
from linkwise.compiler.kernel import MOST_QUICK_STATES
from linkwise.compiler.native import Native, NativeProgram
from linkwise.compiler.runtime import arrays, host, threads
from linkwise.compiler.trace.procedure import ProcedureNest


class BoundWorld:
    """The tables of a world in one precision, as the code reads them, and a margin [m]: of collisions the one that is
    added to all radii, of clearances the largest one that is looked for."""

    def __init__(self, world: World, dtype: str, margin: float = 0.0):
        tables = world.rounded(dtype)
        self.tables = {kind: _dense(tables[kind], dtype) for kind in COLUMNS}
        self.margin = np.array([margin], dtype)
        self.numbers = [len(self.tables[kind]) for kind in COLUMNS]
        places = [self.margin, *self.tables.values()]
        self.places = [word for table in places for word in (arrays.address(table), 0)]


class ValidityKernel:
    """A program of one robot, compiled when it is first called.

    Args:
        build: makes the program.
        dtype: its precision.
    """

    def __init__(self, build: Callable[[], ProcedureNest], dtype: str):
        self.dtype = dtype
        self._native = NativeProgram(build, None)  # type: ignore[arg-type]

    @property
    def program(self) -> ProcedureNest:
        """The statements."""
        return self._native.program  # type: ignore[return-value]

    def source(self, target: str, **options: Any) -> str:
        """The program as source code in "c", "cuda" or "wasm".

        Args:
            target: the language.
            **options: of the target.
        """
        from linkwise.compiler.emit import source

        return source(self.program, target, **options)  # type: ignore[arg-type]

    def native(self, *, quick: bool = False) -> Native:
        """Machine code for as many configurations side by side as the processor has lanes.

        Args:
            quick: whether it may be slow code while better code is made.
        """
        return self._native.form(host.lanes(self.dtype), quick=quick)

    @property
    def outputs(self) -> list[tuple[str, int]]:
        """Names and sizes."""
        return [(array.name, array.columns) for array in self.program.arrays if array.kind == "output"]

    def __call__(self, q: np.ndarray, world: BoundWorld, count: int | None = None) -> list[np.ndarray]:
        """Outputs of shape (states, size).

        Args:
            q: positions, shape (states, nq).
            world: what is around the robot.
            count: number of threads; None: all cores when the batch is worth it.
        """
        rows = _dense(q, self.dtype)
        results = [np.empty((len(rows), size), self.dtype) for _, size in self.outputs]
        if not len(rows):
            return results
        words = [*world.numbers, arrays.address(rows), rows.shape[1], *world.places]
        for result in results:
            words += [arrays.address(result), result.shape[1]]
        native = self.native(quick=len(rows) <= MOST_QUICK_STATES)
        wanted = threads.wanted(count)
        room = native.room * np.dtype(self.dtype).itemsize
        threads.run(native, len(rows), np.array(words, np.int64), room + 64, wanted, (rows, world, results))
        return results


def _dense(values: np.ndarray, dtype: str) -> np.ndarray:
    """A table without gaps; values beyond the range of the precision are infinite."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(values, dtype)
