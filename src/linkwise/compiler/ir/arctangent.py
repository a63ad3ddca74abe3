"""atan2 as operations of the graph, so that every target computes the same bits.

The smaller of |x| and |y| over the larger lies in [0, 1]. Above tan(π/8) the angle is measured from π/4
instead: atan(n/d) = π/4 + atan((n - d)/(n + d)), so that the polynomial only needs |t| ≤ tan(π/8). Octant and
signs decide from which multiple of π/4 and in which direction the angle counts. Signed zeros and infinities
give what C's atan2 gives; the result is accurate to 2 units in the last place (the tests measure it).

The coefficients are a minimax fit of (atan t / t - 1) / t² in t², made as those of sine and cosine. Relative
errors: 2^-59.4 for float64, 2^-30.4 for float32, on |t| ≤ 0.41422.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from linkwise.compiler.ir.graph import Graph, Node


@dataclass(frozen=True)
class _Constants:
    sign_bit: int
    large: float
    """Beyond it n + d might overflow, so that both are made smaller."""
    eighths: tuple[tuple[float, float], ...]
    """0, π/4, π/2, 3π/4, π in two pieces."""
    coefficients: tuple[float, ...]


CONSTANTS = {
    "float64": _Constants(
        sign_bit=63,
        large=2.0**1000,
        eighths=(
            (0.0, 0.0),
            (0.7853981633974483, 3.061616997868383e-17),
            (1.5707963267948966, 6.123233995736766e-17),
            (2.356194490192345, 9.184850993605148e-17),
            (3.141592653589793, 1.2246467991473532e-16),
        ),
        coefficients=(
            -0.333333333333332,
            0.19999999999953674,
            -0.14285714280199957,
            0.11111110783524251,
            -0.09090897758679492,
            0.07692060234428373,
            -0.06663104402669862,
            0.05847893180229742,
            -0.05039328777697937,
            0.038065349313377995,
            -0.017908270125370836,
        ),
    ),
    "float32": _Constants(
        sign_bit=31,
        large=2.0**100,
        eighths=(
            (0.0, 0.0),
            (0.7853981852531433, -2.1855694143368964e-08),
            (1.5707963705062866, -4.371138828673793e-08),
            (2.356194496154785, -5.962440319251527e-09),
            (3.1415927410125732, -8.742277657347586e-08),
        ),
        coefficients=(
            -0.33333316445350647,
            0.19998528063297272,
            -0.14244391024112701,
            0.10599168390035629,
            -0.060900524258613586,
        ),
    ),
}
TAN_PI_8 = 0.41421356
SMALLER = 2.0**-20


def arctangent(graph: Graph, y: Node, x: Node, dtype: str, fused: bool) -> Node:
    """``atan2`` written out, with or without fused multiply-adds."""
    constants = CONSTANTS[dtype]
    make, select, const = graph.make, graph.select, graph.const

    def multiply_add(a: Node, b: Node, c: Node) -> Node:
        return graph.fma(a, b, c) if fused else make("add", (make("mul", (a, b)), c))

    def negated_if(condition: Node, value: Node) -> Node:
        return select(condition, make("neg", (value,)), value)

    # n/d <= 1
    ax, ay = make("abs", (x,)), make("abs", (y,))
    steep = make("lt", (ax, ay))
    n, d = select(steep, ax, ay), select(steep, ay, ax)
    huge = make("lt", (const(constants.large), d))
    n, d = (select(huge, make("mul", (const(SMALLER), value)), value) for value in (n, d))

    # from 0 or from π/4; infinities over each other are π/4, zeros over each other 0
    diagonal = make("lt", (make("mul", (const(TAN_PI_8), d)), n))
    diagonal = make("or", (diagonal, make("eq", (n, const(math.inf)))))
    ratio = make("div", (select(diagonal, make("sub", (n, d)), n), select(diagonal, make("add", (n, d)), d)))
    t = select(make("eq", (n, d)), const(0.0), ratio)

    # the multiple of π/4 to start from, and the direction: reflected once by a steep slope, once by a
    # negative x
    leftward = make("bit", (x,), constants.sign_bit)
    high, low = (
        _choose(graph, diagonal, steep, leftward, [const(eighth[piece]) for eighth in constants.eighths])
        for piece in (0, 1)
    )
    t = negated_if(leftward, negated_if(steep, t))

    square = make("mul", (t, t))
    value = const(constants.coefficients[-1])
    for coefficient in reversed(constants.coefficients[:-1]):
        value = multiply_add(value, square, const(coefficient))
    small = multiply_add(make("mul", (t, square)), value, low)
    angle = make("add", (high, make("add", (t, small))))
    return negated_if(make("bit", (y,), constants.sign_bit), angle)


def _choose(graph: Graph, diagonal: Node, steep: Node, leftward: Node, eighths: list[Node]) -> Node:
    """The multiple of π/4: 0 or 1, reflected at 2 (steep), then at 4 (leftward)."""
    zero, one, two, three, four = eighths
    right = graph.select(diagonal, one, graph.select(steep, two, zero))
    left = graph.select(diagonal, three, graph.select(steep, two, four))
    return graph.select(leftward, left, right)
