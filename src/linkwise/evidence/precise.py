"""Every value of a program with mpmath: 50 digits at one state, or intervals over a small box.

Bounds are compared with these. Sines are sines and constants are those of the model in float64, as everywhere here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from linkwise.compiler.ir.graph import Node
from linkwise.compiler.ir.program import Program
from linkwise.errors import needed
from linkwise.evidence import patterns
from linkwise.evidence.box import Box

_DIGITS = 50
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "fma": lambda a, b, c: a * b + c,
    "neg": lambda a: -a,
    "abs": abs,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
}


def at(
    program: Program, state: Mapping[str, Sequence[float]], turns: patterns.Patterns | None = None
) -> dict[Node, Any]:
    """The exact values at one state, with 50 digits.

    Args:
        program: straight-line.
        state: its inputs by name.
        turns: its sines and cosines, where they are known.
    """
    mpmath = needed("mpmath", "formulas")
    with mpmath.workdps(_DIGITS):
        found = patterns.find(program) if turns is None else turns
        return _values(program, lambda name, k: mpmath.mpf(float(state[name][k])), mpmath, mpmath.mpf, found)


def over(program: Program, box: Box, turns: patterns.Patterns | None = None) -> dict[Node, Any]:
    """Intervals of mpmath that hold the exact values of a box.

    Args:
        program: straight-line.
        box: of its inputs.
        turns: its sines and cosines, where they are known.
    """
    mpmath = needed("mpmath", "formulas")
    ends = box.bounds

    def given(name: str, k: int) -> Any:
        return mpmath.iv.mpf([float(side[k]) for side in ends[name]])

    found = patterns.find(program) if turns is None else turns
    return _values(program, given, mpmath.iv, mpmath.iv.mpf, found)


def _values(
    program: Program,
    given: Callable[[str, int], Any],
    real: Any,
    number: Any,
    found: patterns.Patterns,
) -> dict[Node, Any]:
    known: dict[Node, Any] = {}

    def value(node: Node) -> Any:
        if node.op == "const":
            return number(node.value)
        return given(*node.value) if node.op == "input" else known[node]

    for node in program.nodes():
        if node in found.inner:
            continue
        if node in found.turns:
            turn = found.turns[node]
            known[node] = getattr(real, turn.kind)(value(turn.angle))
        elif node.op == "select":
            known[node] = _selected(node, value, number)
        elif node.op in ("and", "or", "not"):
            known[node] = _joined(node.op, [known[a] for a in node.args])
        elif node.op == "bit":  # the sign of a number; other bits are inside of sines and cosines
            known[node] = value(node.args[0]) < 0
        elif node.op == "sqrt":
            known[node] = real.sqrt(value(node.args[0]))
        else:
            known[node] = _ARITHMETIC[node.op](*map(value, node.args))
    for node in {n for nodes in program.values for n in nodes}:
        known[node] = value(node)
    return known


def _joined(op: str, sides: Sequence[bool | None]) -> bool | None:
    """A condition of conditions; None: both are possible."""
    if op == "not":
        return None if sides[0] is None else not sides[0]
    settles = op == "or"
    if settles in sides:
        return settles
    return None if None in sides else not settles


def _selected(node: Node, value: Callable[[Node], Any], number: Any) -> Any:
    test = value(node.args[0])
    if test is not None:
        return value(node.args[1] if test else node.args[2])
    a, b = map(value, node.args[1:])
    return number([min(a.a, b.a), max(a.b, b.b)])
