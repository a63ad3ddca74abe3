"""Random numbers of ``philox`` as machine code, vectors of samples, one column after the other; and as CUDA.

Blocks of words are computed side by side, a round of all of them at a time: a single one would wait for its own
multiplications. What does not depend on the sample is folded here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.compiler.emit.lanes import Lanes, Writer, function
from linkwise.compiler.emit.llvm import literal
from linkwise.compiler.philox import MASK, MULTIPLIERS, ROUNDS, WEYL, Key

SIDE_BY_SIDE = 6  # blocks of four words: as many as registers hold
_TWO_52 = 0x4330000000000000  # the bits of 2^52: a whole number under that in its mantissa is added to it

CUDA = """
    unsigned int a = (unsigned int) index, b = block, c = (unsigned int) (index >> 32), d = 0, k0 = key0, k1 = key1;
    for (int round = 0; round < ROUNDS; ++round) {
        unsigned int p = __umulhi(M0, a), q = M0 * a, r = __umulhi(M1, c), s = M1 * c;
        a = r ^ b ^ k0; b = s; c = p ^ d ^ k1; d = q;
        k0 += W0; k1 += W1;
    }
    if (bits == 32) {
        x0 = a + 0.5; x1 = b + 0.5; x2 = c + 0.5; x3 = d + 0.5;
    } else {
        x0 = (double) (((unsigned long long) a << 20) | (b >> 12)) + 0.5;
        x1 = (double) (((unsigned long long) c << 20) | (d >> 12)) + 0.5;
    }
"""
"""A block of four words as numbers, for an element of arrays: index, block, key0, key1, bits -> x0, x1, x2, x3."""
CUDA_WORDS = "\n".join(
    f"#define {name} {value}u"
    for name, value in zip(("M0", "M1", "W0", "W1", "ROUNDS"), (*MULTIPLIERS, *WEYL, ROUNDS), strict=True)
)


@dataclass(frozen=True)
class Block:
    """Four words and where the numbers made of them go: (part of the block, distance of its column from the base)."""

    key: Key
    number: int
    bits: int
    parts: Sequence[tuple[int, int]]


def module(blocks: Sequence[Block], width: int, high: int = 0) -> str:
    """The LLVM text for vectors of ``width`` samples: ``run(first, count, [address])``.

    Up to a vector more than ``count`` is written. ``high`` is the upper word of all indices.
    """
    lanes = Lanes(width, "float64")
    writer = Writer()
    base = writer.value("load ptr, ptr %arguments")
    writer.effect("br label %samples")
    writer.start_block("samples")
    writer.value("phi i64 [ 0, %entry ], [ %following, %samples ]", "%place")
    arithmetic = _Words(lanes, writer, high)
    for start in range(0, len(blocks), SIDE_BY_SIDE):
        group = blocks[start : start + SIDE_BY_SIDE]
        results = arithmetic.blocks([(block.key, block.number) for block in group])
        for block, words in zip(group, results, strict=True):
            for part, offset in block.parts:
                value = arithmetic.tick(words, part, block.bits)
                place = writer.value(f"add i64 %place, {offset}")
                address = writer.value(f"getelementptr double, ptr {base}, i64 {place}")
                writer.effect(f"store {lanes.real} {value}, ptr {address}, align 8")
    writer.value(f"add i64 %place, {width}", "%following")
    more = writer.value("icmp slt i64 %following, %count")
    writer.effect(f"br i1 {more}, label %samples, label %done")
    writer.start_block("done")
    writer.effect("ret void")
    return function(writer.lines)


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
