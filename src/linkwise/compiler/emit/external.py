"""C with CasADi's external-function interface: a function, its Jacobian, and where it is asked for its adjoint and the
Jacobian of that, each with names, sparsity and work sizes.

``casadi.external(NAME, "NAME.so")`` loads the compiled file. Jacobians have only the elements that can differ from
zero, column by column, as CasADi stores them. The adjoint Σₖ λₖ ∂fₖ/∂x has the second derivatives that solvers need,
those of a weighted sum of the outputs, as its Jacobian: n² numbers in place of n³.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.compiler.emit import c
from linkwise.compiler.emit.sx import apart, casadi_name
from linkwise.compiler.ir.derivative import forward, reverse
from linkwise.compiler.ir.derivative import jacobian as derivatives
from linkwise.compiler.ir.graph import Node
from linkwise.compiler.ir.program import Program, lower
from linkwise.errors import LinkwiseError

_INTERFACE = """\
#ifndef casadi_real
#define casadi_real double
#endif
#ifndef casadi_int
#define casadi_int long long int
#endif
#ifndef CASADI_SYMBOL_EXPORT
#if defined(_WIN32)
#define CASADI_SYMBOL_EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define CASADI_SYMBOL_EXPORT __attribute__((visibility("default")))
#else
#define CASADI_SYMBOL_EXPORT
#endif
#endif
"""


@dataclass(frozen=True)
class Pattern:
    """Where a matrix can differ from zero: rows of each column, ascending."""

    rows: int
    columns: tuple[tuple[int, ...], ...]

    @property
    def numbers(self) -> list[int]:
        """CasADi's compressed form: rows, columns, where each column starts, the row of every element."""
        starts = [0]
        for column in self.columns:
            starts.append(starts[-1] + len(column))
        return [self.rows, len(self.columns), *starts, *(row for column in self.columns for row in column)]

    @property
    def elements(self) -> int:
        return sum(map(len, self.columns))


def dense(rows: int, columns: int = 1) -> Pattern:
    return Pattern(rows, (tuple(range(rows)),) * columns)


def empty(rows: int, columns: int = 1) -> Pattern:
    return Pattern(rows, ((),) * columns)


def source(
    program: Program,
    *,
    function_name: str | None = None,
    description: str = "",
    fma: bool = True,
    jacobian: Program | None = None,
    second: bool = False,
) -> str:
    """The program as a C file for ``casadi.external``.

    Args:
        program: what is written.
        function_name: its name; the Jacobian is called ``jac_NAME``, the adjoint ``adj1_NAME``.
        description: a line of the comment.
        fma: False for processors without fused multiply-adds.
        jacobian: a program with the derivatives of the only output by each input, where there is a shorter one than
            that which differentiating the graph gives.
        second: whether second derivatives are written: the adjoint, and its Jacobian.
    """
    check_straight(program, "casadi")
    name = casadi_name(function_name or program.name)
    inputs, sizes = [casadi_name(key) for key, _ in program.inputs], [size for _, size in program.inputs]
    outputs = apart([casadi_name(key) for key, _ in program.outputs], inputs)
    values = [
        column_by_column(shape, nodes)
        for (_, shape), nodes in zip(program.outputs, program.source_values, strict=True)
    ]
    shapes = [_matrix(shape) for _, shape in program.outputs]
    blocks = _blocks(program, values, jacobian)
    titles = [f"jac_{output}_{key}" for output in outputs for key in inputs]
    own = {key: nodes for key, nodes in zip(outputs, values, strict=True)}
    plain = _written(program, own, f"{name}_values", description, fma)
    present = {title: nodes for title, (_, nodes) in zip(titles, blocks, strict=True) if nodes}
    slopes = (
        _written(program, present, f"{name}_slopes", f"derivatives of {description or name}", fma)
        if present
        else ""
    )
    first = _Signature(
        name, inputs, outputs, [dense(size) for size in sizes], [dense(*shape) for shape in shapes]
    )
    derivative = _Signature(
        f"jac_{name}",
        [*inputs, *(f"out_{output}" for output in outputs)],
        titles,
        [*(dense(size) for size in sizes), *(empty(*shape) for shape in shapes)],
        [pattern for pattern, _ in blocks],
    )
    zeros = f"static const casadi_real {name}_zeros[{max([1, *sizes, *map(len, values)])}] = {{0}};\n"
    whole, parts = (
        {k: len(x) for k, x in enumerate(values)},
        {k: len(x) for k, (_, x) in enumerate(blocks) if x},
    )
    texts = [plain, slopes, _INTERFACE, zeros]
    texts.append(first.text(_call(f"{name}_values", range(len(inputs)), whole, name)))
    texts.append(derivative.text(_call(f"{name}_slopes", range(len(inputs)), parts, name)))
    if second:
        texts.append(_Adjoint(program, name, inputs, outputs, values, shapes).text(description, fma))
    return "\n".join(texts)


