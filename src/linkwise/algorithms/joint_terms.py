"""What the joints add to the equation of motion, summed over the laws of ``linkwise.joint_laws``.

    M(q) q̈ + c(q, q̇) + g(q) + friction(q, q̇) = τ + Jᵀ w

M includes the rotor inertias, g the torques of springs and of weight that is carried from outside, which, like
gravity, are not friction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from linkwise.algorithms import drag, gravity_compensation, manifold
from linkwise.errors import ModelError
from linkwise.joint_laws import LAWS, Law, is_zero, load, world_rotor
from linkwise.joint_laws.direction import SPEED, jumps
from linkwise.model.axes import JointValue, joint_value, parts_of, single, times
from linkwise.model.mechanism import Mechanism, MovingLink
from linkwise.scalar import Scalar, maximum, stage, summed
from linkwise.spatial import Vector

FRICTION = tuple(law for law in LAWS if law.dissipates and not law.of_load)
SMOOTH_FRICTION = tuple(law for law in FRICTION if not law.jumps)
DRY_FRICTION = tuple(law for law in FRICTION if law.jumps)
SPRINGS = tuple(law for law in LAWS if not law.dissipates and law.uses_position)


# -- friction ---------------------------------------------------------------------------------------------------------


def add_friction(
    links: Mechanism, tau: Sequence[JointValue], q: Sequence[JointValue], qd: Sequence[JointValue]
) -> list[JointValue]:
    """What the joints carry, with all friction [N·m or N]: T + f + c d |T|."""
    rubbing = _summed("friction", links, FRICTION, q, qd)
    return added(links, add_load_friction(links, tau, qd), rubbing)


def add_load_friction(
    links: Mechanism, tau: Sequence[JointValue], qd: Sequence[JointValue]
) -> Sequence[JointValue]:
    """T + c d |T|."""
    if not has_load_friction(links):
        return tau
    with stage("friction"):
        return links.each(lambda link, T, v: load.added(link, single(T), single(v)), tau, qd)


def subtract_friction(
    links: Mechanism, tau: Sequence[JointValue], q: Sequence[JointValue], qd: Sequence[JointValue]
) -> Sequence[JointValue]:
    """What is left of torques for the joints to carry [N·m or N]: T, of T + f + c d |T|."""
    left = subtracted(links, tau, _summed("friction", links, FRICTION, q, qd))
    return subtract_load_friction(links, left, qd)


def subtract_load_friction(
    links: Mechanism, tau: Sequence[JointValue], qd: Sequence[JointValue]
) -> Sequence[JointValue]:
    """T, of T + c d |T|."""
    if not has_load_friction(links):
        return tau  # as it is: links that are swept have arrays of symbols
    with stage("friction"):
        return links.each(lambda link, t, v: load.removed(link, single(t), single(v)), tau, qd)


def friction(links: Mechanism, q: Sequence[JointValue], qd: Sequence[JointValue]) -> Sequence[JointValue]:
    """Friction of every joint [N·m or N], for code that has no carried torque; at rest it is zero."""
    check_no_load_friction(links)
    return with_drag(links, _summed("friction", links, FRICTION, q, qd), q, qd)


def with_drag(
    links: Mechanism, tau: Sequence[JointValue], q: Sequence[JointValue], qd: Sequence[JointValue]
) -> Sequence[JointValue]:
    """Torques with what the joints need more because of a fluid [N·m or N]."""
    return added(links, tau, drag.torques(links, q, qd)) if drag.present(links) else tau


def without_drag(
    links: Mechanism, tau: Sequence[JointValue], q: Sequence[JointValue], qd: Sequence[JointValue]
) -> Sequence[JointValue]:
    """What a fluid leaves of torques [N·m or N]."""
    return subtracted(links, tau, drag.torques(links, q, qd)) if drag.present(links) else tau


def check_no_drag(links: Mechanism) -> None:
    """Refuse a fluid, where torques must be linear in parameters or quadratic in a speed."""
    if drag.present(links):
        raise ModelError(
            f"{links.name}: forces of a surrounding fluid are not supported here; take them away with with_fluid(None)"
        )


def has_load_friction(links: Mechanism) -> bool:
    """Whether friction of a joint depends on the torque that it carries."""
    return any(not load.is_absent(link) for link in links)


def check_no_load_friction(links: Mechanism) -> None:
    """Refuse friction that depends on the torque that a joint carries, where it is not known."""
    if has_load_friction(links):
        raise ModelError(
            f"{links.name}: friction that grows with the carried torque (load_friction) is not supported here; "
            "set it to 0 with with_parameters({'JOINT.load_friction': 0.0})"
        )


def smooth_friction(
    links: Mechanism, q: Sequence[JointValue], qd: Sequence[JointValue]
) -> Sequence[JointValue]:
    """The part of friction that is continuous at rest, drag in a fluid included."""
    return with_drag(links, _summed("friction", links, SMOOTH_FRICTION, q, qd), q, qd)


def damping(links: Mechanism, q: Sequence[JointValue], qd: Sequence[JointValue]) -> list[Scalar]:
    """By how much friction that is continuous at rest grows with the speed of every coordinate [N·m·s/rad or N·s/m].

    At least 0: where friction falls with the speed, there is nothing that damps. Drag in a fluid is left out.
    """
    slopes = _slopes(links, SMOOTH_FRICTION, lambda law, link, x, v: law.by_qd(link, x, v), q, qd)
    return [max(slope, 0.0) if isinstance(slope, float) else maximum(slope, 0.0) for slope in slopes]


def dry_friction(links: Mechanism, q: Sequence[JointValue], qd: Sequence[JointValue]) -> list[JointValue]:
    """The part of friction that changes its direction with the speed; without load friction."""
    return _summed("friction", links, DRY_FRICTION, q, qd)


def dry_friction_limits(link: MovingLink, qd: JointValue, given: Scalar = 0.0) -> tuple[Scalar, Scalar]:
    """Magnitudes of the dry friction of one joint in motion forward and backward [N·m or N].

    ``given`` is the torque on the joint less its smooth friction, which load friction depends on.
    """
    parts = [law.limits(link, single(qd)) for law in DRY_FRICTION if not law.absent(link)]
    forward: Scalar = summed([each for each, _ in parts])
    backward: Scalar = summed([each for _, each in parts])
    if load.is_absent(link):
        return forward, backward
    return (
        forward + load.limit(link, given - forward, True),
        backward + load.limit(link, given + backward, False),
    )


def has_friction(links: Mechanism) -> bool:
    """Whether a joint has some; a symbol may have."""
    return bool(_present(links, FRICTION)) or has_load_friction(links) or drag.present(links)


def has_dry_friction(links: Mechanism) -> bool:
    """Whether a joint has some; a symbol may have."""
    return bool(_present(links, DRY_FRICTION)) or has_load_friction(links)


def direction_speed(link: MovingLink) -> Scalar | None:
    """The speed over which dry friction of a joint changes its direction; None where it jumps."""
    return None if jumps(link) else link.terms[SPEED]


def gradual_friction(
    links: Mechanism, qd: Sequence[JointValue], given: Sequence[JointValue]
) -> list[JointValue]:
    """Dry friction of the joints where it changes its direction over a ``friction_speed``; of others zero.

    ``given`` are the torques less smooth friction, which load friction depends on.
    """

    def own(link: MovingLink, qd: JointValue, given: JointValue) -> JointValue:
        if jumps(link):
            return times(0.0, qd)
        rubbing = _total(DRY_FRICTION, link, None, qd)
        if load.is_absent(link):
            return rubbing
        carried = single(given) - single(rubbing)
        return single(given) - load.removed(link, carried, single(qd))

    with stage("friction"):
        return links.each(own, qd, given)


# -- springs ----------------------------------------------------------------------------------------------------------


def add_springs(links: Mechanism, tau: Sequence[JointValue], q: Sequence[JointValue]) -> Sequence[JointValue]:
    """Torques with those of springs and carried weight at q."""
    springs = _springs(links, q)
    return tau if springs is None else added(links, tau, springs)


def subtract_springs(
    links: Mechanism, tau: Sequence[JointValue], q: Sequence[JointValue]
) -> Sequence[JointValue]:
    """Torques without those of springs and carried weight at q."""
    springs = _springs(links, q)
    return tau if springs is None else subtracted(links, tau, springs)


def add_world_rotors(
    links: Mechanism, tau: Sequence[JointValue], qd: Sequence[JointValue]
) -> Sequence[JointValue]:
    """Torques with what rotor inertias along the axes of the world need besides those along the link's axes."""
    return added(links, tau, world_rotor_torques(links, qd)) if _has_world_rotors(links) else tau


