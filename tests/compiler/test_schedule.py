"""The order of a program."""

import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_programs import INPUTS, every_program, random_function

import linkwise as lw
from linkwise.compiler.ir import interpret
from linkwise.compiler.ir import schedule as orders
from linkwise.compiler.ir.graph import Graph
from linkwise.compiler.ir.program import trace
from linkwise.compiler.ir.schedule import LoopRegion, overlapped, schedule
from linkwise.compiler.kernel import Kernel
from linkwise.scalar import while_loop


def most_alive(body) -> int:
    """How many computed values are alive at once."""
    last = {a.index: place for place, node in enumerate(body) for a in node.args}
    alive, most = set(), 0
    for place, node in enumerate(body):
        alive.add(node.index)
        most = max(most, len(alive))
        alive = {index for index in alive if last.get(index, -1) > place}
    return most


@given(seed=st.integers(0, 10**6), size=st.integers(1, 120))
@settings(max_examples=40, deadline=None)
def test_arguments_come_first_and_nothing_comes_twice(seed, size):
    program = trace(random_function(seed, size), INPUTS, {"out": (6,)})
    seen = set()
    for node in program.nodes():
        assert node.index not in seen
        assert all(a.index in seen for a in node.args if a.op not in ("const", "input"))
        seen.add(node.index)


def greedy(count: int, may_follow, cost) -> list[int]:
    """Always the cheapest item that may come next, of several the first: every cost is counted anew."""
    order: list[int] = []
    while len(order) < count:
        ready = [place for place in range(count) if place not in order and may_follow(place, order)]
        order.append(min(ready, key=lambda place: cost(place, order)))
    return order


def test_costs_that_are_kept_up_to_date_are_those_that_a_count_gives():
    for seed in range(12):
        draw = np.random.default_rng(seed)
        uses = [sorted(set(draw.integers(0, k, min(k, 3)).tolist())) if k else [] for k in range(40)]
        users = orders._users(uses)

        def from_the_end(place, order, uses=uses):
            alive = {a for done in order for a in uses[done]}
            return len(set(uses[place]) - alive) - (place in alive), -place

        backward = greedy(40, lambda place, order, users=users: set(users[place]) <= set(order), from_the_end)
        given = backward[::-1]
        assert orders._backward(uses) == given

        def from_the_start(place, order, uses=uses, users=users, given=given):
            last = [a for a in uses[place] if len(set(users[a]) - set(order)) == 1]
            return bool(users[place]) - len(last), given.index(place)

        assert orders._forward(uses, given) == greedy(
            40, lambda place, order, uses=uses: set(uses[place]) <= set(order), from_the_start
        )


def test_a_long_sum_needs_few_registers():
    graph = Graph()
    x = graph.inputs("x", 64)
    products = [a * b for a, b in pairwise(x)]  # all of them are traced before the first addition
    total = products[0]
    for product in products[1:]:
        total = total + product
    assert most_alive(schedule([total])) <= 3


def reloads(body, registers: int = 16) -> int:
    """How often a value is read that is not among the last ones used; changes of sign are no values."""

    def unsigned(node):
        return unsigned(node.args[0]) if node.op == "neg" else node

    held, count = {}, 0
    for node in body:
        if node.op == "neg":
            continue
        for a in (unsigned(a) for a in node.args):
            if a.op not in ("const", "input"):
                count += held.pop(a.index, None) is None
                held[a.index] = True
        held[node.index] = True
        for oldest in list(held)[:-registers]:
            del held[oldest]
    return count


def test_changes_of_sign_need_no_register():
    """They are options of the instructions that use them; as values of their own they led to other orders."""
    program = lw.load("panda").kernel("forward_dynamics").program()
    values = [node for nodes in program.values for node in nodes]
    assert reloads(schedule(values)) < reloads(schedule(values, free_signs=False))


def test_a_balanced_tree_needs_few_registers():
    graph = Graph()
    level = [a * a for a in graph.inputs("x", 256)]
    while len(level) > 1:
        level = [a + b for a, b in zip(level[::2], level[1::2], strict=True)]
    assert most_alive(schedule(level)) <= 12  # log2(256) and a little


def test_outputs_do_not_wait_for_each_other():
    """Independent outputs are finished one after another."""
    graph = Graph()
    chains = []
    for a in graph.inputs("x", 20):
        value = a
        for k in range(10):
            value = (value * a + float(k + 2)) / (a + float(k))
        chains.append(value)
    assert most_alive(schedule(chains)) <= 5


