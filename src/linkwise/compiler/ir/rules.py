"""Rewriting that saves operations: a table ``pattern -> replacement`` and the factoring of sums.

Patterns are written as the formulas they mean. Equal letters stand for equal expressions; k, l, m, n stand
for constants. Sums and products match in either order. A rule is applied where it makes the program cheaper:
what it removes (operations that nothing else uses) must weigh more than what it adds (operations that do not
exist yet). So a rule needs no conditions about sharing: ``a*a - b*b -> (a - b)*(a + b)`` fires where a - b or
a + b is known already.

Rules keep the value in exact arithmetic wherever the pattern has one, up to overflow; rounding may differ.
"""

# pyright: reportMatchNotExhaustive=false
from __future__ import annotations

import ast
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from linkwise.compiler.ir.graph import Graph, Node
from linkwise.compiler.ir.sums import SUMS, Sums, Term
from linkwise.compiler.ir.walks import copy, reachable, rebuild
from linkwise.scalar import stage

# Additions and multiplications are what the papers count. A division costs several of them, a sine about
# twenty.
COST = {
    "const": 0.0, "input": 0.0, "phi": 0.0, "result": 0.0, "neg": 0.01,
    "add": 1.0, "sub": 1.0, "mul": 1.0, "div": 4.0, "sqrt": 4.0, "sin": 20.0, "cos": 20.0, "atan2": 40.0,
}  # fmt: skip
COST_OF_LOGIC = 0.1
MOST_PASSES = 12
WORTH_A_PASS = 1e-3  # the part of the cost that a pass must save for another one to follow

Uses = defaultdict[int, int]  # index of a node -> how often it is used
Found = dict[str, Node]  # letter of a pattern -> the node it stands for


@dataclass(frozen=True)
class Rule:
    """One line of the table."""

    pattern: str
    replacement: str
    condition: Callable[[Found], bool] | None = None
    known: str | None = None
    """A product that must exist already, else the rule saves nothing and is not tried."""


def _quarter_turns() -> Iterator[Rule]:
    """Sine and cosine of an angle and a multiple of π/2: those of the angle alone can be shared, and are
    exact.
    """
    sine = ("sin(a)", "cos(a)", "-sin(a)", "-cos(a)")
    cosine = ("cos(a)", "-sin(a)", "-cos(a)", "sin(a)")
    for quarters in range(4):

        def condition(found: Found, quarters: int = quarters) -> bool:
            k = found["k"].value
            turns = round(k / (math.pi / 2)) if math.isfinite(k) else 0
            return turns != 0 and k == turns * (math.pi / 2) and turns % 4 == quarters

        yield Rule("sin(a + k)", sine[quarters], condition)
        yield Rule("sin(a - k)", sine[-quarters], condition)
        yield Rule("sin(k - a)", f"-({sine[-quarters]})", condition)
        yield Rule("cos(a + k)", cosine[quarters], condition)
        yield Rule("cos(a - k)", cosine[-quarters], condition)
        yield Rule("cos(k - a)", cosine[-quarters], condition)


RULES = (
    # -- constants move together, where they fold
    Rule("(k*a)*b", "k*(a*b)", known="a*b"),
    Rule("(k*a)*(l*b)", "(k*l)*(a*b)"),
    Rule("(k + a) + l", "a + (k + l)"),
    Rule("(k - a) + l", "(k + l) - a"),
    Rule("(a - k) + l", "a + (l - k)"),
    Rule("(k + a) - l", "a + (k - l)"),
    Rule("(k - a) - l", "(k - l) - a"),
    Rule("(a - k) - l", "a - (k + l)"),
    Rule("l - (k + a)", "(l - k) - a"),
    Rule("l - (k - a)", "(l - k) + a"),
    Rule("l - (a - k)", "(l + k) - a"),
    Rule("k*a + l*a", "(k + l)*a"),
    Rule("k*a - l*a", "(k - l)*a"),
    # -- squares
    Rule("cos(a)*cos(a) + sin(a)*sin(a)", "1"),
    Rule("1 - cos(a)*cos(a)", "sin(a)*sin(a)"),  # saves where the sine is known, and does not cancel
    Rule("1 - sin(a)*sin(a)", "cos(a)*cos(a)"),
    Rule("a*a - b*b", "(a - b)*(a + b)"),
    Rule("abs(a)*abs(a)", "a*a"),
    Rule("sqrt(a*a)", "abs(a)"),
    # -- division is slow
    Rule("a/k", "(1/k)*a"),
    Rule("a/c + b/c", "(a + b)/c"),
    Rule("a/c - b/c", "(a - b)/c"),
    Rule("(a/b)/c", "a/(b*c)"),
    Rule("a/(b/c)", "(a*c)/b"),
    *_quarter_turns(),
)


