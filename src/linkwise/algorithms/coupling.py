"""Joints that follow others: fewer coordinates than axes.

With rates q̇ = S ẏ of all axes from the rates ẏ of the joints that lead, torques and matrices reduce exactly:

    τ_y = Sᵀ τ        M_y = Sᵀ M S        J_y = J S

Forward dynamics and the inverse of the mass matrix are computed in two ways: by the reduced matrix itself, and by the
filter of the uncoupled robot, corrected by the torques that keep the followers in step (C q̈ = 0 with a row for each
follower).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from linkwise.algorithms import dense
from linkwise.model.axes import parts_of
from linkwise.model.mechanism import Mechanism
from linkwise.scalar import Scalar, stage

Rows = list[list[Scalar]]


def expanded(
    links: Mechanism, values: Sequence[Scalar], *, positions: bool = False, forces: bool = False
) -> list[Any]:
    """One quantity per link from the coordinates of the links that lead.

    Followers get their positions or rates from the leader's; forces act on leaders only.
    """
    if not links.coupled:
        return links.grouped(values, positions=positions)
    full: list[Any] = []
    rest = list(values)
    for link in links:
        size = 0 if link.follows is not None else len(link.axes) + (positions and link.free)
        full.append(rest[:size])
        rest = rest[size:]
    for link in links:
        if link.follows is None:
            continue
        moved: Any = _sum([ratio * full[leader][0] for leader, ratio in link.follows.leaders])
        full[link.index] = [0.0 if forces else moved + link.follows.offset if positions else moved]
    return links.grouped([x for own in full for x in own], positions=positions)


def leading(links: Mechanism) -> list[tuple[int, list[tuple[int, float]]]]:
    """S by columns: for every coordinate of a leader its axis, and (axis, ratio) of the followers."""
    first = links.first_coordinates()
    columns: dict[int, tuple[int, list[tuple[int, float]]]] = {
        j: (j, []) for j, (k, _) in enumerate(links.coordinates()) if links[k].follows is None
    }
    for link in links:
        if link.follows is not None:
            for leader, ratio in link.follows.leaders:
                columns[first[leader]][1].append((first[link.index], ratio))
    return list(columns.values())


def leaders(links: Mechanism, values: Sequence[Any]) -> list[Scalar]:
    """One quantity per link as a flat list of the coordinates of those that lead."""
    return [
        part
        for link, value in zip(links, values, strict=True)
        if link.follows is None
        for part in parts_of(value)
    ]


def reduced(links: Mechanism, value: Any, axes: Sequence[bool]) -> Any:
    """A nested list, with Sᵀ applied along those axes that are marked."""
    if not links.coupled or not axes:
        return value
    inner = [reduced(links, entry, axes[1:]) for entry in value]
    if not axes[0]:
        return inner
    return [
        _sum([inner[own], *(_scaled(ratio, inner[j]) for j, ratio in followers)])
        for own, followers in leading(links)
    ]


def with_followers(links: Mechanism, matrix: Rows) -> Rows:
    """A matrix over the coordinates of leaders as one over all axes, zero for followers: ``reduced`` undoes it."""
    places = [own for own, _ in leading(links)]
    full: Rows = [[0.0] * links.dof for _ in range(links.dof)]
    for i, row in zip(places, matrix, strict=True):
        for j, value in zip(places, row, strict=True):
            full[i][j] = value
    return full


def _scaled(ratio: float, value: Any) -> Any:
    if isinstance(value, list):
        return [_scaled(ratio, v) for v in cast("list[Any]", value)]
    return ratio * value


def _sum(values: list[Any]) -> Any:
    if isinstance(values[0], list):
        return [_sum(list(group)) for group in zip(*values, strict=True)]
    return sum(values[1:], start=values[0])


# -- what needs the inverse -------------------------------------------------------------------------------------------


def solve_reduced(links: Mechanism, M: Rows, right: Sequence[Scalar]) -> list[Scalar]:
    """ÿ with Sᵀ M S ÿ = Sᵀ right."""
    with stage("factorisation"):
        L, inverse = dense.factorised(reduced(links, M, (True, True)))
    with stage("solution"):
        return dense.solved(L, inverse, reduced(links, list(right), (True,)))


def invert_reduced(links: Mechanism, M: Rows) -> Rows:
    """(Sᵀ M S)⁻¹."""
    with stage("inversion"):
        return dense.inverted(reduced(links, M, (True, True)))


def in_step(links: Mechanism, inverse: Rows, free: Sequence[Scalar]) -> list[Scalar]:
    """Accelerations ÿ of the coupled robot from those of the uncoupled one and its inverse mass matrix W:
    q̈ − W Cᵀ (C W Cᵀ)⁻¹ C q̈."""
    with stage("keeping followers in step"):
        rows = _differences(links)
        C_W = [_combined(inverse, row) for row in rows]
        delassus = [[_combined_entries(w, row) for row in rows] for w in C_W]
        L, pivots = dense.factorised(delassus)
        multipliers = dense.solved(L, pivots, [_combined_entries(list(free), row) for row in rows])
        kept = [own for own, _ in leading(links)]
        return [free[i] - dense.dot([w[i] for w in C_W], multipliers) for i in kept]


def inverse_in_step(links: Mechanism, inverse: Rows) -> Rows:
    """(Sᵀ M S)⁻¹ from the inverse mass matrix W of the uncoupled robot: the leaders' part of W − W Cᵀ (C W Cᵀ)⁻¹ C W.

    The leaders' part is the inverse of the reduced matrix because W restricted to C q̈ = 0 is S (Sᵀ M S)⁻¹ Sᵀ."""
    columns = [in_step(links, inverse, [row[j] for row in inverse]) for j, _ in leading(links)]
    return dense.transposed(columns)


def _differences(links: Mechanism) -> list[list[tuple[int, float]]]:
    """The rows of C: a follower's axis with 1, those of its leaders with −ratio."""
    first = links.first_coordinates()
    return [
        [(first[link.index], 1.0), *((first[leader], -ratio) for leader, ratio in link.follows.leaders)]
        for link in links
        if link.follows is not None
    ]


def _combined(M: Rows, row: list[tuple[int, float]]) -> list[Scalar]:
    return [_combined_entries([line[k] for line in M], row) for k in range(len(M))]


def _combined_entries(values: Sequence[Scalar], row: list[tuple[int, float]]) -> Scalar:
    (i, a), *rest = row
    return sum((b * values[j] for j, b in rest), start=a * values[i])


def parts(value: Any) -> list[Scalar]:
    """A list with one quantity per link as a flat list."""
    return [part for each in value for part in parts_of(each)]
