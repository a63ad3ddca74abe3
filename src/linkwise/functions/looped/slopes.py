"""The mass matrix and derivatives of inverse dynamics as loops over pairs of axes, see ``algorithms.derivatives``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwise.algorithms import coriolis, coupling, equation, joint_terms
from linkwise.algorithms.derivatives import axes_and_composites, forces_of
from linkwise.algorithms.kinematics import link_poses
from linkwise.compiler.ir.graph import Graph
from linkwise.compiler.ir.loops import (
    Array,
    Element,
    Place,
    Register,
    Statement,
    Step,
    Whole,
    entry,
    whole,
)
from linkwise.compiler.trace.procedure import Procedure, ProcedureNest, cells
from linkwise.functions.looped.parts import A, I, Loops, Matrix, each, numbers_of, rows, spatial
from linkwise.functions.table import Function, Setting
from linkwise.model.mechanism import Mechanism, flat
from linkwise.scalar import Scalar
from linkwise.spatial import RigidInertia, Symmetric, Vector

AXIS, BODY = 24, 52  # numbers of an axis (S, Ψ̇, Ψ̈, Ψ̇ + Ṡ) and of a composite (I, 2B, f)
FORCES = [Register(f"force{k}") for k in range(AXIS)]
Entries = list[tuple[int, int, Scalar]]


def scratch_of(links: Mechanism) -> list[Array]:
    """The memory of all axes and of all links with those beyond them."""
    return [Array("axes", "scratch", AXIS, links.dof), Array("bodies", "scratch", BODY, len(links))]


def mass_matrix(function: Function, setting: Setting, made: Procedure) -> ProcedureNest:
    """M_ij = S_j · (I_i S_i) where axis j carries axis i, and rotor inertias."""
    links, n = setting.links(), setting.model.dof
    loops = Loops(links, made)
    (output,) = function.shapes(setting.model)
    place = _entries_of(output, n)
    body = [
        *loops.zeros(Array(output, "output", n * n)),
        axes_and_inertias(loops, setting),
        *rotor_inertias(loops, setting, place),
        *masses(loops, place),
    ]
    return loops.nest(function, setting, scratch_of(links), body)


def coefficients(function: Function, setting: Setting, made: Procedure) -> ProcedureNest:
    """M as above, and the gravity torques written out."""
    links, n = setting.links(), setting.model.dof
    loops = Loops(links, made)
    output, torques = function.shapes(setting.model)
    place = _entries_of(output, n)

    def gravity(q: Any) -> list[list[Scalar]]:
        tau = equation.gravity_torques(links, coupling.expanded(links, q, positions=True))
        return [coupling.reduced(links, flat(tau), (True,))]

    body = [
        *loops.zeros(Array(output, "output", n * n)),
        axes_and_inertias(loops, setting),
        loops.step(gravity, [cells("q", setting.model.nq)], [cells(torques, n)], apart=True),
        *rotor_inertias(loops, setting, place),
        *masses(loops, place),
    ]
    return loops.nest(function, setting, scratch_of(links), body)


def inverse_dynamics_derivatives(function: Function, setting: Setting, made: Procedure) -> ProcedureNest:
    """∂τ/∂q, ∂τ/∂q̇ and M."""
    links, n = setting.links(), setting.model.dof
    loops, outputs = Loops(links, made), list(function.shapes(setting.model))
    by_q, by_qd, by_qdd = (_entries_of(key, n) for key in outputs)
    body = [
        *loops.zeros(*(Array(key, "output", n * n) for key in outputs)),
        *prepared(loops, setting, cells("qdd", n), by_q, by_qd),
        *rotor_inertias(loops, setting, by_qdd),
        *masses(loops, by_qdd),
        *slopes(loops, by_q, by_qd),
    ]
    return loops.nest(function, setting, scratch_of(links), body)


def _entries_of(output: str, n: int) -> Matrix:
    return lambda row, column: Element(output, entry("leaders", row) * n + entry("leaders", column))


# -- what is prepared -------------------------------------------------------------------------------------------------


def axes_and_inertias(loops: Loops, setting: Setting) -> Step:
    """Every axis S, times the ratio of a follower, and the inertia of every link with all links beyond it."""
    links = loops.links

    def function(q: Any) -> list[list[Scalar]]:
        poses = link_poses(links, coupling.expanded(links, q, positions=True))
        axes = [axis for own in links.each(coriolis.joint_axes, poses) for axis in own]
        bodies: list[RigidInertia] = list(links.each(coriolis.inertia_in_base, poses))
        for link in reversed(links):
            if link.parent >= 0:
                bodies[link.parent] = bodies[link.parent] + bodies[link.index]
        return [
            [ratio * x for axis, ratio in zip(axes, loops.ratios, strict=True) for x in numbers_of(axis)],
            [x for m, h, second in bodies for x in (m, *h, *second)],
        ]

    written = [rows("axes", loops.axes, 6), rows("bodies", len(links), 10)]
    return loops.step(function, [cells("q", setting.model.nq)], written, apart=True)


def prepared(
    loops: Loops,
    setting: Setting,
    accelerations: Sequence[Place],
    by_q: Matrix,
    by_qd: Matrix,
    sign: float = 1.0,
) -> list[Statement]:
    """The motion of every axis and every composite; to the matrices, which hold zeros, what the joints add to them."""
    links, model = loops.links, setting.model
    sizes = (model.nq, model.dof)

    def joint_slopes(q: Any, qd: Any) -> list[Entries]:
        q, qd = coupling.expanded(links, q, positions=True), coupling.expanded(links, qd)
        given = [
            method(links, _zeros(links), q, qd, friction=setting.friction)
            for method in (joint_terms.add_derivatives_by_q, joint_terms.add_derivatives_by_qd)
        ]
        return [_nonzero(coupling.reduced(links, matrix, (True, True))) for matrix in given]

    graph = Graph()
    patterns = joint_slopes(*(graph.inputs(key, size) for key, size in zip(("q", "qd"), sizes, strict=True)))
    own = _own_axes(loops)
    places = [
        [matrix(whole(own[i]), whole(own[j])) for i, j, _ in pattern]
        for matrix, pattern in zip((by_q, by_qd), patterns, strict=True)
    ]

    def function(q: Any, qd: Any, qdd: Any) -> list[list[Scalar]]:
        terms = [[sign * x for _, _, x in pattern] for pattern in joint_slopes(q, qd)]
        moved = coupling.expanded(links, q, positions=True), coupling.expanded(links, qd)
        axes, composites = axes_and_composites(links, *moved, coupling.expanded(links, qdd))
        return [
            [ratio * x for axis, ratio in zip(axes, loops.ratios, strict=True) for x in numbers_of(*axis)],
            [
                x
                for (m, h, second), B, f in composites
                for x in (m, *h, *second, *(b for row in B for b in row), *numbers_of(f))
            ],
            *terms,
        ]

    reads = [cells("q", model.nq), cells("qd", model.dof), accelerations]
    written = [rows("axes", loops.axes, AXIS), rows("bodies", len(links), BODY), *places]
    return [loops.step(function, reads, written, apart=True)]


def rotor_inertias(loops: Loops, setting: Setting, place: Matrix) -> list[Statement]:
    """To a matrix of zeros, the rotor inertias."""
    links = loops.links
    matrix = joint_terms.add_rotor_inertia(links, _zeros(links))
    entries = _nonzero(coupling.reduced(links, matrix, (True, True)))
    own = _own_axes(loops)
    places = [place(whole(own[i]), whole(own[j])) for i, j, _ in entries]
    return [loops.step(lambda: [[x for _, _, x in entries]], [], [places])] if entries else []


def _own_axes(loops: Loops) -> list[int]:
    """For every coordinate its own axis."""
    return [own for own, _ in coupling.leading(loops.links)]


def _zeros(links: Mechanism) -> list[list[Scalar]]:
    return [[0.0] * links.dof for _ in range(links.dof)]


def _nonzero(matrix: list[list[Scalar]]) -> Entries:
    return [
        (i, j, x)
        for i, row in enumerate(matrix)
        for j, x in enumerate(row)
        if not (isinstance(x, float) and x == 0.0)
    ]


# -- pairs of axes ----------------------------------------------------------------------------------------------------


def masses(loops: Loops, place: Matrix) -> list[Statement]:
    """Add the mass matrix of the bodies."""
    force = FORCES[:6]

    def own(axis: Any, body: Any) -> list[list[Scalar]]:
        inertia = RigidInertia(body[0], Vector(*body[1:4]), Symmetric(*body[4:]))
        return [numbers_of(inertia @ spatial(axis))]

    def sums(axis: Any, force: Any, before: Any) -> list[list[Scalar]]:
        return [[before[0] + spatial(axis).dot(spatial(force))]]

    def added(row: Whole, column: Whole) -> Step:
        at = [place(row, column)]
        return loops.step(sums, [cells("axes", 6, 0, A), force, at], [at])

    prepare = loops.step(own, [cells("axes", 6, 0, I), cells("bodies", 10, 0, entry("links", I))], [force])
    return [
        each(
            loops.axes,
            prepare,
            loops.carriers(added(I, A), of=I, others=False),
            loops.carriers(added(I, A), added(A, I), of=I, own=False),
        )
    ]


def slopes(loops: Loops, by_q: Matrix, by_qd: Matrix, sign: float = 1.0) -> list[Statement]:
    """Add ``sign`` times the derivatives of the torques of the bodies."""

    def prepare(axis: Any, body: Any) -> list[list[Scalar]]:
        motion = (spatial(axis), spatial(axis[6:]), spatial(axis[12:]), spatial(axis[18:]))
        inertia = RigidInertia(body[0], Vector(*body[1:4]), Symmetric(*body[4:10]))
        twice_B = [list(body[10 + 6 * k : 16 + 6 * k]) for k in range(6)]
        return [[sign * x for x in numbers_of(*forces_of(motion, (inertia, twice_B, spatial(body[46:]))))]]

    def row(axis: Any, force: Any, before: Any) -> list[list[Scalar]]:
        S, psi_d, psi_dd, mixed = (spatial(axis[k:]) for k in range(0, AXIS, 6))
        row_B, row_I = spatial(force), spatial(force[6:])
        slope_q = row_B.dot(psi_d) + row_I.dot(psi_dd)
        return [[before[0] + slope_q, before[1] + row_B.dot(S) + row_I.dot(mixed)]]

    def column(axis: Any, force: Any, before: Any) -> list[list[Scalar]]:
        S, (column_q, column_qd) = spatial(axis), (spatial(force), spatial(force[6:]))
        return [[before[0] + S.dot(column_q), before[1] + S.dot(column_qd)]]

    def in_row() -> Step:
        at = [by_q(I, A), by_qd(I, A)]
        return loops.step(row, [cells("axes", AXIS, 0, A), FORCES[:12], at], [at])

    def in_column() -> Step:
        at = [by_q(A, I), by_qd(A, I)]
        return loops.step(column, [cells("axes", 6, 0, A), FORCES[12:], at], [at])

    reads = [cells("axes", AXIS, 0, I), cells("bodies", BODY, 0, entry("links", I))]
    return [
        each(
            loops.axes,
            loops.step(prepare, reads, [FORCES]),
            loops.carriers(in_row(), of=I, others=False),
            loops.carriers(in_row(), in_column(), of=I, own=False),
        )
    ]
