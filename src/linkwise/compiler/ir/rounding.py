"""Rounding to whole numbers as operations of the graph, so that every target computes the same bits.

Added to a large constant, a number has no place left for its fraction and is rounded to the nearest whole
number, ties to even; subtracting the constant brings it back. Numbers too large for that are whole already.
"""

from __future__ import annotations

from collections.abc import Iterable

from linkwise.compiler.ir.graph import Graph, Node
from linkwise.compiler.ir.walks import copy, reachable, rebuild

MANTISSA = {"float64": 52, "float32": 23}


def expand(outputs: Iterable[Node], dtype: str, *, fused: bool = True) -> list[Node]:
    """The outputs with every ``rint`` written out. A NaN stays NaN, an infinity what it is."""
    outputs = list(outputs)
    if not any(node.op == "rint" for node in reachable(outputs)):
        return outputs
    large = 1.5 * 2.0 ** MANTISSA[dtype]
    limit = 2.0 ** (MANTISSA[dtype] - 1)

    def make(graph: Graph, node: Node, args: tuple[Node, ...]) -> Node:
        if node.op != "rint":
            return copy(graph, node, args)
        (x,) = args
        shift = graph.const(large)
        # No pass takes a fused operation or a selection apart, so the two roundings stay where they are.
        shifted = graph.fma(x, graph.one, shift) if fused else graph.make("add", (x, shift))
        small = graph.make("lt", (graph.unary("abs", x), graph.const(limit)))
        return graph.select(small, graph.make("sub", (shifted, shift)), x)

    return rebuild(outputs, make)