class _Adjoint:
    """Σₖ λₖ ∂fₖ/∂x for every input x, and its Jacobian by the inputs and by λ."""

    def __init__(
        self,
        program: Program,
        name: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        values: Sequence[list[Node]],
        shapes: Sequence[tuple[int, int]],
    ):
        self.program, self.name, self.inputs, self.outputs, self.shapes = (
            program,
            name,
            inputs,
            outputs,
            shapes,
        )
        self.sizes = [size for _, size in program.inputs]
        graph = next(node for column in program.source_values for node in column).graph
        self.states = [node for key, size in program.inputs for node in graph.inputs(key, size)]
        self.weights = [
            graph.inputs(f"adj_{key}", len(own)) for key, own in zip(outputs, values, strict=True)
        ]
        total = graph.zero
        for own, weights in zip(values, self.weights, strict=True):
            for value, weight in zip(own, weights, strict=True):
                total = total + weight * value
        (self.gradient,) = reverse([total], self.states)

    def text(self, description: str, fma: bool) -> str:
        """Both functions."""
        name, gradients = self.name, self._cut(self.gradient)
        what = f"adjoint of {description or name}"
        first = {f"adj_{key}": own for key, own in zip(self.inputs, gradients, strict=True)}
        blocks = self._blocks()
        present = {key: nodes for key, (_, nodes) in blocks.items() if nodes}
        parts = [self._written(first, f"{name}_adjoint", what, fma)]
        if present:
            parts.append(self._written(present, f"{name}_bends", f"derivatives of the {what}", fma))
        taken = [*(dense(size) for size in self.sizes), *(empty(*shape) for shape in self.shapes)]
        taken += [dense(*shape) for shape in self.shapes]
        names = [
            *self.inputs,
            *(f"out_{key}" for key in self.outputs),
            *(f"adj_{key}" for key in self.outputs),
        ]
        given = [dense(size) for size in self.sizes]
        adjoint = _Signature(f"adj1_{name}", names, list(first), taken, given)
        bends = _Signature(
            f"jac_adj1_{name}",
            [*names, *(f"out_adj_{key}" for key in self.inputs)],
            list(blocks),
            [*taken, *(empty(size) for size in self.sizes)],
            [pattern for pattern, _ in blocks.values()],
        )
        places = [*range(len(self.inputs)), *range(len(self.inputs) + len(self.outputs), len(names))]
        results = {k: len(own) for k, own in enumerate(gradients)}
        parts.append(adjoint.text(_call(f"{name}_adjoint", places, results, name)))
        results = {k: len(nodes) for k, (_, nodes) in enumerate(blocks.values()) if nodes}
        parts.append(bends.text(_call(f"{name}_bends", places, results, name)))
        return "\n".join(parts)

    def _blocks(self) -> dict[str, tuple[Pattern, list[Node]]]:
        """Pattern and elements of the derivative of every adjoint by every input of the adjoint function."""
        flat = [node for own in self.weights for node in own]
        by_states, by_weights = forward(self.gradient, self.states), forward(self.gradient, flat)
        for i, row in enumerate(by_states):  # one of two equal elements is computed
            for j in range(i):
                row[j] = by_states[j][i]
        blocks: dict[str, tuple[Pattern, list[Node]]] = {}
        start = 0
        for key, size in zip(self.inputs, self.sizes, strict=True):
            rows, weighted = by_states[start : start + size], by_weights[start : start + size]
            start += size
            for other, own in zip(self.inputs, zip(*map(self._cut, rows), strict=True), strict=True):
                blocks[f"jac_adj_{key}_{other}"] = _compressed(own, len(own[0]))
            for other, shape in zip(self.outputs, self.shapes, strict=True):
                blocks[f"jac_adj_{key}_out_{other}"] = empty(size, math.prod(shape)), []
            first = 0
            for other, weights in zip(self.outputs, self.weights, strict=True):
                own = [row[first : first + len(weights)] for row in weighted]
                first += len(weights)
                blocks[f"jac_adj_{key}_adj_{other}"] = _compressed(own, len(weights))
        return blocks

    def _cut(self, row: Sequence[Node]) -> list[list[Node]]:
        """A row of all inputs, input by input."""
        parts: list[list[Node]] = []
        start = 0
        for size in self.sizes:
            parts.append(list(row[start : start + size]))
            start += size
        return parts

    def _written(self, outputs: dict[str, list[Node]], name: str, description: str, fma: bool) -> str:
        sizes = {f"adj_{key}": len(own) for key, own in zip(self.outputs, self.weights, strict=True)}
        return _written(self.program, outputs, name, description, fma, sizes)


