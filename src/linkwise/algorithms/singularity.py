"""When a mass matrix counts as singular.

Every method that divides by an axis inertia D compares it with the largest inertia its links could show about the
joint, the size of the terms that D is computed from. The bound is a constant of the robot, so the test costs no
arithmetic. D is at least the rotor inertia plus what the joint's own link has about the axis, provided that no link's
inertia is negative in any direction. A slide, or two, that carry a link which turns have a bound from its mass. So
there are three cases:

* that sum is positive and large beside round-off: D cannot vanish, and there is no test;
* it is positive, but D might be lost in the round-off of larger terms: D must exceed that;
* it is zero (a link without mass, or all of it on the axis): D below 1e-12 of the bound counts as zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from linkwise.model.axes import JointValue, joint_value
from linkwise.model.mechanism import Mechanism, MovingLink, flat
from linkwise.scalar import Scalar, where
from linkwise.spatial import ArticulatedInertia, Matrix, Spatial, articulated, outer

RELATIVE_FLOOR = 1e-12  # of D where it may vanish: round-off over a long chain stays below
ROUND_OFF = 100.0 * 2.0**-52  # of D where it cannot vanish: less has no correct digit or hardly one
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
    bounded = all(_is_nonnegative(link) for link in links)
    found: list[JointValue] = []
    for link, sizes in zip(links, largest_inertias(links), strict=True):
        floors: list[Scalar] = []
        carried = _carried_mass(links, link)
        for axis, alone in zip(link.axes, own_pivots(link), strict=True):
            own = max(alone, carried)
            size = sizes[0] if axis.turns else sizes[1]
            if not bounded:
                floors.append(RELATIVE_FLOOR * size)
            elif own > ROUND_OFF * size:
                floors.append(NEVER)
            else:
                floors.append((ROUND_OFF if own > 0.0 else RELATIVE_FLOOR) * size)
        found.append(joint_value(floors))
    return found


def own_pivots(link: MovingLink) -> list[float]:
    """The axis inertias that the link alone would show: a lower bound for those with more links beyond it."""
    left, pivots = articulated(link.inertia), list[float]()
    for axis in link.axes:
        column = axis.column(left)
        D: Any = axis.felt(column) + link.rotor_inertia  # a float
        pivots.append(D)
        if len(link.axes) > 1 and D > 0.0:
            left = _less(left, column, D)
    return pivots


def _carried_mass(links: Mechanism, link: MovingLink) -> float:
    """The least axis inertia of a slide that carries one link which turns, directly or by a second slide at right
    angles to both, as in a planar base: m I/(I + m r²), with the inertia I about the parallel through the centre of
    mass and its distance r. 0 for all other joints."""
    carried = [link]
    while not carried[-1].turns and len(carried[-1].children) == 1 and len(carried) < 3:
        carried.append(links[carried[-1].children[0]])
    last = carried[-1]
    if link.turns or not last.turns or last.free:
        return 0.0
    right = [carried[1].twist.c, carried[2].twist.c, carried[1].offset.c] if len(carried) == 3 else []
    if any(abs(cosine) > 1e-9 for cosine in right):
        return 0.0
    m, h, I = last.inertia
    if not (m > 0.0 and I.zz > 0.0):
        return 0.0
    return max(m * (I.zz - (h.x * h.x + h.y * h.y) / m) / I.zz, 0.0)


def _less(P: ArticulatedInertia, u: Spatial, D: float) -> ArticulatedInertia:
    """P − u uᵀ/D, for numbers."""
    scaled = (1.0 / D) * u
    product = [a * b for a in u.angular for b in scaled.linear]
    return ArticulatedInertia(
        P.A - outer(u.angular, scaled.angular),
        P.B - Matrix(*product),
        P.C - outer(u.linear, scaled.linear),
    )


def largest_inertias(links: Mechanism) -> list[tuple[float, float]]:
    """(inertia, mass) that the links from each joint on could at most show about its axis, all stretched out."""
    n = len(links)
    mass, moment, second, about = ([0.0] * n for _ in range(4))  # second: about the origin; about: the axis z
    for link in reversed(links):
        k, p = link.index, link.parent
        m, h, I = link.inertia
        mass[k] += abs(m)
        moment[k] += math.hypot(*h)
        second[k] += abs(I.xx) + abs(I.yy) + abs(I.zz)
        about[k] += abs(I.zz)
        if p < 0:
            continue
        fixed = link.orientation is None  # the joint's axis has a fixed direction in the parent
        x, y, z = cast("Iterable[float]", link.lever)
        reach = math.hypot(x, y, z) + _stroke(link)
        slide = abs(link.twist.s) * _stroke(link)
        across = math.hypot(x, y) + slide if fixed else reach
        parallel = fixed and link.twist.s == 0.0
        mass[p] += mass[k]
        moment[p] += moment[k] + reach * mass[k]
        second[p] += second[k] + 2.0 * reach * (2.0 * moment[k] + reach * mass[k])
        about[p] += (about[k] if parallel else second[k]) + across * (2.0 * moment[k] + across * mass[k])
    found: list[tuple[float, float]] = []
    for link, own, all_, m, h in zip(links, about, second, mass, moment, strict=True):
        pitch: Any = abs(link.axes[0].pitch)
        found.append((all_ if link.free else own + pitch * (2.0 * h + pitch * m), m))
    return found


def _stroke(link: MovingLink) -> float:
    """A prismatic joint lengthens the lever; its stroke is taken as one metre."""
    return 1.0 if link.slides else 0.0


def _is_nonnegative(link: MovingLink) -> bool:
    """Whether the link's kinetic energy is never negative (reduced parameter sets may fail this)."""
    m, h, I = link.inertia
    cross = np.array([[0.0, -h.z, h.y], [h.z, 0.0, -h.x], [-h.y, h.x, 0.0]])
    inertia = np.array([[I.xx, I.xy, I.xz], [I.xy, I.yy, I.yz], [I.xz, I.yz, I.zz]])
    spatial = np.block([[inertia, cross], [cross.T, m * np.eye(3)]])
    eigenvalues = np.linalg.eigvalsh(spatial)
    return bool(eigenvalues[0] >= -1e-12 * max(eigenvalues[-1], 0.0))
