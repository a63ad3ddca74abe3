"""CUDA: a rollout as one kernel, a robot per thread, what is carried from step to step in registers.

Parameters, and what depends on them alone, wait in shared memory: read where they are used they cost an instruction,
kept in registers they would cost warps. Nothing else is read or written during the steps, apart from feeds and the
samples that are asked for.

Parameters of the kernel, all 64 bits: for what is carried, parameters, feeds and what is written a pointer each, in
this order; the strides of the parameters and feeds in scalars from one robot to the next (0: the same for all); the
number of steps, how many of them go by between two written ones, how many rows a robot has for those, the number of
robots.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from linkwise.compiler.emit import clike, cuda_rows
from linkwise.compiler.emit.clike import Printer
from linkwise.compiler.emit.cuda import Module, dialect
from linkwise.compiler.emit.cuda_layout import (
    WARP,
    WarpLayout,
    alive,
    fitted,
    item_size,
    pitch,
    warps_per_scheduler,
)
from linkwise.compiler.graph import CONDITIONS, Node
from linkwise.compiler.loops import Element, Step
from linkwise.compiler.rollout import NEXT, RolloutProgram
from linkwise.compiler.schedule import Body, LoopRegion
from linkwise.compiler.shapes import nest, split

_BOLD = 0.9  # at best a compiler needs so much of what is alive in the order of the schedule


def variants(program: RolloutProgram, description: str = "") -> Iterator[Module]:
    """Kernels to try in this order: the first with next to no spills is the best, else the last."""
    for layout in candidates(program):
        yield module(program, layout, description)


def candidates(program: RolloutProgram) -> list[WarpLayout]:
    """Layouts to try, the boldest first; see ``cuda_layout.candidates``."""
    need = alive(program.step) * item_size(program.dtype) // 4
    shared = _Rooms(program, _StepPrinter(program)).bytes
    safe = warps_per_scheduler(min(need, 255))
    bold = min(safe + 1, warps_per_scheduler(min(int(_BOLD * need), 255)))
    found = [fitted(warps, shared, 0, ()) for warps in (bold, safe)]
    return found[1:] if found[0] == found[1] else found


def module(program: RolloutProgram, layout: WarpLayout, description: str = "") -> Module:
    """The kernel with its launch parameters."""
    printer = _StepPrinter(program)
    rooms = _Rooms(program, printer)
    text = "\n".join(
        [
            _comment(program, description),
            cuda_rows.helpers(program.dtype),
            _kernel(program, printer, layout, rooms),
        ]
    )
    return Module(text, program.name, layout.threads, rooms.bytes * layout.warps)


class _StepPrinter(Printer):
    """The statements of one step, apart from those that depend on parameters alone."""

    def __init__(self, program: RolloutProgram):
        super().__init__(nest(program.step), dialect(program.dtype, program.name))
        (step,) = self.nest.body
        assert isinstance(step, Step)
        self._step = step
        interface = program.interface
        once, repeated = split(program.step.body, {*interface.carried, *interface.feeds})
        self._once, self._repeated, kept = _shared_out(once, repeated, program.step.values)
        self.kept = {index: k for k, index in enumerate(kept)}
        self._in_steps = False

    def value(self, node: Node) -> str:
        if self._in_steps and node.index in self.kept:
            return f"kept[{self.kept[node.index]}]"
        return super().value(node)

    def before(self) -> list[str]:
        """What is computed before the first step."""
        self.lines, self._stores, self._results, self._in_steps = [], {}, {}, False
        self._body(self._once)
        for item in self._once:
            if isinstance(item, Node) and item.index in self.kept:
                self._line(f"kept[{self.kept[item.index]}] = {super().value(item)};")
        return self.lines

    def steps(self) -> tuple[list[str], list[str]]:
        """(samples of what is known when a step begins, the step)."""
        self.lines, self._stores, self._results, self._in_steps = [], {}, {}, True
        known = []
        computed = {item.index for item in self._repeated if isinstance(item, Node)}
        for place, node in self._step.writes:
            assert isinstance(place, Element)
            written = not place.array.startswith(NEXT)
            if written and node.op != "result" and node.index not in computed:
                known.append(f"{self.element(place)} = {self.value(node)};")
                continue
            guard = "if (due) " if written else ""
            self._stores.setdefault(node, []).append(guard + self.element(place))
            if node.op == "result":
                self._results.setdefault(node.value[0], []).append(node)
        self._body(self._repeated)
        for node in list(self._stores):  # constants, inputs and what is kept
            self._store(node)
        return known, self.lines


def _shared_out(
    once: Body, repeated: Body, values: tuple[tuple[Node, ...], ...]
) -> tuple[Body, Body, list[int]]:
    """(once, repeated, numbers of nodes to keep): conditions are made where they are used, numbers are kept."""
    wanted: set[int] = set()

    def use(node: Node) -> None:
        wanted.add((node.args[0] if node.op == "neg" else node).index)

    for item in repeated:
        for node in _nodes(item):
            for a in node.args:
                use(a)
    for nodes in values:
        for node in nodes:
            use(node)
    moved, kept = [], []
    for item in reversed(once):
        if not isinstance(item, Node) or item.index not in wanted:
            continue
        if item.op in CONDITIONS:
            moved.append(item)
            for a in item.args:
                use(a)
        elif item.op == "neg":
            use(item)
        else:
            kept.append(item.index)
    return once, [*reversed(moved), *repeated], kept[::-1]


def _nodes(item: Node | LoopRegion) -> Iterator[Node]:
    if isinstance(item, Node):
        yield item
        return
    loop = item.loop
    for node in (*loop.initial, *loop.following, loop.active):
        yield node
        yield from node.args
    for inner in item.body:
        yield from _nodes(inner)


class _Rooms:
    """Where a warp's rows lie in its part of shared memory; places are counted in scalars."""

    def __init__(self, program: RolloutProgram, printer: _StepPrinter):
        interface = program.interface
        names = outputs = printer.spelled
        self.carried = {names[name]: size for name, size in interface.carried.items()}
        self.following = [outputs[NEXT + name] for name in interface.carried]
        self.parameters = {names[name]: size for name, size in interface.parameters.items()}
        self.feeds = {names[name]: feed for name, feed in interface.feeds.items()}
        self.written = {outputs[name]: math.prod(shape) for name, shape in interface.written.items()}
        own = {name: feed.size for name, feed in self.feeds.items() if not feed.shared}
        self.place: dict[str, int] = {}
        total = 0
        for name, size in {**self.parameters, **own, **self.written, "kept": len(printer.kept)}.items():
            self.place[name] = total
            total += WARP * pitch(size) if size else 0
        # what is carried passes through at both ends, when the samples' room is free
        passing = sum(WARP * pitch(size) for size in self.carried.values() if size)
        self.passing = total
        self.scalars = total + passing
        self.bytes = self.scalars * item_size(program.dtype)


