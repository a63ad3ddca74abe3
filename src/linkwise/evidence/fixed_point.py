"""Programs in whole numbers of 32 or 16 bits, for processors without a floating-point unit.

Every value v is held as the whole number v·2^f, with an f of its own from the range of v over a box of states: no value
leaves its bits for any state of the box. Products have twice as many bits and are shifted, so each operation cuts off
less than two units 2^-f; ``rounding`` adds that up to a bound of the error of every output. ``Fixed.run`` defines the
bits, and the C code has them on every processor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.compiler.ir.graph import CONDITIONS, Node
from linkwise.compiler.ir.program import Program, relowered
from linkwise.compiler.ir.sincos import CONSTANTS
from linkwise.evidence import rounding
from linkwise.evidence.box import Box
from linkwise.evidence.forms import EvidenceError, Forms, analyse
from linkwise.evidence.intervals import magnitude

BITS = 31
"""Of q31; q15 has 15. One more is the sign."""
_FURTHER = 14
"""The largest f is that much above the bits: smaller units are of no use."""
_MARGIN = 2.0**-9
"""What a value may leave its exact range by, as a part of it. A value whose error may be larger gets a smaller f."""
_TRIES = 6
_PHASE = 1.0 / (2.0 * math.pi)
_OF_TURN = 2.0**-26
"""Bound of the error of a sine: 2^-31 turns, and fewer than 13 operations on units of 2^-30."""

Instruction = tuple[str, str, tuple[Any, ...]]
"""(what, name of the result, arguments): ``run`` and ``source`` have the meaning of each."""


@dataclass(frozen=True, eq=False)
class Fixed:
    """A program in whole numbers.

    Args:
        name: of the function.
        inputs: (name, size, f) of each.
        outputs: (name, names of the values, f) of each.
        code: instructions in order.
        errors: bounds of |computed·2^-f − exact| for every output, numbers row by row.
        bits: of a value without its sign, 31 or 15.
    """

    name: str
    inputs: tuple[tuple[str, int, int], ...]
    outputs: tuple[tuple[str, tuple[str, ...], int], ...]
    code: tuple[Instruction, ...]
    errors: tuple[tuple[float, ...], ...]
    bits: int = BITS

    def given(self, states: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Inputs as whole numbers, rounded to nearest.

        Args:
            states: inputs by name [units of the function].
        """
        return {
            name: np.rint(np.asarray(states[name], dtype=float) * 2.0**f).astype(np.int64)
            for name, _, f in self.inputs
        }

    def run(self, given: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
        """The outputs for one state, as whole numbers.

        Args:
            given: inputs by name, whole numbers.
        """
        known: dict[str, Any] = {
            f"{name}[{k}]": int(x) for name, _, _ in self.inputs for k, x in enumerate(given[name])
        }
        for what, result, args in self.code:
            value = _MEANING[what](*(known[a] if isinstance(a, str) else a for a in args))
            known[result] = value if what in _UNWRAPPED else _wrapped(value, self.bits + 1)
        return {
            name: [known[v] if isinstance(v, str) else v for v in values] for name, values, _ in self.outputs
        }

    def source(self, function_name: str | None = None) -> str:
        """The function as the text of a C file.

        Args:
            function_name: its name in C; None: that of the program.
        """
        name = function_name or self.name
        whole = self.bits + 1
        kinds = {"T": f"int{whole}_t", "U": f"uint{whole}_t", "W": f"int{2 * whole}_t"}
        lines = [_HEAD.format(scales="\n".join(self._scales()), name=name, bits=whole, **kinds)]
        arguments = [f"const {kinds['T']} {n}[{size}]" for n, size, _ in self.inputs]
        arguments += [f"{kinds['T']} {n}[{len(values)}]" for n, values, _ in self.outputs]
        lines.append(f"void {name}({', '.join(arguments)})\n{{")
        for what, result, args in self.code:
            kind = "bool" if what in _CONDITION else "int32_t" if what == "phase" else kinds["T"]
            spelled = _SPELLED[what].format(*map(_spelled, args), **kinds)
            lines.append(f"    const {kind} {result} = {spelled};")
        for n, values, _ in self.outputs:
            lines += [f"    {n}[{k}] = {_spelled(v)};" for k, v in enumerate(values)]
        return "\n".join([*lines, "}", ""])

    def _scales(self) -> list[str]:
        rows = [f" *   {n:<14} in   {size} numbers times 2^{f}" for n, size, f in self.inputs]
        for (n, values, f), errors in zip(self.outputs, self.errors, strict=True):
            worst = max(errors, default=0.0)
            rows.append(f" *   {n:<14} out  {len(values)} numbers times 2^{f}; errors at most {worst:.2g}")
        return rows


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else str(value) if value > -(2**31) else "(-2147483647 - 1)"


_CONDITION = ("lt", "le", "eq", "and", "or", "not")


_UNWRAPPED = (*_CONDITION, "phase")


def _wrapped(x: int, bits: int = 32) -> int:
    """The lowest bits as a number with a sign."""
    half = 1 << (bits - 1)
    return ((x + half) & (2 * half - 1)) - half


def _sine(t: int, quarter: int) -> int:
    """sin(t/2^32 turns + a number of quarter turns)·2^30."""
    k = ((t + 2**29) >> 30) + quarter
    y = _wrapped(t - (((t + 2**29) >> 30) << 30))
    r = (y * _HALF_TURN) >> 30  # the angle times 2^30
    z = (r * r) >> 30
    if k & 1:
        value = _polynomial(_COSINE, z)
        value = (1 << 30) - (z >> 1) + ((((z * z) >> 30) * value) >> 30)
    else:
        value = r + ((((r * z) >> 30) * _polynomial(_SINE, z)) >> 30)
    return -value if k & 2 else value


def _polynomial(coefficients: Sequence[int], z: int) -> int:
    value = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        value = ((value * z) >> 30) + c
    return value


_HALF_TURN = round(math.pi / 2 * 2**30)
_SINE = tuple(round(x * 2**30) for x in CONSTANTS["float64"].sine[:5])
_COSINE = tuple(round(x * 2**30) for x in CONSTANTS["float64"].cosine[:5])

_MEANING: dict[str, Any] = {
    "mul": lambda a, b, s: (a * b) >> s,
    "shift": lambda a, s: a >> s if s >= 0 else a << -s,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "neg": lambda a: -a,
    "abs": abs,
    "phase": lambda a, factor, s: _wrapped((a * factor) >> s),
    "sin": lambda t, cut: _sine(t, 0) >> cut,
    "cos": lambda t, cut: _sine(t, 1) >> cut,
    "lt": lambda a, b, i, j: (a << i) < (b << j),
    "le": lambda a, b, i, j: (a << i) <= (b << j),
    "eq": lambda a, b, i, j: (a << i) == (b << j),
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "not": lambda a: not a,
    "select": lambda c, a, b: a if c else b,
}
_SPELLED = {
    "mul": "({T})((({W}){0} * {1}) >> {2})",
    "shift": "shifted({0}, {1})",
    "add": "({T})({U})((uint32_t){0} + (uint32_t){1})",
    "sub": "({T})({U})((uint32_t){0} - (uint32_t){1})",
    "neg": "({T})-{0}",
    "abs": "({T})(({0} < 0) ? -{0} : {0})",
    "phase": "(int32_t)(uint32_t)(((int64_t){0} * {1}) >> {2})",
    "sin": "({T})(sine({0}, 0) >> {1})",
    "cos": "({T})(sine({0}, 1) >> {1})",
    "lt": "(({W}){0} * (({W})1 << {2})) < (({W}){1} * (({W})1 << {3}))",
    "le": "(({W}){0} * (({W})1 << {2})) <= (({W}){1} * (({W})1 << {3}))",
    "eq": "(({W}){0} * (({W})1 << {2})) == (({W}){1} * (({W})1 << {3}))",
    "and": "{0} && {1}",
    "or": "{0} || {1}",
    "not": "!{0}",
    "select": "({T})({0} ? {1} : {2})",
}

_HEAD = """\
/* {name}: whole numbers of {bits} bits. A value v is held as v times a power of 2.
 *
{scales}
 *
 * For all inputs in the certified box no operation leaves {bits} bits. Shifts of negative numbers to the right are
 * arithmetic, as all compilers for two's complement have them.
 */

#include <stdbool.h>
#include <stdint.h>

static inline {T} shifted({T} x, int by)
{{
    return ({T})((by >= 0) ? (x >> by) : ({T})({U})((uint32_t)x << -by));
}}

static inline int32_t times(int32_t a, int32_t b)
{{
    return (int32_t)(((int64_t)a * b) >> 30);
}}

/* sin(t / 2^32 turns + quarter turns) times 2^30. */
static inline int32_t sine(int32_t t, uint32_t quarter)
{{
    const uint32_t nearest = ((uint32_t)t + 0x20000000u) >> 30;
    const int32_t r = times((int32_t)((uint32_t)t - (nearest << 30)), %(half)d);
    const int32_t z = times(r, r);
    const uint32_t k = nearest + quarter;
    int32_t value;
    if ((k & 1u) != 0u) {{
        value = %(cosine)s;
        value = 1073741824 - (z >> 1) + times(times(z, z), value);
    }} else {{
        value = %(sine)s;
        value = r + times(times(r, z), value);
    }}
    return ((k & 2u) != 0u) ? -value : value;
}}
"""


def _horner(coefficients: Sequence[int]) -> str:
    text = str(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        text = f"(times({text}, z) + ({c}))"
    return text


_HEAD = _HEAD % {"half": _HALF_TURN, "cosine": _horner(_COSINE), "sine": _horner(_SINE)}


def fixed_point(program: Program, box: Box, *, bits: int = BITS) -> Fixed:
    """A straight-line program in whole numbers.

    Args:
        program: of sums, products, sines, cosines and selections.
        box: of its inputs; outside it the code may overflow.
        bits: of a value without its sign: 31, or 15.

    Raises:
        EvidenceError: the program divides or takes roots, a value may not be finite, or rounding may make a value as
            large as its range.
    """
    if bits not in (31, 15):
        raise EvidenceError(f"fixed point has 31 or 15 bits, not {bits}")
    plain = relowered(program, fused=False, hardware=True)
    scales = {
        name: scale_of(float(np.abs(np.concatenate(ends)).max(initial=0.0)), bits)
        for name, ends in box.bounds.items()
    }
    forms = analyse(plain, _rounded(box, scales), keep=True)
    if forms.problems:
        problem = forms.problems[0]
        raise EvidenceError(
            f"{program.name}: v{problem.node}: {problem.what}; fixed point needs finite ranges"
        )
    writer, errors = _written(forms, bits, scales)
    outputs = []
    for (name, _), nodes in zip(plain.outputs, plain.values, strict=True):
        f = min(writer.scale(node) for node in nodes)
        outputs.append((name, tuple(writer.at(node, f) for node in nodes), f))
    bounds = tuple(
        tuple(errors.of(node) + 2.0 * 2.0**-f for node in nodes)
        for nodes, (_, _, f) in zip(plain.values, outputs, strict=True)
    )
    inputs = tuple((name, size, writer.input_scales[name]) for name, size in plain.inputs)
    return Fixed(program.name, inputs, tuple(outputs), _needed(writer.code, outputs), bounds, bits)


def _rounded(box: Box, scales: Mapping[str, int]) -> Box:
    """The box of what inputs are after rounding to whole numbers."""
    found = {}
    for name, (low, high) in box.bounds.items():
        unit = 2.0 ** -scales[name]
        found[name] = (np.rint(low / unit) * unit, np.rint(high / unit) * unit)
    return Box(found, box.assumed)


def _written(forms: Forms, bits: int, scales: Mapping[str, int]) -> tuple[_Writer, rounding.Errors]:
    """The instructions, with an f of every value for which its error has room, too."""
    sizes: dict[Node, float] = {}
    for _ in range(_TRIES):
        writer = _Writer(forms, bits, scales, sizes)
        for node in forms.program.nodes():
            writer.write(node)
        units = {node: 2.0 * 2.0**-f for node, f in writer.scales.items()}
        units |= {node: _rounded_off(node.value, bits) for node in rounding.constants(forms.program)}
        errors = rounding.errors(forms, units=units, of_turn=_OF_TURN + 2.0**-writer.turn)
        large = {n: magnitude(forms.interval(n)) + errors.of(n) for n in writer.scales}
        left = {n: size for n, size in large.items() if not size * 2.0 ** writer.scales[n] < 2.0**bits}
        if not left:
            return writer, errors
        sizes |= left
    names = ", ".join(f"v{node.index}" for node in sizes)
    raise EvidenceError(f"{forms.program.name}: {bits + 1} bits are not enough for the errors of {names}")


def _rounded_off(value: float, bits: int) -> float:
    """By how much a constant is changed."""
    unit = 2.0 ** -scale_of(abs(value), bits)
    return abs(round(value / unit) * unit - value)


def _needed(code: Sequence[Instruction], outputs: Sequence[tuple[Any, ...]]) -> tuple[Instruction, ...]:
    """The instructions that outputs depend on; what the box decides leaves others without use."""
    used = {value for _, values, _ in outputs for value in values}
    kept = []
    for instruction in reversed(code):
        if instruction[1] in used:
            used.update(a for a in instruction[2] if isinstance(a, str))
            kept.append(instruction)
    return tuple(reversed(kept))


def scale_of(size: float, bits: int = BITS) -> int:
    """f for values up to this size.

    Args:
        size: largest absolute value.
        bits: of a value without its sign.
    """
    if size == 0.0:
        return bits + _FURTHER
    return min(bits + _FURTHER, bits - 1 - math.floor(math.log2(size * (1.0 + _MARGIN))))


class _Writer:
    """Writes instructions, and keeps the f of every value."""

    def __init__(self, forms: Forms, bits: int, scales: Mapping[str, int], sizes: Mapping[Node, float]):
        self.forms, self.bits, self.sizes = forms, bits, sizes
        self.turn = bits - 1
        self.scales: dict[Node, int] = {}
        self.code: list[Instruction] = []
        self.input_scales = scales
        self._phases: dict[Node, str] = {}

    def scale(self, node: Node) -> int:
        if node.op == "const":
            return scale_of(abs(node.value), self.bits)
        return self.input_scales[node.value[0]] if node.op == "input" else self.scales[node]

    def spelled(self, node: Node) -> str | int:
        if node.op == "const":
            return round(node.value * 2.0 ** self.scale(node))
        if node.op == "input":
            return f"{node.value[0]}[{node.value[1]}]"
        return f"c{node.index}" if node.op in CONDITIONS else f"v{node.index}"

    def at(self, node: Node, f: int) -> str | int:
        """A value times 2^f."""
        if node.op == "const":
            return round(node.value * 2.0**f)
        by = self.scale(node) - f
        if by < -self.bits:
            raise EvidenceError(
                f"{self.forms.program.name}: v{node.index}: too small beside what it is added to"
            )
        return self.spelled(node) if by == 0 else self.add("shift", (self.spelled(node), min(by, self.bits)))

    def add(self, what: str, args: tuple[Any, ...], result: str | None = None) -> str:
        name = f"t{len(self.code)}" if result is None else result
        self.code.append((what, name, args))
        return name

    def write(self, node: Node) -> None:
        """The instructions of one operation."""
        forms, result = self.forms, str(self.spelled(node))
        if node.op in CONDITIONS:
            self.condition(node, result)
            return
        wanted = scale_of(max(magnitude(forms.interval(node)), self.sizes.get(node, 0.0)), self.bits)
        match node.op:
            case "hardware_sin" | "hardware_cos":
                self.scales[node] = self.turn
                cut = BITS - self.bits
                self.add(node.op.removeprefix("hardware_"), (self.phase(node.args[0]), cut), result)
            case "mul":
                a, b = (self.scale(x) for x in node.args)
                f = self.scales[node] = min(wanted, a + b)
                self.add("mul", (*map(self.spelled, node.args), min(a + b - f, 2 * self.bits)), result)
            case "add" | "sub":
                f = self.scales[node] = min(wanted, max(self.scale(x) for x in node.args))
                self.add(node.op, tuple(self.at(x, f) for x in node.args), result)
            case "neg" | "abs":
                self.scales[node] = self.scale(node.args[0])
                self.add(node.op, (self.spelled(node.args[0]),), result)
            case "select":
                self.select(node, wanted, result)
            case _:
                raise EvidenceError(f"{forms.program.name}: fixed point has no {node.op}")

    def phase(self, angle: Node) -> str:
        """An angle in turns times 2^32; whole turns are cut off."""
        if angle not in self._phases:
            factor = round(_PHASE * 2**32)
            self._phases[angle] = self.add("phase", (self.spelled(angle), factor, self.scale(angle)))
        return self._phases[angle]

    def select(self, node: Node, wanted: int, result: str) -> None:
        test = self.forms.conditions[node.args[0]]
        if test is not None:
            chosen = node.args[1] if test else node.args[2]
            self.scales[node] = self.scale(chosen)
            self.add("shift", (self.spelled(chosen), 0), result)
            return
        f = self.scales[node] = min([wanted, *(self.scale(x) for x in node.args[1:] if x.op != "const")])
        self.add("select", (self.spelled(node.args[0]), *(self.at(x, f) for x in node.args[1:])), result)

    def condition(self, node: Node, result: str) -> None:
        decided = self.forms.conditions[node]
        if decided is not None:
            self.add("eq", (0, 0 if decided else 1, 0, 0), result)
        elif node.op in ("lt", "le", "eq"):
            a, b = (self.scale(x) for x in node.args)
            if abs(a - b) > self.bits and not any(x.op == "const" and x.value == 0.0 for x in node.args):
                raise EvidenceError(
                    f"{self.forms.program.name}: {result}: its sides have too different sizes"
                )
            i, j = max(0, b - a), max(0, a - b)
            self.add(node.op, (*map(self.spelled, node.args), min(i, self.bits), min(j, self.bits)), result)
        elif node.op in ("and", "or", "not"):
            self.add(node.op, tuple(map(self.spelled, node.args)), result)
        else:
            raise EvidenceError(f"{self.forms.program.name}: fixed point has no {node.op}")
