"""One step in time of a robot that touches: Moreau and Jean's scheme, with the laws in the velocities after the step.

With M, the net torques r = τ − b(q, q̇) and the rows J of all candidates, stops, dry friction and constraints at the
begin of a step h,

    M (v⁺ − v) = h r + Jᵀ p,        q⁺ = q ⊕ h v⁺                                                                   (1)
    w = J v⁺ + bias = G p + c,      G = J M⁻¹ Jᵀ,      c = J (v + h M⁻¹ r) + bias                                    (2)

and p, w keep the laws of ``solver`` (J. J. Moreau, "Unilateral contact and dry friction in finite freedom dynamics",
1988; M. Jean, "The non-smooth contact dynamics method", 1999). They hold at the end of the step, so friction that can
hold leaves velocities of zero, and a body at rest stays where it is. The bias of a normal row with gap g is

    g/h                     g > 0: what is still open may close, not more: the gap stays positive to first order
    max(β g/h, −s)          g < 0: what is inside comes out, by the part β of its depth a step, not faster than s
    e v_n                   where v_n < 0 closes the gap within the step and the restitution is e > 0                (3)

Several candidates of the same two bodies recover together: g in (3) is the mean m of those that are within 2 s₀ h of
the lowest one, and of the rest g − m what is above s₀ h in magnitude counts. Between −s₀ h and s₀ h the mean closes by
the part β, too. A face that is held would otherwise have to turn to close gaps of nanometres, which friction on another
face forbids: a grip rocks on its corners then. s₀ is ``RESTING_SPEED``, so a face may stay tilted by 4 µm for h = 2 ms.

A soft contact with stiffness k and damping d presses with −k g⁺ − d w_n, at the end of the step as well:

    w_n + R p_n + k g/(k h + d) = 0,      R = 1/(h (k h + d))                                                        (4)

Viscous friction of joints acts with the velocities after the step, too, however strong it is: its slopes D take the
matrix M + h D to the place of M in (1), as r(v⁺) = r − D (v⁺ − v).

A stop of a joint or a tendon is the same law in one row. Dry friction of a joint holds it within ± h F
(``joint_laws``).

G without M⁻¹: with M = Lᵀ D L along the branches of the tree and Y = J L⁻¹, G = Y D⁻¹ Yᵀ, and L⁻¹ is applied once
more, at the end, to everything together: v⁺ = v + L⁻¹ D⁻¹ (L⁻ᵀ h r + Yᵀ p). Rows of constraints J_c (loops, welds) are
eliminated first: with G_c, B = Y D⁻¹ Y_cᵀ they take G − B G_c⁻¹ Bᵀ and c − B G_c⁻¹ (c_c − wanted). Without G they are
stiff measurements (``holding``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from linkwise.algorithms import coupling, dense, equation, factorised, joint_terms, manifold
from linkwise.algorithms.constrained import constraints
from linkwise.algorithms.constrained.constraints import Held
from linkwise.algorithms.contact import candidates as geometry
from linkwise.algorithms.contact import carried, filtered, holding, lines, recovery, solver, spinning
from linkwise.algorithms.contact.candidates import Candidate
from linkwise.algorithms.contact.filtered import Schedule, Touching, Turning
from linkwise.algorithms.contact.lines import TendonRow
from linkwise.algorithms.contact.patches import FEWEST, Patch
from linkwise.algorithms.contact.point import JointRow, ends_of, selected, where_known
from linkwise.algorithms.contact.solver import Effort, Problem
from linkwise.algorithms.contact.world_axes import VelocityAxes
from linkwise.algorithms.kinematics import Pose
from linkwise.joint_laws import is_zero
from linkwise.model.axes import JointValue, joint_value, parts_of
from linkwise.model.contacts import stops_of
from linkwise.model.mechanism import Mechanism, flat, quaternion_rotation
from linkwise.scalar import Scalar, like, like_all, maximum, sqrt, stage, where
from linkwise.spatial import Vector

AT_REST = 1e-6
"""[rad/s or m/s]: joints that are slower start without friction, whose direction would be that of round-off."""
Rows = list[list[Scalar]]
Apply = Callable[[Sequence[Scalar]], list[Scalar]]


@dataclass(frozen=True)
class StopRow:
    """A joint that stops at the ends of its range: its velocity coordinate, its position number, the range."""

    coordinate: int
    position: int
    lower: float
    upper: float
    restitution: float


@dataclass(frozen=True, eq=False)
class Scene:
    """What may touch what, and what is held."""

    candidates: Sequence[Candidate]
    stops: Sequence[StopRow] = ()
    tendons: Sequence[TendonRow] = field(default=(), kw_only=True)
    held: Sequence[Held] = ()
    friction: bool = True
    """Whether joints have friction."""
    model: Any = None
    """The robot whose states may be drawn at random, see ``measured``."""


@dataclass(frozen=True, eq=False)
class Given:
    """Numbers of one state that may differ from state to state: step h [s], μ and ground height of every candidate,
    impulses to start from (N·s, three per candidate). A μ below zero, which would push along the motion, counts as
    zero."""

    h: Scalar
    friction: Sequence[Scalar]
    height: Sequence[Scalar]
    start: Sequence[Scalar] | None = None
    smoothing: Scalar = 0.0
    """Of derivatives [m/s], see ``derivatives``."""

    def __post_init__(self):
        possible = [mu if isinstance(mu, float) else where(mu < 0.0, 0.0, mu) for mu in self.friction]
        object.__setattr__(self, "friction", possible)


@dataclass(frozen=True, eq=False)
class Stepped:
    """A step: positions and velocities after it, impulses [N·s] and gaps [m] of the candidates, their velocities after
    the step [m/s], and the residual relative to the largest velocity that contacts would have without impulses."""

    q: list[Scalar]
    qd: list[Scalar]
    impulses: Rows
    gaps: list[Scalar]
    velocities: Rows
    residual: Scalar


def scene_of(model: Any, friction: bool = True, held: Sequence[Held] | None = None) -> Scene:
    """What a model says about contact; ``held``: its constraints, where their targets are inputs."""
    places: dict[str, tuple[int, int, Any]] = {}
    coordinate = position = 0
    for joint in model.coordinate_joints:
        places[joint.name] = (coordinate, position, joint)
        coordinate, position = coordinate + joint.dof, position + joint.nq
    stops = [
        StopRow(at, place, float(joint.limits.lower), float(joint.limits.upper), stop.restitution)
        for stop in stops_of(model.contact_parts)
        for at, place, joint in [places[stop.joint]]
    ]
    held = constraints.prepared(model) if held is None else held
    tendons = lines.prepared(model)
    return Scene(geometry.prepared(model), stops, held, friction, model, tendons=tendons)


def step(
    links: Mechanism,
    q: Sequence[JointValue],
    qd: Sequence[JointValue],
    tau: Sequence[JointValue],
    scene: Scene,
    given: Given,
    effort: Effort,
    solve: Callable[..., Any] = solver.solve,
) -> Stepped:
    """(1)–(4). ``solve`` takes the place of the solver where only the problem is of interest."""
    h, v = given.h, _in_axes_of_the_start(links, coupling.leaders(links, qd), given.h)
    own_inertia, own_torques = _inertia_and_torques(links, q, qd, tau, scene.friction, h)
    axes = VelocityAxes.of(links, q, in_world=effort.filtered is not None)
    free, v = (axes.inertia(own_inertia), axes.vector(own_torques)), axes.vector(v)
    measured = scene.held if effort.filtered is not None else ()
    M, torques = holding.added(links, q, v, measured, axes, free, h)
    mobility = _Mobility.of(links, M, bool(measured))
    touches = geometry.touches(links, q, scene.candidates, given.height, axes.frames)
    rows, contacts = [row for each in touches for row in each.rows], len(touches)
    joint_rows, joints = _joint_rows(links, q, qd, scene, h)
    lines.add(scene.tendons, links, q, axes.frames, v, h, joint_rows, joints)
    if not (rows or joint_rows):
        raise ValueError("a step with contact needs at least one candidate, stop or joint with dry friction")
    with stage("contact velocities"):
        before = [dense.dot(row, v) for row in [*rows, *joint_rows]]
    bias, compliance = recovery.biases(touches, scene.candidates, before, h)
    lifts = _lifts(links, scene)
    if effort.filtered is not None:
        turning = _turning(links, axes.frames, scene.candidates, touches)
        patches = _patches(links, axes.frames, scene.candidates, touches)
        known = bias[: 3 * contacts], given.friction, joints, joint_rows, compliance
        problem = Touching(M, rows, *known, turning, patches, lifts)
        is_held = bool(scene.held) or links.coupled
        few = carried.reduced(links, axes.frames, scene.candidates, problem, is_held)
        p, after, residual = _filtered(problem, few, mobility, v, torques, given, effort.filtered)
        velocities = problem.velocities(after, biased=False)
    else:
        p, after, velocities, residual = _by_delassus(
            [*rows, *joint_rows],
            before,
            bias,
            compliance,
            mobility,
            v,
            torques,
            lambda pushed, halves: _Reaction.of(links, q, v, scene.held, mobility, pushed, halves, h),
            lambda delassus, c, free, start: solve(
                Problem(delassus, c, given.friction, joints, free, lifts), effort, start, given.smoothing
            ),
            None if given.start is None else [*given.start, *([0.0] * len(joints))],
        )
    new_q, new_qd = _moved(links, q, axes.back(after), h)
    return Stepped(
        new_q,
        new_qd,
        [p[3 * k : 3 * k + 3] for k in range(contacts)],
        [touch.gap for touch in touches],
        [velocities[3 * k : 3 * k + 3] for k in range(contacts)],
        residual,
    )


def _lifts(links: Mechanism, scene: Scene) -> bool:
    """Whether candidates touch the ground alone and floating links carry all of them."""
    return not scene.held and all(
        each.other is None and any(links[k].floating for k in each.axes_of(links))
        for each in scene.candidates
    )


def _inertia_and_torques(
    links: Mechanism,
    q: Sequence[JointValue],
    qd: Sequence[JointValue],
    tau: Sequence[JointValue],
    friction: bool,
    h: Scalar,
) -> tuple[Rows, list[Scalar]]:
    """(M + h D, h r) over the coordinates of the axes that lead."""
    M, net = equation.matrix_and_net_torques(links, q, qd, tau, friction=friction)
    leading = coupling.reduced(links, flat(net), (True,))
    torques = [h * r for r in _with_spin(links, coupling.leaders(links, qd), leading, h)]
    damped = joint_terms.on_diagonal(M, [h * d for d in joint_terms.damping(links, q, qd)]) if friction else M
    return coupling.reduced(links, damped, (True, True)), torques


def _by_delassus(
    rows: Rows,
    before: Sequence[Scalar],
    bias: Sequence[Scalar],
    compliance: Sequence[Scalar],
    mobility: _Mobility,
    v: Sequence[Scalar],
    torques: Sequence[Scalar],
    reaction: Callable[[list[Scalar], Rows], _Reaction | None],
    solve: Callable[
        [Rows, list[Scalar], list[Scalar], list[Scalar] | None], tuple[list[Scalar], list[Scalar]]
    ],
    start: list[Scalar] | None,
) -> tuple[list[Scalar], list[Scalar], list[Scalar], Scalar]:
    """(p, velocities after the step, those of contacts, residual) with the Delassus matrix."""
    pushed = mobility.half(torques)
    with stage("Delassus matrix"):
        halves = [mobility.half(row) for row in rows]
        scaled = [mobility.scaled(half) for half in halves]
        delassus = dense.symmetric_product(halves, scaled)
        free = [b + dense.dot(y, pushed) for b, y in zip(before, scaled, strict=True)]
        held = reaction(pushed, halves)
        if held is not None:
            delassus, free = held.reduced(delassus, free)
    with stage("contact bias"):
        c = [a if is_zero(b) else a + b for a, b in zip(free, bias, strict=True)]
    normals = {3 * k + 2: soft for k, soft in enumerate(compliance)}
    softer = [
        [x + normals[i] if i == j and i in normals else x for j, x in enumerate(row)]
        for i, row in enumerate(delassus)
    ]
    p, residuals = solve(softer, c, free, start)
    with stage("velocities after the step"):
        total = [a + dense.dot(column, p) for a, column in zip(pushed, dense.transposed(halves), strict=True)]
        if held is not None:
            total = held.added(total, p)
        change = mobility.finish(mobility.scaled(total))
        after = [a + b for a, b in zip(v, change, strict=True)]
        velocities = [
            f + dense.dot(row, p) for f, row in zip(free[: 3 * len(compliance)], delassus, strict=False)
        ]
    return p, after, velocities, _relative(residuals, free)


def _filtered(
    problem: Touching,
    smaller: tuple[Touching, Apply],
    mobility: _Mobility,
    v: Sequence[Scalar],
    torques: Sequence[Scalar],
    given: Given,
    schedule: Schedule,
) -> tuple[list[Scalar], list[Scalar], Scalar]:
    """(p, velocities after the step, residual) by ``filtered``, in the coordinates of the smaller problem."""
    relative, restricted = smaller

    def moved(impulses: Sequence[Scalar]) -> list[Scalar]:
        change = mobility.finish(mobility.scaled(mobility.half(impulses)))
        return [a + b for a, b in zip(v, change, strict=True)]

    def moved_by(p: Sequence[Scalar]) -> list[Scalar]:
        return moved([a + b for a, b in zip(torques, problem.pushed(p), strict=True)])

    with stage("velocities without contact"):
        free = moved(torques)
    with stage("contact scales"):
        stiff = _stiffnesses(problem, mobility)
        mean = (1.0 / len(stiff)) * sum(stiff[1:], start=stiff[0])
        least = constraints.softening() * mean
    first = None
    if given.start is not None or problem.joints:
        p = [0.0] * len(problem.rows) if given.start is None else list(given.start)
        p += [
            _rubbed(joint, dense.dot(row, v))
            for joint, row in zip(problem.joints, problem.joint_rows, strict=True)
        ]
        p += [0.0] * (len(stiff) - len(p))
        first = p, restricted(moved_by(p))
    exact: Apply | None = (lambda p: restricted(moved_by(p))) if schedule.exact else None
    p = filtered.solve(relative, stiff, least, restricted(free), schedule, first, exact)
    with stage("velocities after the step"):
        p = solver.projected(problem.friction, p)
        for k, each in enumerate(problem.turning):
            x = problem.before_turning + 2 * k
            p[x : x + 2] = solver.on_disk_of(p[x : x + 2], each.coefficient * p[3 * each.contact + 2])

        def wrong(p: Sequence[Scalar]) -> Scalar:
            far = filtered.residuals(problem, stiff, least, list(p), moved_by(p))
            return dense.dot(far, far)

        if mobility.is_held:  # round-off of large impulses on the way may be left: never worse than the start
            start = [0.0] * len(p) if first is None else first[0]
            p = selected(wrong(p) <= wrong(start), p, start)
        p = constant = [like(x, 0.0) for x in p]
        p = like_all(
            p,
            lambda: filtered.changes_of(
                problem, stiff, least, constant, moved_by(constant), free, given.smoothing
            ),
        )
        *p, unknown = where_known([*free, *problem.bias, *ends_of(problem.joints)], [*p, 0.0])
        after = moved_by(p)
    residuals = filtered.residuals(problem, stiff, least, p, after)
    unbiased = problem.velocities(free, biased=False)
    return p, after, like(_relative(residuals, unbiased) + unknown, 0.0)


def _rubbed(joint: JointRow, rate: Scalar) -> Scalar:
    """The impulse of dry friction if the joint goes on moving as it does."""
    if joint.forward is None or joint.backward is None:
        return 0.0
    return where(rate > AT_REST, -joint.forward, where(rate < -AT_REST, joint.backward, 0.0))


def _stiffnesses(problem: Touching, mobility: _Mobility) -> list[Scalar]:
    """G_kk of contacts, the mean of both for their tangents, and of stops; for joints that only rub and are not held
    1/D_k, which is not above it: what moves them while all joints inside of them stand still."""

    def own(row: Sequence[Scalar]) -> Scalar:
        half = mobility.half(row)
        return dense.dot(half, mobility.scaled(half))

    stiff: list[Scalar] = [0.0] * len(problem.rows)
    for k in problem.alone:
        stiff[3 * k : 3 * k + 3] = [own(row) for row in problem.rows[3 * k : 3 * k + 3]]
    for patch in problem.patches:
        halves = [mobility.half(row) for row in patch.rows]
        scaled = [mobility.scaled(half) for half in halves]
        for k, diagonal in zip(patch.contacts, patch.diagonals(halves, scaled), strict=True):
            stiff[3 * k : 3 * k + 3] = diagonal
    for k in range(0, len(stiff), 3):
        stiff[k] = stiff[k + 1] = 0.5 * (stiff[k] + stiff[k + 1])
    for row, joint in zip(problem.joint_rows, problem.joints, strict=True):
        stops = joint.lower is not None or joint.upper is not None
        places = [k for k, x in enumerate(row) if not is_zero(x)]
        simple = len(places) == 1 and not (stops or mobility.is_held)
        stiff.append(mobility.inverse[places[0]] if simple else own(row))
    for each in problem.turning:
        x, y = (own(row) for row in each.rows)
        stiff += 2 * [x if is_zero(y) else 0.5 * (x + y)]
    return stiff


def _patches(
    links: Mechanism,
    frames: list[Pose],
    candidates: Sequence[Candidate],
    touches: Sequence[geometry.Touch],
) -> list[Patch]:
    """Links with many points that may touch the ground."""
    members: dict[int, list[int]] = {}
    for k, each in enumerate(candidates):
        if each.other is None and not each.pool:
            members.setdefault(each.body, []).append(k)
    found: list[Patch] = []
    for own in members.values():
        if len(own) < FEWEST:
            continue
        reference = touches[own[0]]
        rows = [*reference.rows, *geometry.turning_rows(links, frames, candidates[own[0]], reference)]
        found.append(Patch(own, rows, [touches[k].point - reference.point for k in own]))
    return found


def _turning(
    links: Mechanism,
    frames: list[Pose],
    candidates: Sequence[Candidate],
    touches: Sequence[geometry.Touch],
) -> list[Turning]:
    """Friction against spinning about the normal, the last axis of a contact, and against rolling about the others."""
    found: list[Turning] = []
    for k, (each, touch) in enumerate(zip(candidates, touches, strict=True)):
        if not (each.torsional_friction or each.rolling_friction):
            continue
        about_x, about_y, about_z = geometry.turning_rows(links, frames, each, touch)
        if each.torsional_friction:
            found.append(Turning(k, each.torsional_friction, [about_z, [0.0] * len(about_z)]))
        if each.rolling_friction:
            found.append(Turning(k, each.rolling_friction, [about_x, about_y]))
    return found


def _relative(residuals: Sequence[Scalar], free: Sequence[Scalar]) -> Scalar:
    """The largest residual relative to the largest velocity without impulses."""
    with stage("residual"):
        size = solver.largest(free)
        return solver.largest(residuals) / where(size > 0.0, size, 1.0)


# -- rows of joints ---------------------------------------------------------------------------------------------------


def _joint_rows(
    links: Mechanism, q: Sequence[JointValue], qd: Sequence[JointValue], scene: Scene, h: Scalar
) -> tuple[Rows, list[JointRow]]:
    """One row for every joint that stops or has dry friction, over the coordinates of those that lead."""
    found: dict[int, tuple[list[Scalar], JointRow]] = {}
    if scene.friction:
        joint_terms.check_no_load_friction(links)
        rates = flat(qd)
        for axis, (k, _) in enumerate(links.coordinates()):
            limits = joint_terms.dry_friction_limits(links[k], rates[axis])
            if all(is_zero(limit) for limit in limits):
                continue
            row = coupling.reduced(links, [1.0 if i == axis else 0.0 for i in range(len(rates))], (True,))
            speed = joint_terms.direction_speed(links[k])
            forward, backward = (h * limit for limit in limits)
            yielding: Scalar = 0.0
            if speed is not None:  # F v/√(v² + s²), with the root of the speed before the step
                yielding = sqrt(rates[axis] * rates[axis] + speed * speed) / maximum(forward, backward)
            found[axis] = row, JointRow(None, None, forward, backward, yielding)
    size = sum(len(link.axes) for link in links if link.follows is None)
    own_axes, positions = [own for own, _ in coupling.leading(links)], coupling.leaders(links, q)
    for stop in scene.stops:
        axis = own_axes[stop.coordinate]
        unit: list[Scalar] = [1.0 if i == stop.coordinate else 0.0 for i in range(size)]
        row, rub = found.get(axis, (unit, JointRow()))
        lower, upper = recovery.ends(stop, positions[stop.position], flat(qd)[axis], h)
        found[axis] = row, JointRow(lower, upper, rub.forward, rub.backward, rub.compliance)
    ordered = [found[axis] for axis in sorted(found)]
    return [row for row, _ in ordered], [joint for _, joint in ordered]


# -- M and constraints ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Mobility:
    """M⁻¹ in two halves: M⁻¹ x = finish(scaled(half(x)))."""

    half: Apply
    finish: Apply
    inverse: Sequence[Scalar]
    is_held: bool
    """Whether M has the information of constraints."""

    @classmethod
    def of(cls, links: Mechanism, M: Rows, is_held: bool = False) -> _Mobility:
        inner = factorised.filled(M) if links.coupled or is_held else None
        L, inverse = factorised.factorise(links, M, inner)
        return cls(
            lambda row: factorised.inward(links, L, row, inner),
            lambda row: factorised.outward(links, L, row, inner),
            inverse,
            is_held,
        )

    def scaled(self, row: Sequence[Scalar]) -> list[Scalar]:
        return [x if is_zero(x) else x * d for x, d in zip(row, self.inverse, strict=True)]


@dataclass(frozen=True, eq=False)
class _Reaction:
    """Constraints that are eliminated: halves Y_c of their rows, B, G_c⁻¹ Bᵀ (as rows) and G_c⁻¹ (wanted − c_c)."""

    halves: Rows
    crossed: Rows
    solved: Rows
    alone: list[Scalar]

    @classmethod
    def of(
        cls,
        links: Mechanism,
        q: Sequence[JointValue],
        v: Sequence[Scalar],
        held: Sequence[Held],
        mobility: _Mobility,
        pushed: Sequence[Scalar],
        others: Rows,
        h: Scalar,
    ) -> _Reaction | None:
        if not held:
            return None
        J = constraints.jacobian(links, q, held)
        halves = [mobility.half(row) for row in J]
        scaled = [mobility.scaled(half) for half in halves]
        # a soft row J a + R λ = wanted, over the step: J (v⁺ − v) + R p = h wanted
        G = constraints.softened(dense.symmetric_product(halves, scaled), constraints.compliances(held))
        back = [-(recovery.RECOVERED / h) * error for error in constraints.errors(links, q, held)]
        missing = [
            w - dense.dot(row, v) - dense.dot(y, pushed) for w, row, y in zip(back, J, scaled, strict=True)
        ]
        crossed = [[dense.dot(half, y) for y in scaled] for half in others]
        factors = constraints.factorised(G, held, constraints.closure_floor(links, q, held, J))
        solved = [factors.solved(row) for row in crossed]
        return cls(halves, crossed, solved, factors.solved(missing))

    def reduced(self, G: Rows, free: Sequence[Scalar]) -> tuple[Rows, list[Scalar]]:
        """(G − B G_c⁻¹ Bᵀ, c + B G_c⁻¹ (wanted − c_c))."""
        less = dense.symmetric_product(self.crossed, self.solved)
        new = [[g - x for g, x in zip(a, b, strict=True)] for a, b in zip(G, less, strict=True)]
        return new, [f + dense.dot(row, self.alone) for f, row in zip(free, self.crossed, strict=True)]

    def added(self, total: Sequence[Scalar], p: Sequence[Scalar]) -> list[Scalar]:
        """L⁻ᵀ h r + Yᵀ p with the impulses G_c⁻¹ (wanted − c_c − Bᵀ p) of the constraints."""
        columns = dense.transposed(self.solved)
        own = [a - dense.dot(column, p) for a, column in zip(self.alone, columns, strict=True)]
        return [
            t + dense.dot(column, own) for t, column in zip(total, dense.transposed(self.halves), strict=True)
        ]


# -- positions --------------------------------------------------------------------------------------------------------


def _in_axes_of_the_start(links: Mechanism, qd: Sequence[Scalar], h: Scalar) -> list[Scalar]:
    """Velocities v + h ω × v of floating joints: the axes of the link turn in the step, but its momentum does not.

    M v̇ + b = τ is about components in turning axes, v̇ = a − ω × v. In the axes that the link has at the begin, v⁺ − v
    is h a, and a body that nothing touches keeps its velocity to the last bit.
    """
    v, at = list(qd), 0
    for link in links:
        if link.follows is not None:
            continue
        if link.floating:
            turning, moving = Vector(*v[at : at + 3]), Vector(*v[at + 3 : at + 6])
            v[at + 3 : at + 6] = [*(moving + h * turning.cross(moving))]
        at += len(link.axes)
    return v


def _with_spin(links: Mechanism, qd: Sequence[Scalar], net: Sequence[Scalar], h: Scalar) -> list[Scalar]:
    """Net torques, with gyroscopic moments of the whole step for bodies that move by themselves, see ``spinning``."""
    found, at = list(net), 0
    for link in links:
        if link.follows is not None:
            continue
        if link.floating and not link.children:
            more = spinning.correction(link, qd[at : at + 6], h)
            found[at : at + 3] = [a + b for a, b in zip(found[at : at + 3], more, strict=True)]
        at += len(link.axes)
    return found


def _moved(
    links: Mechanism, q: Sequence[JointValue], v: Sequence[Scalar], h: Scalar
) -> tuple[list[Scalar], list[Scalar]]:
    """(q ⊕ h v, v in the axes of the end): floating links turn by h ω and move along straight lines."""
    new_q: list[Scalar] = []
    new_v: list[Scalar] = []
    at = 0
    for link, own in zip(links, q, strict=True):
        if link.follows is not None:
            continue
        rates = list(v[at : at + len(link.axes)])
        at += len(link.axes)
        if not link.floating:
            new_q += parts_of(manifold.integrated(link, own, joint_value([h * rate for rate in rates])))
            new_v += rates
            continue
        numbers, zero = parts_of(own), [0.0, 0.0, 0.0]
        turned = parts_of(
            manifold.integrated(link, own, joint_value([*(h * rate for rate in rates[:3]), *zero]))
        )
        along = quaternion_rotation(numbers[-4:]) @ Vector(*rates[3:])
        new_q += [*(Vector(*numbers[:3]) + h * along), *turned[-4:]]
        new_v += [*rates[:3], *(quaternion_rotation(turned[-4:]).transposed() @ along)]
    return new_q, new_v
