"""Forward dynamics by conjugate gradients, without ever forming the mass matrix.

A. Fijany and R. Scheid, "Efficient conjugate gradient algorithms for computation of the manipulator forward
dynamics": classical (5)–(9) and preconditioned by the diagonal of the mass matrix (10)–(15). All vectors are projected
once on a fixed frame, the tip's for a chain and the base's for a tree, so a product A·p is Newton–Euler without
rotations (28)–(32). The diagonal is that of composite bodies (64)–(67).

Slips corrected: the residual starts at τ − b, not at 0; (33) runs from n down to 1; (67) reads a_ii = z_i·K_i z_i; k is
the second and h the first moment; (66) ends in the capital K. For a prismatic joint a_ii is the composite mass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from linkwise.model.mechanism import Mechanism, MovingLink
from linkwise.scalar import Scalar, all_of, stage, where, while_loop
from linkwise.spatial import Matrix, RigidInertia, Spatial, Vector, zero_rigid, zero_spatial, zero_vector

DEFAULT_TOLERANCE = {"float64": 1e-12, "float32": 1e-6}


@dataclass(slots=True, eq=False)
class Projected:
    """A link in the fixed frame: axis z, lever P from the parent's origin, and the moments m, h, k."""

    axis: Vector
    lever: Vector
    inertia: RigidInertia


@dataclass(slots=True, eq=False)
class System:
    """A q̈ = Γ: the product with A, the right-hand side, and the diagonal of A where it is wanted."""

    product: Callable[[Sequence[Scalar]], list[Scalar]]
    right_side: list[Scalar]
    scale: Scalar  # τ·τ + b·b, what the residual is compared with
    diagonal: list[Scalar] | None


def forward_dynamics(
    links: Mechanism,
    q,
    qd,
    tau,
    wrenches=None,
    *,
    preconditioned: bool = False,
    tolerance: float = DEFAULT_TOLERANCE["float64"],
    limit: int | None = None,
    start: Sequence[Scalar] | None = None,
) -> tuple[list[Scalar], Scalar, Scalar]:
    """(q̈, ‖r‖²/(‖τ‖² + ‖b‖²), iterations) for torques from which friction has been taken.

    Stops at ‖r‖ ≤ tolerance·√(‖τ‖² + ‖b‖²) or after ``limit`` iterations (10 n); the caller judges the residual. Where
    that is not a number (a NaN given, a singular matrix met) so is q̈.
    """
    n = len(links)
    if n == 0:
        return [], 0.0, 0.0
    limit = 10 * n if limit is None else limit
    system = assemble(links, q, qd, tau, wrenches, preconditioned)
    x, r = _start(system, start, n)
    inverse = _inverse(system.diagonal)
    z = _scaled(r, inverse)
    scale = where(system.scale > 0.0, system.scale, 1.0)
    state = (*x, *r, *z, _dot(r, z), _dot(r, r), 0.0 * _dot(r, r))

    def active(*state):
        *_, rr, count = state
        return all_of(rr > tolerance * tolerance * scale, count < limit)

    def body(*state):
        x, r, p = state[:n], state[n : 2 * n], state[2 * n : 3 * n]
        rz, _, count = state[3 * n :]
        x, r, p, rz = iterate(system.product, inverse, x, r, p, rz)
        return (*x, *r, *p, rz, _dot(r, r), count + 1.0)

    with stage("iteration"):
        state = while_loop(active, body, state)
    rr, count = state[3 * n + 1 :]
    known = all_of(rr < math.inf, system.scale < math.inf)
    return [where(known, x, math.nan) for x in state[:n]], where(known, rr / scale, math.nan), count


