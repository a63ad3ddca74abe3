"""Scratch arrays of a nest joined into one: callers of generated C give one piece of memory instead of many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from linkwise.compiler.ir.loops import (
    Array,
    Declare,
    Element,
    For,
    If,
    IfNegative,
    Nest,
    Place,
    Statement,
    Step,
    whole,
)
from linkwise.compiler.shapes import ROOM

AnyNest = TypeVar("AnyNest", bound=Nest)


def in_one_room(nest: AnyNest, label: str = ROOM) -> AnyNest:
    """The same loops with all scratch memory in one array, by default ``room``; places in it are known."""
    scratch = [array for array in nest.arrays if array.kind == "scratch"]
    if not scratch or (len(scratch) == 1 and scratch[0].rows == 1):
        return nest
    starts: dict[str, int] = {}
    size = 0
    for array in scratch:
        assert isinstance(array.rows, int)
        starts[array.name] = size
        size += array.rows * array.pitch
    pitches = {array.name: array.pitch for array in scratch}

    def moved(place: Any) -> Any:
        if not isinstance(place, Element) or place.array not in starts:
            return place
        row = whole(0) if place.row is None else place.row
        return Element(label, row * pitches[place.array] + (place.column + starts[place.array]))

    kept = tuple(array for array in nest.arrays if array.kind != "scratch")
    body = _rewritten(nest.body, moved)
    unfused = nest.unfused
    return replace(
        nest,
        arrays=(*kept, Array(label, "scratch", size)),
        body=body,
        unfused=None if unfused is None else lambda: in_one_room(unfused(), label),
    )


def _rewritten(body: Sequence[Statement], moved: Any) -> list[Statement]:
    statements: list[Statement] = []
    for statement in body:
        if isinstance(statement, Step):
            reads: Mapping[Any, Place] = {value: moved(place) for value, place in statement.reads.items()}
            writes = [(moved(place), node) for place, node in statement.writes]
            statements.append(replace(statement, reads=reads, writes=writes))
        elif isinstance(statement, For):
            statements.append(replace(statement, body=_rewritten(statement.body, moved)))
        elif isinstance(statement, If):
            then, otherwise = (_rewritten(part, moved) for part in (statement.then, statement.otherwise))
            statements.append(replace(statement, then=then, otherwise=otherwise))
        elif isinstance(statement, IfNegative):
            statements.append(replace(statement, then=_rewritten(statement.then, moved)))
        elif isinstance(statement, Declare):
            registers = {register: moved(start) for register, start in statement.registers.items()}
            statements.append(Declare(registers))
        else:
            statements.append(statement)
    return statements
