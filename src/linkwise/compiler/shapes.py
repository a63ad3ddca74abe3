"""The shapes of programs as loops: batch, sweep over links, scan, rollout over time. One short builder each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import singledispatch
from typing import Any

import numpy as np

from linkwise.compiler.ir.graph import Graph, Node
from linkwise.compiler.ir.loops import (
    Array,
    Barrier,
    Change,
    Declare,
    Element,
    For,
    If,
    Let,
    Nest,
    Place,
    Register,
    Statement,
    Step,
    Whole,
    choose,
    entry,
    name,
    whole,
)
from linkwise.compiler.ir.program import Program
from linkwise.compiler.ir.schedule import Body, LoopRegion
from linkwise.compiler.ir.structures import Rows
from linkwise.compiler.ir.sweeps import Kind, Pairs, Scan, Sweep, SweptProgram
from linkwise.compiler.rollout import NEXT, RolloutProgram

ROOM = "room"  # the memory of the rows of a swept program
CONSTANTS = "constants"
SEED = "seed"  # one in the middle, else zeros: entry (row − direction) seen from there is the derivative of an input


@singledispatch
def nest(program: Program | SweptProgram | RolloutProgram | Nest) -> Nest:
    """The loops of a program, for one state."""
    raise TypeError(f"{type(program).__name__} has no loops to be written")


@nest.register
def _(made: Nest) -> Nest:
    """Loops that were put together from others."""
    return made


# -- batch ------------------------------------------------------------------------------------------------------------


@nest.register
def batch(program: Program) -> Nest:
    """Straight-line code: the only loop is that over states, which every target lays out in its own way."""
    inputs = [Array(key, "input", size, steady=key in program.steady) for key, size in program.inputs]
    outputs = [_output(program, key, math.prod(shape)) for key, shape in program.outputs]
    reads = {(array.name, k): Element(array.name, whole(k)) for array in inputs for k in range(array.columns)}
    writes = [
        (Element(array.name, whole(k)), node)
        for array, nodes in zip(outputs, program.values, strict=True)
        for k, node in enumerate(nodes)
    ]
    return Nest(program.name, program.dtype, (*inputs, *outputs), [Step(reads, program.body, writes)])


def _output(program: Program | SweptProgram, key: str, size: int) -> Array:
    """An output, which may be called like an input."""
    taken = any(key == given for given, _ in program.inputs)
    return Array(f"{key} out" if taken else key, "output", size, label=key)


# -- sweeps and scans -------------------------------------------------------------------------------------------------


@nest.register
def swept(program: SweptProgram) -> Nest:
    """Loops over rows, with a row of memory for each and one more for the root."""
    rows, columns = program.table.shape
    arrays = [Array(key, "input", size) for key, size in program.inputs]
    arrays += [_output(program, key, math.prod(shape)) for key, shape in program.outputs]
    arrays += [
        Array(CONSTANTS, "constant", columns, rows),
        Array(ROOM, "scratch", len(program.places), rows + 1),
    ]
    body, constants = sweeps(program), {CONSTANTS: program.table}
    if program.directions:
        size = program.result_rows.total
        body = [For("direction", whole(0), whole(size), body)]
        arrays.append(Array(SEED, "constant", 2 * size - 1))
        constants[SEED] = np.eye(1, 2 * size - 1, size - 1)
    return Nest(
        program.name,
        program.dtype,
        tuple(arrays),
        body,
        constants=constants,
        tables={
            "parents": [parent if parent >= 0 else rows for parent in program.parents],
            "kinds": program.kind_of,
            **{table: layout.starts for layout, table in _tables(program).items()},
        },
    )


def _tables(program: SweptProgram) -> dict[Rows, str]:
    """Tables of where the scalars of each row begin, for layouts with several in some rows."""
    layouts = [layout for layout in (*program.layouts.values(), program.result_rows) if not layout.plain]
    return {layout: f"starts{k}" for k, layout in enumerate(dict.fromkeys(layouts))}


def sweeps(program: SweptProgram) -> list[Statement]:
    """What a swept program does with one state."""
    rows = program.rows
    found = _filled(program, program.roots_in_memory().items(), whole(rows))
    if program.scanned and found:
        found.append(Barrier())
    sums = _filled(program, program.sums_in_memory(), name("row"))
    if sums:
        found.append(For("row", whole(0), whole(rows), sums))
    for number, sweep in enumerate(program.sweeps):
        if isinstance(sweep, Scan):
            found += _scan(program, sweep)
        else:
            found += _sweep(program, number, sweep)
    return found


def _filled(program: SweptProgram, values: Iterable[tuple[int, float]], row: Whole) -> list[Statement]:
    """Constants go to a row's memory."""
    graph = Graph()
    writes = [(_kept(program, field, row), graph.const(value)) for field, value in values]
    return [Step({}, [], writes)] if writes else []


