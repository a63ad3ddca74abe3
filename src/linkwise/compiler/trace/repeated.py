"""Whether a turn of a loop may run twice: whether it reads nothing that it changes itself.

Turns side by side in the lanes of a vector end with the last turn, so that the last vector may repeat turns of the one
before. That is harmless if a turn writes every place before it reads it. What is found here is that, where it can be
shown from the places alone:

- the same places are written before in the same turn (``A[i, j]`` for all i, then ``A[k, j]`` for all k), or
- they are those of earlier turns of a loop inside, as in substitutions: ``x[i] = b[i] − Σ L[i, k] x[k]`` for k < i, or
- other loops of the turn have written all of them, counted one by one: ``x[i]`` for all i < n, then tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from linkwise.compiler.ir.loops import Register
from linkwise.compiler.trace.rolled import Block, Key, OpenStep, StraightPart, TracedLoop
from linkwise.compiler.trace.traced_arrays import Index, Term, index

MOST_PLACES = 5000
"""Places of an access that are counted one by one."""


@dataclass(frozen=True)
class Access:
    """A place of an array, inside some loops of the turn."""

    array: str
    place: Index
    loops: tuple[TracedLoop, ...]
    number: int
    """Of the step: reads of a step come before its writes."""


def may_repeat(loop: TracedLoop, reads_of: Callable[[OpenStep], Iterable[Key]]) -> bool:
    """Whether every place that a turn reads and writes is written before it is read.

    Args:
        loop: the loop whose turns are meant.
        reads_of: what a step reads.
    """
    reads: list[Access] = []
    writes: list[Access] = []
    for number, (item, loops) in enumerate(_steps(loop.body, ())):
        if isinstance(item, OpenStep):
            sides = (reads_of(item), item.writes)
        else:
            sides = ([k for group in item.reads for k in group], [k for group in item.writes for k in group])
        for side, accesses in zip(sides, (reads, writes), strict=True):
            accesses += [
                Access(key[0], key[1], loops, number) for key in side if not isinstance(key, Register)
            ]
    changed: dict[str, list[Access]] = {}
    for write in writes:
        changed.setdefault(write.array, []).append(write)
    written: dict[str, _Written] = {}
    for read in reads:
        writes_there = changed.get(read.array)
        if writes_there is None or any(_is_before(write, read) for write in writes_there):
            continue
        if read.array not in written:
            written[read.array] = _Written(writes_there)
        if not written[read.array].before(read):
            return False
    return True


def _steps(block: Block, loops: tuple[TracedLoop, ...]) -> Iterator[tuple[OpenStep | StraightPart, Any]]:
    for item in block.items:
        if isinstance(item, TracedLoop):
            yield from _steps(item.body, (*loops, item))
        elif not isinstance(item, Register):
            yield item, loops


def _is_before(write: Access, read: Access) -> bool:
    """Whether the place that is read has been written before in the same turn."""
    if write.number < read.number and _covers(_places(write), _places(read)):
        return True
    return any(_is_of_earlier_turn(write, read, loop) for loop in write.loops if loop in read.loops)


@dataclass(frozen=True)
class _Places:
    """All places of an access: constant + Σ factor·k for all k of each range, beside terms of loops further out."""

    outer: tuple[tuple[Term, int], ...]
    constant: int
    ranges: tuple[tuple[int, Index, Index], ...]
    """(factor, first, stop)."""
    has_entries: bool
    """Whether entries of tables depend on the loops of the ranges."""


def _places(access: Access) -> _Places | None:
    """None where the bounds of the loops around depend on each other."""
    inner = {loop.name: loop for loop in access.loops}
    outer = tuple(term for term in access.place.terms if term[0] not in inner)
    ranges: list[tuple[int, Index, Index]] = []
    for name, factor in access.place.terms:
        if isinstance(name, str) and name in inner:
            bounds = (inner[name].first, inner[name].stop)
            if any(bound.depends_on(inner) for bound in bounds):
                return None
            first, stop = bounds
            if inner[name].step != 1:
                first, stop = index(stop + 1), index(first + 1)
            ranges.append((factor, first, stop))
    has_entries = Index(outer).depends_on(inner)
    return _Places(outer, access.place.constant, tuple(sorted(ranges, key=repr)), has_entries)


def _covers(written: _Places | None, read: _Places | None) -> bool:
    """Whether all places that are read are among those that are written."""
    if written is None or read is None or written.outer != read.outer:
        return False
    if written == read:
        return True
    if len(written.ranges) != 1 or len(read.ranges) > 1 or written.has_entries:
        return False
    ((factor, first, stop),) = written.ranges
    own, low, past = read.ranges[0] if read.ranges else (factor, Index((), 0), Index((), 1))
    ahead, rest = divmod(read.constant - written.constant, factor)
    if own != factor or rest or any(bound.terms for bound in (first, stop, low, past)):
        return False
    return first.constant <= low.constant + ahead and past.constant + ahead <= stop.constant


def _enumerated(access: Access) -> tuple[frozenset[Any], frozenset[int]] | None:
    """(terms that do not change inside of the turn, constants of all places); None where that is not known, or long."""
    names = {loop.name for loop in access.loops}
    if _has_entries(access.place, names):
        return None
    outer = frozenset(term for term in access.place.terms if term[0] not in names)
    factors = {name: factor for name, factor in access.place.terms if name in names}
    turns: list[dict[Any, int]] = [{}]
    for loop in access.loops:
        if any(name not in names for bound in (loop.first, loop.stop) for name, _ in bound.terms):
            return None
        turns = [now | {loop.name: k} for now in turns for k in _numbers(loop, now)]
        if len(turns) > MOST_PLACES:
            return None
    constant = access.place.constant
    return outer, frozenset(constant + sum(factors[name] * now[name] for name in factors) for now in turns)


def _numbers(loop: TracedLoop, now: dict[Any, int]) -> range:
    """Of its turns, while loops around are at these."""
    first, stop = (
        bound.constant + sum(factor * now[name] for name, factor in bound.terms)  # type: ignore[index]
        for bound in (loop.first, loop.stop)
    )
    return range(first, stop, loop.step)


class _Written:
    """Places that a turn has written up to a step, by accesses outside of the loops of a read."""

    def __init__(self, writes: list[Access]):
        self._writes = [(write, _enumerated(write)) for write in writes]

    def before(self, read: Access) -> bool:
        """Whether all places of a read have been written."""
        places = _enumerated(read)
        if places is None:
            return False
        left = set(places[1])
        for write, known in self._writes:
            if write.number >= read.number or any(loop in read.loops for loop in write.loops):
                continue
            if known is not None and known[0] == places[0]:
                left -= known[1]
        return not left


def _is_of_earlier_turn(write: Access, read: Access, loop: TracedLoop) -> bool:
    """Whether what is read are the places that earlier turns of a loop around both have written, from its first on."""
    factor = dict(write.place.terms).get(loop.name, 0)
    others = [other for other in read.loops if other not in write.loops and other is not loop]
    if factor == 0 or len(others) != 1:
        return False
    (other,) = others
    own = dict(read.place.terms).get(other.name, 0)
    if own != factor or abs(loop.step) != 1 or other.step != 1:
        return False
    if any(_has_entries(place, {loop.name, other.name}) for place in (write.place, read.place)):
        return False
    # of the number of the turn that wrote the place that is read: lowest and highest
    ends = [_placed(read.place, other.name, bound) for bound in (other.first, other.stop)]
    low, past = (index(end - write.place) for end in ends)
    now = Index(((loop.name, factor),), 0)
    first = index(now * 0 + loop.first * factor)
    if loop.step == 1:  # places from the first turn's to the one before
        return past == index(0) and index(low + now) == first
    return low == index(factor) and index(past + now) == index(first + factor)


def _has_entries(place: Index, loops: set[str]) -> bool:
    """Whether entries of tables in a place depend on these loops."""
    return Index(tuple(term for term in place.terms if not isinstance(term[0], str))).depends_on(loops)


def _placed(place: Index, name: str, value: Index) -> Index:
    """A place with the number of a loop replaced."""
    factor = dict(place.terms)[name]
    rest = Index(tuple(term for term in place.terms if term[0] != name), place.constant)
    return index(rest + value * factor)