def iterate(product, inverse, x, r, p, rz):
    """One turn of (10)–(15); with no preconditioner, of (5)–(9)."""
    Ap = product(p)
    pAp = _dot(p, Ap)
    alpha = rz / where(pAp > 0.0, pAp, math.nan)  # (7), (13); nothing but a singular A gives zero
    x = [x_i + alpha * p_i for x_i, p_i in zip(x, p, strict=True)]  # (8), (14)
    r = [r_i - alpha * Ap_i for r_i, Ap_i in zip(r, Ap, strict=True)]  # (9), (15)
    z = _scaled(r, inverse)  # (10)
    new = _dot(r, z)
    beta = new / rz  # (5), (11)
    p = [z_i + beta * p_i for z_i, p_i in zip(z, p, strict=True)]  # (6), (12)
    return x, r, p, new


def history(
    links: Mechanism,
    q,
    qd,
    tau,
    wrenches=None,
    *,
    preconditioned=False,
    tolerance=1e-12,
    limit=None,
    start=None,
) -> tuple[list[float], list[float]]:
    """(q̈, ‖r‖ relative to √(‖τ‖² + ‖b‖²) after every iteration, the start first), for one state of floats."""
    n = len(links)
    if n == 0:
        return [], [0.0]
    limit = 10 * n if limit is None else limit
    system = assemble(links, q, qd, tau, wrenches, preconditioned)
    x, r = _start(system, start, n)
    inverse = _inverse(system.diagonal)
    p = _scaled(r, inverse)
    rz = _dot(r, p)
    scale = system.scale if system.scale > 0 else 1.0
    residuals = [(_dot(r, r) / scale) ** 0.5]
    while residuals[-1] > tolerance and len(residuals) <= limit:
        x, r, p, rz = iterate(system.product, inverse, x, r, p, rz)
        residuals.append((_dot(r, r) / scale) ** 0.5)
    return list(x) if residuals[-1] < math.inf else [math.nan] * n, residuals


def assemble(links: Mechanism, q, qd, tau, wrenches, preconditioned: bool) -> System:
    """Project the robot on the fixed frame (33)–(37), take the bias off the torques (38)–(47)."""
    with stage("joint turns"):
        turned = links.each(lambda link, q: link.turned(q), q)
    with stage("projection"):
        rotations, gravity = _rotations(links, turned)
        projected = links.each(
            lambda link, turned, R: _project(link, turned, R, rotations[link.parent]), turned, rotations[:-1]
        )
    with stage("bias"):
        b = _bias(links, projected, rotations, qd, gravity, wrenches)
        right = [t - b_i for t, b_i in zip(tau, b, strict=True)]
        scale = _dot(tau, tau) + _dot(b, b)
    diagonal = None
    if preconditioned:
        with stage("diagonal"):
            diagonal = _diagonal(links, projected)
    return System(lambda p: _product(links, projected, p), right, scale, diagonal)


# -- projection -------------------------------------------------------------------------------------------------------


def _rotations(links: Mechanism, turned) -> tuple[list[Matrix], Vector]:
    """(33): the rotation of every link's axes into the fixed frame's (the base's last), and gravity there."""
    identity = Matrix(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    if any(link.parent != link.index - 1 for link in links):  # a tree: the base's axes
        rotations = links.outward(lambda link, R, turned: _rotate_columns(link, R, turned), identity, turned)
        return [*rotations, identity], links.gravity
    rotations, R = [identity], identity
    for link in reversed(links):
        # ᶠR of the parent = ᶠR of the link · (link's axes from the parent's)
        joint = link.placed(turned[link.index])
        columns = [joint.outward(Vector(*e)) for e in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))]
        R = R.times(_from_columns(columns))
        rotations.insert(0, R)
    base = rotations.pop(0)
    return [*rotations, base], base @ links.gravity


def _rotate_columns(link: MovingLink, R: Matrix, turned) -> Matrix:
    """ᶠR of the link = ᶠR of the parent · (parent's axes from the link's)."""
    joint = link.placed(turned)
    columns = [joint.inward(Vector(*e)) for e in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))]
    return R.times(_from_columns(columns))


def _from_columns(columns: Sequence[Vector]) -> Matrix:
    return Matrix(*(scalar for row in zip(*columns, strict=True) for scalar in row))


