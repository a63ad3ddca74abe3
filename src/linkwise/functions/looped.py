"""Functions that grow with the square or the cube of the number of joints, as loops over joints.

Straight-line code prepares some numbers for every axis and link, in the base frame; loops of the traced language do the
rest: sums over pairs of axes of which one carries the other, and solutions with the mass matrix. Code is as long as
the robot has links, so it is compiled in a second or two where written out it would take minutes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from linkwise import joint_laws
from linkwise.algorithms import coriolis, coupling, dense, derivatives, equation, joint_terms, newton_euler
from linkwise.algorithms.carriers import Carriers
from linkwise.algorithms.centroidal import force_in_base
from linkwise.algorithms.kinematics import Pose, link_poses
from linkwise.algorithms.newton_euler import Moving, acceleration_matrix, body_force, motion
from linkwise.algorithms.regressor import carried_weights
from linkwise.algorithms.singularity import axis_inertia_floors
from linkwise.compiler.ir.graph import Graph
from linkwise.compiler.ir.program import Dtype
from linkwise.compiler.trace.procedure import ProcedureNest
from linkwise.compiler.trace.room import in_one_room
from linkwise.compiler.trace.traced_function import TracedFunction
from linkwise.functions.evaluation import without_free_joints
from linkwise.functions.table import Function, Setting
from linkwise.language import array, empty, less, span, straight, variable, whole_numbers, zeros
from linkwise.model.inertia import LABELS
from linkwise.model.mechanism import flat
from linkwise.scalar import Scalar, where
from linkwise.spatial import Matrix, RigidInertia, Spatial, Symmetric, Vector

UNROLLED = 40
"""Operations of all turns of a loop up to which it is written out."""
BLOCK = 8
"""Right sides that are solved at once: their sums do not depend on each other, so the processor need not wait."""
TEN = len(LABELS)

Entries = list[tuple[int, int, Scalar]]
"""Row, column and value of entries of a matrix."""


def program(function: Function, setting: Setting, dtype: Dtype) -> ProcedureNest:
    """The loops of a function; all that they keep is one array, ``room``."""
    setting = replace(setting, dtype=dtype)

    def traced(**given: Any) -> dict[str, Any]:
        results = LOOPED[function.name](_Robot(setting), *given.values())
        outputs = results if isinstance(results, tuple) else (results,)
        return dict(zip(function.shapes(setting.model), outputs, strict=True))

    shapes = {key: (size,) for key, size in function.input_sizes(setting).items()}
    made = TracedFunction(traced, shapes, function.name, longest=UNROLLED, loops=True, in_place=True)
    return in_one_room(made.program(dtype))  # type: ignore[arg-type]


class _Robot:
    """The links, and the pairs of their axes."""

    def __init__(self, setting: Setting):
        self.setting, self.links, self.n = setting, setting.links(), setting.model.dof
        self.carriers = Carriers(self.links, span, whole_numbers)

    def positions(self, q: Any) -> Any:
        return coupling.expanded(self.links, q, positions=True)

    def rates(self, qd: Any) -> Any:
        return coupling.expanded(self.links, qd)

    def scaled(self, axes: Iterable[Sequence[Spatial]]) -> list[Scalar]:
        """Numbers of all axes, those of followers times their ratio."""
        ratios = self.carriers.ratios
        return [ratio * x for axis, ratio in zip(axes, ratios, strict=True) for x in numbers_of(*axis)]

    def over_axes(self, matrix: Any) -> OverAxes:
        return OverAxes(matrix, self.carriers.leader, self.carriers.leader)


@dataclass
class OverAxes:
    """A matrix over coordinates with entries by axes, which have tables of their rows and columns."""

    matrix: Any
    rows: Any
    columns: Any
    first: int = 0
    """Where the columns begin."""

    def __getitem__(self, place: tuple[Any, Any]) -> Any:
        return self.matrix[self._at(*place)]

    def __setitem__(self, place: tuple[Any, Any], value: Any) -> None:
        self.matrix[self._at(*place)] = value

    def _at(self, row: Any, column: Any) -> tuple[Any, Any]:
        return self.rows[row], self.columns[column] + self.first


def spatial(numbers: Any) -> Spatial:
    return Spatial(Vector(*(numbers[k] for k in range(3))), Vector(*(numbers[k] for k in range(3, 6))))


def inertia(numbers: Any) -> RigidInertia:
    m, *rest = (numbers[k] for k in range(10))
    return RigidInertia(m, Vector(*rest[:3]), Symmetric(*rest[3:]))


def block(numbers: Any) -> list[list[Scalar]]:
    return [[numbers[6 * i + j] for j in range(6)] for i in range(6)]


def numbers_of(*values: Spatial) -> list[Any]:
    return [x for value in values for part in value for x in part]


# -- the mass matrix --------------------------------------------------------------------------------------------------


def mass_matrix(robot: _Robot, q: Any) -> Any:
    """M_ij = S_j · (I_i S_i) where axis j carries axis i, and rotor inertias."""
    M = zeros(robot.n, robot.n)
    add_masses(robot, robot.over_axes(M), *axes_and_inertias(robot, q))
    return M


def coefficients(robot: _Robot, q: Any) -> Any:
    """M as above, and the gravity torques written out."""
    links, torques = robot.links, empty(robot.n)

    def gravity(q: Any) -> list[list[Scalar]]:
        tau = equation.gravity_torques(links, robot.positions(q))
        return [coupling.reduced(links, flat(tau), (True,))]

    M = mass_matrix(robot, q)
    straight(gravity, [q], [torques])
    return M, torques


def axes_and_inertias(robot: _Robot, q: Any) -> tuple[Any, Any]:
    """Every axis S, times the ratio of a follower, and the inertia of every link with all links beyond it."""
    links = robot.links
    axes, bodies = empty(links.dof, 6), empty(len(links), 10)

    def prepared(q: Any) -> list[list[Scalar]]:
        poses = link_poses(links, robot.positions(q))
        S = [(axis,) for own in links.each(coriolis.joint_axes, poses) for axis in own]
        inertias: list[RigidInertia] = list(links.each(coriolis.inertia_in_base, poses))
        for link in reversed(links):
            if link.parent >= 0:
                inertias[link.parent] = inertias[link.parent] + inertias[link.index]
        return [robot.scaled(S), [x for m, h, second in inertias for x in (m, *h, *second)]]

    straight(prepared, [q], [axes, bodies])
    return axes, bodies


def add_masses(robot: _Robot, M: OverAxes, axes: Any, bodies: Any) -> None:
    """To a matrix of zeros the rotor inertias and the mass matrix of the bodies."""
    links, carriers = robot.links, robot.carriers
    own = [axis for axis, _ in coupling.leading(links)]
    rotors = joint_terms.add_rotor_inertia(links, _zeros(links.dof))
    for i, j, value in _nonzero(coupling.reduced(links, rotors, (True, True))):
        M[own[i], own[j]] = value
    for i in carriers.axes():
        force = inertia(bodies[carriers.link[i]]) @ spatial(axes[i])
        for a in carriers.own(i):
            M[i, a] = M[i, a] + spatial(axes[a]).dot(force)
        for a in carriers.others(i):
            entry = spatial(axes[a]).dot(force)
            M[i, a] = M[i, a] + entry
            M[a, i] = M[a, i] + entry  # of a follower and its leader both are one place


def _zeros(size: int) -> list[list[Scalar]]:
    return [[0.0] * size for _ in range(size)]


def _nonzero(matrix: list[list[Scalar]]) -> Entries:
    return [
        (i, j, x)
        for i, row in enumerate(matrix)
        for j, x in enumerate(row)
        if not (isinstance(x, float) and x == 0.0)
    ]


# -- derivatives ------------------------------------------------------------------------------------------------------


def inverse_dynamics_derivatives(robot: _Robot, q: Any, qd: Any, qdd: Any) -> Any:
    """∂τ/∂q, ∂τ/∂q̇ and M."""
    by_q, by_qd, M = (zeros(robot.n, robot.n) for _ in range(3))
    axes, bodies = add_slopes(robot, robot.over_axes(by_q), robot.over_axes(by_qd), q, qd, qdd)
    add_masses(robot, robot.over_axes(M), axes, bodies)
    return by_q, by_qd, M


def add_slopes(
    robot: _Robot, by_q: OverAxes, by_qd: OverAxes, q: Any, qd: Any, qdd: Any, sign: float = 1.0
) -> tuple[Any, Any]:
    """To matrices of zeros ``sign`` times ∂τ/∂q and ∂τ/∂q̇; gives the numbers of axes and composites.

    Args:
        robot: the links.
        by_q: ∂τ/∂q over axes.
        by_qd: ∂τ/∂q̇ over axes.
        q: positions.
        qd: velocities.
        qdd: accelerations, from the last coordinate to the first where ``sign`` is −1.
        sign: −1 for the right sides of forward dynamics.
    """
    links, friction = robot.links, robot.setting.friction
    axes, bodies = empty(links.dof, 24), empty(len(links), 52)

    def of_joints(q: Any, qd: Any) -> list[Entries]:
        """What joints add to both matrices."""
        given = robot.positions(q), robot.rates(qd)
        methods = (joint_terms.add_derivatives_by_q, joint_terms.add_derivatives_by_qd)
        matrices = [method(links, _zeros(links.dof), *given, friction=friction) for method in methods]
        return [_nonzero(coupling.reduced(links, matrix, (True, True))) for matrix in matrices]

    graph = Graph()
    patterns = of_joints(graph.inputs("q", robot.setting.model.nq), graph.inputs("qd", robot.n))
    terms = [empty(max(1, len(pattern))) for pattern in patterns]

    def prepared(q: Any, qd: Any, qdd: Any) -> list[list[Scalar]]:
        entries = [[sign * x for _, _, x in pattern] or [0.0] for pattern in of_joints(q, qd)]
        qdd = qdd[:: int(sign)]
        moved = robot.positions(q), robot.rates(qd), robot.rates(qdd)
        S, composites = derivatives.axes_and_composites(links, *moved)
        numbers = [
            x
            for (m, h, second), B, f in composites
            for x in (m, *h, *second, *(b for row in B for b in row), *numbers_of(f))
        ]
        return [robot.scaled(S), numbers, *entries]

    straight(prepared, [q, qd, qdd], [axes, bodies, *terms])
    own = [axis for axis, _ in coupling.leading(links)]
    for matrix, pattern, values in zip((by_q, by_qd), patterns, terms, strict=True):
        rows = whole_numbers(own[i] for i, _, _ in pattern)
        columns = whole_numbers(own[j] for _, j, _ in pattern)
        for k in span(len(pattern)):
            matrix[rows[k], columns[k]] = values[k]

    def axis(i: Any) -> derivatives.AxisMotion:
        return tuple(spatial(axes[i, k : k + 6]) for k in range(0, 24, 6))  # type: ignore[return-value]

    def composite(k: Any) -> derivatives.Composite:
        return inertia(bodies[k]), block(bodies[k, 10:46]), spatial(bodies[k, 46:])

    derivatives.add_pairs(by_q, by_qd, robot.carriers, axis, composite, sign)
    return axes, bodies


# -- velocities -------------------------------------------------------------------------------------------------------


def coriolis_matrix(robot: _Robot, q: Any, qd: Any) -> Any:
    """C of all pairs of axes of which one carries the other."""
    links, graph = robot.links, Graph()
    rotors = coriolis.rotor_entries(links, robot.rates(graph.inputs("qd", robot.n)))
    axes, bodies, terms = empty(links.dof, 12), empty(len(links), 46), empty(max(1, len(rotors)))

    def prepared(q: Any, qd: Any) -> list[list[Scalar]]:
        poses, moved = link_poses(links, robot.positions(q)), robot.rates(qd)
        S, rates, composites = coriolis.axes_and_composites(links, poses, moved)
        numbers = [
            x for (m, h, second), B in composites for x in (m, *h, *second, *(b for row in B for b in row))
        ]
        entries = [value for _, _, value in coriolis.rotor_entries(links, moved)] or [0.0]
        return [robot.scaled(zip(S, rates, strict=True)), numbers, entries]

    straight(prepared, [q, qd], [axes, bodies, terms])
    C = zeros(robot.n, robot.n)
    matrix = robot.over_axes(C)
    for k, (i, j, _) in enumerate(rotors):
        matrix[i, j] = terms[k]
    coriolis.add_pairs(
        matrix,
        robot.carriers,
        lambda j: (spatial(axes[j]), spatial(axes[j, 6:])),
        lambda k: (inertia(bodies[k]), block(bodies[k, 10:])),
    )
    return C


def christoffel(robot: _Robot, q: Any) -> Any:
    """D_ijk = D_ikj for unit rates of the joints j and k, where k carries j: then every link from j outward moves with
    the axis of k, and the sums over links of ``coriolis`` are those of one composite body,

        D_ijk = S_i · (I_j (S_k × S_j) + B(I_j, S_k) S_j)  where i carries j
        D_jik = S_i · B(I_j, S_k)ᵀ S_j                     where i carries k

    A follower's axis, times its ratio, adds to the symbols of its leader.
    """
    links, carriers = without_free_joints(robot.setting), robot.carriers
    axes, bodies = axes_and_inertias(robot, q)
    D = zeros(robot.n, robot.n, robot.n)

    def forces(j: Any, k: Any) -> tuple[Spatial, Spatial]:
        S_j, S_k, composite = spatial(axes[j]), spatial(axes[k]), inertia(bodies[j])
        B = coriolis.body_coriolis(composite, S_k, composite @ S_k)
        first = composite @ coriolis.motion_cross(S_k, S_j) + coriolis.times(B, S_j)
        return first, coriolis.transposed_times(B, S_j)

    def add(value: Scalar, *places: tuple[Any, Any, Any]) -> None:
        for place in places:
            at = tuple(carriers.leader[axis] for axis in place)
            D[at] = D[at] + value if links.coupled else value

    def along(axis: Any, force: Spatial) -> Scalar:
        return dense.dot(numbers_of(spatial(axes[axis])), numbers_of(force))

    for j in carriers.axes():
        first, _ = forces(j, j)
        for i in carriers.all(j):
            add(along(i, first), (i, j, j))
        for k in carriers.others(j):
            first, third = forces(j, k)
            for i in carriers.all(j):
                add(along(i, first), (i, j, k), (i, k, j))
            for i in carriers.own(k):
                add(along(i, third), (j, i, k))
            for i in carriers.others(k):
                add(along(i, third), (j, i, k), (j, k, i))
    return D


# -- the regressor ----------------------------------------------------------------------------------------------------


def regressor(robot: _Robot, q: Any, qd: Any, qdd: Any) -> Any:
    """The force that each unit parameter of a link causes, along all axes that carry the link; and the columns of the
    joints, which are written out."""
    links, carriers, model = robot.links, robot.carriers, robot.setting.model
    joint_terms.check_no_drag(links)
    count, laws = len(links), joint_laws.coefficients(model.moving_joints)
    on_bodies = [number for number, (law, _) in enumerate(laws) if law.on_body]
    of_joints = [number for number, (law, _) in enumerate(laws) if not law.on_body]
    axes, moving = empty(links.dof, 6), empty(count, 33)
    weights, entries = empty(count, max(1, 6 * len(on_bodies))), empty(len(of_joints), links.dof)

    def prepared(*given: Any) -> list[list[Scalar]]:
        moved = robot.positions(given[0]), robot.rates(given[1]), robot.rates(given[2])
        turned, poses = links.turned(moved[0]), link_poses(links, moved[0])
        S = [(axis,) for own in links.each(coriolis.joint_axes, poses) for axis in own]
        numbers: list[Scalar] = []
        for link, pose, body in zip(links, poses, motion(links, turned, *moved[1:]), strict=True):
            frame = link.parameter_frame
            numbers += [*body.w, *body.wd, *body.vd, *pose.rotation, *pose.position]
            numbers += [*map(float, frame.rotation.ravel()), *map(float, frame.translation)]
        carried = [carried_weights(links, turned, laws[number][1]) for number in on_bodies]
        forces = [force_in_base(pose, own[k]) for k, pose in enumerate(poses) for own in carried]
        columns = [
            ratio * joint_terms.column(*laws[number], links, i, *moved)
            for number in of_joints
            for i, ratio in enumerate(carriers.ratios)
        ]
        return [robot.scaled(S), numbers, numbers_of(*forces) or [0.0] * count, columns]

    straight(prepared, [q, qd, qdd], [axes, moving, weights, entries])
    Y = zeros(robot.n, len(model.parameter_labels))
    first = whole_numbers(links.first_coordinates())
    for k in span(count):
        forces = _unit_forces(moving[k])
        columns = [k * TEN + c for c in range(TEN)]
        forces += [spatial(weights[k, 6 * m :]) for m in range(len(on_bodies))]
        columns += [count * (TEN + number) + k for number in on_bodies]
        for a in carriers.all(first[k]):
            S, row = spatial(axes[a]), carriers.leader[a]
            for column, force in zip(columns, forces, strict=True):
                Y[row, column] = Y[row, column] + S.dot(force)
    for m, number in enumerate(of_joints):
        for a in carriers.axes():
            place = carriers.leader[a], count * (TEN + number) + carriers.link[a]
            Y[place] = Y[place] + entries[m, a]
    return Y


def _unit_forces(numbers: Any) -> list[Spatial]:
    """The forces of unit parameters of a link, about the base's origin and in its axes."""
    w, wd, vd, turn, place, *rest = _split(numbers, 3, 3, 3, 9, 3, 9, 3)
    pose, back = Pose(Matrix(*turn), Vector(*place)), Matrix(*rest[0]).transposed()
    w, wd, vd, place = Vector(*w), Vector(*wd), Vector(*vd), Vector(*rest[1])
    vd = back @ (vd + acceleration_matrix(w, wd) @ place)
    w, wd = back @ w, back @ wd
    moving = Moving(w, wd, vd, acceleration_matrix(w, wd))
    frame = Pose(pose.rotation.times(back.transposed()), pose.position + pose.rotation @ place)
    units = [[1.0 if i == k else 0.0 for i in range(TEN)] for k in range(TEN)]
    return [force_in_base(frame, body_force(inertia(unit), moving)) for unit in units]


