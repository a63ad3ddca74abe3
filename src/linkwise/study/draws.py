"""The random numbers of ``philox`` as machine code: vectors of samples, one column after the other.

Blocks of words are computed side by side, a round of all of them at a time: a single one would wait for its own
multiplications. What does not depend on the sample is folded here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from linkwise.compiler import host
from linkwise.compiler.emit.lanes import Lanes, Writer
from linkwise.compiler.emit.llvm import literal
from linkwise.study.native import Native, compiled, function
from linkwise.study.philox import MASK, MULTIPLIERS, ROUNDS, WEYL, Key

SIDE_BY_SIDE = 6  # blocks of four words: as many as registers hold
_TWO_52 = 0x4330000000000000  # the bits of 2^52: a whole number under that in its mantissa is added to it


@dataclass(frozen=True)
class Ticks:
    """Columns of one variable: where the first one goes, how many there are, and how many bits each has."""

    key: Key
    row: int
    size: int
    bits: int

    def blocks(self) -> Iterator[tuple[int, list[tuple[int, int]]]]:
        """(number of a block, [(part of it, row that it goes to)])."""
        per_block = 4 if self.bits == 32 else 2
        for first in range(0, self.size, per_block):
            parts = range(min(per_block, self.size - first))
            yield first // per_block, [(part, self.row + first + part) for part in parts]


def generator(variables: Sequence[Ticks], stride: int, high: int = 0) -> Native:
    """Fills columns: ``run(first, count, [address])`` for the samples from ``first`` on.

    Column k begins ``k·stride`` numbers after the address; up to a vector more than ``count`` is written. ``high`` is
    the upper word of all indices.
    """
    return compiled(module(variables, stride, host.lanes("float64"), high))


def module(variables: Sequence[Ticks], stride: int, width: int, high: int = 0) -> str:
    """The LLVM text for vectors of ``width`` samples."""
    lanes = Lanes(width, "float64")
    writer = Writer()
    base = writer.value("load ptr, ptr %arguments")
    writer.effect("br label %samples")
    writer.start_block("samples")
    writer.value("phi i64 [ 0, %entry ], [ %following, %samples ]", "%place")
    arithmetic = _Words(lanes, writer, high)
    pending = [(variable, *block) for variable in variables for block in variable.blocks()]
    for start in range(0, len(pending), SIDE_BY_SIDE):
        group = pending[start : start + SIDE_BY_SIDE]
        results = arithmetic.blocks([(variable.key, number) for variable, number, _ in group])
        for (variable, _, parts), words in zip(group, results, strict=True):
            for part, row in parts:
                _store(writer, lanes, base, row * stride, arithmetic.tick(words, part, variable.bits))
    writer.value(f"add i64 %place, {width}", "%following")
    more = writer.value("icmp slt i64 %following, %count")
    writer.effect(f"br i1 {more}, label %samples, label %done")
    writer.start_block("done")
    writer.effect("ret void")
    return function(writer.lines)


def _store(writer: Writer, lanes: Lanes, base: str, offset: int, value: str) -> None:
    place = writer.value(f"add i64 %place, {offset}")
    address = writer.value(f"getelementptr double, ptr {base}, i64 {place}")
    writer.effect(f"store {lanes.real} {value}, ptr {address}, align 8")


Word = int | str
"""A constant, or the name of a vector whose lower halves matter."""


class _Words:
    """Philox over vectors: writes the instructions, folds constants, and writes nothing twice."""

    def __init__(self, lanes: Lanes, writer: Writer, high: int):
        self.lanes, self.writer, self.high = lanes, writer, high
        self.integers = lanes.vector("i64")
        self.known: dict[str, str] = {}
        self.low = self._indices()

    def blocks(self, wanted: Sequence[tuple[Key, int]]) -> list[list[Word]]:
        """The words of several blocks, each (key, number)."""
        counters: list[list[Word]] = [[self.low, number, self.high, 0] for _, number in wanted]
        keys = [key for key, _ in wanted]
        for _ in range(ROUNDS):
            products = [
                [self._product(m, w) for m, w in zip(MULTIPLIERS, c[::2], strict=True)] for c in counters
            ]
            counters = [
                [self._mixed(q, counter[1], k0), self._word(q), self._mixed(p, counter[3], k1), self._word(p)]
                for (p, q), counter, (k0, k1) in zip(products, counters, keys, strict=True)
            ]
            keys = [((k0 + WEYL[0]) & MASK, (k1 + WEYL[1]) & MASK) for k0, k1 in keys]
        return counters

    def tick(self, words: Sequence[Word], part: int, bits: int) -> str:
        """A whole number and a half, as a vector of doubles."""
        if bits == 32:
            whole = self._both("and", self._vector(words[part]), self._splat(MASK))
        else:
            upper = self._both("shl", self._vector(words[2 * part]), self._splat(32))
            lower = self._both("and", self._vector(words[2 * part + 1]), self._splat(MASK))
            whole = self._both("lshr", self._both("or", upper, lower), self._splat(12))
        raised = self._both("or", whole, self._splat(_TWO_52))
        real = self.writer.value(f"bitcast {self.integers} {raised} to {self.lanes.real}")
        down = self.lanes.splat("double", literal(2.0**52 - 0.5, "float64"))
        return self.writer.value(f"fsub {self.lanes.real} {real}, {down}")

    def _indices(self) -> str:
        """The lower words of the indices of a vector of samples."""
        writer, width = self.writer, self.lanes.width
        index = writer.value("add i64 %first, %place")
        if width > 1:
            lane = writer.value(f"insertelement {self.integers} poison, i64 {index}, i32 0")
            index = writer.value(
                f"shufflevector {self.integers} {lane}, {self.integers} poison, <{width} x i32> zeroinitializer"
            )
            ramp = ", ".join(f"i64 {k}" for k in range(width))
            index = writer.value(f"add {self.integers} {index}, <{ramp}>")
        return index

    def _product(self, multiplier: int, word: Word) -> Word:
        if isinstance(word, int):
            return multiplier * word
        low = self._both("and", word, self._splat(MASK))
        return self._both("mul", low, self._splat(multiplier))

    def _word(self, product: Word) -> Word:
        return product & MASK if isinstance(product, int) else product

    def _mixed(self, product: Word, word: Word, key: int) -> Word:
        """(upper half of the product) ^ word ^ key."""
        if isinstance(product, int):
            upper: Word = product >> 32
        else:
            upper = self._both("lshr", product, self._splat(32))
        constant, vectors = key, []
        for part in (upper, word):
            if isinstance(part, int):
                constant ^= part
            else:
                vectors.append(part)
        if not vectors:
            return constant
        mixed = vectors[0] if len(vectors) == 1 else self._both("xor", *vectors)
        return self._both("xor", mixed, self._splat(constant)) if constant else mixed

    def _vector(self, word: Word) -> str:
        return self._splat(word) if isinstance(word, int) else word

    def _splat(self, value: int) -> str:
        return self.lanes.splat("i64", str(value))

    def _both(self, operation: str, a: str, b: str) -> str:
        text = f"{operation} {self.integers} {a}, {b}"
        if text not in self.known:
            self.known[text] = self.writer.value(text)
        return self.known[text]
