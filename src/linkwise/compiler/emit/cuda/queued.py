"""CUDA: a program with a loop that some states leave early and some late: a thread takes one state after the other.

A warp waits for the last of its 32 states in a loop: of a humanoid's contact steps a state needs 3 turns, the slowest
of 32 needs 12. Here a warp has many states. It computes what comes before the loop for all of them, 32 at a time, and
keeps what the loop needs in global memory. Then all lanes turn in the loop; one whose state has ended writes what the
loop carried and fetches the next state. What comes after the loop is again computed for 32 states at a time. Lanes know
nothing of each other, so that the results are those of a warp that waits. Contact steps of Unitree's G1, H200, float32:
21.1 instead of 8.6 million a second.

Memory of a warp: for every 32 states a column of 32 numbers for each value that is kept. It is read and written by
instructions of which the compiler knows nothing: it would look for what each of thousands of reads depends on.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable

from linkwise.compiler.emit.clike import operands, without_sign
from linkwise.compiler.emit.cuda.frame import WarpFrame
from linkwise.compiler.emit.cuda.layout import IN_STEP, WARP, WarpLayout, item_size
from linkwise.compiler.ir.graph import CONDITIONS, WORDS, Node
from linkwise.compiler.ir.loops import Array, Element, Let, Nest, Step, Whole, whole
from linkwise.compiler.ir.program import Program, alive
from linkwise.compiler.ir.schedule import Body, LoopRegion
from linkwise.compiler.rollout import RolloutProgram
from linkwise.compiler.shapes import DUE, Repetition, nest

STATES = {"float32": 512, "float64": 256}
"""Of a warp at a time: the last of them leave lanes idle, and more need more memory."""

_FROM = 1000
"""Values alive at once from which what is kept in memory lies there anyway. A quadruped's step in float64 (712) is
slower with a queue: 120 instead of 167 million a second."""


def queued(program: Program | RolloutProgram) -> WarpLayout | None:
    """The layout of a program, or of a rollout's step, with one loop, of which states need different numbers of turns;
    None where a thread for each state does better, or where the loop shares bits with what is outside."""
    step = program.step if isinstance(program, RolloutProgram) else program
    regions = [item for item in step.body if isinstance(item, LoopRegion)]
    if alive(step) <= _FROM or len(regions) != 1 or not regions[0].loop.uneven:
        return None
    outputs = [node for nodes in step.values for node in nodes]
    if any(node.op in WORDS or node.op == "bit" for node in _crossing(*_divided(step.body), outputs)):
        return None
    return WarpLayout(IN_STEP, 1, (False,) * len(step.outputs), queued=True)


class _Queue(WarpFrame):
    """The three parts of a program with one loop, each for all states of a warp."""

    def __init__(self, made: Nest, name: str, cost: str, layout: WarpLayout, step: Step):
        super().__init__(made, name, cost)
        self._given = step
        self.before, self.region, self.after = _divided(step.body)
        self._names: dict[Node, str] = {}  # of inputs in the loop
        crossing = _crossing(self.before, self.region, self.after, [node for _, node in step.writes])
        self._columns = {node: k for k, node in enumerate((*self.region.loop.phi, *crossing))}
        loop = set(_read_in(self.region))
        self._in_loop = [node for node in crossing if node in loop]
        self.lay_out(layout)
        self.resident = 1
        self.most = STATES[made.dtype]
        self.room_of_warp = self.most * len(self._columns)  # scalars
        self.scratch = layout.warps * self.room_of_warp * item_size(self.nest.dtype)

    def body(self) -> list[str]:
        warps = self.layout.warps
        self.lines = [
            "    const int lane = threadIdx.x % 32;",
            f"    const long long warp = (long long)blockIdx.x * {warps} + threadIdx.x / 32;",
            f"    const long long warps = (long long)gridDim.x * {warps};",
            f"    real *const room = memory + warp * {self.room_of_warp};",
            "    /* as many for each warp; few states are shared out among all warps */",
            "    const long long share = ((count + warps - 1) / warps + 31) / 32 * 32;",
            f"    const int most = share < {self.most} ? (int)share : {self.most};",
            "#pragma unroll 1",
        ]
        self._open("for (long long first = warp * most; first < count; first += warps * most)")
        self._line("const int number = count - first < most ? (int)(count - first) : most;")
        self.states_of_warp()
        self._close()
        return self.lines

    def states_of_warp(self) -> None:
        """What a warp does for its states: the three parts."""
        self._tiles(self._before_loop)
        self._line("__syncwarp();")
        self._turns()
        self._line("__syncwarp();")
        self._tiles(self._after_loop)
        self._line("__syncwarp();")

    @abstractmethod
    def row(self, array: Array) -> str:
        """Where the row of the state ``own`` begins."""

    def helpers(self) -> str:
        width, letter = ("64", "d") if self.nest.dtype == "float64" else ("32", "f")
        return super().helpers() + _HELPERS.format(width=width, letter=letter)

    def value(self, node: Node) -> str:
        return self._names.get(node) or super().value(node)

    # -- 32 states at a time ------------------------------------------------------------------------------------------

    def _tiles(self, part: Callable[[], None]) -> None:
        self.lines.append("#pragma unroll 1")
        self._open("for (int own = lane; own < number; own += 32)")
        self._line(f"real *const kept = {self._kept_of('own')};")
        for array in (*self.ins, *self.outs):
            if array.columns:
                const = "const " if array.kind == "input" else ""
                self._line(f"{const}real *const {self.spelled[array.name]} = {self.row(array)};")
        self._step, self._held, self._stores, self._results = self._given, {}, {}, {}
        part()
        self._close()

    def _kept_of(self, state: str) -> str:
        """Where the columns of a state lie."""
        return f"room + ({state} & ~31) * {len(self._columns)} + ({state} & 31)"

    def _column(self, node: Node) -> str:
        value = f"fetched(kept + {WARP * self._columns[node]})"
        return f"{value} != 0" if node.op in CONDITIONS else value

    def _keep(self, node: Node, value: str) -> None:
        value = f"{value} ? 1 : 0" if node.op in CONDITIONS else value
        self._line(f"keep(kept + {WARP * self._columns[node]}, {value});")

    def _kind(self, node: Node) -> str:
        return self.dialect.condition if node.op in CONDITIONS else self.dialect.real

    def _before_loop(self) -> None:
        self._body(self.before)
        loop = self.region.loop
        firsts = dict(zip(loop.phi, loop.initial, strict=True))
        for node in self._columns:
            self._keep(node, self.value(firsts.get(node, node)))

    def _after_loop(self) -> None:
        writes = self._given.writes
        ends = {phi.value[1]: phi for phi in self.region.loop.phi}
        for node in _read(self.after, [node for _, node in writes]):
            kept = ends[node.value[1]] if node.op == "result" else node
            if kept in self._columns and node.op != "input":
                self._line(f"const {self._kind(node)} {self.value(node)} = {self._column(kept)};")
        self._body(self.after)
        # what a rollout carries lies where it is read: all of that is read before any is written
        aside = {
            node: self._variable("r", self.value(node))
            for _, node in writes
            if without_sign(node).op == "input"
        }
        for place, node in writes:
            target = self.target(place) if isinstance(place, Element) else self.place(place)
            self._line(f"{target} = {aside.get(node) or self.value(node)};")

    # -- the loop -----------------------------------------------------------------------------------------------------

    def _turns(self) -> None:
        loop = self.region.loop
        self._step, self._held, self._stores, self._results = self._given, {}, {}, {}
        self._open("")
        self._line("int own = -1, queue = 0;")
        inputs = [node for node in self._in_loop if node.op == "input"]
        self._names = {node: f"n{k}" for k, node in enumerate(inputs)}
        fetched = [*loop.phi, *self._in_loop]
        for node in fetched:
            self._line(f"{self._kind(node)} {self.value(node)} = 0;")
        self.lines.append("#pragma unroll 1")
        self._open("for (;;)")
        first, rest = self._tested()
        self._body(first)
        self._line(f"const bool active = own >= 0 && {self.value(loop.active)};")
        self._line("const unsigned int idle = ~__ballot_sync(~0u, active);")
        self._exchange(fetched)
        self._open("else if (active)")
        self._body(rest)
        self._moves(self.region)
        self._close()
        self._close()
        self._close()
        self._names = {}

    def _tested(self) -> tuple[Body, Body]:
        """(what the condition of the loop needs, the rest of a turn)."""
        body = self.region.body
        at = body.index(self.region.loop.active) + 1 if self.region.loop.active in body else 0
        return body[:at], body[at:]

    def _exchange(self, fetched: list[Node]) -> None:
        """Lanes without a state, or whose state has ended, take the next ones in the order of the lanes."""
        self._open("if (queue < number ? idle != 0 : idle == ~0u)")
        self._open("if (!active && own >= 0)")
        self._line(f"real *const kept = {self._kept_of('own')};")
        for node in self.region.loop.phi:
            self._keep(node, self.value(node))
        self._close()
        self._line("if (queue >= number) break;")
        self._line("const int next = queue + __popc(idle & ((1u << lane) - 1));")
        self._line("if (!active) own = next < number ? next : -1;")
        self._open("if (!active && own >= 0)")
        self._line(f"const real *const kept = {self._kept_of('own')};")
        for node in fetched:
            self._line(f"{self.value(node)} = {self._column(node)};")
        self._close()
        self._line("queue += __popc(idle);")
        self._close()


class QueuedFrame(_Queue):
    """A program, once for each state."""

    form = "A thread takes a state, and the next one of its warp where the loop of that has ended."

    def __init__(self, program: Program, name: str, layout: WarpLayout):
        made = nest(program)
        (step,) = made.body
        assert isinstance(step, Step)
        super().__init__(made, name, f"{program.operations}", layout, step)

    def row(self, array: Array) -> str:
        name = self.spelled[array.name]
        return f"{name}_rows + (first + own) * {f'{name}_stride' if array.kind == 'input' else array.columns}"


class QueuedRolloutFrame(_Queue):
    """All steps of a warp's robots, each of them for all robots. What is carried lies in its rows in global memory."""

    whole_type = "long long"
    form = "A thread takes a robot's step, and the next one's of its warp where the loop of that has ended."

    def __init__(self, program: RolloutProgram, name: str, layout: WarpLayout):
        made = Repetition(program)
        step = Step(made.reads, [*made.once, *made.repeated], [*made.samples, *made.following])
        super().__init__(nest(program), name, f"{program.step.operations} in a step", layout, step)
        self._repetition = made
        for (key, k), register in made.registers.items():
            self._registers[register] = self.element(Element(key, whole(k)))

    def states_of_warp(self) -> None:
        if self._repetition.samples:
            self.write([Let("sample", whole(0)), Let("left", whole(0))])
        self.lines.append("#pragma unroll 1")
        self._open("for (long long step_number = 0; step_number < steps; ++step_number)")
        super().states_of_warp()
        self.write(self._repetition.sampling([]))
        self._close()

    def row(self, array: Array) -> str:
        name, size = self.spelled[array.name], array.columns
        if array.kind == "both":
            return f"{name}_rows + (first + own) * {size}"
        if array.kind == "output":
            return f"{name}_rows + ((first + own) * samples + sample) * {size}"
        now = f" + step_number * {array.pitch}" if array.rows == "steps" else ""
        return f"{name}_rows" + ("" if array.shared else f" + (first + own) * {name}_stride") + now

    def target(self, place: Element) -> str:
        return f"if ({self.whole(DUE)}) {self.element(place)}"

    def offset(self, array: Array, place: Element) -> Whole:
        """Rows of feeds and samples are those of the step."""
        return place.column


