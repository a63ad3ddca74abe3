"""Free bodies that turn: the gyroscopic moment over a whole step instead of that at its begin.

I ω̇ = −ω × I ω with the moment of the begin lets the energy of a body with unequal moments of inertia grow in every
step, by about (h |ω|)²/2 of it. The moment that takes ω where four stages of Runge and Kutta take it,

    m = I Δω/h + ω × I ω        (added to what acts on the body, in its axes, about its centre of mass)              (1)

leaves an error of (h |ω|)⁵, which takes energy away and never adds it while h |ω| is below 2.8. Links that carry others
keep the moment of the begin.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.joint_laws import is_zero
from linkwise.model.mechanism import MovingLink
from linkwise.scalar import Scalar, stage
from linkwise.spatial import Vector

Rows = list[list[Scalar]]


def correction(link: MovingLink, rates: Sequence[Scalar], h: Scalar) -> list[Scalar]:
    """(1) for a floating link that carries no other: three moments about its axes [N·m].

    Args:
        link: the link.
        rates: its velocities; the first three are ω.
        h: the step [s].
    """
    with stage("gyroscopic moments"):
        I = _about_centre(link)
        inverse = _inverse(I)
        spin = Vector(*rates[:3])

        def rate(spin: Vector) -> Vector:
            return -_times(inverse, spin.cross(_times(I, spin)))

        first = rate(spin)
        second = rate(spin + (0.5 * h) * first)
        third = rate(spin + (0.5 * h) * second)
        fourth = rate(spin + h * third)
        mean = (1.0 / 6.0) * (first + 2.0 * (second + third) + fourth)
        return [*_times(I, mean - first)]


def _about_centre(link: MovingLink) -> Rows:
    """Moments of inertia about the centre of mass: I − (|s|² − s sᵀ)/m with the first moment s."""
    own, s = link.inertia, link.inertia.first_moment
    entries = own.second_moment
    I: Rows = [
        [entries.xx, entries.xy, entries.xz],
        [entries.xy, entries.yy, entries.yz],
        [entries.xz, entries.yz, entries.zz],
    ]
    if all(is_zero(x) for x in s):
        return I
    lever, square = [*s], s.dot(s)
    return [
        [x - ((square if i == j else 0.0) - lever[i] * lever[j]) / own.mass for j, x in enumerate(row)]
        for i, row in enumerate(I)
    ]


def _inverse(I: Rows) -> Rows:
    x, y, z = (Vector(*row) for row in I)
    columns = [y.cross(z), z.cross(x), x.cross(y)]
    scale = 1.0 / x.dot(columns[0])
    return [[scale * entry for entry in row] for row in zip(*columns, strict=True)]


def _times(A: Rows, v: Vector) -> Vector:
    x, y, z = (Vector(*row).dot(v) for row in A)
    return Vector(x, y, z)
