"""What a program costs, counted the way the papers count.

Every multiplication counts (by a constant too), every addition or subtraction, every division. A change of
sign is free, comparisons and selections are not counted, sines and cosines are listed apart, and so are
square roots. The count is taken before multiplications and additions are fused, so a fused multiply-add is
one of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from linkwise.compiler.ir.graph import Node
from linkwise.compiler.ir.walks import loop_numbers, reachable

_COUNTED = {
    "mul": "multiplications",
    "add": "additions",
    "sub": "additions",
    "div": "divisions",
    "sin": "trigonometric",
    "cos": "trigonometric",
    "atan2": "trigonometric",
    "sqrt": "square_roots",
}
_ADDED_UP = frozenset({"mul", "add", "sub", "div"})


@dataclass(frozen=True)
class Operations:
    """Operations of one evaluation of a program."""

    multiplications: int = 0
    additions: int = 0
    divisions: int = 0
    trigonometric: int = 0
    """Calls of sine, cosine and arc tangent."""
    square_roots: int = 0
    by_stage: dict[str, Operations] = field(default_factory=dict, compare=False)
    """The same counts, split by the stage of the algorithm in which an operation first appears."""
    per_iteration: Operations | None = None
    """One pass through the program's loops; not part of the counts above. None if there is no loop."""
    prelude: Operations | None = None
    """What depends on run-time parameters alone, computed once for many states; not in the counts above."""

    def counts(self) -> dict[str, int]:
        """The counts by name, as plain data."""
        return {
            "multiplications": self.multiplications,
            "additions": self.additions,
            "divisions": self.divisions,
        }

    @property
    def total(self) -> int:
        """Multiplications, additions and divisions together."""
        return self.multiplications + self.additions + self.divisions

    def __str__(self) -> str:
        parts = [_counted(self.multiplications, "multiplication"), _counted(self.additions, "addition")]
        for count, noun in ((self.divisions, "division"), (self.square_roots, "square root")):
            if count:
                parts.append(_counted(count, noun))
        if self.trigonometric:
            parts.append(f"{self.trigonometric} sin/cos")
        text = ", ".join(parts)
        if self.per_iteration is not None:
            text += f"; per iteration of its loop: {self.per_iteration}"
        if self.prelude is not None:
            text += f"; once per set of parameters: {self.prelude}"
        return text


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def count(outputs: Iterable[Node], nodes: list[Node] | None = None) -> Operations:
    """The operations needed for these values, each node counted once; ``nodes`` is what they depend on, if known."""
    nodes = reachable(outputs) if nodes is None else nodes
    depth = _loop_depths(nodes)
    levels: list[list[Node]] = [[] for _ in range(1 + max(depth.values(), default=0))]
    for node in nodes:
        if node.op in _COUNTED:
            levels[depth[node.index]].append(node)
    counted = _tally(levels[-1], None)
    for level in reversed(levels[:-1]):
        counted = _tally(level, counted)
    return counted


def total(outputs: Iterable[Node]) -> int:
    """``count(outputs).total``, found faster: which of several programs is the cheapest."""
    nodes = reachable(outputs)
    if any(node.op == "phi" for node in nodes):
        return count(nodes).total
    return sum([node.op in _ADDED_UP for node in nodes])


def _loop_depths(nodes: list[Node]) -> dict[int, int]:
    """How many loops are around each node."""
    innermost, parent = loop_numbers(nodes)
    of_loop = {-1: 0}
    for loop in sorted(parent):  # inner loops have the higher numbers
        of_loop[loop] = 1 + of_loop[parent[loop]]
    return {index: of_loop[loop] for index, loop in innermost.items()}


def _tally(nodes: list[Node], per_iteration: Operations | None) -> Operations:
    stages: dict[str, list[Node]] = {}
    for node in nodes:
        stages.setdefault(node.stage, []).append(node)
    by_stage = {name: _totals(own) for name, own in stages.items()}
    return replace(_totals(nodes), by_stage=by_stage, per_iteration=per_iteration)


def _totals(nodes: list[Node]) -> Operations:
    counts = Counter(_COUNTED[node.op] for node in nodes)
    return Operations(
        counts["multiplications"],
        counts["additions"],
        counts["divisions"],
        counts["trigonometric"],
        counts["square_roots"],
    )