def _divided(body: Body) -> tuple[Body, LoopRegion, Body]:
    """What comes before the loop, the loop, what comes after it."""
    at = next(k for k, item in enumerate(body) if isinstance(item, LoopRegion))
    region = body[at]
    assert isinstance(region, LoopRegion)
    return body[:at], region, body[at + 1 :]


def _crossing(before: Body, region: LoopRegion, after: Body, outputs: Iterable[Node]) -> list[Node]:
    """Values from before the loop that are needed in it, and inputs that are; then those that are only needed after
    it."""
    known = set(before)
    loop = [node for node in _read_in(region) if node in known or node.op == "input"]
    return list(dict.fromkeys((*loop, *(node for node in _read(after, outputs) if node in known))))


def _read_in(region: LoopRegion) -> list[Node]:
    """All that the turns of a loop read; not what it begins with."""
    loop = region.loop
    nodes = [loop.active, *loop.following]
    for item in region.body:
        nodes += operands(item) if isinstance(item, LoopRegion) else item.args
    return list(dict.fromkeys(map(without_sign, nodes)))


def _read(body: Body, outputs: Iterable[Node]) -> list[Node]:
    """All that a part reads."""
    nodes = [a for item in body if isinstance(item, Node) for a in item.args]
    return list(dict.fromkeys(map(without_sign, (*nodes, *outputs))))


_HELPERS = """
/* What ``keep`` wrote there before the last __syncwarp(). */
static __device__ __forceinline__ real fetched(const real *from)
{{
#ifdef __CUDA_ARCH__
    real x;
    asm volatile("ld.global.f{width} %0, [%1];" : "={letter}"(x) : "l"(from));
    return x;
#else
    return *from;
#endif
}}

static __device__ __forceinline__ void keep(real *to, real x)
{{
#ifdef __CUDA_ARCH__
    asm volatile("st.global.f{width} [%0], %1;" :: "l"(to), "{letter}"(x));
#else
    *to = x;
#endif
}}
"""
