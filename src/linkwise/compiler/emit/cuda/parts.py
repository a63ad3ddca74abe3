"""CUDA: a large program computed by several warps together, for the same 32 states; see ``parts``.

Each warp runs a straight-line part of its own, so no lanes diverge. What passes between warps lies in shared memory,
the 32 states beside each other. A warp tells others that it has written what they need in a stage, goes on with what no
other waits for, and meets them before the next stage.
"""

from __future__ import annotations

import math
import struct
from dataclasses import replace

from linkwise.compiler.emit.cuda.frame import WarpFrame
from linkwise.compiler.emit.cuda.layout import MOST_SHARED, WARP, WarpLayout, item_size, pitch
from linkwise.compiler.ir.graph import Node
from linkwise.compiler.ir.loops import Array, Element, Place, Whole
from linkwise.compiler.ir.parts import EXCHANGE, divisible, parts
from linkwise.compiler.ir.program import Program, alive
from linkwise.errors import TraceError

_TOGETHER = (
    450  # registers from which a program is divided: up to there spilling costs less than the exchange
)
_HELD = 210  # registers for values that a warp of a divided program keeps from stage to stage
_MEETINGS = 16  # barriers that a block has
_MOST_GROUPS = 4  # of two warps: eight warps with all registers that a thread may have
_IN_STEP = (
    3  # groups from which all of a block run in step, so that one fetch of instructions serves all of them
)
PITCH = (
    WARP + 1
)  # scalars from one column of 32 states to the next: lanes that read a column or a row meet 32 banks


