"""Copies of neighbouring scalars of one state, several with one load and one store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from linkwise.compiler.emit.memory import Lanewise, Memory, Pointers
from linkwise.compiler.ir.graph import Node
from linkwise.compiler.ir.loops import Element, Register, Step, Whole

if TYPE_CHECKING:
    from linkwise.compiler.emit.llvm import Renderer

LEAST = 8
"""Scalars of a step that is written this way."""
WIDTHS = (8, 4, 2, 1)
"""Scalars that are copied at a time; processors with shorter registers take several."""


def copied(to: Renderer, step: Step) -> bool:
    """Write a step that computes nothing; False where it is another one, or where its places are not known to lie side
    by side."""
    if to.lanes.width > 1 or step.body or step.adds or len(step.writes) < LEAST:
        return False
    moves: list[tuple[Element | float, Element]] = []
    carried: list[tuple[Register, Element | float]] = []
    for place, node in step.writes:
        source = _source(step, node)
        if isinstance(place, Register) and source is not None:
            carried.append((place, source))
        elif isinstance(place, Element) and source is not None:
            moves.append((source, place))
        else:
            return False
    places = [place for move in moves for place in move if isinstance(place, Element)]
    if not all(isinstance(to.memory[place.array], (Pointers, Lanewise)) for place in places):
        return False
    read = {source.array for source, _ in moves if isinstance(source, Element)}
    if read & {place.array for _, place in moves}:
        return False
    values = [
        to.loaded(source) if isinstance(source, Element) else to.constant(source) for _, source in carried
    ]
    for run in _runs(moves):
        _copy(to, run)
    to.now.update(zip((register for register, _ in carried), values, strict=True))
    return True


def _source(step: Step, node: Node) -> Element | float | None:
    """What a node is: a scalar in memory or a number."""
    if node.op == "const":
        assert isinstance(node.value, (int, float))
        return float(node.value)
    place = step.reads.get(node.value) if node.op == "input" else None
    return place if isinstance(place, Element) else None


def _runs(moves: Sequence[tuple[Element | float, Element]]) -> list[list[tuple[Element | float, Element]]]:
    """Moves whose places, and whose sources, are neighbours."""
    runs: list[list[tuple[Element | float, Element]]] = []
    for move in moves:
        if runs and all(_follows(b, a) for a, b in zip(runs[-1][-1], move, strict=True)):
            runs[-1].append(move)
        else:
            runs.append([move])
    return runs


def _follows(b: Element | float, a: Element | float) -> bool:
    if not isinstance(a, Element) or not isinstance(b, Element):
        return repr(a) == repr(b)
    if a.array != b.array or a.row != b.row:
        return False
    (rest, first), (other, second) = _parts(a.column), _parts(b.column)
    return second - first == 1 and rest == other


def _parts(column: Whole) -> tuple[list[Whole], int]:
    """Terms of a sum that are not known, and what the others come to."""
    if column.number is not None:
        return [], column.number
    if column.op != "add":
        return [column], 0
    (own, first), (more, second) = (_parts(term) for term in column.args)
    return [*own, *more], first + second


def _copy(to: Renderer, run: Sequence[tuple[Element | float, Element]]) -> None:
    writer, lanes, at = to.writer, to.lanes, 0
    while at < len(run):
        width = next(width for width in WIDTHS if width <= len(run) - at)
        source, place = run[at]
        kind = lanes.scalar if width == 1 else f"<{width} x {lanes.scalar}>"
        if not isinstance(source, Element):
            value = to.constant(source)
            if width > 1:
                value = f"<{', '.join([f'{lanes.scalar} {value}'] * width)}>"
        else:
            value = writer.value(f"load {kind}, ptr {_address(to, source)}, align {lanes.bytes}")
        writer.effect(f"store {kind} {value}, ptr {_address(to, place)}, align {lanes.bytes}")
        at += width


def _address(to: Renderer, place: Element) -> str:
    memory: Memory = to.memory[place.array]
    if isinstance(memory, Lanewise):
        return memory.at(to, place)
    assert isinstance(memory, Pointers)
    return memory.each(to, place)[0]
