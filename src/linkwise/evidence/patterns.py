"""What groups of operations of a program compute: sines and cosines, signs, smaller and larger of two.

The compiler writes them out (``compiler/ir/sincos.py``). A group counts as a sine or a cosine only if all of its
constants are those of the project's polynomials and its value is that of the sine or cosine at some angles; else its
operations are analysed one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.compiler.ir import interpret
from linkwise.compiler.ir.expand import expand
from linkwise.compiler.ir.graph import Graph, Node
from linkwise.compiler.ir.program import Program
from linkwise.compiler.ir.sincos import CONSTANTS

_ANGLES = (0.4, 2.3, -2.9, 5.2)
"""At which the value of a group is compared with sine and cosine [rad]: one in each quadrant."""


@dataclass(frozen=True)
class Turn:
    """A sine or a cosine of a node."""

    kind: str
    angle: Node


@dataclass(frozen=True, eq=False)
class Patterns:
    """What was recognised.

    Args:
        turns: last operation of every sine and cosine.
        inner: operations inside them.
        remainders: among these, angles less the nearest multiple of π/2, with the angle.
    """

    turns: dict[Node, Turn]
    inner: set[Node]
    remainders: dict[Node, Node]


def find(program: Program) -> Patterns:
    """Sines and cosines of a program."""
    expected = {kind: _constants_of_expansion(kind, program.dtype, program.fused) for kind in ("sin", "cos")}
    found = Patterns({}, set(), {})
    used: set[Node] = set()
    for node in program.nodes():
        if node.op in ("hardware_sin", "hardware_cos"):
            found.turns[node] = Turn(node.op.removeprefix("hardware_"), node.args[0])
            continue
        total = _quadrant_sum(node)
        angle = None if total is None else _angle(total, program.dtype)
        if total is None or angle is None:
            continue
        inside = _between(node, angle)
        kind = _kind(node, inside, angle, program.dtype)
        if kind is None or _constants(inside, program.dtype) != expected[kind]:
            continue
        found.turns[node] = Turn(kind, angle)
        used.update(inside)
        for inner in inside:
            if inner.op == "select" and inner.args[0].op == "le":
                found.remainders[inner] = angle
                found.remainders.update({r: angle for r in _chain(inner.args[1], angle)})
    found.inner.update(_hidden(program, used - set(found.turns), found.turns))
    return found


def _hidden(program: Program, inside: set[Node], turns: Mapping[Node, Turn]) -> set[Node]:
    """Operations inside sines and cosines without those that others use, too: |x| may be."""
    hidden = set(inside)
    outside = [n for n in program.nodes() if n not in hidden and n not in turns]
    waiting = [a for n in outside for a in n.args] + [turn.angle for turn in turns.values()]
    waiting += [n for nodes in program.values for n in nodes]
    while waiting:
        node = waiting.pop()
        if node in hidden:
            hidden.remove(node)
            waiting.extend(node.args)
    return hidden


def is_sign_bit(test: Node, dtype: str) -> bool:
    """Whether a condition is the sign bit of a number: the number is negative, or −0."""
    return test.op == "bit" and test.value == (63 if dtype == "float64" else 31)


def sign_argument(node: Node) -> Node | None:
    """x where a node is the sign of x: select(0 < x, 1, select(x < 0, -1, x))."""
    if node.op != "select":
        return None
    test, one, below = node.args
    if not (test.op == "lt" and one.op == "const" and one.value == 1.0 and below.op == "select"):
        return None
    inner, minus, x = below.args
    zero = test.args[0]
    same = test.args[1] is x and inner.op == "lt" and inner.args[0] is x
    whole = zero.op == "const" and zero.value == 0.0 and minus.op == "const" and minus.value == -1.0
    return x if same and whole else None


def smaller_or_larger(node: Node, below: Callable[[Node, Node], bool] = lambda a, b: False) -> str | None:
    """ "min" or "max" where a selection takes one of two numbers like that.

    Args:
        node: any node.
        below: whether one value is never above another. Then a number that is clipped to an interval counts: the
            selection compares the number with the second end, and takes that end or what was clipped to the first.
    """
    if node.op != "select" or node.args[0].op not in ("lt", "le"):
        return None
    (a, b), x, y = node.args[0].args, node.args[1], node.args[2]
    if _same(a, x) and _same(b, y):
        return "min"
    if _same(b, x) and _same(a, y):
        return "max"
    inner = smaller_or_larger(y) if y.op == "select" else None
    if inner == "max" and _same(a, x) and (end := _other(y, b)) is not None and below(end, x):
        return "min"
    if inner == "min" and _same(b, x) and (end := _other(y, a)) is not None and below(x, end):
        return "max"
    return None


def _other(node: Node, one: Node) -> Node | None:
    """The second number that a selection chooses from, if the first is one of them."""
    x, y = node.args[1:]
    return y if _same(x, one) else x if _same(y, one) else None


def _same(a: Node, b: Node) -> bool:
    return a is b or (a.op == b.op == "const" and a.value == b.value)


def _quadrant_sum(node: Node) -> Node | None:
    """The sum whose lowest bits choose, if a node has the form of the end of a sine or cosine."""
    if node.op != "select" or node.args[0].op != "bit" or node.args[0].value != 1:
        return None
    total = node.args[0].args[0]
    value = node.args[2]
    if node.args[1].op != "neg" or node.args[1].args[0] is not value or value.op != "select":
        return None
    test = value.args[0]
    return total if test.op == "bit" and test.value == 0 and test.args[0] is total else None


def _angle(total: Node, dtype: str) -> Node | None:
    """x of x·2/π + magic."""
    c = CONSTANTS[dtype]
    factors: tuple[Node, ...]
    if total.op == "fma":
        *factors_, shift = total.args
        factors = tuple(factors_)
    elif total.op == "add" and any(a.op == "mul" for a in total.args):
        product = next(a for a in total.args if a.op == "mul")
        shift = next(a for a in total.args if a is not product)
        factors = product.args
    else:
        return None
    if shift.op != "const" or shift.value != c.magic:
        return None
    others = [f for f in factors if not (f.op == "const" and f.value == c.two_over_pi)]
    return others[0] if len(others) == 1 else None


def _between(last: Node, first: Node) -> set[Node]:
    """All operations that ``last`` needs besides those of ``first``."""
    found: set[Node] = set()
    stack = [last]
    while stack:
        node = stack.pop()
        if node in found or node is first:
            continue
        found.add(node)
        stack.extend(node.args)
    return found


def _kind(last: Node, inside: Iterable[Node], angle: Node, dtype: str) -> str | None:
    """Whether a group computes the sine or the cosine of an angle, from its values; None: neither."""
    scalar = np.float64 if dtype == "float64" else np.float32
    order = sorted((n for n in inside if n.op not in ("const", "input")), key=lambda n: n.index)
    kinds = {"sin": np.sin, "cos": np.cos}
    for x in map(scalar, _ANGLES):
        found = interpret.values(order, scalar, {angle: x})[last]
        kinds = {name: f for name, f in kinds.items() if abs(float(found) - f(float(x))) < 1e-6}
    return next(iter(kinds), None)


def _chain(node: Node, angle: Node) -> Iterable[Node]:
    """Fused subtractions of multiples of pieces of π/2."""
    while node.op == "fma" and node is not angle:
        yield node
        node = node.args[2]


def _constants(nodes: Iterable[Node], dtype: str) -> frozenset[Any]:
    kind = np.float32 if dtype == "float32" else np.float64
    values = [kind(abs(node.value)) for node in nodes if node.op == "const"]
    return frozenset("nan" if np.isnan(v) else float(v) for v in values)


def _constants_of_expansion(kind: str, dtype: str, fused: bool) -> frozenset[Any]:
    graph = Graph()
    x = graph.inputs("x", 1)[0]
    (node,) = expand([x.sin() if kind == "sin" else x.cos()], dtype, fused=fused)
    angle = next(n for n in _between(node, x) if n.op == "input") if node.graph is not graph else x
    return _constants(_between(node, angle) - {angle}, dtype)
