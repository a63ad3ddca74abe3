"""Which products become part of fused multiply-adds."""

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from random_programs import INPUTS, random_function, states

from linkwise.compiler.ir import interpret
from linkwise.compiler.ir.fuse import fuse
from linkwise.compiler.ir.graph import Graph
from linkwise.compiler.ir.program import trace
from linkwise.compiler.ir.walks import reachable
from linkwise.scalar import sqrt, while_loop


def operations(function, size=6):
    """How often each operation is left after fusing."""
    graph = Graph()
    fused = fuse([graph.lift(value) for value in function(*graph.inputs("x", size))])
    counts = {}
    for node in reachable(fused):
        if node.op not in ("const", "input"):
            counts[node.op] = counts.get(node.op, 0) + 1
    return counts


def test_a_product_and_a_sum_become_one():
    assert operations(lambda a, b, c: [a * b + c], 3) == {"fma": 1}


def test_signs_go_onto_operands():
    assert operations(lambda a, b, c: [a * b - c], 3) == {"fma": 1, "neg": 1}
    assert operations(lambda a, b, c: [c - a * b], 3) == {"fma": 1, "neg": 1}
    assert operations(lambda a, b, c: [-(a * b) - c], 3) == {"fma": 1, "neg": 2}
    assert operations(lambda a, b, c: [-(a - b)], 3) == {"sub": 1}
    assert operations(lambda a, b, c: [-(2.0 * a)], 3) == {"mul": 1}


def test_a_sum_of_products_computes_one_of_them():
    assert operations(lambda a, b, c, d, e, f: [a * b + c * d + e * f]) == {"mul": 1, "fma": 2}
    assert operations(lambda a, b, c, d, e, f: [(a * b + c * d) + (e * f + a * d)]) == {"mul": 1, "fma": 3}


def test_a_sum_starts_with_what_is_not_a_product():
    assert operations(lambda a, b, c, d, e, f: [(a * b + c * d) + e]) == {"fma": 2}


def test_a_sum_ends_with_what_is_known_last():
    """A term waits for all operations before it, one after another, and not for its own alone."""

    def last_terms(function):
        graph = Graph()
        (found,) = fuse([function(*graph.inputs("x", 6))])
        return [arg.op for arg in found.args]

    # two divisions one after another take longer than a root, a root longer than one division
    assert last_terms(lambda a, b, c, d, e, f: (a / b) / c + sqrt(d))[-1] == "div"
    assert last_terms(lambda a, b, c, d, e, f: sqrt(d) + (a / b) / c)[-1] == "div"
    assert last_terms(lambda a, b, c, d, e, f: sqrt(d) + a / b)[-1] == "sqrt"
    assert last_terms(lambda a, b, c, d, e, f: a / b + sqrt(d))[-1] == "sqrt"
    # of a product that is absorbed, its factors count: those of the second one are known last
    assert last_terms(lambda a, b, c, d, e, f: sqrt(sqrt(d)) * e + a * b + c)[:2].count("sqrt") == 1


def test_a_product_that_is_needed_anyway_is_not_absorbed():
    assert operations(lambda a, b, c: [a * b + c, (a * b) / c], 3) == {"mul": 1, "add": 1, "div": 1}
    assert operations(lambda a, b, c: [a * b + c, a * b], 3) == {"mul": 1, "add": 1}


def test_a_product_in_several_sums_is_absorbed_by_all():
    assert operations(lambda a, b, c: [a * b + c, a * b - c], 3)["fma"] == 2
    assert "mul" not in operations(lambda a, b, c: [a * b + c, a * b - c], 3)


def test_a_product_added_to_itself():
    assert operations(lambda a, b: [a * b + a * b], 2) == {"mul": 1, "add": 1}


def test_invariant_products_stay_outside_a_loop():
    def function(a, b, c):
        return while_loop(lambda u: u < c, lambda u: (u + a * b,), (c,))

    assert operations(function, 3)["mul"] == 1


def test_the_choice_does_not_change():
    graph = Graph()
    outputs = [graph.lift(v) for v in random_function(5, 60)(graph.inputs("x", 3), graph.inputs("y", 2))]
    first, second = fuse(outputs), fuse(outputs)
    assert [(n.op, n.value, [a.index for a in n.args]) for n in reachable(first)] == [
        (n.op, n.value, [a.index for a in n.args]) for n in reachable(second)
    ]


@given(seed=st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_no_addition_is_left_that_could_absorb_a_product(seed):
    """A product with no other use than one addition is left only to start a sum of products."""
    program = trace(random_function(seed, 40), INPUTS, {"out": (6,)})
    nodes = list(program.nodes())
    uses = Counter(a.index for node in nodes for a in node.args)
    uses.update(node.index for node in program.values[0])
    for node in nodes:
        if node.op in ("add", "sub"):
            assert not any(a.op == "mul" and uses[a.index] == 1 for a in node.args)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_fusing_changes_rounding_only(seed):
    function = random_function(seed, 25, smooth=True)
    fused = trace(function, INPUTS, {"out": (6,)})
    plain = trace(function, INPUTS, {"out": (6,)}, fused=False)
    for x, y in states(2, seed, special=False):
        x, y = np.tanh(x), np.tanh(y)
        wanted = interpret.run(plain, x, y)[0]
        scale = 1.0 + np.max(np.abs(wanted))
        if scale < 1e6:
            np.testing.assert_allclose(interpret.run(fused, x, y)[0], wanted, rtol=1e-9, atol=1e-9 * scale)
