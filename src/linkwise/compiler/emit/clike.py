"""Prints loops and arithmetic in a language of C's family. A target is a ``Dialect``: a small table of spellings.

One statement per operation, in the order of the schedule, so that nothing is left for the target's compiler
to decide about the arithmetic. Changes of sign and tests of single bits are written where they are used.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from linkwise.compiler.ir.graph import CONDITIONS, Node
from linkwise.compiler.ir.graph import WORDS as WORD_OPERATIONS
from linkwise.compiler.ir.loops import (
    Array,
    Barrier,
    Change,
    Declare,
    Element,
    For,
    If,
    IfNegative,
    Join,
    Let,
    Nest,
    Place,
    Register,
    Statement,
    Step,
    Whole,
    changed,
    statements,
)
from linkwise.compiler.ir.schedule import Body, LoopRegion, scheduled
from linkwise.core import foreign
from linkwise.errors import LinkwiseError, TraceError

REAL = {"float64": "double", "float32": "float"}
"""The types of numbers in C and CUDA."""


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
            "word_and": "{0} & {1}",
            "word_or": "{0} | {1}",
            "word_xor": "{0} ^ {1}",
            "word_shl": "{0} << {1}",
            "word_shr": "{0} >> {1}",
            "word_add": "{0} + {1}",
            "word_mul": "{0} * {1}",
            "word_of": "{0} ? 1ull : 0ull",
        }
    )
    reserved: frozenset[str] = frozenset()
    """Names that an argument must not have."""
    whole: str = "long"
    """The type of a whole number."""
    word: str = "unsigned long long"
    """The type of 64 bits."""
    negated_fma: str = "-{0}"
    """Minus the result of a fused multiply-add."""
    table: str = "static const"
    """How a table at the head of the file is declared."""

    def number(self, value: float) -> str:
        """A constant that the target reads back as exactly this value: the shortest decimal that does."""
        with np.errstate(over="ignore"):
            rounded = np.float32(value) if self.suffix else np.float64(value)
        if np.isnan(rounded):
            return self.nan
        if np.isinf(rounded):
            return self.infinity if rounded > 0 else f"-{self.infinity}"
        return f"{rounded!s}{self.suffix}"


_WORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
    alignas alignof and asm bool bitand bitor catch class compl concept const_cast constexpr constinit consteval
    decltype delete dynamic_cast explicit export false friend mutable namespace new noexcept not nullptr operator or
    private protected public reinterpret_cast requires static_assert static_cast template this thread_local throw true
    try typeid typename using virtual wchar_t xor
    fma fmaf sqrt sqrtf fabs fabsf main
"""
WORDS = frozenset(_WORDS.split())
"""Words of C and C++, and functions that the generated code calls."""

_LOCAL_NAME = re.compile(r"[vcpnrs]\d+(_\d+)?")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SIGNS = {
    "eq": ("==", 1),
    "lt": ("<", 2),
    "shl": ("<<", 3),
    "add": ("+", 4),
    "sub": ("-", 4),
    "mul": ("*", 5),
}
"""Operations on whole numbers, and how strongly each binds."""


def identifier(name: str, reserved: Iterable[str]) -> str:
    """``name``, checked."""
    if not _IDENTIFIER.fullmatch(name) or name in reserved:
        raise SpellingError(f"{name!r} cannot be the name of a function in the generated code")
    return name


LONGEST_NAME = 100


def function_name(given: str | None, own: str, reserved: Iterable[str]) -> str:
    """The requested name, checked; else the program's own, made a valid identifier."""
    if given is not None:
        return identifier(given, reserved)
    name = spelt(own)
    return f"{name}_" if name in reserved else name


