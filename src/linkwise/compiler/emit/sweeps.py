"""A program of sweeps as LLVM text: loops over rows around the arithmetic of one row.

Each row has a place in the scratch room for the values that pass from one sweep to another. In a chain the values of
the parent row and what a row carries inward live in registers, as the phis of the loop; in a tree they go through the
room of the row concerned.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.compiler.emit.lanes import Lanes, Writer
from linkwise.compiler.emit.llvm import Arithmetic, literal
from linkwise.compiler.graph import Node
from linkwise.compiler.sweeps import Kind, Sweep, SweptProgram


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
    return (
        array("constants", scalar, constants)
        + array("parents", "i64", parents)
        + array("kinds", "i32", [str(k) for k in program.kind_of])
    )


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
        """In a tree: the root's row, and empty sums for every row."""
        program = self.program
        if program.chain:
            return
        for field, value in program.roots.items():
            if field in program.places:
                self.store(str(program.rows), field, self.splat(value))
        sums = [(f, v) for sweep in program.sweeps for f, v in sweep.received.items()]
        if sums:
            row = self._loop_head("clear", reverse=False)
            for field, value in sums:
                self.store(row, field, self.splat(value))
            self._loop_end("clear", row, reverse=False)

    # -- loops ----------------------------------------------------------------------------------------------------

    def _loop_head(self, name: str, reverse: bool) -> str:
        writer, rows = self.writer, self.program.rows
        before = writer.block
        writer.effect(f"br label %{name}")
        writer.start_block(name)
        first = rows - 1 if reverse else 0
        return writer.value(
            f"phi i64 [ {first}, %{before} ], [ %{name}.following, %{name}.latch ]", f"%{name}.row"
        )

    def _loop_end(self, name: str, row: str, reverse: bool) -> None:
        writer, rows = self.writer, self.program.rows
        writer.effect(f"br label %{name}.latch")
        writer.start_block(f"{name}.latch")
        writer.value(f"add i64 {row}, {-1 if reverse else 1}", f"%{name}.following")
        more = writer.value(f"icmp ne i64 %{name}.following, {-1 if reverse else rows}")
        writer.effect(f"br i1 {more}, label %{name}, label %{name}.end")
        writer.start_block(f"{name}.end")

    def _sweep(self, number: int, sweep: Sweep) -> None:
        writer = self.writer
        name = f"sweep{number}"
        before = writer.block
        row = self._loop_head(name, sweep.inward)
        chained = self._chained(sweep)
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
        self._loop_end(name, row, sweep.inward)

    def _chained(self, sweep: Sweep) -> dict[int, float]:
        """The fields that pass from row to row in registers, and their start."""
        if not self.program.chain:
            return {}
        return {f: self.program.roots[f] for f in sorted(sweep.above)} | dict(sorted(sweep.received.items()))


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
