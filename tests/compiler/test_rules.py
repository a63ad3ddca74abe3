"""Every rule keeps the value, and no rule makes a program dearer."""

import ast
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_programs import INPUTS, random_function, states

from linkwise.compiler.ir import interpret, operations, rules
from linkwise.compiler.ir.graph import Graph
from linkwise.compiler.ir.program import trace
from linkwise.compiler.ir.rules import (
    RULES,
    Rule,
    _applied,
    _by_operation,
    _look,
    _matches,
    simplify,
    total_cost,
)
from linkwise.compiler.ir.walks import reachable
from linkwise.scalar import cos, sin, stage, where, while_loop

FUNCTIONS = {"sin": np.sin, "cos": np.cos, "sqrt": np.sqrt, "abs": np.abs}


def letters(rule: Rule) -> list[str]:
    names = {node.id for node in ast.walk(ast.parse(rule.pattern)) if isinstance(node, ast.Name)}
    return sorted(names - set(FUNCTIONS))


class Constant:
    """Stands for a constant node where a rule's condition looks at its value."""

    def __init__(self, value):
        self.value = value


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.pattern} -> {rule.replacement}")
def test_rule_keeps_the_value(rule):
    rng = np.random.default_rng(1)
    checked = 0
    for quarters in range(1, 9):
        found = {name: rng.uniform(0.2, 3.0, 50) * rng.choice([-1.0, 1.0], 50) for name in letters(rule)}
        if rule.condition is not None:
            found["k"] = quarters * (math.pi / 2)
            if not rule.condition({"k": Constant(found["k"])}):
                continue
        before = eval(rule.pattern, dict(FUNCTIONS), found)
        after = eval(rule.replacement, dict(FUNCTIONS), found)
        np.testing.assert_allclose(after * np.ones(50), before, rtol=1e-12, atol=1e-12)
        checked += 1
    assert checked


# These save only where something else is known already.
NEED_COMPANY = {"(k*a)*b", "(k*a)*(l*b)", "a*a - b*b", "1 - cos(a)*cos(a)", "1 - sin(a)*sin(a)"}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.pattern} -> {rule.replacement}")
def test_rule_is_applied_to_its_pattern(rule):
    """However the graph orders constants and symbols, one of the rules for the expression fires."""
    functions = {"sin": sin, "cos": cos, "sqrt": lambda a: a.sqrt(), "abs": abs}
    fired = False
    for quarters in range(1, 9):
        for made_first in ("", "k", "l", "kl"):
            graph = Graph()
            constants = {"k": quarters * (math.pi / 2) if rule.condition else 0.75, "l": 1.25}
            constants |= {name: graph.const(constants[name]) for name in made_first}
            values = {
                name: constants[name] if name in constants else graph.input(name, 0) for name in letters(rule)
            }
            node = graph.lift(eval(rule.pattern, functions, values))
            node = node.args[0] if node.op == "neg" else node
            for row in _by_operation((rule,)).get(node.op, ()):
                new = _applied(graph, node, row, Counter())
                fired = fired or new is not None
            if rule.pattern not in NEED_COMPANY:
                assert total_cost(simplify([node])) < total_cost([node])
    assert fired or rule.pattern in NEED_COMPANY


def written(outputs):
    """Every operation of a graph in order, so that equal graphs have equal lists."""
    nodes = reachable(outputs)
    place = {node.index: k for k, node in enumerate(nodes)}
    rows = [(node.op, [place[a.index] for a in node.args], node.value, node.stage) for node in nodes]
    return rows, [place[node.index] for node in outputs]


def test_what_is_not_tried_would_save_nothing():
    """A rule that is skipped where a product is not known, and looks before matches, change no result."""
    everything = tuple(replace(rule, known=None) for rule in RULES)
    with_products = found = 0
    for seed in range(40):
        source = trace(random_function(seed, 60, smooth=True), INPUTS, {"out": (6,)}).source_values[0]
        assert written(simplify(source)) == written(simplify(source, everything))
        for node in reachable(source):
            for row in _by_operation(RULES).get(node.op, ()):
                matches = any(True for _ in _matches(row.pattern, node, {}))
                assert _look(row.pattern)(node) or not matches
                found += matches
                with_products += matches and row.known is not None
    assert found > 100
    assert with_products > 20
    assert counted(lambda a, b, c, d: [a * b, (2.0 * a) * b]) == (2, 0, 0, 0)
    assert counted(lambda a, b, c, d: [b * a, (2.0 * a) * b, (3.0 * b) * a]) == (3, 0, 0, 0)


def simplified(function, size=4):
    graph = Graph()
    outputs = [graph.lift(value) for value in function(*graph.inputs("x", size))]
    return simplify(outputs)


def counted(function, size=4):
    counts = operations.count(simplified(function, size))
    return counts.multiplications, counts.additions, counts.divisions, counts.trigonometric


def test_common_factors():
    assert counted(lambda a, b, c, d: [a * b + a * c]) == (1, 1, 0, 0)
    assert counted(lambda a, b, c, d: [(a * b + d) - a * c]) == (1, 2, 0, 0)
    assert counted(lambda a, b, c, d: [(a * b + d) + (a * c + a * d)]) == (1, 3, 0, 0)
    assert counted(lambda a, b, c, d: [-(a * b) - a * c]) == (1, 1, 0, 0)


def test_no_factoring_where_a_product_is_needed_anyway():
    assert counted(lambda a, b, c, d: [a * b + a * c, a * b]) == (2, 1, 0, 0)


def test_factoring_in_turn():
    """One factoring makes the products of the next: a(b + c)d + a(b + c)... in one go."""
    assert counted(lambda a, b, c, d: [(a * b) * d + (a * c) * d])[0] == 2


