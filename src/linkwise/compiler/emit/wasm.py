"""WebAssembly: a program as a module for browsers and Node.js, with the JavaScript that calls it; no tool is needed.

The module exports its memory and ``run(array, …, number, …)``: the addresses of all arrays that are not constants, then
the whole numbers of the call; one state at a time. WebAssembly has no fused multiply-add: it is computed from products
and sums with their exact errors, rounded once (S. Boldo and G. Melquiond, "Emulation of FMA and correctly rounded
sums", 2008); numbers near the ends of the range go to exact whole numbers in JavaScript. So the bits are those of every
target.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linkwise.compiler.emit import clike
from linkwise.compiler.ir.graph import CONDITIONS, Node
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
)
from linkwise.compiler.ir.schedule import LoopRegion
from linkwise.compiler.ir.walks import carried
from linkwise.compiler.shapes import nest

_I32, _F32, _F64 = b"\x7f", b"\x7d", b"\x7c"
_BLOCK, _LOOP, _IF, _ELSE, _END = b"\x02\x40", b"\x03\x40", b"\x04\x40", b"\x05", b"\x0b"
_EQZ, _MULTIPLY, _PLUS, _LESS, _MORE = b"\x45", b"\x6c", b"\x6a", b"\x48", b"\x4a"
_SELECT, _RETURN = b"\x1b", b"\x0f"
_DOUBLE = {
    "add": 0xA0, "sub": 0xA1, "mul": 0xA2, "div": 0xA3, "neg": 0x9A, "abs": 0x99, "sqrt": 0x9F,
    "lt": 0x63, "le": 0x65, "eq": 0x61, "load": 0x2B, "store": 0x39, "const": 0x44,
}  # fmt: skip
_SINGLE = {
    "add": 0x92, "sub": 0x93, "mul": 0x94, "div": 0x95, "neg": 0x8C, "abs": 0x8B, "sqrt": 0x91,
    "lt": 0x5D, "le": 0x5F, "eq": 0x5B, "load": 0x2A, "store": 0x38, "const": 0x43,
}  # fmt: skip
_WHOLE = {"add": _PLUS, "sub": b"\x6b", "mul": _MULTIPLY, "shl": b"\x74", "lt": _LESS, "eq": b"\x46"}
_LOGIC = {"and": b"\x71", "or": b"\x72", "not": _EQZ}
_SLOW_FMA, _FMA, _RUN = 0, 1, 2  # functions


def source(program: Any, *, function_name: str | None = None, description: str = "") -> str:
    """A JavaScript module (for browsers and Node.js) with the program in it: ``export async function load()`` gives a
    function of an object of arrays that returns an object of arrays."""
    name = clike.function_name(function_name, program.name, _KEYWORDS)
    said = clike.comment([f"{name}: {description}" if description else name], 105)
    return f"{said}const module = {json.dumps(module(program))};\n\n{LOADER}\n{_EXPORT.format(name=name)}"


def module(program: Any) -> dict[str, Any]:
    """What ``LOADER`` needs to make a function of the program: the module's bytes in base64, its arrays, the whole
    numbers of a call, the first free byte of its memory. Only ASCII letters and names of arrays are in it."""
    made = nest(program)
    arrays = [
        {"name": a.title, "kind": a.kind, "columns": a.columns, "rows": a.rows, "pitch": a.pitch}
        for a in _given(made)
    ]
    return {
        "bytes": base64.b64encode(binary(made)).decode(),
        "arrays": arrays,
        "numbers": made.numbers,
        "real": "Float64Array" if made.dtype == "float64" else "Float32Array",
        "start": _start(made),
    }


def binary(made: Nest) -> bytes:
    """The module."""
    real = _F64 if made.dtype == "float64" else _F32
    parameters = len(_given(made)) + len(made.numbers)
    fma = b"\x60" + _vector([real] * 3) + _vector([real])
    types = [
        fma,
        b"\x60" + _vector([_I32] * parameters) + _vector([]),
        b"\x60" + _vector([_F64] * 3) + _vector([_F64]),
    ]
    code = [_fused(made.dtype), _Code(made).function()]
    data = b"".join(np.asarray(values, made.dtype).tobytes() for values in made.constants.values())
    data += b"".join(np.asarray(values, "<i4").tobytes() for values in made.tables.values())
    pages = max(1, -(-_start(made) // 65536))
    sections = {
        1: _vector(types),
        2: _vector([_name("linkwise") + _name("fma") + b"\x00" + _unsigned(2)]),
        3: _vector([_unsigned(0), _unsigned(1)]),
        5: _vector([b"\x00" + _unsigned(pages)]),
        7: _vector([_name("run") + b"\x00" + _unsigned(_RUN), _name("memory") + b"\x02\x00"]),
        10: _vector([_unsigned(len(body)) + body for body in code]),
        11: _vector([b"\x00\x41\x00\x0b" + _unsigned(len(data)) + data]),
    }
    text = b"".join(bytes([number]) + _unsigned(len(body)) + body for number, body in sections.items())
    return b"\x00asm\x01\x00\x00\x00" + text


def _given(made: Nest) -> list[Array]:
    return [array for array in made.arrays if array.kind != "constant"]


def _start(made: Nest) -> int:
    """The first free byte of the memory; what lies before are constants and tables."""
    item = 8 if made.dtype == "float64" else 4
    size = item * sum(np.size(values) for values in made.constants.values())
    return -(-(size + 4 * sum(map(len, made.tables.values()))) // 16) * 16


# -- code -------------------------------------------------------------------------------------------------------------


class _Code:
    """The body of ``run``."""

    def __init__(self, made: Nest):
        self.nest = made
        self.double = made.dtype == "float64"
        self.ops = _DOUBLE if self.double else _SINGLE
        self.item = 8 if self.double else 4
        self.out: list[bytes] = []
        given = _given(made)
        self.base = {array.name: _get(k) for k, array in enumerate(given)}
        place = 0
        for name, values in made.constants.items():
            self.base[name] = _integer(place)
            place += self.item * np.size(values)
        self.table: dict[str, int] = {}
        for name, values in made.tables.items():
            self.table[name] = place
            place += 4 * len(values)
        self.first = len(given) + len(made.numbers)
        self.types: list[bytes] = []
        self.names = {name: len(given) + k for k, name in enumerate(made.numbers)}  # whole numbers
        self.registers: dict[Register, int] = {}
        self.nodes: dict[Node, int] = {}
        self.conditions: set[Node] = set()  # carried values that are conditions
        self.held: dict[Place, int] = {}
        self.reads: Any = {}

    def function(self) -> bytes:
        self.write(self.nest.body)
        kinds = b"".join(_unsigned(1) + kind for kind in self.types)
        return _unsigned(len(self.types)) + kinds + b"".join(self.out) + _END

    def local(self, kind: bytes) -> int:
        self.types.append(kind)
        return self.first + len(self.types) - 1

    def real(self) -> int:
        return self.local(_F64 if self.double else _F32)

    def emit(self, *parts: bytes) -> None:
        self.out.extend(parts)

    def write(self, body: Sequence[Statement]) -> None:
        for statement in body:
            match statement:
                case Step():
                    self.step(statement)
                case For():
                    self.loop(statement)
                case If():
                    self.emit(self.whole(statement.test), _IF)
                    self.write(statement.then)
                    self.emit(_ELSE)
                    self.write(statement.otherwise)
                    self.emit(_END)
                case IfNegative():
                    held = _get(self.registers[statement.register])
                    self.emit(held, self.constant(0.0), bytes([self.ops["lt"]]), _IF)
                    self.write(statement.then)
                    self.emit(_END)
                case Declare():
                    for register, start in statement.registers.items():
                        value = self.load(start) if isinstance(start, Element) else self.constant(start)
                        self.registers[register] = self.registers.get(register, -1)
                        if self.registers[register] < 0:
                            self.registers[register] = self.real()
                        self.emit(value, _set(self.registers[register]))
                case Let() | Change():
                    self.emit(self.whole(statement.value), _set(self.named(statement.name)))
                case Join() | Barrier():
                    pass  # one lane and one thread compute a state

    def named(self, name: str) -> int:
        if name not in self.names:
            self.names[name] = self.local(_I32)
        return self.names[name]

    def loop(self, loop: For) -> None:
        turn = self.named(loop.name)
        down = loop.step.number is not None and loop.step.number < 0
        self.emit(self.whole(loop.first), _set(turn), _BLOCK, _LOOP)
        self.emit(_get(turn), self.whole(loop.stop), _MORE if down else _LESS, _EQZ, _branch_if(1))
        self.write(loop.body)
        self.emit(_get(turn), self.whole(loop.step), _PLUS, _set(turn), _branch(0), _END, _END)

    # -- whole numbers and memory ------------------------------------------------------------------------------

    def whole(self, value: Whole) -> bytes:
        if value.op == "number":
            return _integer(value.args[0])
        if value.op == "name":
            return _get(self.named(value.args[0]))
        if value.op == "entry":
            table, index = value.args
            address = self.whole(index) + _integer(4) + _MULTIPLY
            return address + b"\x28\x02" + _unsigned(self.table[table])
        args = [self.whole(a) for a in value.args]
        if value.op == "choose":
            return args[1] + args[2] + args[0] + _SELECT
        return args[0] + args[1] + _WHOLE[value.op]

    def address(self, place: Element) -> tuple[bytes, bytes]:
        """(what puts the address on the stack, the constant part of it as an operand of loads and stores)."""
        array = self.nest.array(place.array)
        offset = place.column if place.row is None else place.row * array.pitch + place.column
        align = bytes([3 if self.double else 2])
        if offset.number is not None and offset.number >= 0:
            return self.base[place.array], align + _unsigned(offset.number * self.item)
        moved = self.whole(offset) + _integer(self.item) + _MULTIPLY + _PLUS
        return self.base[place.array] + moved, align + _unsigned(0)

    def load(self, place: Element) -> bytes:
        address, where = self.address(place)
        return address + bytes([self.ops["load"]]) + where

    def constant(self, value: float) -> bytes:
        with np.errstate(over="ignore"):
            number = np.float64(value) if self.double else np.float32(value)
        return bytes([self.ops["const"]]) + number.tobytes()

    # -- arithmetic --------------------------------------------------------------------------------------------

    def step(self, step: Step) -> None:
        self.reads, self.held = step.reads, {}
        for item in step.body:
            self.item_of(item)
        for _, node in step.writes:
            self.value(node)  # all is read before anything is written
        moves: list[tuple[bytes, int]] = []
        for place, node in step.writes:
            value = self.value(node)
            if isinstance(place, Register):
                moves.append((value, self.registers[place]))
                continue
            assert isinstance(place, Element)
            if step.adds:
                value = self.load(place) + value + bytes([self.ops["add"]])
            address, where = self.address(place)
            self.emit(address, value, bytes([self.ops["store"]]), where)
        self.emit(*(value for value, _ in moves), *(_set(local) for _, local in reversed(moves)))

    def value(self, node: Node) -> bytes:
        """What puts the value of a node on the stack."""
        if node.op == "const":
            return self.constant(node.value)
        if node.op == "input":
            place = self.reads[node.value]
            if isinstance(place, Register):
                return _get(self.registers[place])
            if place not in self.held:
                self.held[place] = self.real()
                self.emit(self.load(place), _set(self.held[place]))
            return _get(self.held[place])
        if node.op == "result":
            node = carried(node)
        return _get(self.nodes[node])

    def item_of(self, item: Node | LoopRegion) -> None:
        if isinstance(item, LoopRegion):
            self.repeat(item)
            return
        args = [self.value(a) for a in item.args]
        if item.op == "fma":
            code = b"".join(args) + b"\x10" + _unsigned(_FMA)
        elif item.op == "select":
            code = args[1] + args[2] + args[0] + _SELECT
        elif item.op == "bit" and self.double:
            code = args[0] + b"\xbd\x42" + _signed(item.value) + b"\x88\xa7\x41\x01\x71"
        elif item.op == "bit":
            code = args[0] + b"\xbc\x41" + _signed(item.value) + b"\x76\x41\x01\x71"
        else:
            code = b"".join(args) + (_LOGIC.get(item.op) or bytes([self.ops[item.op]]))
        self.nodes[item] = self.local(_I32) if item.op in CONDITIONS else self.real()
        self.emit(code, _set(self.nodes[item]))

    def repeat(self, region: LoopRegion) -> None:
        """``state = following`` as long as the state is active."""
        loop = region.loop
        for phi, initial in zip(loop.phi, loop.initial, strict=True):
            held = initial.op in CONDITIONS or initial in self.conditions
            self.nodes[phi] = self.local(_I32) if held else self.real()
            if held:
                self.conditions.add(phi)
            self.emit(self.value(initial), _set(self.nodes[phi]))
        for node in clike.operands(region):  # what is read in the loop is read before it
            if node.op == "input":
                self.value(node)
        self.emit(_BLOCK, _LOOP)
        left = False
        for item in region.body:
            self.item_of(item)
            if item is loop.active:
                self.emit(self.value(loop.active), _EQZ, _branch_if(1))
                left = True
        if not left:
            self.emit(self.value(loop.active), _EQZ, _branch_if(1))
        self.emit(*(self.value(node) for node in loop.following))
        self.emit(*(_set(self.nodes[phi]) for phi in reversed(loop.phi)), _branch(0), _END, _END)


def _fused(dtype: str) -> bytes:
    """The function a·b + c, rounded once."""
    a, b, c = (_get(k) for k in range(3))
    local = {name: 3 + k for k, name in enumerate(("h", "l", "x", "y", "s", "e", "t", "u", "v", "w", "z"))}
    out: list[bytes] = []
    ops = {key: bytes([value]) for key, value in _DOUBLE.items()}

    def get(name: str) -> bytes:
        return _get(local[name])

    def let(name: str, *code: bytes) -> None:
        out.extend((*code, _set(local[name])))

    def number(value: float) -> bytes:
        return ops["const"] + struct.pack("<d", value)

    def less(x: bytes, y: bytes) -> bytes:
        return x + y + ops["lt"]

    def sum_of(x: bytes, y: bytes, total: str, error: str) -> None:
        """total + error = x + y, exactly."""
        let(total, x, y, ops["add"])
        let("t", get(total), x, ops["sub"])
        let(error, x, get(total), get("t"), ops["sub"], ops["sub"], y, get("t"), ops["sub"], ops["add"])

    def odd_sum(x: bytes, y: bytes, total: str) -> None:
        """x + y rounded to odd: the last bit is set if the sum is not exact."""
        sum_of(x, y, total, "e")
        even = get(total) + b"\xbd\x42\x01\x83\x50"
        out.extend((less(number(0.0), get("e") + ops["abs"]), even, _LOGIC["and"], _IF))
        away = less(number(0.0), get("e")) + less(number(0.0), get(total)) + b"\x46"
        let(total, get(total), b"\xbd", b"\x42\x01", b"\x42\x7f", away, _SELECT, b"\x7c\xbf")
        out.append(_END)

    if dtype == "float32":
        a, b, c = (x + b"\xbb" for x in (a, b, c))
        let("h", a, b, ops["mul"])  # exact
        odd_sum(get("h"), c, "s")
        out.append(get("s") + b"\xb6")
        return _unsigned(1) + _unsigned(len(local)) + _F64 + b"".join(out) + _END
    let("h", a, b, ops["mul"])
    out.extend((a, number(0.0), ops["eq"], b, number(0.0), ops["eq"], _LOGIC["or"], _IF))
    out.extend((get("h"), c, ops["add"], _RETURN, _END))
    usual = less(a + ops["abs"], number(2.0**990)) + less(b + ops["abs"], number(2.0**990)) + _LOGIC["and"]
    usual += less(get("h") + ops["abs"], number(2.0**1000)) + _LOGIC["and"]
    usual += less(number(2.0**-900), get("h") + ops["abs"]) + _LOGIC["and"]
    usual += less(c + ops["abs"], number(2.0**1000)) + _LOGIC["and"]
    out.extend((usual, _EQZ, _IF, a, b, c, b"\x10" + _unsigned(_SLOW_FMA), _RETURN, _END))
    for x, upper, lower in ((a, "x", "u"), (b, "y", "v")):  # halves, whose products are exact
        let("t", x, number(2.0**27 + 1.0), ops["mul"])
        let(upper, get("t"), get("t"), x, ops["sub"], ops["sub"])
        let(lower, x, get(upper), ops["sub"])
    let("l", get("x"), get("y"), ops["mul"], get("h"), ops["sub"])
    for x, y in (("x", "v"), ("u", "y"), ("u", "v")):
        let("l", get("l"), get(x), get(y), ops["mul"], ops["add"])
    sum_of(c, get("l"), "u", "v")
    sum_of(get("h"), get("u"), "w", "z")
    odd_sum(get("v"), get("z"), "s")
    out.extend((get("w"), get("s"), ops["add"]))
    return _unsigned(1) + _unsigned(len(local)) + _F64 + b"".join(out) + _END


# -- the binary format ------------------------------------------------------------------------------------------------


def _unsigned(value: int) -> bytes:
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _signed(value: int) -> bytes:
    out = bytearray()
    while not -64 <= value < 64:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value & 127])


def _vector(items: Sequence[bytes]) -> bytes:
    return _unsigned(len(items)) + b"".join(items)


def _name(text: str) -> bytes:
    return _unsigned(len(text)) + text.encode()


def _operand(opcode: int) -> Callable[[int], bytes]:
    return lambda value: bytes([opcode]) + _unsigned(value)


_get, _set, _branch, _branch_if = (_operand(opcode) for opcode in (0x20, 0x21, 0x0C, 0x0D))


def _integer(value: int) -> bytes:
    return b"\x41" + _signed(value)


_WORDS = """
    await break case catch class const continue debugger default delete do else enum export extends false finally for
    function if import in instanceof let new null return static super switch this throw true try typeof var void while
    with yield load fma bytes arrays numbers given call
