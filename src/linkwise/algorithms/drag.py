"""Forces of a fluid on the links: MuJoCo's models of drag, as functions of the velocity relative to the fluid.

A box resists along its axes, with Stokes' drag of a sphere of its mean edge and with the pressure on its faces

    n = π d³ μ ω + ρ/64 a (b⁴ + c⁴) |ω| ω        f = 3π d μ v + ρ/2 b c |v| v

axis by axis. An ellipsoid has besides the forces of the mass of fluid that moves with it, Magnus' and Kutta's lift, and
drag that depends on the area that it turns to the flow (documentation of MuJoCo, "Fluid forces"). What is given here is
what the joints need more; it counts as friction, which ``friction=False`` leaves out.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi as PI

from linkwise.algorithms.boundary_value import spatial_velocities
from linkwise.model.axes import JointValue
from linkwise.model.mechanism import Mechanism, MovingLink, Turned
from linkwise.scalar import Scalar, maximum, sqrt, stage, where
from linkwise.spatial import Matrix, Spatial, Vector, zero_spatial

SMALLEST = 1e-30  # squares of speeds below count as rest, where a direction or a slope does not exist
LEAST = 1e-15  # what MuJoCo divides by at least


def present(links: Mechanism) -> bool:
    """Whether a fluid resists some link."""
    return any(link.drag for link in links)


def torques(links: Mechanism, q: Sequence[JointValue], qd: Sequence[JointValue]) -> list[JointValue]:
    """What the joints need more because of the fluid [N·m or N]."""
    with stage("fluid"):
        turned = links.turned(q)
        velocities = spatial_velocities(links, turned, qd)

        def in_link(link: MovingLink, wind: Vector, turned: Turned) -> Vector:
            return link.placed(turned).outward(wind)

        wind = links.outward(in_link, links.wind, turned)
        own = links.each(resistance, velocities, wind)

        def step(link: MovingLink, received: Spatial, turned: Turned, own: Spatial):
            total = received + own
            return link.felt(total), link.placed(turned).force_to_parent(total)

        return links.inward(step, zero_spatial(), turned, own)


def resistance(link: MovingLink, V: Spatial, wind: Vector) -> Spatial:
    """(moment, force) that the link needs to move through the fluid, about its origin; ``wind`` in its axes."""
    total = zero_spatial()
    for numbers in link.drag:
        rotation, centre = Matrix(*numbers[:9]), Vector(*numbers[9:12])
        back = rotation.transposed()
        w, v = back @ V.angular, back @ (V.linear + V.angular.cross(centre) - wind)
        moment, force = (_box if len(numbers) == 20 else _ellipsoid)(w, v, numbers[12:])
        force = rotation @ force
        total = total + Spatial(rotation @ moment + centre.cross(force), force)
    return total


def _box(w: Vector, v: Vector, numbers: Sequence[Scalar]) -> tuple[Vector, Vector]:
    turning, sliding, *quadratic = numbers
    moment = [turning * x + k * (abs(x) * x) for x, k in zip(w, quadratic[:3], strict=True)]
    force = [sliding * x + k * (abs(x) * x) for x, k in zip(v, quadratic[3:], strict=True)]
    return Vector(*moment), Vector(*force)


def _ellipsoid(w: Vector, v: Vector, numbers: Sequence[Scalar]) -> tuple[Vector, Vector]:
    turning, sliding, *rest = numbers
    masses, inertias, (magnus, kutta), faces = rest[:3], rest[3:6], rest[6:8], rest[8:11]
    by_area, constant, angular = rest[11], rest[12], rest[13:16]
    momentum = Vector(*(m * x for m, x in zip(masses, v, strict=True)))
    spin = Vector(*(I * x for I, x in zip(inertias, w, strict=True)))
    normal = Vector(*(k * x for k, x in zip(faces, v, strict=True)))
    # the area across the flow is π √(n·n / n·v); the cosine between flow and normal (n·v / n·n) / |v|
    across, along, square = normal.dot(normal), normal.dot(v), v.dot(v)
    moves = (square > SMALLEST) & (across > 0.0)
    area = where(moves, sqrt(where(moves, across, 1.0) / maximum(along, LEAST)), 0.0)
    speed = where(moves, sqrt(where(moves, square, 1.0)), 0.0)
    cosine = along / maximum(speed * across, LEAST)
    lift = (kutta * PI * (cosine * area)) * normal.cross(v).cross(v) + magnus * w.cross(v)
    drag = sliding + speed * (by_area * area + constant)
    turns = Vector(*(k * x for k, x in zip(angular, w, strict=True)))
    size = turns.dot(turns)
    spinning = size > SMALLEST
    resisted = turning + where(spinning, sqrt(where(spinning, size, 1.0)), 0.0)
    moment = resisted * w - (momentum.cross(v) + spin.cross(w))
    return moment, drag * v - (momentum.cross(w) + lift)