def subtract_world_rotors(
    links: Mechanism, tau: Sequence[JointValue], qd: Sequence[JointValue]
) -> Sequence[JointValue]:
    """Torques without what ``add_world_rotors`` adds."""
    return subtracted(links, tau, world_rotor_torques(links, qd)) if _has_world_rotors(links) else tau


def world_rotor_torques(links: Mechanism, qd: Sequence[JointValue]) -> list[JointValue]:
    """a ω × v of floating joints, see ``joint_laws.world_rotor``; of others zero."""

    def own(link: MovingLink, qd: JointValue) -> JointValue:
        if len(link.axes) != world_rotor.FLOATING:
            return times(0.0, qd)
        a = link.terms.get(world_rotor.NAME, 0.0)
        return joint_value([a * x for x in world_rotor.sideways(parts_of(qd))])

    with stage("rotor inertia"):
        return links.each(own, qd)


def _has_world_rotors(links: Mechanism) -> bool:
    return any(not is_zero(link.terms.get(world_rotor.NAME, 0.0)) for link in links)


def _springs(links: Mechanism, q: Sequence[JointValue]) -> list[JointValue] | None:
    """Torques of springs and carried weight; None where no joint has any."""
    carried = gravity_compensation.torques(links, q) if gravity_compensation.present(links) else None
    laws = _present(links, SPRINGS)
    if not laws:
        return carried
    with stage("springs"):
        springs = links.each(lambda link, q: _total(laws, link, q, None), q)
    return springs if carried is None else added(links, springs, carried)


