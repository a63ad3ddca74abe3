"""Constraints as stiff measurements, for steps that are solved without the matrix of their contacts.

A frame that is held gives way by R p under its impulse p, J v⁺ + R p = back, with a very small R. It then adds the
information Jᵀ R⁻¹ J to the inertia, as a contact that sticks does (``filtered``), before the iteration begins:

    (M + Jᵀ R⁻¹ J) (v⁺ − v) = h r + Jᵀ R⁻¹ (back − J v) + ...                                                      (1)

Redundant rows share their impulses. What gives way comes back, as errors of position do: ``back`` closes a fifth of
them in a step. R is about the root of round-off beside what the row moves, so that both errors are as small. Motions of
links that carry both frames of a loop have no part in it: they would by the error of closure alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from linkwise.algorithms import coupling, dense, kinematics
from linkwise.algorithms.constrained import constraints
from linkwise.algorithms.constrained.constraints import Held
from linkwise.algorithms.contact import filtered, recovery
from linkwise.algorithms.contact.point import TINY
from linkwise.algorithms.contact.world_axes import VelocityAxes
from linkwise.joint_laws import is_zero
from linkwise.model.axes import JointValue
from linkwise.model.mechanism import Mechanism
from linkwise.scalar import Scalar, maximum, stage

Rows = list[list[Scalar]]
GIVES_WAY = 10.0
"""R in units of the root of round-off, relative to what the rows of a constraint move."""


def added(
    links: Mechanism,
    q: Sequence[JointValue],
    v: Sequence[Scalar],
    held: Sequence[Held],
    axes: VelocityAxes,
    free: tuple[Rows, list[Scalar]],
    h: Scalar,
) -> tuple[Rows, list[Scalar]]:
    """Matrix and right side of (1) from those without constraints.

    Args:
        links: of the robot.
        q: positions.
        v: velocities before the step, along ``axes``.
        held: the constraints, or none.
        axes: of velocities.
        free: (M, h r), along ``axes``.
        h: the step [s].
    """
    if not held:
        return free
    with stage("constraints"):
        M, torques = [list(row) for row in free[0]], list(free[1])
        mobile = [1.0 / M[k][k] for k in range(len(M))]
        J = [axes.vector(row) for row in _rows(links, q, held)]
        errors, soft = constraints.errors(links, q, held), constraints.compliances(held)
        least = GIVES_WAY * math.sqrt(constraints.round_off())
        for rows, _ in constraints.blocks(held):
            moved = [dense.dot([x * x for x in J[k]], mobile) for k in rows]
            size = (1.0 / 3.0) * (moved[0] + moved[1] + moved[2])
            for k in rows:
                gain = 1.0 / maximum(least * size + soft[k], TINY)
                missing = -(recovery.RECOVERED / h) * errors[k] - dense.dot(J[k], v)
                filtered.add_square(M, J[k], gain)
                torques = [
                    t if is_zero(j) else t + j * (gain * missing) for t, j in zip(torques, J[k], strict=True)
                ]
        return M, torques


def _rows(links: Mechanism, q: Sequence[JointValue], held: Sequence[Held]) -> Rows:
    """J, without links that carry both frames."""
    found: Rows = []
    for each in held:
        shared = _chain(links, each.first[0]) & _chain(links, each.second[0])
        first = kinematics.jacobian(links, q, *each.first)[6 - each.rows :]
        second = kinematics.jacobian(links, q, *each.second)[6 - each.rows :]
        for a, b in zip(first, second, strict=True):
            row = [
                0.0 if k in shared else x - y for (k, _), x, y in zip(links.coordinates(), a, b, strict=True)
            ]
            found.append(coupling.reduced(links, row, (True,)))
    return found


def _chain(links: Mechanism, body: int) -> set[int]:
    return {body, *links.ancestors(body)} if body >= 0 else set()
