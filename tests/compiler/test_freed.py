"""Graphs and kernels that nothing uses any more are freed at once, without looking for garbage."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.ir.fuse import fuse
from linkwise.compiler.ir.graph import Graph
from linkwise.compiler.ir.program import trace
from linkwise.compiler.ir.walks import copy, rebuild
from linkwise.language import span, variable
from linkwise.robot.kernels import cheapest_recorded
from linkwise.scalar import while_loop


@pytest.fixture(autouse=True)
def without_collector():
    """References alone decide what lives."""
    enabled = gc.isenabled()
    gc.disable()
    yield
    if enabled:
        gc.enable()


def roots(x):
    """Newton's iteration inside another loop."""

    def refined(u, n):
        root, _ = while_loop(lambda v, k: k < n, lambda v, k: (0.5 * (v + x[0] / v), k + 1.0), (u, 0.0))
        return root, n + 1.0

    return [while_loop(lambda u, n: n < 4.0, refined, (x[0] + 1.0, 1.0))[0]]


def test_graphs_with_loops_are_freed_with_their_last_node():
    graph = Graph()
    values = roots(graph.inputs("x", 1))
    for make in (lambda nodes: rebuild(nodes, copy), fuse):
        again = make(values)
        known = weakref.ref(again[0].graph)
        loop = weakref.ref(again[0].graph.loops[0])
        assert known() is not None
        assert loop().following
        del again
        assert known() is None
        assert loop() is None


def test_the_program_of_a_loop_outlives_its_graph_and_its_names():
    program = trace(roots, {"x": 1}, {"root": (1,)})
    (region,) = [item for item in program.body if hasattr(item, "loop")]
    assert region.loop is region.loop.phi[0].graph.loops[region.number]
    graph = weakref.ref(program.values[0][0].graph)
    del program, region
    assert graph() is None


def test_a_finished_graph_knows_the_inputs_and_constants_that_are_used():
    graph = Graph()
    x = graph.input("x", 0)
    product = x * 2.5
    graph.finish()
    assert graph.input("x", 0) is x
    assert graph.const(2.5) is product.args[0]
    assert x * 2.5 is not product  # an operation is a new node
    assert graph.const(1.0) is graph.one
    assert graph.zero is graph.const(0.0)


def test_kernels_are_freed_after_calls():
    @lw.kernel(x=1)
    def root(x):
        return roots(x)

    @lw.kernel(x=20_000)
    def total(x):
        held = variable(0.0)
        for k in span(20_000):
            held.value = held.value + x[k] * x[k]
        return [held.value]

    assert root(np.array([9.0])) == pytest.approx(3.0)
    assert total(np.ones(20_000)) == pytest.approx(20_000.0)
    freed = [weakref.ref(root), weakref.ref(total)]
    programs = [weakref.ref(kernel.program("float64")) for kernel in (root, total)]
    del root, total
    assert [kernel() for kernel in freed] == [None, None]
    assert [program() for program in programs] == [None, None]


def test_what_was_recorded_for_other_choices_is_freed():
    graphs = []

    def recorded(choice):
        graph = Graph()
        graphs.append(weakref.ref(graph))
        x = graph.input("x", 0)
        return {"y": ((1,), [x * x * x * (x + 1.0) if choice else x * x])}

    choice, best = cheapest_recorded((True, False), recorded)
    assert choice is False
    assert graphs[0]() is None
    assert graphs[1]() is best["y"][1][0].graph
