"""CUDA: what every kernel has around its statements: parameters, a comment, rows of states in shared memory.

The parameters of a kernel, all of 64 bits: the outputs (what a rollout carries, first), the inputs, the distance of
each input's rows in scalars (0: one row for all states), whole numbers of the call, the number of states; for kernels
that need it, memory for every block.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from linkwise.compiler.emit import clike
from linkwise.compiler.emit.clike import Dialect, Printer
from linkwise.compiler.emit.cuda import rows as cuda_rows
from linkwise.compiler.emit.cuda.layout import WARP, WarpLayout, item_size, pitch
from linkwise.compiler.ir.loops import Array, Nest

IEEE = ("--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true", "--std=c++17")

_OWN_NAMES = """
    threadIdx blockIdx blockDim gridDim warpSize real word quad shared_memory memory lane first states state room rows
    group exchange at meetings min meet tell store_columns
    count following inputs other half thread tile row kept steps every samples sample step_number left numbers
    sin sinf cos cosf sincos sincosf own number queue idle active share most warp warps next keep fetched
"""
KEYWORDS = clike.WORDS | frozenset(_OWN_NAMES.split())


@dataclass(frozen=True)
class Module:
    """A kernel as text, and what a launch must know."""

    text: str
    name: str
    threads: int
    shared: int
    """Bytes of dynamic shared memory per block."""
    resident: int = 0
    """Blocks for each multiprocessor that a launch needs at most, because they go on to further states; 0: enough for
    all states."""
    states: int = 0
    """What a block computes at a time; 0: a state for each thread."""
    scratch: int = 0
    """Bytes of global memory that each block needs."""


def dialect(dtype: str, name: str, whole: str) -> Dialect:
    """How CUDA spells things; ``name`` is the kernel's, ``whole`` the type of its whole numbers."""
    letter, suffix = ("d", "") if dtype == "float64" else ("f", "f")
    spelling = Dialect(
        real="real",
        condition="bool",
        suffix=suffix,
        infinity="infinity()",
        nan="not_a_number()",
        reserved=frozenset({*KEYWORDS, *cuda_rows.NAMES, name}),
        whole=whole,
        table="static __device__ const",
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
        real_from_bits="__longlong_as_double({0})",
        hardware_sin="__sinf({0})",
        hardware_cos="__cosf({0})",
    )
    return spelling


class Frame(Printer):
    """A kernel: subclasses say how states are shared out among threads."""

    whole_type = "int"
    form: str  # how states are shared out, a sentence for the comment
    threads: int  # of a block
    bounds: tuple[int, ...]  # of the launch
    shared = resident = states = scratch = 0  # see ``Module``

    def __init__(self, nest: Nest, name: str, cost: str):
        super().__init__(nest, dialect(nest.dtype, name, self.whole_type))
        self.name, self.cost = name, cost
        self.outs = [array for array in nest.arrays if array.kind in ("both", "output")]
        self.ins = [array for array in nest.arrays if array.kind == "input"]

    @abstractmethod
    def body(self) -> list[str]:
        """The lines between the braces of the kernel."""

    def helpers(self) -> str:
        return cuda_rows.helpers(self.nest.dtype)

    def module(self, description: str) -> Module:
        kernel = self._kernel()
        parts = [self._comment(description), self.helpers(), self.tables(), kernel]
        text = "\n".join(part for part in parts if part)
        return Module(text, self.name, self.threads, self.shared, self.resident, self.states, self.scratch)

    def _kernel(self) -> str:
        outs, ins = ([self.spelled[array.name] for array in arrays] for arrays in (self.outs, self.ins))
        rows = [array.rows for array in self.nest.arrays if isinstance(array.rows, str)]
        parameters = [f"real *__restrict__ {out}_rows" for out in outs]
        parameters += [f"const real *__restrict__ {given}_rows" for given in ins]
        parameters += [f"const long long {given}_stride" for given in ins]
        parameters += [
            f"const long long {number}" for number in dict.fromkeys((*self.nest.numbers, *rows, "count"))
        ]
        parameters += ["real *__restrict__ memory"] if self.scratch else []
        return "\n".join(
            [
                f'extern "C" __global__ void __launch_bounds__({", ".join(map(str, self.bounds))})',
                f"{self.name}(",
                ",\n".join("    " + parameter for parameter in parameters) + ")",
                "{",
                *self.body(),
                "}",
                "",
            ]
        )

    def _comment(self, description: str) -> str:
        lines = [
            f"{self.name}: {description}" if description else self.name,
            "",
            f"Cost: {self.cost}. {self.form}",
            f"Launch: blocks of {self.threads} threads, {self.states or self.threads} states at a time each, with "
            f"{self.shared} bytes of dynamic shared memory"
            + (f"; {self.resident} blocks per multiprocessor are enough." if self.resident else "."),
            "Parameters: the outputs, the inputs, for each input the distance of its rows in scalars (0: one row for "
            f"all states), the number of states{', memory for every block' if self.scratch else ''}. Rows of outputs "
            "follow each other; nothing may overlap an output.",
            "",
        ]
        for array in (*self.ins, *self.outs):
            lines.append(f"  {self.spelled[array.name]:<12} {array.kind:<6}  {array.columns}")
        lines += ["", f"Build: nvrtc or nvcc with {' '.join(IEEE)}; with --use_fast_math for other bits."]
        return clike.comment(lines, 105, "  ")


