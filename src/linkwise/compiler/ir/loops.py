"""Loops in the intermediate representation: what a target repeats around arithmetic, and the memory that it reads and
writes.

Arithmetic is a graph (``graph``); a ``Nest`` is a list of statements around pieces of it, for one state:

=============  =====================================================================================================
``Step``       reads places, computes nodes in the order of their schedule, writes places
``For``        a range of whole numbers; turns of a ``parallel`` loop are independent of each other
``If``         a choice by a whole-number condition
``IfNegative`` a choice by the sign of a register; lanes side by side take it together
``Declare``    registers with their first values: what loops carry
``Let``        a whole number with a name; ``Change`` gives it another value
``Join``       where lanes work on one state: what they hold in a register, combined in a fixed order
``Barrier``    where a block of threads works on one state: what was written before can be read after
=============  =====================================================================================================

Statements nest: a loop over time around a sweep over links is a ``For`` in a ``For``. Each shape of program (batch,
sweep, scan, rollout) has a builder in ``shapes``; each target has one renderer; ``interpret.run_nest`` is the
definition. What a machine needs besides (lanes, shared memory) is decided by its renderer.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from linkwise.compiler.ir.graph import Node
from linkwise.compiler.ir.schedule import Body

# -- whole numbers ----------------------------------------------------------------------------------------------------


def _shifted(a: int, b: int) -> int:
    return a << b


def _less(a: int, b: int) -> int:
    return int(a < b)


def _equal(a: int, b: int) -> int:
    return int(a == b)


def _choose(test: int, a: int, b: int) -> int:
    return a if test else b


_FOLDED: dict[str, Callable[..., int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "shl": _shifted,
    "lt": _less,
    "eq": _equal,
    "choose": _choose,
}


@dataclass(frozen=True)
class Whole:
    """A whole number: a constant, the value of a name, an entry of a table, or an operation on others."""

    op: str
    args: tuple[Any, ...]

    def __add__(self, other: Whole | int) -> Whole:
        return _made("add", self, other)

    def __sub__(self, other: Whole | int) -> Whole:
        return _made("sub", self, other)

    def __mul__(self, other: Whole | int) -> Whole:
        return _made("mul", self, other)

    def __rmul__(self, other: int) -> Whole:
        return _made("mul", other, self)

    def __rsub__(self, other: int) -> Whole:
        return _made("sub", other, self)

    def __rlshift__(self, other: int) -> Whole:
        return _made("shl", other, self)

    def __lt__(self, other: Whole | int) -> Whole:
        return _made("lt", self, other)

    def equals(self, other: Whole | int) -> Whole:
        """1 if both are the same number, else 0; ``==`` compares expressions."""
        return _made("eq", self, other)

    @property
    def number(self) -> int | None:
        """The value of a constant; None for everything else."""
        return self.args[0] if self.op == "number" else None

    def value(self, names: Mapping[str, int], tables: Mapping[str, Sequence[int]]) -> int:
        """What it is while names have these values: the definition."""
        if self.op == "number":
            return self.args[0]
        if self.op == "name":
            return names[self.args[0]]
        if self.op == "entry":
            table: Sequence[int] = tables[self.args[0]]
            place: int = self.args[1].value(names, tables)
            return int(table[place])
        return _FOLDED[self.op](*(a.value(names, tables) for a in self.args))


def slope(value: Whole, name: str) -> int | None:
    """By how much a whole number changes when a name's value grows by one; None where that is not constant."""
    if value.op in ("number", "name"):
        return int(value.op == "name" and value.args[0] == name)
    slopes = [slope(a, name) for a in value.args if isinstance(a, Whole)]
    if all(s == 0 for s in slopes):
        return 0
    if value.op in ("add", "sub") and None not in slopes:
        return slopes[0] + (slopes[1] if value.op == "add" else -slopes[1])  # type: ignore[operator]
    if value.op == "mul":
        for k in (0, 1):
            factor, other = value.args[1 - k].number, slopes[k]
            if factor is not None and other is not None:
                return factor * other
    return None


def shifted(value: Whole, shifts: Mapping[str, int]) -> Whole:
    """The same number where names are larger by so much."""
    if value.op == "number":
        return value
    if value.op == "name":
        return value + shifts.get(value.args[0], 0)
    args = [shifted(a, shifts) if isinstance(a, Whole) else a for a in value.args]
    return Whole("entry", tuple(args)) if value.op == "entry" else _made(value.op, *args)


def whole(value: Whole | int) -> Whole:
    return value if isinstance(value, Whole) else Whole("number", (value,))


def name(spelled: str) -> Whole:
    """The value that a loop or a ``Let`` gave this name."""
    return Whole("name", (spelled,))


def entry(table: str, index: Whole) -> Whole:
    """An entry of a table of whole numbers."""
    return Whole("entry", (table, index))


def choose(test: Whole, a: Whole | int, b: Whole | int) -> Whole:
    """a if the test is not 0, else b."""
    return _made("choose", test, a, b)


def _made(op: str, *args: Whole | int) -> Whole:
    lifted = tuple(whole(a) for a in args)
    numbers = [a.number for a in lifted]
    if None not in numbers:
        return whole(_FOLDED[op](*numbers))
    if (op in ("add", "sub") and numbers[1] == 0) or (op == "mul" and numbers[1] == 1):
        return lifted[0]
    if (op == "add" and numbers[0] == 0) or (op == "mul" and numbers[0] == 1):
        return lifted[1]
    return Whole(op, lifted)


# -- places -----------------------------------------------------------------------------------------------------------

Kind = Literal["input", "output", "both", "constant", "scratch"]


