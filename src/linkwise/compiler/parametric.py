"""Kernels with parameters that stay inputs at run time, and a prelude that depends on nothing else.

What depends on parameters alone (a payload, say) is computed once for all states that share them: the program is cut in
two where such values are used. The prelude is counted apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from linkwise.compiler.ir.derivative import substituted
from linkwise.compiler.ir.graph import Node
from linkwise.compiler.ir.operations import Operations
from linkwise.compiler.ir.program import Explanation, Program, lower
from linkwise.compiler.ir.sweeps import SweptProgram
from linkwise.compiler.ir.walks import reachable
from linkwise.compiler.kernel import Kernel, Portable, check_number
from linkwise.compiler.runtime import dispatch, targets
from linkwise.errors import TraceError

PRELUDE = "prelude"


@dispatch.connected_class()
class ParametricKernel(Portable):
    """A function of states and parameters. Called as ``kernel(*states, *parameters)``; all broadcast together."""

    def __init__(
        self,
        name: str,
        states: Iterable[tuple[str, int]],
        parameters: Iterable[tuple[str, int]],
        outputs: Iterable[tuple[str, tuple[int, ...]]],
        dtype: str,
        build: Callable[[str], Program | SweptProgram],
    ):
        self.name, self.dtype = name, dtype
        self._connection: dispatch.Connection | None = None
        self.states, self.parameters = tuple(states), tuple(parameters)
        self.outputs = tuple(outputs)
        self.whole = Kernel(name, self.inputs, self.outputs, dtype, build)
        self._split: dict[str, tuple[Program | None, Program]] = {}
        prelude, main = self.programs(dtype)
        self.prelude = None
        if prelude is not None:
            self.prelude = Kernel(
                f"{name}_prelude",
                prelude.inputs,
                prelude.outputs,
                dtype,
                lambda precision: _present(self.programs(precision)[0]),
            )
        self.main = Kernel(
            name, main.inputs, self.outputs, dtype, lambda precision: self.programs(precision)[1]
        )

        for part in ("whole", "prelude", "main"):
            if (kernel := getattr(self, part)) is not None:
                kernel.origin = (getattr, (self, part))

    @property
    def inputs(self) -> tuple[tuple[str, int], ...]:
        return (*self.states, *self.parameters)

    def __call__(self, *args: Any, out: Any = None, threads: int | None = None) -> Any:
        """The outputs; the prelude runs once per set of parameters given."""
        check_number(self.name, self.inputs, args)
        states, parameters = args[: len(self.states)], args[len(self.states) :]
        if self.prelude is None:
            result = self.main(*args[: len(self.main.inputs)], out=out, threads=threads)
        else:
            result = self.main(*states, self.prelude(*parameters), out=out, threads=threads)
        if self._connection is None and not targets.is_compiling():
            self._connect()
        return result

    def graph(self, *args: Any, out: Any = None) -> Any:
        """A call recorded as a CUDA graph, see ``Kernel.graph``; the prelude is part of every repetition."""
        check_number(self.name, self.inputs, args)
        return targets.parametric_graph(self, args, out)

    def _connect(self) -> None:
        """Let the interpreter call the machine code of both parts."""
        prelude = None if self.prelude is None else self.prelude.connect()
        main = self.main.connect()
        if main is not None and (prelude is not None or self.prelude is None):
            self._connection = dispatch.Connection(self, main, prelude, ParametricKernel.__call__)

    def programs(self, dtype: str | None = None) -> tuple[Program | None, Program]:
        """(prelude, main program)."""
        dtype = dtype or self.dtype
        if dtype not in self._split:
            program = self.whole.program(dtype)
            if not isinstance(program, Program):
                raise TraceError(f"{self.name} has too many links for parameters as inputs")
            self._split[dtype] = split(program, [name for name, _ in self.parameters])
        return self._split[dtype]

    @property
    def operations(self) -> Operations:
        """Operations per state; ``.prelude`` are those per set of parameters."""
        prelude, main = self.programs()
        return replace(main.operations, prelude=Operations() if prelude is None else prelude.operations)

    def content(self) -> tuple[Any, ...]:
        """Everything besides this package that decides the results: equal content, equal kernel."""
        return (*self.whole.content(), self.parameters)

    def jacobian(self, by: str) -> Kernel:
        """The derivative by a state input or by a parameter, as a kernel of all inputs."""
        return self.whole.jacobian(by)

    def vjp(self, *by: str) -> Kernel:
        """The gradient by states and parameters, as a kernel of all inputs: see ``Kernel.vjp``."""
        return self.whole.vjp(*by)

    def jvp(self, *by: str) -> Kernel:
        """The change along a direction of states and parameters, as a kernel of all inputs: see ``Kernel.jvp``."""
        return self.whole.jvp(*by)

    def explain(self, output: str | None = None, index: int | None = None) -> Explanation:
        """Which states and parameters an output depends on, and its cost alone, prelude included."""
        return self.whole.explain(output, index)

    def casadi(self, name: str | None = None, options: Mapping[str, Any] | None = None) -> Any:
        """A ``casadi.Function`` of the states and the parameters: see ``Kernel.casadi``."""
        return self.whole.casadi(name, options)

    def sympy(self, **options: Any) -> Any:
        """The output as a SymPy expression or Matrix in the states and the parameters."""
        return self.whole.sympy(**options)

    def latex(self, **options: Any) -> str:
        """The outputs as aligned LaTeX equations in the states and the parameters."""
        return self.whole.latex(**options)

    def source(self, target: str, **options: Any) -> str:
        """Source code of the prelude and of the main function, in this order."""
        prelude, main = self.programs()
        from linkwise.compiler.emit import source

        if prelude is None:
            return source(main, target, **options)
        return source(prelude, target) + "\n" + source(main, target, **options)

    def __repr__(self) -> str:
        states = ", ".join(f"{name} ({size})" for name, size in self.states)
        parameters = ", ".join(f"{name} ({size})" for name, size in self.parameters)
        return f"<Kernel {self.name}: {states}; parameters {parameters}; {self.dtype}>"


def _present(program: Program | None) -> Program:
    assert program is not None
    return program


def split(program: Program, parameters: Sequence[str]) -> tuple[Program | None, Program]:
    """Cut a program into what depends on parameters alone and the rest, which reads it as an input ``prelude``.

    A program with a loop is not cut: it takes the parameters itself.
    """
    outputs = [node for values in program.source_values for node in values]
    nodes = reachable(outputs)
    if any(node.op == "result" for node in nodes):  # what a loop reads cannot be exchanged: it stays whole
        return None, program
    states = {name: size for name, size in program.inputs if name not in parameters}
    given = {name: size for name, size in program.inputs if name in parameters}
    frontier = _frontier(nodes, outputs, _depending_only_on(nodes, set(parameters)))
    if not frontier:
        return None, _lowered(program, outputs, states)
    # a sign is free to apply afterwards, so the value without it is passed on
    passed = list(dict.fromkeys(_unsigned(node) for node in frontier))
    graph = passed[0].graph
    places = {node.index: graph.input(PRELUDE, k) for k, node in enumerate(passed)}
    signed = {node.index: graph.neg(places[_unsigned(node).index]) for node in frontier if node.op == "neg"}
    prelude = lower(
        {PRELUDE: ((len(passed),), passed)}, given, name=f"{program.name}_{PRELUDE}", dtype=program.dtype
    )
    main = substituted(outputs, places | signed)
    return prelude, _lowered(program, main, {**states, PRELUDE: len(passed)})


def _frontier(nodes: Sequence[Node], outputs: Sequence[Node], alone: set[int]) -> list[Node]:
    """Nodes that depend on parameters alone and are used by others, or are outputs."""
    found: dict[int, Node] = {}
    for node in nodes:
        if node.index not in alone:
            found.update({a.index: a for a in node.args if a.index in alone and a.op != "const"})
    found.update({n.index: n for n in outputs if n.index in alone and n.op != "const"})
    return list(found.values())


def _lowered(program: Program, outputs: Sequence[Node], inputs: dict[str, int]) -> Program:
    """The program with these nodes for its outputs and these inputs."""
    supply = iter(outputs)
    shaped = {
        name: (shape, [next(supply) for _ in values])
        for (name, shape), values in zip(program.outputs, program.source_values, strict=True)
    }
    return lower(shaped, inputs, name=program.name, dtype=program.dtype)


def _unsigned(node: Node) -> Node:
    return node.args[0] if node.op == "neg" else node


def _depending_only_on(nodes: Sequence[Node], parameters: set[str]) -> set[int]:
    alone: set[int] = set()
    for node in nodes:
        if node.op == "input":
            if node.value[0] in parameters:
                alone.add(node.index)
        elif node.op == "const" or (
            node.op not in ("phi", "result") and all(a.index in alone for a in node.args)
        ):
            alone.add(node.index)
    return alone
