"""CUDA: a program with a loop that some states leave early and some late: a thread takes one state after the other.

A warp waits for the last of its 32 states in a loop: of a humanoid's contact steps a state needs 3 turns, the slowest
of 32 needs 12. Here a warp has many states. It computes what comes before the loop for all of them, 32 at a time, and
keeps what the loop needs in global memory. Then all lanes turn in the loop; one whose state has ended writes what the
loop carried and fetches the next state. What comes after the loop is again computed for 32 states at a time. Lanes know
nothing of each other, so that the results are those of a warp that waits. Contact steps of Unitree's G1, H200, float32:
18.1 instead of 8.6 million a second.

Memory of a warp: for every 32 states a column of 32 numbers for each value that is kept. It is read and written by
instructions of which the compiler knows nothing: it would look for what each of thousands of reads depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from linkwise.compiler.emit.clike import operands
from linkwise.compiler.emit.cuda.frame import WarpFrame
from linkwise.compiler.emit.cuda.layout import IN_STEP, WARP, WarpLayout, item_size
from linkwise.compiler.ir.graph import CONDITIONS, WORDS, Node
from linkwise.compiler.ir.loops import Place, Step
from linkwise.compiler.ir.program import Program, alive
from linkwise.compiler.ir.schedule import Body, LoopRegion
from linkwise.compiler.shapes import nest

STATES = 256
"""Of a warp at a time: the last of them leave lanes idle, and more need more memory."""


_FROM = 1000  # registers that a state would need from which what is kept in memory lies there anyway


def queued(program: Program) -> WarpLayout | None:
    """The layout of a program with one loop, of which states need different numbers of turns; None where a thread for
    each state does better, or where the loop shares more than numbers with what is outside."""
    regions = [item for item in program.body if isinstance(item, LoopRegion)]
    large = alive(program) * item_size(program.dtype) // 4 > _FROM
    if not large or len(regions) != 1 or not regions[0].loop.uneven:
        return None
    before, region, after = _divided(program.body)
    writes = [node for nodes in program.values for node in nodes]
    if any(node.op in CONDITIONS or node.op in WORDS for node in _crossing(before, region, after, writes)):
        return None
    return WarpLayout(IN_STEP, 1, (False,) * len(program.outputs), queued=True)


class QueuedFrame(WarpFrame):
    """The three parts of a program with one loop, each for all states of a warp."""

    form = "A thread takes a state, and the next one of its warp where the loop of that has ended."

    def __init__(self, program: Program, name: str, layout: WarpLayout):
        super().__init__(nest(program), name, f"{program.operations}")
        (step,) = self.nest.body
        assert isinstance(step, Step)
        self._given = step
        self.before, self.region, self.after = _divided(step.body)
        self._names: dict[Node, str] = {}  # of values that were computed in another part
        crossing = _crossing(self.before, self.region, self.after, [node for _, node in step.writes])
        carried = [phi for phi in self.region.loop.phi if phi.op == "phi"]
        self._columns = {node: k for k, node in enumerate((*carried, *crossing))}
        loop = set(_read_in(self.region))
        self._in_loop = [node for node in crossing if node in loop]
        self.lay_out(layout)
        self.resident = 1
        self.room_of_warp = STATES * len(self._columns)  # scalars
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
            f"    const int most = share < {STATES} ? (int)share : {STATES};",
            "#pragma unroll 1",
        ]
        self._open("for (long long first = warp * most; first < count; first += warps * most)")
        self._line("const int number = count - first < most ? (int)(count - first) : most;")
        self._tiles(self._before_loop)
        self._line("__syncwarp();")
        self._turns()
        self._line("__syncwarp();")
        self._tiles(self._after_loop)
        self._line("__syncwarp();")
        self._close()
        return self.lines

    def helpers(self) -> str:
        width, letter = ("64", "d") if self.nest.dtype == "float64" else ("32", "f")
        return super().helpers() + _HELPERS.format(width=width, letter=letter)

    def value(self, node: Node) -> str:
        return self._names.get(node) or super().value(node)

    # -- 32 states at a time ------------------------------------------------------------------------------------------

    def _tiles(self, part: Callable[[], None]) -> None:
        self.lines.append("#pragma unroll 1")
        self._open("for (int tile = 0; tile < number; tile += 32)")
        self._line("/* lanes beyond the last state repeat it: they compute and write the same numbers */")
        self._line("const int own = tile + lane < number ? tile + lane : number - 1;")
        self._line(f"real *const kept = {self._kept_of('own')};")
        for array in (*self.ins, *self.outs):
            name = self.spelled[array.name]
            if not array.columns:
                continue
            if array.kind == "input":
                self._line(f"const real *const {name} = {name}_rows + (first + own) * {name}_stride;")
            else:
                self._line(f"real *const {name} = {name}_rows + (first + own) * {array.columns};")
        part()
        self._close()

    def _kept_of(self, state: str) -> str:
        """Where the columns of a state lie."""
        return f"room + ({state} & ~31) * {len(self._columns)} + ({state} & 31)"

    def _column(self, node: Node) -> str:
        return f"fetched(kept + {WARP * self._columns[node]})"

    def _keep(self, node: Node, value: str) -> None:
        self._line(f"keep(kept + {WARP * self._columns[node]}, {value});")

    def _before_loop(self) -> None:
        known = set(self.before)
        writes = [(place, node) for place, node in self._given.writes if _without_sign(node) in known]
        self._part(self.before, writes)
        for phi, initial in zip(self.region.loop.phi, self.region.loop.initial, strict=True):
            self._keep(phi, self.value(initial))
        for node in self._columns:
            if node.op != "phi":
                self._keep(node, self.value(node))

    def _after_loop(self) -> None:
        known = set(self.before)
        writes = [(place, node) for place, node in self._given.writes if _without_sign(node) not in known]
        ends = {phi.value[1]: phi for phi in self.region.loop.phi}
        for node in _read(self.after, [node for _, node in writes]):
            kept = ends[node.value[1]] if node.op == "result" else node
            if kept in self._columns and node.op != "input":
                self._line(f"const real {self.value(node)} = {self._column(kept)};")
        self._part(self.after, writes)

    def _part(self, body: Body, writes: list[tuple[Place, Node]]) -> None:
        self._step, self._held, self._results = self._given, {}, {}
        self._stores = {}
        for place, node in writes:
            self._stores.setdefault(node, []).append(self.target(place))  # type: ignore[arg-type]
        self._body(body)
        for node in list(self._stores):
            self._store(node)

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
            self._line(f"real {self.value(node)} = 0;")
        self.lines.append("#pragma unroll 1")
        self._open("for (;;)")
        first, rest = self._tested()
        self._body(first)
        self._line(f"const bool active = own >= 0 && {self.value(loop.active)};")
        self._line("const unsigned int idle = ~__ballot_sync(~0u, active);")
        self._exchange(fetched)
        self._open("else if (active)")
        self._body(rest)
        self._moves()
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

    def _moves(self) -> None:
        """All carried values change at once: one that becomes another's old value is set aside first."""
        loop = self.region.loop
        moves = [(phi, new) for phi, new in zip(loop.phi, loop.following, strict=True) if new is not phi]
        aside: dict[int, str] = {}
        for k, (_, new) in enumerate(moves):
            if _without_sign(new).op == "phi":
                aside[k] = f"m{k}"
                self._line(f"const real {aside[k]} = {self.value(new)};")
        for k, (phi, new) in enumerate(moves):
            self._line(f"{self.value(phi)} = {aside.get(k) or self.value(new)};")


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
    later = _read(after, [node for node in outputs if _without_sign(node) not in known])
    return list(dict.fromkeys((*loop, *(node for node in later if node in known))))


def _read_in(region: LoopRegion) -> list[Node]:
    """All that the turns of a loop read; not what it begins with."""
    loop = region.loop
    nodes = [loop.active, *loop.following]
    for item in region.body:
        nodes += operands(item) if isinstance(item, LoopRegion) else item.args
    return list(dict.fromkeys(map(_without_sign, nodes)))


def _read(body: Body, outputs: Iterable[Node]) -> list[Node]:
    """All that a part reads."""
    nodes = [a for item in body if isinstance(item, Node) for a in item.args]
    return list(dict.fromkeys(map(_without_sign, (*nodes, *outputs))))


def _without_sign(node: Node) -> Node:
    return _without_sign(node.args[0]) if node.op == "neg" else node


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
