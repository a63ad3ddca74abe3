"""CUDA: a program that is written as loops of its own, and large: a warp takes a state.

The turns of parallel loops (stages of a horizon, columns of matrices, step sizes) are shared out among the 32 lanes, of
products of matrices rows and columns.
Everything between these loops is computed by all lanes alike: they read the same places, do the same operations and
write the same values. So that no lane overwrites what another one has still to read, lanes wait for each other before
each step that writes memory, and before and after parallel loops. What the loops keep lies in global memory, that of
one state together. Operations of every element and their order are those of every other target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from linkwise.compiler.emit import together
from linkwise.compiler.emit.cuda.layout import WARP, item_size
from linkwise.compiler.emit.cuda.procedure import ProcedureFrame
from linkwise.compiler.ir.graph import Node
from linkwise.compiler.ir.loops import Array, Element, For, Place, Step
from linkwise.compiler.trace.procedure import ProcedureNest

FROM = 20_000
"""Scalars that the loops of a state keep from which a warp takes it: a thread for each state would leave a GPU with few
threads, each of which waits for memory."""


def frame_of(program: ProcedureNest, name: str) -> ProcedureFrame:
    """A thread or a warp for each state, by its size."""
    return (TeamFrame if program.scratch_scalars(1) >= FROM else ProcedureFrame)(program, name)


class TeamFrame(ProcedureFrame):
    """A warp for each state."""

    threads, states = WARP, 1
    resident = 16
    form = "A warp takes a state through all loops; turns of parallel loops are shared out among its lanes."

    def __init__(self, program: ProcedureNest, name: str):
        super().__init__(program, name)
        self.starts = {}
        start = 0
        for array in self.rooms:
            self.starts[array.name] = start
            start += array.columns * int(array.rows)
        self.block = start
        self.scratch = self.block * item_size(program.dtype)
        self._shared_out: For | None = None  # the loop around whose turns lanes have of their own

    def body(self) -> list[str]:
        lines = super().body()
        head = next(k for k, line in enumerate(lines) if line.startswith("    for (long long state"))
        lines[: head + 1] = [
            f"    real *const room = memory + blockIdx.x * {self.block}ll;",
            "    const int lane = threadIdx.x;",
            *lines[1:head],
            "    for (long long state = blockIdx.x; state < count; state += gridDim.x) {",
        ]
        return [*lines[:-1], "        __syncwarp();", lines[-1]]

    def element(self, place: Element) -> str:
        """All of a state lies together."""
        array: Array = self.arrays[place.array]
        if array.kind != "scratch":
            return super().element(place)
        return f"{array.name}[{self.whole(self.offset(array, place))}]"

    def loop(self, loop: For) -> None:
        if self._shared_out is not None or not loop.parallel:
            return super().loop(loop)
        apart = together.can_be_taken_apart(loop)
        for part in [replace(loop, body=[statement]) for statement in loop.body] if apart else [loop]:
            self._shared_out, inner = part, part.body[0]
            self._line("__syncwarp();")
            if apart and isinstance(inner, For) and together.sums_in(inner):
                self._share_out_elements(part, inner)
            else:
                super().loop(part)
            self._line("__syncwarp();")
            self._shared_out = None
        return None

    def _share_out_elements(self, loop: For, inner: For) -> None:
        """Rows and columns of a product together: 18 columns alone would leave 14 lanes without work."""
        kind, name, columns = self.dialect.whole, f"{loop.name}_{inner.name}", together.count(loop)
        self._line("#pragma unroll 1")
        self._open(
            f"for ({kind} {name} = lane; {name} < {columns * together.count(inner)}; {name} += {WARP})"
        )
        self._line(f"const {kind} {loop.name} = {self.whole(loop.first)} + {name} % {columns};")
        self._line(f"const {kind} {inner.name} = {self.whole(inner.first)} + {name} / {columns};")
        self._loops += [loop.name, inner.name]
        self.write(inner.body)
        del self._loops[-2:]
        self._close()

    def range(self, loop: For) -> str:
        if loop is not self._shared_out:
            return super().range(loop)
        name, first, end = loop.name, self.whole(loop.first), self.whole(loop.stop)
        return f"{self.dialect.whole} {name} = {first} + lane; {name} < {end}; {name} += {WARP}"

    def step(self, step: Step) -> None:
        if step.apart and self._is_written_by_all(step.writes):
            self._line("__syncwarp();")
        return super().step(step)

    def before_writes(self, late: Sequence[tuple[Place, Node]]) -> None:
        if self._is_written_by_all(late):
            self._line("__syncwarp();")

    def _is_written_by_all(self, writes: Sequence[tuple[Place, Node]]) -> bool:
        """Whether memory is written by all lanes alike."""
        return self._shared_out is None and any(isinstance(place, Element) for place, _ in writes)
