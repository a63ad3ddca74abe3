"""Constraints as measurements of the filter: links held to the world by a point or a pose.

A held direction is a measurement, with noise R, of the acceleration K λ of its link; the value is t. It adds Kᵀ R⁻¹ K
to the link's own inertia and Kᵀ R⁻¹ t to its own force, and filter and smoother go on as before: one pass gives the
soft constraint K λ + R f = t (MuJoCo's), with no matrix to factorise and a cost that grows with the number of links.
For K of a point, Kᵀ R⁻¹ K is the inertia of a point mass 1/R there.

Without noise, 1/R is a large number, and the pass is repeated with the forces found so far: the proximal steps of A.
Sathya and J. Carpentier, "Constrained articulated body dynamics algorithms", 2024, as the preconditioner of conjugate
residuals. Few passes are enough where constraints are far from singular; each direction that they hardly hold (an arm
that is almost straight) takes one more, where proximal steps alone would take thousands. A direction that they do not
hold at all ends the iteration. The gains do not change from pass to pass, so the inertias are filtered once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from linkwise.algorithms import coupling, dense, kalman, kinematics
from linkwise.algorithms.constrained import constraints
from linkwise.algorithms.constrained.constraints import Held
from linkwise.joint_laws import is_zero
from linkwise.model.axes import JointValue
from linkwise.model.mechanism import Mechanism
from linkwise.scalar import Condition, Scalar, all_of, sqrt, stage, where, while_loop
from linkwise.spatial import (
    ArticulatedInertia,
    Matrix,
    RigidInertia,
    Spatial,
    Symmetric,
    Vector,
    articulated,
    zero_spatial,
    zero_vector,
)

EXTRA_STEPS = 4.0
"""Passes beyond one for each row."""
STOPPED = 1e-30
"""Square of the part of the first change of forces from which the iteration stops."""


@dataclass(frozen=True, eq=False)
class Measurement:
    """A held frame on a moving link, in the link's axes."""

    link: int
    sign: float  # −1 where the moving frame is the second one of the constraint
    rows: int
    point: Vector
    weight: Scalar  # 1/R
    soft: bool

    def inertia(self) -> ArticulatedInertia:
        """Kᵀ R⁻¹ K."""
        turning = self.weight if self.rows == 6 else 0.0
        around = Symmetric(turning, 0.0, 0.0, turning, 0.0, turning)
        return articulated(RigidInertia(self.weight, zero_vector(), around).shifted(self.point))

    def measured(self, λ: Spatial) -> Spatial:
        """K λ: angular acceleration, and that of the point."""
        return Spatial(λ.angular, λ.linear + λ.angular.cross(self.point))

    def force(self, missing: Spatial) -> Spatial:
        """R⁻¹ times an acceleration that is missing: moment and force at the point."""
        moment = self.weight * missing.angular if self.rows == 6 else zero_vector()
        return Spatial(moment, self.weight * missing.linear)

    def on_link(self, force: Spatial) -> Spatial:
        """Kᵀ f: about the link's origin."""
        return Spatial(force.angular + self.point.cross(force.linear), force.linear)


def applies(links: Mechanism, held: Sequence[Held]) -> str | None:
    """Why the filter cannot take these constraints; None where it can."""
    if links.coupled:
        return "some joints follow others"
    if any(each.first[0] >= 0 and each.second[0] >= 0 for each in held):
        return "a constraint ties two moving links to each other"
    return None


