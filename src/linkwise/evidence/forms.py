"""Every value of a program over a box of states: an interval that holds it, and its normal form where it has one.

Both are about exact arithmetic on the operations of the program; ``rounding`` says how far the computed values are from
that. Additions and products of values with a normal form have one. Every other operation (a division, a root, a
selection that the box does not decide) begins a new variable, of which only the interval is known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from linkwise.compiler.ir.graph import CONDITIONS, Node
from linkwise.compiler.ir.program import Program
from linkwise.compiler.ir.schedule import LoopRegion
from linkwise.errors import LinkwiseError
from linkwise.evidence import intervals, patterns
from linkwise.evidence.box import Box
from linkwise.evidence.intervals import Interval
from linkwise.evidence.series import Packing, Series, TooLargeError, constant, harmonic, variable
from linkwise.evidence.suprema import supremum

LIMITS = {"float64": float(np.finfo(np.float64).max), "float32": float(np.finfo(np.float32).max)}
_MOST_ANGLES = 15


class EvidenceError(LinkwiseError, ValueError):
    """A program cannot be analysed; the message says why."""


@dataclass(frozen=True)
class Problem:
    """Something that could not be excluded.

    Args:
        node: number of the operation, as in the names v… of the C code.
        what: a sentence.
    """

    node: int
    what: str


@dataclass(eq=False)
class Forms:
    """The values of one program over one box.

    Args:
        program: straight-line.
        box: of its inputs.
        intervals: for every value.
        conditions: for every condition True, False or None, if both are possible.
        series: normal forms.
        problems: where a NaN, an infinity or a division by 0 is possible.
        angles: inputs whose sines and cosines are used, (name, number) each, with lower and upper bound.
        variables: what the numbers of monomials stand for.
    """

    program: Program
    box: Box
    packing: Packing
    intervals: dict[Node, Interval] = field(default_factory=dict)
    conditions: dict[Node, bool | None] = field(default_factory=dict)
    series: dict[Node, Series] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    angles: dict[tuple[str, int], int] = field(default_factory=dict)
    variables: list[Node] = field(default_factory=list)
    patterns: patterns.Patterns = field(default_factory=lambda: patterns.Patterns({}, set(), {}))

    def angle_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds of the angles [rad]."""
        found = [[float(side[k]) for side in self.box.bounds[name]] for name, k in self.angles]
        table = np.array(found, dtype=float).reshape(-1, 2)
        return table[:, 0], table[:, 1]

    def interval(self, node: Node) -> Interval:
        """Where a value lies."""
        if node.op == "const":
            return float(node.value), float(node.value)
        if node.op == "input":
            name, k = node.value
            low, high = self.box.bounds[name]
            return float(low[k]), float(high[k])
        return self.intervals[node]

    def smaller_or_larger(self, node: Node) -> str | None:
        """Whether a selection takes the smaller ("min") or the larger ("max") of its values in the whole box."""
        return patterns.smaller_or_larger(node, lambda a, b: self.interval(a)[1] <= self.interval(b)[0])

    def form(self, node: Node) -> Series | None:
        """The normal form of a value; of a new variable where there is none yet. None: it is not finite."""
        if node not in self.series:
            low, high = self.interval(node)
            if not (math.isfinite(low) and math.isfinite(high)):
                return None
            if low == high:
                self.series[node] = constant(self.packing, low)
            else:
                middle = (low + high) / 2
                radius = intervals.above(intervals.above(max(high - middle, middle - low)))
                self.series[node] = variable(self.packing, len(self.variables), middle, radius)
                self.variables.append(node)
        return self.series[node]


def analyse(
    program: Program, box: Box, *, keep: bool = False, known: Mapping[Node, Interval] | None = None
) -> Forms:
    """The values of a straight-line program over a box.

    Args:
        program: without loops of unknown length.
        box: of its inputs.
        keep: whether the normal forms of all values are kept, not those of results alone.
        known: intervals that hold values, where more is known of them than their operations say.

    Raises:
        EvidenceError: the program has loops.
    """
    if not isinstance(program, Program) or any(isinstance(item, LoopRegion) for item in program.body):
        raise EvidenceError(
            f"{program.name}: bounds are computed for straight-line programs; this one has loops"
        )
    found = patterns.find(program)
    angles = _angle_inputs(found.turns.values())
    forms = Forms(program, box, Packing(max(1, len(angles))), angles=angles, patterns=found)
    more = {} if known is None else known
    last = {} if keep else _last_uses(program)
    kept = set(targets(program, found))
    for place, node in enumerate(program.nodes()):
        if node.op in CONDITIONS:
            forms.conditions[node] = _condition(forms, node)
            continue
        _value(forms, node, more.get(node, intervals.WHOLE))
        for argument in last.get(place, ()):
            if argument not in kept and argument not in forms.variables:
                forms.series.pop(argument, None)
    return forms


