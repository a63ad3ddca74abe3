"""CUDA: a program as a kernel that computes one state per thread, and the same bits as every other target.

Rows travel between global memory and the threads through shared memory, warp by warp, so that every transfer
is coalesced although a thread needs one whole row; see ``cuda_rows``. No warp waits for another. Products are
written as ``__dmul_rn``, which no compiler option fuses into a sum; sums, quotients and roots are IEEE's under
the default options.
"""

from __future__ import annotations

from collections.abc import Iterator

from linkwise.arguments.flags import flag
from linkwise.compiler.emit import clike
from linkwise.compiler.emit.cuda import layout as cuda_layout
from linkwise.compiler.emit.cuda.frame import IEEE, KEYWORDS, Module, WarpFrame
from linkwise.compiler.emit.cuda.layout import WarpLayout
from linkwise.compiler.emit.cuda.parts import PartsFrame, together
from linkwise.compiler.emit.cuda.queued import QueuedFrame, QueuedRolloutFrame, queued
from linkwise.compiler.emit.cuda.rollout import RolloutFrame
from linkwise.compiler.emit.cuda.sweeps import ScannedFrame, SerialFrame
from linkwise.compiler.emit.cuda.team import frame_of
from linkwise.compiler.ir.program import Program, relowered
from linkwise.compiler.ir.reordered import ordered
from linkwise.compiler.ir.sweeps import SweptProgram
from linkwise.compiler.rollout import RolloutProgram
from linkwise.compiler.shapes import nest
from linkwise.compiler.trace.procedure import ProcedureNest

__all__ = ["Module", "WarpLayout", "candidates", "chosen_layout", "layouts", "module"]
__all__ += ["options", "ordered", "source", "variants"]

AnyProgram = Program | SweptProgram | RolloutProgram | ProcedureNest


def options(fast: bool = False) -> tuple[str, ...]:
    """What NVRTC is given (nvcc takes the same); unless ``fast``, so that the arithmetic is IEEE's."""
    return ("--use_fast_math", "--std=c++17") if fast else IEEE


def source(
    program: AnyProgram, *, function_name: str | None = None, description: str = "", fast: bool = False
) -> str:
    """The program as the text of a CUDA file with one kernel.

    ``fast=True`` gives a variant with the GPU's approximate sine and cosine in float32, meant to be compiled with
    ``options(fast=True)``: its bits differ from those of other targets, and it is less accurate.
    """
    return module(program, function_name=function_name, description=description, fast=fast).text


def module(
    program: AnyProgram,
    layout: WarpLayout | None = None,
    *,
    function_name: str | None = None,
    description: str = "",
    fast: bool = False,
    shared: int = cuda_layout.MOST_SHARED,
) -> Module:
    """The kernel with its launch parameters; ``layout=None`` follows the rule: the last of ``layouts``.

    ``shared``: bytes of shared memory that a block can have, which bound the groups of warps that compute together.
    """
    fast = flag("fast", fast)
    name = clike.function_name(function_name, program.name, KEYWORDS)
    if fast and isinstance(program, Program) and program.dtype == "float32":
        program = relowered(program, hardware=True)  # there is no such sine of float64
    if isinstance(program, SweptProgram):
        return (ScannedFrame if program.scanned else SerialFrame)(program, name).module(description)
    if isinstance(program, ProcedureNest):
        return frame_of(program, name).module(description)
    layout = layout or layouts(program)[-1]
    program = ordered(program)
    if isinstance(program, RolloutProgram):
        frame = QueuedRolloutFrame if layout.queued else RolloutFrame
        return frame(program, name, layout).module(description)
    if layout.queued:
        return QueuedFrame(program, name, layout).module(description)
    if layout.parts > 1:
        frame = PartsFrame(program, name, layout, shared)
        if layout.warps or frame.shared <= shared:
            return frame.module(description)
        layout = chosen_layout(program)  # one warp needs less shared memory
    return BatchFrame(program, name, layout).module(description)


def candidates(program: Program | RolloutProgram) -> list[WarpLayout]:
    """Layouts to try, the boldest first: one is taken if the compiler has next to no spills with its registers."""
    program = ordered(program)
    if isinstance(program, Program):
        return cuda_layout.candidates(program)
    frame = RolloutFrame(program, program.name)
    found = cuda_layout.in_step(program.step, frame.least)
    return found or cuda_layout.bold_and_safe(program.step, 0.9, frame.bytes)


