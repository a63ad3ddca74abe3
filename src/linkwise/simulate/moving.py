"""How a plant moves in one integration step: friction, constraints, and positions on their manifold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.algorithms import coordinates, coupling, joint_terms
from linkwise.algorithms.constrained import constraints
from linkwise.algorithms.constrained.constraints import Held
from linkwise.algorithms.contact import effort, law
from linkwise.model.mechanism import Mechanism
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar, maximum, where
from linkwise.simulate.friction import Friction, dry_friction, dry_friction_impulses, held_still
from linkwise.simulate.integrators import INTEGRATORS, rk4_in_a_loop, space_of

PROJECTION = "projection"
Values = Mapping[str, Sequence[Scalar]]


@dataclass(frozen=True, eq=False)
class Motion:
    """How a plant moves: its links, whether there is friction, its constraints and their stabilization."""

    links: Mechanism
    friction: bool
    held: Sequence[Held] = ()
    stabilization: float | str = 0.0
    """A rate [1/s] at which errors of constraints decay (Baumgarte), or "projection" after every step."""
    scene: law.Scene | None = None
    """What may touch what; None: nothing."""
    accuracy: float | None = None
    """Of contacts: largest residual; None for the default."""
    stages_in_a_loop: bool = False
    """Whether the stages of "rk4" are turns of a loop; torques must not depend on the place in the step."""
    recursive: bool = False
    """Whether accelerations are computed by a recursion over the links: for large robots, where nothing needs their
    mass matrix."""

    @classmethod
    def of(
        cls,
        robot: Robot,
        links: Mechanism,
        friction: bool,
        stabilization: float | str,
        accuracy: float | None = None,
        targets: Sequence[Scalar] | None = None,
        large: bool = False,
        looped: bool = False,
    ) -> Motion:
        """How a robot moves.

        Args:
            robot: what moves.
            links: its links, with symbols where parameters are inputs.
            friction: whether joints have friction.
            stabilization: of constraints.
            accuracy: of contacts.
            targets: of frames that are held to the world, where they are inputs.
            large: whether its code should be short.
            looped: whether stages of an integration step are turns of a loop.
        """
        held = constraints.prepared(robot, targets)
        scene = law.scene_of(robot, friction, held) if robot.contact_parts else None
        recursive = large and not needs_mass_matrix(links, friction, held)
        return cls(links, friction, held, stabilization, scene, accuracy, looped, recursive)

    def accelerated(self, q, qd, tau) -> coordinates.Accelerated:
        rate: Any = None if self.stabilization in (PROJECTION, 0.0) else self.stabilization
        return coordinates.accelerations(
            self.links, q, qd, tau, friction=self.friction, held=self.held, rate=rate
        )

    def advanced(self, values: Values, integrator: str, torque, q, qd, h: Scalar):
        """(q, q̇) one integration step later under ``torque(place, q, qd)`` and friction."""
        if self.scene is not None:
            return self.touched(values, torque(0.0, q, qd), q, qd, h)[:2]
        new = self._integrated(values, integrator, torque, q, qd, h)
        if not self.held or self.stabilization != PROJECTION:
            return new
        return self.projected(*new)

    def touched(self, values: Values, tau, q, qd, h: Scalar, touch: Sequence[Scalar] = ()):
        """(q, q̇, touch) after the step of Moreau and Jean, whatever the integrator.

        ``touch`` is what one step leaves for the next: the impulses, three for every candidate, from which the solver
        starts, and the largest residual so far. It may be empty: there was no step before.
        """
        links, scene = self.links, self.scene
        assert scene is not None
        start = list(touch[:-1]) or None
        given = law.Given(h, values.get("contact_friction", ()), values.get("ground_height", ()), start)
        stepped = law.step(
            links,
            coupling.expanded(links, q, positions=True),
            coupling.expanded(links, qd),
            coupling.expanded(links, tau, forces=True),
            scene,
            given,
            effort.chosen(scene, links, self.accuracy),
        )
        worst = maximum(touch[-1], stepped.residual) if touch else stepped.residual
        return stepped.q, stepped.qd, [*(x for p in stepped.impulses for x in p), worst]

    def projected(self, q, qd):
        """(q, q̇) nearby that meet the constraints."""
        return coordinates.projected(self.links, q, qd, self.held)

    def _integrated(self, values: Values, integrator: str, torque, q, qd, h: Scalar):
        space, links = space_of(self.links), self.links

        def move(torque, moving: Sequence[Scalar] | None = None):
            def acceleration(at, q, qd):
                if self.recursive:
                    return coordinates.free_accelerations(
                        links, q, qd, torque(at, q, qd), friction=self.friction
                    )
                found = self.accelerated(q, qd, torque(at, q, qd))
                return (
                    found.qdd if moving is None else held_still(links, found.mass_matrix, found.qdd, moving)
                )

            looped = self.stages_in_a_loop and integrator == "rk4"
            return (rk4_in_a_loop if looped else INTEGRATORS[integrator])(acceleration, q, qd, h, space)

        if not (self.friction and joint_terms.has_dry_friction(links)):
            return move(torque)
        (breakaway,) = values["breakaway"]
        applied = torque(0.0, q, qd)
        start = self.accelerated(q, qd, applied)
        v_free = [v + h * a for v, a in zip(qd, start.qdd, strict=True)]
        if links.coupled or self.held:
            dry = dry_friction_impulses(links, start.solve, start.held, qd, v_free, h, breakaway)
            return move(self._rubbed(torque, dry))
        if joint_terms.has_load_friction(links):
            smooth = coordinates.smooth_friction(links, q, qd)
            applied = [a - b for a, b in zip(applied, smooth, strict=True)]
        dry = dry_friction(links, start.mass_matrix, qd, v_free, h, breakaway, applied)
        # what friction must do to hold a joint changes with the motion of the others, from stage to stage
        moving = [_if(s, 1.0, where(v * v > 0.0, 1.0, 0.0)) for s, v in zip(dry.sliding, qd, strict=True)]
        new_q, new_qd = move(self._rubbed(torque, dry), moving)
        # a joint that sticks ends the step at rest; one that was at rest has not moved at all
        stopped = space.moved(q, [(0.5 * h) * v for v in qd])
        sliding = [
            s
            for link, s in zip(coordinates.axes_of_coordinates(links), dry.sliding, strict=True)
            if not link.free
        ]
        new_q = _where_sliding(links, sliding, new_q, stopped)
        return new_q, [_if(s, v, 0.0) for s, v in zip(dry.sliding, new_qd, strict=True)]

    def _rubbed(self, torque, dry: Friction):
        """The torque of a stage with dry friction."""

        def rubbed(at, q, qd):
            applied = torque(at, q, qd)
            found = [a + b for a, b in zip(applied, dry.torques, strict=True)]
            if dry.resolved is None:
                return found
            law = coordinates.gradual_friction(self.links, q, qd, applied)
            return [
                a + where(dry.resolved, -now, held)
                for a, now, held in zip(found, law, dry.gradual, strict=True)
            ]

        return rubbed


def needs_mass_matrix(links: Mechanism, friction: bool, held: Sequence[Held]) -> bool:
    """Whether a step needs the mass matrix: for constraints, followers, and joints that dry friction holds."""
    return bool(held) or links.coupled or (friction and joint_terms.has_dry_friction(links))


def _where_sliding(links: Mechanism, sliding: Sequence[Scalar], moved, stopped) -> list[Scalar]:
    """Positions of joints that slide, or else of those that stop; ball and floating joints only lose their speed."""
    found, at, slides = [], 0, iter(sliding)
    for link in links:
        if link.free:
            size = len(link.axes) + 1
            found += moved[at : at + size]
        else:
            size = 1
            found.append(_if(next(slides), moved[at], stopped[at]))
        at += size
    return found


def _if(sliding: Scalar, moved: Scalar, held: Scalar) -> Scalar:
    if isinstance(sliding, float):
        return moved if sliding > 0.5 else held
    return where(sliding > 0.5, moved, held)
