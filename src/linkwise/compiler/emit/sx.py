"""A program as a ``casadi.Function`` of SX: the graph as it was traced, node by node.

CasADi then differentiates it as often as needed: exact Hessians, sparsity, code generation, acados.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from linkwise.compiler.emit.formulas import refuse_loops, simplified
from linkwise.compiler.ir.graph import Node
from linkwise.compiler.ir.walks import reachable
from linkwise.errors import needed

if TYPE_CHECKING:
    from linkwise.compiler.ir.program import Program


def casadi_name(name: str) -> str:
    """A name as CasADi accepts it: letters, digits and single underscores, starting with a letter."""
    words = "".join(c if c.isalnum() and c.isascii() else " " for c in name).split()
    joined = "_".join(words) or "f"
    return joined if joined[0].isalpha() else f"f_{joined}"


def to_casadi(program: Program, name: str | None = None, options: Mapping[str, Any] | None = None) -> Any:
    """The program as a ``casadi.Function``: an SX column for each input, a column or matrix for each output.

    An output with three axes (a, b, c) becomes a matrix of a rows and b·c columns.
    """
    ca = needed("casadi", "frameworks")
    outputs = simplified(program)
    nodes = reachable([node for output in outputs for node in output])
    refuse_loops(nodes)
    symbols = {key: ca.SX.sym(casadi_name(key), size) for key, size in program.inputs}
    values = _values(ca, nodes, symbols)
    made: list[Any] = []
    for (_, shape), output in zip(program.outputs, outputs, strict=True):
        column = ca.vertcat(*(values[node.index] for node in output))
        rows = shape[0] if shape else 1
        made.append(ca.reshape(column, math.prod(shape) // max(rows, 1), rows).T)
    return ca.Function(
        casadi_name(name or program.name),
        list(symbols.values()),
        made,
        [casadi_name(key) for key in symbols],
        apart([casadi_name(key) for key, _ in program.outputs], [casadi_name(key) for key in symbols]),
        dict(options or {}),
    )


def _values(ca: Any, nodes: Sequence[Node], symbols: Mapping[str, Any]) -> dict[int, Any]:
    """The expression of every node, by its number."""
    functions: dict[str, Callable[..., Any]] = {
        "add": operator.add,
        "sub": operator.sub,
        "mul": operator.mul,
        "div": _quotient,
        "neg": operator.neg,
        "sqrt": ca.sqrt,
        "abs": ca.fabs,
        "sin": ca.sin,
        "cos": ca.cos,
        "rint": partial(_rounded, ca),
        "sign": ca.sign,
        "atan2": ca.atan2,
        "lt": operator.lt,
        "le": operator.le,
        "eq": operator.eq,
        "and": ca.logic_and,
        "or": ca.logic_or,
        "not": ca.logic_not,
        "select": ca.if_else,
    }
    values: dict[int, Any] = {}
    for node in nodes:
        if node.op == "const":
            values[node.index] = ca.SX(node.value)
        elif node.op == "input":
            values[node.index] = symbols[node.value[0]][node.value[1]]
        else:
            values[node.index] = functions[node.op](*(values[a.index] for a in node.args))
    return values


def _rounded(ca: Any, x: Any) -> Any:
    """The nearest whole number, the even one of two: CasADi has no such function."""
    below = ca.floor(x)
    rest = x - below
    up = ca.logic_or(rest > 0.5, ca.logic_and(rest == 0.5, ca.fmod(below, 2) != 0))
    return below + ca.if_else(up, 1.0, 0.0)


def _quotient(a: Any, b: Any) -> Any:
    return a / b


def apart(names: Sequence[str], taken: Sequence[str]) -> list[str]:
    """Names of outputs that differ from those of the inputs, as CasADi requires."""
    return [f"{name}_out" if name in taken else name for name in names]
