"""The expression graph: hash-consed nodes, simplified when they are made.

Equal expressions are one node. Zeros, ones, signs, constants and the order of commutative operands are settled on
construction, so an algorithm traced over symbols shrinks to what one robot needs. A change of sign is free: signs are
pulled outwards (``(-a)*b`` is ``-(a*b)``) and vanish into subtractions.

Operations of a node (``op``; ``args`` are nodes, ``value`` is what the op needs besides):

=========  ===========  ================================================================================
op         value        meaning
=========  ===========  ================================================================================
const      float        a constant (float64; a float32 program rounds it once)
input      (name, k)    element k of an input
add sub mul div neg     IEEE arithmetic, one rounding each
fma                     a*b + c with one rounding; only made by ``fuse``
sqrt abs                IEEE square root, absolute value
sin cos                 sine, cosine; expanded by ``sincos`` into the operations of this table
sign                    -1, 0 or 1, NaN of NaN; expanded likewise, kept until then because its derivative is 0
atan2                   atan2(y, x); expanded likewise
rint                    nearest whole number, ties to even; expanded by ``rounding`` likewise
like       other        its argument, with the derivative of another node, or of one that (deferred, k) gives when it
                        is needed; ``simplify`` leaves the argument
lt le eq                comparison, a condition (false when an operand is NaN)
and or not              on conditions
select                  args (condition, a, b): a where the condition holds, else b
bit        k            condition: bit k of the representation of the argument is set
phi        (number, k)  inside a loop: the k-th carried value
result     (number, k,  after a loop: the k-th carried value's last state; the loop lives as long as its results
           loop)
word       int          a constant of 64 bits; ``words`` has the operations on such words:
word_and word_or        bit by bit, also word_xor
word_shl word_shr       shifted to the left, to the right by as many bits as the second argument says
word_add word_mul       the lower 64 bits of a sum, of a product
word_of                 1 where a condition holds, else 0
bits_of                 the representation of a number; real_from_bits: the number of a representation
real_of                 the number that a word below 2^53 counts
=========  ===========  ================================================================================
"""

from __future__ import annotations

import linecache
import math
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterable, MutableSequence, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.errors import TraceError
from linkwise.language import Elements, Variable
from linkwise.scalar import current_stage
from linkwise.spatial import Tensor

ARRAYS = (np.ndarray, Elements)
_VECTORS = (Tensor, *ARRAYS)
_stage = current_stage.get
_new = object.__new__
_LARGEST_POWER = 64  # larger exponents are taken for mistakes
CONDITIONS = frozenset({"lt", "le", "eq", "and", "or", "not", "bit"})
WORDS = frozenset(
    {
        *(
            "word",
            "word_and",
            "word_or",
            "word_xor",
            "word_shl",
            "word_shr",
            "word_add",
            "word_mul",
            "word_of",
        ),
        "bits_of",
    }
)