def _split(numbers: Any, *sizes: int) -> list[list[Scalar]]:
    values = iter([numbers[k] for k in range(sum(sizes))])
    return [[next(values) for _ in range(size)] for size in sizes]


# -- solutions with the mass matrix -----------------------------------------------------------------------------------


def inverse_mass_matrix(robot: _Robot, q: Any) -> Any:
    """M⁻¹, column by column; symmetric, so one half is copied."""
    n = robot.n
    X, inverse = zeros(n, n), empty(n, n)
    solution = Factors(robot, q)
    _set_ones(X, n, 0)
    solution.solve(X)
    _write_inverse(X, inverse, 0)
    return inverse


def forward_dynamics_derivatives(robot: _Robot, q: Any, qd: Any, tau: Any) -> Any:
    """M (∂q̈/∂q, ∂q̈/∂q̇, ∂q̈/∂τ) = (−∂τ/∂q, −∂τ/∂q̇, 1)."""
    links, n, carriers = robot.links, robot.n, robot.carriers
    X, x, matrices = zeros(n, 3 * n), empty(n, 1), [empty(n, n) for _ in range(3)]

    def net_torques(q: Any, qd: Any, tau: Any) -> list[list[Scalar]]:
        q, qd = robot.positions(q), robot.rates(qd)
        tau = coupling.expanded(links, tau, forces=True)
        bias = newton_euler.inverse_dynamics(links, q, qd, links.grouped([0.0] * links.dof))
        net = equation.torques_on_bodies(links, q, qd, tau, friction=robot.setting.friction)
        left = [a - b for a, b in zip(flat(net), flat(bias), strict=True)]
        return [coupling.reduced(links, left, (True,))[::-1]]

    solution = Factors(robot, q)
    straight(net_torques, [q, qd, tau], [x])
    solution.solve(x)
    by_q, by_qd = (OverAxes(X, carriers.backward, carriers.leader, first) for first in (0, n))
    add_slopes(robot, by_q, by_qd, q, qd, x, -1.0)
    _set_ones(X, n, 2 * n)
    solution.solve(X)
    for i in span(n):
        for j in span(n):
            for k, matrix in enumerate(matrices[:2]):
                matrix[i, j] = X[n - 1 - i, k * n + j]
    _write_inverse(X, matrices[2], 2 * n)
    return tuple(matrices)