def targets(program: Program, found: patterns.Patterns) -> list[Node]:
    """Values that are bounded closely: results, and arguments of operations that have no normal form."""
    chosen = dict.fromkeys(
        a
        for node in program.nodes()
        if node.op in ("select", "div", "sqrt", "abs") and node not in found.inner and node not in found.turns
        for a in node.args
        if a.op not in CONDITIONS
    )
    chosen |= dict.fromkeys(node for nodes in program.values for node in nodes)
    return [node for node in chosen if node.op not in ("const", "input")]


def _last_uses(program: Program) -> dict[int, list[Node]]:
    """For each place the values that are not used after it. Large normal forms are dropped there."""
    last: dict[Node, int] = {}
    for place, node in enumerate(program.nodes()):
        for a in node.args:
            last[a] = place
    found: dict[int, list[Node]] = {}
    for node, place in last.items():
        found.setdefault(place, []).append(node)
    return found


def _value(forms: Forms, node: Node, known: Interval) -> None:
    """Interval and normal form of one operation."""
    turn = forms.patterns.turns.get(node)
    if node.op in ("div", "sqrt") and node not in forms.patterns.inner:
        _bound_closely(forms, node.args[-1])
    interval = intervals.meet(_interval(forms, node), known)
    if turn is not None:
        of = forms.interval(turn.angle)
        interval = intervals.sine(of) if turn.kind == "sin" else intervals.cosine(of)
    forms.intervals[node] = interval
    if node in forms.patterns.inner:
        _check(forms, node)
        return
    try:
        series = _series(forms, node, turn)
    except TooLargeError:
        series = None
    if series is not None:
        forms.intervals[node] = intervals.meet(interval, series.bounds())
        forms.series[node] = series
    _check(forms, node)


def _bound_closely(forms: Forms, node: Node) -> None:
    """A close interval of a divisor or of what a root is taken of."""
    if node in forms.series and node not in forms.variables and node.op not in ("const", "input"):
        lower, upper = forms.angle_bounds()
        found = supremum(
            forms.series[node], lower, upper, variables=len(forms.variables), tolerance=0.05, seconds=1.0
        )
        forms.intervals[node] = intervals.meet(forms.intervals[node], (found.low, found.high))


def _check(forms: Forms, node: Node) -> None:
    """Note what cannot be excluded."""
    most = LIMITS[forms.program.dtype]
    low, high = forms.intervals[node]
    if node.op == "div" and forms.interval(node.args[1])[0] <= 0.0 <= forms.interval(node.args[1])[1]:
        bounds = forms.interval(node.args[1])
        forms.problems.append(
            Problem(node.index, f"division by a value between {bounds[0]:.6g} and {bounds[1]:.6g}")
        )
    elif node.op == "sqrt" and forms.interval(node.args[0])[0] < 0.0:
        low = forms.interval(node.args[0])[0]
        forms.problems.append(Problem(node.index, f"square root of a value that may be {low:.6g}"))
    elif not (low >= -most and high <= most):
        forms.problems.append(Problem(node.index, f"{node.op} may be infinite or no number"))


def _interval(forms: Forms, node: Node) -> Interval:
    """By interval arithmetic on the arguments."""
    if node in forms.patterns.remainders:
        return _remainder(forms, node)
    if node.op == "select":
        return _selected(forms, node)
    of = [forms.interval(a) for a in node.args]
    match node.op:
        case "add":
            return intervals.add(*of)
        case "sub":
            return intervals.subtract(*of)
        case "mul":
            if node.args[0] is node.args[1]:
                return intervals.square(of[0])
            return intervals.multiply(*of)
        case "fma":
            same = node.args[0] is node.args[1]
            product = intervals.square(of[0]) if same else intervals.multiply(of[0], of[1])
            return intervals.add(product, of[2])
        case "neg":
            return intervals.negate(of[0])
        case "div":
            return intervals.divide(*of)
        case "sqrt":
            return intervals.root(of[0])
        case "abs":
            return intervals.absolute(of[0])
        case _:
            return intervals.WHOLE


def _remainder(forms: Forms, node: Node) -> Interval:
    """An angle less the nearest multiple of π/2: |x − k·π/2| ≤ π/4, and what rounding of x·2/π adds."""
    size = intervals.magnitude(forms.interval(forms.patterns.remainders[node]))
    unit = 2.0**-53 if forms.program.dtype == "float64" else 2.0**-24
    if node.op == "select" and forms.conditions[node.args[0]] is not True:
        return intervals.WHOLE  # NaN beyond the largest angle
    most = math.pi / 4 + 8 * unit * (size + 1.0)
    return -most, most


