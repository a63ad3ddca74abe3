"""Chooses the fused multiply-adds of a graph.

Fusing is part of the arithmetic (a·b + c rounds once instead of twice), so it is decided here and not by a
compiler.

A sum is evaluated as a chain: it starts with a term that is not a product, and every product is absorbed into
one fused operation. A product is absorbed if that is possible in all the sums that use it; otherwise it has
to be computed anyway and is a term like others. Where a sum consists of products only, one of them is
computed to start the chain.

Signs go onto operands of the fused operation, where they cost nothing on any target: a·b - c, c - a·b and
-(a·b) - c are one instruction each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from linkwise.compiler.ir.graph import Graph, Node
from linkwise.compiler.ir.sums import SUMS, Sums, Term, count_uses
from linkwise.compiler.ir.walks import reachable, rebuild

_SLOW = {"div": 4, "sqrt": 5}  # how long other operations take, in units of an addition


def fuse(outputs: Iterable[Node]) -> list[Node]:
    """The outputs with products absorbed into sums and changes of sign moved to where they are free."""
    sums = Sums(outputs)
    absorbed = _absorbed(sums)
    depth = _depths(sums.nodes)

    for index in absorbed:  # such a product waits for its factors only
        depth[index] -= 1

    def known_after(term: Term) -> tuple[int, int, int]:
        """First, how many operations, one after another, a term waits for."""
        index = term.old.index
        return depth[index], index, term.sign

    inner: dict[int, list[Term]] = {}

    def make(graph: Graph, node: Node, args: tuple[Node, ...]) -> Node:
        if node.op not in SUMS:
            return graph.make(node.op, args, node.value)
        terms = sums.gather(node, args, inner)
        if node.index in sums.inner:
            inner[node.index] = terms
            return args[0]  # a placeholder: only the sum around it uses this node
        terms.sort(key=known_after)
        return _chain(graph, terms, absorbed)

    return _sink_signs(rebuild(sums.outputs, make, sums.nodes))


def _absorbed(sums: Sums) -> set[int]:
    """The products that are nowhere computed by themselves."""
    terms = sums.terms()
    as_term: Counter[int] = Counter()  # how often a product is a term of a sum in its own loop
    for index, own in terms.items():
        loop = sums.loop[index]
        for a in own:
            if a.op == "mul" and sums.loop[a.index] == loop:
                as_term[a.index] += 1
    absorbed = {index for index, count in as_term.items() if count == sums.uses[index]}
    for own in terms.values():
        if all(a.index in absorbed for a in own):  # one has to start: the most used, then the oldest
            start = min(own, key=lambda a: (-as_term[a.index], a.index))
            absorbed.discard(start.index)
    return absorbed


def _depths(nodes: list[Node]) -> dict[int, int]:
    depth: dict[int, int] = {}
    for node in nodes:
        before = 0
        for a in node.args:
            if depth[a.index] > before:
                before = depth[a.index]
        depth[node.index] = _SLOW.get(node.op, 1) + before
    return depth


def _chain(graph: Graph, terms: list[Term], absorbed: set[int]) -> Node:
    """The sum in the order of the terms, after one that is not a product."""
    start = next(term for term in terms if term.old.index not in absorbed)
    value, sign = start.new, start.sign
    for term in terms:
        if term is start:
            continue
        if term.old.index in absorbed:
            a, b = term.new.args if term.sign > 0 else _negate_product(graph, *term.new.args)
            value, sign = graph.fma(a, b, value if sign > 0 else graph.neg(value)), 1
        elif term.sign == sign:
            value = graph.make("add", (value, term.new))
        else:
            value = graph.make("sub", (value, term.new) if sign > 0 else (term.new, value))
            sign = 1
    return value if sign > 0 else graph.neg(value)


def _negate_product(graph: Graph, a: Node, b: Node) -> tuple[Node, Node]:
    """Operands of -(a·b). Constants keep their sign, so that one constant serves both signs."""
    return (a, graph.neg(b)) if a.op == "const" else (graph.neg(a), b)


def _sink_signs(outputs: list[Node]) -> list[Node]:
    """Moves a change of sign into the operation before it, where that operation has no other use."""
    nodes = reachable(outputs)
    uses = count_uses(nodes)
    uses.update(node.index for node in outputs)
    signs = [node.args[0] for node in nodes if node.op == "neg"]
    if not any(uses[value.index] == 1 and value.op in ("sub", "fma", "mul") for value in signs):
        return outputs

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
        return graph.make(node.op, args, node.value)

    return rebuild(outputs, make, nodes)
