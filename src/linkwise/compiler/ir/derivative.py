"""Derivatives of a graph by its inputs, as more nodes of the same graph.

Forward mode follows each input to the outputs, reverse mode each output back to the inputs; both only touch nodes that
depend on the one and matter to the other. Which needs fewer operations depends on the function, so both are counted:
before they are made where the difference is large, else afterwards.
Second derivatives are derivatives of derivatives.
"""

# pyright: reportMatchNotExhaustive=false
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from linkwise.compiler.ir.graph import CONDITIONS, Graph, Node
from linkwise.compiler.ir.operations import total
from linkwise.compiler.ir.walks import reachable
from linkwise.errors import TraceError

FLAT = frozenset({"sign", "rint", *CONDITIONS})
"""Operations whose derivative is zero wherever there is one."""
_WITHOUT_PRODUCT = frozenset({"add", "sub", "neg", "like", "select"})
Partials = list[tuple[Node, Node]]  # (argument, derivative by it)
MANY_OPERATIONS = 5_000
"""From so many operations on, making a derivative only to count them takes longer than estimating their number."""
CLEARLY_FEWER = 0.8
"""An estimate below this part of the other one decides."""


def jacobian(outputs: Sequence[Node], inputs: Sequence[Node]) -> list[list[Node]]:
    """∂outputs/∂inputs, a row per output, in the mode that counts fewer operations."""
    if not outputs or not inputs:
        return [[] for _ in outputs]
    ahead, back = estimates(outputs, inputs)
    if max(ahead, back) > MANY_OPERATIONS:
        if ahead < CLEARLY_FEWER * back:
            return forward(outputs, inputs)
        if back < CLEARLY_FEWER * ahead:
            return reverse(outputs, inputs)
    modes = (forward(outputs, inputs), reverse(outputs, inputs))
    return min(modes, key=lambda rows: total([node for row in rows for node in row]))


def estimates(outputs: Sequence[Node], inputs: Sequence[Node]) -> tuple[int, int]:
    """How many operations forward and reverse mode add, where none of them is found twice or folded.

    Forward mode has a tangent for each input that a node depends on, reverse mode an adjoint for each output that
    depends on it. These sets are the bits of whole numbers.
    """
    nodes = _differentiated(outputs)
    depends_on: dict[int, int] = {}
    for k, node in enumerate(inputs):
        depends_on[node.index] = depends_on.get(node.index, 0) | 1 << k
    ahead = 0
    for node in nodes:
        if node.index in depends_on:
            continue
        known = 0
        for a in differentiable_arguments(node):
            new = depends_on.get(a.index, 0)
            ahead += (known & new).bit_count() + (node.op not in _WITHOUT_PRODUCT and new.bit_count())
            known |= new
        depends_on[node.index] = known
    matters_to: dict[int, int] = {}
    for k, node in enumerate(outputs):
        matters_to[node.index] = matters_to.get(node.index, 0) | 1 << k
    back = 0
    for node in reversed(nodes):
        new = matters_to.get(node.index, 0)
        for a in differentiable_arguments(node):
            if depends_on[a.index]:
                known = matters_to.get(a.index, 0)
                back += (known & new).bit_count() + (node.op not in _WITHOUT_PRODUCT and new.bit_count())
                matters_to[a.index] = known | new
    return ahead, back


def forward(outputs: Sequence[Node], inputs: Sequence[Node]) -> list[list[Node]]:
    """One pass per input, from it to the outputs."""
    graph = outputs[0].graph
    nodes = _differentiated(outputs)
    columns: list[list[Node]] = []
    for by in inputs:
        tangents: dict[int, Node] = {by.index: graph.one}
        for node in nodes:
            if not node.args or node.index in tangents:
                continue
            for a in _arguments(node):
                if a.index in tangents:
                    tangent = _tangent(graph, node, tangents)
                    if tangent is not graph.zero:
                        tangents[node.index] = tangent
                    break
        columns.append([tangents.get(output.index, graph.zero) for output in outputs])
    return [list(row) for row in zip(*columns, strict=True)]


def tangents(outputs: Sequence[Node], seeds: Mapping[Node, Node]) -> list[Node]:
    """How the outputs change along one direction, in which these inputs change as the seeds say."""
    graph = outputs[0].graph
    nodes = _differentiated(outputs)
    known = {node.index: tangent for node, tangent in seeds.items()}
    for node in nodes:
        if node.index in known or not any(a.index in known for a in _arguments(node)):
            continue
        tangent = _tangent(graph, node, known)
        if tangent is not graph.zero:
            known[node.index] = tangent
    return [known.get(output.index, graph.zero) for output in outputs]


def reverse(outputs: Sequence[Node], inputs: Sequence[Node]) -> list[list[Node]]:
    """One pass per output, back to the inputs."""
    graph = outputs[0].graph
    nodes = _differentiated(outputs)
    relevant = _depending_on(nodes, inputs)
    rows: list[list[Node]] = []
    for output in outputs:
        adjoints: dict[int, Node] = {output.index: graph.one}
        for node in reversed(nodes):
            adjoint = adjoints.get(node.index)
            if adjoint is None or node.index not in relevant or not node.args:
                continue
            for argument, part in _adjoint_parts(graph, node, adjoint):
                if argument.index in relevant and part is not graph.zero:
                    known = adjoints.get(argument.index)
                    adjoints[argument.index] = part if known is None else graph.add(known, part)
        rows.append(
            [adjoints.get(by.index, graph.zero) if by.index in relevant else graph.zero for by in inputs]
        )
    return rows


