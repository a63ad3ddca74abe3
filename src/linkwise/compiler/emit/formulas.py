"""A program for people: SymPy expressions, LaTeX, and readable Python that needs NumPy only.

Formulas come from the graph as it was traced, before anything is fused or expanded, so that sin and cos are still
operations of their own. Joint coordinates are written as in the papers: s1, c1 for sin q1, cos q1 and c23 for cos(q2
+ q3).
"""

from __future__ import annotations

import keyword
import math
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from linkwise.arguments.flags import flag
from linkwise.compiler.emit import clike
from linkwise.compiler.ir.graph import Node
from linkwise.compiler.ir.walks import reachable
from linkwise.core import foreign
from linkwise.errors import LinkwiseError, needed

if TYPE_CHECKING:
    from linkwise.compiler.ir.program import Program

_PYTHON = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "neg": "-{0}",
    "sqrt": "np.sqrt({0})",
    "abs": "np.abs({0})",
    "sin": "np.sin({0})",
    "cos": "np.cos({0})",
    "rint": "np.rint({0})",
    "sign": "np.sign({0})",
    "atan2": "np.arctan2({0}, {1})",
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "eq": "{0} == {1}",
    "and": "{0} & {1}",
    "or": "{0} | {1}",
    "not": "~{0}",
    "select": "np.where({0}, {1}, {2})",
}


def refuse_loops(nodes: Sequence[Node]) -> None:
    if any(node.op in ("phi", "result") for node in nodes):
        raise LinkwiseError("a program with a data-dependent loop has no closed formula; use source('c')")


def simplified(program: Program) -> list[list[Node]]:
    """The outputs after the rules that save operations, so that a formula shows what is counted."""
    from linkwise.compiler.ir.program import simplify

    nodes = simplify([node for output in program.source_values for node in output])
    sizes = [len(output) for output in program.source_values]
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    return [nodes[start : start + size] for start, size in zip(starts, sizes, strict=True)]


def _identifier(name: str) -> str:
    """A name of an input as Python accepts it: a parameter's label has a dot."""
    return "".join(c if f"_{c}".isidentifier() else "_" for c in name)


def _named(node: Node) -> str | None:
    """c1, s1 and the like for the sine and cosine of a joint coordinate."""
    if node.op in ("sin", "cos") and node.args[0].op == "input" and node.args[0].value[0] == "q":
        return f"{node.op[0]}{node.args[0].value[1] + 1}"
    return None


# -- Python -----------------------------------------------------------------------------------------------------------


def python_source(program: Program, *, function_name: str | None = None, description: str = "") -> str:
    """A Python function of arrays (..., size) that needs NumPy only. Not fused: its last bits may differ."""
    outputs = simplified(program)
    values = [node for output in outputs for node in output]
    nodes = reachable(values)
    refuse_loops(nodes)
    name = clike.function_name(function_name, program.name, keyword.kwlist)
    uses = Counter(a.index for node in nodes for a in node.args)
    uses.update(node.index for node in values)
    texts: dict[int, str] = {}
    lines: list[str] = []
    for node in nodes:
        if node.op == "const":
            texts[node.index] = repr(node.value).replace("inf", "np.inf").replace("nan", "np.nan")
        elif node.op == "input":
            texts[node.index] = f"{_identifier(node.value[0])}[..., {node.value[1]}]"
        else:
            text = _PYTHON[node.op].format(*(texts[a.index] for a in node.args))
            known = _named(node)
            if known is None and uses[node.index] <= 1 and len(text) < 60:
                texts[node.index] = f"({text})"  # used once: written where it is used
                continue
            texts[node.index] = known or f"t{node.index}"
            lines.append(f"    {texts[node.index]} = {text}")
    names = [_identifier(key) for key, _ in program.inputs]
    sizes = ", ".join(f"{_identifier(key)} ({size})" for key, size in program.inputs)
    body = [
        "import numpy as np",
        "",
        "",
        f"def {name}({', '.join(names)}):",
        f'    """{foreign.python_docstring(description or program.name)}: {program.operations}.',
        "",
        f"    Arrays of shape (..., size): {sizes}.",
        '    """',
        *(f"    {key} = np.asarray({key}, dtype=float)" for key in names),
        f"    batch = np.broadcast_shapes({', '.join(f'{key}.shape[:-1]' for key in names)})",
        *lines,
    ]
    results = [_identifier(output) for output, _ in program.outputs]
    for output, (_, shape), row in zip(results, program.outputs, outputs, strict=True):
        entries = "".join(f"\n        {texts[node.index]}," for node in row)
        body.append(f"    {output} = [{entries}\n    ]")
        body.append(f"    {output} = np.stack([np.broadcast_to(x, batch) for x in {output}], axis=-1)")
        body.append(f"    {output} = {output}.reshape(batch + {tuple(shape)!r})")
    body.append(f"    return {', '.join(results)}")
    return "\n".join(body) + "\n"


# -- SymPy ------------------------------------------------------------------------------------------------------------


