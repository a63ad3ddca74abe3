"""Whole numbers of 64 bits as values of a graph: what random bits and the classes of numbers are computed with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from linkwise.compiler.ir.graph import Graph, Node

MASK = (1 << 64) - 1
FOLDED: dict[str, Callable[[int, int], int]] = {
    "word_and": lambda a, b: a & b,
    "word_or": lambda a, b: a | b,
    "word_xor": lambda a, b: a ^ b,
    "word_shl": lambda a, b: a << b & MASK,
    "word_shr": lambda a, b: a >> b,
    "word_add": lambda a, b: a + b & MASK,
    "word_mul": lambda a, b: a * b & MASK,
}
"""What the operations mean."""


@dataclass(frozen=True)
class Word:
    """A word with Python's operators; what is known stays a Python number."""

    node: Node

    def __and__(self, other: Word | int) -> Word:
        return self._made("word_and", other)

    def __or__(self, other: Word | int) -> Word:
        return self._made("word_or", other)

    def __xor__(self, other: Word | int) -> Word:
        known = self.node.args[1].value if self.node.op == "word_xor" else None
        if isinstance(other, int) and known is not None:
            return Word(self.node.args[0]) ^ (known ^ other)
        return self if other == 0 else self._made("word_xor", other)

    __rxor__ = __xor__

    def __add__(self, other: Word | int) -> Word:
        return self if other == 0 else self._made("word_add", other)

    def __mul__(self, other: Word | int) -> Word:
        return self._made("word_mul", other)

    __rmul__ = __mul__

    def __lshift__(self, other: int) -> Word:
        return self._made("word_shl", other)

    def __rshift__(self, other: int) -> Word:
        return self._made("word_shr", other)

    def _made(self, op: str, other: Word | int) -> Word:
        graph = self.node.graph
        return Word(graph.make(op, (self.node, word(graph, other))))


def word(graph: Graph, value: Word | int) -> Node:
    """The node of a word or of a constant."""
    return value.node if isinstance(value, Word) else graph.make("word", (), value)
