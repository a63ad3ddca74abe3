"""CUDA: programs with loops over links, for chains and trees too long to be written out.

Two forms, with the same bits as on the CPU:

* ``serial``: a thread takes a state through all sweeps. What passes from one sweep to another lies in global memory,
  neighbouring states beside each other.
* ``scanned``: a block takes a state. Loops in which rows do not depend on each other are shared out among its threads,
  and so are the pairs of each level of a scan.

A launch brings room in global memory as the last parameter, ``scratch`` bytes for each block; blocks go on to further
states.
"""

from __future__ import annotations

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from linkwise.compiler.emit import clike, cuda_rows
from linkwise.compiler.emit.clike import Dialect, Printer, argument_names
from linkwise.compiler.emit.cuda import KEYWORDS, Module, dialect
from linkwise.compiler.emit.cuda_layout import item_size
from linkwise.compiler.graph import CONDITIONS, Node
from linkwise.compiler.sweeps import Kind, Pairs, Scan, Sweep, SweptProgram
from linkwise.errors import TraceError

SERIAL_THREADS = 32  # one warp: few long chains spread over many multiprocessors
SCAN_THREADS = 256  # with all registers that a thread may have
RESIDENT = 16  # blocks for each multiprocessor
_OWN_NAMES = frozenset(
    {"constants", "parents", "kinds", "room", "parent", "state", "memory", "left", "right", "place"}
)


def module(program: SweptProgram, *, function_name: str | None = None, description: str = "") -> Module:
    """The kernel with its launch parameters."""
    name = clike.function_name(function_name, program.name, KEYWORDS)
    text = (_Scanned if program.scanned else _Serial)(program, name)
    return Module(
        "\n".join(
            [text.comment(description), cuda_rows.helpers(program.dtype), text.tables(), text.kernel()]
        ),
        name,
        text.threads,
        0,
        RESIDENT,
        states=text.states,
        scratch=program.scratch_scalars(text.states) * item_size(program.dtype),
    )


class _Text(ABC):
    """What both forms have in common."""

    threads: int
    states: int  # of a block at a time
    form: str

    def __init__(self, program: SweptProgram, name: str):
        self.program, self.name = program, name
        spelled = dialect(program.dtype, name)
        self.dialect = replace(spelled, reserved=spelled.reserved | _OWN_NAMES)
        names = [key for key, _ in (*program.inputs, *program.outputs)]
        self.arguments = argument_names(names, self.dialect.reserved)
        self.inputs = dict(zip((key for key, _ in program.inputs), self.arguments, strict=False))
        self.outputs = dict(zip(program.results, self.arguments[len(program.inputs) :], strict=True))
        self.lines: list[str] = []
        self.indent = 2

    # -- parts of the file ----------------------------------------------------------------------------------------

    def comment(self, description: str) -> str:
        program = self.program
        text = (
            f"{self.name}: {description}" if description else self.name,
            f"Cost of a state: {program.operations}.",
            f"{self.form} Launch: blocks of {self.threads} threads, {self.states} states at a time each.",
            "Parameters: the outputs, the inputs, for each input the distance of its rows in scalars (0: one row for "
            "all states), the number of states, room for every block.",
        )
        lines = [part for line in text for part in textwrap.wrap(line, 105)]
        safe = [line.replace("*/", "* /").replace("/*", "/ *").rstrip("\\") for line in lines]
        return "\n".join(["/* " + safe[0], *(f" * {line}" for line in safe[1:]), " */", ""])

    def tables(self) -> str:
        """The constants of the rows, their parents and their kinds."""
        program = self.program
        values = program.table.T.ravel() if self.by_columns else program.table.ravel()
        # a table cannot call the functions that spell these elsewhere
        spelling = replace(self.dialect, infinity="(real)(1.0 / 0.0)", nan="(real)(0.0 / 0.0)")
        text = _table("real", "constants", [spelling.number(float(v)) for v in values] or ["0"])
        if not program.chain:
            roots = [parent if parent >= 0 else program.rows for parent in program.parents]
            text += _table("int", "parents", map(str, roots))
        if len(program.kinds) > 1:
            text += _table("unsigned char", "kinds", map(str, program.kind_of))
        return text

    def kernel(self) -> str:
        ins, outs = list(self.inputs.values()), list(self.outputs.values())
        parameters = [f"real *__restrict__ {out}_rows" for out in outs]
        parameters += [f"const real *__restrict__ {given}_rows" for given in ins]
        parameters += [f"const long long {given}_stride" for given in ins]
        parameters += ["const long long count", "real *__restrict__ memory"]
        rows = self.program.rows
        self.lines = [f"const real *const {given} = {given}_rows + state * {given}_stride;" for given in ins]
        self.lines += [f"real *const {out} = {out}_rows + state * {rows};" for out in outs]
        self.lines = ["        " + line for line in self.lines]
        self.body()
        return "\n".join(
            [
                f'extern "C" __global__ void __launch_bounds__({self.threads})',
                f"{self.name}(",
                ",\n".join("    " + parameter for parameter in parameters) + ")",
                "{",
                *("    " + line for line in self.head()),
                *self.lines,
                "    }",
                "}",
                "",
            ]
        )

    # -- what the forms decide ------------------------------------------------------------------------------------

    by_columns: bool

    @abstractmethod
    def head(self) -> list[str]: ...

    @abstractmethod
    def body(self) -> None: ...

    @abstractmethod
    def place(self, row: str, field: int) -> str: ...

    # -- statements -----------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def open(self, text: str) -> None:
        self.line(text + " {")
        self.indent += 1

    def close(self) -> None:
        self.indent -= 1
        self.line("}")

    def roots(self) -> None:
        for field, value in self.program.roots_in_memory().items():
            self.line(f"{self.place(str(self.program.rows), field)} = {self.dialect.number(value)};")

    OF_ROW = ("given", "table", "at")

    def of_row(self, source: str, which: Any) -> str:
        """What belongs to the row alone: an input, a constant, a value that was stored for it."""
        if source == "given":
            return f"{self.inputs[which]}[row]"
        if source == "at":
            return self.place("row", which)
        rows, columns = self.program.table.shape
        return (
            f"constants[{which * rows} + row]" if self.by_columns else f"constants[row * {columns} + {which}]"
        )

    def kinds_of_row(self, sweep: Sweep, write: Callable[[Kind], None]) -> None:
        """The step of this row's kind."""
        kinds = list(sweep.kinds.values())
        for number, kind in enumerate(kinds):
            last = number == len(kinds) - 1
            condition = "" if last else f"if (kinds[row] == {number})"
            self.open((f"else {condition}" if number else condition).strip() if len(kinds) > 1 else "")
            write(kind)
            self.close()

    def step(self, kind: Kind, spelled: Callable[[str, int], str]) -> _Statements:
        """The arithmetic of one step, written; what it has to say about its values."""
        statements = _Statements(kind, self.dialect, spelled)
        for text in statements.written():
            self.line(text)
        return statements