def _kept(program: SweptProgram, field: int, row: Whole) -> Element:
    return Element(ROOM, whole(program.places[field]), row)


def _sweep(program: SweptProgram, number: int, sweep: Sweep) -> list[Statement]:
    rows, row = program.rows, name("row")
    passed = {field: Register(f"p{number}_{field}") for field in program.passed(sweep)}
    kinds = [_row(program, kind, passed) for kind in sweep.kinds.values()]
    body: list[Statement] = kinds[0]
    for k in range(1, len(kinds)):
        body = [If(entry("kinds", row).equals(k), kinds[k], body)]
    found: list[Statement] = []
    if not program.chain:
        body = [Let("parent", entry("parents", row)), *body]
    if passed:
        starts = program.passed(sweep)
        found.append(Declare({register: starts[field] for field, register in passed.items()}))
    alone = not (sweep.above or sweep.received)  # rows are independent of each other
    if sweep.inward:
        found.append(For("row", whole(rows - 1), whole(-1), body, whole(-1), parallel=alone))
    else:
        found.append(For("row", whole(0), whole(rows), body, parallel=alone))
    return [*found, Barrier()] if alone and program.scanned else found


def _row(program: SweptProgram, kind: Kind, passed: dict[int, Register]) -> list[Statement]:
    """The step of a row of this kind."""
    row, tables = name("row"), _tables(program)
    outputs = {
        field: (_output(program, key, 0).name, k)
        for fields, (key, _) in zip(program.results, program.outputs, strict=True)
        for k, field in enumerate(fields)
    }

    def scalar(layout: Rows, k: int) -> Whole:
        return (row if layout.plain else entry(tables[layout], row)) + k

    before = choose(row.equals(0), program.rows, row - 1)

    def place(source: str, which: Any) -> Place:
        if source == "given":
            key, k = which
            return Element(key, scalar(program.layouts[key], k))
        if source == "table":
            return Element(CONSTANTS, whole(which), row)
        if source == "seed":
            size = program.result_rows.total
            return Element(SEED, scalar(program.result_rows, which) - name("direction") + (size - 1))
        if source in ("above", "received") and program.chain:
            return passed[which]
        at = {"above": name("parent"), "inner": before, "outer": row + 1}.get(source, row)
        return _kept(program, which, at)

    writes: list[tuple[Place, Node]] = []
    for field, node in kind.stored.items():
        if field in program.places:
            writes.append((_kept(program, field, row), node))
        if field in outputs:
            array, k = outputs[field]
            place_of = scalar(program.result_rows, k)
            if program.directions:
                place_of = place_of * program.result_rows.total + name("direction")
            writes.append((Element(array, place_of), node))
    carried = [(field, node) for field, node in kind.stored.items() if field in passed]
    carried += kind.carried.items()
    if program.chain:
        return [
            Step(_Reads(place), kind.body, [*writes, *((passed[field], node) for field, node in carried)])
        ]
    sums = [(_kept(program, field, name("parent")), node) for field, node in kind.carried.items()]
    reads = _Reads(place)
    return [Step(reads, kind.body, writes), *([Step(reads, [], sums, adds=True)] if sums else [])]


def _scan(program: SweptProgram, scan: Scan) -> list[Statement]:
    """The levels of ``scan_order``: going up pairs end at 2d−1, 4d−1, …; coming down at d−1, 3d−1, …"""
    joins = sum(1 for level in scan.join.levels if level)
    applications = sum(1 for level in scan.apply.levels if level)
    d = name("d")
    return [
        *_levels(program, scan, scan.join, whole(0), whole(joins), whole(1), 2 * d - 1),
        *_levels(program, scan, scan.apply, whole(applications - 1), whole(-1), whole(-1), d - 1),
    ]


def _levels(
    program: SweptProgram, scan: Scan, pairs: Pairs, first: Whole, stop: Whole, step: Whole, start: Whole
) -> list[Statement]:
    if not range(first.number or 0, stop.number or 0, step.number or 1):
        return []
    rows, d, at = program.rows, name("d"), name("place")
    right = whole(rows - 1) - at if scan.inward else at
    left = right + d if scan.inward else choose(at < d, rows, at - d)
    sides = {"left": name("left"), "right": name("right")}
    reads = _Reads(lambda side, field: _kept(program, field, sides[side]))
    writes = [(_kept(program, field, sides["right"]), node) for field, node in pairs.step.stored.items()]
    body: list[Statement] = [Let("right", right), Let("left", left), Step(reads, pairs.step.body, writes)]
    level: list[Statement] = [
        Let("d", 1 << name("level")),
        For("place", start, whole(rows - 1), body, 2 * d, parallel=True),
        Barrier(),
    ]
    return [For("level", first, stop, level, step)]


