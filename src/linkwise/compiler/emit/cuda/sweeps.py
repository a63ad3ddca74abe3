"""CUDA: programs with loops over links, for chains and trees too long to be written out.

Two forms, with the same bits as on the CPU:

* ``serial``: a thread takes a state through all sweeps. What passes from one sweep to another lies in global memory,
  neighbouring states beside each other.
* ``scanned``: a block takes a state. Loops in which rows do not depend on each other are shared out among its threads,
  and so are the pairs of each level of a scan.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.compiler.emit.clike import Printer
from linkwise.compiler.emit.cuda.frame import Frame
from linkwise.compiler.emit.cuda.layout import item_size
from linkwise.compiler.ir.loops import Array, Element, For, Step, Whole, changed
from linkwise.compiler.ir.sweeps import SweptProgram
from linkwise.compiler.shapes import nest
from linkwise.errors import TraceError


class SerialFrame(Frame):
    """A thread for each state."""

    threads = states = 32  # one warp: few long chains spread over many multiprocessors
    resident = 16
    form = "A thread takes a state through all sweeps."

    def __init__(self, program: SweptProgram, name: str):
        super().__init__(nest(program), name, f"{program.operations}")
        self.bounds = (self.threads,)
        self.block = max(1, program.scratch_scalars(self.states))
        self.scratch = self.block * item_size(program.dtype)

    def body(self) -> list[str]:
        self.indent = 2
        for array in (*self.ins, *self.outs):
            given, stride = self.spelled[array.name], str(array.columns)
            const, stride = ("const ", f"{given}_stride") if array.kind == "input" else ("", stride)
            self._line(f"{const}real *const {given} = {given}_rows + state * {stride};")
        return [*("    " + line for line in self.head()), *self.statements(), "    }"]

    def head(self) -> list[str]:
        """The room of this thread, and the loop over states."""
        return [
            f"real *const room = memory + blockIdx.x * {self.block}ll + threadIdx.x;",
            f"for (long long state = blockIdx.x * {self.threads}ll + threadIdx.x; state < count; "
            f"state += gridDim.x * {self.threads}ll) {{",
        ]

    def element(self, place: Element) -> str:
        """Neighbouring states lie beside each other in the room."""
        array = self.arrays[place.array]
        if array.kind != "scratch":
            return super().element(place)
        return f"{array.name}[({self.whole(self.offset(array, place))}) * {self.threads}ll]"


class ScannedFrame(SerialFrame):
    """A block for each state."""

    threads, states = 256, 1  # with all registers that a thread may have
    form = "A block takes a state; its threads share the rows of each loop and the pairs of each level of a scan."
    _shared_out = False  # whether the threads are at different turns of a loop

    def head(self) -> list[str]:
        return [
            f"real *const room = memory + blockIdx.x * {self.block}ll;",
            "for (long long state = blockIdx.x; state < count; state += gridDim.x) {",
        ]

    def element(self, place: Element) -> str:
        return Printer.element(self, place)

    def offset(self, array: Array, place: Element) -> Whole:
        """Columns one after the other, so that threads with neighbouring rows read neighbouring scalars."""
        if place.row is None:
            return place.column
        return place.column * int(array.rows) + place.row

    def constants(self, array: Array) -> Sequence[float]:
        return np.asarray(self.nest.constants[array.name]).T.ravel().tolist()

    def barrier(self) -> None:
        self._line("__syncthreads();")

    def loop(self, loop: For) -> None:
        if not loop.parallel and changed(loop.body):
            raise TraceError("on a GPU a program has either scans or sweeps from row to row")
        self._shared_out = loop.parallel
        super().loop(loop)
        self._shared_out = False

    def range(self, loop: For) -> str:
        if not loop.parallel:
            return super().range(loop)
        if loop.step.number == -1:  # turns are independent: any order gives the same result
            loop = For(loop.name, loop.stop + 1, loop.first + 1, loop.body)
        first, step = self.whole(loop.first), self.whole(loop.step, 5)
        start, further = ("threadIdx.x", f"{self.threads}")
        if loop.step.number != 1:
            start, further = f"{step} * (int)threadIdx.x", f"{step} * {self.threads}"
        start = start if loop.first.number == 0 else f"{first} + {start}"
        return (
            f"{self.dialect.whole} {loop.name} = {start}; {loop.name} < {self.whole(loop.stop)}; "
            f"{loop.name} += {further}"
        )

    def step(self, step: Step) -> None:
        if self._shared_out:
            return super().step(step)
        self._open("if (threadIdx.x == 0)")  # what one thread does for all
        super().step(step)
        self._close()
        return None
