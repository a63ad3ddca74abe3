"""Ways through an expression graph: what outputs depend on, where loops are, and the same outputs made anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from linkwise.compiler.ir.graph import Graph, Loop, Node
from linkwise.scalar import current_stage


def carried(result: Node) -> Node:
    """The carried value that holds the result of a loop when the loop has ended."""
    _, k, loop = result.value
    return loop.phi[k]


def reachable(outputs: Iterable[Node]) -> list[Node]:
    """All nodes the outputs depend on, arguments first; a loop's result brings in its initial state and its body."""
    found: dict[int, Node] = {}
    stack = list(outputs)
    take, add = stack.pop, stack.extend
    while stack:
        node = take()
        index = node.index
        if index in found:
            continue
        found[index] = node
        if node.args:
            add(node.args)
        elif node.op == "result":
            loop: Loop = node.value[2]
            stack.extend(loop.initial)
            stack.extend(loop.phi)
            stack.extend(loop.following)
            if loop.active is not None:  # pyright: ignore[reportUnnecessaryComparison]  (while it is traced)
                stack.append(loop.active)
    return [found[k] for k in sorted(found)]


def loop_numbers(nodes: Iterable[Node]) -> tuple[dict[int, int], dict[int, int]]:
    """Where nodes belong: (node index -> innermost loop that it varies in, loop -> loop around it); -1 is no loop.

    ``nodes`` come arguments first, as ``reachable`` gives them. A node varies in a loop if it depends on one of its
    carried values; what does not vary in a loop can be computed before it. Inner loops have the higher numbers.
    """
    nodes = list(nodes)
    if "phi" not in {node.op for node in nodes}:
        return dict.fromkeys([node.index for node in nodes], -1), {}
    varies: dict[int, int] = {}  # a set of loops, as bits
    parent: dict[int, int] = {}
    for node in nodes:
        loops = 0
        for a in node.args:
            loops |= varies[a.index]
        if node.op == "phi":
            loops = 1 << node.value[0]
        elif node.op == "result":
            number, _, loop = _result(node)
            for a in (*loop.initial, loop.active, *loop.following):
                loops |= varies[a.index]
            loops &= ~(1 << number)
            parent[number] = loops.bit_length() - 1
        varies[node.index] = loops
    return {index: loops.bit_length() - 1 for index, loops in varies.items()}, parent


def rebuild(
    outputs: Iterable[Node],
    make: Callable[[Graph, Node, tuple[Node, ...]], Node],
    nodes: Iterable[Node] | None = None,
) -> list[Node]:
    """The outputs again in a new graph, every node made by ``make(graph, old node, its new arguments)``.

    Stages are kept. Loops are carried over here: ``make`` is never called for a ``phi`` or a ``result``. ``nodes`` is
    what the outputs depend on, where that is known already.
    """
    outputs = list(outputs)
    graph = Graph()
    image: dict[int, Node] = {}
    loops: dict[int, Loop] = {}  # number of an old loop -> new loop
    now = ""
    token = current_stage.set(now)
    try:
        for node in reachable(outputs) if nodes is None else nodes:
            if node.stage != now:
                now = node.stage
                current_stage.set(now)
            op = node.op
            if op == "const":
                new = graph.const(node.value)
            elif op == "input":
                new = graph.make(op, (), node.value)
            elif op == "phi":
                old, k = _carried(node)
                if old not in loops:
                    source = node.graph.loops[old]
                    loops[old] = graph.open_loop([image[a.index] for a in source.initial], source.uneven)
                new = loops[old].phi[k]
            elif op == "result":
                old, k, source = _result(node)
                loop = loops[old]
                if loop.active is None:  # pyright: ignore[reportUnnecessaryComparison]  (set below)
                    loop.active = image[source.active.index]
                    loop.following = [image[a.index] for a in source.following]
                new = graph.result(loop, k)
            else:
                args = node.args
                if len(args) == 2:
                    a, b = args
                    new = make(graph, node, (image[a.index], image[b.index]))
                else:
                    new = make(graph, node, tuple([image[a.index] for a in args]))
            image[node.index] = new
    finally:
        current_stage.reset(token)
    graph.finish()
    return [image[node.index] for node in outputs]


def _carried(node: Node) -> tuple[int, int]:
    """The number of the loop of a ``phi``, and the number of its carried value."""
    return node.value


def _result(node: Node) -> tuple[int, int, Loop]:
    """The number of the loop of a ``result``, the number of its carried value, and the loop."""
    return node.value


def copy(graph: Graph, node: Node, args: tuple[Node, ...]) -> Node:
    """For ``rebuild``: the same operation, exactly as given; values without the derivatives of others."""
    return args[0] if node.op == "like" else graph.make(node.op, args, node.value)