def to_sympy(program: Program, *, digits: int | None = None) -> dict[str, Any]:
    """Per output a SymPy expression, or a Matrix (Array for more axes) of them, over symbols q1, qd1, …

    ``digits`` rounds the constants for reading; without it they are exact rationals of their binary values.
    """
    sympy = needed("sympy", "formulas")
    outputs = simplified(program)
    nodes = reachable([node for output in outputs for node in output])
    refuse_loops(nodes)

    def divide(a: Any, b: Any) -> Any:
        return a / b

    def select(condition: Any, a: Any, b: Any) -> Any:
        return sympy.Piecewise((a, condition), (b, True))

    found: dict[int, Any] = {}
    functions: dict[str, Callable[..., Any]] = {
        "add": operator.add,
        "sub": operator.sub,
        "mul": operator.mul,
        "div": divide,
        "neg": operator.neg,
        "sqrt": sympy.sqrt,
        "abs": sympy.Abs,
        "sin": sympy.sin,
        "cos": sympy.cos,
        "rint": sympy.Function("round"),
        "sign": sympy.sign,
        "atan2": sympy.atan2,
        "lt": sympy.Lt,
        "le": sympy.Le,
        "eq": sympy.Eq,
        "and": sympy.And,
        "or": sympy.Or,
        "not": sympy.Not,
        "select": select,
    }
    for node in nodes:
        if node.op == "const":
            found[node.index] = _constant(sympy, node.value, digits)
        elif node.op == "input":
            name, k = node.value
            found[node.index] = sympy.Symbol(f"{name}{k + 1}", real=True)
        else:
            found[node.index] = functions[node.op](*(found[a.index] for a in node.args))
    result: dict[str, Any] = {}
    for (name, shape), row in zip(program.outputs, outputs, strict=True):
        entries = [found[node.index] for node in row]
        if not shape:
            result[name] = entries[0]
        elif len(shape) == 1:
            result[name] = sympy.Matrix(entries)
        elif len(shape) == 2:
            result[name] = sympy.Matrix(*shape, entries)
        else:
            result[name] = sympy.Array(entries, shape)
    return result


def _constant(sympy: Any, value: float, digits: int | None) -> Any:
    if math.isnan(value):
        return sympy.nan
    if math.isinf(value):
        return sympy.oo if value > 0 else -sympy.oo
    if value == int(value) and abs(value) < 1e9:
        return sympy.Integer(int(value))
    return sympy.Rational(value) if digits is None else sympy.Float(value, digits)


def to_latex(program: Program, *, digits: int = 4, simplify: bool = True) -> str:
    """Aligned equations, one per entry, with sines and cosines as in the papers (c_{23} = cos(q_2 + q_3))."""
    sympy, simplify = needed("sympy", "formulas"), flag("simplify", simplify)
    lines: list[str] = []
    for name, value in to_sympy(program, digits=digits).items():
        shape = getattr(value, "shape", ())
        entries = list(value) if shape else [value]
        for k, entry in enumerate(entries):
            if entry == 0:
                continue
            if simplify:
                entry = (
                    sympy.nsimplify(entry, rational=False)
                    if entry.is_number
                    else _with_angle_sums(sympy, entry)
                )
            label = _label(name, shape, k)
            entry = entry.xreplace(_written_symbols(sympy, entry))
            lines.append(f"{label} &= {sympy.latex(_short_angles(sympy, entry))}")
    return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}\n"


def _written_symbols(sympy: Any, entry: Any) -> dict[Any, Any]:
    """Symbols whose names LaTeX would read as commands, and what is written instead."""
    return {
        symbol: sympy.Symbol(_identifier(symbol.name), real=True)
        for symbol in entry.free_symbols
        if not symbol.name.isidentifier()
    }


def _label(name: str, shape: tuple[int, ...], k: int) -> str:
    symbols = {"mass_matrix": "M", "inverse_mass_matrix": "W", "tau": "\\tau", "qdd": "\\ddot q"}
    symbol = symbols.get(name, f"\\mathrm{{{foreign.latex_text(name)}}}")
    if not shape:
        return symbol
    index: list[str] = []
    for length in reversed(shape):
        index.insert(0, str(k % length + 1))
        k //= length
    return (
        f"{symbol}_{{{','.join(index)}}}"
        if len(shape) > 1 and max(shape) > 9
        else f"{symbol}_{{{''.join(index)}}}"
    )


def _size(entry: Any) -> int:
    return entry.count_ops()


def _with_angle_sums(sympy: Any, entry: Any) -> Any:
    """Products of sines and cosines of parallel axes gathered into sums of angles, where that is shorter."""
    gathered = sympy.fu(sympy.expand(entry))
    return min((entry, gathered), key=_size)


def _short_angles(sympy: Any, entry: Any) -> Any:
    """sin(q1 + q2) as the symbol s_{12}."""

    def short(function: Any) -> Any:
        letters = {sympy.sin: "s", sympy.cos: "c"}
        names = [str(a) for a in sympy.Add.make_args(function.args[0])]
        if all(name.startswith("q") and name[1:].isdigit() for name in names):
            digits = "".join(sorted((name[1:] for name in names), key=int))
            return sympy.Symbol(f"{letters[function.func]}_{{{digits}}}")
        return function

    def is_angle(part: Any) -> bool:
        return part.func in (sympy.sin, sympy.cos)

    return entry.replace(is_angle, short)
