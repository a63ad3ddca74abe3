"""Which elements an innermost loop reads in every turn and does not change: they are loaded once, before it.

A product of matrices whose columns run side by side, C[i, j] = Σ A[i, k] B[k, j] for all i, then has the column of B in
registers, and a turn reads numbers of A alone.
"""

from __future__ import annotations

from linkwise.compiler.ir.loops import Element, For, Step, Whole

MOST = 30  # vectors: most registers are 32
LONG = 400  # items of a body that has no registers left for them, as in ``spills``


def held_elements(loop: For) -> list[Element]:
    """Elements that all turns read and none writes; none where the loop has others inside or may have no turn, nor
    where its body is long: there other values need the registers."""
    steps = [statement for statement in loop.body if isinstance(statement, Step)]
    if not loop.turns or len(steps) < len(loop.body) or any(len(step.body) >= LONG for step in steps):
        return []
    written = {place.array for step in steps for place, _ in step.writes if isinstance(place, Element)}
    reads = {place: None for step in steps for place in step.reads.values() if isinstance(place, Element)}
    fixed = [place for place in reads if place.array not in written and loop.name not in _names_of(place)]
    return fixed[:MOST]


def _names_of(place: Element) -> set[str]:
    return {name for index in (place.row, place.column) if index is not None for name in _names_in(index)}


def _names_in(value: Whole) -> set[str]:
    """Names that a whole number depends on."""
    if value.op == "name":
        return {value.args[0]}
    return {name for arg in value.args if isinstance(arg, Whole) for name in _names_in(arg)}
