"""Forward dynamics by conjugate gradients, without ever forming the mass matrix.

A. Fijany and R. Scheid, "Efficient conjugate gradient algorithms for computation of the manipulator forward
dynamics": classical (5)–(9) and preconditioned by the diagonal of the mass matrix (10)–(15). All vectors are projected
once on a fixed frame, the tip's for a chain and the base's for a tree, so a product A·p is Newton–Euler without
rotations (28)–(32). The diagonal is that of composite bodies (64)–(67).

The paper stops at a small residual. A residual that is small beside the torques may belong to a large error of q̈:
gravity is part of the torques, and light links turn small torques into large accelerations. So the iteration is
restarted from the true residual (iterative refinement) until the corrections, or a bound from the residual, show that
the error of q̈ is within the tolerance. Rounding of the bias b is common to all methods and not part of it.

Errors of the paper corrected: the residual starts at τ − b, not at 0; (33) runs from n down to 1; (67) reads a_ii =
z_i·K_i z_i; k is the second and h the first moment; (66) ends in the capital K. For a prismatic joint a_ii is the
composite mass.

A joint may have several axes, each a column of the link's rotation (34). Where joints follow others (see ``coupling``)
the iteration runs over the leaders' coordinates: A = SᵀMS, preconditioned by Sᵀ diag(M) S.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from linkwise.algorithms import coupling, dense
from linkwise.algorithms.joint_terms import subtracted
from linkwise.algorithms.singularity import largest_inertias, own_pivots
from linkwise.model.axes import Axis, JointValue, joint_value, parts_of
from linkwise.model.mechanism import Mechanism, MovingLink, Turned, flat
from linkwise.scalar import Condition, Scalar, all_of, stage, where, while_loop
from linkwise.spatial import Matrix, RigidInertia, Spatial, Vector, zero_rigid, zero_spatial, zero_vector

DEFAULT_TOLERANCE = {"float64": 1e-9, "float32": 1e-3}  # of the error of q̈, relative to its largest component

# The first cycle, which has no norm of A yet, ends at this share of the tolerance relative to ‖τ − b‖. A warm start
# with such a residual is returned as it is.
FIRST_MARGIN = 1e-5

# Least r·z that a cycle aims for. Below, products of small residuals and inertias would underflow.
SMALLEST = {"float64": 1e-200, "float32": 1e-26}


@dataclass(slots=True, eq=False)
class Projected:
    """A link in the fixed frame: its joint's axes, lever P from the parent's origin, and the moments m, h, k."""

    axes: list[Vector]
    lever: Vector
    inertia: RigidInertia


@dataclass(slots=True, eq=False)
class System:
    """A q̈ = Γ: the product with A, the right-hand side, and the diagonal of A where it is needed."""

    product: Callable[[Sequence[Scalar]], list[Scalar]]
    right_side: list[Scalar]
    diagonal: list[Scalar] | None


@dataclass(frozen=True)
class Stop:
    """When a cycle of iterations and the whole iteration end."""

    tolerance: float  # of the error of q̈, relative to its largest component
    smallest: float  # least r·z that a cycle aims for
    flexibility: float  # about the largest diagonal entry of A⁻¹ in any configuration
    margin: float  # largest error in the norm of A that leaves every component of q̈ an error up to 1; both relative

    @classmethod
    def of(cls, links: Mechanism, dtype: str, tolerance: float | None) -> Stop:
        """For a robot: heavy links dominate the norm of A, so light ones set how small it must be."""
        links, known = links.original, list[float]()
        if all(isinstance(number, float) for link in links for number in _numbers(link)):
            known = [pivot for link in links for pivot in own_pivots(link) if pivot > 0.0]
        flexibility = 1.0 / min(known) if known else 0.0
        largest = max((max(sizes) for sizes in largest_inertias(links)), default=0.0) if known else 0.0
        spread = len(links) * flexibility * largest
        tolerance = DEFAULT_TOLERANCE[dtype] if tolerance is None else tolerance
        return cls(tolerance, SMALLEST[dtype], flexibility, min(1e-3, 1.0 / max(spread, 1.0) ** 0.5))

    def first(self, rz: Scalar) -> Scalar:
        """The r·z at which the first cycle ends, from that of x = 0."""
        return (FIRST_MARGIN * self.tolerance) ** 2 * rz

    def goal(self, rz: Scalar) -> Scalar:
        """The r·z that proves the tolerance, from that which allows an error as large as x (in the norm of A)."""
        return (self.margin * self.tolerance) ** 2 * rz


@dataclass(slots=True, eq=False)
class Progress:
    """State of the iteration."""

    x: list[Scalar]  # q̈ so far
    r: list[Scalar]  # residual Γ − A x: of the recursion (9), or computed anew by a refresh
    p: list[Scalar]  # direction
    rz: Scalar  # r·z, z the (preconditioned) residual
    goal: Scalar  # rz at which this cycle of iterations ends
    stiffness: Scalar  # largest α so far: about the inverse of A's smallest eigenvalue; infinite at first
    change: Scalar  # largest component of all steps of this cycle
    error: Scalar  # the same of the cycle before, relative to max|x|; infinite in the first
    pending: Scalar  # 1, or 0 at the end
    count: Scalar  # products A·p so far

    def __iter__(self) -> Iterator[Scalar]:
        for field in fields(self):
            value = getattr(self, field.name)
            yield from value if isinstance(value, list) else (value,)

    @classmethod
    def of(cls, state: Sequence[Scalar]) -> Progress:
        n = (len(state) - 7) // 3
        x, r, p = (list(state[k * n : (k + 1) * n]) for k in range(3))
        return cls(x, r, p, *state[3 * n :])


def forward_dynamics(
    links: Mechanism,
    q: Sequence[JointValue],
    qd: Sequence[JointValue],
    tau: Sequence[JointValue],
    wrenches: Sequence[Spatial] | None = None,
    *,
    preconditioned: bool = False,
    tolerance: float | None = None,
    limit: int | None = None,
    start: Sequence[Scalar] | None = None,
    dtype: str = "float64",
) -> tuple[list[Scalar], Scalar, Scalar]:
    """(q̈, its estimated relative error, iterations) for torques from which friction has been taken.

    Stops when the estimated error max|δq̈|/max|q̈| is within the tolerance or after ``limit`` iterations (10 n); the
    caller judges the error. Where that is not a number (a NaN given, a singular matrix met) so is q̈.
    """
    if len(links) == 0:
        return [], 0.0, 0.0
    system = assemble(links, q, qd, tau, wrenches, preconditioned)
    limit = default_limit(len(system.right_side)) if limit is None else limit
    inverse = _inverse(system.diagonal)
    stop = Stop.of(links, dtype, tolerance)
    begin = _begin(system, inverse, stop, start)

    def active(*state: Scalar) -> Condition:
        progress = Progress.of(state)
        return all_of(progress.pending > 0.0, progress.count < limit)

    def body(*state: Scalar) -> tuple[Scalar, ...]:
        return tuple(advance(system, inverse, stop, Progress.of(state)))

    with stage("iteration"):
        end = Progress.of(while_loop(active, body, tuple(begin)))
    error = estimated_error(stop, end)
    known = all_of(error <= math.inf, end.rz < math.inf)
    return [where(known, x, math.nan) for x in end.x], where(known, error, math.nan), end.count


def default_limit(n: int) -> int:
    """Iterations after which a robot of n coordinates counts as not converged."""
    return 10 * n


def advance(system: System, inverse: list[Scalar] | None, stop: Stop, now: Progress) -> Progress:
    """One product A·p and what it is for: an iteration, or at the end of a cycle a refresh.

    A refresh takes the product with x in place of p: the true residual Γ − A x, from which the next cycle computes a
    correction (iterative refinement). Both share their arithmetic, so a refresh costs no further operations.
    """
    iterating = all_of(now.rz > now.goal, now.rz > stop.smallest)
    direction = [where(iterating, p, x) for p, x in zip(now.p, now.x, strict=True)]
    product = system.product(direction)
    along = dense.dot(direction, product)
    # (7), (13); nothing but a singular A gives zero. A refresh: the steps of the cycle relative to x
    size = _largest(now.x)
    below = where(iterating, along, where(size > 0.0, size, 1.0))
    alpha = where(iterating, now.rz, now.change) / where(below > 0.0, below, math.nan)
    steps = [alpha * p_i for p_i in now.p]
    x = [where(iterating, x_i + step, x_i) for x_i, step in zip(now.x, steps, strict=True)]  # (8), (14)
    origin = [where(iterating, r, right) for r, right in zip(now.r, system.right_side, strict=True)]
    factor = where(iterating, alpha, 1.0)
    r = [r_i - factor * Ap for r_i, Ap in zip(origin, product, strict=True)]  # (9), (15)
    z = _scaled(r, inverse)  # (10)
    new = dense.dot(r, z)
    # (5), (11). A refresh: x·A x over the largest α, the r·z that allows an error as large as x
    stiffness = now.stiffness
    if inverse is None:
        stiffness = where(stiffness < stop.flexibility, stop.flexibility, stiffness)
    beta = where(iterating, new, along) / where(iterating, now.rz, stiffness)
    p = [where(iterating, z_i + beta * p_i, z_i) for z_i, p_i in zip(z, now.p, strict=True)]  # (6), (12)
    goal = stop.goal(where(iterating, math.inf, beta))
    step = _largest(steps)
    shallow = (
        now.rz > now.goal
    )  # at a refresh: the cycle ended to avoid underflow, and its steps prove nothing
    unproven = (new > goal) & ((alpha > stop.tolerance) | shallow)
    return Progress(
        x,
        r,
        p,
        new,
        where(iterating, now.goal, goal),
        where(iterating & ((alpha > now.stiffness) | (now.stiffness >= math.inf)), alpha, now.stiffness),
        where(iterating, where(step > now.change, step, now.change), 0.0),
        where(iterating, now.error, where(shallow, math.inf, where(alpha > 0.0, alpha, now.error))),
        where(iterating | unproven, 1.0, 0.0),
        now.count + 1.0,
    )


def estimated_error(stop: Stop, end: Progress) -> Scalar:
    """Estimate of max|δq̈|/max|q̈|: what the true residual proves, or the steps of the last cycle.

    A cycle's steps are the error that it found in the x before it, which is more than what it left.
    """
    proven = all_of(end.change <= 0.0, end.rz <= end.goal)
    size = _largest(end.x)
    partial = end.change / where(size > 0.0, size, 1.0)
    steps = where(partial > end.error, partial, end.error)
    return where(all_of(proven, stop.tolerance < steps), stop.tolerance, steps)


def history(
    links: Mechanism,
    q: Sequence[JointValue],
    qd: Sequence[JointValue],
    tau: Sequence[JointValue],
    wrenches: Sequence[Spatial] | None = None,
    *,
    preconditioned: bool = False,
    tolerance: float | None = None,
    limit: int | None = None,
    start: Sequence[Scalar] | None = None,
) -> tuple[list[float], list[float], float]:
    """(q̈, ‖r‖ relative to ‖τ − b‖ after every iteration, the start first; estimated error), for one state of floats."""
    if len(links) == 0:
        return [], [0.0], 0.0
    system = assemble(links, q, qd, tau, wrenches, preconditioned)
    n = len(system.right_side)
    limit = default_limit(n) if limit is None else limit
    inverse = _inverse(system.diagonal)
    stop = Stop.of(links, "float64", tolerance)
    now = _begin(system, inverse, stop, start)
    scale = _squared(system.right_side) or 1.0
    residuals = [(_squared(now.r) / scale) ** 0.5]
    while now.pending > 0.0 and now.count < limit:
        now = advance(system, inverse, stop, now)
        residuals.append((_squared(now.r) / scale) ** 0.5)
    error: Any = estimated_error(stop, now)
    x: list[Any] = list(now.x) if error <= math.inf and now.rz < math.inf else [math.nan] * n
    return x, residuals, error


def assemble(
    links: Mechanism,
    q: Sequence[JointValue],
    qd: Sequence[JointValue],
    tau: Sequence[JointValue],
    wrenches: Sequence[Spatial] | None,
    preconditioned: bool,
) -> System:
    """Project the robot on the fixed frame (33)–(37), take the bias off the torques (38)–(47).

    Everything that is iterated is a flat list over the coordinates of the joints that lead.
    """
    with stage("joint turns"):
        turned = links.turned(q)
    with stage("projection"):
        rotations, gravity = _rotations(links, turned)
        projected = links.each(
            lambda link, turned, R: _project(link, turned, R, rotations[link.parent]), turned, rotations[:-1]
        )
    with stage("bias"):
        b = _bias(links, projected, rotations, qd, gravity, wrenches)
        right = _reduced(links, subtracted(links, tau, b))
    diagonal = None
    if preconditioned:
        with stage("diagonal"):
            diagonal = _reduced_diagonal(links, _diagonal(links, projected))

    def product(p: Sequence[Scalar]) -> list[Scalar]:
        return _reduced(links, _product(links, projected, coupling.expanded(links, p)))

    return System(product, right, diagonal)


def _reduced(links: Mechanism, torques: Sequence[JointValue]) -> list[Scalar]:
    """Sᵀτ of one quantity per link, as a flat list."""
    return coupling.reduced(links, flat(torques), (True,))


def _reduced_diagonal(links: Mechanism, diagonal: Sequence[JointValue]) -> list[Scalar]:
    """The diagonal of Sᵀ diag(M) S."""
    full = flat(diagonal)
    if not links.coupled:
        return full
    return [
        sum((ratio * ratio * full[j] for j, ratio in followers), start=full[own])
        for own, followers in coupling.leading(links)
    ]


# -- projection -------------------------------------------------------------------------------------------------------


def _rotations(links: Mechanism, turned: Sequence[Turned]) -> tuple[list[Matrix], Vector]:
    """(33): the rotation of every link's axes into the fixed frame's (the base's last), and gravity there."""
    identity = Matrix(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    if any(link.parent != link.index - 1 for link in links):  # a tree: the base's axes
        rotations = links.outward(_rotate_columns, identity, turned)
        return [*rotations, identity], links.gravity
    rotations, into_fixed = [identity], identity
    for link in reversed(links):
        # ᶠR of the parent = ᶠR of the link · (link's axes from the parent's)
        joint = link.placed(turned[link.index])
        columns = [joint.outward(Vector(*e)) for e in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))]
        into_fixed = into_fixed.times(_from_columns(columns))
        rotations.insert(0, into_fixed)
    base = rotations.pop(0)
    return [*rotations, base], base @ links.gravity