def forward_dynamics(
    links: Mechanism,
    q: Sequence[JointValue],
    qd: Sequence[JointValue],
    tau: Sequence[JointValue],
    held: Sequence[Held],
    rate: float | None,
    wrenches: Sequence[Spatial] | None = None,
) -> tuple[list[JointValue], list[Scalar], list[Scalar], list[Scalar]]:
    """(q̈, forces, what is left of every row, the size of what adds up to it); rows in base axes."""
    stiffness = _stiffness(links, held)
    measurements = [_measurement(links, each, stiffness) for each in held]
    with stage("joint turns"):
        turned = links.each(lambda link, q: link.turned(q), q)
    with stage("biases"):
        biases = kalman.bias_accelerations(links, turned, qd)
        forces = links.each(lambda link, bias: kalman.bias_force(link, bias[0]), biases)
        if wrenches is not None:
            forces = links.each(lambda link, b, wrench: b - wrench, forces, wrenches)
        n = links.each(lambda link, bias: bias[1], biases)
    with stage("measurements"):
        turns = [pose.rotation for pose in kinematics.link_poses(links, q)]
        targets = _targets(links, q, qd, held, rate, measurements, turns, biases)
        stiff: dict[int, ArticulatedInertia] = {}
        for m in measurements:
            stiff[m.link] = stiff[m.link] + m.inertia() if m.link in stiff else m.inertia()
    filtered, updated = kalman.filter_inertias(links, turned, stiff)
    root = Spatial(zero_vector(), -links.gravity)

    def passed(given: list[Spatial]) -> tuple[list[JointValue], list[Spatial], list[Spatial]]:
        """(q̈, K λ, forces) of one pass with these forces of the pass before."""
        pulled = list(forces)
        with stage("measurements"):
            wanted = [
                m.force(t) if m.soft else f + m.force(t)
                for m, f, t in zip(measurements, given, targets, strict=True)
            ]
            for m, pull in zip(measurements, wanted, strict=True):
                pulled[m.link] = pulled[m.link] - m.on_link(pull)
        estimates = kalman.filter_states(links, turned, filtered, updated, pulled, n, tau)
        smoothed = kalman.smoothed(links, turned, filtered, estimates, n, root)
        with stage("constraint forces"):
            seen = [m.measured(smoothed[m.link][1]) for m in measurements]
            found = [w - m.force(s) for m, w, s in zip(measurements, wanted, seen, strict=True)]
        return [acceleration for acceleration, _ in smoothed], seen, found

    start = [zero_spatial() for _ in measurements]
    if not all(m.soft for m in measurements):
        start = _iterated(measurements, lambda given: passed(given)[2])
    qdd, seen, found = passed(start)
    rows, left, sizes = _by_row(measurements, turns, found, targets, seen)
    return qdd, rows, left, constraints.block_sizes(sizes, held)


def _iterated(
    measurements: Sequence[Measurement], step: Callable[[list[Spatial]], list[Spatial]]
) -> list[Spatial]:
    """The forces by conjugate residuals, as a loop: the code of a pass is there once.

    ``step`` is affine: forces f become f + z(f), z is 1/R times what is missing. Its linear part is I − A, where A has
    eigenvalues between 0 and 1, so z(f) = z(0) − A f. Where z(f) = 0 has no solution, A z(f) = 0 has one: what
    cannot be met changes nothing.
    """

    def grouped(values: Sequence[Scalar]) -> list[Spatial]:
        forces: list[Spatial] = []
        rest = list(values)
        for m in measurements:
            own = [rest.pop(0) for _ in range(0 if m.soft else m.rows)]
            moment = Vector(*own[:3]) if len(own) == 6 else zero_vector()
            forces.append(Spatial(moment, Vector(*own[-3:]) if own else zero_vector()))
        return forces

    def flat(forces: Sequence[Spatial]) -> list[Scalar]:
        values: list[Scalar] = []
        for m, force in zip(measurements, forces, strict=True):
            if not m.soft:
                values += [*force.angular, *force.linear][6 - m.rows :]
        return values

    rows = sum(m.rows for m in measurements if not m.soft)
    least = constraints.stiffness() * constraints.dependent()  # of A along a direction that is held

    def along(f: list[Scalar], z: list[Scalar], direction: list[Scalar]) -> list[Scalar]:
        """A · direction."""
        trial = [a + b for a, b in zip(f, direction, strict=True)]
        after = [a - b for a, b in zip(flat(step(grouped(trial))), trial, strict=True)]  # z(f + direction)
        return [a - b for a, b in zip(z, after, strict=True)]

    def unfinished(k: Scalar, most: Scalar, *state: Scalar) -> Condition:
        A_z = state[4 * rows : 5 * rows]
        return all_of(k < rows + EXTRA_STEPS, dense.dot(A_z, A_z) > most)

    def following(k: Scalar, most: Scalar, *state: Scalar) -> tuple[Scalar, ...]:
        f, z, p, A_p, A_z = (list(state[a * rows : (a + 1) * rows]) for a in range(5))
        reached, square = dense.dot(z, A_z), dense.dot(A_z, A_z)
        held = all_of(square > least * reached, reached > 0.0)
        length = where(held, reached / where(held, dense.dot(A_p, A_p), 1.0), 0.0)
        new_f = [a + length * b for a, b in zip(f, p, strict=True)]
        new_z = [a - length * b for a, b in zip(z, A_p, strict=True)]
        new_A_z = along(new_f, new_z, new_z)
        share = where(held, dense.dot(new_z, new_A_z) / where(held, reached, 1.0), 0.0)
        new_p = [a + share * b for a, b in zip(new_z, p, strict=True)]
        new_A_p = [a + share * b for a, b in zip(new_A_z, A_p, strict=True)]
        # what is left lies along directions that are not held: the end
        count = where(held, k + 1.0, rows + EXTRA_STEPS)
        return count, most, *new_f, *new_z, *new_p, *new_A_p, *new_A_z

    first = flat(step([zero_spatial() for _ in measurements]))
    nothing = 0.0 * first[-1]
    start, z = [nothing] * rows, [nothing + x for x in first]
    A_z = along(start, z, z)
    most = STOPPED * dense.dot(A_z, A_z)
    _, _, *last = while_loop(unfinished, following, (nothing, most, *start, *z, *z, *A_z, *A_z))
    return grouped(last[:rows])