def _selected(forms: Forms, node: Node) -> Interval:
    test = forms.conditions[node.args[0]]
    first, second = (forms.interval(a) for a in node.args[1:])
    if test is not None:
        return first if test else second
    if patterns.sign_argument(node) is not None:
        return -1.0, 1.0
    kind = forms.smaller_or_larger(node)
    if kind == "min":
        return min(first[0], second[0]), min(first[1], second[1])
    if kind == "max":
        return max(first[0], second[0]), max(first[1], second[1])
    return intervals.hull(first, second)


def _condition(forms: Forms, node: Node) -> bool | None:
    if node.op in ("and", "or", "not"):
        of = [forms.conditions[a] for a in node.args]
        if node.op == "not":
            return None if of[0] is None else not of[0]
        settles = node.op == "or"
        if settles in of:
            return settles
        return None if None in of else not settles
    if node.op == "bit":
        if not patterns.is_sign_bit(node, forms.program.dtype):
            return None
        low, high = forms.interval(node.args[0])
        return True if high < 0.0 else False if low > 0.0 else None
    (low, high), (least, most) = (forms.interval(a) for a in node.args)
    if node.op == "lt":
        return True if high < least else False if low >= most else None
    if node.op == "le":
        return True if high <= least else False if low > most else None
    return False if high < least or most < low else None


def _series(forms: Forms, node: Node, turn: patterns.Turn | None) -> Series | None:
    """The normal form, if the operation keeps it."""
    if len(forms.angles) > _MOST_ANGLES:
        return None
    if turn is not None:
        linear = linear_form(turn.angle)
        if linear is None:
            return None
        multiples, phase = linear
        numbers = {forms.angles[place]: factor for place, factor in multiples.items()}
        return harmonic(forms.packing, numbers, phase, turn.kind)
    if node.op == "select" and forms.conditions[node.args[0]] is not None:
        return forms.form(node.args[1] if forms.conditions[node.args[0]] else node.args[2])
    if node.op == "div":
        return _quotient(forms, node)
    if node.op not in ("add", "sub", "mul", "fma", "neg"):
        return None
    of = [forms.form(a) for a in node.args]
    if any(a is None for a in of):
        return None
    a, *others = (s for s in of if s is not None)
    match node.op:
        case "add":
            return a + others[0]
        case "sub":
            return a - others[0]
        case "mul":
            return a * others[0]
        case "fma":
            return a * others[0] + others[1]
        case _:
            return -a


def _quotient(forms: Forms, node: Node) -> Series | None:
    """a/b, where 1/b is its line over the interval of b and a new variable for the rest.

    1/x lies between its tangent at √(lh) and its chord, (2√(lh) − x)/(lh) and (l + h − x)/(lh), for 0 < l ≤ x ≤ h.
    """
    a, b = (forms.form(x) for x in node.args)
    low, high = forms.interval(node.args[1])
    if a is None or b is None or low <= 0.0 <= high:
        return None
    sign = 1.0 if low > 0 else -1.0
    low, high = (low, high) if low > 0 else (-high, -low)
    area = low * high
    if not 1e-200 < area < 1e200:
        return None
    middle, root = (low + high) / 2, math.sqrt(area)
    radius = (
        max(middle - root, 0.0) + 1e-14 * middle
    ) / area  # the second term is more than all rounding here
    line = constant(forms.packing, (middle + root) / area) - b.scaled(sign / area)
    rest = variable(forms.packing, len(forms.variables), 0.0, radius)
    product = a * (line + rest).scaled(sign)
    forms.variables.append(node)
    return product


def linear_form(node: Node) -> tuple[dict[tuple[str, int], int], float] | None:
    """An angle as Σ whole number × input + constant; None where it is not of that form."""
    if node.op == "input":
        return {node.value: 1}, 0.0
    if node.op == "const":
        return {}, float(node.value)
    if node.op == "neg":
        of = linear_form(node.args[0])
        return None if of is None else ({p: -k for p, k in of[0].items()}, -of[1])
    if node.op in ("add", "sub"):
        first, second = (linear_form(a) for a in node.args)
        if first is None or second is None:
            return None
        sign = 1 if node.op == "add" else -1
        multiples = dict(first[0])
        for place, k in second[0].items():
            multiples[place] = multiples.get(place, 0) + sign * k
        if first[1] and second[1]:
            return None  # the sum of the constants would be rounded
        return {p: k for p, k in multiples.items() if k}, first[1] + sign * second[1]
    return None


def _angle_inputs(turns: Iterable[patterns.Turn]) -> dict[tuple[str, int], int]:
    """Numbers of the inputs that are angles."""
    found: dict[tuple[str, int], int] = {}
    for turn in turns:
        linear = linear_form(turn.angle)
        for place in linear[0] if linear is not None else ():
            found.setdefault(place, len(found))
    return {place: number for number, place in enumerate(sorted(found))}


def outputs(forms: Forms) -> Mapping[str, list[Node]]:
    """Output nodes by name."""
    return {
        name: list(nodes)
        for (name, _), nodes in zip(forms.program.outputs, forms.program.values, strict=True)
    }
