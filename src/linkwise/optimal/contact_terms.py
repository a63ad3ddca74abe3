"""Costs and limits of robots that touch: the centre of mass, forces of contacts, friction cones. Over any scalar."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.optimal import arguments
from linkwise.optimal.arguments import ProblemError
from linkwise.optimal.costs import Cost, Point, Terms
from linkwise.optimal.limits import Limit
from linkwise.scalar import Scalar, sqrt, where

if TYPE_CHECKING:
    from linkwise.algorithms.dense import Rows
    from linkwise.optimal.contact_schedule import ContactSchedule
    from linkwise.optimal.dynamics import Dynamics
    from linkwise.robot.robot import Robot

ROUNDING = 1e-3  # of the tip of a friction cone, in units of the weight


@dataclass(frozen=True, eq=False)
class CenterOfMass(Cost):
    """½ Σ wᵢ (c − c*)ᵢ²: the centre of mass of all moving links, in base axes."""

    target: Any
    """[m], (3,) or (rows, 3)."""
    weight: Any = 1.0
    """One number or (3,) [1/m²]."""

    kind = "center_of_mass"

    def parameters(self, robot, dynamics, rows):
        return {
            "target": arguments.table(f"{self.label}: target", self.target, 3, rows),
            "weight": arguments.weights(f"{self.label}: weight", self.weight, 3, rows),
        }

    def terms(self, point, values):
        dynamics = point.dynamics
        place = dynamics.whole_body("center_of_mass", q=point.q)
        pad: list[Scalar] = [0.0] * (dynamics.nx + dynamics.nu - dynamics.dof)
        slopes: Rows = [[*row, *pad] for row in dynamics.whole_body("com_jacobian", q=point.q)]
        return Terms(
            [a - b for a, b in zip(place, values["target"], strict=True)], list(values["weight"]), slopes
        )


@dataclass(frozen=True, eq=False)
class ContactForces(Cost):
    """½ Σ wᵢ (f − target)ᵢ²: forces of the contacts, frame by frame as ``ContactSchedule`` has them."""

    target: Any = 0.0
    """[N and N·m], one number, (rows of the contacts,) or (rows, rows of the contacts)."""
    weight: Any = 1.0
    """One number or (rows of the contacts,)."""

    kind = "forces"
    running_only = True
    of_forces = True

    def check(self, dynamics: Dynamics) -> None:
        _contacts(self.label, dynamics)

    def parameters(self, robot, dynamics, rows):
        size = _contacts(self.label, dynamics).rows
        return {
            "target": arguments.table(f"{self.label}: target", self.target, size, rows),
            "weight": arguments.weights(f"{self.label}: weight", self.weight, size, rows),
        }

    def terms(self, point, values):
        residuals = [f - t for f, t in zip(point.forces, values["target"], strict=True)]
        return Terms(residuals, list(values["weight"]))


@dataclass(frozen=True, eq=False)
class ConePenalty(Cost):
    """½ w Σ max(0, tᵢ·f − μ fₙ)²: forces outside a pyramid of friction cost; ``FrictionCone`` does not allow them."""

    friction: float = 0.7
    """μ of the pyramid."""
    weight: float = 1.0
    """[1/N²]."""
    facets: int = 4
    """Of the pyramid, from 4 on, an even number: it touches the cone from outside."""

    kind = "cone_penalty"
    running_only = True
    of_forces = True
    from_zero = ("friction", "weight")

    def check(self, dynamics: Dynamics) -> None:
        _contacts(self.label, dynamics)
        if arguments.whole(f"{self.label}: facets", self.facets, 4) % 2:
            raise ProblemError(f"{self.label}: facets: expected an even number, got {self.facets}")

    def parameters(self, robot, dynamics, rows):
        return {
            "friction": np.array([arguments.number(f"{self.label}: friction", self.friction, least=0.0)]),
            "weight": arguments.weights(f"{self.label}: weight", self.weight, 1, rows),
        }

    def terms(self, point, values):
        (friction,), (weight,) = values["friction"], values["weight"]
        residuals = []
        for x, y, z, *_ in _frames(point):
            for k in range(self.facets):
                angle = 2.0 * math.pi * k / self.facets
                outside = math.cos(angle) * x + math.sin(angle) * y - friction * z
                residuals.append(where(outside > 0.0, outside, 0.0 * outside))
        return Terms(residuals, [weight] * len(residuals))

    def key(self):
        return (*super().key(), self.facets)


@dataclass(frozen=True, eq=False)
class FrictionCone(Limit):
    """√(fx² + fy² + δ²) ≤ μ fz at every frame that is held, in units of the weight: Coulomb's cone, its tip rounded
    from inside, so that a held frame is always pressed to the ground. For surfaces also the moments: the centre of
    pressure stays inside ``area``, and |mz| ≤ μ r fz."""

    friction: float = 0.7
    """μ."""
    area: Sequence[float] = (0.1, 0.05)
    """Half length and half width of a surface about the frame's origin, along its x and y [m]."""

    kind = "friction_cone"
    of_forces = True
    above_zero = ("friction", "unit")

    def check(self, dynamics: Dynamics) -> None:
        _contacts(self.label, dynamics)
        arguments.number(f"{self.label}: friction", self.friction, above=0.0)
        if (arguments.numbers(f"{self.label}: area", self.area, (2,)) <= 0.0).any():
            raise ProblemError(f"{self.label}: area: expected lengths above 0, got {self.area!r}")

    def parameters(self, robot):
        weight = 9.81 * sum(link.inertia.mass for link in robot.links)
        return {"friction": np.array([float(self.friction)]), "unit": np.array([1.0 / weight])}

    def frame_words(self, contacts: ContactSchedule) -> list[tuple[str, str]]:
        """(what is limited, its unit) of every function."""
        sides = ["friction cone"]
        if contacts.surface:
            sides += [f"pressure beyond the {side}" for side in ("front", "back", "left", "right")]
            sides += ["moment about the normal", "opposite moment about the normal"]
        return [(f"{frame}: {side}", "of the weight") for frame in contacts.frames for side in sides]

    def words(self, robot):
        raise NotImplementedError("the words of limits of forces need the schedule of contacts")

    def functions(self, point, values):
        (friction,), (unit,) = values["friction"], values["unit"]
        active = point.dynamics.active or [1.0] * len(_contacts(self.label, point.dynamics).frames)
        length, width = map(float, self.area)
        found: list[Scalar] = []
        for held, forces in zip(active, _frames(point), strict=True):
            x, y, z, *moments = (unit * f for f in forces)
            own = [sqrt(x * x + y * y + ROUNDING * ROUNDING) - friction * z]
            if moments:
                mx, my, mz = moments
                turn = friction * min(length, width)
                own += [-my - length * z, my - length * z, mx - width * z, -mx - width * z]
                own += [mz - turn * z, -mz - turn * z]
            # a frame that is not held has no force: its limits are kept by 1
            found += [held * c - (1.0 - held) for c in own]
        return found

    def key(self, robot: Robot):
        return (type(self).__name__, self.label, tuple(map(float, self.area)))


def _contacts(label: str, dynamics: Dynamics) -> ContactSchedule:
    if dynamics.contacts is None:
        raise ProblemError(f"{label}: the problem has no contacts; give contacts=ContactSchedule(…)")
    return dynamics.contacts


def _frames(point: Point) -> list[list[Scalar]]:
    """Forces of each frame."""
    size = _contacts("forces", point.dynamics).size
    forces = list(point.forces)
    return [forces[k : k + size] for k in range(0, len(forces), size)]
