"""The definition of meaning: a program run one operation at a time in plain Python.

Every target must return these bits (all NaNs count as equal). Each operation rounds once, to nearest with
ties to even, with subnormal numbers, in the precision of the program. NumPy's scalars do that for ``+ - * /``
and the square root; a fused multiply-add is computed exactly on integers here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from linkwise.compiler.ir import loops, words
from linkwise.compiler.ir.graph import Node
from linkwise.compiler.ir.program import Program
from linkwise.compiler.ir.schedule import Body, LoopRegion
from linkwise.compiler.ir.walks import carried
from linkwise.errors import ShapeError

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "lt": lambda a, b: bool(a < b),
    "le": lambda a, b: bool(a <= b),
    "eq": lambda a, b: bool(a == b),
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    **words.FOLDED,
}
_JOINED: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "least": lambda a, b: b if b < a else a,
    "most": lambda a, b: b if a < b else a,
}
_UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": lambda a: -a,
    "abs": abs,
    "sqrt": np.sqrt,
    "not": lambda a: not a,
    "word_of": int,
    "bits_of": lambda a: bits(a),
    "real_from_bits": lambda a: np.uint64(a).view(np.float64),
    "real_of": np.float64,
}


def run(program: Program, *inputs: Sequence[float]) -> list[np.ndarray]:
    """The outputs for one state; one sequence of numbers per input, in the order of ``program.inputs``."""
    scalar = np.float64 if program.dtype == "float64" else np.float32
    if len(inputs) != len(program.inputs):
        raise ShapeError(f"{program.name} takes {len(program.inputs)} inputs, got {len(inputs)}")
    states: dict[str, np.ndarray] = {}
    for (name, size), given in zip(program.inputs, inputs, strict=True):
        states[name] = np.asarray(given, dtype=scalar).reshape(-1)
        if states[name].size != size:
            raise ShapeError(f"{name}: expected {size} numbers, got {states[name].size}")
    with np.errstate(all="ignore"):
        machine = _Machine(scalar, states)
        machine.execute(program.body)
        return [
            np.array([machine.value(node) for node in nodes], dtype=scalar).reshape(shape)
            for (_, shape), nodes in zip(program.outputs, program.values, strict=True)
        ]


def values(order: list[Node], scalar: type[np.floating], known: Mapping[Node, Any]) -> dict[Node, Any]:
    """The values of some operations, from those of values that they begin with.

    Args:
        order: the operations; arguments before what uses them.
        scalar: the precision.
        known: values of nodes that are not among them.
    """
    machine = _Machine(scalar, {})
    machine.known.update(known)
    with np.errstate(all="ignore"):
        machine.execute([*order])
    return machine.known


class _Machine:
    def __init__(self, scalar: type[np.floating], inputs: dict[str, np.ndarray]):
        self.scalar = scalar
        self.inputs = inputs
        self.known: dict[Node, Any] = {}

    def value(self, node: Node) -> Any:
        if node in self.known:
            return self.known[node]
        if node.op == "const":
            return self.scalar(node.value)
        if node.op == "word":
            return node.value
        if node.op == "input":
            return self.read(node)
        if node.op == "result":  # a loop leaves the last state in its carried values
            return self.known[carried(node)]
        raise KeyError(node)

    def read(self, node: Node) -> Any:
        name, k = node.value
        return self.inputs[name][k]

    def execute(self, body: Body) -> None:
        for item in body:
            if isinstance(item, LoopRegion):
                self.loop(item)
            else:
                self.known[item] = self.evaluate(item)

    def loop(self, region: LoopRegion) -> None:
        loop = region.loop
        state = [self.value(node) for node in loop.initial]
        while True:
            self.known.update(zip(loop.phi, state, strict=True))
            self.execute(region.body)
            if not self.value(loop.active):
                return
            state = [self.value(node) for node in loop.following]

    def evaluate(self, node: Node) -> Any:
        args = [self.value(a) for a in node.args]
        if node.op in _BINARY:
            return _BINARY[node.op](*args)
        if node.op in _UNARY:
            return _UNARY[node.op](*args)
        if node.op == "fma":
            return fma(*args)
        if node.op == "select":
            return args[1] if args[0] else args[2]
        if node.op == "bit":
            return bool((bits(args[0]) >> node.value) & 1)
        raise NotImplementedError(f"the interpreter has no operation {node.op}")


def run_nest(nest: loops.Nest, arrays: Mapping[str, np.ndarray], **numbers: int) -> None:
    """Execute the statements for one state.

    ``arrays`` has every input, and every array that is written, which changes: flat, of the program's precision.
    ``numbers`` are those that a call gives, and ``index``, the number of the state, for nests that read it. Parallel
    turns are taken in order here; no result may depend on it.
    """
    scalar = np.float64 if nest.dtype == "float64" else np.float32
    memory = dict(arrays)
    for array in nest.arrays:
        if array.kind == "constant":
            memory[array.name] = np.asarray(nest.constants[array.name], scalar).ravel()
        elif array.kind == "scratch":
            memory[array.name] = np.full(int(array.rows) * array.columns, np.nan, scalar)
    names = dict(numbers)
    with np.errstate(all="ignore"):
        _run([Lane(nest, scalar, memory, names, lane) for lane in range(nest.lanes)], nest.body)


def nest_outputs(nest: loops.Nest, given: Mapping[str, np.ndarray], **numbers: int) -> dict[str, np.ndarray]:
    """The outputs of one state by their titles, flat, of a nest in which no array is both input and output.

    Args:
        nest: the statements.
        given: inputs by their titles, flat, of the program's precision.
        numbers: as for ``run_nest``.
    """
    written = [array for array in nest.arrays if array.kind == "output"]
    arrays = {array.name: given[array.title] for array in nest.arrays if array.kind == "input"}
    arrays |= {array.name: np.zeros(int(array.rows) * array.columns, nest.dtype) for array in written}
    run_nest(nest, arrays, **numbers)
    return {array.title: arrays[array.name] for array in written}


def _run(lanes: Sequence[Lane], body: Sequence[loops.Statement]) -> None:
    """Every lane does a statement before any does the next; whole numbers are the same for all."""
    first = lanes[0]
    for statement in body:
        match statement:
            case loops.Step():
                written = [lane.step(statement) for lane in lanes]
                for lane, values in zip(lanes, written, strict=True):
                    lane.write(statement, values)
            case loops.For():
                bounds = (statement.first, statement.stop, statement.step)
                for k in range(*map(first.whole, bounds)):
                    first.names[statement.name] = k
                    _run(lanes, statement.body)
            case loops.If():
                _run(lanes, statement.then if first.whole(statement.test) else statement.otherwise)
            case loops.IfNegative():
                if any(lane.registers[statement.register] < 0 for lane in lanes):
                    _run(lanes, statement.then)
            case loops.Declare():
                for lane in lanes:
                    lane.declare(statement)
            case loops.Let() | loops.Change():
                first.names[statement.name] = first.whole(statement.value)
            case loops.Join():
                held = [lane.registers[statement.register] for lane in lanes]
                while half := len(held) // 2:
                    held = [_JOINED[statement.how](held[k], held[k + half]) for k in range(half)]
                for lane in lanes:
                    lane.registers[statement.register] = held[0]
            case loops.Barrier():
                pass  # a statement ends before the next begins


class Lane(_Machine):
    """The state of one lane; memory and the values of names are shared by all lanes."""

    def __init__(self, nest: loops.Nest, scalar: Any, memory: Any, names: dict[str, int], number: int):
        super().__init__(scalar, memory)
        self.nest, self.names, self.number = nest, names, number
        self.arrays = {array.name: array for array in nest.arrays}
        self.registers: dict[loops.Register, Any] = {loops.INDEX: names.get("index", number)}
        self.reads: Mapping[Any, loops.Place] = {}

    def whole(self, value: loops.Whole) -> int:
        return value.value(self.names, self.nest.tables)

    def at(self, element: loops.Element) -> int:
        array, row = self.arrays[element.array], 0 if element.row is None else self.whole(element.row)
        place = row * array.pitch + self.whole(element.column)
        return place * self.nest.lanes + self.number if array.lanewise else place

    def held(self, place: loops.Place) -> Any:
        if isinstance(place, loops.Register):
            return self.registers[place]
        if isinstance(place, loops.Whole):
            return self.whole(place)
        return self.inputs[place.array][self.at(place)]

    def read(self, node: Node) -> Any:
        return self.held(self.reads[node.value])

    def declare(self, statement: loops.Declare) -> None:
        for register, start in statement.registers.items():
            held = isinstance(start, loops.Element)
            self.registers[register] = self.held(start) if held else self.scalar(start)

    def step(self, step: loops.Step) -> list[Any]:
        """Compute, and give what is to be written."""
        self.reads = step.reads
        self.execute(step.body)
        return [self.value(node) for _, node in step.writes]

    def write(self, step: loops.Step, values: Sequence[Any]) -> None:
        for (place, _), value in zip(step.writes, values, strict=True):
            if step.adds:
                value = self.held(place) + value
            if isinstance(place, loops.Register):
                self.registers[place] = value
            elif isinstance(place, loops.Whole):
                self.names[place.args[0]] = value
            else:
                self.inputs[place.array][self.at(place)] = value


def bits(x: np.floating) -> int:
    """The representation of a float as an unsigned integer."""
    return int(x.view(np.uint64 if x.itemsize == 8 else np.uint32))


def fma(a: np.floating, b: np.floating, c: np.floating) -> np.floating:
    """a·b + c, rounded once to the precision of the operands."""
    scalar = type(a)
    x, y, z = float(a), float(b), float(c)
    try:
        (n1, d1), (n2, d2), (n3, d3) = x.as_integer_ratio(), y.as_integer_ratio(), z.as_integer_ratio()
    except (OverflowError, ValueError):  # an infinity or NaN
        # the product is exactly one of them, or else the sum is what is added
        return c if math.isfinite(x) and math.isfinite(y) else a * b + c
    n, d = n1 * n2 * d3 + n3 * d1 * d2, d1 * d2 * d3
    if n == 0:
        return a * b + c if x == 0.0 or y == 0.0 else scalar(0.0)  # IEEE's rule for the sign of zero
    if scalar is not np.float64:
        return scalar(_nearest(n, d, 24, -149))
    try:
        return scalar(n / d)  # Python rounds quotients of integers once, to nearest with ties to even
    except OverflowError:
        return scalar(math.inf if n > 0 else -math.inf)


def _nearest(numerator: int, d: int, digits: int, smallest: int) -> float:
    """The nearest binary float with that many digits and 2^smallest as its smallest step; exact in a Python
    float.
    """
    n = abs(numerator)
    exponent = n.bit_length() - d.bit_length()
    if n << max(-exponent, 0) < d << max(exponent, 0):
        exponent -= 1  # now 2^exponent <= n/d < 2^(exponent + 1)
    step = max(exponent - digits + 1, smallest)
    whole, rest = divmod(n << max(-step, 0), d << max(step, 0))
    half = 2 * rest - (d << max(step, 0))
    if half > 0 or (half == 0 and whole & 1):
        whole += 1
    overflows = whole.bit_length() + step > (128 if digits == 24 else 1024)
    magnitude = math.inf if overflows else math.ldexp(whole, step)
    return magnitude if numerator > 0 else -magnitude