def _rotate_columns(link: MovingLink, R: Matrix, turned: Turned) -> Matrix:
    """ᶠR of the link = ᶠR of the parent · (parent's axes from the link's)."""
    joint = link.placed(turned)
    columns = [joint.inward(Vector(*e)) for e in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))]
    return R.times(_from_columns(columns))


def _from_columns(columns: Sequence[Vector]) -> Matrix:
    return Matrix(*(scalar for row in zip(*columns, strict=True) for scalar in row))


def _project(link: MovingLink, turned: Turned, R: Matrix, parent: Matrix) -> Projected:
    """(34)–(37), with the moments k and h of (28)–(31)."""
    m, h, I = link.inertia
    k = R.times(I.matrix()).times(R.transposed())
    moments = RigidInertia(m, R @ h, type(I)(k.xx, k.xy, k.xz, k.yy, k.yz, k.zz))
    columns = R.transposed()
    axes = [Vector(*list(columns)[3 * axis.k : 3 * axis.k + 3]) for axis in link.axes]
    return Projected(axes, parent @ link.placed(turned).lever, moments)


# -- products ---------------------------------------------------------------------------------------------------------


def _product(links: Mechanism, projected: Sequence[Projected], p: Sequence[JointValue]) -> list[JointValue]:
    """(28)–(32): A·p, that is Newton–Euler with the accelerations p and nothing else."""

    def accelerate(link: MovingLink, parent: Spatial, body: Projected, p: JointValue) -> Spatial:
        angular, linear = parent.angular, parent.linear + parent.angular.cross(body.lever)
        for axis, e, p_k in zip(link.axes, body.axes, parts_of(p), strict=True):
            if axis.turns:
                angular = angular + p_k * e
            if axis.screws:
                linear = linear + (axis.pitch * p_k) * e
            elif not axis.turns:
                linear = linear + p_k * e
        return Spatial(angular, linear)

    accelerations = links.outward(accelerate, zero_spatial(), projected, p)
    loads = links.each(lambda link, body, a: body.inertia @ a, projected, accelerations)
    torques = _gather(links, projected, loads)
    return links.each(_with_rotor, torques, p)