def spelt(name: str) -> str:
    """A name of a function made from any text: what C does not allow in names becomes an underscore.

    It is short enough for names of files.
    """
    name = re.sub(r"[^A-Za-z0-9_]+", "_", name)[:LONGEST_NAME].strip("_") or "function"
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
    """The statements of one nest of loops."""

    def __init__(self, nest: Nest, dialect: Dialect):
        self.nest = nest
        taken = dialect.reserved | _own_names(nest)
        self.dialect = replace(dialect, reserved=taken)
        given = [array for array in nest.arrays if array.kind in ("input", "output", "both")]
        self.arguments = argument_names([array.title for array in given], taken)
        self.spelled = dict(zip((array.name for array in given), self.arguments, strict=True))
        self.arrays = {array.name: array for array in nest.arrays}
        self.lines: list[str] = []
        self.indent = 1
        self.skips = True  # whether ``IfNegative`` is a branch; its statements may always run
        self._registers: dict[Register, str] = {}
        self._held: dict[Place, str] = {}  # what this step has read into a variable of its own
        self._variables = 0  # names of such variables so far
        self._step = Step({})
        self._stores: dict[Node, list[str]] = {}
        self._results: dict[int, list[Node]] = {}  # loop -> outputs that it computes
        self._inlined_bits = self._bits_used_in_selects_only()

    def statements(self) -> list[str]:
        """The whole body."""
        self.write(self.nest.body)
        return self.lines

    def write(self, body: Sequence[Statement]) -> None:
        apart = _named_alike(body)
        for statement in body:
            match statement:
                case Step() if apart:  # a scope of its own
                    self._open("")
                    self.step(statement)
                    self._close()
                case Step():
                    self.step(statement)
                case For():
                    self.loop(statement)
                case If():
                    self.choice(statement)
                case IfNegative():
                    test = f"if ({self._registers[statement.register]} < {self.dialect.number(0.0)})"
                    self._open(test if self.skips else "")
                    self.write(statement.then)
                    self._close()
                case Declare():
                    for register, start in statement.registers.items():
                        self._registers[register] = self.declared(start)
                case Let():
                    constant = "" if statement.name in changed(self.nest.body) else "const "
                    self._line(
                        f"{constant}{self.dialect.whole} {statement.name} = {self.whole(statement.value)};"
                    )
                case Change():
                    self._line(f"{statement.name} = {self.whole(statement.value)};")
                case Barrier():
                    self.barrier()
                case Join():
                    raise TraceError("lanes that work on one state are written for LLVM alone")

    def declared(self, start: Place | float) -> str:
        """A variable for what a loop carries, with its first value."""
        spelled = f"s{len(self._registers)}"
        value = self.element(start) if isinstance(start, Element) else self.dialect.number(start)  # type: ignore[arg-type]
        self._line(f"{self.dialect.real} {spelled} = {value};")
        return spelled

    def barrier(self) -> None:
        """One thread works on a state: nothing to wait for."""

    # -- whole numbers and places ---------------------------------------------------------------------------

    def whole(self, value: Whole, least: int = 0) -> str:
        """A whole number, in parentheses if it binds weaker than ``least``."""
        if value.op in ("number", "name"):
            return str(value.args[0])
        if value.op == "entry":
            return f"{value.args[0]}[{self.whole(value.args[1])}]"
        if value.op == "choose":
            test, a, b = map(self.whole, value.args)
            return f"({test} ? {a} : {b})"
        sign, strength = _SIGNS[value.op]
        text = f"{self.whole(value.args[0], strength)} {sign} {self.whole(value.args[1], strength + 1)}"
        return text if strength >= least else f"({text})"

    def element(self, place: Element) -> str:
        array = self.arrays[place.array]
        return f"{self.spelled.get(array.name, array.name)}[{self.whole(self.offset(array, place))}]"

    def offset(self, array: Array, place: Element) -> Whole:
        """Where an element lies in its array."""
        return place.column if place.row is None else place.row * array.pitch + place.column

    def place(self, place: Place) -> str:
        if isinstance(place, Whole):
            return self.whole(place)
        return self._registers[place] if isinstance(place, Register) else self.element(place)

    # -- statements -----------------------------------------------------------------------------------------

    def loop(self, loop: For) -> None:
        self._open(f"for ({self.range(loop)})")
        self.write(loop.body)
        self._close()

    def range(self, loop: For) -> str:
        """The head of a loop."""
        name, step, stop = loop.name, loop.step.number, loop.stop.number
        first, end = self.whole(loop.first), self.whole(loop.stop)
        test = f"{name} < {end}"
        if step is not None and step < 0:
            test = f"{name} >= {stop + 1}" if stop is not None else f"{name} > {end}"
        change = {1: f"++{name}", -1: f"--{name}"}.get(step or 0, f"{name} += {self.whole(loop.step)}")
        return f"{self.dialect.whole} {name} = {first}; {test}; {change}"

    def choice(self, choice: If) -> None:
        self._open(f"if ({self.whole(choice.test)})")
        self.write(choice.then)
        self._close()
        if choice.otherwise:
            self._open("else")
            self.write(choice.otherwise)
            self._close()

    def step(self, step: Step) -> None:
        """An output is stored as soon as it is known; everything else when all has been read."""
        self._step, self._held, self._stores, self._results = step, self.kept(), {}, {}
        late: list[tuple[Place, Node]] = []
        for place, node in step.writes:
            early = isinstance(place, Element) and (step.apart or self.early(place))
            if not early or step.adds:
                late.append((place, node))
                continue
            self._stores.setdefault(node, []).append(self.target(place))  # type: ignore[arg-type]
            if node.op == "result":
                self._results.setdefault(node.value[0], []).append(node)
        self._body(step.body)
        for node in list(self._stores):  # constants and inputs
            self._store(node)
        for _, node in late:
            self._read(node)
        aside: dict[int, str] = {}
        for k, (place, node) in enumerate(late):  # registers change at once
            if isinstance(place, Register) and without_sign(node).op == "input":
                aside[k] = self._variable("n", self.value(node))
        self.before_writes(late)
        for k, (place, node) in enumerate(late):
            sign = "+=" if step.adds else "="
            value = aside.get(k) or self.value(node)
            if isinstance(place, Whole):
                value = f"({self.dialect.whole}){value}"
            self._line(f"{self.place(place)} {sign} {value};")

    def before_writes(self, late: Sequence[tuple[Place, Node]]) -> None:
        """All that a step reads has been read, and what is left is written."""

    def kept(self) -> dict[Place, str]:
        """What the steps before have read and is still in force."""
        return {}

    def target(self, place: Element) -> str:
        """How a statement that stores an element begins."""
        return self.element(place)

    def early(self, place: Element) -> bool:
        """Whether an element can be stored while others are still read."""
        return self.arrays[place.array].kind == "output"

    def inline(self, place: Place) -> bool:
        """Whether a place is read where it is used, not once before."""
        return not isinstance(place, Element) or (
            place.column.number is not None and self.arrays[place.array].kind in ("input", "both")
        )

    def value(self, node: Node) -> str:
        """How an operand is written."""
        if node.op == "const":
            return self.dialect.number(node.value)
        if node.op == "word":
            return f"{node.value}ull"
        if node.op == "input":
            place = self._step.reads[node.value]
            return self._held.get(place) or self.place(place)
        if node.op in ("phi", "result"):
            loop, k = node.value[:2]
            return f"p{loop}_{k}"
        if node.op == "neg":
            spelling = self.dialect.negated_fma if node.args[0].op == "fma" else "-{0}"
            return spelling.format(self.value(node.args[0]))
        return f"{'c' if node.op in CONDITIONS else 'v'}{node.index}"

    def _read(self, node: Node) -> None:
        """Read what an operand needs, once."""
        node = without_sign(node)
        if node.op != "input":
            return
        place = self._step.reads[node.value]
        if place not in self._held and not self.inline(place):
            self._held[place] = self._variable("r", self.place(place))

    def _variable(self, letter: str, value: str) -> str:
        """A new variable with this value."""
        self._variables += 1
        self._line(f"const {self.dialect.real} {letter}{self._variables} = {value};")
        return f"{letter}{self._variables}"

    def _line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def _open(self, text: str) -> None:
        self._line(f"{text} {{".lstrip())
        self.indent += 1

    def _close(self) -> None:
        self.indent -= 1
        self._line("}")

    def _body(self, body: Body, leave_after: Node | None = None) -> None:
        for item in body:
            if isinstance(item, LoopRegion):
                for node in operands(item):
                    self._read(node)
                self._loop(item)
                for node in self._results.get(item.number, ()):
                    self._store(node)
                continue
            if item.op != "neg" and item not in self._inlined_bits:
                for node in item.args:
                    self._read(node)
                kind = self.dialect.condition if item.op in CONDITIONS else self.dialect.real
                kind = self.dialect.word if item.op in WORD_OPERATIONS else kind
                self._line(f"const {kind} {self.value(item)} = {self._expression(item)};")
            self._store(item)
            if item is leave_after:
                self._line(self.left_where_not(self.value(item)))

    def _store(self, node: Node) -> None:
        if node in self._stores:
            self._read(node)
        for target in self._stores.pop(node, ()):
            self._line(f"{target} = {self.value(node)};")

    def _expression(self, node: Node) -> str:
        args = node.args
        table = self.dialect.operations
        bit = node.value
        op = node.op
        if op == "select" and args[0].op == "bit":
            condition, a, b = args
            bit = condition.value
            self._read(condition.args[0])
            if a.op == "neg" and a.args[0] is b and "flip" in table:
                op, args = "flip", (b, condition.args[0])
            elif "pick" in table:
                op, args = "pick", (condition.args[0], a, b)
        return table[op].format(*[self.value(a) for a in args], bit=bit)

    def _loop(self, region: LoopRegion) -> None:
        loop = region.loop
        for phi, initial in zip(loop.phi, loop.initial, strict=True):
            self._line(f"{self.dialect.real} {self.value(phi)} = {self.value(initial)};")
        self._open("for (;;)")
        if loop.active in region.body:
            self._body(region.body, leave_after=loop.active)
        else:
            self._line(self.left_where_not(self.value(loop.active)))
            self._body(region.body)
        self._moves(region)
        self._close()

    def _moves(self, region: LoopRegion) -> None:
        """All carried values change at once: one that becomes another's old value is set aside first."""
        loop, number = region.loop, region.number
        moves = [(phi, new) for phi, new in zip(loop.phi, loop.following, strict=True) if new is not phi]
        aside: dict[int, str] = {}
        for k, (_, new) in enumerate(moves):
            if without_sign(new).op == "phi":
                aside[k] = f"n{number}_{k}"
                self._line(f"const {self.dialect.real} {aside[k]} = {self.value(new)};")
        for k, (phi, new) in enumerate(moves):
            self._line(f"{self.value(phi)} = {aside.get(k) or self.value(new)};")

    def left_where_not(self, condition: str) -> str:
        """The statement that ends a loop whose condition does not hold."""
        return f"if (!{condition}) break;"

    def _bits_used_in_selects_only(self) -> set[Node]:
        if "pick" not in self.dialect.operations:
            return set()
        steps = [s for s in statements(self.nest.body) if isinstance(s, Step)]
        nodes = [node for step in steps for node in scheduled(step.body)]
        bits = {node for node in nodes if node.op == "bit"}
        for node in nodes:
            for place, a in enumerate(node.args):
                if not (node.op == "select" and place == 0):
                    bits.discard(a)
        return bits

    # -- tables ---------------------------------------------------------------------------------------------

    def tables(self) -> str:
        """The constants and tables that the statements read, for the head of the file."""
        # a table cannot call functions
        spelling = replace(
            self.dialect,
            infinity=f"({self.dialect.real})(1.0 / 0.0)",
            nan=f"({self.dialect.real})(0.0 / 0.0)",
        )
        text = ""
        used = set(re.findall(r"\w+(?=\[)", "\n".join(self.lines)))
        for array in self.nest.arrays:
            if array.kind == "constant" and array.name in used:
                numbers = [spelling.number(float(v)) for v in self.constants(array)]
                text += self._table(self.dialect.real, array.name, numbers)
        for name, values in self.nest.tables.items():
            if name in used:
                kind = "unsigned char" if max(values) < 256 else "int"
                text += self._table(kind, name, map(str, values))
        return text

    def constants(self, array: Array) -> Sequence[float]:
        """The numbers of a table in the order of its elements."""
        return np.asarray(self.nest.constants[array.name]).ravel().tolist()

    def _table(self, kind: str, name: str, entries: Iterable[str]) -> str:
        listed = textwrap.fill(", ".join(entries), 112, break_long_words=False)
        return f"{self.dialect.table} {kind} {name}[] = {{\n{textwrap.indent(listed, '    ')}\n}};\n"