def _measurement(links: Mechanism, each: Held, stiffness: Scalar) -> Measurement:
    sign, (body, pose) = (1.0, each.first) if each.first[0] >= 0 else (-1.0, each.second)
    place = links[body].file_frame @ pose
    weight = 1.0 / each.compliance if each.compliance else stiffness
    point = Vector(*place.translation.tolist())
    return Measurement(body, sign, each.rows, point, weight, each.compliance > 0.0)


def _stiffness(links: Mechanism, held: Sequence[Held]) -> Scalar:
    """1/R in place of infinity, the same for all rows, so that redundant ones share the smallest forces.

    The root of mass and moment of inertia of the held links lies between what slides and what turns.
    """
    sizes: list[Scalar] = []
    for each in held:
        mass, _, I = links.original[max(each.first[0], each.second[0])].inertia
        sizes.append(mass * mass + I.xx + I.yy + I.zz)
    total = sum(sizes[1:], start=sizes[0])
    if is_zero(total):  # held links without inertia of their own
        masses = [link.inertia.mass for link in links.original]
        total = sum((m * m for m in masses[1:]), start=masses[0] * masses[0])
    return constraints.stiffness() * sqrt(total)


def _targets(
    links: Mechanism,
    q: Sequence[JointValue],
    qd: Sequence[JointValue],
    held: Sequence[Held],
    rate: float | None,
    measurements: Sequence[Measurement],
    turns: Sequence[Matrix],
    biases: Sequence[tuple[Vector, Spatial]],
) -> list[Spatial]:
    """t: what K λ must be, in link axes; λ is the acceleration less gravity."""
    decay: list[Scalar] = [0.0] * sum(each.rows for each in held)
    if rate is not None:
        J = constraints.jacobian(links, q, held)
        rates = coupling.leaders(links, qd)
        decay = [
            -(2.0 * rate) * dense.dot(row, rates) - (rate * rate) * error
            for row, error in zip(J, constraints.errors(links, q, held), strict=True)
        ]
    found: list[Spatial] = []
    at = 0
    gravity = kinematics.base_pose(links).rotation @ links.gravity
    for m in measurements:
        own = [m.sign * value for value in decay[at : at + m.rows]]
        at += m.rows
        back = turns[m.link].transposed()
        turning = back @ Vector(*own[:3]) if m.rows == 6 else zero_vector()
        w = biases[m.link][0]
        centripetal = w.cross(w.cross(m.point))
        found.append(Spatial(turning, back @ (Vector(*own[-3:]) - gravity) - centripetal))
    return found


def _by_row(
    measurements: Sequence[Measurement],
    turns: Sequence[Matrix],
    forces: Sequence[Spatial],
    targets: Sequence[Spatial],
    seen: Sequence[Spatial],
) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
    """Forces, residuals and sizes of all rows, in base axes."""
    rows: list[Scalar] = []
    left: list[Scalar] = []
    sizes: list[Scalar] = []
    for m, force, target, found in zip(measurements, forces, targets, seen, strict=True):
        turn = turns[m.link]
        for pull, is_, must in list(zip(force, found, target, strict=True))[0 if m.rows == 6 else 1 :]:
            rows += [*(turn @ (m.sign * pull))]
            left += [0.0, 0.0, 0.0] if m.soft else [*(is_ - must)]
            sizes += [abs(a) + abs(b) for a, b in zip(is_, must, strict=True)]
    return rows, left, sizes