class _Serial(_Text):
    """A thread for each state."""

    threads = states = SERIAL_THREADS
    by_columns = False
    form = "A thread takes a state through all sweeps."

    def head(self) -> list[str]:
        block = self.program.scratch_scalars(self.states)
        return [
            f"real *const room = memory + blockIdx.x * {block}ll + threadIdx.x;",
            f"for (long long state = blockIdx.x * {self.threads}ll + threadIdx.x; state < count; "
            f"state += gridDim.x * {self.threads}ll) {{",
        ]

    def place(self, row: str, field: int) -> str:
        places = len(self.program.places)
        return f"room[({row} * {places} + {self.program.places[field]}) * {self.threads}ll]"

    def body(self) -> None:
        program = self.program
        self.roots()
        self._clear()
        for number, sweep in enumerate(program.sweeps):
            assert isinstance(sweep, Sweep)
            self._sweep(number, sweep)

    def _clear(self) -> None:
        sums = self.program.sums_in_memory()
        if sums:
            self.open(f"for (int row = 0; row < {self.program.rows}; ++row)")
            for field, value in sums:
                self.line(f"{self.place('row', field)} = {self.dialect.number(value)};")
            self.close()

    def _sweep(self, number: int, sweep: Sweep) -> None:
        program, rows = self.program, self.program.rows
        passed = program.passed(sweep)
        self.open("")
        for field, start in passed.items():
            self.line(f"real p{number}_{field} = {self.dialect.number(start)};")
        self.open(
            f"for (int row = {rows - 1}; row >= 0; --row)"
            if sweep.inward
            else f"for (int row = 0; row < {rows}; ++row)"
        )
        if not program.chain:
            self.line("const int parent = parents[row];")

        def spelled(source: str, which: Any) -> str:
            if source in self.OF_ROW:
                return self.of_row(source, which)
            if program.chain:
                return f"p{number}_{which}"
            return self.place("parent" if source == "above" else "row", which)

        def write(kind: Kind) -> None:
            written = self.step(kind, spelled)
            following = []
            for field, node in kind.stored.items():
                value = written.value(node)
                if field in program.places:
                    self.line(f"{self.place('row', field)} = {value};")
                if field in self.outputs:
                    self.line(f"{self.outputs[field]}[row] = {value};")
                if field in passed:
                    following.append((field, value))
            for field, node in kind.carried.items():
                if program.chain:
                    following.append((field, written.value(node)))
                else:
                    self.line(f"{self.place('parent', field)} += {written.value(node)};")
            for field, value in following:  # all change at once
                self.line(f"const real n{number}_{field} = {value};")
            for field, _ in following:
                self.line(f"p{number}_{field} = n{number}_{field};")

        self.kinds_of_row(sweep, write)
        self.close()
        self.close()


