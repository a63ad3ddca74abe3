"""Sound bounds of |computed − exact| of a program in float32 or float64, operation by operation as it is emitted.

Exact are the operations of the program on real numbers, with the constants of the model in float64. The result of an
operation is rounded by at most half a unit in the last place of its largest value. In a program of sums and products
the errors ε obey ε_ab = a·ε_b + b·ε_a + ε_a·ε_b + δ, which is linear but for the product of two errors: the error of an
output is Σ_n ∂output/∂n·(δ_n + ε_a·ε_b) with the derivatives of the exact program. These have normal forms, so that
what cancels in them is gone; errors of second order are bounded by running forward. Sines and cosines count with the
error of the project's polynomials.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from linkwise.compiler.ir.graph import CONDITIONS, Node
from linkwise.compiler.ir.program import Program
from linkwise.compiler.ir.sincos import CONSTANTS
from linkwise.evidence import patterns
from linkwise.evidence.forms import LIMITS, Forms, linear_form, targets
from linkwise.evidence.intervals import magnitude
from linkwise.evidence.series import Series, TooLargeError, constant, harmonic, up
from linkwise.evidence.suprema import Region, largest

UNITS = {"float64": 2.0**-53, "float32": 2.0**-24}
_SUBNORMAL = {"float64": 2.0**-1074, "float32": 2.0**-149}
_APPROXIMATION = {"float64": 2.0**-57.5, "float32": 2.0**-27.4}
"""Of the polynomials of sine and cosine, relative (``compiler/ir/sincos.py``)."""
_OF_ALL = 8.0, {("sin", True): 1.125, ("cos", True): 1.25, ("sin", False): 1.375, ("cos", False): 1.5}
"""Up to this angle [rad], errors of float32 sines and cosines, fused or not, in units of 2^-24: above the largest over
all float32 angles (``benchmarks/sine_errors.py``)."""
_LEFT_OF_PI = {"float64": 2.0**-105, "float32": 2.0**-70}
"""Of the pieces of π/2, times the number of quarter turns."""
_OF_PHASE = 2.0**-30
"""Of angles in fixed point as parts of a turn, relative: the factor 1/(2π) has 30 bits."""
_WORTH = 0.001
"""Part of the whole error from which a contribution is bounded more closely."""
_CLOSE = 0.2
"""What the bound of a large contribution may add to its largest value, as a part of it."""
_SLACK = 1.0 + 2.0**-40
"""For rounding in the sums of this file, which have fewer than a thousand positive terms each."""


@dataclass
class Errors:
    """Bounds of errors.

    Args:
        forward: of every value, by running forward; loose.
        close: of results and of arguments of operations without normal form.
        shares: for each of these, what each operation contributes.
        sizes: largest absolute values that are known more closely than by the intervals.
        units: what each operation rounds off, in fixed point; None: floating point.
        of_turn: error of sines and cosines in fixed point.
    """

    forward: dict[Node, float] = field(default_factory=dict)
    close: dict[Node, float] = field(default_factory=dict)
    shares: dict[Node, dict[Node, float]] = field(default_factory=dict)
    sizes: dict[Node, float] = field(default_factory=dict)
    units: Mapping[Node, float] | None = None
    of_turn: float = 0.0

    def of(self, node: Node) -> float:
        """The best bound that is known."""
        return min(self.close.get(node, math.inf), self.forward.get(node, 0.0))


def errors(forms: Forms, *, units: Mapping[Node, float] | None = None, of_turn: float = 0.0) -> Errors:
    """Bounds of the errors of a program.

    Args:
        forms: of the program, with the normal forms of all values (``keep=True``).
        units: what each operation and each constant is rounded by in fixed point, absolute; None: floating point of
            the program's precision.
        of_turn: error of sines and cosines in fixed point.
    """
    found = Errors(units=units, of_turn=of_turn)
    wanted = set(targets(forms.program, forms.patterns))
    order = [node for node in forms.program.nodes() if node.op not in CONDITIONS]
    for node in constants(forms.program):
        with np.errstate(over="ignore"):
            rounded = float(np.float32(node.value)) if forms.program.dtype == "float32" else node.value
        found.forward[node] = abs(rounded - node.value) if math.isfinite(node.value) else 0.0
        if units is not None:
            found.forward[node] = units[node]
    for place, node in enumerate(order):
        found.forward[node] = _forward(forms, node, found)
        if node in wanted:
            try:
                shares = _backward(forms, order[: place + 1], node, found)
            except TooLargeError:
                shares = None
            if shares is not None:
                found.shares[node] = shares
                found.close[node] = sum(shares.values()) * _SLACK
    return found


def constants(program: Program) -> set[Node]:
    """All constants that a program uses or returns.

    Args:
        program: straight-line.
    """
    used = {a for node in program.nodes() for a in node.args}
    return {a for a in used.union(*program.values) if a.op == "const"}


def _largest(forms: Forms, node: Node) -> float:
    return magnitude(forms.interval(node))


def _rounding(forms: Forms, node: Node, found: Errors) -> float:
    """What the rounding of one operation adds, with the product of the errors of its factors."""
    unit, tiny = UNITS[forms.program.dtype], _SUBNORMAL[forms.program.dtype]
    if found.units is not None:
        second = found.of(node.args[0]) * found.of(node.args[1]) if node.op == "mul" else 0.0
        return up(found.units[node] + second, 4)
    if node.op == "neg":
        return 0.0
    size = found.sizes.get(node, _largest(forms, node)) + _propagated(forms, node, found)
    if not size < LIMITS[forms.program.dtype]:
        return math.inf
    second = 0.0
    if node.op in ("mul", "fma"):
        second = found.of(node.args[0]) * found.of(node.args[1])
    return up(unit * binade(size) + second + tiny, 8)


def binade(size: float) -> float:
    """The largest power of 2 that is not above a size: half a unit in the last place is that times 2^-24 or 2^-53.

    Args:
        size: largest absolute value.
    """
    if not 0.0 < size < math.inf:
        return size
    return math.ldexp(1.0, math.frexp(up(size, 8))[1] - 1)


def _propagated(forms: Forms, node: Node, found: Errors) -> float:
    """What errors of the arguments of a sum or product become."""
    of = [found.of(a) for a in node.args]
    if node.op in ("mul", "fma"):
        a, b = (_largest(forms, x) for x in node.args[:2])
        error = a * of[1] + b * of[0] + of[0] * of[1]
        return up(error + (of[2] if node.op == "fma" else 0.0), 8)
    return up(sum(of), 4)


def _forward(forms: Forms, node: Node, found: Errors) -> float:
    """A bound of the error of one value from those of its arguments."""
    if node in forms.patterns.remainders:
        return _of_remainder(forms, node)
    if node in forms.patterns.turns:
        return _of_turn(forms, node, found)
    if node.op in ("add", "sub", "mul", "fma", "neg"):
        return _propagated(forms, node, found) + _rounding(forms, node, found)
    of = [found.of(a) for a in node.args if a.op not in CONDITIONS]
    unit, tiny = UNITS[forms.program.dtype], _SUBNORMAL[forms.program.dtype]
    match node.op:
        case "abs":
            return of[0]
        case "select":
            cut = 0.0 if found.units is None else found.units[node]
            return _of_selection(forms, node, of, found) + cut
        case "div":
            low, high = forms.interval(node.args[1])
            least = (low if low > 0 else -high if high < 0 else 0.0) - of[1]
            if least <= 0:
                return math.inf
            size = _largest(forms, node)
            error = (of[0] + size * of[1]) / least
            return up(error + unit * binade(size + error) + tiny, 8)
        case "sqrt":
            low = forms.interval(node.args[0])[0] - of[0]
            if low <= 0:
                return math.inf
            error = of[0] / (2 * math.sqrt(low))
            return up(error + unit * binade(_largest(forms, node) + error), 8)
        case _:
            return math.inf


def _of_remainder(forms: Forms, node: Node) -> float:
    """The first subtraction of the reduction is exact and the second is rounded. The third takes away a tiny
    multiple t of the last piece of π/2: its rounding is at most t, as its first argument is a float at that distance.
    """
    dtype = forms.program.dtype
    turns = magnitude(forms.interval(forms.patterns.remainders[node])) + 1.0
    tiny = turns * (_LEFT_OF_PI[dtype] + 2 * abs(CONSTANTS[dtype].half_pi[2]))
    if forms.program.fused:
        return UNITS[dtype] * 0.786 + tiny
    return 3 * UNITS[dtype] * 0.786 + 64 * tiny


def _of_turn(forms: Forms, node: Node, found: Errors) -> float:
    """Of a sine or cosine whose angle is exact; the angle's error is passed on as it is."""
    angle = forms.patterns.turns[node].angle
    return up(_own_error_of_turn(forms, node, found) + found.of(angle), 8)


