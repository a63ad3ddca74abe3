"""Sums of many terms: which additions belong to one."""

from linkwise.compiler.ir.graph import Graph
from linkwise.compiler.ir.sums import Sums


def test_additions_that_are_used_once_are_one_sum():
    graph = Graph()
    a, b, c = graph.inputs("x", 3)
    sums = Sums([(a - b) - (c - a)])
    ((_, terms),) = sums.terms().items()
    assert sorted(node.value for node in terms) == sorted(x.value for x in (a, b, c, a))


def test_an_addition_that_is_used_twice_is_a_sum_of_its_own():
    graph = Graph()
    a, b, c = graph.inputs("x", 3)
    both = a + b
    assert len(Sums([both + c, both * c]).terms()) == 2


def test_a_sum_does_not_reach_into_a_loop():
    """a + b does not change in the loop: it is computed before it, once, and not in every turn."""
    graph = Graph()
    a, b, count = graph.inputs("x", 3)
    total, _ = graph.while_loop(
        lambda s, k: k < count, lambda s, k: (s + (a + b), k + 1.0), (graph.lift(0.0), graph.lift(0.0))
    )
    sums = Sums([total])
    before = [node for node in sums.nodes if node.op == "add" and sums.loop[node.index] == -1]
    assert len(before) == 1
    assert before[0].index not in sums.inner
    assert len(sums.terms()[before[0].index]) == 2