def simplify(outputs: Sequence[Node], rules: Sequence[Rule] = RULES) -> list[Node]:
    """The outputs at a lower cost, or as they are where no rule helps. Stages are kept."""
    return simplified_nodes(outputs, reachable(outputs), rules)[0]


def simplified_nodes(
    outputs: Sequence[Node], nodes: list[Node], rules: Sequence[Rule] = RULES
) -> tuple[list[Node], list[Node]]:
    """As ``simplify``, for outputs that depend on ``nodes``; and what the new outputs depend on."""
    best = list(outputs)
    if any(node.op == "like" for node in nodes):
        best = rebuild(best, copy, nodes)
        nodes = reachable(best)
    cost = _total_cost(nodes)
    for _ in range(MOST_PASSES):
        candidate = _Pass(best, nodes, rules).run()
        new_nodes = reachable(candidate)
        new_cost = _total_cost(new_nodes)
        saved = cost - new_cost
        if saved > 1e-6:
            best, nodes, cost = candidate, new_nodes, new_cost
        if saved <= WORTH_A_PASS * cost:
            break
    return best, nodes


def total_cost(outputs: Iterable[Node]) -> float:
    return _total_cost(reachable(outputs))


def _total_cost(nodes: list[Node]) -> float:
    return sum([COST.get(node.op, COST_OF_LOGIC) for node in nodes])


def _cost(node: Node) -> float:
    return COST.get(node.op, COST_OF_LOGIC)


class _Pass:
    """One pass over the graph, arguments first, so that what one rule leaves is seen by the next."""

    def __init__(self, outputs: Sequence[Node], nodes: list[Node], rules: Sequence[Rule]):
        self.table = _by_operation(tuple(rules))
        self.fitting = _fitting(tuple(rules))
        self.sums = Sums(outputs, nodes)
        self.terms: dict[int, list[Term]] = {}  # of inner additions, until the whole sum is made
        self.uses: Uses = defaultdict(int)  # of the new nodes, by the old ones that they stand for

    def run(self) -> list[Node]:
        return rebuild(self.sums.outputs, self.make, self.sums.nodes)

    def make(self, graph: Graph, node: Node, args: tuple[Node, ...]) -> Node:
        op, index = node.op, node.index
        known = _ARITHMETIC.get(op)
        new = plain = known(graph, *args) if known else make_simplified(graph, op, args, node.value)
        if op in SUMS:
            inner = self.sums.inner
            if index in inner:
                self.terms[index] = self.sums.gather(node, args, self.terms)
            elif _may_factor(node, args, inner):
                shorter = factored(graph, self.sums.gather(node, args, self.terms), self.uses)
                new = new if shorter is None else shorter
        if new.op in self.table:
            new = self.rewritten(graph, new)
        if new is not plain:
            self.terms.pop(index, None)
        self.uses[new.index] += self.sums.uses[index]
        return new

    def rewritten(self, graph: Graph, node: Node) -> Node:
        args = node.args
        operations = (node.op, args[0].op, args[1].op) if len(args) == 2 else (node.op, args[0].op)
        fitting = self.fitting.get(operations)
        if fitting is None:
            fitting = self.fitting[operations] = [
                (_look(row.pattern), row) for row in self.table[node.op] if _may_fit(row.pattern, operations)
            ]
        for fits, row in fitting:
            if fits(node):
                better = _applied(graph, node, row, self.uses)
                if better is not None:
                    return better
        return node


# -- the table ---------------------------------------------------------------------------------------------


def _applied(graph: Graph, node: Node, row: _Row, uses: Uses) -> Node | None:
    """The replacement, if the pattern matches and it saves something."""
    for found in _matches(row.pattern, node, {}):
        if row.condition is not None and not row.condition(found):
            continue
        if row.known is not None and not _is_known(graph, row.known, found):
            continue
        before = graph.count
        new = _built(graph, row.replacement, found)
        added = sum(_cost(n) for n in _newer_than(before, new))
        removed = sum(_cost(n) for n in _removed(row.pattern, node, set(found.values()), uses))
        if added < removed - 1e-6:
            return new
        graph.forget(before)
    return None


def _is_known(graph: Graph, product: tuple[str, str, str], found: Found) -> bool:
    op, *letters = product
    a, b = sorted([found[letter] for letter in letters], key=lambda node: node.index)
    return graph.known(op, (a, b)) is not None


def _removed(pattern: Any, node: Node, kept: set[Node], uses: Uses) -> set[Node]:
    """The matched operations that nothing else uses: the node itself, and below it those that only it uses.

    ``kept``: what the letters stand for.
    """
    gone = {node}
    for a in node.args:
        if a not in kept and uses[a.index] <= node.args.count(a):
            for part in pattern[1:]:
                if isinstance(part, tuple) and part[0] == a.op:
                    gone |= _removed(part, a, kept, uses)
                    break
    return gone