def chosen_layout(program: Program | RolloutProgram) -> WarpLayout:
    """The layout of the rule for single warps, for when nothing can be tried: the last of ``candidates``."""
    return candidates(program)[-1]


def layouts(program: Program | RolloutProgram) -> list[WarpLayout]:
    """Layouts to try: that of ``together`` or of ``queued`` for large programs, else ``candidates``."""
    made = ordered(program)
    large = (together(made) if isinstance(made, Program) else None) or queued(made)
    return [large] if large is not None else candidates(program)


def variants(
    program: AnyProgram, *, fast: bool = False, shared: int = cuda_layout.MOST_SHARED
) -> Iterator[Module]:
    """Kernels to try in this order: the first with next to no spills is the best, else the last."""
    one = isinstance(program, SweptProgram | ProcedureNest)
    for layout in (None,) if one else layouts(program):  # type: ignore[arg-type]
        yield module(program, layout, fast=fast, shared=shared)


class BatchFrame(WarpFrame):
    """Straight-line code. Inputs pass through shared memory, and the outputs that the layout names."""

    form = "A thread takes a state."

    def __init__(self, program: Program, name: str, layout: WarpLayout):
        super().__init__(nest(program), name, f"{program.operations}")
        for array in self.ins:
            self.reserve(array)
        inputs = self.scalars
        for array, staged in zip(self.outs, layout.staged, strict=True):
            if staged:
                self.reserve(array)
        self.behind = self.scalars  # where the inputs of the next states lie
        if layout.persistent:
            self.scalars += inputs
            self.resident = layout.resident
        self.lay_out(layout)

    def body(self) -> list[str]:
        return self._persistent() if self.layout.persistent else self._once()

    def _once(self) -> list[str]:
        """A warp computes 32 states and ends."""
        return [
            *self.head(),
            *self.fetches(self.ins),
            "    wait_for_rows();",
            *self._views("room"),
            "    const int states = rows_left(count, first);",
            *self._computed(),
            *self.stores(self.outs),
        ]

    def _persistent(self) -> list[str]:
        """A warp computes 32 states after another, each with the next ones' inputs already on their way.

        Little is kept over the arithmetic, which needs the registers: the number of the 32 states and which half of the
        room their inputs are in.
        """
        warps, behind, room = self.layout.warps, self.behind, self.room("thread")
        body = [
            f"    const long long following = 32ll * (tile + gridDim.x * {warps});",
            "    if (following < count) {",
            f"        real *const other = room + ({behind} - half);",
            *_indented(self.fetches(self.ins, "following", "other")),
            "    }",
            "    wait_for_older_rows();",
            "    {",
            f"        real *const inputs = {room} + half;",
            "        const long long first = 32ll * tile;",
            "        const int states = rows_left(count, first);",
            *_indented(self._views("inputs")),
            *_indented(self._computed()),
            "    }",
            "    thread = thread_index(), lane = thread % 32;",
            f"    room = {room};",
            "    const long long first = 32ll * tile;",
            "    const int states = rows_left(count, first);",
            *self.stores(self.outs),
            f"    tile = opaque(tile) + gridDim.x * {warps};",
            "    if (32ll * tile >= count) return;",
            f"    half = {behind} - half;",
        ]
        return [
            "    extern __shared__ __align__(16) unsigned char shared_memory[];",
            "    int thread = thread_index(), lane = thread % 32;",
            f"    real *room = {room};",
            f"    unsigned int tile = blockIdx.x * {warps} + thread / 32;",
            "    int half = 0;",
            "    if (32ll * tile >= count) return;",
            *self.fetches(self.ins, "32ll * tile"),
            "    close_group();",
            "#pragma unroll 1",
            "    for (;;) {",
            *_indented(body),
            "    }",
        ]

    def _views(self, inputs: str) -> list[str]:
        """The row of the lane's state in each argument: in shared memory, or of an output in its place."""
        lines: list[str] = []
        for array in (*self.ins, *self.outs):
            name = self.spelled[array.name]
            if array.name in self.start:
                lines.append(self.view(array, inputs if array.kind == "input" else "room"))
            elif array.columns:
                lines.append(f"    real *const {name} = {name}_rows + (first + lane) * {array.columns};")
        return lines

    def _computed(self) -> list[str]:
        return ["    if (lane < states) {", *_indented(self.statements()), "    }", "    __syncwarp();"]


def _indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]
