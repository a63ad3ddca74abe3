"""Formulas in a study, such as ``max(abs(tau) / effort_limit) > 1``: parsed, never executed as Python.

An expression consists of names, numbers, arithmetic, comparisons, ``and or not``, ``a if c else b``, indices, and the
functions listed below. It is evaluated over abstract scalars and arrays of them, so it becomes part of a kernel.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from linkwise import scalar
from linkwise.compiler.ir.graph import CONDITIONS, Node
from linkwise.errors import suggest
from linkwise.study.errors import StudyError
from linkwise.study.sampling import special

MOST_NESTED = 400  # levels that may be walked over by recursion, far below Python's limit
Value = Any  # a number, a symbol, or an object array of them


@dataclass(frozen=True)
class Expression:
    """A parsed formula: its text and the names that it uses."""

    text: str
    where: str
    names: tuple[str, ...]
    tree: ast.expr

    def value(self, known: Mapping[str, Value]) -> Value:
        """The value for these names; a condition is 1 or 0."""
        result = _Evaluation(self, known).of(self.tree)
        return _each(_as_number, result)


def parse(text: str, where: str) -> Expression:
    """The expression of a text; ``where`` names the entry in errors."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise StudyError(f"{where}: {_quotation(text)} is not a formula ({error.msg})") from None
    except ValueError as error:  # a null character, a number of thousands of digits
        raise StudyError(f"{where}: {_quotation(text)} is not a formula ({error})") from None
    except (RecursionError, MemoryError):
        tree = None
    if tree is None or _depth(tree) > MOST_NESTED:
        raise StudyError(
            f"{where}: {_quotation(text)} is nested deeper than {MOST_NESTED} levels (each term of a sum is one); "
            "compute parts of it under names of their own"
        )
    names: dict[str, None] = {}
    _collect(tree, names, text, where)
    return Expression(text, where, tuple(names), tree)


def _quotation(text: str) -> str:
    """The text as messages quote it."""
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def _depth(tree: ast.AST) -> int:
    """How deep the tree is nested, found without recursion."""
    deepest, level = 0, [tree]
    while level:
        deepest += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return deepest


def _collect(node: ast.AST, names: dict[str, None], text: str, where: str) -> None:
    """The names used, and a refusal of everything that is not part of the language."""
    if isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
            raise StudyError(
                f"{where}: no function {ast.unparse(node.func)!r}; {suggest(ast.unparse(node.func), FUNCTIONS)}"
            )
        if node.keywords:
            raise StudyError(f"{where}: functions take no named arguments here")
        for argument in node.args:
            _collect(argument, names, text, where)
        return
    if isinstance(node, (ast.Name, ast.Attribute)):
        names[_dotted_name(node, where)] = None
        return
    if not isinstance(node, _ALLOWED) or (isinstance(node, ast.Constant) and not _is_number(node.value)):
        raise StudyError(
            f"{where}: {_quotation(text)} has something that is not allowed: {ast.unparse(node)}"
        )
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context)):
            _collect(child, names, text, where)


_ALLOWED = (
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Constant),
    *(ast.Subscript, ast.Slice, ast.Tuple),
)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, complex)


def _dotted_name(node: ast.AST, where: str) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted_name(node.value, where)}.{node.attr}"
    raise StudyError(f"{where}: expected a name, got {ast.unparse(node)}")


class _Evaluation:
    """Walks over the tree of an expression."""

    def __init__(self, expression: Expression, known: Mapping[str, Value]):
        self.expression, self.known = expression, known

    def of(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=bool(value)):
                return value
            case ast.Constant(value=int(value) | float(value)):
                return float(value)
            case ast.Name() | ast.Attribute():
                return self.known[_dotted_name(node, self.expression.where)]
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return self._power(self.of(left), right)
            case ast.BinOp(left=left, op=op, right=right):
                if type(op) not in _ARITHMETIC:
                    raise self._fail(f"the operator in {ast.unparse(node)} is not allowed")
                return _each(_ARITHMETIC[type(op)], self.of(left), self.of(right))
            case ast.UnaryOp(op=op, operand=operand):
                return (
                    _each(_UNARY[type(op)], self.of(operand)) if type(op) in _UNARY else self._fail_with(node)
                )
            case ast.BoolOp(op=op, values=values):
                combine = operator.and_ if isinstance(op, ast.And) else operator.or_
                return reduce(lambda a, b: _each(combine, a, b), [self.of(value) for value in values])
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                return self._comparison([self.of(left), *map(self.of, comparators)], ops, node)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return _each(scalar.where, self.of(test), self.of(body), self.of(orelse))
            case ast.Subscript(value=value, slice=index):
                return self._element(self.of(value), index, node)
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self._call(name, [self.of(argument) for argument in arguments])
        return self._fail_with(node)

    def _comparison(self, values: list[Value], ops: list[ast.cmpop], node: ast.expr) -> Value:
        tests = []
        for a, b, op in zip(values, values[1:], ops, strict=False):
            if type(op) not in _COMPARISONS:
                self._fail_with(node)
            tests.append(_each(_COMPARISONS[type(op)], a, b))
        return reduce(lambda a, b: _each(operator.and_, a, b), tests)

    def _power(self, base: Value, exponent: ast.expr) -> Value:
        try:
            power = float(ast.literal_eval(exponent))
        except (ValueError, TypeError):
            raise self._fail("an exponent must be a number") from None
        if power == 0.5:
            return _each(scalar.sqrt, base)
        if power != int(power) or not 1 <= power <= 16:
            raise self._fail(f"expected an exponent of 0.5 or a whole number from 1 to 16, got {power:g}")
        return reduce(lambda a, b: _each(operator.mul, a, b), [base] * int(power))

    def _element(self, value: Value, index: ast.expr, node: ast.expr) -> Value:
        if not isinstance(value, np.ndarray):
            raise self._fail(f"{ast.unparse(node)}: a single number has no elements")
        try:
            return value[_place(index)]
        except (IndexError, ValueError):
            raise self._fail(f"{ast.unparse(node)}: no such element; the shape is {value.shape}") from None

    def _call(self, name: str, arguments: list[Value]) -> Value:
        counts, function = FUNCTIONS[name]
        if counts is not None and len(arguments) not in counts:
            raise self._fail(f"{name} takes {' or '.join(map(str, counts))} arguments, got {len(arguments)}")
        return function(*arguments)

    def _fail(self, message: str) -> StudyError:
        return StudyError(f"{self.expression.where}: {message}")

    def _fail_with(self, node: ast.expr) -> Value:
        raise self._fail(f"{ast.unparse(node)} is not allowed")