def _newer_than(before: int, node: Node) -> set[Node]:
    found: set[Node] = set()
    stack = [node]
    while stack:
        node = stack.pop()
        if node.index >= before and node not in found:
            found.add(node)
            stack.extend(node.args)
    return found


def _may_fit(pattern: tuple[Any, ...], operations: tuple[str, ...]) -> bool:
    """Whether a pattern can fit a node with this operation, whose arguments have these."""
    parts, args = pattern[1:], operations[1:]
    fits = all(map(_is_operation, parts, args))
    return fits or (pattern[0] in _COMMUTATIVE and all(map(_is_operation, parts, args[::-1])))


def _is_operation(pattern: Any, op: str) -> bool:
    if isinstance(pattern, (str, float)):
        return op == "const" or (isinstance(pattern, str) and pattern not in _CONSTANTS)
    return bool(pattern[0] == op)


@cache
def _look(pattern: Any) -> Callable[[Node], bool]:
    """Whether the operations below a node are those of the pattern, and equal letters of one operation the same node:
    a quick look before a match."""
    return eval(f"lambda node: {_looked(pattern, 'node')}")


def _looked(pattern: Any, node: str) -> str:
    """The source of such a look; ``node`` is how the node is spelled."""
    if isinstance(pattern, str):
        return f"{node}.op == 'const'" if pattern in _CONSTANTS else "True"
    if isinstance(pattern, float):
        return f"{node}.op == 'const' and {node}.value == {pattern!r}"
    op, *parts = pattern
    orders = [parts, parts[::-1]] if op in _COMMUTATIVE and parts[0] != parts[-1] else [parts]
    each = (
        " and ".join(f"({_looked(part, f'{node}.args[{k}]')})" for k, part in enumerate(order))
        for order in orders
    )
    looked = f"{node}.op == {op!r} and ({' or '.join(each)})"
    if len(parts) == 2 and parts[0] == parts[1] and isinstance(parts[0], str):
        looked += f" and {node}.args[0] is {node}.args[1]"
    return looked


def _matches(pattern: Any, node: Node, found: Found) -> Iterator[Found]:
    """All ways to read the node as the pattern, given what is found already."""
    if isinstance(pattern, str):
        known = found.get(pattern)
        if known is None:
            if pattern not in _CONSTANTS or node.op == "const":
                yield {**found, pattern: node}
        elif known is node:
            yield found
        return
    if isinstance(pattern, float):
        if node.op == "const" and node.value == pattern:
            yield found
        return
    op, *parts = pattern
    if node.op != op:
        return
    if len(parts) == 1:
        yield from _matches(parts[0], node.args[0], found)
        return
    first, second = node.args
    for partly in _matches(parts[0], first, found):
        yield from _matches(parts[1], second, partly)
    if op in _COMMUTATIVE and first is not second:
        for partly in _matches(parts[0], second, found):
            yield from _matches(parts[1], first, partly)


def _built(graph: Graph, pattern: Any, found: Found) -> Node:
    if isinstance(pattern, str):
        return found[pattern]
    if isinstance(pattern, float):
        return graph.const(pattern)
    op, *parts = pattern
    return make_simplified(graph, op, tuple(_built(graph, part, found) for part in parts))


# -- reading the table -------------------------------------------------------------------------------------

_CONSTANTS = frozenset("klmn")
_COMMUTATIVE = frozenset({"add", "mul"})
_OPERATORS: dict[type[ast.operator], str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}


class _Row(NamedTuple):
    """A rule with its formulas as trees."""

    pattern: Any
    replacement: Any
    condition: Callable[[Found], bool] | None
    known: tuple[str, str, str] | None


@cache
def _fitting(rules: tuple[Rule, ...]) -> dict[tuple[str, ...], list[tuple[Callable[[Node], bool], _Row]]]:
    """The rows of the table that may fit a node, by its operation and those of its arguments; filled when needed."""
    return {}


@cache
def _by_operation(rules: tuple[Rule, ...]) -> dict[str, list[_Row]]:
    """By the operation that is replaced."""
    table: dict[str, list[_Row]] = {}
    for rule in rules:
        pattern = _parsed(rule.pattern)
        known = None if rule.known is None else _parsed(rule.known)
        row = _Row(pattern, _parsed(rule.replacement), rule.condition, known)
        table.setdefault(str(pattern[0]), []).append(row)
    return table


def _parsed(text: str) -> Any:
    """A formula as (operation, argument, ...); a letter is a string and a number a float."""
    return _tree(ast.parse(text, mode="eval").body)