def _own_error_of_turn(forms: Forms, node: Node, found: Errors) -> float:
    """Of the polynomials, with an exact angle."""
    if found.units is not None:
        return found.of_turn + _OF_PHASE * _largest(forms, forms.patterns.turns[node].angle)
    program, turn = forms.program, forms.patterns.turns[node]
    if program.dtype == "float32" and node.op == "select" and _largest(forms, turn.angle) <= _OF_ALL[0]:
        return _OF_ALL[1][turn.kind, program.fused] * UNITS["float32"]
    value = node.args[2]
    inside = max(found.forward[a.args[0] if a.op == "neg" else a] for a in value.args[1:])
    return inside + _APPROXIMATION[forms.program.dtype]


def _certain(forms: Forms, test: Node, found: Errors) -> bool:
    """Whether rounding cannot change a condition that the box decides."""
    if test.op in ("and", "or", "not"):
        return all(_certain(forms, a, found) for a in test.args if forms.conditions[a] is not None)
    if test.op == "bit":
        low, high = forms.interval(test.args[0])
        return max(low, -high) > found.of(test.args[0])
    error = sum(found.of(a) for a in test.args)
    (low, high), (least, most) = (forms.interval(a) for a in test.args)
    return error == 0.0 or least - high > error or low - most > error