def spring_energy(links: Mechanism, q: Sequence[JointValue]) -> Scalar:
    """The potential energy of all springs and of carried weight [J]."""
    if gravity_compensation.present(links):
        return gravity_compensation.energy(links, q) + _energy_of_springs(links, q)
    return _energy_of_springs(links, q)


def _energy_of_springs(links: Mechanism, q: Sequence[JointValue]) -> Scalar:
    with stage("springs"):
        parts = [
            law.energy(link, x)
            for link, own in zip(links, q, strict=True)
            for law in SPRINGS
            if not law.absent(link)
            for x in _along_axes(link, own)
        ]
        return summed(parts)


# -- rotors -----------------------------------------------------------------------------------------------------------


def rotor_torques(links: Mechanism, qdd: Sequence[JointValue]) -> list[JointValue]:
    """I_a q̈ of every joint."""
    with stage("rotor inertia"):
        return links.each(lambda link, qdd: times(link.rotor_inertia, qdd), qdd)


def add_rotor_inertia(links: Mechanism, M: list[list[Scalar]]) -> list[list[Scalar]]:
    """The mass matrix with the rotor inertias on its diagonal."""
    return on_diagonal(M, [links[k].rotor_inertia for k, _ in links.coordinates()])


# -- derivatives ------------------------------------------------------------------------------------------------------


def add_derivatives_by_q(
    links: Mechanism,
    matrix: list[list[Scalar]],
    q: Sequence[JointValue],
    qd: Sequence[JointValue],
    *,
    friction: bool,
) -> list[list[Scalar]]:
    """∂τ/∂q of the rigid bodies with what springs, and friction where it depends on q, add to its diagonal."""
    laws = [law for law in LAWS if law.uses_position and (friction or not law.dissipates)]
    slopes = _slopes(links, laws, lambda law, link, x, v: law.by_q(link, x, v), q, qd)
    matrix = on_diagonal(matrix, slopes)
    for link, first, own in zip(links, links.first_coordinates(), q, strict=True):
        if link.free and any(not law.absent(link) for law in laws):
            # the rotation vector of an orientation does not change by the joint's rates alone
            turning = manifold.rotation_vector_slopes(link, own)
            for i, row in enumerate(turning):
                for j, entry in enumerate(row):
                    more = slopes[first + i] * (entry - 1.0 if i == j else entry)
                    matrix[first + i][first + j] = matrix[first + i][first + j] + more
    if gravity_compensation.present(links):
        more = gravity_compensation.derivatives_by_q(links, q)
        matrix = [[a + b for a, b in zip(*rows, strict=True)] for rows in zip(matrix, more, strict=True)]
    return matrix


def column(
    law: Law,
    name: str,
    links: Mechanism,
    i: int,
    q: Sequence[JointValue],
    qd: Sequence[JointValue],
    qdd: Sequence[JointValue],
) -> Scalar:
    """Torque along velocity coordinate i for a coefficient of 1 of this law at its joint."""
    k, axis = links.coordinates()[i]
    link = links[k]
    at = link.axes.index(axis)
    if law.name == world_rotor.NAME:
        return world_rotor.sideways(parts_of(qd[k]))[at] if len(link.axes) == world_rotor.FLOATING else 0.0
    position: Any = _along_axes(link, q[k])[at] if law.uses_position else None
    return law.column(name, link, position, parts_of(qd[k])[at], parts_of(qdd[k])[at])


