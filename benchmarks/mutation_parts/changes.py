"""Mutants: small changes of Python source, alone and all of a file behind switches."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]

SWAPPED: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.BitOr: (ast.BitAnd,),
    ast.BitAnd: (ast.BitOr,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """One change: the ``number``-th node of the file's syntax tree, in its ``choice``-th way."""

    path: str
    """Of the file below ``src/linkwise``."""
    number: int
    choice: int
    line: int
    change: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.change}"


def changed(node: ast.AST) -> list[ast.AST]:
    """What a node may be replaced by."""
    match node:
        case ast.Constant(value=bool(value)):
            return [ast.Constant(not value)]
        case ast.Constant(value=int(value)):
            return [ast.Constant(value + 1), ast.Constant(value - 1)]
        case ast.Constant(value=float(value)):
            return [ast.Constant(2.0 * value if value else 1.0)]
        case ast.UnaryOp(op=ast.USub() | ast.Not(), operand=inner):
            return [inner]
        case ast.BinOp(left, op, right):
            return [ast.BinOp(left, new(), right) for new in SWAPPED.get(type(op), ())]  # type: ignore[arg-type]
        case ast.BoolOp(op, values):
            return [ast.BoolOp(new(), values) for new in SWAPPED[type(op)]]  # type: ignore[arg-type]
        case ast.Compare(left, [op, *rest], comparators):
            return [ast.Compare(left, [new(), *rest], comparators) for new in SWAPPED[type(op)]]  # type: ignore[list-item]
        case ast.AugAssign(target, op, value):
            return [ast.AugAssign(target, new(), value) for new in SWAPPED.get(type(op), ())]  # type: ignore[arg-type]
        case ast.Call(ast.Name(name), args, keywords) if name in NAMES:
            return [ast.Call(ast.Name(NAMES[name], ast.Load()), args, keywords)]
        case ast.Call(ast.Attribute(value, name), args, keywords) if name in NAMES:
            return [ast.Call(ast.Attribute(value, NAMES[name], ast.Load()), args, keywords)]
        case ast.If(test, body, orelse):
            return [ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)]
    return []


class Place(NamedTuple):
    """Where a node stands: ``owner.field``, or ``owner.field[index]``."""

    owner: ast.AST
    field: str
    index: int | None
    node: ast.AST

    def put(self, new: ast.AST) -> None:
        if self.index is None:
            setattr(self.owner, self.field, new)
        else:
            getattr(self.owner, self.field)[self.index] = new


def visited(owner: ast.AST) -> Iterator[Place]:
    """Every node that counts, in a fixed order, owners before what they own.

    Annotations, messages of errors and what is for type checkers alone are left out: changing them changes no result.
    """

    for name, value in ast.iter_fields(owner):
        if name in ("annotation", "returns", "type_params", "slice") and isinstance(
            owner, (ast.arg, ast.AnnAssign, ast.FunctionDef)
        ):
            continue
        for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(node, ast.AST) or isinstance(node, (ast.Raise, ast.Assert, ast.JoinedStr)):
                continue
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                continue
            if isinstance(node, ast.FunctionDef) and node.name == "__repr__":
                continue
            if isinstance(node, ast.keyword) and node.arg == "strict":  # a check of lengths in zip
                continue
            yield Place(owner, name, index, node)
            yield from visited(node)


def mutants(path: str) -> list[Mutant]:
    tree = ast.parse((ROOT / "src/linkwise" / path).read_text(encoding="utf-8"))
    found = []
    for number, place in enumerate(visited(tree)):
        for choice, new in enumerate(changed(place.node)):
            text = f"{_short(place.node)}  ->  {_short(new)}"
            found.append(Mutant(path, number, choice, getattr(place.node, "lineno", 0), text))
    return found


def _short(node: ast.AST) -> str:
    shown = copy.copy(node)
    if isinstance(shown, ast.If):
        shown.body, shown.orelse = [ast.Expr(ast.Constant(...))], []
    return " ".join(ast.unparse(ast.fix_missing_locations(shown)).split())[:100]


def mutated(mutant: Mutant, text: str) -> str:
    """The text of the file with the change in it."""
    tree = ast.parse(text)
    for number, place in enumerate(visited(tree)):
        if number == mutant.number:
            place.put(ast.copy_location(changed(place.node)[mutant.choice], place.node))
            return ast.unparse(ast.fix_missing_locations(tree))
    raise AssertionError("no such node")


SWITCH = """
import os
import sys

active = int(os.environ.get("MUTATION_ACTIVE", "0"))
seen = set()

def on(number):
    if number not in seen:
        seen.add(number)
        in_function = sys._getframe(1).f_code.co_flags & 1  # else in a module or a class, while it is imported
        where = os.environ.get("MUTATION_SEEN" if in_function else "MUTATION_IMPORTED")
        if where:
            with open(where, "a") as file:
                file.write(f"{number}\\n")
    return number == active
"""
"""A module of the copied package: which mutant is switched on, and which were reached (in child processes too)."""


def switchable(place: Place) -> bool:
    """Whether both forms can stand in one text: not so in the patterns of ``match``."""
    return not isinstance(place.owner, ast.pattern)


def instrumented(text: str, wanted: dict[tuple[int, int], int], file: int) -> str:
    """The text with both forms of every wanted mutant: ``(new if on(its number) else old)``.

    Args:
        text: Python source.
        wanted: the number of each mutant by (node, choice).
        file: every function says by ``on(file)`` that it was executed.
    """
    tree = ast.parse(text)
    places, originals = list(visited(tree)), list(visited(ast.parse(text)))
    for (node, choice), number in sorted(wanted.items(), reverse=True):  # what is inside first
        place = places[node]
        new = changed(originals[node].node)[choice]
        old = getattr(place.owner, place.field)
        old = old if place.index is None else old[place.index]  # may hold other mutants by now
        switch = ast.parse(f"_mutation_on({number})", mode="eval").body
        if isinstance(old, ast.If) and isinstance(new, ast.If):
            old.test = ast.IfExp(switch, new.test, old.test)
        elif isinstance(new, ast.stmt):
            place.put(ast.If(switch, [new], [old]))  # type: ignore[list-item]
        else:
            place.put(ast.IfExp(switch, new, old))  # type: ignore[arg-type]
    for node in list(ast.walk(tree)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.body.insert(_first(node.body), ast.parse(f"_mutation_on({file})").body[0])
    tree.body.insert(
        _first(tree.body), ast.parse("from linkwise._mutation import on as _mutation_on").body[0]
    )
    return ast.unparse(ast.fix_missing_locations(tree))


def _first(body: list[ast.stmt]) -> int:
    """Where a statement may be inserted: after the docstring and imports from ``__future__``."""
    index = int(isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant))
    while index < len(body):
        statement = body[index]
        if not (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
            break
        index += 1
    return index