def _of_selection(forms: Forms, node: Node, of: Sequence[float], found: Errors) -> float:
    test = forms.conditions[node.args[0]]
    sign = patterns.is_sign_bit(node.args[0], forms.program.dtype)
    if node.args[0].op == "bit" and not sign:  # inside sine and cosine: both sides are bounded
        return max(of)
    if test is not None and _certain(forms, node.args[0], found):
        return of[0] if test else of[1]
    compared = node.args[0].args
    exact = all(a.op not in CONDITIONS and found.of(a) == 0.0 for a in compared)
    if exact or forms.smaller_or_larger(node) is not None:
        return max(of)
    (a, b), (c, d) = (forms.interval(x) for x in node.args[1:])
    return max(abs(a - d), abs(b - c)) + max(of)  # the other side may be taken


@dataclass(frozen=True)
class _Share:
    """What one operation contributes: its own error, times the derivative of the result by it."""

    node: Node
    slope: Series
    error: float
    is_rounding: bool = False
    """Whether the error is the rounding of a sum or product alone, not all that its arguments bring."""

    @property
    def size(self) -> float:
        return self.slope.norm * self.error


def _backward(forms: Forms, order: Sequence[Node], output: Node, found: Errors) -> dict[Node, float] | None:
    """What every operation contributes to the error of one value, from the derivatives by all of them."""
    if output not in forms.series or output in forms.variables:
        return None
    slopes: dict[Node, Series] = {output: constant(forms.packing, 1.0)}
    shares: list[_Share] = []
    for node in reversed(order):
        slope = slopes.pop(node, None)
        if slope is None:
            continue
        if node in forms.patterns.turns:
            shares += _of_turn_backward(forms, node, slope, found)
        elif node in forms.variables or node.op not in ("add", "sub", "mul", "fma", "neg"):
            if (chosen := _chosen(forms, node, found)) is not None:
                _gather(slopes, chosen, slope)
            else:
                shares.append(_Share(node, slope, found.of(node)))
        else:
            shares.append(_Share(node, slope, _rounding(forms, node, found), node.op != "neg"))
            for argument, factor in _factors(forms, node):
                if factor is None:
                    return None
                if argument.op != "input" and (argument.op != "const" or found.of(argument)):
                    _gather(slopes, argument, slope * factor)
    shares += [_Share(node, slope, found.of(node)) for node, slope in slopes.items() if node.op == "const"]
    return _closer(forms, shares, found)


