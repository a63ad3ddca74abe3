"""What needs a solution with the mass matrix, as loops: its inverse, and the derivatives of forward dynamics.

M = Lᵀ D L, from the tips to the base as in ``algorithms.factorised``: rows and columns are stored backward, so that the
loops are those of M = L D Lᵀ. Entries of axes of which none carries the other are zero and not visited.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from linkwise.algorithms import coupling, dense, equation, newton_euler
from linkwise.algorithms.singularity import axis_inertia_floors
from linkwise.compiler.ir.loops import (
    Array,
    Element,
    For,
    Let,
    Place,
    Register,
    Statement,
    Step,
    Whole,
    entry,
    name,
)
from linkwise.compiler.ir.loops import whole as number
from linkwise.compiler.trace.procedure import Procedure, ProcedureNest, cells
from linkwise.functions.looped.parts import I, J, K, Loops, Matrix, each
from linkwise.functions.looped.slopes import (
    axes_and_inertias,
    masses,
    prepared,
    rotor_inertias,
    scratch_of,
    slopes,
)
from linkwise.functions.table import Function, Setting
from linkwise.model.mechanism import flat
from linkwise.scalar import Scalar, where

BLOCK = 8
"""Right sides that are solved at once: their sums do not depend on each other, so the processor need not wait."""
SUMS = [Register(f"sum{k}") for k in range(BLOCK)]
VALUE = Register("value")


def inverse_mass_matrix(function: Function, setting: Setting, made: Procedure) -> ProcedureNest:
    """M⁻¹, column by column; symmetric, so one half is copied."""
    links, n = setting.links(), setting.model.dof
    loops = Loops(links, made)
    (output,) = function.shapes(setting.model)
    X = Array("X", "scratch", n, n)
    body = [
        *_mass_matrix(loops, setting),
        *loops.zeros(X),
        *_ones(loops, n, 0),
        *_solved(loops, X),
        *_written(loops, n, [], output, 0),
    ]
    return loops.nest(function, setting, [*scratch_of(links), *_memory(n), X], body)


def forward_dynamics_derivatives(function: Function, setting: Setting, made: Procedure) -> ProcedureNest:
    """M (∂q̈/∂q, ∂q̈/∂q̇, ∂q̈/∂τ) = (−∂τ/∂q, −∂τ/∂q̇, 1)."""
    links, n = setting.links(), setting.model.dof
    loops, outputs = Loops(links, made), list(function.shapes(setting.model))
    X, x = Array("X", "scratch", 3 * n, n), Array("x", "scratch", 1, n)
    backward: list[Place] = [Element("x", number(0), number(n - 1 - i)) for i in range(n)]

    def net_torques(q: Any, qd: Any, tau: Any) -> list[list[Scalar]]:
        q, qd = coupling.expanded(links, q, positions=True), coupling.expanded(links, qd)
        tau = coupling.expanded(links, tau, forces=True)
        bias = newton_euler.inverse_dynamics(links, q, qd, links.grouped([0.0] * links.dof))
        net = equation.torques_on_bodies(links, q, qd, tau, friction=setting.friction)
        left = [a - b for a, b in zip(flat(net), flat(bias), strict=True)]
        return [coupling.reduced(links, left, (True,))]

    def part(k: int) -> Matrix:
        return lambda row, column: Element("X", entry("leaders", column) + k * n, entry("backward", row))

    state = [cells(key, size) for key, size in function.input_sizes(setting).items()]
    body = [
        *_mass_matrix(loops, setting),
        loops.step(net_torques, state, [backward], apart=True),
        *_solved(loops, x),
        *loops.zeros(X),
        *prepared(loops, setting, backward, part(0), part(1), -1.0),
        *slopes(loops, part(0), part(1), -1.0),
        *_ones(loops, n, 2 * n),
        *_solved(loops, X),
        *_written(loops, n, outputs[:2], outputs[2], 2 * n),
    ]
    return loops.nest(function, setting, [*scratch_of(links), *_memory(n), X, x], body)


def _memory(n: int) -> list[Array]:
    return [
        Array("M", "scratch", n, n),
        Array("scaled", "scratch", n, n),
        Array("pivots", "scratch", n),
    ]


# -- the mass matrix --------------------------------------------------------------------------------------------------


def _mass_matrix(loops: Loops, setting: Setting) -> list[Statement]:
    """M in backward order, factorised."""
    n = setting.model.dof

    def place(row: Whole, column: Whole) -> Element:
        return Element("M", entry("backward", column), entry("backward", row))

    _branches(loops, n)
    return [
        *loops.zeros(Array("M", "scratch", n, n)),
        axes_and_inertias(loops, setting),
        *rotor_inertias(loops, setting, place),
        *masses(loops, place),
        *_floors(loops, n),
        *_factorised(loops, n),
    ]


def _branches(loops: Loops, n: int) -> None:
    """Tables of the rows and columns of L that are not zero, in backward order.

    ``lowest`` is the first column of a row, and ``above`` are the rows of a column. The columns of a row follow each
    other where links are numbered along branches; otherwise, and for followers, L is taken as full.
    """
    full = [list(range(i + 1, n)) for i in range(n)]
    above, lowest = full, [0] * n
    if not loops.links.coupled:
        starts, shared = loops.tables["starts"], loops.tables["shared"]
        carriers, link = loops.tables["carriers"], loops.tables["links"]
        own = [[b for b in range(n) if link[b] == link[a] and b < a] for a in range(n)]
        before = [sorted((*own[a], *carriers[shared[a] : starts[a + 1]])) for a in range(n)]
        after = [[b for b in range(n) if a in before[b]] for a in range(n)]
        if all(each == list(range(a + 1, a + 1 + len(each))) for a, each in enumerate(after)):
            above = [[n - 1 - b for b in reversed(before[n - 1 - i])] for i in range(n)]
            lowest = [n - 1 - (after[n - 1 - i] or [n - 1 - i])[-1] for i in range(n)]
    places = [0]
    for rows in above:
        places.append(places[-1] + len(rows))
    loops.tables |= {"lowest": lowest, "places": places, "above": [i for rows in above for i in rows]}


def _above(column: Whole, *body: Statement, row: str) -> For:
    """A loop with ``row`` over the rows below the diagonal of a column of L."""
    first, stop = entry("places", column), entry("places", column + 1)
    return For("p", first, stop, [Let(row, entry("above", name("p"))), *body])


def _floors(loops: Loops, n: int) -> list[Statement]:
    """In ``pivots`` what pivots must exceed: of a full matrix a part of its diagonal, else as in ``singularity``."""
    if loops.links.coupled:
        scale = loops.step(
            lambda own: [[dense.ROUND_OFF * own[0]]], [[Element("M", I, I)]], [[Element("pivots", I)]]
        )
        return [each(n, scale)]
    floors = [max(-1e300, float(floor)) for floor in flat(axis_inertia_floors(loops.links))]  # type: ignore[arg-type]
    return [loops.step(lambda: [floors[::-1]], [], [cells("pivots", n)])]


def _factorised(loops: Loops, n: int) -> list[Statement]:
    """L in the lower half of M, its columns times D in ``scaled``, and 1/D in ``pivots``."""

    def pivot(value: Any, floor: Any) -> list[list[Scalar]]:
        return [[1.0 / where(value[0] > floor[0], value[0], math.nan)]]

    def entries(value: Any, inverse: Any) -> list[list[Scalar]]:
        return [[value[0], value[0] * inverse[0]]]

    def less(i: Whole) -> list[Statement]:
        """M_ij less what the columns before j have of it."""
        product = _less_product(loops, Element("M", K, J), [Element("scaled", K, i)], [VALUE])
        return [loops.copied([Element("M", J, i)], [VALUE]), For("k", entry("lowest", J), J, [product])]

    own = Element("pivots", J)
    column = loops.step(entries, [[VALUE], [own]], [[Element("scaled", J, I), Element("M", J, I)]])
    body = [
        *less(J),
        loops.step(pivot, [[VALUE], [own]], [[own]]),
        _above(J, *less(I), column, row="i"),
    ]
    return [each(n, *body, loop="j")]


def _less_product(loops: Loops, a: Place, b: Sequence[Place], sums: Sequence[Register]) -> Step:
    """Every sum less a times its b."""

    def function(factor: Any, values: Any, before: Any) -> list[list[Scalar]]:
        return [[s - factor[0] * x for s, x in zip(before, values, strict=True)]]

    return loops.step(function, [[a], b, sums], [sums])


# -- right sides ------------------------------------------------------------------------------------------------------


def _ones(loops: Loops, n: int, first: int) -> list[Statement]:
    """Into zeros of X from column ``first``, the unit matrix, in backward order of rows."""
    return [each(n, loops.step(lambda: [[1.0]], [], [[Element("X", I + first, number(n - 1) - I)]]))]


def _solved(loops: Loops, X: Array) -> list[Statement]:
    """L D Lᵀ X' = X, in place, some columns at a time."""
    rest = X.columns % BLOCK
    blocks = For("b", number(0), number(X.columns // BLOCK), _block(loops, X, BLOCK, name("b") * BLOCK))
    return [blocks, *_block(loops, X, rest, number(X.columns - rest))]


def _block(loops: Loops, X: Array, count: int, first: Whole) -> list[Statement]:
    if count == 0:
        return []
    n, sums = X.rows, SUMS[:count]
    assert isinstance(n, int)

    def row(i: Whole) -> list[Place]:
        return cells(X.name, count, first, i)

    def scaled(values: Any, inverse: Any) -> list[list[Scalar]]:
        return [[x * inverse[0] for x in values]]

    back = number(n - 1) - I
    return [
        each(
            n,
            loops.copied(row(I), sums),
            For("k", entry("lowest", I), I, [_less_product(loops, Element("M", K, I), row(K), sums)]),
            loops.copied(sums, row(I)),
        ),
        each(
            n,
            loops.step(scaled, [row(back), [Element("pivots", back)]], [sums]),
            _above(back, _less_product(loops, Element("M", back, K), row(K), sums), row="k"),
            loops.copied(sums, row(back)),
        ),
    ]


def _written(loops: Loops, n: int, outputs: Sequence[str], inverse: str, first: int) -> list[Statement]:
    """The blocks of X to the outputs; of M⁻¹, from column ``first``, one half is copied to the other."""
    back = number(n - 1) - I
    both = loops.step(
        lambda x: [[x[0], x[0]]],
        [[Element("X", J + first, back)]],
        [[Element(inverse, I * n + J), Element(inverse, J * n + I)]],
    )
    copies = [
        loops.copied([Element("X", J + k * n, back)], [Element(key, I * n + J)])
        for k, key in enumerate(outputs)
    ]
    columns = [each(n, *copies, loop="j")] if copies else []
    return [each(n, *columns, For("j", I, number(n), [both]))]