@dataclass(frozen=True)
class Array:
    """Memory of one state. Element (row, column) lies ``row·stride + column`` scalars after its beginning."""

    name: str
    kind: Kind
    columns: int
    rows: int | str = 1  # a name where it depends on the call, as the number of time steps
    stride: int | None = None  # from row to row; None: ``columns``
    shared: bool = False  # the same for all states
    steady: bool = False  # of a batch: mostly the same for all states
    label: str = ""  # what people call it, where an input and an output have the same name
    lanewise: bool = False  # an element for each lane of the nest, side by side
    words: bool = False  # of 32 bits instead of numbers

    @property
    def title(self) -> str:
        return self.label or self.name

    @property
    def pitch(self) -> int:
        return self.columns if self.stride is None else self.stride


@dataclass(frozen=True)
class Element:
    """A scalar of an array; rows and columns are whole numbers, known ones or expressions."""

    array: str
    column: Whole
    row: Whole | None = None  # None: the array has one row


@dataclass(frozen=True)
class Register:
    """A scalar that is carried from turn to turn."""

    name: str


INDEX = Register("index")
"""A word that is there from the start: the number of the state; where lanes work on one state, that of the lane."""

Place = Element | Register | Whole
"""A whole number is read as a word. Only one with a name can be written, the same by all lanes."""


# -- statements -------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Step:
    """Arithmetic between memory and registers.

    All that is read is read before anything is written; registers change at once. ``body`` may use nodes of steps
    before it that are still in force. A write that ``adds`` is the sum of what the place holds and the value. A step
    that is ``apart`` reads nothing of what it writes: values may be stored as soon as they are known.
    """

    reads: Mapping[Any, Place]  # value of an input node -> where it is
    body: Body = field(default_factory=list)
    writes: Sequence[tuple[Place, Node]] = ()
    adds: bool = False
    apart: bool = False


@dataclass(eq=False)
class For:
    """``for name in range(first, stop, step)``."""

    name: str
    first: Whole
    stop: Whole
    body: Sequence[Statement]
    step: Whole = Whole("number", (1,))
    parallel: bool = False
    side_by_side: bool = False  # turns may run side by side in lanes, where one state leaves lanes unused
    repeatable: bool = False  # and one of them twice

    @property
    def turns(self) -> bool | None:
        """Whether there is at least one turn; None: that is not known before."""
        first, stop, step = self.first.number, self.stop.number, self.step.number
        return None if first is None or stop is None or step is None else bool(range(first, stop, step))


@dataclass(eq=False)
class If:
    """``then`` if the test is not 0, else ``otherwise``."""

    test: Whole
    then: Sequence[Statement]
    otherwise: Sequence[Statement] = ()


@dataclass(eq=False)
class IfNegative:
    """``then`` if the register is negative.

    States that are computed side by side go through ``then`` together if the register of any of them is negative: for
    the others ``then`` must leave every register and every place as it is. So work that few states need is left out
    where a whole group of them does not need it, and the results do not depend on how states are grouped.
    """

    register: Register
    then: Sequence[Statement]


@dataclass(eq=False)
class Declare:
    """Registers and what they hold at first."""

    registers: Mapping[Register, float | Element]


@dataclass(eq=False)
class Let:
    """A whole number gets a name; a ``Change`` may give the name another value later."""

    name: str
    value: Whole


@dataclass(eq=False)
class Change:
    name: str
    value: Whole


@dataclass(eq=False)
class Join:
    """Lanes 0 and n/2, 1 and n/2 + 1, … are combined, then 0 and n/4, …; in the end all hold the result.

    ``how``: "add" a + b; "least" b if b < a, else a; "most" b if a < b, else a.
    """

    register: Register
    how: Literal["add", "least", "most"]


@dataclass(eq=False)
class Barrier:
    """All threads of a state arrive before any goes on."""


Statement = Step | For | If | IfNegative | Declare | Let | Change | Join | Barrier


@dataclass(frozen=True, eq=False)
class Nest:
    """The statements for one state, the memory they work on, and the numbers that a call must give."""

    name: str
    dtype: str
    arrays: tuple[Array, ...]
    body: Sequence[Statement]
    numbers: tuple[str, ...] = ()  # whole numbers that a call gives, such as the number of time steps
    constants: Mapping[str, Any] = field(
        default_factory=dict[str, Any]
    )  # arrays of kind "constant": their values
    tables: Mapping[str, Sequence[int]] = field(default_factory=dict[str, Sequence[int]])  # of whole numbers
    lanes: int = 1  # that work on one state together
    unfused: Callable[[], Nest] | None = (
        None  # makes the same without fused multiply-adds, where that is possible
    )
    fused: bool = True

    def array(self, name: str) -> Array:
        return next(array for array in self.arrays if array.name == name)


def statements(body: Sequence[Statement]) -> Iterator[Statement]:
    """All statements, those inside of others included."""
    for statement in body:
        yield statement
        if isinstance(statement, For):
            yield from statements(statement.body)
        elif isinstance(statement, If):
            yield from statements([*statement.then, *statement.otherwise])
        elif isinstance(statement, IfNegative):
            yield from statements(statement.then)


def changed(body: Sequence[Statement]) -> list[Register | str]:
    """Registers and names that get another value somewhere inside, each once."""
    found: dict[Register | str, None] = {}
    for statement in statements(body):
        if isinstance(statement, Step):
            found.update((place, None) for place, _ in statement.writes if isinstance(place, Register))
            found.update((place.args[0], None) for place, _ in statement.writes if isinstance(place, Whole))
        elif isinstance(statement, Change):
            found[statement.name] = None
        elif isinstance(statement, Join):
            found[statement.register] = None
        elif isinstance(statement, Declare):
            found.update(dict.fromkeys(statement.registers))
    return list(found)