def add_derivatives_by_qd(
    links: Mechanism,
    matrix: list[list[Scalar]],
    q: Sequence[JointValue],
    qd: Sequence[JointValue],
    *,
    friction: bool,
) -> list[list[Scalar]]:
    """∂τ/∂q̇ of the rigid bodies with the slopes of friction on its diagonal."""
    laws = [law for law in LAWS if friction or not law.dissipates]
    matrix = on_diagonal(matrix, _slopes(links, laws, lambda law, link, x, v: law.by_qd(link, x, v), q, qd))
    if _has_world_rotors(links):
        for link, first, rates in zip(links, links.first_coordinates(), qd, strict=True):
            if len(link.axes) == world_rotor.FLOATING:
                a = link.terms.get(world_rotor.NAME, 0.0)
                for j in range(world_rotor.FLOATING):
                    unit = [1.0 if i == j else 0.0 for i in range(world_rotor.FLOATING)]
                    turn, slide = Vector(*unit[:3]), Vector(*unit[3:])
                    w, v = Vector(*parts_of(rates)[:3]), Vector(*parts_of(rates)[3:])
                    for i, slope in enumerate(turn.cross(v) + w.cross(slide)):
                        row = matrix[first + 3 + i]
                        row[first + j] = row[first + j] + a * slope
    return matrix


# -- shared -----------------------------------------------------------------------------------------------------------


def added(links: Mechanism, a: Sequence[Any], b: Sequence[Any]) -> list[JointValue]:
    """a + b, joint by joint."""
    return links.each(lambda link, x, y: x + y, a, b)


def subtracted(links: Mechanism, a: Sequence[Any], b: Sequence[Any]) -> list[JointValue]:
    """a − b, joint by joint."""
    return links.each(lambda link, x, y: x - y, a, b)


def _present(links: Mechanism, laws: Sequence[Law]) -> list[Law]:
    return [law for law in laws if any(not law.absent(link) for link in links)]


def _summed(
    name: str, links: Mechanism, laws: Sequence[Law], q: Sequence[JointValue], qd: Sequence[JointValue]
) -> list[JointValue]:
    """The torques of some laws; positions are passed on only where a law needs them."""
    laws = _present(links, laws)
    with stage(name):
        if any(law.uses_position for law in laws):
            return links.each(lambda link, q, qd: _total(laws, link, q, qd), q, qd)
        return links.each(lambda link, qd: _total(laws, link, None, qd), qd)


def _total(laws: Sequence[Law], link: MovingLink, q: Any, qd: Any) -> JointValue:
    """The torque of some laws at one joint; None for a position or a rate that no law uses."""
    own = [law for law in laws if not law.absent(link)]
    if not link.free:
        return summed([law.torque(link, q, qd) for law in own])
    nothing: list[Any] = [None] * len(link.axes)
    positions = _along_axes(link, q) if any(law.uses_position for law in own) else nothing
    rates = nothing if qd is None else parts_of(qd)
    return joint_value(
        [summed([law.torque(link, x, v) for law in own]) for x, v in zip(positions, rates, strict=True)]
    )


def _along_axes(link: MovingLink, q: JointValue) -> tuple[Scalar, ...]:
    """The joint's position along each of its axes: for a ball joint its rotation vector, as in MuJoCo."""
    if not link.free:
        return (single(q),)
    neutral = [0.0] * (len(parts_of(q)) - 1) + [1.0]
    return parts_of(manifold.difference(link, joint_value(neutral), q))


def _slopes(
    links: Mechanism,
    laws: Sequence[Law],
    slope: Callable[[Law, MovingLink, Any, Scalar], Scalar],
    q: Sequence[JointValue],
    qd: Sequence[JointValue],
) -> list[Scalar]:
    slopes: list[Scalar] = []
    for link, own, rates in zip(links, q, qd, strict=True):
        present = [law for law in laws if not law.absent(link)]
        positions: Sequence[Any] = (
            _along_axes(link, own) if any(law.uses_position for law in present) else [None] * len(link.axes)
        )
        for x, v in zip(positions, parts_of(rates), strict=True):
            slopes.append(summed([slope(law, link, x, v) for law in present]))
    return slopes


def on_diagonal(M: list[list[Scalar]], values: Sequence[Scalar]) -> list[list[Scalar]]:
    """The matrix with more on its diagonal."""
    return [
        [entry + values[i] if i == j else entry for j, entry in enumerate(row)] for i, row in enumerate(M)
    ]
