"""A program of sweeps as LLVM text: loops over rows around the arithmetic of one row.

Each row has a place in the scratch room for the values that pass from one sweep to another. In a chain the values of
the parent row and what a row carries inward live in registers, as the phis of the loop; in a tree they go through the
room of the row concerned. A scan loops over a table of pairs of rows, whose levels need no mark where one
thread takes them in order.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.compiler.emit.lanes import Lanes, Writer
from linkwise.compiler.emit.llvm import Arithmetic, literal
from linkwise.compiler.graph import Node
from linkwise.compiler.sweeps import Kind, Pairs, Scan, Sweep, SweptProgram
from linkwise.compiler.walks import reachable


def tables(program: SweptProgram) -> str:
    """The constants of the rows, their parents and their kinds, as globals of the module."""
    scalar = "double" if program.dtype == "float64" else "float"

    def array(name: str, kind: str, entries: Sequence[str]) -> str:
        listed = ", ".join(f"{kind} {entry}" for entry in entries)
        return f"@{name} = private unnamed_addr constant [{len(entries)} x {kind}] [{listed}]\n"

    constants = [literal(float(v), program.dtype) for v in program.table.ravel()] or [
        literal(0.0, program.dtype)
    ]
    parents = [str(parent if parent >= 0 else program.rows) for parent in program.parents]
    text = (
        array("constants", scalar, constants)
        + array("parents", "i64", parents)
        + array("kinds", "i32", [str(k) for k in program.kind_of])
    )
    for number, sweep in enumerate(program.sweeps):
        if not isinstance(sweep, Scan):
            continue
        for part, pairs in enumerate(sweep.loops):
            rows = _pairs_of(program, sweep, pairs)
            for side, name in enumerate(("lefts", "rights")):
                text += array(f"{name}{number}.{part}", "i64", [str(pair[side]) for pair in rows])
    return text


def _pairs_of(program: SweptProgram, sweep: Scan, pairs: Pairs) -> list[tuple[int, int]]:
    return [pair for level in pairs.levels for pair in pairs.rows(level, sweep.inward, program.rows)]


class SweptArithmetic:
    """Writes all sweeps for one block of states; ``room`` is the memory of the rows."""

    def __init__(
        self,
        program: SweptProgram,
        lanes: Lanes,
        writer: Writer,
        inputs: Sequence[str],
        outputs: Sequence[str],
        room: str,
    ):
        self.program, self.lanes, self.writer, self.room = program, lanes, writer, room
        self.inputs = {name: base for (name, _), base in zip(program.inputs, inputs, strict=True)}
        self.outputs = dict(zip(program.results, outputs, strict=True))

    def write(self) -> None:
        self._prepare_room()
        for number, sweep in enumerate(self.program.sweeps):
            if isinstance(sweep, Scan):
                for part, pairs in enumerate(sweep.loops):
                    self._pairs(f"{number}.{part}", sweep, pairs)
            else:
                self._sweep(number, sweep)

    # -- memory ---------------------------------------------------------------------------------------------------

    def place(self, row: str, field: int) -> str:
        """The address of a row's value."""
        width, per_row = self.lanes.width, len(self.program.places)
        start = self.writer.value(f"mul i64 {row}, {per_row * width}")
        offset = self.writer.value(f"add i64 {start}, {self.program.places[field] * width}")
        return self.writer.value(f"getelementptr {self.lanes.scalar}, ptr {self.room}, i64 {offset}")

    def load(self, row: str, field: int) -> str:
        address = self.place(row, field)
        return self.writer.value(f"load {self.lanes.real}, ptr {address}, align {self.lanes.bytes}")

    def store(self, row: str, field: int, value: str) -> None:
        address = self.place(row, field)
        self.writer.effect(f"store {self.lanes.real} {value}, ptr {address}, align {self.lanes.bytes}")

    def splat(self, value: float) -> str:
        return self.lanes.splat(self.lanes.scalar, literal(value, self.lanes.dtype))

    def _prepare_room(self) -> None:
        """The root's row, and in a tree empty sums for every row."""
        program = self.program
        for field, value in program.roots_in_memory().items():
            self.store(str(program.rows), field, self.splat(value))
        sums = program.sums_in_memory()
        if sums:
            row = self._loop_head("clear", 0)
            for field, value in sums:
                self.store(row, field, self.splat(value))
            self._loop_end("clear", row, program.rows)

    # -- loops ----------------------------------------------------------------------------------------------------

    def _loop_head(self, name: str, first: int) -> str:
        writer = self.writer
        before = writer.block
        writer.effect(f"br label %{name}")
        writer.start_block(name)
        return writer.value(
            f"phi i64 [ {first}, %{before} ], [ %{name}.following, %{name}.latch ]", f"%{name}.row"
        )

    def _loop_end(self, name: str, row: str, end: int, step: int = 1) -> None:
        writer = self.writer
        writer.effect(f"br label %{name}.latch")
        writer.start_block(f"{name}.latch")
        writer.value(f"add i64 {row}, {step}", f"%{name}.following")
        more = writer.value(f"icmp ne i64 %{name}.following, {end}")
        writer.effect(f"br i1 {more}, label %{name}, label %{name}.end")
        writer.start_block(f"{name}.end")

    def _pairs(self, number: str, sweep: Scan, pairs: Pairs) -> None:
        count = len(_pairs_of(self.program, sweep, pairs))
        if not count:
            return
        writer = self.writer
        name = f"scan{number}"
        k = self._loop_head(name, 0)
        rows = []
        for table in ("lefts", "rights"):
            address = writer.value(f"getelementptr i64, ptr @{table}{number}, i64 {k}")
            rows.append(writer.value(f"load i64, ptr {address}"))
        _PairArithmetic(self, pairs.step, *rows).write_row()
        self._loop_end(name, k, count)

    def _sweep(self, number: int, sweep: Sweep) -> None:
        writer = self.writer
        name = f"sweep{number}"
        before = writer.block
        rows = self.program.rows
        row = self._loop_head(name, rows - 1 if sweep.inward else 0)
        chained = self.program.passed(sweep)
        for field, start in chained.items():
            writer.value(
                f"phi {self.lanes.real} [ {self.splat(start)}, %{before} ], [ %{name}.f{field}, %{name}.latch ]",
                f"%{name}.p{field}",
            )
        kinds = list(sweep.kinds.values())
        ends: list[tuple[str, dict[int, str]]] = []
        labels = [f"{name}.kind{k}" for k in range(len(kinds))]
        if len(kinds) > 1:
            address = writer.value(f"getelementptr i32, ptr @kinds, i64 {row}")
            kind = writer.value(f"load i32, ptr {address}")
            cases = " ".join(f"i32 {k}, label %{label}" for k, label in enumerate(labels))
            writer.effect(f"switch i32 {kind}, label %{labels[0]} [ {cases} ]")
        else:
            writer.effect(f"br label %{labels[0]}")
        for label, kind in zip(labels, kinds, strict=True):
            writer.start_block(label)
            arithmetic = _RowArithmetic(self, name, row, sweep, kind, label)
            ends.append((label, arithmetic.write_row()))
            writer.effect(f"br label %{name}.join")
        writer.start_block(f"{name}.join")
        for field in chained:
            sources = ", ".join(f"[ {values[field]}, %{block} ]" for block, values in ends)
            writer.value(f"phi {self.lanes.real} {sources}", f"%{name}.f{field}")
        if sweep.inward:
            self._loop_end(name, row, end=-1, step=-1)
        else:
            self._loop_end(name, row, end=rows)