class _Reads(dict[tuple[str, Any], Place]):
    """Places of input nodes, found when they are first looked up."""

    def __init__(self, place: Callable[[str, Any], Place]):
        super().__init__()
        self._place = place

    def __missing__(self, value: tuple[str, Any]) -> Place:
        self[value] = self._place(*value)
        return self[value]


# -- rollouts ---------------------------------------------------------------------------------------------------------


@nest.register
def rollout(program: RolloutProgram) -> Nest:
    """A loop over time: what is carried is kept in registers, feeds advance, samples are written at intervals."""
    made = Repetition(program)
    sample = Step(made.reads, [], made.samples)
    return made.nest(
        [
            Step(made.reads, made.repeated),
            *made.sampling([sample]),
            Step(made.reads, [], made.following),
        ]
    )


class Repetition:
    """The parts of a rollout, which a target may put together in its own order."""

    def __init__(self, program: RolloutProgram):
        interface, step = program.interface, program.step
        values = {key: nodes for (key, _), nodes in zip(step.outputs, step.values, strict=True)}
        self.program = program
        self.registers = {
            (key, k): Register(f"{key}.{k}") for key, size in interface.carried.items() for k in range(size)
        }
        self.reads: dict[tuple[str, int], Place] = dict(self.registers)
        for key, size in interface.parameters.items():
            self.reads |= {(key, k): Element(key, whole(k)) for k in range(size)}
        for key, feed in interface.feeds.items():
            self.reads |= {(key, k): Element(key, whole(k), name("step_number")) for k in range(feed.size)}
        self.once, self.repeated = split(step.body, {*interface.carried, *interface.feeds})
        """What depends on parameters alone, and the rest."""
        self.samples: list[tuple[Place, Node]] = [
            (Element(key, whole(k), name("sample")), node)
            for key in interface.written
            for k, node in enumerate(values[key])
        ]
        self.following: list[tuple[Place, Node]] = [
            (register, values[NEXT + key][k]) for (key, k), register in self.registers.items()
        ]

    def sampling(self, store: Sequence[Statement]) -> list[Statement]:
        """``store`` where a sample is due; ``left`` counts the steps until then."""
        if not self.samples:
            return []
        after = [Change("sample", name("sample") + 1), Change("left", name("every"))]
        return [If(DUE, [*store, *after]), Change("left", name("left") - 1)]

    def nest(self, steps: Sequence[Statement]) -> Nest:
        """The loop over time around the statements of a step."""
        interface, step = self.program.interface, self.program.step
        arrays = [Array(key, "both", size) for key, size in interface.carried.items()]
        arrays += [Array(key, "input", size) for key, size in interface.parameters.items()]
        arrays += [
            Array(key, "input", feed.size, "steps", feed.advance, feed.shared)
            for key, feed in interface.feeds.items()
        ]
        arrays += [
            Array(key, "output", math.prod(shape), "samples") for key, shape in interface.written.items()
        ]
        final = [(Element(key, whole(k)), _carried(step, key, k)) for key, k in self.registers]
        body = [
            Declare({register: Element(key, whole(k)) for (key, k), register in self.registers.items()}),
            *([Step(self.reads, self.once)] if self.once else []),
            *([Let("sample", whole(0)), Let("left", whole(0))] if self.samples else []),
            For("step_number", whole(0), name("steps"), steps),
            Step(self.reads, [], final),
        ]
        return Nest(self.program.name, self.program.dtype, tuple(arrays), body, numbers=("steps", "every"))


DUE = name("left").equals(0)
"""Whether this step of a rollout writes a sample."""


def _carried(step: Program, key: str, k: int) -> Node:
    """The node that stands for what is carried."""
    graph = next((node.graph for nodes in step.values for node in nodes), None) or Graph()
    return graph.make("input", (), (key, k))


def split(body: Body, moving: Iterable[str]) -> tuple[Body, Body]:
    """(what depends on parameters alone, the rest), each in order."""
    moving = set(moving)
    varies: set[int] = set()  # nodes
    loops: set[int] = set()
    once: Body = []
    repeated: Body = []
    for item in body:
        if isinstance(item, LoopRegion):
            loops.add(item.number)  # loops are few: they stay where they are
            repeated.append(item)
            continue
        changes = any(
            (a.op == "input" and a.value[0] in moving)
            or (a.op == "result" and a.value[0] in loops)
            or a.index in varies
            for a in item.args
        )
        if changes:
            varies.add(item.index)
        (repeated if changes else once).append(item)
    return once, repeated
