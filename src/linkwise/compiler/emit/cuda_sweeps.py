"""CUDA: programs with loops over links, for chains and trees too long to be written out.

Two forms, with the same bits as on the CPU:

* ``serial``: a thread takes a state through all sweeps. What passes from one sweep to another lies in global memory,
  neighbouring states beside each other.
* ``scanned``: a block takes a state. Loops in which rows do not depend on each other are shared out among its threads,
  and so are the pairs of each level of a scan.

A launch brings room in global memory as the last parameter, ``scratch`` bytes for each block; blocks go on to further
states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from linkwise.compiler.emit import clike, cuda_rows
from linkwise.compiler.emit.clike import Printer
from linkwise.compiler.emit.cuda import KEYWORDS, Module, dialect
from linkwise.compiler.emit.cuda_layout import item_size
from linkwise.compiler.loops import Array, Element, For, Step, Whole, changed
from linkwise.compiler.shapes import nest
from linkwise.compiler.sweeps import SweptProgram
from linkwise.errors import TraceError

SERIAL_THREADS = 32  # one warp: few long chains spread over many multiprocessors
SCAN_THREADS = 256  # with all registers that a thread may have
RESIDENT = 16  # blocks for each multiprocessor


def module(program: SweptProgram, *, function_name: str | None = None, description: str = "") -> Module:
    """The kernel with its launch parameters."""
    name = clike.function_name(function_name, program.name, KEYWORDS)
    printer = (_Scanned if program.scanned else _Serial)(program, name)
    kernel = printer.kernel()
    return Module(
        "\n".join([printer.comment(description), cuda_rows.helpers(program.dtype), printer.tables(), kernel]),
        name,
        printer.threads,
        0,
        RESIDENT,
        states=printer.states,
        scratch=program.scratch_scalars(printer.states) * item_size(program.dtype),
    )


class _Serial(Printer):
    """A thread for each state."""

    threads = states = SERIAL_THREADS
    form = "A thread takes a state through all sweeps."

    def __init__(self, program: SweptProgram, name: str):
        spelled = dialect(program.dtype, name)
        own = {"state", "memory", "room"}
        super().__init__(
            nest(program),
            replace(
                spelled,
                reserved=spelled.reserved | own,
                whole="int",
                table="static __device__ const",
            ),
        )
        self.program, self.name = program, name
        self.indent = 2

    def comment(self, description: str) -> str:
        return clike.comment(
            [
                f"{self.name}: {description}" if description else self.name,
                f"Cost of a state: {self.program.operations}.",
                f"{self.form} Launch: blocks of {self.threads} threads, {self.states} states at a time each.",
                "Parameters: the outputs, the inputs, for each input the distance of its rows in scalars (0: one row "
                "for all states), the number of states, room for every block.",
            ],
            105,
        )

    def kernel(self) -> str:
        ins = self.arguments[: len(self.program.inputs)]
        outs = self.arguments[len(self.program.inputs) :]
        parameters = [f"real *__restrict__ {out}_rows" for out in outs]
        parameters += [f"const real *__restrict__ {given}_rows" for given in ins]
        parameters += [f"const long long {given}_stride" for given in ins]
        parameters += ["const long long count", "real *__restrict__ memory"]
        for given in ins:
            self._line(f"const real *const {given} = {given}_rows + state * {given}_stride;")
        sizes = [array.columns for array in self.nest.arrays if array.kind == "output"]
        for out, size in zip(outs, sizes, strict=True):
            self._line(f"real *const {out} = {out}_rows + state * {size};")
        return "\n".join(
            [
                f'extern "C" __global__ void __launch_bounds__({self.threads})',
                f"{self.name}(",
                ",\n".join("    " + parameter for parameter in parameters) + ")",
                "{",
                *("    " + line for line in self.head(self.program.scratch_scalars(self.states))),
                *self.statements(),
                "    }",
                "}",
                "",
            ]
        )

    def head(self, block: int) -> list[str]:
        """The room of this thread, and the loop over states; ``block`` are scalars for each block."""
        return [
            f"real *const room = memory + blockIdx.x * {block}ll + threadIdx.x;",
            f"for (long long state = blockIdx.x * {self.threads}ll + threadIdx.x; state < count; "
            f"state += gridDim.x * {self.threads}ll) {{",
        ]

    def element(self, place: Element) -> str:
        """Neighbouring states lie beside each other in the room."""
        array = self.arrays[place.array]
        if array.kind != "scratch":
            return super().element(place)
        return f"{array.name}[({self.whole(self.offset(array, place))}) * {self.threads}ll]"


class _Scanned(_Serial):
    """A block for each state."""

    threads, states = SCAN_THREADS, 1
    form = "A block takes a state; its threads share the rows of each loop and the pairs of each level of a scan."
    _shared_out = False  # whether the threads are at different turns of a loop

    def head(self, block: int) -> list[str]:
        return [
            f"real *const room = memory + blockIdx.x * {block}ll;",
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
        if loop.step.number == -1:  # turns need nothing of each other: any direction will do
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
