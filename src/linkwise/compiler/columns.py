"""Columns of a study as loops: random numbers, moments and counts of classes, in an order that never changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.compiler.ir.graph import Graph, Node
from linkwise.compiler.ir.loops import (
    INDEX,
    Array,
    Declare,
    Element,
    For,
    If,
    Join,
    Let,
    Nest,
    Place,
    Register,
    Statement,
    Step,
    name,
    whole,
)
from linkwise.compiler.ir.philox import MASK, ROUNDS, Key, philox, weyl
from linkwise.compiler.ir.schedule import schedule
from linkwise.compiler.ir.walks import reachable
from linkwise.compiler.ir.words import Word

LANES = 16
"""Sums that run side by side. Columns have room for so many more entries than they hold, so that vectors may reach over
their end."""
_SIDE_BY_SIDE = 6  # blocks of random words that are computed together: as many as registers hold
_TWO_52 = 0x4330000000000000  # the bits of 2^52: a whole number under that in its mantissa is added to it


# -- steps ------------------------------------------------------------------------------------------------------------


Read = Callable[[Place], Node]


def _step(make: Callable[[Read], dict[Place, Node]], adds: bool = False) -> Step:
    """A step whose inputs are the places themselves."""
    graph = Graph()
    writes = make(lambda place: graph.make("input", (), place))
    nodes = list(writes.values())
    reads = {node.value: node.value for node in reachable(nodes) if node.op == "input"}
    return Step(reads, schedule(nodes), list(writes.items()), adds)


# -- random numbers ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ticks:
    """Columns of one variable: where the first one goes, how many there are, and how many bits each has."""

    key: Key
    row: int
    size: int
    bits: int

    def blocks(self) -> Iterator[tuple[int, list[tuple[int, int]]]]:
        """(number of a block of four words, [(part of it, row that it goes to)])."""
        per_block = 4 if self.bits == 32 else 2
        for first in range(0, self.size, per_block):
            parts = range(min(per_block, self.size - first))
            yield first // per_block, [(part, self.row + first + part) for part in parts]


def draws(variables: Sequence[Ticks], high: int = 0) -> Nest:
    """The random numbers of one sample, a column for each; ``high`` is the upper word of all indices.

    Blocks of words are computed side by side, a round of all of them at a time: a single block would wait for the
    latency of its multiplications.
    """
    graph = Graph()
    index = Word(graph.make("input", (), INDEX)) & MASK
    wanted = [(variable, *block) for variable in variables for block in variable.blocks()]
    writes: list[tuple[Place, Node]] = []
    for start in range(0, len(wanted), _SIDE_BY_SIDE):
        group = wanted[start : start + _SIDE_BY_SIDE]
        words: list[list[Any]] = [[index, number, high, 0] for _, number, _ in group]
        for turn in range(ROUNDS):
            words = [
                philox(counter, weyl(variable.key, turn), 1)
                for counter, (variable, _, _) in zip(words, group, strict=True)
            ]
        for block, (variable, _, parts) in zip(words, group, strict=True):
            writes += [
                (Element("ticks", whole(row)), tick(graph, block, part, variable.bits)) for part, row in parts
            ]
    rows = 1 + max(row for _, _, parts in wanted for _, row in parts)
    body = schedule([node for _, node in writes])
    return Nest("draws", "float64", (Array("ticks", "output", rows),), [Step({INDEX: INDEX}, body, writes)])


def block(bits: int) -> Nest:
    """One block of words as numbers x0, x1, …, for any index, number of the block and key."""
    places = {key: Register(key) for key in ("index", "block", "key0", "key1")}

    def made(read: Read) -> dict[Place, Node]:
        index, number, *key = (Word(read(place)) for place in places.values())
        words = philox([index & MASK, number, index >> 32, 0], key)
        count = 4 if bits == 32 else 2
        return {Element("x", whole(k)): tick(index.node.graph, words, k, bits) for k in range(count)}

    return Nest("block", "float64", (Array("x", "output", 4),), [_step(made)])


def tick(graph: Graph, words: Sequence[Word], part: int, bits: int) -> Node:
    """A whole number under 2^bits and a half; see ``study.philox.ticks``."""
    known = words[part] if bits == 32 else words[2 * part] << 20 | words[2 * part + 1] >> 12
    raised = graph.make("real_from_bits", ((known | _TWO_52).node,))
    return graph.make("sub", (raised, graph.const(2.0**52 - 0.5)))


# -- moments ----------------------------------------------------------------------------------------------------------

_SUM, _NUMBER, _LEAST, _MOST, _AT, _MEAN, _SQUARES, _PLACE = (
    Register(key) for key in ("sum", "number", "least", "most", "at", "mean", "squares", "place")
)


def moments() -> Nest:
    """Count, mean, squared deviations and extremes of one column; NaN counts for nothing.

    Lane k of sixteen takes the entries k, k + 16, …, and the lanes are joined at the end: the order is part of the
    definition, whatever the width of the machine's vectors. The squared deviations are taken from the mean in a second
    pass. An extreme that is better than the known one comes with the first place where it was found.

    A call gives ``first``, the index of the first entry, ``count``, and how many ``rows`` of sixteen these take.
    ``leaf`` is (count, mean, squared deviations), ``extremes`` (smallest, its index, largest, its index); indices are
    exact whole numbers up to 2^53.
    """
    arrays = (
        Array("data", "input", 1, "rows", lanewise=True),
        Array("leaf", "output", 3),
        Array("extremes", "both", 4),
    )
    spoiled = _step(lambda read: {name("spoiled"): _word_of(~_is_number(read(_SUM)))})
    body = [
        Let("spoiled", whole(1)),
        # full rows need no test for NaN: a sum that is NaN shows that there is one
        If(
            (name("rows") * LANES).equals(name("count")),
            [*_sums(_entry), spoiled, If(name("spoiled").equals(0), _rest(_entry))],
        ),
        If(name("spoiled").equals(1), [*_sums(_entry_or_nan), *_rest(_entry_or_nan)]),
    ]
    return Nest("moments", "float64", arrays, body, ("first", "count", "rows"), lanes=LANES)


def _entry(read: Read) -> Node:
    return read(Element("data", whole(0), name("row")))


def _entry_or_nan(read: Read) -> Node:
    """An entry that may be NaN or beyond the end."""
    counted = read(_AT) < _real(read(name("count")))
    return counted.where(_entry(read), float("nan"))


def _sums(entry: Callable[[Read], Node]) -> list[Statement]:
    def turn(read: Read) -> dict[Place, Node]:
        x = entry(read)
        extremes = {
            _LEAST: (x < read(_LEAST)).where(x, read(_LEAST)),
            _MOST: (read(_MOST) < x).where(x, read(_MOST)),
        }
        if entry is _entry:
            return {_SUM: read(_SUM) + x, **extremes}
        valid = _is_number(x)
        return {
            _SUM: read(_SUM) + valid.where(x, 0.0),
            _NUMBER: read(_NUMBER) + valid.where(1.0, 0.0),
            **extremes,
        }

    every = _step(lambda read: {_NUMBER: _real(read(name("count")))})
    return [
        Declare({_SUM: 0.0, _NUMBER: 0.0, _LEAST: float("inf"), _MOST: float("-inf")}),
        *_pass(turn),
        Join(_SUM, "add"),
        every if entry is _entry else Join(_NUMBER, "add"),
        Join(_LEAST, "least"),
        Join(_MOST, "most"),
    ]


def _rest(entry: Callable[[Read], Node]) -> list[Statement]:
    """What follows from the sums."""

    def mean(read: Read) -> dict[Place, Node]:
        number = read(_NUMBER)
        return {_MEAN: read(_SUM) / (number > 0.0).where(number, 1.0)}

    def turn(read: Read) -> dict[Place, Node]:
        away = entry(read) - read(_MEAN)
        if entry is not _entry:
            away = _is_number(entry(read)).where(away, 0.0)
        return {_SQUARES: away.graph.fma(away, away, read(_SQUARES))}

    leaf = [Element("leaf", whole(k)) for k in range(3)]
    return [
        Declare({_MEAN: 0.0, _SQUARES: 0.0}),
        _step(mean),
        *_pass(turn),
        Join(_SQUARES, "add"),
        _step(lambda read: dict(zip(leaf, map(read, (_NUMBER, _MEAN, _SQUARES)), strict=True))),
        *_extreme(entry, _LEAST, 0, lambda new, known: new < known),
        *_extreme(entry, _MOST, 2, lambda new, known: known < new),
    ]


def _extreme(
    entry: Callable[[Read], Node], register: Register, column: int, better: Callable[[Node, Node], Node]
) -> list[Statement]:
    """Where the block has a better extreme than all before it, its first place is looked for."""
    value, index = (Element("extremes", whole(k)) for k in (column, column + 1))

    def turn(read: Read) -> dict[Place, Node]:
        here = read(register).graph.compare("eq", entry(read), read(register)) & (read(_AT) < read(_PLACE))
        return {_PLACE: here.where(read(_AT), read(_PLACE))}

    return [
        Let("better", whole(0)),
        _step(lambda read: {name("better"): _word_of(better(read(register), read(value)))}),
        If(
            name("better").equals(1),
            [
                Declare({_PLACE: float("inf")}),
                *_pass(turn),
                Join(_PLACE, "least"),
                _step(lambda read: {value: read(register), index: read(_PLACE) + _real(read(name("first")))}),
            ],
        ),
    ]


def _pass(turn: Callable[[Read], dict[Place, Node]]) -> list[Statement]:
    """All rows; a turn may use ``at``, the place of the lane's entry in the column."""
    plain = _step(turn)
    if _AT not in plain.reads:
        return [For("row", whole(0), name("rows"), [plain])]
    counted = _step(lambda read: {**turn(read), _AT: read(_AT) + float(LANES)})
    start = _step(lambda read: {_AT: _real(read(INDEX))})
    return [Declare({_AT: 0.0}), start, For("row", whole(0), name("rows"), [counted])]


# -- classes ----------------------------------------------------------------------------------------------------------


def classes(bits: int) -> Nest:
    """How many values fall into each class, which is the upper bits of a double; NaN counts for nothing."""

    def found(read: Read) -> dict[Place, Node]:
        x = _entry(read)
        upper = Word(x.graph.make("bits_of", (x,))) >> (64 - bits)
        return {name("class"): upper.node, name("one"): _word_of(_is_number(x))}

    counted = _step(lambda read: {Element("table", name("class")): read(name("one"))}, adds=True)
    arrays = (Array("data", "input", 1, "count"), Array("table", "both", 1 << bits, words=True))
    loop = For("row", whole(0), name("count"), [_step(found), counted])
    return Nest("classes", "float64", arrays, [loop], ("count",))


# -- conversions -----------------------------------------------------------------------------------------------------


def _is_number(x: Node) -> Node:
    return x.graph.compare("eq", x, x)


def _word_of(condition: Node) -> Node:
    return condition.graph.make("word_of", (condition,))


def _real(word: Node) -> Node:
    return word.graph.make("real_of", (word,))
