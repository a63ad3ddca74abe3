"""CUDA: a program as a kernel that computes one state per thread, and the same bits as every other target.

Rows travel between global memory and the threads through shared memory, warp by warp, so that every transfer
is coalesced although a thread needs one whole row; see ``cuda_rows``. No warp waits for another. Products are
written as ``__dmul_rn``, which no compiler option fuses into a sum; sums, quotients and roots are IEEE's under
the default options.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace

from linkwise.compiler import rounding, sincos
from linkwise.compiler.emit import clike, cuda_rows
from linkwise.compiler.emit.clike import Dialect, Printer
from linkwise.compiler.emit.cuda_layout import WARP, WarpLayout, candidates, chosen_layout, item_size, pitch
from linkwise.compiler.fuse import fuse
from linkwise.compiler.graph import Graph, Node
from linkwise.compiler.program import Program
from linkwise.compiler.rollout import RolloutProgram
from linkwise.compiler.rules import simplify
from linkwise.compiler.schedule import schedule
from linkwise.compiler.shapes import nest
from linkwise.compiler.sweeps import SweptProgram
from linkwise.compiler.walks import copy, rebuild

__all__ = ["Module", "WarpLayout", "candidates", "chosen_layout", "module", "options", "source", "variants"]

_IEEE = ("--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true", "--std=c++17")
_FAST = ("--use_fast_math", "--std=c++17")

KEYWORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
    alignas alignof and asm bool bitand bitor catch class compl concept const_cast constexpr constinit consteval
    decltype delete dynamic_cast explicit export false friend mutable namespace new noexcept not nullptr operator or
    private protected public reinterpret_cast requires static_assert static_cast template this thread_local throw true
    try typeid typename using virtual wchar_t xor
    threadIdx blockIdx blockDim gridDim warpSize real word lane first states room rows count
    following inputs other half thread tile row kept steps every samples sample step_number left due
    fma fmaf sqrt sqrtf fabs fabsf sin sinf cos cosf sincos sincosf main
""".split()  # noqa: SIM905


@dataclass(frozen=True)
class Module:
    """A kernel as text, and what a launch must know. Parameters: outputs, inputs, the inputs' strides, count."""

    text: str
    name: str
    threads: int
    shared: int
    """Bytes of dynamic shared memory per block."""
    resident: int = 0
    """Blocks for each multiprocessor that a launch needs at most, because their warps go on to further states; 0: one
    warp for every 32 states."""
    states: int = 0
    """What a block computes at a time; 0: a state for each thread."""
    scratch: int = 0
    """Bytes of global memory that each block needs."""


def options(fast: bool = False) -> tuple[str, ...]:
    """What NVRTC is given (nvcc takes the same); unless ``fast``, so that the arithmetic is IEEE's."""
    return _FAST if fast else _IEEE


def source(
    program: Program | SweptProgram | RolloutProgram,
    *,
    function_name: str | None = None,
    description: str = "",
    fast: bool = False,
) -> str:
    """The program as the text of a CUDA file with one kernel.

    ``fast=True`` gives a variant with the GPU's approximate sine and cosine in float32, meant to be compiled with
    ``options(fast=True)``: other bits than everywhere else, and fewer correct ones.
    """
    if isinstance(program, Program):
        return module(program, function_name=function_name, description=description, fast=fast).text
    from linkwise.compiler.emit import cuda_rollout, cuda_sweeps

    if isinstance(program, RolloutProgram):
        if function_name is not None:
            program = replace(
                program, step=replace(program.step, name=clike.identifier(function_name, KEYWORDS))
            )
        *_, last = cuda_rollout.variants(program, description)
        return last.text
    return cuda_sweeps.module(program, function_name=function_name, description=description).text


def module(
    program: Program,
    layout: WarpLayout | None = None,
    *,
    function_name: str | None = None,
    description: str = "",
    fast: bool = False,
) -> Module:
    """The kernel with its launch parameters; ``layout=None`` follows the rule of ``chosen_layout``."""
    name = clike.function_name(function_name, program.name, KEYWORDS)
    if fast:
        program = _approximate(program)
    layout = layout or chosen_layout(program)
    printer = Printer(nest(program), dialect(program.dtype, name))
    rooms = _Rooms(program, printer, layout)
    shared = rooms.bytes * layout.warps
    parts = [
        _comment(program, name, printer, layout, shared, description),
        cuda_rows.helpers(program.dtype),
        _kernel(program, name, printer, layout, rooms),
    ]
    return Module("\n".join(parts), name, layout.threads, shared, layout.resident if layout.persistent else 0)


def variants(program: Program, *, fast: bool = False) -> Iterator[Module]:
    """Kernels to try in this order: the first with next to no spills is the best, else the last."""
    for layout in candidates(program):
        yield module(program, layout, fast=fast)


# -- text -------------------------------------------------------------------------------------------------------------


