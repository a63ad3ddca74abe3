"""CUDA: a rollout as one kernel, a robot per thread, what is carried from step to step in registers.

Parameters, and what depends on them alone, are kept in shared memory: reading them there costs an instruction,
keeping them in registers would cost warps. Nothing else is read or written during the steps, apart from feeds and
requested samples. Where the code is long, all warps of a block begin a step together, what is carried lies in shared
memory, too, and most parameters and samples stay in global memory.
"""

from __future__ import annotations

from collections.abc import Iterable

from linkwise.compiler.emit.clike import operands
from linkwise.compiler.emit.cuda.frame import WarpFrame
from linkwise.compiler.emit.cuda.layout import SHARED_IN_STEP, WARP, WarpLayout, item_size, pitch
from linkwise.compiler.ir.graph import CONDITIONS, Node
from linkwise.compiler.ir.loops import Array, Element, For, If, Nest, Place, Step, Whole
from linkwise.compiler.ir.schedule import Body, LoopRegion
from linkwise.compiler.rollout import RolloutProgram
from linkwise.compiler.shapes import DUE, Repetition


class RolloutFrame(WarpFrame):
    """The loop over steps. Lanes beyond the last robot repeat it: they compute and write the same numbers."""

    whole_type = "long long"
    form = "A thread takes a robot through all steps."

    def __init__(self, program: RolloutProgram, name: str, layout: WarpLayout | None = None):
        made, kept = _registers_saved(Repetition(program))
        super().__init__(made, name, f"{program.step.operations} in a step")
        self._kept = {index: k for k, index in enumerate(kept)}
        self._in_steps = False
        self.carried = [array for array in self.outs if array.kind == "both"]
        self.written = [array for array in self.outs if array.kind == "output"]
        self.parameters = [array for array in self.ins if array.rows == 1]
        self.feeds = [array for array in self.ins if array.rows != 1]
        own = [array for array in self.feeds if not array.shared]
        needed = [*own, Array("kept", "scratch", len(kept)), *self.carried]
        for array in needed:
            self.reserve(array)
        self.least = self.bytes  # of a warp; rows of the others can stay in global memory
        for array in (*self.parameters, *self.written):
            more = WARP * pitch(array.columns) * item_size(self.nest.dtype)
            if layout is None or not layout.in_step or layout.warps * (self.bytes + more) <= SHARED_IN_STEP:
                self.reserve(array)
        self.rows = [*needed, *self.parameters, *self.written]
        if layout is not None:
            self.lay_out(layout)

    def body(self) -> list[str]:
        moving = {array.name for array in self.feeds}
        return [
            *self.head(),
            "    const int states = rows_left(count, first);",
            "    const int row = lane < states ? lane : states - 1;",
            *self.fetches([*self.carried, *self.parameters]),
            "    wait_for_rows();",
            *(
                self.view(a, lane="lane" if self._lies_in_shared_memory(a) else "row")
                for a in self.rows
                if a.name in self.start and a.name not in moving
            ),
            *self._repeated(),
            *self._far(self.parameters, "(first + row) * {name}_stride"),
            *self.statements(),
            "    __syncwarp();",
            *self.stores(self.carried),
        ]

    def loop(self, loop: For) -> None:
        self.lines.append("#pragma unroll 1")
        self._open(f"for ({self.range(loop)})")
        own = [feed for feed in self.feeds if feed.name in self.start]
        if self.layout.in_step or own:  # all lanes have read the rows of the last step
            self._line("__syncthreads();" if self.layout.in_step else "__syncwarp();")
        samples = self._far(self.written, "((first + row) * samples + sample) * {size}")
        self.lines += ["    " + line for line in (*samples, *self.fetches(self.feeds))]
        for feed in self.feeds:
            name = self.spelled[feed.name]
            if feed in own:
                self.lines.append("    " + self.view(feed, lane="row"))
            elif feed.columns:
                self._line(f"const real *const {name} = {name}_rows + step_number * {feed.pitch};")
        # a barrier, so that what lies in shared memory is read anew in every step
        self._line("wait_for_rows();" if own else "__syncwarp();")
        self._in_steps = True
        self.write(loop.body)
        self._in_steps = False
        self._close()

    def _lies_in_shared_memory(self, array: Array) -> bool:
        return self.layout.in_step and array.kind == "both"

    def _repeated(self) -> list[str]:
        """Lanes beyond the last robot have rows of their own: others write theirs before all have read them."""
        return [
            f"    if (lane != row) for (int k = 0; k < {array.columns}; ++k) {self.spelled[array.name]}[k] = "
            f"room[{self.start[array.name]} + row * {pitch(array.columns)} + k];"
            for array in self.carried
            if self._lies_in_shared_memory(array) and array.columns
        ]

    def declared(self, start: Place | float) -> str:
        return self.element(start) if self.layout.in_step else super().declared(start)  # type: ignore[arg-type]

    def _far(self, arrays: list[Array], place: str) -> list[str]:
        """Rows for which shared memory has no room."""
        far = [array for array in arrays if array.columns and array.name not in self.start]
        kinds = ("const real" if array.kind == "input" else "real" for array in far)
        names = ((self.spelled[array.name], array.columns) for array in far)
        return [
            f"    {kind} *const {name} = {name}_rows + {place.format(name=name, size=size)};"
            for kind, (name, size) in zip(kinds, names, strict=True)
        ]

    def choice(self, choice: If) -> None:
        """A sample is complete: its rows are written to global memory together."""
        self._open(f"if ({self.whole(choice.test)})")
        self._line("__syncwarp();")
        for array in self.written:
            if (size := array.columns) and array.name in self.start:
                self._line(
                    f"spread_rows<{size}, {pitch(size)}>({self.spelled[array.name]}_rows + (first * samples + sample) "
                    f"* {size}, samples * {size}, room + {self.start[array.name]}, lane, states);"
                )
        self.write(choice.then)
        self._close()

    def step(self, step: Step) -> None:
        if self.layout.in_step and not self._in_steps and not step.body:
            return  # what is carried is where it belongs
        super().step(step)
        for node in () if self._in_steps else step.body:
            if isinstance(node, Node) and node.index in self._kept:
                self._line(f"kept[{self._kept[node.index]}] = {super().value(node)};")

    def target(self, place: Element) -> str:
        return f"if ({self.whole(DUE)}) {self.element(place)}"

    def offset(self, array: Array, place: Element) -> Whole:
        """Rows of feeds and samples are in shared memory one at a time."""
        return place.column

    def value(self, node: Node) -> str:
        if self._in_steps and node.index in self._kept:
            return f"kept[{self._kept[node.index]}]"
        return super().value(node)