def check_straight(program: Any, target: str) -> None:
    if not isinstance(program, Program) or program.dtype != "float64":
        raise LinkwiseError(
            f"target {target}: expected a function in float64 that is written out as one formula"
        )


def column_by_column(shape: Sequence[int], nodes: Sequence[Node]) -> list[Node]:
    """The elements of an output, which come row by row, in CasADi's order."""
    rows, columns = _matrix(shape)
    return [nodes[i * columns + j] for j in range(columns) for i in range(rows)]


def _matrix(shape: Sequence[int]) -> tuple[int, int]:
    """Rows and columns of an output; further axes are joined with the second."""
    return (shape[0], math.prod(shape[1:])) if shape else (1, 1)


def _blocks(
    program: Program, values: Sequence[list[Node]], jacobian: Program | None
) -> list[tuple[Pattern, list[Node]]]:
    """For every output and input the pattern of the derivative and its elements."""
    sizes = [size for _, size in program.inputs]
    if jacobian is not None and len(values) == 1:
        rows = len(values[0])
        parts = [
            [[*part[i * n : (i + 1) * n]] for i in range(rows)]
            for part, n in zip(jacobian.source_values, sizes, strict=True)
        ]
        return [_compressed(part, n) for part, n in zip(parts, sizes, strict=True)]
    graph = next(node for column in program.source_values for node in column).graph
    seeds = [node for key, size in program.inputs for node in graph.inputs(key, size)]
    rows = iter(derivatives([node for column in values for node in column], seeds))
    found: list[tuple[Pattern, list[Node]]] = []
    for column in values:
        own, start = [next(rows) for _ in column], 0
        for size in sizes:
            found.append(_compressed([row[start : start + size] for row in own], size))
            start += size
    return found


def _compressed(rows: Sequence[Sequence[Node]], size: int) -> tuple[Pattern, list[Node]]:
    """The elements that are not the constant zero, column by column."""
    places = [[i for i, row in enumerate(rows) if not _is_zero(row[j])] for j in range(size)]
    pattern = Pattern(len(rows), tuple(map(tuple, places)))
    return pattern, [rows[i][j] for j, column in enumerate(places) for i in column]


def _is_zero(node: Node) -> bool:
    return node.op == "const" and node.value == 0.0


def _written(
    program: Program,
    outputs: dict[str, list[Node]],
    name: str,
    description: str,
    fma: bool,
    more: Mapping[str, int] | None = None,
) -> str:
    """A function of the program's inputs, and of ``more``, that is known in this file alone."""
    nodes = {key: ((len(values),), values) for key, values in outputs.items()}
    made = lower(nodes, {**dict(program.inputs), **(more or {})}, name=name, dtype="float64")
    text = c.source(made, function_name=name, description=description, fma=fma)
    return text.replace(f"\nvoid {name}(", f"\nstatic void {name}(")