def test_loops_are_regions():
    program = every_program("float64")
    (outer,) = [item for item in program.body if isinstance(item, LoopRegion)]
    (inner,) = [item for item in outer.body if isinstance(item, LoopRegion)]
    assert outer.number != inner.number
    assert any(node.op == "lt" for node in inner.body)


def test_the_condition_of_a_loop_comes_first():
    graph = Graph()
    a, b, c = graph.inputs("x", 3)
    out = while_loop(lambda u, n: u * u < n, lambda u, n: (u / b + c * u, n * 0.5 + u), (a, b))
    (region,) = schedule(list(out))
    place = region.body.index(region.loop.active)
    assert [node.op for node in region.body[: place + 1]] == ["mul", "lt"]


def test_what_does_not_vary_is_outside():
    graph = Graph()
    a, b, c = graph.inputs("x", 3)
    out = while_loop(lambda u: u < a * c, lambda u: (u * (b / c),), (a,))
    body = schedule(list(out))
    outside = {node.op for node in body if not isinstance(node, LoopRegion)}
    assert outside == {"mul", "div"}
    (region,) = [item for item in body if isinstance(item, LoopRegion)]
    assert body[-1] is region
    assert [node.op for node in region.body] == ["lt", "mul", "select"]


def test_a_loop_waits_for_what_its_body_reads():
    graph = Graph()
    a, b, c = graph.inputs("x", 3)
    (first,) = while_loop(lambda u: u < c, lambda u: (u + b,), (a,))
    (second,) = while_loop(lambda u: u < first / b, lambda u: (u * first,), (c,))
    regions = [item for item in schedule([second]) if isinstance(item, LoopRegion)]
    assert [region.number for region in regions] == [0, 1]


@pytest.mark.parametrize("shape", ["wide", "long"])
def test_time_grows_gently(shape):
    """Twenty thousand operations in far less than the ten seconds that a quadratic method would take."""
    graph = Graph()
    values = graph.inputs("x", 50)
    while graph.count < 20_000:
        k = graph.count % (len(values) - 40 if shape == "wide" else 10)
        values.append(values[-1 - k] * values[-2 - k] + values[-30])
    start = time.thread_time()
    body = schedule(values[-50:])
    assert len(body) > 5_000
    assert time.thread_time() - start < 4.0


def chains(count: int, length: int):
    """Divisions that wait for each other, with a loop between them."""

    def computed(x):
        found = []
        for k in range(count):
            y = x[k]
            for step in range(length):
                y = 1.0 / (y + (1.0 + 0.01 * step + k))
            found.append(y)
        turned = while_loop(
            lambda n, *_: n < 3.0, lambda n, *ys: (n + 1.0, *(y * n for y in ys)), (x[0] * 0.0, *found)
        )
        return [y + z for y, z in zip(turned[1:], reversed(found), strict=True)]

    return computed


def cycles(body, window: int) -> int:
    uses = orders._dependencies(body, orders._read_by_loops(body))
    return orders._issued(uses, [0 if isinstance(item, LoopRegion) else 14 for item in body], window)[1]


def test_chains_that_wait_are_computed_side_by_side():
    program = trace(chains(8, 100), {"x": 8}, {"out": (8,)})
    found = overlapped(program.body)
    assert {id(item) for item in found} == {id(item) for item in program.body}
    assert len(found) == len(program.body)
    places = {orders._number(item): place for place, item in enumerate(found)}
    for place, used in enumerate(orders._dependencies(found, orders._read_by_loops(found))):
        assert all(a < place for a in used), "an argument comes later"
    assert len(places) == len(found)
    assert cycles(found, 32) < 0.5 * cycles(program.body, 32)


def test_orders_in_which_nothing_waits_stay():
    short = trace(chains(2, 100), {"x": 2}, {"out": (2,)})
    assert overlapped(short.body) is short.body
    wide = trace(lambda x: [a * (a + k) for k in range(60) for a in x], {"x": 20}, {"out": (1200,)})
    assert overlapped(wide.body) is wide.body


def test_batches_in_another_order_have_the_bits_of_the_interpreter():
    program = trace(chains(8, 100), {"x": 8}, {"out": (8,)})
    kernel = Kernel("chains", program.inputs, program.outputs, "float64", lambda _: program)
    x = np.random.default_rng(0).normal(size=(37, 8))
    assert kernel(x).tobytes() == np.array([interpret.run(program, row)[0] for row in x]).tobytes()