def _place(index: ast.expr | None) -> Any:
    """An index as written: whole numbers, slices, several of them."""
    match index:
        case None:
            return None
        case ast.Slice(lower=lower, upper=upper, step=step):
            return slice(_place(lower), _place(upper), _place(step))
        case ast.Tuple(elts=entries):
            return tuple(_place(entry) for entry in entries)
    return operator.index(ast.literal_eval(index)) if _is_whole(index) else _no_index()


def _is_whole(index: ast.expr) -> bool:
    inner = index.operand if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub) else index
    return isinstance(inner, ast.Constant) and isinstance(inner.value, int)


def _no_index() -> Any:
    raise ValueError("an index is a whole number")


def _each(function: Callable[..., Value], *values: Value) -> Value:
    """Element by element, broadcast as in NumPy."""
    if not any(isinstance(value, np.ndarray) for value in values):
        return function(*values)
    arrays = np.broadcast_arrays(*(_array(value) for value in values))
    out = np.empty(arrays[0].shape, dtype=object)
    for place in np.ndindex(out.shape):
        out[place] = function(*(array[place] for array in arrays))
    return out


def _array(value: Value) -> np.ndarray:
    if isinstance(value, np.ndarray):
        return value
    single = np.empty((), dtype=object)
    single[()] = value
    return single


def _as_number(value: Value) -> Value:
    if isinstance(value, Node):
        return scalar.where(value, 1.0, 0.0) if value.op in CONDITIONS else value
    return float(value)


def _not(value: Value) -> Value:
    return ~value if isinstance(value, Node) else not value


_ARITHMETIC = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_UNARY = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: _not}
_COMPARISONS = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: lambda a, b: (a <= b) & (a >= b),
    ast.NotEq: lambda a, b: (a < b) | (a > b),
}


def _fold(combine: Callable[[Value, Value], Value]) -> Callable[..., Value]:
    """Over all elements of one array, or element by element over several arguments."""

    def run(*values: Value) -> Value:
        if len(values) == 1:
            flat = list(values[0].flat) if isinstance(values[0], np.ndarray) else [values[0]]
            return reduce(combine, flat)
        return reduce(lambda a, b: _each(combine, a, b), values)

    return run


def _mean(value: Value) -> Value:
    count = value.size if isinstance(value, np.ndarray) else 1
    return _fold(operator.add)(value) * (1.0 / count)


def _norm(value: Value) -> Value:
    return scalar.sqrt(_fold(operator.add)(_each(lambda x: x * x, value)))


def _dot(a: Value, b: Value) -> Value:
    return _fold(operator.add)(_each(operator.mul, a, b))


def _elementwise(function: Callable[..., Value]) -> Callable[..., Value]:
    return lambda *values: _each(function, *values)


# name -> (how many arguments, None: any number from one on; function)
FUNCTIONS: dict[str, tuple[tuple[int, ...] | None, Callable[..., Value]]] = {
    "abs": ((1,), _elementwise(abs)),
    "sqrt": ((1,), _elementwise(scalar.sqrt)),
    "sin": ((1,), _elementwise(scalar.sin)),
    "cos": ((1,), _elementwise(scalar.cos)),
    "atan2": ((2,), _elementwise(scalar.atan2)),
    "exp": ((1,), _elementwise(special.exp)),
    "log": ((1,), _elementwise(special.log)),
    "sign": ((1,), _elementwise(scalar.sign)),
    "where": ((3,), _elementwise(scalar.where)),
    "max": (None, _fold(scalar.maximum)),
    "min": (None, _fold(scalar.minimum)),
    "sum": ((1,), _fold(operator.add)),
    "mean": ((1,), _mean),
    "norm": ((1,), _norm),
    "dot": ((2,), _dot),
    "any": ((1,), _fold(operator.or_)),
    "all": ((1,), _fold(operator.and_)),
}

CONSTANTS = {"pi": math.pi}