class Node:
    """One value of a graph. Supports ``+ - * /``, comparisons and the functions of ``linkwise.scalar``."""

    __slots__ = ("__weakref__", "args", "graph", "index", "op", "stage", "value")

    graph: Graph
    op: str
    args: tuple[Node, ...]
    value: Any
    index: int
    """Order of creation: arguments come before what uses them."""
    stage: str

    @property
    def is_plus_zero(self) -> bool:
        """Whether it is the constant +0."""
        return self.op == "const" and self.value == 0.0 and math.copysign(1.0, self.value) > 0.0

    def __add__(self, other: Any) -> Node:
        graph = self.graph
        if type(other) is not Node or other.graph is not graph:
            if isinstance(other, ARRAYS):
                return NotImplemented  # the array goes over its elements
            other = graph.lift(other)
        return graph.add(self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Node:
        graph = self.graph
        if type(other) is not Node or other.graph is not graph:
            if isinstance(other, ARRAYS):
                return NotImplemented  # the array goes over its elements
            other = graph.lift(other)
        return graph.sub(self, other)

    def __rsub__(self, other: Any) -> Node:
        return self.graph.sub(self.graph.lift(other), self)

    def __mul__(self, other: Any) -> Node:
        graph = self.graph
        if type(other) is not Node or other.graph is not graph:
            if isinstance(other, _VECTORS):
                return NotImplemented  # the vector computes scalar times vector
            other = graph.lift(other)
        return graph.mul(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Node:
        if isinstance(other, ARRAYS):
            return NotImplemented  # the array goes over its elements
        return self.graph.div(self, self.graph.lift(other))

    def __rtruediv__(self, other: Any) -> Node:
        return self.graph.div(self.graph.lift(other), self)

    def __neg__(self) -> Node:
        return self.graph.neg(self)

    def __pos__(self) -> Node:
        return self

    def __pow__(self, exponent: Any) -> Node:
        """Whole powers by repeated squaring, halves of them by the square root."""
        twice = 2 * exponent if isinstance(exponent, (int, float, np.number)) else None
        if twice is None or twice != round(twice) or abs(twice) > 2 * _LARGEST_POWER:
            raise TraceError(
                f"a symbol can only be raised to whole numbers and halves of them, up to {_LARGEST_POWER}; "
                f"got {exponent!r}"
            )
        twice = round(twice)
        if twice < 0:
            return 1.0 / self ** (-exponent)
        power = self.sqrt() if twice % 2 else self.graph.lift(1.0)
        whole, square = twice // 2, self
        while whole:
            if whole % 2:
                power = power * square
            whole //= 2
            if whole:
                square = square * square
        return power

    def __abs__(self) -> Node:
        return self.graph.unary("abs", self)

    def __lt__(self, other: Any) -> Node:
        return self.graph.compare("lt", self, self.graph.lift(other))

    def __le__(self, other: Any) -> Node:
        return self.graph.compare("le", self, self.graph.lift(other))

    def __gt__(self, other: Any) -> Node:
        return self.graph.compare("lt", self.graph.lift(other), self)

    def __ge__(self, other: Any) -> Node:
        return self.graph.compare("le", self.graph.lift(other), self)

    def __and__(self, other: Any) -> Node:
        return self.graph.both(self, self.graph.lift_condition(other))

    __rand__ = __and__

    def __or__(self, other: Any) -> Node:
        return self.graph.either(self, self.graph.lift_condition(other))

    __ror__ = __or__

    def __invert__(self) -> Node:
        return self.graph.make("not", (self,))

    def __bool__(self) -> bool:
        raise TraceError(
            "a traced value has no truth value yet, so Python's if, while, and, or, min, max cannot depend on it; use "
            f"lw.where(condition, a, b), lw.minimum or lw.maximum instead{_users_line()}"
        )

    def __float__(self) -> float:
        if self.op == "const":
            return float(self.value)
        raise TraceError(
            "a traced value is not a number yet; use lw.sin, lw.cos, lw.sqrt, lw.atan2 instead of those of math"
            + _users_line()
        )

    def sin(self) -> Node:
        return self.graph.odd_function("sin", self)

    def cos(self) -> Node:
        return self.graph.even_function("cos", self)

    def sqrt(self) -> Node:
        return self.graph.unary("sqrt", self)

    def sign(self) -> Node:
        return self.graph.sign(self)

    def rint(self) -> Node:
        return self.graph.unary("rint", self)

    def like(self, other: Any) -> Node:
        """This value, with the derivative of another one."""
        return self.graph.make("like", (self,), self.graph.lift(other))

    def like_later(self, others: Any, k: int) -> Node:
        """This value, with the derivative of ``others[k]``, which is made when it is needed."""
        return self.graph.make("like", (self,), (others, k))

    def arctan2(self, x: Any) -> Node:
        return self.graph.atan2(self, self.graph.lift(x))

    @property
    def known_results(self) -> dict[tuple[Any, ...], Any] | None:
        """Of this trace, for ``scalar.traced_once``."""
        return self.graph.known_results

    def arctan2_of(self, y: Any) -> Node:
        return self.graph.atan2(self.graph.lift(y), self)

    def where(self, if_true: Any, if_false: Any) -> Node:
        return self.graph.select(self, self.graph.lift(if_true), self.graph.lift(if_false))

    def while_loop(
        self,
        active: Callable[..., Any],
        body: Callable[..., Sequence[Any]],
        state: Sequence[Any],
        uneven: bool = False,
    ) -> tuple[Node, ...]:
        return self.graph.while_loop(active, body, state, uneven)

    def __repr__(self) -> str:
        if self.op in ("const", "input"):
            return f"<{self.op} {self.value}>"
        return f"<{self.op} {', '.join(f'#{a.index}' for a in self.args)} as #{self.index}>"


@dataclass(eq=False)
class Loop:
    """A loop whose lanes stop one by one: ``state = select(active, body(state), state)`` while any lane is active."""

    number: int
    initial: list[Node]
    phi: list[Node] = field(default_factory=list[Node])
    active: Node = None  # type: ignore[assignment]  # condition over the phis; set once it is traced
    following: list[Node] = field(
        default_factory=list[Node]
    )  # next state, already frozen where a lane is not active
    uneven: bool = False  # most lanes need few turns and some many


class _Alive(dict[tuple[Any, ...], Any]):
    """Nodes that are still used elsewhere."""

    def get(self, key: tuple[Any, ...], default: Any = None) -> Any:
        known = super().get(key)
        return default if known is None else known()

    def __setitem__(self, key: tuple[Any, ...], node: Node) -> None:
        super().__setitem__(key, weakref.ref(node))


class Graph:
    """Makes nodes; equal nodes are made once.

    Nodes refer to their graph. So that both are freed when nothing else uses them, without looking for garbage, a graph
    does not refer to loops (their results do), and a finished graph not to nodes.
    """

    loops: weakref.WeakValueDictionary[int, Loop]
    """By their numbers; inner loops have the higher ones."""

    def __init__(self):
        self._nodes: dict[tuple[Any, ...], Node] = {}
        self._leaves: MutableSequence[Node] = []  # nodes without arguments
        self._count = 0
        self._opened = 0
        self.known_results: dict[tuple[Any, ...], Any] | None = {}  # None once it is finished
        self.loops = weakref.WeakValueDictionary()
        self.zero = self.const(0.0)
        self.one = self.const(1.0)

    def __getattr__(self, name: str) -> Node:
        """``zero`` and ``one`` of a finished graph, which does not refer to nodes."""
        if name == "zero":
            return self.const(0.0)
        if name == "one":
            return self.const(1.0)
        raise AttributeError(f"a graph has no {name!r}")

    # -- making nodes ---------------------------------------------------------------------------------------------

    def make(self, op: str, args: tuple[Node, ...] = (), value: Any = None) -> Node:
        """The node for this operation exactly as given; ``add``, ``mul`` and so on simplify first."""
        key = (op, args, value)  # nodes are equal to themselves alone
        nodes = self._nodes
        node = nodes.get(key)
        if node is None:
            node = _new(Node)  # hundreds of thousands: a constructor would take half as long again
            node.graph = self
            node.op = op
            node.args = args
            node.value = value
            node.stage = _stage()
            node.index = count = self._count
            self._count = count + 1
            nodes[key] = node
            if not args:
                self._leaves.append(node)
        return node

    def known(self, op: str, args: tuple[Node, ...]) -> Node | None:
        """The node for this operation where it was made before."""
        return self._nodes.get((op, args, None))

    def finish(self) -> None:
        """All operations are made. They are freed as soon as nothing uses them, without looking for garbage.

        The graph still knows its inputs and constants; an operation that is made later is a new node.
        """
        self._nodes = _Alive()
        for leaf in self._leaves:
            if leaf.op in ("const", "input", "word"):
                self._nodes[leaf.op, (), leaf.value] = leaf
        self._leaves = deque(maxlen=0)  # keeps none
        self.known_results = None
        self.__dict__.pop("zero", None)  # from now on ``__getattr__`` finds them
        self.__dict__.pop("one", None)

    @property
    def count(self) -> int:
        """How many nodes were made so far."""
        return self._count

    def forget(self, count: int) -> None:
        """Unmake the nodes made since there were ``count``; nothing may refer to them."""
        while self._count > count:
            _, node = self._nodes.popitem()
            if not node.args:
                self._leaves.pop()
            self._count -= 1

    def const(self, value: float) -> Node:
        value = float(value)
        if value == 0.0:
            value = 0.0  # one zero: a negative zero is not worth an operation
        elif value != value:
            value = math.nan  # one NaN: equal to itself as the same object
        return self.make("const", (), value)

    def input(self, name: str, k: int) -> Node:
        return self.make("input", (), (name, k))

    def inputs(self, name: str, size: int) -> list[Node]:
        return [self.input(name, k) for k in range(size)]

    def lift(self, x: Any) -> Node:
        if type(x) is float:
            return self.const(x)
        if isinstance(x, Node):
            if x.graph is not self:
                raise TraceError("values of two different traces cannot be mixed")
            return x
        if isinstance(x, Variable):
            return self.lift(x.value)
        try:
            return self.const(x.__float__())  # float(x) would take the text "1", too
        except (AttributeError, TypeError, ValueError):
            raise TraceError(
                f"cannot use a {type(x).__name__} with a traced value; expected a number"
            ) from None

    def lift_condition(self, x: Any) -> Node:
        if isinstance(x, Node):
            return self.lift(x)
        return self.compare("lt", self.zero, self.one if x else self.zero)

    # -- arithmetic, simplified -----------------------------------------------------------------------------------

    def neg(self, a: Node) -> Node:
        if a.op == "const":
            return self.const(-a.value)
        if a.op == "neg":
            return a.args[0]
        return self.make("neg", (a,))

    def add(self, a: Node, b: Node) -> Node:
        if a.op == "const":
            if b.op == "const":
                return self.const(a.value + b.value)
            if a.value == 0.0:
                return b
        elif b.op == "const" and b.value == 0.0:
            return a
        if b.op == "neg":
            return self.sub(a, b.args[0])
        if a.op == "neg":
            return self.sub(b, a.args[0])
        if a.index > b.index:
            a, b = b, a
        return self.make("add", (a, b))

    def sub(self, a: Node, b: Node) -> Node:
        if b.op == "const":
            if a.op == "const":
                return self.const(a.value - b.value)
            if b.value == 0.0:
                return a
            if b.value < 0.0:
                return self.add(a, self.const(-b.value))
        elif a.op == "const" and a.value == 0.0:
            return self.neg(b)
        if a is b:
            return self.zero
        if b.op == "neg":
            return self.add(a, b.args[0])
        if a.op == "neg":
            return self.neg(self.add(a.args[0], b))
        if a.index > b.index:  # a - b and b - a are one node up to its sign
            return self.neg(self.make("sub", (b, a)))
        return self.make("sub", (a, b))

    def mul(self, a: Node, b: Node) -> Node:
        if b.op == "const":
            a, b = b, a
        if a.op == "const":
            if b.op == "const":
                return self.const(a.value * b.value)
            if a.value == 0.0:
                return self.zero
            if a.value == 1.0:
                return b
            if a.value < 0.0:
                return self.neg(self.mul(self.const(-a.value), b))
            if b.op == "mul" and b.args[0].op == "const":
                return self.mul(self.const(a.value * b.args[0].value), b.args[1])
        if a.op == "neg":
            return self.neg(self.mul(a.args[0], b))
        if b.op == "neg":
            return self.neg(self.mul(a, b.args[0]))
        if a.op != "const" and a.index > b.index:
            a, b = b, a
        return self.make("mul", (a, b))

    def div(self, a: Node, b: Node) -> Node:
        if a.op == "const" and a.value == 0.0:
            return self.zero
        if b.op == "const":
            if a.op == "const":
                return self.const(_divide(a.value, b.value))
            if b.value == 1.0:
                return a
            mantissa, _ = math.frexp(b.value)
            if abs(mantissa) == 0.5:  # the reciprocal of a power of two is exact
                return self.mul(self.const(1.0 / b.value), a)
        if a.op == "neg":
            return self.neg(self.div(a.args[0], b))
        if b.op == "neg":
            return self.neg(self.div(a, b.args[0]))
        return self.make("div", (a, b))

    def fma(self, a: Node, b: Node, c: Node) -> Node:
        return self.make("fma", (a, b, c))

    def unary(self, op: str, a: Node) -> Node:
        if a.op == "const":
            if op == "sqrt":
                return self.const(math.sqrt(a.value) if a.value >= 0 else math.nan)
            if op == "abs":
                return self.const(abs(a.value))
            if op == "rint":
                return self.const(round(a.value) if math.isfinite(a.value) else a.value)
        if op == "abs" and a.op == "neg":
            return self.unary("abs", a.args[0])
        return self.make(op, (a,))

    def odd_function(self, op: str, a: Node) -> Node:
        if a.op == "const":
            return self.const(math.sin(a.value) if math.isfinite(a.value) else math.nan)
        if a.op == "neg":
            return self.neg(self.make(op, a.args))
        return self.make(op, (a,))

    def sign(self, a: Node) -> Node:
        if a.op == "const":
            return a if math.isnan(a.value) else self.const((a.value > 0) - (a.value < 0))
        if a.op == "neg":
            return self.neg(self.sign(a.args[0]))
        return self.make("sign", (a,))

    def even_function(self, op: str, a: Node) -> Node:
        if a.op == "const":
            return self.const(math.cos(a.value) if math.isfinite(a.value) else math.nan)
        if a.op == "neg":
            return self.make(op, a.args)
        return self.make(op, (a,))

    def atan2(self, y: Node, x: Node) -> Node:
        if y.op == x.op == "const":
            return self.const(math.atan2(y.value, x.value))
        return self.make("atan2", (y, x))

    # -- conditions -----------------------------------------------------------------------------------------------

    def compare(self, op: str, a: Node, b: Node) -> Node:
        return self.make(op, (a, b))

    def both(self, a: Node, b: Node) -> Node:
        return a if a is b else self.make("and", (a, b))

    def either(self, a: Node, b: Node) -> Node:
        return a if a is b else self.make("or", (a, b))

    def select(self, condition: Node, a: Node, b: Node) -> Node:
        if a is b:
            return a
        return self.make("select", (condition, a, b))

    # -- loops ----------------------------------------------------------------------------------------------------

    def while_loop(
        self,
        active: Callable[..., Any],
        body: Callable[..., Sequence[Any]],
        state: Iterable[Any],
        uneven: bool = False,
    ) -> tuple[Node, ...]:
        """See ``linkwise.scalar.while_loop``."""
        loop = self.open_loop([self.lift(s) for s in state], uneven)
        loop.active = self.lift_condition(active(*loop.phi))
        new = [self.lift(s) for s in body(*loop.phi)]
        if len(new) != len(loop.phi):
            raise TraceError(f"the body of a loop must return {len(loop.phi)} values, it returned {len(new)}")
        if any(s.op in CONDITIONS for s in (*loop.initial, *new)):
            raise TraceError(
                "a loop carries numbers, not conditions; carry where(condition, 1.0, 0.0) instead"
            )
        loop.following = [self.select(loop.active, n, p) for n, p in zip(new, loop.phi, strict=True)]
        return tuple(self.result(loop, k) for k in range(len(loop.phi)))

    def open_loop(self, initial: list[Node], uneven: bool = False) -> Loop:
        """A new loop with its carried values; ``active`` and ``following`` are still to be set."""
        number = self._opened
        self._opened += 1
        phi = [self.make("phi", (), (number, k)) for k in range(len(initial))]
        loop = self.loops[number] = Loop(number, initial, phi, uneven=uneven)
        return loop

    def result(self, loop: Loop, k: int) -> Node:
        """The last state of a carried value."""
        return self.make("result", (), (loop.number, k, loop))


def _users_line() -> str:
    """Where in the user's own code this happens, for errors about what cannot be traced."""
    package = str(Path(__file__).parents[2])
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_code.co_filename.startswith(package):
        frame = frame.f_back
    if frame is None:
        return ""
    file, line = frame.f_code.co_filename, frame.f_lineno
    return f" ({Path(file).name}:{line}: {linecache.getline(file, line).strip()})"


def _divide(a: float, b: float) -> float:
    if b == 0.0:
        return math.nan if a == 0.0 or math.isnan(a) else math.copysign(math.inf, a)
    return a / b
