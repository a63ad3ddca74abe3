"""Prints a program in a language of C's family. A target is a ``Dialect``: a small table of spellings.

One statement per operation, in the order of the schedule, so that nothing is left for the target's compiler
to decide about the arithmetic. Changes of sign and tests of single bits are written where they are used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from linkwise.compiler.graph import CONDITIONS, Node
from linkwise.compiler.program import Program
from linkwise.compiler.schedule import Body, LoopRegion
from linkwise.errors import LinkwiseError


class SpellingError(LinkwiseError, ValueError):
    """A name cannot be used in the language that is generated; the message says which."""


@dataclass(frozen=True)
class Dialect:
    """How a target spells things. ``{0}``, ``{1}``, ``{2}`` are operands, ``{bit}`` is a bit's number."""

    real: str
    """The type of a number."""
    condition: str
    """The type of a condition."""
    suffix: str
    """What ends a constant and the names of functions: C's ``f`` for float."""
    infinity: str
    nan: str
    operations: dict[str, str] = field(
        default_factory=lambda: {
            "add": "{0} + {1}",
            "sub": "{0} - {1}",
            "mul": "{0} * {1}",
            "div": "{0} / {1}",
            "lt": "{0} < {1}",
            "le": "{0} <= {1}",
            "eq": "{0} == {1}",
            "and": "{0} && {1}",
            "or": "{0} || {1}",
            "not": "!{0}",
            "select": "{0} ? {1} : {2}",
        }
    )
    reserved: frozenset[str] = frozenset()
    """Names that an argument must not have."""

    def number(self, value: float) -> str:
        """A constant that the target reads back as exactly this value: the shortest decimal that does."""
        with np.errstate(over="ignore"):
            rounded = np.float32(value) if self.suffix else np.float64(value)
        if np.isnan(rounded):
            return self.nan
        if np.isinf(rounded):
            return self.infinity if rounded > 0 else f"-{self.infinity}"
        return f"{rounded!s}{self.suffix}"


_LOCAL_NAME = re.compile(r"[vcpn]\d+(_\d+)?")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def identifier(name: str, reserved: Iterable[str]) -> str:
    """``name``, checked."""
    if not _IDENTIFIER.fullmatch(name) or name in reserved:
        raise SpellingError(f"{name!r} cannot be the name of a function in the generated code")
    return name


def function_name(given: str | None, own: str, reserved: Iterable[str]) -> str:
    """The name that was asked for, checked; else the program's own, spelt so that it can be one."""
    if given is not None:
        return identifier(given, reserved)
    name = spelt(own)
    return f"{name}_" if name in reserved else name


