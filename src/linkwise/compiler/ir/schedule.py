"""The order of a program: arguments before use, few values alive at a time, loops as regions of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from types import MappingProxyType

from linkwise.compiler.ir.graph import Loop, Node
from linkwise.compiler.ir.walks import loop_numbers, reachable

_NOT_SCHEDULED = frozenset({"const", "word", "input", "phi", "result"})
_CYCLES = {"div": 14, "sqrt": 21, "select": 2, "lt": 5, "le": 5, "eq": 5, "neg": 1}
"""After which results are there, of vectors on a present-day processor; 4 for all others."""
SEEN = 32
"""Operations that wait for their arguments while a processor looks for others that need not."""
WINDOW = 1000
"""Operations by which ``overlapped`` looks ahead."""
WAITED = 1.07
"""Cycles an operation from which an order is changed."""


@dataclass(eq=False)
class LoopRegion:
    """One loop of a program.

    Meaning, for every target: ``state = loop.initial``; repeat: evaluate the body with ``loop.phi = state``;
    if ``loop.active`` holds in no lane, stop; else ``state = loop.following`` (lanes that are not active keep
    their state: the selection is part of ``following``). ``result`` nodes read the last state.

    The nodes that ``active`` needs come first in the body, so that a target may leave the loop right after
    it. ``active``, an initial or a following value may also be a node from outside the loop, a constant or a
    phi.
    """

    loop: Loop
    number: int
    body: list[Node | LoopRegion] = field(default_factory=list)


Body = list["Node | LoopRegion"]


def scheduled(body: Body) -> Iterator[Node]:
    """All nodes of a body in order, those of loops included."""
    for item in body:
        if isinstance(item, LoopRegion):
            yield from scheduled(item.body)
        else:
            yield item


def schedule(outputs: Iterable[Node], *, free_signs: bool = True) -> Body:
    """Every operation that the outputs need, exactly once and after its arguments.

    Constants, inputs, phis and results are not listed: the first two are there from the start, the others
    come with their loop. What does not vary in a loop is computed before it. ``free_signs``: changes of sign count as
    options of the instructions that use them, not as values that need registers.
    """
    nodes = reachable(outputs)
    innermost, parent = loop_numbers(nodes)
    contents: dict[int, Body] = {number: [] for number in (-1, *parent)}
    regions: dict[int, LoopRegion] = {}
    for node in nodes:
        if node.op not in _NOT_SCHEDULED:
            contents[innermost[node.index]].append(node)
        elif node.op == "result" and node.value[0] not in regions:
            number: int = node.value[0]
            regions[number] = LoopRegion(node.value[2], number)
            contents[innermost[node.index]].append(regions[number])

    reads: dict[int, list[Node]] = {}  # loop -> all nodes it uses, those of its body too
    for number in sorted(regions, reverse=True):  # inner loops have the higher numbers
        body, loop = contents[number], regions[number].loop
        uses = _dependencies(body, reads)
        first = _needed_for(loop.active, body, uses)
        rest = [item for place, item in enumerate(body) if place not in first]
        regions[number].body = _ordered(
            [body[place] for place in sorted(first)], reads, free_signs
        ) + _ordered(rest, reads, free_signs)
        reads[number] = [*loop.initial, loop.active, *loop.following]
        reads[number] += [node for item in body for node in _arguments(item, reads)]
    return _ordered(contents[-1], reads, free_signs)


def _arguments(item: Node | LoopRegion, reads: dict[int, list[Node]]) -> Sequence[Node]:
    return reads[item.number] if isinstance(item, LoopRegion) else item.args


def _number(item: Node | LoopRegion) -> int:
    """What a body's items are known by: a loop, which computes all its results, by a negative number."""
    if isinstance(item, LoopRegion):
        return ~item.number
    return ~item.value[0] if item.op == "result" else item.index