class _Scanned(_Text):
    """A block for each state."""

    threads, states = SCAN_THREADS, 1
    by_columns = True
    form = "A block takes a state; its threads share the rows of each loop and the pairs of each level of a scan."

    def head(self) -> list[str]:
        block = self.program.scratch_scalars(self.states)
        return [
            f"real *const room = memory + blockIdx.x * {block}ll;",
            "for (long long state = blockIdx.x; state < count; state += gridDim.x) {",
        ]

    def place(self, row: str, field: int) -> str:
        return f"room[{self.program.places[field] * (self.program.rows + 1)} + {row}]"

    def body(self) -> None:
        self.open("if (threadIdx.x == 0)")
        self.roots()
        self.close()
        self.line("__syncthreads();")
        for sweep in self.program.sweeps:
            if isinstance(sweep, Scan):
                self._scan(sweep)
            else:
                self._rows(sweep)

    def _rows(self, sweep: Sweep) -> None:
        program, rows = self.program, self.program.rows
        if sweep.above or sweep.received:
            raise TraceError("on a GPU a program has either scans or sweeps from row to row")
        self.open(f"for (int row = threadIdx.x; row < {rows}; row += {self.threads})")

        def spelled(source: str, which: Any) -> str:
            if source in self.OF_ROW:
                return self.of_row(source, which)
            return self.place({"outer": "row + 1", "inner": f"(row ? row - 1 : {rows})"}[source], which)

        def write(kind: Kind) -> None:
            written = self.step(kind, spelled)
            for field, node in kind.stored.items():
                if field in program.places:
                    self.line(f"{self.place('row', field)} = {written.value(node)};")
                if field in self.outputs:
                    self.line(f"{self.outputs[field]}[row] = {written.value(node)};")

        self.kinds_of_row(sweep, write)
        self.close()
        self.line("__syncthreads();")

    def _scan(self, scan: Scan) -> None:
        """The levels of ``scan_order``: going up pairs end at 2d−1, 4d−1, …; coming down at d−1, 3d−1, …"""
        used = self.program.rows - 1
        if len(scan.apply.levels[0]) == 0:
            return
        top = 1 << (len(scan.apply.levels) - 1)
        self._level(f"for (int d = 1; 2 * d <= {used}; d *= 2)", "2 * d - 1", scan.join, scan.inward)
        self._level(f"for (int d = {top}; d > 0; d /= 2)", "d - 1", scan.apply, scan.inward)

    def _level(self, loop: str, first: str, pairs: Pairs, inward: bool) -> None:
        rows = self.program.rows
        self.open(loop)
        self.open(
            f"for (int place = {first} + 2 * d * (int)threadIdx.x; place < {rows - 1}; "
            f"place += 2 * d * {self.threads})"
        )
        if inward:
            self.line(f"const int right = {rows - 1} - place, left = right + d;")
        else:
            self.line(f"const int right = place, left = place < d ? {rows} : place - d;")
        written = self.step(pairs.step, lambda side, field: self.place(side, field))
        for field, node in pairs.step.stored.items():
            self.line(f"{self.place('right', field)} = {written.value(node)};")
        self.close()
        self.line("__syncthreads();")
        self.close()


class _Statements(Printer):
    """The statements of one step; inputs are read once, before anything is written."""

    def __init__(self, kind: Kind, dialect: Dialect, spelled: Callable[[str, int], str]):
        self.kind, self.dialect, self.spelled = kind, dialect, spelled
        self.read: dict[tuple, str] = {}
        self._inlined_bits: set[int] = set()

    def written(self) -> list[str]:
        lines = []
        for item in self.kind.body:
            if item.op == "neg":
                continue
            lines += self._reads(item.args)
            kind = self.dialect.condition if item.op in CONDITIONS else self.dialect.real
            lines.append(f"const {kind} {self.value(item)} = {self._expression(item)};")
        return [*lines, *self._reads([*self.kind.stored.values(), *self.kind.carried.values()])]

    def _reads(self, nodes: Sequence[Node]) -> list[str]:
        lines = []
        for node in nodes:
            while node.op == "neg":
                node = node.args[0]
            if node.op == "input" and node.value not in self.read:
                name = self.read[node.value] = f"r{len(self.read)}"
                lines.append(f"const {self.dialect.real} {name} = {self.spelled(*node.value)};")
        return lines

    def value(self, node: Node) -> str:
        return self.read[node.value] if node.op == "input" else super().value(node)


def _table(kind: str, name: str, entries: Iterable[str]) -> str:
    listed = textwrap.fill(", ".join(entries), 112, break_long_words=False)
    return f"static __device__ const {kind} {name}[] = {{\n{textwrap.indent(listed, '    ')}\n}};\n"
