"""Functions that no target has, written out as operations of the graph."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.compiler.ir import arctangent, rounding, sincos
from linkwise.compiler.ir.graph import Graph, Node
from linkwise.compiler.ir.walks import copy, reachable, rebuild

FUNCTIONS = frozenset({"sin", "cos", "sign", "atan2", "rint"})


def expand(
    outputs: Sequence[Node],
    dtype: str,
    *,
    fused: bool = True,
    hardware: bool = False,
    nodes: list[Node] | None = None,
) -> list[Node]:
    """The outputs with every sine, cosine, arc tangent, sign and rounding written out, with or without fused
    multiply-adds; the outputs themselves where there are none.

    ``hardware=True`` makes sine and cosine operations of the machine instead. ``nodes`` is what the outputs depend on,
    where that is known already.
    """
    nodes = reachable(outputs) if nodes is None else nodes
    if not any(node.op in FUNCTIONS or node.op == "like" for node in nodes):
        return list(outputs)

    def make(graph: Graph, node: Node, args: tuple[Node, ...]) -> Node:
        op = node.op
        if op not in FUNCTIONS:
            return copy(graph, node, args)
        if op == "atan2":
            y, x = args
            return arctangent.arctangent(graph, y, x, dtype, fused)
        (x,) = args
        if op == "rint":
            return rounding.nearest(graph, x, dtype, fused)
        if op == "sign":  # a zero and a NaN stay what they are
            below = graph.select(x < 0.0, graph.const(-1.0), x)
            return graph.select(x > 0.0, graph.one, below)
        if hardware:
            return graph.make(f"hardware_{op}", args)
        return (sincos.sine if op == "sin" else sincos.cosine)(graph, x, dtype, fused)

    return rebuild(outputs, make, nodes)
