"""CUDA: a program that is written as loops of its own, such as iterations over a horizon: a thread takes a state.

What the loops keep lies in global memory, that of neighbouring states side by side, so that the 32 lanes of a warp read
and write whole lines. Operations and their order are those of every other target. Long steps are functions of their own
that are not inlined: the time that compilers take grows faster than the length of a function.
"""

from __future__ import annotations

import re

from linkwise.compiler.emit.cuda.frame import Frame
from linkwise.compiler.emit.cuda.layout import item_size
from linkwise.compiler.ir.loops import Array, Element, For, Step
from linkwise.compiler.trace.procedure import ProcedureNest

LONG = 40  # operations of a step that becomes a function


class ProcedureFrame(Frame):
    """A thread for each state."""

    threads = states = 32  # one warp: few states spread over many multiprocessors
    resident = 8  # as many as registers allow
    form = "A thread takes a state through all loops."

    def __init__(self, program: ProcedureNest, name: str):
        super().__init__(program, name, f"{program.operations}")
        self.bounds = (self.threads,)
        self.rooms = [array for array in program.arrays if array.kind == "scratch" and array.columns]
        self.starts: dict[str, int] = {}
        start = 0
        for array in self.rooms:
            self.starts[array.name] = start
            start += self.threads * _scalars(array)
        self.block = start
        self.scratch = self.block * item_size(program.dtype)
        self.functions: list[str] = []
        self._loops: list[str] = []  # names of the loops around a statement

    def _kernel(self) -> str:
        text = super()._kernel()
        return "\n".join([*self.functions, text])

    def tables(self) -> str:
        self.lines = [*self.lines, *self.functions]  # they read tables, too
        return super().tables()

    def body(self) -> list[str]:
        self.indent = 2
        for array in (*self.ins, *self.outs):
            given, stride = self.spelled[array.name], str(array.columns)
            const, stride = ("const ", f"{given}_stride") if array.kind == "input" else ("", stride)
            self._line(f"{const}real *const {given} = {given}_rows + state * {stride};")
        statements = self.statements()
        used = set(re.findall(r"\w+(?=\[)", "\n".join(statements)))
        return [
            f"    real *const room = memory + blockIdx.x * {self.block}ll + threadIdx.x;",
            *(f"    {self._placed(name)}" for name in self.starts if name in used),
            f"    for (long long state = blockIdx.x * {self.threads}ll + threadIdx.x; state < count; "
            f"state += gridDim.x * {self.threads}ll) {{",
            *statements,
            "    }",
        ]

    def _placed(self, name: str) -> str:
        return f"real *const {name} = room + {self.starts[name]};"

    def element(self, place: Element) -> str:
        """Neighbouring states lie beside each other in what the loops keep."""
        array = self.arrays[place.array]
        if array.kind != "scratch":
            return super().element(place)
        return f"{array.name}[({self.whole(self.offset(array, place))}) * {self.threads}]"

    def loop(self, loop: For) -> None:
        self._line("#pragma unroll 1")  # bodies are long
        self._loops.append(loop.name)
        super().loop(loop)
        self._loops.pop()

    def step(self, step: Step) -> None:
        if len(step.body) < LONG:
            return super().step(step)
        outside, indent = self.lines, self.indent
        self.lines, self.indent = [], 1
        super().step(step)
        inside, self.lines, self.indent = self.lines, outside, indent
        text = "\n".join(inside)
        words = set(re.findall(r"[A-Za-z_]\w*", text))
        parameters = ["real *const room"]
        passed = ["room"]
        for array in (*self.ins, *self.outs):
            spelled = self.spelled[array.name]
            if spelled in words:
                const = "const " if array.kind == "input" else ""
                parameters.append(f"{const}real *const {spelled}")
                passed.append(spelled)
        for name in dict.fromkeys(self._loops):
            if name in words:
                parameters.append(f"const {self.dialect.whole} {name}")
                passed.append(name)
        for spelled in self._registers.values():
            if spelled in words:
                parameters.append(f"real &{spelled}")
                passed.append(spelled)
        function = f"{self.name}_part{len(self.functions)}"
        self.functions.append(
            "\n".join(
                [
                    f"static __device__ __noinline__ void {function}({', '.join(parameters)})",
                    "{",
                    *(f"    {self._placed(name)}" for name in self.starts if name in words),
                    text,
                    "}",
                    "",
                ]
            )
        )
        self._line(f"{function}({', '.join(passed)});")
        return None


def _scalars(array: Array) -> int:
    return array.columns * int(array.rows)
