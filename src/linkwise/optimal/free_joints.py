"""Derivatives along the velocities of ball and floating joints, and robots as seen from a floating base."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from linkwise.algorithms import dense, manifold
from linkwise.compiler.ir.derivative import jacobian, substituted
from linkwise.compiler.ir.graph import Node
from linkwise.model.axes import joint_value, parts_of
from linkwise.model.mechanism import Mechanism, MovingLink, quaternion_rotation
from linkwise.scalar import Scalar
from linkwise.spatial import Vector

if TYPE_CHECKING:
    from linkwise.algorithms.dense import Rows


def step_slopes(link: MovingLink, step: Sequence[Scalar]) -> tuple[Rows, Rows]:
    """(P, J) of T exp(ξ): its change along its own velocities by one of T, and by one of ξ."""
    graph = graph_of(step)
    size = len(step)
    at_rest = [*([0.0] * 3 if link.floating else []), 0.0, 0.0, 0.0, 1.0]
    still = [graph.input("step held fixed", k) for k in range(size)]
    position = [graph.input("position held fixed", k) for k in range(len(at_rest))]
    outputs = [
        graph.lift(v) for v in parts_of(manifold.integrated(link, joint_value(position), joint_value(still)))
    ]
    rows = jacobian(outputs, [*position, *still])
    count = len(position)
    by_position = [list(row[:count]) for row in rows]
    units = [[1.0 if i == k else 0.0 for i in range(size)] for k in range(size)]
    rates = [
        parts_of(manifold.position_rates(link, joint_value(position), joint_value(unit))) for unit in units
    ]
    by_velocity = [[dense.dot(row, rate) for rate in rates] for row in by_position]
    both = [[*a, *row[count:]] for a, row in zip(by_velocity, rows, strict=True)]
    changes = velocities_of(link, outputs, both)
    values = {
        node.index: graph.lift(v) for node, v in zip([*position, *still], [*at_rest, *step], strict=True)
    }
    flat = substituted([graph.lift(v) for row in changes for v in row], values)
    table = [flat[k * 2 * size : (k + 1) * 2 * size] for k in range(size)]
    return [list(row[:size]) for row in table], [list(row[size:]) for row in table]


def velocities_of(link: MovingLink, position: Sequence[Scalar], rows: Rows) -> Rows:
    """(ω, v) in the link's own axes of changes of its position numbers: the inverse of ``manifold.position_rates``."""
    x, y, z, w = position[-4:]
    scale = 2.0 / (x * x + y * y + z * z + w * w)
    found: Rows = [[], [], []] + ([[], [], []] if link.floating else [])
    for column in zip(*rows, strict=True):
        a, b, c, d = column[-4:]
        # 2 vec(q* ⊗ q̇) / |q|²
        found[0].append(scale * (w * a - x * d - y * c + z * b))
        found[1].append(scale * (w * b + x * c - y * d - z * a))
        found[2].append(scale * (w * c - x * b + y * a - z * d))
        if link.floating:
            for k, value in enumerate(quaternion_rotation(position[-4:]).transposed() @ Vector(*column[:3])):
                found[3 + k].append(value)
    return found


def seen_from_base(links: Mechanism, q: Sequence[Scalar]) -> tuple[Mechanism, list[Scalar]]:
    """The links with gravity in the axes of a floating base, and positions with that base at zero."""
    graph, mounted = graph_of(q), links[0].orientation
    assert mounted is not None
    turn = quaternion_rotation(list(q[3:7])).transposed()
    seen = copy.copy(links)
    seen.gravity = mounted @ (turn @ (mounted.transposed() @ links.gravity))
    return seen, [*(graph.lift(v) for v in (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)), *q[7:]]


def graph_of(values: Sequence[Scalar]) -> Any:
    for value in values:
        if isinstance(value, Node):
            return value.graph
    raise TypeError("derivatives of a step are for symbols: trace a function of it")
