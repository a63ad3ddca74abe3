"""The same function of several inputs, computed side by side in the lanes of a vector: the sines of all joint angles.

Code for one state leaves vector lanes unused. Operations that depend on one scalar input alone, and that are the same
for several inputs, become one operation on a vector. They are the same IEEE operations, so the bits are the same; and
selections between numbers, which are branches in scalar code, become blends.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from linkwise.compiler.ir.graph import CONDITIONS, WORDS, Node
from linkwise.compiler.ir.schedule import LoopRegion

LEAST_OPERATIONS = 8  # before a result that is taken out of the vector: fewer are not worth it
MOST_OPERATIONS = (
    1500  # of a body: in longer ones sines are a small part, and best computed between other operations
)
VECTOR_BITS = 256

Input = tuple[str, int]
"""Name and place of a scalar input."""


@dataclass(eq=False)
class Lockstep:
    """Operations on vectors, in order; lane k belongs to input k."""

    inputs: list[Input]
    operations: list[tuple[Node | None, ...]] = field(default_factory=list[tuple[Node | None, ...]])
    """For each lane its node; None where the lane does not need the value."""
    used: list[tuple[Node | None, ...]] = field(default_factory=list[tuple[Node | None, ...]])
    """Those that nodes outside need."""


def widths(bits: int) -> list[int]:
    """How many lanes vectors may have."""
    return [1 << k for k in range(1, (VECTOR_BITS // bits).bit_length())]


def find(
    body: Sequence[Node | LoopRegion], inputs: Iterable[Input], outside: Iterable[Node], bits: int
) -> list[Lockstep]:
    """What can be computed side by side in a body.

    Args:
        body: operations in order.
        inputs: those that can be read.
        outside: nodes that are needed elsewhere, as outputs are.
        bits: of a scalar.
    """
    if len(body) > MOST_OPERATIONS:
        return []
    shapes = _shapes(body)
    readable = set(inputs)
    exported = _exported(body, shapes, outside)
    found: list[Lockstep] = []
    for name in sorted({source[0] for _, source in shapes.values()}):
        places = sorted(
            {source[1] for node, (_, source) in shapes.items() if source[0] == name and node in exported}
        )
        wanted = [place for place in places if (name, place) in readable]
        for window, own in _windows(wanted, VECTOR_BITS // bits, {k for n, k in readable if n == name}):
            made = _lockstep([(name, k) for k in window], {(name, k) for k in own}, shapes, exported)
            if made.operations:
                found.append(made)
    return found


Shape = tuple[object, ...]


def _shapes(body: Sequence[Node | LoopRegion]) -> dict[Node, tuple[int, Input]]:
    """For nodes that depend on one input alone: the number of their formula, and that input."""
    numbers: dict[Shape, int] = {}
    found: dict[Node, tuple[int, Input]] = {}
    for node in body:
        if (
            isinstance(node, LoopRegion)
            or node.op in WORDS
            or node.op in ("word", "real_of", "real_from_bits")
        ):
            continue
        shape: list[object] = [node.op, node.value]
        sources: set[Input] = set()
        for a in node.args:
            if a.op == "const":
                shape.append(("constant", repr(a.value)))
            elif a.op == "input" and isinstance(a.value, tuple):
                shape.append("input")
                sources.add(cast("Input", a.value))
            elif a in found:
                number, source = found[a]
                shape.append(number)
                sources.add(source)
            else:
                break
        else:
            if len(sources) == 1:
                found[node] = (numbers.setdefault(tuple(shape), len(numbers)), sources.pop())
    return found


def _exported(
    body: Sequence[Node | LoopRegion], shapes: Mapping[Node, tuple[int, Input]], outside: Iterable[Node]
) -> set[Node]:
    """The nodes of ``shapes`` that others need and that take enough operations."""
    needed = {node for node in outside if node in shapes}
    for item in body:
        if isinstance(item, LoopRegion):
            return set()  # what loops read is not known here
        if item not in shapes:
            needed.update(a for a in item.args if a in shapes)
    return {node for node in needed if node.op not in CONDITIONS and len(_cone(node)) >= LEAST_OPERATIONS}


def left_over(
    body: Sequence[Node | LoopRegion], found: Sequence[Lockstep], outside: Iterable[Node]
) -> set[Node]:
    """The nodes of a body without loops that are still computed one by one; those of ``Lockstep.used`` are there."""
    there = {node for lockstep in found for row in lockstep.used for node in row}
    needed = {node for node in outside if node not in there}
    for item in reversed(body):
        assert not isinstance(item, LoopRegion)
        if item in needed:
            needed.update(a for a in item.args if a not in there)
    return needed


def _cone(node: Node) -> set[Node]:
    """The operations that a node takes."""
    found: set[Node] = set()
    pending = [node]
    while pending:
        node = pending.pop()
        if node.args and node not in found:
            found.add(node)
            pending.extend(node.args)
    return found


def _windows(places: list[int], width: int, readable: set[int]) -> list[tuple[list[int], list[int]]]:
    """The lanes of each vector and which of them are wanted; neighbours, as far as they can be, are read at once."""
    found: list[tuple[list[int], list[int]]] = []
    while len(places) > 1:
        own = places[:width]
        lanes = 1 << (len(own) - 1).bit_length()
        window = list(range(own[-1] - lanes + 1, own[-1] + 1))
        if own[0] < window[0] or not set(window) <= readable:
            window = own + own[-1:] * (lanes - len(own))
        found.append((window, own))
        places = places[width:]
    return found


def _lockstep(
    inputs: list[Input], own: set[Input], shapes: Mapping[Node, tuple[int, Input]], exported: set[Node]
) -> Lockstep:
    """The operations of at least two of these inputs that lead to nodes that others need."""
    lanes = {source: inputs.index(source) for source in own}
    by_formula: dict[int, dict[int, Node]] = defaultdict(dict)
    for node, (number, source) in shapes.items():
        if source in lanes:
            by_formula[number][lanes[source]] = node
    wanted = {
        number
        for number, nodes in by_formula.items()
        if len(nodes) > 1 and any(node in exported for node in nodes.values())
    }
    needed = {shapes[a][0] for number in wanted for node in by_formula[number].values() for a in _cone(node)}
    made = Lockstep(inputs)
    for number, nodes in by_formula.items():  # in the order of the body
        if number in needed:
            row = tuple(nodes.get(lane) for lane in range(len(inputs)))
            made.operations.append(row)
            if number in wanted:
                made.used.append(row)
    return made