def _kernel(program: RolloutProgram, printer: _StepPrinter, layout: WarpLayout, rooms: _Rooms) -> str:
    carried, parameters, feeds, written = rooms.carried, rooms.parameters, rooms.feeds, rooms.written
    arguments = [f"real *__restrict__ {name}_rows" for name in carried]
    arguments += [f"const real *__restrict__ {name}_rows" for name in (*parameters, *feeds)]
    arguments += [f"real *__restrict__ {name}_rows" for name in written]
    arguments += [f"const long long {name}_stride" for name in (*parameters, *feeds)]
    arguments += [f"const long long {name}" for name in ("steps", "every", "samples", "count")]
    lines = [
        f'extern "C" __global__ void __launch_bounds__({layout.threads}, {layout.resident})',
        f"{program.name}(",
        ",\n".join("    " + argument for argument in arguments) + ")",
        "{",
        "    extern __shared__ __align__(16) unsigned char shared_memory[];",
        "    const int lane = threadIdx.x % 32;",
        f"    real *const room = (real *)shared_memory + threadIdx.x / 32 * {rooms.scalars};",
        f"    const long long first = ((long long)blockIdx.x * {layout.warps} + threadIdx.x / 32) * 32;",
        "    if (first >= count) return;",
        "    const int states = rows_left(count, first);",
        "    const int row = lane < states ? lane : states - 1; /* lanes beyond the last robot repeat it */",
    ]
    place = rooms.passing
    loads = []
    for name, size in carried.items():
        lines.append(_fetch(size, f"room + {place}", f"{name}_rows + first * {size}", str(size)))
        loads += [f"    real {name}[{size}];"]
        loads += [f"    {name}[{k}] = room[{place} + row * {pitch(size)} + {k}];" for k in range(size)]
        place += WARP * pitch(size) if size else 0
    for name, size in parameters.items():
        rows = f"{name}_rows + first * {name}_stride"
        lines.append(_fetch(size, f"room + {rooms.place[name]}", rows, f"{name}_stride"))
    lines += ["    wait_for_rows();", *loads]
    for name, size in parameters.items():
        lines.append(f"    const real *const {name} = room + {rooms.place[name]} + row * {pitch(size)};")
    for name, size in written.items():
        lines.append(f"    real *const {name} = room + {rooms.place[name]} + lane * {pitch(size)};")
    if printer.kept:
        lines.append(
            f"    real *const kept = room + {rooms.place['kept']} + lane * {pitch(len(printer.kept))};"
        )
    lines += [*printer.before(), "    int left = 0;", "    long long sample = 0;"]
    lines += ["#pragma unroll 1", "    for (long long step_number = 0; step_number < steps; ++step_number) {"]
    lines += ["    " + line for line in _step(printer, rooms)]
    lines += ["    }", "    __syncwarp();"]
    place = rooms.passing
    for name, size in carried.items():
        lines += [f"    room[{place} + lane * {pitch(size)} + {k}] = {name}[{k}];" for k in range(size)]
        place += WARP * pitch(size) if size else 0
    lines.append("    __syncwarp();")
    place = rooms.passing
    for name, size in carried.items():
        lines.append(
            f"    store_rows<{size}, {pitch(size)}>({name}_rows + first * {size}, room + {place}, lane, states);"
        )
        place += WARP * pitch(size) if size else 0
    return "\n".join([*lines, "}", ""])