def _with_rotor(link: MovingLink, torque: Any, p: Any) -> JointValue:
    return torque + link.rotor_inertia * p


def _gather(links: Mechanism, projected: Sequence[Projected], loads: Sequence[Spatial]) -> list[JointValue]:
    """(30)–(32): forces inward; the lever takes them to the parent's origin."""

    def step(link: MovingLink, received: Spatial, body: Projected, load: Spatial):
        x = received + load
        felt = [_felt(axis, e, x) for axis, e in zip(link.axes, body.axes, strict=True)]
        return joint_value(felt), Spatial(x.moment + body.lever.cross(x.force), x.force)

    return links.inward(step, zero_spatial(), projected, loads)


def _felt(axis: Axis, e: Vector, x: Spatial) -> Scalar:
    """The component along an axis e of a force about a point of it."""
    if not axis.turns:
        return e.dot(x.force)
    return e.dot(x.moment) + axis.pitch * e.dot(x.force) if axis.screws else e.dot(x.moment)


Motion = tuple[Vector, Vector, Vector]
"""Angular velocity, angular acceleration and linear acceleration of a link."""


def _bias(
    links: Mechanism,
    projected: Sequence[Projected],
    rotations: Sequence[Matrix],
    qd: Sequence[JointValue],
    gravity: Vector,
    wrenches: Sequence[Spatial] | None,
) -> list[JointValue]:
    """(38)–(46): the torques at zero joint acceleration."""

    def move(link: MovingLink, parent: Motion, body: Projected, qd: JointValue) -> Motion:
        w, wd, vd = parent
        vd = vd + wd.cross(body.lever) + w.cross(w.cross(body.lever))
        turning, sliding = zero_vector(), zero_vector()  # ω_J and v_J, see ``MovingLink.bias``
        for axis, e, rate in zip(link.axes, body.axes, parts_of(qd), strict=True):
            if axis.turns:
                turning = turning + rate * e
            if axis.screws:
                sliding = sliding + (axis.pitch * rate) * e
            elif not axis.turns:
                sliding = sliding + rate * e
        if link.slides:
            vd = vd + ((w + (w + turning)).cross(sliding) if link.free else 2.0 * w.cross(sliding))
        if link.turns:
            return w + turning, wd + w.cross(turning), vd
        return w, wd, vd

    moving = links.outward(move, (zero_vector(), zero_vector(), -gravity), projected, qd)

    def load(link: MovingLink, body: Projected, moving: Motion) -> Spatial:
        w, wd, vd = moving
        m, h, k = body.inertia
        force = m * vd + wd.cross(h) + w.cross(w.cross(h))
        return Spatial(k @ wd + w.cross(k @ w) + h.cross(vd), force)

    loads = links.each(load, projected, moving)
    if wrenches is not None:
        loads = [
            load - Spatial(R @ wrench.moment, R @ wrench.force)
            for load, wrench, R in zip(loads, wrenches, rotations[:-1], strict=True)
        ]
    return _gather(links, projected, loads)