class WarpFrame(Frame):
    """A thread for each state. The rows of a warp's 32 states lie in its part of shared memory, ``room``."""

    def __init__(self, nest: Nest, name: str, cost: str):
        super().__init__(nest, name, cost)
        self.start: dict[str, int] = {}  # where the rows of an array begin, in scalars
        self.scalars: int = 0  # of a warp

    def reserve(self, array: Array) -> None:
        if array.columns:
            self.start[array.name] = self.scalars
            self.scalars += WARP * pitch(array.columns)

    @property
    def bytes(self) -> int:
        """Shared memory of a warp."""
        return self.scalars * item_size(self.nest.dtype)

    def lay_out(self, layout: WarpLayout) -> None:
        """Fix the size of blocks."""
        self.layout = layout
        self.threads, self.bounds = layout.threads, (layout.threads, layout.resident)
        self.shared = self.bytes * layout.warps

    def room(self, thread: str = "threadIdx.x") -> str:
        return f"(real *)shared_memory + {thread} / 32 * {self.scalars}"

    def head(self) -> list[str]:
        """The warp's part of shared memory, and the first of its states."""
        return [
            "    extern __shared__ __align__(16) unsigned char shared_memory[];",
            "    const int lane = threadIdx.x % 32;",
            f"    real *const room = {self.room()};",
            f"    const long long first = ((long long)blockIdx.x * {self.layout.warps} + threadIdx.x / 32) * 32;",
            "    if (first >= count) return;",
        ]

    def fetches(
        self, arrays: list[Array], first: str = "first", base: str = "room", lanes: int = WARP
    ) -> list[str]:
        """Rows of the states from ``first`` on, started on their way; of a table, the part for this step."""
        lines: list[str] = []
        lane = "lane" if lanes == WARP else "thread"
        for array in arrays:
            if array.name in self.start:
                name, size = self.spelled[array.name], array.columns
                stride = f"{name}_stride" if array.kind == "input" else str(size)
                rows = f"{name}_rows + {first} * {stride}"
                rows += f" + step_number * {array.pitch}" if array.rows == "steps" else ""
                lines.append(
                    f"    fetch_rows<{size}, {pitch(size)}, {lanes}>({base} + {self.start[array.name]}, {rows}, "
                    f"{stride}, {lane}, rows_left(count, {first}));"
                )
        return lines

    def view(self, array: Array, base: str = "room", lane: str = "lane") -> str:
        """The row of the lane's state."""
        const = "const " if array.kind == "input" else ""
        row = f"{base} + {self.start[array.name]} + {lane} * {pitch(array.columns)}"
        return f"    {const}real *const {self.spelled.get(array.name, array.name)} = {row};"

    def stores(self, arrays: list[Array]) -> list[str]:
        """Rows back to global memory."""
        return [
            f"    store_rows<{array.columns}, {pitch(array.columns)}>({self.spelled[array.name]}_rows + first * "
            f"{array.columns}, room + {self.start[array.name]}, lane, states);"
            for array in arrays
            if array.name in self.start
        ]