class _Rooms:
    """Where the rows of a warp lie in its part of shared memory; places are counted in scalars."""

    def __init__(self, program: Program, printer: Printer, layout: WarpLayout):
        sizes = [size for _, size in program.inputs] + [math.prod(shape) for _, shape in program.outputs]
        staged = [True] * len(program.inputs) + list(layout.staged)
        self.size = dict(zip(printer.arguments, sizes, strict=True))
        self.place: dict[str, int] = {}
        total = 0
        for argument, size, through in zip(printer.arguments, sizes, staged, strict=True):
            if through and size:
                self.place[argument] = total
                total += WARP * pitch(size)
        self.inputs = WARP * sum(pitch(size) for _, size in program.inputs if size)
        """What the inputs take; the next ones lie behind everything else."""
        self.next_inputs = total
        self.scalars = total + self.inputs if layout.persistent else total
        self.bytes = self.scalars * item_size(program.dtype)


def _kernel(program: Program, name: str, printer: Printer, layout: WarpLayout, rooms: _Rooms) -> str:
    ins = printer.arguments[: len(program.inputs)]
    outs = printer.arguments[len(program.inputs) :]
    parameters = [f"real *__restrict__ {out}_rows" for out in outs]
    parameters += [f"const real *__restrict__ {given}_rows" for given in ins]
    parameters += [f"const long long {given}_stride" for given in ins]
    parameters.append("const long long count")
    head = [
        f'extern "C" __global__ void __launch_bounds__({layout.threads}, {layout.resident})',
        f"{name}(",
        ",\n".join("    " + parameter for parameter in parameters) + ")",
        "{",
        "    extern __shared__ __align__(16) unsigned char shared_memory[];",
    ]
    flow = _persistent if layout.persistent else _once
    return "\n".join([*head, *flow(printer.statements(), ins, outs, layout, rooms), "}", ""])


def _once(
    statements: list[str], ins: list[str], outs: list[str], layout: WarpLayout, rooms: _Rooms
) -> list[str]:
    """A warp computes 32 states and ends."""
    return [
        "    const int lane = threadIdx.x % 32;",
        f"    real *const room = {_room(rooms, 'threadIdx.x')};",
        f"    const long long first = ((long long)blockIdx.x * {layout.warps} + threadIdx.x / 32) * 32;",
        "    if (first >= count) return;",
        *_fetches(ins, rooms, "first", "room"),
        "    wait_for_rows();",
        *_views(ins, outs, rooms, "room"),
        "    const int states = rows_left(count, first);",
        *_computed(statements),
        *_stores(outs, rooms),
    ]


def _persistent(
    statements: list[str], ins: list[str], outs: list[str], layout: WarpLayout, rooms: _Rooms
) -> list[str]:
    """A warp computes 32 states after another, each with the next ones' inputs already on their way.

    Little is kept over the arithmetic, which needs the registers: the number of the 32 states and which half of the
    room their inputs are in.
    """
    behind = rooms.next_inputs
    again = ["int thread = thread_index(), lane = thread % 32;", f"real *room = {_room(rooms, 'thread')};"]
    body = [
        f"    const long long following = 32ll * (tile + gridDim.x * {layout.warps});",
        "    if (following < count) {",
        f"        real *const other = room + ({behind} - half);",
        *_indented(_fetches(ins, rooms, "following", "other")),
        "    }",
        "    wait_for_older_rows();",
        "    {",
        *_indented([f"    real *const inputs = {_room(rooms, 'thread')} + half;"]),
        "        const long long first = 32ll * tile;",
        "        const int states = rows_left(count, first);",
        *_indented(_views(ins, outs, rooms, "inputs")),
        *_indented(_computed(statements)),
        "    }",
        "    thread = thread_index(), lane = thread % 32;",
        f"    room = {_room(rooms, 'thread')};",
        "    const long long first = 32ll * tile;",
        "    const int states = rows_left(count, first);",
        *_stores(outs, rooms),
        f"    tile = opaque(tile) + gridDim.x * {layout.warps};",
        "    if (32ll * tile >= count) return;",
        f"    half = {behind} - half;",
    ]
    return [
        *("    " + line for line in again),
        f"    unsigned int tile = blockIdx.x * {layout.warps} + thread / 32;",
        "    int half = 0;",
        "    if (32ll * tile >= count) return;",
        *_fetches(ins, rooms, "32ll * tile", "room"),
        "    close_group();",
        "#pragma unroll 1",
        "    for (;;) {",
        *_indented(body),
        "    }",
    ]


def _room(rooms: _Rooms, thread: str) -> str:
    return f"(real *)shared_memory + {thread} / 32 * {rooms.scalars}"


def _indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def _fetches(ins: list[str], rooms: _Rooms, first: str, base: str) -> list[str]:
    """Inputs of the states from ``first`` on, started on their way."""
    return [
        f"    fetch_rows<{rooms.size[given]}, {pitch(rooms.size[given])}>({base} + {rooms.place[given]}, "
        f"{given}_rows + {first} * {given}_stride, {given}_stride, lane, rows_left(count, {first}));"
        for given in ins
        if given in rooms.place
    ]