def _diagonal(links: Mechanism, projected: Sequence[Projected]) -> list[JointValue]:
    """(64)–(67): a_ii of the composite body beyond joint i, with its rotor inertia."""

    def step(link: MovingLink, received: RigidInertia, body: Projected):
        composite = received + body.inertia
        own = [
            _axis_inertia(axis, e, composite) + link.rotor_inertia
            for axis, e in zip(link.axes, body.axes, strict=True)
        ]
        return joint_value(own), composite.shifted(body.lever)

    return links.inward(step, zero_rigid(), projected)


def _axis_inertia(axis: Axis, e: Vector, composite: RigidInertia) -> Scalar:
    if not axis.turns:
        return composite.mass
    turning = e.dot(composite.second_moment @ e)
    return turning + axis.pitch * axis.pitch * composite.mass if axis.screws else turning


def _numbers(link: MovingLink) -> tuple[Scalar, ...]:
    m, h, I = link.inertia
    return (m, *h, *I, link.rotor_inertia)


# -- vectors of n -----------------------------------------------------------------------------------------------------


def _begin(
    system: System, inverse: list[Scalar] | None, stop: Stop, start: Sequence[Scalar] | None
) -> Progress:
    """x₀ = 0 and r₀ = Γ, or a warm start with r₀ = Γ − A x₀, returned as it is if its residual shows no error."""
    right = system.right_side
    x, r, z = [0.0 * value for value in right], list(right), _scaled(right, inverse)
    rz = dense.dot(r, z)
    goal = stop.first(rz)
    zero = 0.0 * rz
    unknown = zero + math.inf
    change, error, pending = zero, unknown, zero + 1.0
    if start is not None:
        with stage("warm start"):
            x = [
                where(rz > 0.0, x_i, 0.0) for x_i in start
            ]  # where τ = b there is no scale to judge a start by
            r = [right_i - a for right_i, a in zip(right, system.product(x), strict=True)]
            z = _scaled(r, inverse)
            rz = dense.dot(r, z)
            accepted = rz <= goal
            change = error = where(accepted, 0.0, math.inf)
            pending = where(accepted, 0.0, 1.0)
    return Progress(x, r, z, rz, goal, unknown, change, error, pending, zero)


def _largest(values: Sequence[Scalar]) -> Scalar:
    """The largest absolute value; comparisons and changes of sign alone."""
    sizes = [where(value < 0.0, -value, value) for value in values]
    largest = sizes[0]
    for size in sizes[1:]:
        largest = where(size > largest, size, largest)
    return largest


def _squared(a: Sequence[Any]) -> float:
    """The squared length of a vector of floats."""
    square: Any = dense.dot(a, a)
    return square


def _inverse(diagonal: list[Scalar] | None) -> list[Scalar] | None:
    return None if diagonal is None else [1.0 / where(d > 0.0, d, math.nan) for d in diagonal]


def _scaled(r: Sequence[Scalar], inverse: list[Scalar] | None) -> list[Scalar]:
    return list(r) if inverse is None else [r_i * i for r_i, i in zip(r, inverse, strict=True)]
