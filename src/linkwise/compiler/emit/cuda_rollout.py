"""CUDA: a rollout as one kernel, a robot per thread, what is carried from step to step in registers.

Parameters, and what depends on them alone, wait in shared memory: read where they are used they cost an instruction,
kept in registers they would cost warps. Nothing else is read or written during the steps, apart from feeds and the
samples that are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from linkwise.compiler.emit.clike import operands
from linkwise.compiler.emit.cuda_frame import WarpFrame
from linkwise.compiler.emit.cuda_layout import pitch
from linkwise.compiler.graph import CONDITIONS, Node
from linkwise.compiler.loops import Array, Element, For, If, Nest, Statement, Step, Whole, name
from linkwise.compiler.rollout import RolloutProgram
from linkwise.compiler.schedule import Body, LoopRegion
from linkwise.compiler.shapes import nest


class RolloutFrame(WarpFrame):
    """The loop over steps. Lanes beyond the last robot repeat it: they compute and write the same numbers."""

    whole_type = "long long"
    form = "A thread takes a robot through all steps."

    def __init__(self, program: RolloutProgram, name: str):
        made, kept = _registers_saved(nest(program))
        super().__init__(made, name, f"{program.step.operations} in a step")
        self._kept = {index: k for k, index in enumerate(kept)}
        self._in_steps = False
        self.carried = [array for array in self.outs if array.kind == "both"]
        self.written = [array for array in self.outs if array.kind == "output"]
        self.parameters = [array for array in self.ins if array.rows == 1]
        self.feeds = [array for array in self.ins if array.rows != 1]
        own = [array for array in self.feeds if not array.shared]
        self.rows = [
            *self.parameters,
            *own,
            *self.written,
            Array("kept", "scratch", len(kept)),
            *self.carried,
        ]
        for array in self.rows:
            self.reserve(array.name, array.columns)

    def body(self) -> list[str]:
        moving = {array.name for array in self.feeds}
        return [
            *self.head(),
            "    const int states = rows_left(count, first);",
            "    const int row = lane < states ? lane : states - 1;",
            *self.fetches([*self.carried, *self.parameters]),
            "    wait_for_rows();",
            *(self.view(a, lane="row") for a in self.rows if a.name in self.start and a.name not in moving),
            *self.statements(),
            "    __syncwarp();",
            *self.stores(self.carried),
        ]

    def loop(self, loop: For) -> None:
        self.lines.append("#pragma unroll 1")
        self._open(f"for ({self.range(loop)})")
        own = False
        for feed in self.feeds:
            at = f" + step_number * {feed.pitch}"
            if feed.shared:
                name = self.spelled[feed.name]
                self._line(f"const real *const {name} = {name}_rows{at};")
            elif feed.columns:
                own = True
                lines = [*self.fetches([feed], at=at), self.view(feed, lane="row")]
                self.lines += ["    " + line for line in lines]
        # a barrier, so that what lies in shared memory is read anew in every step
        self._line("wait_for_rows();" if own else "__syncwarp();")
        self._in_steps = True
        self.write(loop.body)
        self._in_steps = False
        self._close()

    def choice(self, choice: If) -> None:
        """A sample is complete: its rows leave together."""
        self._open(f"if ({self.whole(choice.test)})")
        self._line("__syncwarp();")
        for array in self.written:
            if size := array.columns:
                self._line(
                    f"spread_rows<{size}, {pitch(size)}>({self.spelled[array.name]}_rows + (first * samples + sample) "
                    f"* {size}, samples * {size}, room + {self.start[array.name]}, lane, states);"
                )
        self.write(choice.then)
        self._close()

    def step(self, step: Step) -> None:
        super().step(step)
        for node in () if self._in_steps else step.body:
            if isinstance(node, Node) and node.index in self._kept:
                self._line(f"kept[{self._kept[node.index]}] = {super().value(node)};")

    def target(self, place: Element) -> str:
        return f"if ({self.whole(_DUE)}) {self.element(place)}"

    def offset(self, array: Array, place: Element) -> Whole:
        """Rows of feeds and samples are in shared memory one at a time."""
        return place.column

    def value(self, node: Node) -> str:
        if self._in_steps and node.index in self._kept:
            return f"kept[{self._kept[node.index]}]"
        return super().value(node)


_DUE = name("left").equals(0)


def _registers_saved(made: Nest) -> tuple[Nest, list[int]]:
    """(the nest of a rollout with fewer values alive at once, numbers of nodes to keep in shared memory).

    Samples are stored as soon as they are known; conditions on parameters are evaluated in every step.
    """
    place = next(k for k, statement in enumerate(made.body) if isinstance(statement, For))
    loop, before = made.body[place], made.body[:place]
    assert isinstance(loop, For)
    repeated, *sampling, following = loop.body
    assert isinstance(repeated, Step)
    assert isinstance(following, Step)
    once = [node for statement in before if isinstance(statement, Step) for node in statement.body]
    samples, after = [], list(sampling)
    if sampling:
        (complete, *further) = sampling
        assert isinstance(complete, If)
        assert isinstance(complete.then[0], Step)
        samples, after = list(complete.then[0].writes), [replace(complete, then=complete.then[1:]), *further]
    results = [node for _, node in (*samples, *following.writes)]
    moved, kept = _shared_out(once, repeated.body, results)
    body = [*moved, *repeated.body]
    computed = {item.index for item in body if isinstance(item, Node)}
    known = [pair for pair in samples if pair[1].op != "result" and pair[1].index not in computed]
    late = [pair for pair in samples if pair not in known]
    steps: list[Statement] = [
        *([Step(repeated.reads, [], known)] if known else []),
        Step(repeated.reads, body, [*late, *following.writes]),
        *after,
    ]
    return replace(made, body=[*before, replace(loop, body=steps), *made.body[place + 1 :]]), kept


def _shared_out(once: Body, repeated: Body, results: Iterable[Node]) -> tuple[Body, list[int]]:
    """(conditions to evaluate in every step, numbers of nodes to keep) of what is computed once."""
    used = list(results)
    for item in repeated:
        used += operands(item) if isinstance(item, LoopRegion) else item.args
    wanted = {(node.args[0] if node.op == "neg" else node).index for node in used}
    moved, kept = [], []
    for item in reversed(once):
        if not isinstance(item, Node) or item.index not in wanted:
            continue
        if item.op in CONDITIONS or item.op == "neg":
            moved += [item] if item.op in CONDITIONS else []
            wanted |= {(a.args[0] if a.op == "neg" else a).index for a in item.args}
        else:
            kept.append(item.index)
    return moved[::-1], kept[::-1]