def _tree(node: ast.expr) -> Any:
    match node:
        case ast.BinOp(left, op, right):
            return _OPERATORS[type(op)], _tree(left), _tree(right)
        case ast.UnaryOp(ast.USub(), operand):
            return "neg", _tree(operand)
        case ast.Call(ast.Name(name), args):
            return name, *map(_tree, args)
        case ast.Name(name):
            return name
        case ast.Constant(value):
            return float(value)  # type: ignore[arg-type]
    raise ValueError(f"a rule cannot contain {ast.dump(node)}")


# -- making nodes again, with all that the graph simplifies by itself --------------------------------------


_ARITHMETIC = {"add": Graph.add, "sub": Graph.sub, "mul": Graph.mul, "div": Graph.div, "neg": Graph.neg}


def make_simplified(graph: Graph, op: str, args: tuple[Node, ...], value: Any = None) -> Node:
    if op in _ARITHMETIC:
        return _ARITHMETIC[op](graph, *args)
    if op in ("sqrt", "abs"):
        return graph.unary(op, *args)
    if op == "sin":
        return graph.odd_function(op, *args)
    if op == "cos":
        return graph.even_function(op, *args)
    if op == "atan2":
        return graph.atan2(*args)
    if op == "not" and args[0].op == "not":
        return args[0].args[0]
    if op in ("and", "or"):
        for known, other in (args, args[::-1]):
            truth = _truth(known)
            if truth is not None:
                return other if truth == (op == "and") else known
    if op == "select":
        condition, a, b = args
        truth = _truth(condition)
        if truth is not None:
            return a if truth else b
        if condition.op == "not":  # where(not c, a, b) -> where(c, b, a)
            return graph.select(condition.args[0], b, a)
        return graph.select(condition, a, b)
    return graph.make(op, args, value)


def _truth(condition: Node) -> bool | None:
    """Whether a comparison of two constants holds; None for other conditions."""
    if condition.op in ("lt", "le", "eq") and all(a.op == "const" for a in condition.args):
        a, b = (argument.value for argument in condition.args)
        return {"lt": a < b, "le": a <= b, "eq": a == b}[condition.op]
    return None


# -- factoring ---------------------------------------------------------------------------------------------


def factored(graph: Graph, terms: list[Term], uses: Uses) -> Node | None:
    """a*b + ... + a*c -> ... + a*(b + c) in a sum of any length, for products that nothing else uses; None if
    there are none. Every factoring saves a multiplication.
    """
    grouped: list[Term] = []
    while (factor := _common_factor(terms, uses)) is not None:
        products = [term for term in terms if _is_own_product(term, uses) and factor in term.new.args]
        cofactors = [term._replace(new=_cofactor(term.new, factor)) for term in products]
        with stage(products[0].old.stage):
            product = graph.mul(factor, _sum(graph, cofactors))
        grouped.append(products[0]._replace(sign=1, new=product))
        terms = [term for term in terms if term not in products]
    return _sum(graph, terms + grouped) if grouped else None


def _may_factor(node: Node, args: tuple[Node, ...], inner: set[int]) -> bool:
    """Whether a sum can have several products among its terms."""
    a, b = node.args
    return a.index in inner or b.index in inner or (args[0].op == "mul" and args[1].op == "mul")


def _common_factor(terms: Iterable[Term], uses: Uses) -> Node | None:
    """What most products have in common; of several the one made last, which has the most in it."""
    products = [term.new for term in terms if _is_own_product(term, uses)]
    if len(products) < 2:
        return None
    factors: dict[Node, int] = {}
    repeated: dict[Node, int] = {}
    for product in products:
        a, b = product.args
        for factor in (a,) if a is b else (a, b):
            if factor in factors:
                factors[factor] += 1
                repeated[factor] = factors[factor]
            else:
                factors[factor] = 1
    return max(repeated, key=lambda factor: (repeated[factor], factor.index), default=None)


def _is_own_product(term: Term, uses: Uses) -> bool:
    return term.new.op == "mul" and uses[term.new.index] == 1


def _cofactor(product: Node, factor: Node) -> Node:
    first, second = product.args
    return second if first is factor else first


def _sum(graph: Graph, terms: list[Term]) -> Node:
    """The terms one after another, beginning with a positive one if there is one."""
    terms = sorted(terms, key=lambda term: -term.sign)
    if terms[0].sign < 0:
        return graph.neg(_sum(graph, [term._replace(sign=1) for term in terms]))
    value = terms[0].new
    for term in terms[1:]:
        with stage(term.stage):
            value = graph.add(value, term.new) if term.sign > 0 else graph.sub(value, term.new)
    return value
