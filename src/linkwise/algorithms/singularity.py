"""When a mass matrix counts as singular.

Every method that divides by an axis inertia D compares it with the largest inertia its links could show about the
joint: below 1e-12 of that, D is round-off. The bound is a constant of the robot, so the test costs no arithmetic; and
where D cannot vanish at all there is no test. D is at least the rotor inertia plus what the joint's own link has about
the axis, provided no link's inertia is negative in any direction.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linkwise.model.axes import joint_value
from linkwise.model.mechanism import Mechanism, MovingLink, flat
from linkwise.scalar import Scalar, where
from linkwise.spatial import ArticulatedInertia, Matrix, Spatial, articulated, outer

RELATIVE_FLOOR = 1e-12
NEVER = -math.inf  # the floor of a joint whose axis inertia cannot vanish


def checked(axis_inertia: Scalar, floor: Scalar) -> Scalar:
    """The axis inertia, or NaN where it vanishes, so that nothing wrong is returned silently."""
    if isinstance(floor, float) and floor == NEVER:
        return axis_inertia
    return where(axis_inertia > floor, axis_inertia, math.nan)


def may_be_singular(links: Mechanism) -> bool:
    """Whether some axis inertia could vanish in some configuration."""
    return any(floor != NEVER for floor in flat(axis_inertia_floors(links)))


def axis_inertia_floors(links: Mechanism) -> list[Any]:
    """For each joint (and each of its axes) the axis inertia [kg·m² or kg] at or under which it counts as massless."""
    links = links.original  # regrouped parameters do not bound anything
    known = links.__dict__.get("_floors")
    if known is None:
        known = links.__dict__["_floors"] = _floors(links)
    return known


def _floors(links: Mechanism) -> list[Any]:
    largest = _largest_inertias(links)
    bounded = all(_is_nonnegative(link) for link in links)
    found = []
    for link, sizes in zip(links, largest, strict=True):
        floors = [RELATIVE_FLOOR * (sizes[0] if axis.turns else sizes[1]) for axis in link.axes]
        if bounded:
            own = _own_pivots(link)
            floors = [
                NEVER if pivot > 10.0 * floor else floor for pivot, floor in zip(own, floors, strict=True)
            ]
        found.append(joint_value(floors))
    return found


def _own_pivots(link: MovingLink) -> list[float]:
    """The axis inertias that the link alone would show: a lower bound for those with more links beyond it."""
    P, pivots = articulated(link.inertia), []
    for axis in link.axes:
        column = axis.column(P)
        D = axis.felt(column) + link.rotor_inertia
        pivots.append(D)
        if D > 0.0 and len(link.axes) > 1:
            P = _less(P, column, D)
    return pivots


def _less(P: ArticulatedInertia, u: Spatial, D: float) -> ArticulatedInertia:
    """P − u uᵀ/D, for numbers."""
    scaled = (1.0 / D) * u
    product = [a * b for a in u.angular for b in scaled.linear]
    return ArticulatedInertia(
        P.A - outer(u.angular, scaled.angular),
        P.B - Matrix(*product),
        P.C - outer(u.linear, scaled.linear),
    )


def _largest_inertias(links: Mechanism) -> list[tuple[float, float]]:
    """(inertia, mass) that the links beyond each joint could at most show about it, all stretched out."""
    n = len(links)
    mass, moment, second = [0.0] * n, [0.0] * n, [0.0] * n
    for link in reversed(links):
        k = link.index
        m, h, I = link.inertia
        mass[k] += abs(m)
        moment[k] += math.hypot(*h)
        second[k] += abs(I.xx) + abs(I.yy) + abs(I.zz)
        if link.parent >= 0:
            l = math.hypot(*link.lever) + _stroke(link)
            p = link.parent
            mass[p] += mass[k]
            moment[p] += moment[k] + l * mass[k]
            second[p] += second[k] + 2.0 * l * (2.0 * moment[k] + l * mass[k])
    return list(zip(second, mass, strict=True))


def _stroke(link: MovingLink) -> float:
    """A prismatic joint lengthens the lever; a metre stands for its travel."""
    return 1.0 if link.slides else 0.0


def _is_nonnegative(link: MovingLink) -> bool:
    """Whether the link's kinetic energy is never negative (reduced parameter sets may fail this)."""
    m, h, I = link.inertia
    cross = np.array([[0.0, -h.z, h.y], [h.z, 0.0, -h.x], [-h.y, h.x, 0.0]])
    inertia = np.array([[I.xx, I.xy, I.xz], [I.xy, I.yy, I.yz], [I.xz, I.yz, I.zz]])
    spatial = np.block([[inertia, cross], [cross.T, m * np.eye(3)]])
    eigenvalues = np.linalg.eigvalsh(spatial)
    return bool(eigenvalues[0] >= -1e-12 * max(eigenvalues[-1], 0.0))