def test_sine_and_cosine():
    assert counted(lambda a, b, c, d: [sin(a) * sin(a) + cos(a) * cos(a)]) == (0, 0, 0, 0)
    assert counted(lambda a, b, c, d: [b * (sin(a) * sin(a)) + b * (cos(a) * cos(a))]) == (0, 0, 0, 0)
    half_pi = math.pi / 2
    assert counted(lambda a, b, c, d: [sin(a + half_pi), cos(a), cos(half_pi - a), sin(a - math.pi)])[3] == 2
    assert counted(lambda a, b, c, d: [sin(a + 1.5)])[:2] == (0, 1)


def test_divisions():
    assert counted(lambda a, b, c, d: [a / c + b / c]) == (0, 1, 1, 0)
    assert counted(lambda a, b, c, d: [a / 3.0]) == (1, 0, 0, 0)
    assert counted(lambda a, b, c, d: [(a / b) / c]) == (1, 0, 1, 0)


def test_squares_only_where_it_saves():
    assert counted(lambda a, b, c, d: [a * a - b * b]) == (2, 1, 0, 0)
    assert counted(lambda a, b, c, d: [a + b, a - b, a * a - b * b]) == (1, 2, 0, 0)


def test_constants_fold_across_operations():
    assert counted(lambda a, b, c, d: [(2.0 * a) * (3.0 * b)]) == (2, 0, 0, 0)
    assert counted(lambda a, b, c, d: [(a + 1.0) + 2.0]) == (0, 1, 0, 0)
    assert counted(lambda a, b, c, d: [1.0 - (a + 2.0)]) == (0, 1, 0, 0)


def test_conditions_that_are_known():
    graph = Graph()
    a, b = graph.inputs("x", 2)
    one, two = graph.const(1.0), graph.const(2.0)
    known = graph.compare("lt", one, two)
    (out,) = simplify([a * b + graph.select(known, a, b)])
    assert {node.op for node in reachable([out])} == {"input", "mul", "add"} or out.op in ("add", "mul")
    assert not any(node.op == "select" for node in reachable(simplify([graph.select(known, a / 3.0, b)])))


def test_stages_are_kept():
    def function(a, b, c, d):
        with stage("first"):
            product = a * b
        with stage("second"):
            return [product + a * c, d / 3.0]

    stages = operations.count(simplified(function)).by_stage
    assert set(stages) == {"first", "second"}
    assert stages["first"].multiplications == 1
    assert stages["second"].multiplications == 1
    assert sum(s.additions for s in stages.values()) == 1


def test_loops_are_simplified_inside():
    def function(a, b, c, d):
        return while_loop(lambda u: u < c, lambda u: (u * a + u * b + u,), (d,))

    counts = operations.count(simplified(function))
    assert (counts.multiplications, counts.additions) == (0, 1)  # a + b does not vary
    assert (counts.per_iteration.multiplications, counts.per_iteration.additions) == (1, 1)


def test_nothing_to_do_leaves_the_graph_alone():
    graph = Graph()
    a, b = graph.inputs("x", 2)
    outputs = [a * b + a, where(a < b, a, b)]
    assert simplify(outputs) == outputs


@given(seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_random_programs_get_cheaper_and_keep_their_value(seed):
    function = random_function(seed, 30, smooth=True)
    graph = Graph()
    outputs = [graph.lift(v) for v in function(graph.inputs("x", 3), graph.inputs("y", 2))]
    assert total_cost(simplify(outputs)) <= total_cost(outputs)
    program = trace(function, INPUTS, {"out": (6,)})
    for x, y in states(2, seed, special=False):
        x, y = np.tanh(x), np.tanh(y)
        wanted = np.array([float(value) for value in function(list(map(float, x)), list(map(float, y)))])
        scale = 1.0 + np.max(np.abs(wanted))
        if scale < 1e6:
            np.testing.assert_allclose(interpret.run(program, x, y)[0], wanted, rtol=1e-9, atol=1e-9 * scale)


@pytest.mark.parametrize(("op", "kept"), [("and", True), ("or", False)])
def test_constants_vanish_from_conditions_on_either_side(op, kept):
    graph = Graph()
    x, one = graph.inputs("x", 1)[0], graph.const(1.0)
    unknown = graph.make("lt", (graph.lift(x), one))
    for constant in (True, False):
        known = graph.make("lt", (graph.const(0.0), one) if constant else (one, graph.const(0.0)))
        for args in ((unknown, known), (known, unknown)):
            (found,) = simplify([graph.make("select", (graph.make(op, args), graph.lift(x), one))])
            if constant == kept:
                assert found.op == "select"
                assert found.args[0].op == "lt"
            else:
                assert found.op == ("input" if constant else "const")


def test_labels_of_formulas_have_indices_where_there_are_several():
    from linkwise.compiler.emit.formulas import _label

    symbols = {"tau": "\\tau", "qdd": "\\ddot q", "mass_matrix": "M", "inverse_mass_matrix": "W"}
    assert {name: _label(name, (), 0) for name in symbols} == symbols
    assert _label("tau", (2,), 0) != _label("tau", (2,), 1) != "\\tau"


def test_a_program_that_costs_nothing_takes_one_pass(monkeypatch):
    passes = []
    run = rules._Pass.run
    monkeypatch.setattr(rules._Pass, "run", lambda made: passes.append(1) or run(made))
    x, y = Graph().inputs("x", 2)
    assert [node.value for node in simplify([y, x, y])] == [("x", 1), ("x", 0), ("x", 1)]
    assert len(passes) == 1