def _chosen(forms: Forms, node: Node, found: Errors) -> Node | None:
    """What a selection takes in the whole box, after rounding, too; None: not known, or no selection."""
    if node.op != "select" or (test := forms.conditions[node.args[0]]) is None:
        return None
    # code in fixed point does not compare again
    if found.units is None and not _certain(forms, node.args[0], found):
        return None
    return node.args[1] if test else node.args[2]


def _closer(forms: Forms, shares: Sequence[_Share], found: Errors) -> dict[Node, float]:
    """The contributions by operation; those that matter are bounded more closely, on all cores."""
    total = sum(share.size for share in shares)
    region = Region(*forms.angle_bounds())
    large = [share for share in shares if share.size > total * _WORTH]

    def tolerance(share: _Share) -> float:
        return max(_CLOSE, _WORTH * total / share.size)

    def bound(asked: tuple[Series, float]) -> float:
        return largest(asked[0], region, len(forms.variables), asked[1])

    values = {share.node: tolerance(share) for share in large if _sized(forms, share, found)}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        sizes = pool.map(bound, [(forms.series[node], t) for node, t in values.items()])
        for node, size in zip(values, sizes, strict=True):
            found.sizes[node] = min(size, _largest(forms, node))
        slopes = list(pool.map(bound, [(share.slope, tolerance(share)) for share in large]))
    closer = {
        id(share): slope * min(share.error, _rounding(forms, share.node, found))
        if share.is_rounding
        else slope * share.error
        for share, slope in zip(large, slopes, strict=True)
    }
    sums: dict[Node, float] = {}
    for share in shares:
        size = min(share.size, closer.get(id(share), math.inf))
        sums[share.node] = sums.get(share.node, 0.0) + size
    return sums


def _sized(forms: Forms, share: _Share, found: Errors) -> bool:
    """Whether a closer bound of the value would be of use, and is not known yet."""
    return share.is_rounding and share.node not in found.sizes and share.node in forms.series


def _gather(slopes: dict[Node, Series], node: Node, slope: Series) -> None:
    slopes[node] = slopes[node] + slope if node in slopes else slope


def _of_turn_backward(forms: Forms, node: Node, slope: Series, found: Errors) -> list[_Share]:
    """A sine adds its own error; and an angle that was itself computed, its error times the cosine."""
    turn = forms.patterns.turns[node]
    error = found.of(turn.angle)
    # the second derivative of a sine is at most 1
    shares = [_Share(node, slope, up(_own_error_of_turn(forms, node, found) + error * error, 8))]
    if turn.angle.op == "input":
        return shares
    linear = linear_form(turn.angle)
    if linear is None or node in forms.variables:  # of an angle that has no normal form
        return [_Share(node, slope, found.of(node))]
    numbers = {forms.angles[place]: factor for place, factor in linear[0].items()}
    other = harmonic(forms.packing, numbers, linear[1], "cos" if turn.kind == "sin" else "sin")
    return [*shares, _Share(turn.angle, slope * other, error)]


def _factors(forms: Forms, node: Node) -> list[tuple[Node, Series | None]]:
    """Arguments of a sum or product with the derivative by each."""
    one = constant(forms.packing, 1.0)
    match node.op:
        case "add":
            return [(a, one) for a in node.args]
        case "sub":
            return [(node.args[0], one), (node.args[1], -one)]
        case "neg":
            return [(node.args[0], -one)]
        case _:
            a, b, *others = node.args
            return [(a, forms.form(b)), (b, forms.form(a)), *((c, one) for c in others)]
