"""The Coriolis matrix as loops over pairs of axes, see ``algorithms.coriolis``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linkwise.algorithms import coriolis, coupling
from linkwise.algorithms.kinematics import link_poses
from linkwise.compiler.ir.graph import Graph
from linkwise.compiler.ir.loops import Array, Element, Register, Step, Whole, entry, whole
from linkwise.compiler.trace.procedure import Procedure, ProcedureNest, cells
from linkwise.functions.looped.parts import A, I, Loops, each, numbers_of, rows, spatial
from linkwise.functions.table import Function, Setting
from linkwise.scalar import Scalar
from linkwise.spatial import RigidInertia, Symmetric, Vector

AXIS, BODY = 12, 46  # numbers of an axis (S, Ṡ) and of a composite (I, B)
FORCES = [Register(f"force{k}") for k in range(18)]


def coriolis_matrix(function: Function, setting: Setting, made: Procedure) -> ProcedureNest:
    """C of all pairs of axes of which one carries the other."""
    links, model = setting.links(), setting.model
    loops, n = Loops(links, made), model.dof
    (output,) = function.shapes(model)
    own = [axis for axis, _ in coupling.leading(links)]

    def place(row: Whole, column: Whole) -> Element:
        return Element(output, entry("leaders", row) * n + entry("leaders", column))

    def prepare(q: Any, qd: Any) -> list[list[Scalar]]:
        poses = link_poses(links, coupling.expanded(links, q, positions=True))
        moved = coupling.expanded(links, qd)
        S, rates, composites = coriolis.axes_and_composites(links, poses, moved)
        axes = zip(S, rates, loops.ratios, strict=True)
        return [
            [ratio * x for axis, rate, ratio in axes for x in numbers_of(axis, rate)],
            [x for (m, h, second), B in composites for x in (m, *h, *second, *(b for row in B for b in row))],
            [value for _, _, value in coriolis.rotor_entries(links, moved)],
        ]

    def added(method: Callable[..., list[list[Scalar]]], row: Whole, column: Whole) -> Step:
        at = [place(row, column)]
        return loops.step(method, [cells("axes", AXIS, 0, A), FORCES, at], [at])

    graph = Graph()
    pattern = coriolis.rotor_entries(links, coupling.expanded(links, graph.inputs("qd", n)))
    rotors = [place(whole(own.index(i)), whole(own.index(j))) for i, j, _ in pattern]
    written = [rows("axes", loops.axes, AXIS), rows("bodies", len(links), BODY), rotors]
    body = [
        *loops.zeros(Array(output, "output", n * n)),
        loops.step(prepare, [cells("q", model.nq), cells("qd", n)], written, apart=True),
        each(
            loops.axes,
            loops.step(
                forces, [cells("axes", AXIS, 0, I), cells("bodies", BODY, 0, entry("links", I))], [FORCES]
            ),
            loops.carriers(added(carrying, A, I), of=I, others=False),
            loops.carriers(added(carrying, A, I), added(carried, I, A), of=I, own=False),
        ),
    ]
    scratch = [Array("axes", "scratch", AXIS, loops.axes), Array("bodies", "scratch", BODY, len(links))]
    return loops.nest(function, setting, scratch, body)


def forces(axis: Any, body: Any) -> list[list[Scalar]]:
    inertia = RigidInertia(body[0], Vector(*body[1:4]), Symmetric(*body[4:10]))
    B = [list(body[10 + 6 * k : 16 + 6 * k]) for k in range(6)]
    return [numbers_of(*coriolis.forces_of(spatial(axis), spatial(axis[6:]), (inertia, B)))]


def carrying(axis: Any, force: Any, before: Any) -> list[list[Scalar]]:
    return [[before[0] + spatial(axis).dot(spatial(force))]]


def carried(axis: Any, force: Any, before: Any) -> list[list[Scalar]]:
    parts = spatial(force), spatial(force[6:]), spatial(force[12:])
    return [[before[0] + coriolis.carried(spatial(axis), spatial(axis[6:]), parts)]]