def _dependencies(
    body: Body, reads: dict[int, list[Node]], signs: Mapping[int, Node] = MappingProxyType({})
) -> list[list[int]]:
    """For each item the places of the items of this body that it uses, each once; directly or with another sign."""
    places = {_number(item): place for place, item in enumerate(body)}
    found: list[list[int]] = []
    for place, item in enumerate(body):
        used: set[int] = set()
        for a in _arguments(item, reads):
            while a.index in signs:
                a = a.args[0]
            if a.args:
                used.add(places.get(a.index, place))
            elif a.op == "result":
                used.add(places.get(_number(a), place))
        used.discard(place)
        found.append(sorted(used))
    return found


def _needed_for(target: Node, body: Body, uses: list[list[int]]) -> set[int]:
    """The places of the items of a body that a node depends on."""
    needed: set[int] = set()
    stack = [place for place, item in enumerate(body) if _number(item) == _number(target)]
    while stack:
        place = stack.pop()
        if place not in needed:
            needed.add(place)
            stack.extend(uses[place])
    return needed


def _ordered(body: Body, reads: dict[int, list[Node]], free_signs: bool) -> Body:
    """The items in an order that keeps few values alive.

    Two passes of list scheduling: from the end to the beginning, which brings a value close to its uses, then
    forward, which ends lives early; each takes the item that leaves the fewest values alive and otherwise
    follows the order it was given. Together they beat depth-first orders in reloads from memory and in
    measured time.
    """
    signs = _changes_of_sign(body, reads) if free_signs else {}
    body = [item for item in body if isinstance(item, LoopRegion) or item.index not in signs]
    uses = _dependencies(body, reads, signs)
    order = _forward(uses, _backward(uses))
    return _with_signs([body[place] for place in order], reads, signs)


def _changes_of_sign(body: Body, reads: dict[int, list[Node]]) -> dict[int, Node]:
    """The changes of sign that other items of a body use: instructions have them as options, so that they are no
    values of their own."""
    used = {a.index for item in body for a in _arguments(item, reads)}
    return {
        item.index: item
        for item in body
        if not isinstance(item, LoopRegion) and item.op == "neg" and item.index in used
    }


def _with_signs(body: Body, reads: dict[int, list[Node]], signs: dict[int, Node]) -> Body:
    """The items with each change of sign before its first use."""
    left = dict(signs)
    found: Body = []
    for item in body:
        for argument in _arguments(item, reads) if left else ():
            pending: list[Node] = []
            while argument.index in left:
                pending.append(left.pop(argument.index))
                argument = argument.args[0]
            if pending:
                found.extend(reversed(pending))
        found.append(item)
    return found


def overlapped(body: Body) -> Body:
    """The items in another order where the processor would wait in this one: chains of operations that do not depend on
    each other side by side.

    A few values more are alive then. A short body stays as it is, and so does one in which nothing waits for long.
    """
    if len(body) < WINDOW:
        return body
    uses = _dependencies(body, _read_by_loops(body))
    cycles = [0 if isinstance(item, LoopRegion) else _CYCLES.get(item.op, 4) for item in body]
    if _issued(uses, cycles, SEEN)[1] < WAITED * len(body):
        return body
    return [body[place] for place in _issued(uses, cycles, WINDOW)[0]]


def _issued(uses: list[list[int]], cycles: Sequence[int], window: int) -> tuple[list[int], int]:
    """(the order in which a processor that looks ahead by ``window`` items starts them, the cycles that it takes)."""
    users, waiting, ready = _users(uses), [len(u) for u in uses], [0] * len(uses)
    issued = [False] * len(uses)
    order: list[int] = []
    beyond, later, now = (
        [k for k, count in enumerate(waiting) if not count],
        list[tuple[int, int]](),
        list[int](),
    )
    time = first = 0
    while len(order) < len(uses):
        while beyond and beyond[0] < first + window:
            place = heappop(beyond)
            heappush(later, (ready[place], place))
        while later and later[0][0] <= time:
            heappush(now, heappop(later)[1])
        if not now:
            time = later[0][0]
            continue
        place = heappop(now)
        issued[place] = True
        order.append(place)
        while first < len(uses) and issued[first]:
            first += 1
        for user in users[place]:
            waiting[user] -= 1
            ready[user] = max(ready[user], time + cycles[place])
            if not waiting[user]:
                heappush(beyond, user)
        time += 1
    return order, time