def together(program: Program) -> WarpLayout | None:
    """The layout for a program that two warps compute together; None where one does better.

    Outputs pass through shared memory as far as it has room for them beside the values that are exchanged.
    """
    item = item_size(program.dtype)
    need = alive(program)
    if need * item // 4 <= _TOGETHER or not divisible(program):
        return None
    room = MOST_SHARED // (item * (WARP + 1)) - need - sum(pitch(size) for _, size in program.inputs)
    staged: list[bool] = []
    for _, shape in program.outputs:
        staged.append(math.prod(shape) <= room)
        room -= math.prod(shape) if staged[-1] else 0
    return WarpLayout(0, 1, tuple(staged), parts=2, held=_HELD * 4 // item)


class PartsFrame(WarpFrame):
    """A group of warps for 32 states, and then for others. Lanes beyond the last state repeat it, and groups beyond the
    last 32 states those."""

    form = "Several warps take 32 states; each computes a part of the program for all of them."

    def __init__(self, program: Program, name: str, layout: WarpLayout, shared: int = MOST_SHARED):
        made = parts(program, layout.parts, layout.held, layout.staged)
        super().__init__(made.nest, name, f"{program.operations}")
        self.steps = made.steps
        self._awaited = False
        self._numbers: dict[float, int] = {}  # constants in constant memory
        for array in self.ins:
            self.reserve(array)
        self.start[EXCHANGE] = start = self.scalars
        for array, staged in zip(self.outs, layout.staged, strict=True):
            if staged:
                self.start[array.name] = start
                start += PITCH * array.columns
        self.scalars += PITCH * made.exchanged + (-PITCH * made.exchanged) % 4
        if not layout.warps:
            groups = max(1, min(_MOST_GROUPS, shared // self.bytes))
            layout = replace(layout, warps=groups * layout.parts, in_step=groups >= _IN_STEP)
        self.lay_out(layout)
        self.groups = layout.warps // layout.parts
        if (1 if layout.in_step else self.groups) * (1 + 2 * layout.parts) > _MEETINGS:
            raise TraceError(
                f"{self.groups} groups of {layout.parts} warps have more than {_MEETINGS} meetings"
            )
        self.shared, self.states, self.resident = (
            self.bytes * self.groups,
            WARP * self.groups,
            layout.resident,
        )
        self.meeting = WARP * (layout.warps if layout.in_step else layout.parts)  # threads

    def helpers(self) -> str:
        return super().helpers() + _HELPERS

    def body(self) -> list[str]:
        threads, states = WARP * self.layout.parts, self.states
        meet = f"        meet<{self.meeting}>({'0' if self.layout.in_step else 'group'});"
        first = "min({} + 32 * group, (count - 1) / 32 * 32)"
        lines = [
            "    extern __shared__ __align__(16) unsigned char shared_memory[];",
            f"    const int group = threadIdx.x / {threads}, thread = threadIdx.x % {threads}, lane = thread % 32;",
            f"    real *const room = (real *)shared_memory + group * {self.scalars};",
            f"    const int meetings = {self._meetings()};",
            f"    long long at = {states}ll * blockIdx.x;",
            *self.fetches(self.ins, first.format("at"), lanes=threads),
            "#pragma unroll 1",
            "    for (;;) {",
            f"        const long long following = at + {states}ll * gridDim.x, first = {first.format('at')};",
            "        const int states = rows_left(count, first);",
            "        wait_for_rows();",
            meet,
            *_indented(self._views()),
            f"        real *const {EXCHANGE} = room + {self.start[EXCHANGE]} + lane;",
        ]
        self.indent = 2
        for warp in range(self.layout.parts):
            self._open(f"{'else ' if warp else ''}if (thread / 32 == {warp})")
            for number in range(len(self.steps)):
                self._stage(warp, number)
            self._close()
        ends = [
            meet,
            "        if (following < count) {",
            *_indented(self.fetches(self.ins, first.format("following"), lanes=threads), 2),
            "        }",
            *_indented(self.stores(self.outs)),
            "        if (following >= count) return;",
            "        at = following;",
            "    }",
        ]
        return [*lines, *self.lines, *ends]

    def _views(self) -> list[str]:
        """The row of the lane's state in each argument; columns of outputs lie beside those of the exchange."""
        lines = ["    const int row = opaque(lane < states ? lane : states - 1);"]
        lines += [self.view(array, lane="row") for array in self.ins if array.columns]
        for array in self.outs:
            name = self.spelled[array.name]
            if array.name in self.start:
                lines.append(f"    real *const {name} = room + {self.start[array.name]} + row;")
            elif array.columns:
                lines.append(f"    real *const {name} = {name}_rows + (first + row) * {array.columns};")
        return lines

    def stores(self, arrays: list[Array]) -> list[str]:
        return [
            f"    store_columns<{array.columns}, {WARP * self.layout.parts}>({self.spelled[array.name]}_rows + first * "
            f"{array.columns}, room + {self.start[array.name]}, thread, states);"
            for array in arrays
            if array.name in self.start
        ]

    def value(self, node: Node) -> str:
        """An instruction has room for half of a 64-bit constant; from constant memory it reads a whole one."""
        double = node.op == "const" and self.nest.dtype == "float64"
        if not double or struct.pack("<d", node.value)[:4] == bytes(4):
            return super().value(node)
        return f"numbers[{self._numbers.setdefault(node.value, len(self._numbers))}]"

    def tables(self) -> str:
        numbers = ", ".join(map(self.dialect.number, self._numbers))
        return super().tables() + (f"__constant__ real numbers[] = {{{numbers}}};\n" if numbers else "")

    def _meetings(self) -> str:
        """The number of the first meeting between stages; before come those of whole groups."""
        if self.layout.in_step:
            return "1"
        return f"{self.groups} + group * {2 * self.layout.parts}"

    def _stage(self, warp: int, number: int) -> None:
        """Meetings have the number of the warp that waits; one warp may be a stage ahead of it: two for each."""
        awaited, rest = self.steps[number][warp]
        count, last = self.layout.parts, number + 1 == len(self.steps)
        self._awaited = True
        self.step(awaited)
        self._awaited = False
        for other in range(0 if last else count):
            if other != warp:
                self._line(f"tell<{self.meeting}>(meetings + {number % 2 * count + other});")
        self.step(rest)
        if not last:
            self._line(f"meet<{self.meeting}>(meetings + {number % 2 * count + warp});")

    def kept(self) -> dict[Place, str]:
        return {} if self._awaited else self._held

    def early(self, place: Element) -> bool:
        """What is written in a stage is read in later ones."""
        return True

    def offset(self, array: Array, place: Element) -> Whole:
        shared = array.kind != "input" and array.name in self.start
        return place.column * PITCH if shared else place.column


def _indented(lines: list[str], levels: int = 1) -> list[str]:
    return ["    " * levels + line for line in lines]


_HELPERS = """
/* Until so many threads have come to one of these with the same number, or told it, at any place of the program. */
template <int threads>
static __device__ __forceinline__ void meet(int number)
{
#ifdef __CUDA_ARCH__
    asm volatile("bar.sync %0, %1;" :: "r"(number), "n"(threads) : "memory");
#else
    __syncthreads();
#endif
}

/* Counts as coming to the meeting of this number without waiting: what was written before can be read after it. */
template <int threads>
static __device__ __forceinline__ void tell(int number)
{
#ifdef __CUDA_ARCH__
    asm volatile("bar.arrive %0, %1;" :: "r"(number), "n"(threads) : "memory");
#endif
}

/* Copies the rows of 32 states from shared memory, where their columns lie 33 scalars apart. */
template <int size, int lanes>
static __device__ __forceinline__ void store_columns(real *rows, const real *room, int lane, int states)
{
#pragma unroll 4
    for (int k = opaque(lane); k < states * size; k += lanes)
        rows[k] = room[k % size * 33 + k / size];
}
"""
