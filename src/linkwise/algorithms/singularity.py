"""When a mass matrix counts as singular.

Every method that divides by an axis inertia D compares it with the largest inertia its links could show about the
joint: below 1e-12 of that, D is round-off. The bound is a constant of the robot, so the test costs no arithmetic.
"""

from __future__ import annotations

import math

from linkwise.model.mechanism import Mechanism, MovingLink

RELATIVE_FLOOR = 1e-12


def axis_inertia_floors(links: Mechanism) -> list[float]:
    """For each joint the axis inertia [kg·m² or kg] at or under which it counts as massless."""
    links = links.original  # regrouped parameters do not bound anything
    mass = [0.0] * len(links)
    moment = [0.0] * len(links)  # first moment, as a length times a mass
    second = [0.0] * len(links)
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
    return [RELATIVE_FLOOR * (second[link.index] if link.revolute else mass[link.index]) for link in links]


def _stroke(link: MovingLink) -> float:
    """A prismatic joint lengthens the lever; a metre stands for its travel."""
    return 0.0 if link.revolute else 1.0
