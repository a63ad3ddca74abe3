"""Rounding to whole numbers as operations of the graph, so that every target computes the same bits.

Added to a large constant, a number has no place left for its fraction and is rounded to the nearest whole
number, ties to even; subtracting the constant brings it back. Numbers too large for that are whole already.
"""

from __future__ import annotations

from linkwise.compiler.ir.graph import Graph, Node

MANTISSA = {"float64": 52, "float32": 23}


def nearest(graph: Graph, x: Node, dtype: str, fused: bool) -> Node:
    """``rint`` written out. A NaN stays NaN, an infinity what it is."""
    shift = graph.const(1.5 * 2.0 ** MANTISSA[dtype])
    # No pass takes a fused operation or a selection apart, so the two roundings stay where they are.
    shifted = graph.fma(x, graph.one, shift) if fused else graph.make("add", (x, shift))
    small = graph.make("lt", (graph.unary("abs", x), graph.const(2.0 ** (MANTISSA[dtype] - 1))))
    return graph.select(small, graph.make("sub", (shifted, shift)), x)
