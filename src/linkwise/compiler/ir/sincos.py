"""Sine and cosine as operations of the graph, so that every target computes the same bits.

The argument is reduced by the nearest multiple k of π/2. Adding a large constant rounds x·2/π to k and leaves
k as an integer in the low bits of the sum, where two bit tests read the quadrant. π/2 comes in pieces (Cody
and Waite): with fused multiply-adds and full-width pieces, x − k·P₁ is exact, x − k·P₁ − k·P₂ is rounded
once, and P₃ matters only next to a multiple of π/2. The remainder r, |r| ≤ π/4 and a little more, goes into
two polynomials. Sine and cosine of one argument share the reduction and both polynomials; unused parts are
never scheduled.

Errors, in units in the last place: at most half for r (twice that next to a multiple of π/2), a half for the
last rounding, and what the two roundings before it leave. The largest found: 1.54 in float32, of all
arguments, and 1.43 in float64, among them those closest to a multiple of π/2 in every binade.

Without fused operations the pieces of π/2 are short, there are more of them, and the limit of the range is
lower.

The coefficients are minimax fits of (sin r / r − 1) / r² and (cos r − 1 + r²/2) / r⁴ in r², weighted for the
relative error of sine and cosine, by Remez' exchange in 60 digits; each coefficient in turn was rounded to
the precision and the remaining ones fitted again. Relative errors: 2^-57.9 and 2^-63.9 for float64 on |r| ≤
0.7855, 2^-27.8 and 2^-32.7 for float32 on |r| ≤ 0.795.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from linkwise.compiler.ir.graph import Graph, Node


@dataclass(frozen=True)
class _Constants:
    """All that depends on the precision. Constants are exact in it."""

    magic: float
    """1.5·2^(mantissa bits): a sum with it is an integer multiple of one, readable in its low bits."""
    two_over_pi: float
    limit: float
    """Beyond this |x| the result is NaN. Below, the tests find the hardest arguments of every binade
    accurate.
    """
    half_pi: tuple[float, ...]
    """π/2 in full-width pieces, for fused multiply-adds."""
    short_limit: float
    short_half_pi: tuple[tuple[float, ...], tuple[float, ...], float]
    """π/2 for products without fusing: pieces so short that k times a piece is exact up to ``short_limit``,
    and a last one. Subtracting the first group is exact, too.
    """
    sine: tuple[float, ...]
    cosine: tuple[float, ...]


CONSTANTS = {
    "float64": _Constants(
        magic=1.5 * 2.0**52,
        two_over_pi=0.6366197723675814,
        limit=2.0**30,
        half_pi=(1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
        short_limit=2.0**20,
        short_half_pi=(
            (1.5707963267341256,),
            (6.077100506303966e-11, 2.0222662487111665e-21),
            8.4784276603689e-32,
        ),
        sine=(
            -0.1666666666666663,
            0.00833333333332184,
            -0.00019841269829358517,
            2.755731353850495e-06,
            -2.5050734386880196e-08,
            1.5895433099655247e-10,
        ),
        cosine=(
            0.041666666666666595,
            -0.0013888888888873338,
            2.480158728899748e-05,
            -2.755731421529847e-07,
            2.0875705114742138e-09,
            -1.1358732751705422e-11,
        ),
    ),
    "float32": _Constants(
        magic=1.5 * 2.0**23,
        two_over_pi=0.6366197466850281,
        limit=2.0**17,
        half_pi=(1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
        short_limit=1e5,
        short_half_pi=(
            (1.5703125, 0.000457763671875, 2.5987625122070312e-05),
            (7.543712854385376e-08, 6.002665031701326e-11),
            7.443547731314504e-13,
        ),
        sine=(-0.16666653752326965, 0.008332104422152042, -0.00019507459364831448),
        cosine=(0.04166664555668831, -0.001388729433529079, 2.4429418772342615e-05),
    ),
}


def sine(graph: Graph, x: Node, dtype: str, fused: bool) -> Node:
    """``sin`` written out, with or without fused multiply-adds."""
    return _Expansion(graph, CONSTANTS[dtype], fused).sine(x)


def cosine(graph: Graph, x: Node, dtype: str, fused: bool) -> Node:
    """``cos`` written out likewise."""
    return _Expansion(graph, CONSTANTS[dtype], fused).cosine(x)


class _Expansion:
    """Writes operations into a graph exactly as given: nothing may be reordered here."""

    def __init__(self, graph: Graph, constants: _Constants, fused: bool):
        self.graph = graph
        self.constants = constants
        self.fused = fused

    def sine(self, x: Node) -> Node:
        """In quadrants 0..3: sin r, cos r, -sin r, -cos r."""
        sum_, r = self.reduce(x)
        odd = self.graph.make("bit", (sum_,), 0)
        return self.negate_upper(sum_, self.graph.select(odd, self.near_cosine(r), self.near_sine(r)))

    def cosine(self, x: Node) -> Node:
        """In quadrants 0..3: cos r, -sin r, -cos r, sin r."""
        sum_, r = self.reduce(x)
        odd = self.graph.make("bit", (sum_,), 0)
        minus_sine = self.graph.make("neg", (self.near_sine(r),))
        return self.negate_upper(sum_, self.graph.select(odd, minus_sine, self.near_cosine(r)))

    def negate_upper(self, sum_: Node, value: Node) -> Node:
        """-value in quadrants 2 and 3. Targets know the pattern: one bit of the sum moves onto the sign."""
        upper = self.graph.make("bit", (sum_,), 1)
        return self.graph.select(upper, self.graph.make("neg", (value,)), value)

    def reduce(self, x: Node) -> tuple[Node, Node]:
        """(a sum that has the quadrant in its lowest two bits, the remainder r or NaN out of range)."""
        c = self.constants
        sum_ = self.multiply_add(x, self.const(c.two_over_pi), self.const(c.magic))
        k = self.graph.make("sub", (sum_, self.const(c.magic)))
        r = self.fused_remainder(x, k) if self.fused else self.short_remainder(x, k)
        limit = self.const(c.limit if self.fused else c.short_limit)
        in_range = self.graph.make("le", (self.graph.unary("abs", x), limit))
        return sum_, self.graph.select(in_range, r, self.const(math.nan))

    def fused_remainder(self, x: Node, k: Node) -> Node:
        minus_k = self.graph.make("neg", (k,))
        r = x
        for piece in self.constants.half_pi:
            r = self.graph.fma(minus_k, self.const(piece), r)
        return r

    def short_remainder(self, x: Node, k: Node) -> Node:
        """As accurate as the fused remainder: what a subtraction rounds off is added at the end."""
        make = self.graph.make
        exact, short, last = self.constants.short_half_pi
        r, rounded_off = x, self.const(0.0)
        for piece in (*exact, *short):
            product = make("mul", (k, self.const(piece)))
            smaller = make("sub", (r, product))
            if piece in short:
                lost = make("sub", (make("sub", (r, smaller)), product))
                rounded_off = self.graph.add(rounded_off, lost)
            r = smaller
        return make("add", (r, make("sub", (rounded_off, make("mul", (k, self.const(last)))))))

    def near_sine(self, r: Node) -> Node:
        """r + r³·p(r²): the last operation adds a small term to r, so its rounding is almost the only one."""
        square = self.graph.make("mul", (r, r))
        polynomial = self.polynomial(self.constants.sine, square)
        return self.multiply_add(self.graph.make("mul", (r, square)), polynomial, r)

    def near_cosine(self, r: Node) -> Node:
        """1 - r²/2 + r⁴·p(r²)."""
        square = self.graph.make("mul", (r, r))
        return self.polynomial((1.0, -0.5, *self.constants.cosine), square)

    def polynomial(self, coefficients: tuple[float, ...], x: Node) -> Node:
        """Horner's rule, the constant coefficient first in the list."""
        value = self.const(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            value = self.multiply_add(value, x, self.const(coefficient))
        return value

    def multiply_add(self, a: Node, b: Node, c: Node) -> Node:
        if self.fused:
            return self.graph.fma(a, b, c)
        return self.graph.make("add", (self.graph.make("mul", (a, b)), c))

    def const(self, value: float) -> Node:
        return self.graph.const(value)
