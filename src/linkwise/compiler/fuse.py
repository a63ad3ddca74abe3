"""Chooses the fused multiply-adds of a graph.

Fusing is part of the arithmetic (a·b + c rounds once instead of twice), so it is decided here and not by a compiler.

Additions whose result is used once, by another addition, form one sum with many terms. A sum is evaluated as a chain: it
starts with a term that is not a product, and every product is absorbed into one fused operation. A product is absorbed
if that is possible in all the sums that use it; otherwise it has to be computed anyway and is a term like others. Where
a sum consists of products only, one of them is computed to start the chain.

Signs go onto operands of the fused operation, where they cost nothing on any target: a·b - c, c - a·b and -(a·b) - c
are one instruction each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from linkwise.compiler.graph import Graph, Node, copy, loop_numbers, reachable, rebuild

_SLOW = {"div": 4, "sqrt": 5}  # how long other operations take, in units of an addition


@dataclass(frozen=True)
class Term:
    """``sign`` times ``node``, which is known after ``depth`` operations one after another."""

    sign: int
    node: Node
    depth: int
    is_product: bool


def fuse(outputs: Iterable[Node]) -> list[Node]:
    """The outputs with products absorbed into sums and changes of sign moved to where they are free."""
    outputs = list(outputs)
    plan = _Plan(outputs)
    open_sums: dict[int, list[Term]] = {}  # inner additions, waiting for the one that uses them

    def make(graph: Graph, node: Node, args: tuple[Node, ...]) -> Node:
        if node.index not in plan.sums:
            return copy(graph, node, args)
        terms: list[Term] = []
        for place, (old, new) in enumerate(zip(node.args, args, strict=True)):
            sign = -1 if node.op == "sub" and place == 1 else 1
            if old.index in plan.inner:
                terms += [Term(sign * t.sign, t.node, t.depth, t.is_product) for t in open_sums.pop(old.index)]
            else:
                terms.append(Term(sign, new, plan.known_after(old), old.index in plan.absorbed))
        if node.index in plan.inner:
            open_sums[node.index] = terms
            return args[0]  # never looked at
        if any(term.is_product for term in terms):
            return _chain(graph, terms)
        return copy(graph, node, args)

    return _sink_signs(rebuild(outputs, make))


class _Plan:
    """Which additions belong together, and which products are absorbed."""

    def __init__(self, outputs: list[Node]):
        nodes = reachable(outputs)
        self.depth: dict[int, int] = {}
        uses = _count_uses(nodes, outputs)
        loop, _ = loop_numbers(nodes)
        self.sums = {node.index for node in nodes if node.op in ("add", "sub")}
        self.inner: set[int] = set()
        as_term: Counter[int] = Counter()  # how often a product is used in sums of its own loop
        for node in nodes:
            self.depth[node.index] = _SLOW.get(node.op, 1) + max((self.depth[a.index] for a in node.args), default=0)
            if node.index in self.sums:
                for a in node.args:
                    if loop[a.index] == loop[node.index]:
                        if a.op == "mul":
                            as_term[a.index] += 1
                        elif a.index in self.sums and uses[a.index] == 1:
                            self.inner.add(a.index)
        self.absorbed = {index for index, count in as_term.items() if count == uses[index]}
        self._open_with_something(nodes, as_term)

    def known_after(self, node: Node) -> int:
        """The depth of a term; of an absorbed product, that of its factors."""
        return self.depth[node.index] - (1 if node.index in self.absorbed else 0)

    def _open_with_something(self, nodes: list[Node], as_term: Counter[int]) -> None:
        """Takes one product back from each sum that has nothing else to start with: the most used, then the first known."""
        terms: dict[int, list[Node]] = {}
        for node in nodes:
            if node.index not in self.sums:
                continue
            own = terms[node.index] = []
            for a in node.args:
                own.extend(terms.pop(a.index) if a.index in self.inner else [a])
            if node.index in self.inner:
                continue
            if all(a.index in self.absorbed for a in own):
                start = min(own, key=lambda a: (-as_term[a.index], self.depth[a.index], a.index))
                self.absorbed.discard(start.index)


def _chain(graph: Graph, terms: list[Term]) -> Node:
    """The sum, terms in the order in which they become known."""
    terms = sorted(terms, key=lambda term: (term.depth, term.node.index, term.sign))
    start = next(term for term in terms if not term.is_product)
    value, sign = start.node, start.sign
    for term in terms:
        if term is start:
            continue
        if term.is_product:
            a, b = term.node.args if term.sign > 0 else _negate_product(graph, *term.node.args)
            value, sign = graph.fma(a, b, value if sign > 0 else graph.neg(value)), 1
        elif term.sign == sign:
            value = graph.make("add", (value, term.node))
        else:
            value = graph.make("sub", (value, term.node) if sign > 0 else (term.node, value))
            sign = 1
    return value if sign > 0 else graph.neg(value)


def _count_uses(nodes: list[Node], outputs: list[Node]) -> Counter[int]:
    """Uses as arguments, as outputs and at the ends of loops."""
    uses = Counter(a.index for node in nodes for a in node.args)
    uses.update(node.index for node in outputs)
    for number in {node.value[0] for node in nodes if node.op == "result"}:
        loop = outputs[0].graph.loops[number]
        uses.update(node.index for node in (*loop.initial, loop.active, *loop.following))
    return uses


def _negate_product(graph: Graph, a: Node, b: Node) -> tuple[Node, Node]:
    """Operands of -(a·b). Constants keep their sign, so that one constant serves both signs."""
    return (a, graph.neg(b)) if a.op == "const" else (graph.neg(a), b)


def _sink_signs(outputs: list[Node]) -> list[Node]:
    """Moves a change of sign into the operation before it, where that operation has no other use."""
    uses = _count_uses(reachable(outputs), outputs)

    def make(graph: Graph, node: Node, args: tuple[Node, ...]) -> Node:
        if node.op == "neg" and uses[node.args[0].index] == 1:
            (value,) = args
            if value.op == "sub":
                return graph.make("sub", (value.args[1], value.args[0]))
            if value.op == "fma":
                a, b, c = value.args
                return graph.fma(*_negate_product(graph, a, b), graph.neg(c))
            if value.op == "mul" and value.args[0].op == "const":
                return graph.make("mul", (graph.neg(value.args[0]), value.args[1]))
        return copy(graph, node, args)

    return rebuild(outputs, make)