def _views(ins: list[str], outs: list[str], rooms: _Rooms, base: str) -> list[str]:
    """The row of the lane's state in each argument."""
    lines = [
        f"    const real *const {given} = {_lane_row(given, rooms, base)};"
        for given in ins
        if given in rooms.place
    ]
    for out in outs:
        if out in rooms.place:
            lines.append(f"    real *const {out} = {_lane_row(out, rooms, 'room')};")
        elif rooms.size[out]:
            lines.append(f"    real *const {out} = {out}_rows + (first + lane) * {rooms.size[out]};")
    return lines


def _lane_row(argument: str, rooms: _Rooms, base: str) -> str:
    return f"{base} + {rooms.place[argument]} + lane * {pitch(rooms.size[argument])}"


def _computed(statements: list[str]) -> list[str]:
    return ["    if (lane < states) {", *_indented(statements), "    }", "    __syncwarp();"]


def _stores(outs: list[str], rooms: _Rooms) -> list[str]:
    return [
        f"    store_rows<{rooms.size[out]}, {pitch(rooms.size[out])}>({out}_rows + first * {rooms.size[out]}, "
        f"room + {rooms.place[out]}, lane, states);"
        for out in outs
        if out in rooms.place
    ]


def dialect(dtype: str, name: str) -> Dialect:
    """How CUDA spells things; ``name`` is the kernel's."""
    double = dtype == "float64"
    letter, suffix = ("d", "") if double else ("f", "f")
    spelling = Dialect(
        real="real",
        condition="bool",
        suffix=suffix,
        infinity="infinity()",
        nan="not_a_number()",
        reserved=frozenset({*KEYWORDS, *cuda_rows.NAMES, name}),
    )
    spelling.operations.update(
        mul=f"__{letter}mul_rn({{0}}, {{1}})",
        div=f"__{letter}div_rn({{0}}, {{1}})",
        fma=f"__fma{suffix}_rn({{0}}, {{1}}, {{2}})",
        sqrt=f"__{letter}sqrt_rn({{0}})",
        abs=f"fabs{suffix}({{0}})",
        bit="bit_of({0}, {bit})",
        pick="bit_of({0}, {bit}) ? {1} : {2}",
        flip="flipped({0}, {1}, {bit})",
        hardware_sin="__sinf({0})",
        hardware_cos="__cosf({0})",
    )
    return spelling


def _approximate(program: Program) -> Program:
    """The same function with sine and cosine left to the hardware; float64 has none there and stays as it is."""
    if program.dtype == "float64":
        return program

    def make(graph: Graph, node: Node, args: tuple[Node, ...]) -> Node:
        return (
            graph.make(f"hardware_{node.op}", args) if node.op in ("sin", "cos") else copy(graph, node, args)
        )

    sources = [node for nodes in program.source_values for node in nodes]
    marked = rebuild(rounding.expand(simplify(sources), program.dtype), make)
    lowered = fuse(sincos.expand(marked, program.dtype))
    supply = iter(lowered)
    values = tuple(tuple(next(supply) for _ in nodes) for nodes in program.values)
    return replace(program, values=values, body=schedule(lowered))


def _comment(
    program: Program, name: str, printer: Printer, layout: WarpLayout, shared: int, description: str
) -> str:
    lines = [
        f"{name}: {description}" if description else name,
        "",
        f"Cost of a state: {program.operations}.",
        "",
    ]
    lines += [
        f"Launch: ceil(count / {layout.threads}) blocks of {layout.threads} threads with {shared} bytes of dynamic "
        "shared memory each."
        + (
            f" Warps go on to further states: {layout.resident} blocks per multiprocessor are enough."
            if layout.persistent
            else ""
        ),
        "Parameters: the outputs, the inputs, for each input the distance of its rows in scalars (0: one row for all "
        "states), the number of states. Rows of outputs follow each other; nothing may overlap an output.",
        "",
    ]
    arguments = zip(printer.arguments, (*program.inputs, *program.outputs), strict=True)
    for number, (argument, (_, size)) in enumerate(arguments):
        shape = " x ".join(map(str, size)) or "1" if isinstance(size, tuple) else str(size)
        lines.append(f"  {argument:<12} {'in ' if number < len(program.inputs) else 'out'}  {shape}")
    lines += ["", "Build: nvrtc or nvcc with " + " ".join(_IEEE) + "; with --use_fast_math for other bits."]
    wrapped = [part for line in lines for part in (textwrap.wrap(line, 105, subsequent_indent="  ") or [""])]
    safe = [line.replace("*/", "* /").replace("/*", "/ *").rstrip("\\") for line in wrapped]
    return "\n".join(["/* " + safe[0], *(f" * {line}".rstrip() for line in safe[1:]), " */", ""])