def _step(printer: _StepPrinter, rooms: _Rooms) -> list[str]:
    """The body of the loop over steps."""
    lines = []
    for name, feed in rooms.feeds.items():
        if feed.shared:
            lines.append(f"    const real *const {name} = {name}_rows + step_number * {feed.advance};")
            continue
        place = rooms.place[name]
        rows = f"{name}_rows + first * {name}_stride + step_number * {feed.advance}"
        lines.append(_fetch(feed.size, f"room + {place}", rows, f"{name}_stride"))
        lines.append(f"    const real *const {name} = room + {place} + row * {pitch(feed.size)};")
    own = any(not feed.shared for feed in rooms.feeds.values())
    # a barrier, so that what lies in shared memory is read anew in every step
    lines.append("    wait_for_rows();" if own else "    __syncwarp();")
    known, statements = printer.steps()
    if rooms.written:
        lines.append("    const bool due = left == 0;")
        lines += ["    if (due) {", *("        " + store for store in known), "    }"]
    for name, size in zip(rooms.following, rooms.carried.values(), strict=True):
        lines.append(f"    real {name}[{size}];")
    lines += statements
    for (name, size), following in zip(rooms.carried.items(), rooms.following, strict=True):
        lines += [f"    {name}[{k}] = {following}[{k}];" for k in range(size)]
    if rooms.written:
        lines += ["    if (due) {", "        left = (int)every;", "        __syncwarp();"]
        for name, size in rooms.written.items():
            if size:
                lines.append(
                    f"        spread_rows<{size}, {pitch(size)}>({name}_rows + (first * samples + sample) * {size}, "
                    f"samples * {size}, room + {rooms.place[name]}, lane, states);"
                )
        lines += ["        ++sample;", "    }", "    --left;"]
    return lines


def _fetch(size: int, room: str, rows: str, stride: str) -> str:
    return f"    fetch_rows<{size}, {pitch(size)}>({room}, {rows}, {stride}, lane, states);"


def _comment(program: RolloutProgram, description: str) -> str:
    said = f"{description} " if description else ""
    return clike.comment([f"{program.name}: {said}{program.step.operations} in a step."], 112)
