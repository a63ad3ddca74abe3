"""What the graph settles when a node is made."""

import gc
import math

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms.kinematics import link_poses
from linkwise.compiler.ir.graph import Graph, Node
from linkwise.compiler.ir.program import lower
from linkwise.compiler.ir.walks import copy, loop_numbers, reachable, rebuild
from linkwise.errors import TraceError
from linkwise.functions.table import mechanism_of
from linkwise.scalar import cos, sin, stage, summed, traced_once, where, while_loop


@pytest.fixture
def graph():
    return Graph()


@pytest.fixture
def symbols(graph):
    return graph.inputs("x", 3)


def test_equal_expressions_are_one_node(symbols):
    a, b, _ = symbols
    assert a * b + a is a + b * a
    assert sin(a) is sin(a)
    assert (a < b) is (b > a)


def test_zeros_ones_and_constants_vanish(graph, symbols):
    a, _, _ = symbols
    assert a + 0.0 is a
    assert 1.0 * a is a
    assert a * 0.0 is graph.zero
    assert a - a is graph.zero
    assert 0.0 / a is graph.zero
    assert 2.0 * (3.0 * a) is 6.0 * a
    assert graph.const(2.0) * 3.0 is graph.const(6.0)
    assert (a / 4.0) is 0.25 * a
    assert (a / 1.0) is a
    assert graph.const(1.0) / 0.0 is graph.const(math.inf)


def test_functions_of_constants_are_numbers(graph):
    assert graph.unary("sqrt", graph.const(6.25)).value == 2.5
    assert graph.unary("sqrt", graph.const(0.0)).value == 0.0
    assert math.isnan(graph.unary("sqrt", graph.const(-4.0)).value)
    assert graph.unary("abs", graph.const(-2.0)).value == 2.0
    assert graph.unary("rint", graph.const(2.5)).value == 2.0
    assert graph.unary("rint", graph.const(math.inf)).value == math.inf


def test_signs_are_pulled_outwards(symbols):
    a, b, _ = symbols
    minus = -a
    assert -minus is a
    assert (-a) * (-b) is a * b
    assert (-a) * b is -(a * b)
    assert a + (-b) is a - b
    assert b - a is -(a - b)
    assert -2.0 * a is -(2.0 * a)
    assert sin(-a) is -sin(a)
    assert cos(-a) is cos(a)
    assert abs(-a) is abs(a)


def test_there_is_one_nan_and_one_zero(graph):
    assert graph.const(math.nan) is graph.const(float("nan"))
    assert math.isnan(graph.const(math.nan).value)
    assert math.copysign(1.0, graph.const(-0.0).value) == 1.0


def test_a_symbol_has_no_truth_value_and_is_no_number(symbols):
    a, b, _ = symbols
    with pytest.raises(TraceError, match="where"):
        bool(a < b)
    with pytest.raises(TraceError, match="not a number"):
        math.sin(a)
    with pytest.raises(TraceError, match="whole numbers and halves"):
        a**0.3
    with pytest.raises(TraceError, match="whole numbers and halves"):
        a**1000
    with pytest.raises(TraceError, match="expected a number"):
        a + "1"


def test_traces_do_not_mix(symbols):
    with pytest.raises(TraceError, match="different traces"):
        symbols[0] + Graph().input("x", 0)


def test_a_loop_carries_as_many_values_as_it_began_with(symbols):
    a, b, _ = symbols
    with pytest.raises(TraceError, match="2 values, it returned 1"):
        while_loop(lambda u, v: u < v, lambda u, v: (u,), (a, b))


def test_a_loop_carries_numbers_only(symbols):
    a, b, _ = symbols
    with pytest.raises(TraceError, match="numbers, not conditions"):
        while_loop(lambda u, v: u < 1.0, lambda u, v: (u + 1.0, u < 2.0), (a, b))


def test_nodes_remember_their_stage(symbols):
    a, b, _ = symbols
    with stage("outward"):
        product = a * b
    assert product.stage == "outward"
    assert (a + b).stage == ""
    assert rebuild([product], copy)[0].stage == "outward"


