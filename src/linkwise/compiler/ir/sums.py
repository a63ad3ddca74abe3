"""Sums with many terms: additions whose result is used once, by another addition, seen as one.

Floating-point addition is not associative, so taking a sum apart changes its rounding. The graph decides the
arithmetic; passes that gain by it may put the terms of a sum in another order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from linkwise.compiler.ir.graph import Loop, Node
from linkwise.compiler.ir.walks import loop_numbers, reachable

SUMS = frozenset({"add", "sub"})


class Term(NamedTuple):
    """``sign`` times a value: ``old`` in the graph before a pass, ``new`` in the graph after it.

    ``stage`` is that of the addition that brings it into the sum; for the first term, of the first addition.
    """

    sign: int
    old: Node
    new: Node
    stage: str


# of a ``Term``: a third of the time of its own constructor
_term: Callable[[type[Term], tuple[int, Node, Node, str]], Term] = tuple.__new__  # pyright: ignore


def count_uses(nodes: list[Node]) -> Counter[int]:
    """How often each node is an argument or serves a loop as initial value, condition or next value."""
    uses = Counter([a.index for node in nodes for a in node.args])
    loops: set[Loop] = {node.value[2] for node in nodes if node.op == "result"}
    for loop in loops:
        uses.update(node.index for node in (*loop.initial, loop.active, *loop.following))
    return uses


class Sums:
    """The sums of a graph. A sum does not reach into a loop from outside it."""

    def __init__(self, outputs: Iterable[Node], nodes: list[Node] | None = None):
        self.outputs = list(outputs)
        self.nodes = reachable(self.outputs) if nodes is None else nodes
        self.uses = count_uses(self.nodes)
        self.uses.update(node.index for node in self.outputs)
        self.loop, _ = loop_numbers(self.nodes)
        self.inner: set[int] = set()  # additions that are part of a larger sum
        uses, loop = self.uses, self.loop
        for node in self.nodes:
            if node.op in SUMS:
                for a in node.args:
                    if a.op in SUMS and uses[a.index] == 1 and loop[a.index] == loop[node.index]:
                        self.inner.add(a.index)

    def terms(self) -> dict[int, list[Node]]:
        """Index of a whole sum -> its terms, whatever their signs are."""
        found: dict[int, list[Node]] = {}
        for node in self.nodes:
            if node.op in SUMS:
                own: list[Node] = []
                for a in node.args:
                    own += found.pop(a.index) if a.index in self.inner else [a]
                found[node.index] = own
        return found

    def gather(self, node: Node, args: tuple[Node, ...], inner: dict[int, list[Term]]) -> list[Term]:
        """The terms of an addition while a graph is rebuilt; ``inner`` holds those of the additions within
        it.
        """
        (a, b), stage = node.args, node.stage
        if a.index not in self.inner and b.index not in self.inner:
            second = -1 if node.op == "sub" else 1
            return [_term(Term, (1, a, args[0], stage)), _term(Term, (second, b, args[1], stage))]
        terms: list[Term] = []
        for place, (old, new) in enumerate(zip(node.args, args, strict=True)):
            sign = _sign(node, place)
            below = inner.pop(old.index, None) if old.index in self.inner else None
            if below is None:
                own = [_term(Term, (sign, old, new, stage))]
            else:
                own = below if sign > 0 else [_term(Term, (-t.sign, t.old, t.new, t.stage)) for t in below]
                if place == 1:
                    own[0] = own[0]._replace(stage=stage)
            if terms:
                terms += own
            else:
                terms = own
        return terms


def _sign(node: Node, place: int) -> int:
    return -1 if node.op == "sub" and place == 1 else 1
