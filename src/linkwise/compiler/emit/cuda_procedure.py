"""CUDA: a program that is written as loops of its own, such as iterations over a horizon: a thread takes a state.

What the loops keep lies in global memory, that of neighbouring states side by side, so that the 32 lanes of a warp read
and write whole lines. Operations and their order are those of every other target.
"""

from __future__ import annotations

from linkwise.compiler.emit.cuda_frame import Frame
from linkwise.compiler.emit.cuda_layout import item_size
from linkwise.compiler.loops import Array, Element, For
from linkwise.compiler.procedure import ProcedureNest


class ProcedureFrame(Frame):
    """A thread for each state."""

    threads = states = 32  # one warp: few states spread over many multiprocessors
    resident = 4
    form = "A thread takes a state through all loops."

    def __init__(self, program: ProcedureNest, name: str):
        super().__init__(program, name, f"{program.operations}")
        self.bounds = (self.threads,)
        self.rooms = [array for array in program.arrays if array.kind == "scratch" and array.columns]
        self.block = self.threads * sum(map(_scalars, self.rooms))
        self.scratch = self.block * item_size(program.dtype)

    def body(self) -> list[str]:
        self.indent = 2
        for array in (*self.ins, *self.outs):
            given, stride = self.spelled[array.name], str(array.columns)
            const, stride = ("const ", f"{given}_stride") if array.kind == "input" else ("", stride)
            self._line(f"{const}real *const {given} = {given}_rows + state * {stride};")
        lines = [f"    real *const room = memory + blockIdx.x * {self.block}ll + threadIdx.x;"]
        start = 0
        for array in self.rooms:
            lines.append(f"    real *const {array.name} = room + {start}ll;")
            start += self.threads * _scalars(array)
        return [
            *lines,
            f"    for (long long state = blockIdx.x * {self.threads}ll + threadIdx.x; state < count; "
            f"state += gridDim.x * {self.threads}ll) {{",
            *self.statements(),
            "    }",
        ]

    def element(self, place: Element) -> str:
        """Neighbouring states lie beside each other in what the loops keep."""
        array = self.arrays[place.array]
        if array.kind != "scratch":
            return super().element(place)
        return f"{array.name}[({self.whole(self.offset(array, place))}) * {self.threads}]"

    def loop(self, loop: For) -> None:
        self._line("#pragma unroll 1")  # bodies are long
        super().loop(loop)


def _scalars(array: Array) -> int:
    return array.columns * int(array.rows)