def test_reachable_lists_arguments_first(symbols):
    a, b, c = symbols
    out = where(a < b, a * b + c, sin(c))
    nodes = reachable([out])
    place = {node: k for k, node in enumerate(nodes)}
    assert all(place[argument] < place[node] for node in nodes for argument in node.args)
    assert a * a not in nodes


def test_loops_nest(symbols):
    a, b, c = symbols

    def outer(u, n):
        inner, _ = while_loop(lambda v, k: k < u, lambda v, k: (v * c, k + 1.0), (u, 0.0))
        return inner, n + b * c

    out, _ = while_loop(lambda u, n: n < 9.0, outer, (a, 0.0))
    nodes = reachable([out])
    innermost, parent = loop_numbers(nodes)
    assert parent == {0: -1, 1: 0}
    assert innermost[out.index] == -1
    assert innermost[(b * c).index] == -1  # does not vary in any loop
    phi = {node.value: node for node in nodes if node.op == "phi"}
    assert innermost[(phi[1, 0] * c).index] == 1
    assert innermost[(phi[0, 1] + b * c).index] == 0


def test_rebuild_copies_loops_too(symbols):
    a, b, _ = symbols
    out = while_loop(lambda u, n: n < b, lambda u, n: (n, u * b), (a, a + b))
    again = rebuild(out, copy)
    assert again[0].graph is not a.graph
    assert [node.op for node in reachable(again)] == [node.op for node in reachable(out)]
    loop = again[0].graph.loops[0]
    assert loop.active is not None
    assert len(loop.following) == len(loop.initial) == 2


def test_forget_unmakes_the_last_nodes(graph, symbols):
    a, b, _ = symbols
    before = graph.count
    product = a * b
    graph.forget(before)
    assert graph.count == before
    assert a * b is not product


def test_what_passes_leave_behind_is_freed_at_once():
    """Large robots have graphs of a million nodes, and each pass makes a new one."""

    def nodes():
        return sum(isinstance(thing, Node) for thing in gc.get_objects())

    graph = Graph()
    x = graph.inputs("x", 4)
    values = [*x]
    for k in range(300):
        values.append(values[-1] * values[-3] + values[k % 4].sin())
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        before = nodes()
        program = lower({"y": ((), [values[-1]])}, {"x": 4}, name="y")
        kept = len(reachable([value for column in program.values for value in column]))
        assert nodes() - before < kept + len(reachable(values)) / 10
    finally:
        if was_enabled:
            gc.enable()
    finished = program.values[0][0].graph
    known = {node.value[1]: node for node in reachable(program.values[0]) if node.op == "input"}
    assert all(finished.input("x", k) is node for k, node in known.items())


def test_sums_are_taken_in_their_order():
    """Without the compensation of Python's ``sum`` of floats, so that floats have the bits of compiled code."""
    numbers = [1e16, 1.0, -1e16, 0.1]
    assert summed(numbers) == ((1e16 + 1.0) - 1e16) + 0.1
    assert summed(x for x in numbers[:1]) == 1e16
    assert summed([]) == 0.0
    compiled = lw.kernel(x=4)(lambda x: [summed(x[k] for k in range(4))])
    assert float(compiled(np.array(numbers))[0]) == summed(numbers)


def test_traced_once():
    """The same symbols of one trace give the same result; a finished graph remembers nothing, and numbers never do."""
    graph, made = Graph(), []

    def make():
        made.append(len(made))
        return made[-1]

    x = graph.inputs("x", 2)
    assert [traced_once(("a",), x, make) for _ in range(2)] == [0, 0]
    assert traced_once(("b",), x, make) == 1
    assert traced_once(("a",), x[::-1], make) == 2
    assert traced_once(("a",), [x[0], 0.5], make) == 3
    assert [traced_once(("a",), [0.5], make) for _ in range(2)] == [4, 5]
    graph.finish()
    assert [traced_once(("a",), x, make) for _ in range(2)] == [6, 7]


def test_poses_of_links_are_traced_once():
    """And results may be changed without changing those of others."""
    links = mechanism_of(lw.load("panda"))
    q = Graph().inputs("q", 7)
    first = link_poses(links, q)
    wanted = first[3]
    first[3] = first[0]
    assert link_poses(links, q)[3] is wanted