def _set_ones(X: Any, n: int, first: int) -> None:
    """Into zeros from column ``first``, the unit matrix, in backward order of rows."""
    for i in span(n):
        X[n - 1 - i, first + i] = 1.0


def _write_inverse(X: Any, inverse: Any, first: int) -> None:
    """A symmetric matrix from columns of X on, one half copied to the other."""
    n = X.shape[0]
    for i in span(n):
        for j in span(i, n):
            value = X[n - 1 - i, first + j]
            inverse[i, j], inverse[j, i] = value, value


class Factors:
    """M = Lᵀ D L, from the tips to the base as in ``algorithms.factorised``.

    Rows and columns are stored backward, so that the loops are those of M = L D Lᵀ. Entries of axes of which none
    carries the other are zero and not visited.
    """

    def __init__(self, robot: _Robot, q: Any):
        n, carriers = robot.n, robot.carriers
        self.n, self.L = n, zeros(n, n)
        add_masses(
            robot, OverAxes(self.L, carriers.backward, carriers.backward), *axes_and_inertias(robot, q)
        )
        lowest, below = _branches(robot)
        self.lowest = whole_numbers(lowest)
        self._starts = whole_numbers(sum(map(len, below[:i])) for i in range(n + 1))
        self._rows = whole_numbers(i for rows in below for i in rows)
        self.pivots = self._floors(robot)
        self._factorise()

    def below(self, column: Any) -> Iterable[Any]:
        """The rows below the diagonal of a column of L."""
        for place in span(self._starts[column], self._starts[column + 1]):
            yield self._rows[place]

    def _floors(self, robot: _Robot) -> Any:
        """What pivots must exceed: of a full matrix a part of its diagonal, else as in ``singularity``."""
        if robot.links.coupled:
            floors = empty(self.n)
            for i in span(self.n):
                floors[i] = dense.ROUND_OFF * self.L[i, i]
            return floors
        known: Any = flat(axis_inertia_floors(robot.links))
        return array([max(-1e300, float(floor)) for floor in known[::-1]])

    def _factorise(self) -> None:
        """L in the lower half of M, its columns times D in ``scaled``, and 1/D in ``pivots``."""
        L, scaled, pivots = self.L, empty(self.n, self.n), self.pivots
        for j in span(self.n):
            known = slice(self.lowest[j], j)
            pivot = less(L[j, j], L[j, known], scaled[j, known])
            pivots[j] = 1.0 / where(pivot > pivots[j], pivot, math.nan)
            for i in self.below(j):
                entry = less(L[i, j], L[j, known], scaled[i, known])
                scaled[i, j], L[i, j] = entry, entry * pivots[j]

    def solve(self, X: Any) -> None:
        """L D Lᵀ X' = X, in place, some columns at a time."""
        whole, rest = divmod(X.shape[1], BLOCK)
        for k in span(whole):
            self._solve(X, [k * BLOCK + c for c in range(BLOCK)])
        self._solve(X, [whole * BLOCK + c for c in range(rest)])

    def _solve(self, X: Any, columns: list[Any]) -> None:
        def subtract(
            rows: Iterable[Any], factor: Callable[[Any], Scalar], row: Any, start: list[Any]
        ) -> None:
            sums = [variable(x) for x in start]
            for k in rows:
                for total, c in zip(sums, columns, strict=True):
                    total -= factor(k) * X[k, c]
            for total, c in zip(sums, columns, strict=True):
                X[row, c] = total.value

        if not columns:
            return
        for i in span(self.n):
            row = [X[i, c] for c in columns]
            subtract(span(self.lowest[i], i), lambda k, i=i: self.L[i, k], i, row)
        for back in span(self.n - 1, -1, -1):
            row = [X[back, c] * self.pivots[back] for c in columns]
            subtract(self.below(back), lambda k, back=back: self.L[k, back], back, row)