def _read_by_loops(body: Body) -> dict[int, list[Node]]:
    """For each loop of a body the nodes that it uses, those of its own body too."""
    reads: dict[int, list[Node]] = {}
    for item in body:
        if isinstance(item, LoopRegion):
            inner = _read_by_loops(item.body)
            reads |= inner
            reads[item.number] = [*item.loop.initial, item.loop.active, *item.loop.following]
            reads[item.number] += [node for each in item.body for node in _arguments(each, inner)]
    return reads


def _forward(uses: list[list[int]], given: list[int]) -> list[int]:
    """List scheduling from the first item to the last."""
    rank = _inverse(given)
    users = _users(uses)
    waiting = [len(u) for u in uses]
    left = [len(u) for u in users]  # uses still to come
    # values alive more than before: the result, less the arguments that nothing else is waiting for
    cost = [(1 if users[place] else 0) - sum([left[a] == 1 for a in used]) for place, used in enumerate(uses)]
    ready = _Ready(cost, rank, given)
    push = ready.push
    for place in given:
        if not waiting[place]:
            push(place)
    order: list[int] = []
    while (place := ready.pop()) is not None:
        order.append(place)
        for a in uses[place]:
            left[a] -= 1
            if left[a] == 1:  # its last user has become cheaper
                for user in users[a]:
                    cost[user] -= 1
                    if not waiting[user]:
                        push(user)
        for user in users[place]:
            waiting[user] -= 1
            if not waiting[user]:
                push(user)
    return order


def _backward(uses: list[list[int]]) -> list[int]:
    """List scheduling from the last item to the first; the given order is that of creation."""
    users = _users(uses)
    left = [len(u) for u in users]
    alive = [False] * len(uses)
    last_first = list(range(len(uses)))[::-1]
    # values alive more than before, seen from the end: arguments that are not, less the result if it is
    cost = [len(used) for used in uses]
    ready = _Ready(cost, last_first, last_first)
    push = ready.push
    for place in range(len(uses)):
        if not left[place]:
            push(place)
    order: list[int] = []
    while (place := ready.pop()) is not None:
        order.append(place)
        for a in uses[place]:
            if not alive[a]:
                alive[a] = True
                cost[a] -= 1
                for user in users[a]:  # the value is there anyway: its other users have become cheaper
                    cost[user] -= 1
                    if not left[user]:
                        push(user)
            left[a] -= 1
            if not left[a]:
                push(a)
    order.reverse()
    return order


class _Ready:
    """Items that may come next: the cheapest first, of several that of the lowest rank. Costs change: a better one is
    pushed again, a worse one is found late. Cost and rank are one number, ``cost·count + rank``.
    """

    def __init__(self, cost: list[int], rank: list[int], of_rank: list[int]):
        self.cost, self.rank, self.of_rank = cost, rank, of_rank
        self.heap: list[int] = []
        self.taken = bytearray(len(rank))

    def push(self, place: int) -> None:
        if not self.taken[place]:
            heappush(self.heap, self.cost[place] * len(self.rank) + self.rank[place])

    def pop(self) -> int | None:
        heap, count = self.heap, len(self.rank)
        while heap:
            cost, rank = divmod(heappop(heap), count)
            place = self.of_rank[rank]
            if self.taken[place]:
                continue
            if cost != self.cost[place]:
                self.push(place)
                continue
            self.taken[place] = 1
            return place
        return None


def _users(uses: list[list[int]]) -> list[list[int]]:
    users: list[list[int]] = [[] for _ in uses]
    for place, used in enumerate(uses):
        for a in used:
            users[a].append(place)
    return users


def _inverse(order: list[int]) -> list[int]:
    rank = [0] * len(order)
    for k, place in enumerate(order):
        rank[place] = k
    return rank
