"""From how many joints on one method is cheaper than another: what the papers claim, and what the counts say."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial

from linkwise.records.polynomial import Polynomial
from linkwise.records.published import PUBLISHED, Published
from linkwise.records.table import Table
from research.records import counts

Count = Callable[[int], int]

SMALLEST, LARGEST = 2, 20
COUNTED = 8
METHODS = ("kalman", "compound_link", "conjugate_gradient")


@cache
def ours(kind: str, method: str, n: int) -> int:
    """Operations of forward dynamics as compiled, with base parameters; conjugate gradients with n iterations.

    Up to eight joints counted, beyond by the exact formula behind those counts; the links of perpendicular chains are
    not all alike, so there everything is counted.
    """
    if n <= COUNTED or kind == "perpendicular":
        return counted(kind, method, n)
    formula = Polynomial.through({k: counted(kind, method, k) for k in range(4, COUNTED + 1)})
    assert formula is not None
    return int(formula(n))


def counted(kind: str, method: str, n: int) -> int:
    """The same, counted for this n: origins slid or not, whichever is cheaper."""
    task = counts.ITERATED if method == "conjugate_gradient" else "forward_dynamics"
    each = [
        counts.as_written(kind, n, task, method, slide=slide, simplified=True, regroup=True)
        for slide in ((True, False) if kind == "perpendicular" else (True,))
    ]
    if task == counts.ITERATED:
        each = [counts.iterated(operations, n) for operations in each]
    return min(operations.total for operations in each)


def published(source: str) -> Published:
    """The formula for forward dynamics of a general chain by its source."""
    return next(row for row in PUBLISHED if row.source == source and row.is_formula and _forward(row))


def _forward(row: Published) -> bool:
    return row.task in ("forward_dynamics", "conjugate_gradient") and row.robot == "general"


def cheaper(first: Count, second: Count, over: Iterable[int] = range(SMALLEST, LARGEST + 1)) -> list[int]:
    """The n for which the first count is the smaller one."""
    return [n for n in over if first(n) < second(n)]


def in_words(numbers: list[int], over: Iterable[int] = range(SMALLEST, LARGEST + 1)) -> str:
    """``n ≤ 9``, ``3 ≤ n ≤ 5``, ``n ≥ 10``, ``never``, ``always`` for the n of a range without gaps."""
    every = list(over)
    if not numbers:
        return "never"
    low, high = numbers[0], numbers[-1]
    assert numbers == list(range(low, high + 1)), "more than one crossing"
    if numbers == every:
        return "always"
    if low == every[0]:
        return f"n ≤ {high}"
    if high == every[-1]:
        return f"n ≥ {low}"
    return f"n = {low}" if low == high else f"{low} ≤ n ≤ {high}"


def claims() -> Table:
    """The crossovers that the papers quote; those of Kozłowski are among ``research.claims``."""
    ahead = {}
    for kind, largest in (("general", LARGEST), ("perpendicular", 12), ("planar", LARGEST)):
        over = range(SMALLEST, largest + 1)
        numbers = cheaper(partial(ours, kind, "compound_link"), partial(ours, kind, "kalman"), over)
        ahead[kind] = in_words(numbers, over)
    rows = [
        [
            "Featherstone, quoted by Fijany–Scheid: an O(n³) method is the fastest for n < 12",
            ", ".join(f"{words} ({kind} chain)" for kind, words in ahead.items()),
            "earlier",
        ]
    ]
    behind = cheaper(
        partial(ours, "general", "conjugate_gradient"), partial(ours, "general", "compound_link")
    )
    rows.append(
        [
            "Fijany–Scheid: conjugate gradients with n iterations stay behind the best O(n³) method",
            in_words(behind),
            "fails" if behind else "holds",
        ]
    )
    return Table("Crossovers", ("claim", "cheaper for", "verdict"), rows)


def curves() -> Table:
    """Counts of forward dynamics over n."""
    over = (2, 4, 6, 8, 10, 12, 20)
    sources = (
        "Kozłowski 1990",
        "Brandl–Johanni–Otter 1986",
        "McMillan–Orin 1995",
        "mass matrix and solution",
    )
    rows = [[f"{source}, general", *(str(published(source).total(n)) for n in over)] for source in sources]
    for kind in ("general", "planar"):
        for method in METHODS:
            rows.append([f"ours: `{method}`, {kind}", *(str(ours(kind, method, n)) for n in over)])
    return Table(
        "Forward dynamics over n",
        ("operations, n =", *(f">{n}" for n in over)),
        rows,
        ("Compiled, with base parameters; conjugate gradients with n iterations.",),
    )