def _branches(robot: _Robot) -> tuple[list[int], list[list[int]]]:
    """The first column of every row of L, and the rows of every column below its diagonal, in backward order.

    The columns of a row follow each other where links are numbered along branches; otherwise, and for followers, L is
    taken as full.
    """
    n = robot.n
    if not robot.links.coupled:
        before = [sorted(b for b in carriers if b < a) for a, carriers in enumerate(robot.carriers.lists)]
        after = [[b for b in range(n) if a in before[b]] for a in range(n)]
        if all(each == list(range(a + 1, a + 1 + len(each))) for a, each in enumerate(after)):
            below = [[n - 1 - b for b in reversed(before[n - 1 - i])] for i in range(n)]
            return [n - 1 - (after[n - 1 - i] or [n - 1 - i])[-1] for i in range(n)], below
    return [0] * n, [list(range(i + 1, n)) for i in range(n)]


LOOPED: dict[str, Callable[..., Any]] = {
    method.__name__: method
    for method in (
        christoffel,
        coefficients,
        coriolis_matrix,
        mass_matrix,
        inverse_mass_matrix,
        inverse_dynamics_derivatives,
        forward_dynamics_derivatives,
        regressor,
    )
}
"""By the names of functions; which of their algorithms are loops is in ``Function.looped``."""
