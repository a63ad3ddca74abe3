"""When a mass matrix counts as singular.

Every method that divides by an axis inertia D compares it with the largest inertia its links could show about the
joint: below 1e-12 of that, D is round-off. The bound is a constant of the robot, so the test costs no arithmetic; and
where D cannot vanish at all there is no test. D is at least the rotor inertia plus what the joint's own link has about
the axis, provided no link's inertia is negative in any direction.
"""

from __future__ import annotations

import math

import numpy as np

from linkwise.model.mechanism import Mechanism, MovingLink
from linkwise.scalar import Scalar, where

RELATIVE_FLOOR = 1e-12
NEVER = -math.inf  # the floor of a joint whose axis inertia cannot vanish


def checked(axis_inertia: Scalar, floor: Scalar) -> Scalar:
    """The axis inertia, or NaN where it vanishes, so that nothing wrong is returned silently."""
    if isinstance(floor, float) and floor == NEVER:
        return axis_inertia
    return where(axis_inertia > floor, axis_inertia, math.nan)


def may_be_singular(links: Mechanism) -> bool:
    """Whether some axis inertia could vanish in some configuration."""
    return any(floor != NEVER for floor in axis_inertia_floors(links))


def axis_inertia_floors(links: Mechanism) -> list[float]:
    """For each joint the axis inertia [kg·m² or kg] at or under which it counts as massless."""
    links = links.original  # regrouped parameters do not bound anything
    known = links.__dict__.get("_floors")
    if known is None:
        known = links.__dict__["_floors"] = _floors(links)
    return known


def _floors(links: Mechanism) -> list[float]:
    largest = _largest_inertias(links)
    floors = [RELATIVE_FLOOR * size for size in largest]
    if not all(_is_nonnegative(link) for link in links):
        return floors
    for link in links:
        k = link.index
        own = link.inertia.second_moment.zz if link.revolute else link.inertia.mass
        if own + link.rotor_inertia > 10.0 * floors[k]:
            floors[k] = NEVER
    return floors


def _largest_inertias(links: Mechanism) -> list[float]:
    """The inertia (or mass) that the links beyond each joint could at most show about it, all stretched out."""
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
    return [second[link.index] if link.revolute else mass[link.index] for link in links]


def _stroke(link: MovingLink) -> float:
    """A prismatic joint lengthens the lever; a metre stands for its travel."""
    return 0.0 if link.revolute else 1.0


def _is_nonnegative(link: MovingLink) -> bool:
    """Whether the link's kinetic energy is never negative (reduced parameter sets may fail this)."""
    m, h, I = link.inertia
    cross = np.array([[0.0, -h.z, h.y], [h.z, 0.0, -h.x], [-h.y, h.x, 0.0]])
    inertia = np.array([[I.xx, I.xy, I.xz], [I.xy, I.yy, I.yz], [I.xz, I.yz, I.zz]])
    spatial = np.block([[inertia, cross], [cross.T, m * np.eye(3)]])
    eigenvalues = np.linalg.eigvalsh(spatial)
    return bool(eigenvalues[0] >= -1e-12 * max(eigenvalues[-1], 0.0))