def comment(lines: Iterable[str], width: int, indent: str = "") -> str:
    """Lines of text, of which parts may be foreign, as a comment."""
    wrapped = [
        part for line in lines for part in (textwrap.wrap(line, width, subsequent_indent=indent) or [""])
    ]
    safe = [foreign.c_comment(line) for line in wrapped]
    return "\n".join(["/* " + safe[0], *(f" * {line}".rstrip() for line in safe[1:]), " */", ""])


def _own_names(nest: Nest) -> frozenset[str]:
    """Names that the loops use themselves."""
    names = {*nest.numbers, *nest.tables}
    names |= {array.name for array in nest.arrays if array.kind in ("constant", "scratch")}
    names |= {s.name for s in statements(nest.body) if isinstance(s, (For, Let))}
    return frozenset(names)


def _named_alike(body: Sequence[Statement]) -> bool:
    """Whether steps beside each other have nodes of the same number: those of different graphs."""
    seen: dict[int, Node] = {}
    for statement in body:
        if isinstance(statement, Step):
            for node in scheduled(statement.body):
                if seen.setdefault(node.index, node) is not node:
                    return True
    return False


def operands(region: LoopRegion) -> Iterator[Node]:
    """All that a loop reads from outside, its body's operands included."""
    loop = region.loop
    yield from (*loop.initial, loop.active, *loop.following)
    for item in region.body:
        yield from operands(item) if isinstance(item, LoopRegion) else item.args


def without_sign(node: Node) -> Node:
    """The node inside all changes of sign around it."""
    return without_sign(node.args[0]) if node.op == "neg" else node
