"""Turns of two loops together, where many states are computed: blocks of a product of matrices.

C[i, j] = Σ A[i, k] B[k, j] for one i and j at a time reads a number of A or B for every product, and A as a whole for
every column: of several states side by side, more than the nearest cache holds. A block of rows and columns keeps its
sums in registers and reads a number for several products. Every sum keeps its order, and so the bits stay the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from linkwise.compiler.ir.graph import Node
from linkwise.compiler.ir.loops import Element, For, Place, Statement, Step, shifted, slope, whole
from linkwise.compiler.runtime import host

SUMS = {16: 9, 32: 18}
"""Sums of a block, by the number of registers: the others hold a column of what is multiplied."""
COLUMNS = 3  # of a block
LEAST, MOST = 8, 700  # operations of a sum, of a block
FEW = 4  # turns of a loop that fill no vector
LONGEST = 300  # operations of a step of which two turns are written together
_SUMS = frozenset({"add", "sub", "mul", "fma", "neg"})
_GIVEN = frozenset({"const", "word", "input"})


@dataclass(eq=False)
class Together(Step):
    """Copies of a step for several turns; ``reads`` is empty, because nothing is loaded before the loop around it."""

    copies: Sequence[Step] = ()


def can_be_taken_apart(loop: For) -> bool:
    """Whether a parallel loop has a loop over sums inside and each of its statements may have a loop of its own: each
    turn writes to places of its own."""
    if (
        bounds(loop) is None
        or not loop.side_by_side
        or not any(sums_in(statement) for statement in loop.body)
    ):
        return False
    return all(_stands_alone(statement) and _has_own_places(statement, loop.name) for statement in loop.body)


def blocks(loop: For) -> list[Statement] | None:
    """The same turns of a parallel loop in blocks; None where it has no loop over sums inside."""
    ends = bounds(loop)
    if ends is None or not can_be_taken_apart(loop):
        return None
    found: list[Statement] = []
    for statement in loop.body:
        step = sums_in(statement)
        if isinstance(statement, For) and step is not None:
            found += _product(loop.name, ends, statement, step)
        elif isinstance(statement, Step) and statement.apart and len(statement.body) <= LONGEST:
            found += _pairs(loop.name, ends, statement)
        else:
            found.append(replace(loop, body=[statement], parallel=False, side_by_side=False))
    return found


def exchanged(loop: For) -> For:
    """The loop itself; where it has too few turns for a vector, and inside it a loop of more turns that only forms
    sums, the loop inside around it: one state's turns of either loop may run side by side."""
    ends, inner = bounds(loop), loop.body[0]
    if ends is None or len(loop.body) != 1 or ends[1] - ends[0] >= FEW or not isinstance(inner, For):
        return loop
    step = sums_in(inner)
    if step is None or count(inner) < FEW or not all(_has_own_places(step, x.name) for x in (loop, inner)):
        return loop
    return replace(
        inner, body=[replace(loop, body=[step], side_by_side=False)], side_by_side=True, repeatable=True
    )


def _pairs(turn: str, ends: tuple[int, int], step: Step) -> Iterator[Statement]:
    """Two turns of a step together: operations that wait for each other leave room for those of another turn."""
    for wide, first, stop in _cut(*ends, 2):
        copies = [_copy(step, {turn: j}) for j in range(wide)]
        yield For(turn, whole(first), whole(stop), [Together({}, copies=copies)], whole(wide))


def _product(turn: str, ends: tuple[int, int], inner: For, step: Step) -> Iterator[Statement]:
    """Blocks of rows and columns; ``turn`` goes over columns, from ``ends``, and ``inner`` over rows."""
    top, bottom = bounds(inner) or (0, 0)
    most = min(SUMS[16 if host.vector_registers() < 32 else 32], max(1, MOST // len(step.body)))
    columns = COLUMNS if (ends[1] - ends[0]) % COLUMNS == 0 else 2
    rows = max(1, most // columns)
    rows = next((size for size in range(rows, 2, -1) if (bottom - top) % size == 0), rows)
    for wide, first, stop in _cut(*ends, columns):
        body: list[Statement] = []
        for high, begin, end in _cut(top, bottom, rows):
            copies = [_copy(step, {turn: j, inner.name: i}) for i in range(high) for j in range(wide)]
            body.append(For(inner.name, whole(begin), whole(end), [Together({}, copies=copies)], whole(high)))
        yield For(turn, whole(first), whole(stop), body, whole(wide))


def _cut(first: int, stop: int, size: int) -> list[tuple[int, int, int]]:
    """(size, begin, end) of whole blocks, and of the rest as one smaller block."""
    middle = stop - (stop - first) % size
    found = [(size, first, middle), (stop - middle, middle, stop)]
    return [part for part in found if part[1] < part[2]]


def _copy(step: Step, shifts: Mapping[str, int]) -> Step:
    def moved(place: Place) -> Place:
        assert isinstance(place, Element)
        row = None if place.row is None else shifted(place.row, shifts)
        return Element(place.array, shifted(place.column, shifts), row)

    reads = {key: moved(place) for key, place in step.reads.items()}
    writes = [(moved(place), node) for place, node in step.writes]
    return replace(step, reads=reads, writes=writes)


def sums_in(statement: Statement) -> Step | None:
    """The step of a loop over sums, none of which reads what another one gives; None where it is something else."""
    if not isinstance(statement, For) or len(statement.body) != 1 or bounds(statement) is None:
        return None
    (step,) = statement.body
    if not isinstance(step, Step) or not step.apart or step.adds or not _stands_alone(step):
        return None
    if len(step.body) < LEAST or any(isinstance(item, Node) and item.op not in _SUMS for item in step.body):
        return None
    read = {place.array for place in step.reads.values() if isinstance(place, Element)}
    written = {place.array for place, _ in step.writes if isinstance(place, Element)}
    return None if read & written else step


def _stands_alone(statement: Statement) -> bool:
    """Whether a statement uses memory alone: no register, no name and no value of others."""
    if isinstance(statement, For):
        return all(map(_stands_alone, statement.body))
    if not isinstance(statement, Step):
        return False
    places = [*statement.reads.values(), *(place for place, _ in statement.writes)]
    if not all(isinstance(place, Element) for place in places):
        return False
    own, used = set(map(id, statement.body)), [node for _, node in statement.writes]
    for item in statement.body:
        if not isinstance(item, Node):
            return False
        used += item.args
    return all(node.op in _GIVEN or id(node) in own for node in used)


def _has_own_places(statement: Statement, turn: str) -> bool:
    """Whether no turn writes to where another one does."""
    if isinstance(statement, For):
        return all(_has_own_places(inner, turn) for inner in statement.body)
    places = (
        [place for place, _ in statement.writes if isinstance(place, Element)]
        if isinstance(statement, Step)
        else []
    )
    return all(_moves(place, turn) for place in places)


def _moves(place: Place, turn: str) -> bool:
    if not isinstance(place, Element):
        return False
    slopes = [slope(index, turn) for index in (place.column, place.row) if index is not None]
    return None not in slopes and any(slopes)


def bounds(loop: For) -> tuple[int, int] | None:
    """(first, stop) where both are known and every number between is taken; else None."""
    first, stop = loop.first.number, loop.stop.number
    if first is None or stop is None or loop.step.number != 1 or first >= stop:
        return None
    return first, stop


def count(loop: For) -> int:
    """How many turns a loop has whose bounds are known."""
    first, stop = bounds(loop) or (0, 0)
    return stop - first