def _registers_saved(made: Repetition) -> tuple[Nest, list[int]]:
    """(the loops with fewer values alive at once, numbers of nodes to keep in shared memory).

    Samples are stored as soon as they are known; conditions on parameters are evaluated in every step.
    """
    results = [node for _, node in (*made.samples, *made.following)]
    moved, kept = _shared_out(made.once, made.repeated, results)
    body = [*moved, *made.repeated]
    computed = {item.index for item in body if isinstance(item, Node)}
    known = [pair for pair in made.samples if pair[1].op != "result" and pair[1].index not in computed]
    late = [pair for pair in made.samples if pair not in known]
    first = [Step(made.reads, [], known)] if known else []
    return made.nest([*first, Step(made.reads, body, [*late, *made.following]), *made.sampling([])]), kept


def _shared_out(once: Body, repeated: Body, results: Iterable[Node]) -> tuple[Body, list[int]]:
    """(conditions to evaluate in every step, numbers of nodes to keep) of what is computed once."""
    used = list(results)
    for item in repeated:
        used += operands(item) if isinstance(item, LoopRegion) else item.args
    wanted = {(node.args[0] if node.op == "neg" else node).index for node in used}
    moved: Body = []
    kept: list[int] = []
    for item in reversed(once):
        if not isinstance(item, Node) or item.index not in wanted:
            continue
        if item.op in CONDITIONS:
            moved.append(item)
            wanted |= {(a.args[0] if a.op == "neg" else a).index for a in item.args}
        else:
            kept.append(item.index)
    return moved[::-1], kept[::-1]