class _RowArithmetic(Arithmetic):
    """The arithmetic of one row: loads what it reads, computes, stores what others read."""

    def __init__(self, outer: SweptArithmetic, name: str, row: str, sweep: Sweep, kind: Kind, label: str):
        self._prepare(outer.lanes, outer.writer)
        self.outer, self.sweep_name, self.row, self.sweep, self.kind, self.label = (
            outer,
            name,
            row,
            sweep,
            kind,
            label,
        )
        self.parent: str | None = None
        self.neighbours: dict[str, str] = {}

    def write_row(self) -> dict[int, str]:
        """Write the row; the values that pass to the next row."""
        for item in self.kind.body:
            for node in item.args:
                if node.op == "input":
                    self._load(node)
            self._operation(item)
        passed = {}
        chain = self.outer.program.chain
        for field, node in self.kind.stored.items():
            value = self._value(node)
            if field in self.outer.program.places:
                self.outer.store(self.row, field, value)
            if field in self.outer.outputs:
                self._output(self.outer.outputs[field], value)
            if chain and field in self.sweep.above:
                passed[field] = value
        for field, node in self.kind.carried.items():
            value = self._value(node)
            if chain:
                passed[field] = value
            else:
                parent = self._parent()
                known = self.outer.load(parent, field)
                total = self.writer.value(f"fadd {self.lanes.real} {known}, {value}")
                self.outer.store(parent, field, total)
        return passed

    def _value(self, node: Node) -> str:
        if node.op == "input":
            self._load(node)
        return self.operand(node)

    def _load(self, node: Node) -> None:
        if node.value in self.columns:
            return
        source, which = node.value
        outer, chain = self.outer, self.outer.program.chain
        if source == "given":
            value = self._given(which)
        elif source == "table":
            value = self._constant(which)
        elif source == "at":
            value = outer.load(self.row, which)
        elif source in ("inner", "outer"):
            value = outer.load(self._neighbour(source), which)
        elif chain:
            value = f"%{self.sweep_name}.p{which}"
        else:
            value = outer.load(self._parent() if source == "above" else self.row, which)
        self.columns[node.value] = value

    def _parent(self) -> str:
        if self.parent is None:
            address = self.writer.value(f"getelementptr i64, ptr @parents, i64 {self.row}")
            self.parent = self.writer.value(f"load i64, ptr {address}")
        return self.parent

    def _neighbour(self, side: str) -> str:
        """The row before this one in a scan from that side; the root's row, which is the last, comes before all."""
        if side not in self.neighbours:
            writer = self.writer
            if side == "outer":
                self.neighbours[side] = writer.value(f"add i64 {self.row}, 1")
            else:
                first = writer.value(f"icmp eq i64 {self.row}, 0")
                before = writer.value(f"sub i64 {self.row}, 1")
                rows = self.outer.program.rows
                self.neighbours[side] = writer.value(f"select i1 {first}, i64 {rows}, i64 {before}")
        return self.neighbours[side]

    def _constant(self, column: int) -> str:
        lanes, writer = self.lanes, self.writer
        columns = self.outer.program.table.shape[1]
        start = writer.value(f"mul i64 {self.row}, {columns}")
        offset = writer.value(f"add i64 {start}, {column}")
        address = writer.value(f"getelementptr {lanes.scalar}, ptr @constants, i64 {offset}")
        scalar = writer.value(f"load {lanes.scalar}, ptr {address}")
        if lanes.width == 1:
            return scalar
        one = writer.value(f"insertelement {lanes.real} poison, {lanes.scalar} {scalar}, i64 0")
        return writer.value(
            f"shufflevector {lanes.real} {one}, {lanes.real} poison, {lanes.vector('i32')} zeroinitializer"
        )

    def _lane_addresses(self, base: str) -> list[str]:
        """Where this row's element lies in each of the block's states."""
        writer, scalar, rows = self.writer, self.lanes.scalar, self.outer.program.rows
        first = writer.value(f"getelementptr {scalar}, ptr {base}, i64 {self.row}")
        return [
            writer.value(f"getelementptr {scalar}, ptr {first}, i64 {lane * rows}")
            for lane in range(self.lanes.width)
        ]

    def _given(self, name: str) -> str:
        lanes, writer = self.lanes, self.writer
        addresses = self._lane_addresses(self.outer.inputs[name])
        scalars = [writer.value(f"load {lanes.scalar}, ptr {address}") for address in addresses]
        if lanes.width == 1:
            return scalars[0]
        vector = "poison"
        for lane, scalar in enumerate(scalars):
            vector = writer.value(f"insertelement {lanes.real} {vector}, {lanes.scalar} {scalar}, i64 {lane}")
        return vector

    def _output(self, base: str, value: str) -> None:
        lanes, writer = self.lanes, self.writer
        for lane, address in enumerate(self._lane_addresses(base)):
            scalar = value
            if lanes.width > 1:
                scalar = writer.value(f"extractelement {lanes.real} {value}, i64 {lane}")
            writer.effect(f"store {lanes.scalar} {scalar}, ptr {address}")


class _PairArithmetic(Arithmetic):
    """The arithmetic of a pair of rows in a scan; its results go to the second."""

    def __init__(self, outer: SweptArithmetic, step: Kind, left: str, right: str):
        self._prepare(outer.lanes, outer.writer)
        self.outer, self.step, self.rows = outer, step, {"left": left, "right": right}

    def write_row(self) -> None:
        # everything is loaded before anything is stored: results take the place of what was read
        for node in reachable(self.step.stored.values()):
            if node.op == "input":
                side, field = node.value
                self.columns[node.value] = self.outer.load(self.rows[side], field)
        for item in self.step.body:
            self._operation(item)
        for field, node in self.step.stored.items():
            self.outer.store(self.rows["right"], field, self.operand(node))
