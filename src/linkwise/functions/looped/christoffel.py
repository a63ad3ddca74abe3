"""Christoffel's symbols as loops over three axes of one branch, see ``algorithms.coriolis``."""

from __future__ import annotations

from typing import Any

from linkwise.algorithms import coriolis, dense
from linkwise.compiler.ir.loops import (
    Array,
    Element,
    For,
    Let,
    Place,
    Register,
    Step,
    Whole,
    entry,
    name,
)
from linkwise.compiler.trace.procedure import Procedure, ProcedureNest, cells
from linkwise.functions.evaluation import without_free_joints
from linkwise.functions.looped.parts import A, J, K, Loops, each, numbers_of, spatial
from linkwise.functions.looped.slopes import axes_and_inertias
from linkwise.functions.table import Function, Setting
from linkwise.scalar import Scalar
from linkwise.spatial import RigidInertia, Symmetric, Vector

FIRST = [Register(f"first{k}") for k in range(6)]
THIRD = [Register(f"third{k}") for k in range(6)]
VALUE = Register("value")


def christoffel(function: Function, setting: Setting, made: Procedure) -> ProcedureNest:
    """D_ijk = D_ikj for unit rates of the joints j and k, where k carries j: then every link from j outward moves with
    the axis of k, and the sums over links of ``coriolis`` are those of one composite body,

        D_ijk = S_i · (I_j (S_k × S_j) + B(I_j, S_k) S_j)  where i carries j
        D_jik = S_i · B(I_j, S_k)ᵀ S_j                     where i carries k

    A follower's axis, times its ratio, adds to the symbols of its leader.
    """
    links, n = without_free_joints(setting), setting.model.dof
    loops, N = Loops(links, made), len(links)
    output = Array("christoffel", "output", n**3)

    def forces(j: Any, k: Any, body: Any) -> list[list[Scalar]]:
        S_j, S_k = spatial(j), spatial(k)
        composite = RigidInertia(body[0], Vector(*body[1:4]), Symmetric(*body[4:]))
        B = coriolis.body_coriolis(composite, S_k, composite @ S_k)
        first = composite @ coriolis.motion_cross(S_k, S_j) + coriolis.times(B, S_j)
        return [numbers_of(first), numbers_of(coriolis.transposed_times(B, S_j))]

    def axis(row: Whole) -> list[Place]:
        return cells("axes", 6, 0, row)

    def added(*indices: Whole) -> Step:
        i, j, k = (entry("leaders", index) for index in indices)
        place = Element("christoffel", (i * n + j) * n + k)
        if links.coupled:
            return loops.step(lambda sum, x: [[sum[0] + x[0]]], [[place], [VALUE]], [[place]])
        return loops.step(lambda x: [x], [[VALUE]], [[place]])

    def pair(k: Whole) -> Step:
        return loops.step(forces, [axis(J), axis(k), cells("bodies", 10, 0, J)], [FIRST, THIRD])

    def along(force: list[Register]) -> Step:
        return loops.step(lambda a, f: [[dense.dot(list(a), list(f))]], [axis(A), force], [[VALUE]])

    body = [
        axes_and_inertias(loops, setting),
        *loops.zeros(output),
        each(
            N,
            pair(J),
            loops.carriers(along(FIRST), added(A, J, J), of=J),
            For(
                "p",
                entry("shared", J),
                entry("starts", J + 1),
                [
                    Let("k", entry("carriers", name("p"))),
                    pair(K),
                    loops.carriers(along(FIRST), added(A, J, K), added(A, K, J), of=J),
                    loops.carriers(along(THIRD), added(J, A, K), of=K, others=False),
                    loops.carriers(along(THIRD), added(J, A, K), added(J, K, A), of=K, own=False),
                ],
            ),
            loop="j",
        ),
    ]
    scratch = [Array("axes", "scratch", 6, N), Array("bodies", "scratch", 10, N)]
    return loops.nest(function, setting, scratch, body)