def _depending_on(nodes: Sequence[Node], inputs: Sequence[Node]) -> set[int]:
    found = {by.index for by in inputs}
    for node in nodes:
        if any(a.index in found for a in _arguments(node)):
            found.add(node.index)
    return found


def _arguments(node: Node) -> tuple[Node, ...]:
    """What the derivative of a node depends on."""
    if node.op != "like":
        return node.args
    other: Any = node.value
    return (node.graph.lift(other[0][other[1]]) if isinstance(other, tuple) else other,)


def differentiable_arguments(node: Node) -> tuple[Node, ...]:
    """Arguments by which a node has a derivative that is not always zero."""
    if node.op == "select":
        return node.args[1:]
    return () if node.op in FLAT else _arguments(node)


def _differentiated(outputs: Sequence[Node]) -> list[Node]:
    """The nodes that derivatives go through, arguments first."""
    found: dict[int, Node] = {}
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if node.index not in found:
            found[node.index] = node
            stack.extend(_arguments(node))
    nodes = [found[k] for k in sorted(found)]
    _refuse_loops(nodes)
    if any(node.op == "like" for node in nodes):
        return _after_their_arguments(nodes)
    return nodes


def _after_their_arguments(nodes: Sequence[Node]) -> list[Node]:
    """The same nodes, each after what its derivative depends on: that of ``like`` is often made later."""
    waiting = {node.index: sum(1 for _ in _arguments(node)) for node in nodes}
    users: dict[int, list[Node]] = {}
    for node in nodes:
        for a in _arguments(node):
            users.setdefault(a.index, []).append(node)
    ready = [node for node in reversed(nodes) if not waiting[node.index]]
    order: list[Node] = []
    while ready:
        node = ready.pop()
        order.append(node)
        for user in users.get(node.index, ()):
            waiting[user.index] -= 1
            if not waiting[user.index]:
                ready.append(user)
    return order


def _tangent(graph: Graph, node: Node, tangents: dict[int, Node]) -> Node:
    if node.op == "select":
        condition, a, b = node.args
        return graph.select(condition, tangents.get(a.index, graph.zero), tangents.get(b.index, graph.zero))
    total = graph.zero
    for argument, partial in _partials(graph, node):
        tangent = tangents.get(argument.index)
        if tangent is not None:
            total = graph.add(total, graph.mul(partial, tangent))
    return total


def _adjoint_parts(graph: Graph, node: Node, adjoint: Node) -> Partials:
    if node.op == "select":
        condition, a, b = node.args
        return [
            (a, graph.select(condition, adjoint, graph.zero)),
            (b, graph.select(condition, graph.zero, adjoint)),
        ]
    return [(argument, graph.mul(partial, adjoint)) for argument, partial in _partials(graph, node)]


def _partials(graph: Graph, node: Node) -> Partials:
    """The derivatives of one operation by its arguments. Conditions and signs have none."""
    one = graph.one
    match node.op:
        case "add":
            return [(node.args[0], one), (node.args[1], one)]
        case "sub":
            return [(node.args[0], one), (node.args[1], graph.const(-1.0))]
        case "neg":
            return [(node.args[0], graph.const(-1.0))]
        case "mul":
            a, b = node.args
            return [(a, b), (b, a)]
        case "div":
            a, b = node.args
            inverse = graph.div(one, b)
            return [(a, inverse), (b, graph.neg(graph.mul(node, inverse)))]
        case "sin":
            return [(node.args[0], node.args[0].cos())]
        case "cos":
            return [(node.args[0], -node.args[0].sin())]
        case "like":
            return [(_arguments(node)[0], one)]
        case "sqrt":
            return [(node.args[0], graph.div(graph.const(0.5), node))]
        case "abs":
            return [(node.args[0], node.args[0].sign())]
        case "atan2":
            y, x = node.args
            squared = y * y + x * x
            return [(y, x / squared), (x, -(y / squared))]
    if node.op in FLAT:
        return []
    raise TraceError(f"the operation {node.op!r} has no derivative")


def _refuse_loops(nodes: Sequence[Node]) -> None:
    if any(node.op in ("result", "phi") for node in nodes):
        raise TraceError(
            "a function with a data-dependent loop cannot be differentiated through the loop; "
            "differentiate the equation it solves instead (as forward_dynamics_derivatives does)"
        )


def substituted(outputs: Sequence[Node], replacements: dict[int, Node]) -> list[Node]:
    """The outputs with some nodes (by index) replaced by others of the same graph."""
    image = dict(replacements)
    for node in reachable(outputs):
        if node.index in image:
            continue
        args = tuple(image[a.index] for a in node.args)
        unchanged = all(new is old for new, old in zip(args, node.args, strict=True))
        image[node.index] = node if unchanged else remade(node.graph, node, args)
    return [image[output.index] for output in outputs]


def remade(graph: Graph, node: Node, args: tuple[Node, ...]) -> Node:
    """The same operation on other arguments, which are nodes of this graph, simplified."""
    match node.op:
        case "add" | "sub" | "mul" | "div" | "neg" | "sign" | "select":
            return getattr(graph, node.op)(*args)
        case "sin":
            return args[0].sin()
        case "cos":
            return args[0].cos()
        case "sqrt" | "abs":
            return graph.unary(node.op, *args)
    return graph.make(node.op, args, node.value)