"""
_KEYWORDS = frozenset(_WORDS.split())

LOADER = """\
/* a*b + c, rounded once: by whole numbers, for what is near the ends of the range. */
function fma(a, b, c) {
  if (!Number.isFinite(a) || !Number.isFinite(b)) return a * b + c;
  if (!Number.isFinite(c)) return c;
  const view = new DataView(new ArrayBuffer(8));
  const parts = x => {
    view.setFloat64(0, x);
    const bits = view.getBigUint64(0), e = bits >> 52n & 2047n, m = bits & ((1n << 52n) - 1n);
    return [(bits >> 63n ? -1n : 1n) * (e ? m | 1n << 52n : m), e ? e : 1n];
  };
  const [x, i] = parts(a), [y, j] = parts(b), [z, k] = parts(c);
  /* in units of 2^-2148: the product of the smallest numbers is one */
  let sum = (x * y << i + j - 2n) + (z << k - 1n + 1074n);
  if (sum === 0n) return x * y === 0n ? a * b + c : 0;
  const sign = sum < 0n ? -1 : 1;
  if (sum < 0n) sum = -sum;
  const length = sum.toString(2).length, drop = Math.max(length - 53, 1074);
  const unit = 1n << BigInt(drop), rest = sum % unit;
  let kept = sum / unit;
  if (2n * rest > unit || (2n * rest === unit && kept & 1n)) kept += 1n;
  const exponent = drop - 2148;
  if (kept === 0n) return sign * 0;
  const high = Math.floor(exponent / 2);
  return exponent > 971 || (exponent === 971 && kept >> 53n) ? sign * Infinity
    : sign * (exponent < 0 ? Number(kept) * 2 ** (exponent - high) * 2 ** high : Number(kept) * 2 ** exponent);
}