def _project(link: MovingLink, turned, R: Matrix, parent: Matrix) -> Projected:
    """(34)–(37), with the moments k and h of (28)–(31)."""
    m, h, I = link.inertia
    k = R.times(I.matrix()).times(R.transposed())
    moments = RigidInertia(m, R @ h, type(I)(k.xx, k.xy, k.xz, k.yy, k.yz, k.zz))
    return Projected(Vector(R.xz, R.yz, R.zz), parent @ link.placed(turned).lever, moments)


# -- products ---------------------------------------------------------------------------------------------------------


def _product(links: Mechanism, projected: Sequence[Projected], p: Sequence[Scalar]) -> list[Scalar]:
    """(28)–(32): A·p, that is Newton–Euler with the accelerations p and nothing else."""

    def accelerate(link: MovingLink, parent: Spatial, body: Projected, p: Scalar) -> Spatial:
        linear = parent.linear + parent.angular.cross(body.lever)
        if link.turns:
            return Spatial(parent.angular + p * body.axis, linear)
        return Spatial(parent.angular, linear + p * body.axis)

    accelerations = links.outward(accelerate, zero_spatial(), projected, p)
    loads = links.each(lambda link, body, a: body.inertia @ a, projected, accelerations)
    torques = _gather(links, projected, loads)
    return links.each(lambda link, t, p: t + link.rotor_inertia * p, torques, p)


def _gather(links: Mechanism, projected, loads) -> list[Scalar]:
    """(30)–(32): forces inward; the lever takes them to the parent's origin."""

    def step(link: MovingLink, received: Spatial, body: Projected, load: Spatial):
        x = received + load
        felt = body.axis.dot(x.moment if link.turns else x.force)
        return felt, Spatial(x.moment + body.lever.cross(x.force), x.force)

    return links.inward(step, zero_spatial(), projected, loads)


def _bias(links: Mechanism, projected, rotations, qd, gravity: Vector, wrenches) -> list[Scalar]:
    """(38)–(46): the torques at zero joint acceleration."""

    def move(link: MovingLink, parent, body: Projected, qd: Scalar):
        w, wd, vd = parent
        vd = vd + wd.cross(body.lever) + w.cross(w.cross(body.lever))
        rate = qd * body.axis
        if link.turns:
            return w + rate, wd + w.cross(rate), vd
        return w, wd, vd + 2.0 * w.cross(rate)

    moving = links.outward(move, (zero_vector(), zero_vector(), -gravity), projected, qd)

    def load(link: MovingLink, body: Projected, moving) -> Spatial:
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


def _diagonal(links: Mechanism, projected) -> list[Scalar]:
    """(64)–(67): a_ii of the composite body beyond joint i, with its rotor inertia."""

    def step(link: MovingLink, received: RigidInertia, body: Projected):
        composite = received + body.inertia
        z = body.axis
        own = z.dot(composite.second_moment @ z) if link.turns else composite.mass
        return own + link.rotor_inertia, composite.shifted(body.lever)

    return links.inward(step, zero_rigid(), projected)


# -- vectors of n -----------------------------------------------------------------------------------------------------


def _start(system: System, start, n: int) -> tuple[list[Scalar], list[Scalar]]:
    """x₀ and r₀ = Γ − A x₀: zero, or a warm start."""
    if start is None:
        return [0.0 * r for r in system.right_side], list(system.right_side)
    with stage("warm start"):
        Ax = system.product(start)
    return list(start), [right - a for right, a in zip(system.right_side, Ax, strict=True)]


def _dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    total = a[0] * b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        total = total + x * y
    return total


def _inverse(diagonal: list[Scalar] | None) -> list[Scalar] | None:
    return None if diagonal is None else [1.0 / where(d > 0.0, d, math.nan) for d in diagonal]


def _scaled(r: Sequence[Scalar], inverse: list[Scalar] | None) -> list[Scalar]:
    return list(r) if inverse is None else [r_i * i for r_i, i in zip(r, inverse, strict=True)]