def spelt(name: str) -> str:
    """A name of a function made from any text: what C does not allow in names becomes an underscore."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "function"
    return f"f_{name}" if name[0].isdigit() else name


def argument_names(names: Iterable[str], reserved: frozenset[str]) -> list[str]:
    """Names for the arguments: their own, with an underscore where that is taken or reserved."""
    spelled: list[str] = []
    for number, name in enumerate(names):
        if not _IDENTIFIER.fullmatch(name):
            name = f"argument_{number}"
        while name in reserved or name in spelled or _LOCAL_NAME.fullmatch(name):
            name += "_"
        spelled.append(name)
    return spelled


class Printer:
    """The statements of one program."""

    def __init__(self, program: Program, dialect: Dialect):
        self.program = program
        self.dialect = dialect
        names = [name for name, _ in (*program.inputs, *program.outputs)]
        self.arguments = argument_names(names, dialect.reserved)
        self.input_names = dict(zip((name for name, _ in program.inputs), self.arguments, strict=False))
        self.output_names = self.arguments[len(program.inputs) :]
        self.lines: list[str] = []
        self.indent = 1
        self._inlined_bits = self._bits_used_in_selects_only()

    def statements(self) -> list[str]:
        """The whole body; an output is stored as soon as it is known."""
        self._stores: dict[int, list[str]] = {}
        self._results: dict[int, list[Node]] = {}  # loop -> outputs that it computes
        for name, nodes in zip(self.output_names, self.program.values, strict=True):
            for k, node in enumerate(nodes):
                self._stores.setdefault(node.index, []).append(f"{name}[{k}] = {self.value(node)};")
                if node.op == "result":
                    self._results.setdefault(node.value[0], []).append(node)
        self._body(self.program.body)
        for stores in self._stores.values():  # constants and inputs
            self.lines += ["    " + store for store in stores]
        return self.lines

    def value(self, node: Node) -> str:
        """How an operand is written."""
        if node.op == "const":
            return self.dialect.number(node.value)
        if node.op == "input":
            name, k = node.value
            return f"{self.input_names[name]}[{k}]"
        if node.op in ("phi", "result"):
            loop, k = node.value
            return f"p{loop}_{k}"
        if node.op == "neg":
            return f"-{self.value(node.args[0])}"
        return f"{'c' if node.op in CONDITIONS else 'v'}{node.index}"

    # -- statements -----------------------------------------------------------------------------------------

    def _line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def _body(self, body: Body, leave_after: Node | None = None) -> None:
        for item in body:
            if isinstance(item, LoopRegion):
                self._loop(item)
                for node in self._results.get(item.number, ()):
                    self._store(node)
                continue
            if item.op != "neg" and item.index not in self._inlined_bits:
                kind = self.dialect.condition if item.op in CONDITIONS else self.dialect.real
                self._line(f"const {kind} {self.value(item)} = {self._expression(item)};")
            self._store(item)
            if item is leave_after:
                self._line(f"if (!{self.value(item)}) break;")

    def _store(self, node: Node) -> None:
        for store in self._stores.pop(node.index, ()):
            self._line(store)

    def _expression(self, node: Node) -> str:
        args = node.args
        table = self.dialect.operations
        bit = node.value
        op = node.op
        if op == "select" and args[0].op == "bit":
            condition, a, b = args
            bit = condition.value
            if a.op == "neg" and a.args[0] is b and "flip" in table:
                op, args = "flip", (b, condition.args[0])
            elif "pick" in table:
                op, args = "pick", (condition.args[0], a, b)
        return table[op].format(*[self.value(a) for a in args], bit=bit)

    def _loop(self, region: LoopRegion) -> None:
        loop, number = region.loop, region.number
        for phi, initial in zip(loop.phi, loop.initial, strict=True):
            self._line(f"{self.dialect.real} {self.value(phi)} = {self.value(initial)};")
        self._line("for (;;) {")
        self.indent += 1
        if loop.active in region.body:
            self._body(region.body, leave_after=loop.active)
        else:
            self._line(f"if (!{self.value(loop.active)}) break;")
            self._body(region.body)
        moves = [(phi, new) for phi, new in zip(loop.phi, loop.following, strict=True) if new is not phi]
        # All carried values change at once: one that becomes another's old value is set aside first.
        aside = {}
        for k, (_, new) in enumerate(moves):
            if _without_sign(new).op == "phi":
                aside[k] = f"n{number}_{k}"
                self._line(f"const {self.dialect.real} {aside[k]} = {self.value(new)};")
        for k, (phi, new) in enumerate(moves):
            self._line(f"{self.value(phi)} = {aside.get(k) or self.value(new)};")
        self.indent -= 1
        self._line("}")

    def _bits_used_in_selects_only(self) -> set[int]:
        if "pick" not in self.dialect.operations:
            return set()
        bits = {node.index for node in self.program.nodes() if node.op == "bit"}
        for node in self.program.nodes():
            for place, a in enumerate(node.args):
                if not (node.op == "select" and place == 0):
                    bits.discard(a.index)
        return bits


def _without_sign(node: Node) -> Node:
    return _without_sign(node.args[0]) if node.op == "neg" else node