/* A function of an object with an array for each input, and the whole numbers of the call; it gives an object with an
 * array for each output, and for what is carried. */
async function instantiated(module) {
  const {arrays, numbers} = module, kind = {Float64Array, Float32Array}[module.real];
  const bytes = Uint8Array.from(atob(module.bytes), c => c.charCodeAt(0));
  const {instance} = await WebAssembly.instantiate(bytes, {linkwise: {fma}});
  const {run, memory} = instance.exports;
  return function (given, call = {}) {
    const samples = Math.ceil(call.steps / call.every);
    let end = module.start;
    const places = arrays.map(array => {
      const input = array.kind === "input" || array.kind === "both";
      const length = input ? given[array.name].length
        : array.columns * (array.rows === "samples" ? samples : array.rows);
      const moves = array.rows === "steps";
      const least = moves ? (call.steps - 1) * array.pitch + array.columns : array.columns * array.rows;
      if (input && (moves ? length < least : length !== least))
        throw new RangeError(`${array.name}: expected ${least} numbers, got ${length}`);
      const place = {...array, input, length, address: end};
      end += kind.BYTES_PER_ELEMENT * length;
      return place;
    });
    if (end > memory.buffer.byteLength) memory.grow(Math.ceil((end - memory.buffer.byteLength) / 65536));
    const view = place => new kind(memory.buffer, place.address, place.length);
    for (const place of places) if (place.input) view(place).set(given[place.name]);
    run(...places.map(place => place.address), ...numbers.map(name => call[name]));
    const written = places.filter(place => place.kind === "output" || place.kind === "both");
    return Object.fromEntries(written.map(place => [place.name, view(place).slice()]));
  };
}
"""
"""JavaScript: ``instantiated(module)`` gives, when it is ready, a function of an object of arrays; see ``module``."""

_EXPORT = """\
export async function load() {{
  const run = await instantiated(module);
  return function {name}(given, call) {{ return run(given, call); }};
}}
"""