def _call(function: str, inputs: Sequence[int], results: Mapping[int, int], name: str) -> str:
    """Statements that call a function for these results, with their sizes: an input that is missing is zero, a result
    that is not wanted goes to ``w``."""
    if not results:
        return ""
    given = [f"arg[{k}] ? arg[{k}] : {name}_zeros" for k in inputs]
    starts = [sum([*results.values()][:k]) for k in range(len(results))]
    taken = [f"res[{k}] ? res[{k}] : w + {start}" for k, start in zip(results, starts, strict=True)]
    return f"    {function}({', '.join([*given, *taken])});\n"


@dataclass(frozen=True)
class _Signature:
    """A function of the interface with everything that CasADi requires."""

    name: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    taken: Sequence[Pattern]
    given: Sequence[Pattern]

    def text(self, call: str) -> str:
        room = sum(pattern.elements for pattern in self.given)
        sizes = ("arg", len(self.inputs)), ("res", len(self.outputs)), ("iw", 0), ("w", room * bool(call))
        work = " ".join(f"if (sz_{key}) *sz_{key} = {size};" for key, size in sizes)
        arguments = ", ".join(f"casadi_int *sz_{key}" for key, _ in sizes)
        lines = [
            *self._patterns("in", self.taken),
            *self._patterns("out", self.given),
            self._function(
                "int",
                "(const casadi_real **arg, casadi_real **res, casadi_int *iw, casadi_real *w, int mem)",
                "",
            ),
            "{\n    (void)arg; (void)res; (void)iw; (void)w; (void)mem;\n" + call + "    return 0;\n}",
            self._function("casadi_int", "(void)", "_n_in") + f" {{ return {len(self.inputs)}; }}",
            self._function("casadi_int", "(void)", "_n_out") + f" {{ return {len(self.outputs)}; }}",
            self._chosen("const char *", "_name_in", [f'"{key}"' for key in self.inputs]),
            self._chosen("const char *", "_name_out", [f'"{key}"' for key in self.outputs]),
            self._chosen(
                "const casadi_int *", "_sparsity_in", [f"{self.name}_in_{k}" for k in range(len(self.inputs))]
            ),
            self._chosen(
                "const casadi_int *",
                "_sparsity_out",
                [f"{self.name}_out_{k}" for k in range(len(self.outputs))],
            ),
            self._function("casadi_real", "(casadi_int i)", "_default_in") + " { (void)i; return 0; }",
            self._function("int", f"({arguments})", "_work") + f" {{ {work} return 0; }}",
            self._function("int", "(void)", "_alloc_mem") + " { return 0; }",
            self._function("int", "(int mem)", "_init_mem") + " { (void)mem; return 0; }",
            self._function("void", "(int mem)", "_free_mem") + " { (void)mem; }",
            self._function("int", "(void)", "_checkout") + " { return 0; }",
            self._function("void", "(int mem)", "_release") + " { (void)mem; }",
            self._function("void", "(void)", "_incref") + " { }",
            self._function("void", "(void)", "_decref") + " { }",
        ]
        return "\n".join(lines) + "\n"

    def _patterns(self, side: str, patterns: Sequence[Pattern]) -> list[str]:
        return [
            f"static const casadi_int {self.name}_{side}_{k}[] = {{{', '.join(map(str, pattern.numbers))}}};"
            for k, pattern in enumerate(patterns)
        ]

    def _function(self, kind: str, arguments: str, suffix: str) -> str:
        return f"CASADI_SYMBOL_EXPORT {kind} {self.name}{suffix}{arguments}"

    def _chosen(self, kind: str, suffix: str, texts: Sequence[str]) -> str:
        cases = " ".join(f"case {k}: return {text};" for k, text in enumerate(texts))
        return (
            self._function(kind, "(casadi_int i)", suffix)
            + f" {{ switch (i) {{ {cases} default: return 0; }} }}"
        )
