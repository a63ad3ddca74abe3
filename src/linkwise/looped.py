"""Functions that grow with the cube of the number of joints, as loops over joints where written out they are too long.

Straight-line code prepares one quantity per joint, or a matrix; loops do what is left. Christoffel's symbols are sums
over joints i, j, k of one branch. The derivatives of forward dynamics solve with the mass matrix for 3n right sides; of
robots with followers that matrix is full.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from linkwise.algorithms import coriolis, coupling, dense, equation, newton_euler
from linkwise.algorithms.kinematics import link_poses
from linkwise.compiler.loops import (
    Array,
    Declare,
    Element,
    For,
    Let,
    Place,
    Register,
    Statement,
    Step,
    Whole,
    entry,
    name,
    whole,
)
from linkwise.compiler.procedure import Procedure, ProcedureNest, cells
from linkwise.compiler.program import Dtype
from linkwise.errors import TraceError
from linkwise.evaluation import derivatives_by_state, without_free_joints
from linkwise.functions import Function, Setting
from linkwise.model.mechanism import Mechanism, flat
from linkwise.scalar import Scalar, where
from linkwise.spatial import RigidInertia, Spatial, Symmetric, Vector

A, I, J, K = (name(spelled) for spelled in "aijk")
BLOCK = 8  # right sides that are solved at once
"""Sums of this many right sides are independent of each other, so that the processor need not wait for one."""


class LoopedNest(ProcedureNest):
    """Loops that only machine code and targets with loops take."""

    def __getattr__(self, key: str) -> Any:
        if key.startswith("_"):
            raise AttributeError(key)
        raise TraceError(
            f"{self.name}: for so many joints it is loops, which are machine code, C, CUDA or WebAssembly; formulas "
            "and further derivatives take fewer joints (robot.lock)"
        )


class _Loops:
    """Statements, the memory that they use, and what they cost."""

    def __init__(self, dtype: Dtype):
        self.made = Procedure(dtype)
        self.step = self.made.step
        self.tables: dict[str, Sequence[int]] = {}

    def nest(self, function: Function, setting: Setting, scratch: Sequence[Array], body: list[Statement]):
        arrays = [Array(key, "input", size) for key, size in function.input_sizes(setting).items()]
        for key, shape in function.shapes(setting.model).items():
            size = 1
            for length in shape:
                size *= length
            arrays.append(Array(key, "output", size))
        return LoopedNest(
            function.name,
            self.made.dtype,
            (*arrays, *scratch),
            body,
            tables=self.tables,
            operations=self.made.operations(body, self.tables),
        )


def program(function: Function, setting: Setting, dtype: Dtype) -> ProcedureNest:
    """The loops of a function of ``LOOPED``."""
    return LOOPED[function.name](function, replace(setting, dtype=dtype), dtype)


# -- Christoffel's symbols --------------------------------------------------------------------------------------------

FIRST = [Register(f"first{k}") for k in range(6)]
THIRD = [Register(f"third{k}") for k in range(6)]
VALUE = Register("value")


def _christoffel(function: Function, setting: Setting, dtype: Dtype) -> ProcedureNest:
    """D_ijk = D_ikj for unit rates of the joints j and k, where k carries j: then every link from j outward moves with
    the axis of k, and the sums over links of ``coriolis`` are those of one composite body,

        D_ijk = S_i · (I_j (S_k × S_j) + B(I_j, S_k) S_j)  where i carries j
        D_jik = S_i · B(I_j, S_k)ᵀ S_j                     where i carries k

    A follower's axis, times its ratio, adds to the symbols of its leader.
    """
    links, n = without_free_joints(setting), setting.model.dof
    loops, N = _Loops(dtype), len(links)
    ancestors = [[k, *links.ancestors(k)] for k in range(N)]
    leaders, ratios = _leaders(links)
    starts = [0]
    for own in ancestors:
        starts.append(starts[-1] + len(own))
    loops.tables = {"starts": starts, "carriers": [a for own in ancestors for a in own], "leaders": leaders}

    def prepared(q: Sequence[Scalar]) -> list[list[Scalar]]:
        poses = link_poses(links, coupling.expanded(links, q, positions=True))
        axes = [axis for own in links.each(coriolis.joint_axes, poses) for axis in own]
        bodies: list[RigidInertia] = list(links.each(coriolis.inertia_in_base, poses))
        for link in reversed(links):
            if link.parent >= 0:
                bodies[link.parent] = bodies[link.parent] + bodies[link.index]
        return [
            [ratio * x for axis, ratio in zip(axes, ratios, strict=True) for part in axis for x in part],
            [x for m, h, second in bodies for x in (m, *h, *second)],
        ]

    def forces(j: Any, k: Any, body: Any) -> list[list[Scalar]]:
        S_j, S_k = (Spatial(Vector(*x[:3]), Vector(*x[3:])) for x in (j, k))
        composite = RigidInertia(body[0], Vector(*body[1:4]), Symmetric(*body[4:]))
        B = coriolis.body_coriolis(composite, S_k, composite @ S_k)
        first = composite @ coriolis.motion_cross(S_k, S_j) + coriolis.times(B, S_j)
        return [[x for part in y for x in part] for y in (first, coriolis.transposed_times(B, S_j))]

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

    def carriers(*body: Statement, of: Whole, skip: int = 0) -> For:
        return For(
            "i",
            entry("starts", of) + skip,
            entry("starts", of + 1),
            [Let("a", entry("carriers", I)), *body],
        )

    body: list[Statement] = [
        Declare(dict.fromkeys((*FIRST, *THIRD, VALUE), 0.0)),
        loops.step(
            prepared,
            [cells("q", setting.model.nq)],
            [_rows("axes", N, 6), _rows("bodies", N, 10)],
            apart=True,
        ),
        For("i", whole(0), whole(n**3), [loops.step(lambda: [[0.0]], [], [[Element("christoffel", I)]])]),
        For(
            "j",
            whole(0),
            whole(N),
            [
                pair(J),
                carriers(along(FIRST), added(A, J, J), of=J),
                For(
                    "p",
                    entry("starts", J) + 1,
                    entry("starts", J + 1),
                    [
                        Let("k", entry("carriers", name("p"))),
                        pair(K),
                        carriers(along(FIRST), added(A, J, K), added(A, K, J), of=J),
                        Let("a", K),
                        along(THIRD),
                        added(J, K, K),
                        carriers(along(THIRD), added(J, A, K), added(J, K, A), of=K, skip=1),
                    ],
                ),
            ],
        ),
    ]
    scratch = [Array("axes", "scratch", 6, N), Array("bodies", "scratch", 10, N)]
    return loops.nest(function, setting, scratch, body)


def _leaders(links: Mechanism) -> tuple[list[int], list[float]]:
    """For every axis the coordinate that moves it, and by how much."""
    leaders, ratios = [0] * len(links), [1.0] * len(links)
    for coordinate, (own, followers) in enumerate(coupling.leading(links)):
        leaders[own] = coordinate
        for axis, ratio in followers:
            leaders[axis], ratios[axis] = coordinate, ratio
    return leaders, ratios


# -- derivatives of forward dynamics ----------------------------------------------------------------------------------

SUMS = [Register(f"sum{k}") for k in range(BLOCK)]


def _forward_derivatives(function: Function, setting: Setting, dtype: Dtype) -> ProcedureNest:
    """M (∂q̈/∂q, ∂q̈/∂q̇, ∂q̈/∂τ) = (−∂τ/∂q, −∂τ/∂q̇, 1), by M = L D Lᵀ as in ``dense.factorised``."""
    links, n = setting.links(), setting.model.dof
    loops, sizes = _Loops(dtype), function.input_sizes(setting)
    state: list[Sequence[Place]] = [cells(key, size) for key, size in sizes.items()]

    def equation_of_motion(q: Any, qd: Any, tau: Any) -> list[list[Scalar]]:
        q, qd, tau = _expanded(links, q, qd, tau)
        still = links.grouped([0.0] * links.dof)
        bias = newton_euler.inverse_dynamics(links, q, qd, still)
        net = equation.torques_on_bodies(links, q, qd, tau, friction=setting.friction)
        right = [a - b for a, b in zip(flat(net), flat(bias), strict=True)]
        M = coupling.reduced(links, equation.mass_matrix(links, q), (True, True))
        return [[x for row in M for x in row], coupling.reduced(links, right, (True,))]

    def slopes(q: Any, qd: Any, qdd: Any) -> list[list[Scalar]]:
        q, qd, _ = _expanded(links, q, qd, qd)
        by_q, by_qd = derivatives_by_state(setting, q, qd, coupling.expanded(links, qdd))
        pairs = zip(*(coupling.reduced(links, matrix, (True, True)) for matrix in (by_q, by_qd)), strict=True)
        return [[-x for both in pairs for row in both for x in row]]

    width = 3 * n
    body: list[Statement] = [
        Declare(dict.fromkeys((*SUMS, VALUE), 0.0)),
        loops.step(equation_of_motion, state, [_rows("M", n, n), _rows("x", n, 1)], apart=True),
        *_factorised(loops, n),
        *_solved(loops, n, "x", 1, whole(0)),
        loops.step(
            slopes,
            [*state[:2], _rows("x", n, 1)],
            [[Element("X", whole(j), whole(i)) for i in range(n) for j in range(2 * n)]],
            apart=True,
        ),
        *_unit_rows(loops, n),
        For("b", whole(0), whole(width // BLOCK), _solved(loops, n, "X", BLOCK, name("b") * BLOCK)),
        *_solved(loops, n, "X", width % BLOCK, whole(width - width % BLOCK)),
        *_written(loops, list(function.shapes(setting.model)), n),
    ]
    scratch = [
        Array("M", "scratch", n, n),
        Array("scaled", "scratch", n, n),
        Array("pivots", "scratch", n),
        Array("x", "scratch", 1, n),
        Array("X", "scratch", width, n),
    ]
    return loops.nest(function, setting, scratch, body)


def _expanded(links: Mechanism, q: Any, qd: Any, tau: Any) -> tuple[Any, Any, Any]:
    """Positions, rates and torques of all axes from those of the coordinates."""
    return (
        coupling.expanded(links, q, positions=True),
        coupling.expanded(links, qd),
        coupling.expanded(links, tau, forces=True),
    )


def _rows(array: str, rows: int, columns: int) -> list[Place]:
    """All elements of an array, row by row."""
    return [Element(array, whole(j), whole(i)) for i in range(rows) for j in range(columns)]


def _less_product(loops: _Loops, a: Place, b: Sequence[Place], sums: Sequence[Register]) -> Step:
    """Every sum less a times its b."""

    def function(factor: Any, values: Any, before: Any) -> list[list[Scalar]]:
        return [[s - factor[0] * x for s, x in zip(before, values, strict=True)]]

    return loops.step(function, [[a], b, sums], [sums])


def _copied(loops: _Loops, source: Sequence[Place], target: Sequence[Place]) -> Step:
    return loops.step(lambda x: [list(x)], [source], [target])


def _factorised(loops: _Loops, n: int) -> list[Statement]:
    """L in the lower half of M, its columns times D in ``scaled``, and 1/D in ``pivots``."""
    at = {key: (lambda i, j, key=key: Element(key, j, i)) for key in ("M", "scaled")}

    def pivot(value: Any, own: Any) -> list[list[Scalar]]:
        return [[1.0 / where(value[0] > dense.ROUND_OFF * own[0], value[0], math.nan)]]

    def entries(value: Any, inverse: Any) -> list[list[Scalar]]:
        return [[value[0], value[0] * inverse[0]]]

    def less(i: Whole) -> list[Statement]:
        """M_ij less what the columns before j have of it."""
        product = _less_product(loops, at["M"](J, K), [at["scaled"](i, K)], [VALUE])
        return [_copied(loops, [at["M"](i, J)], [VALUE]), For("k", whole(0), J, [product])]

    own = Element("pivots", J)
    return [
        For(
            "j",
            whole(0),
            whole(n),
            [
                *less(J),
                loops.step(pivot, [[VALUE], [at["M"](J, J)]], [[own]]),
                For(
                    "i",
                    J + 1,
                    whole(n),
                    [
                        *less(I),
                        loops.step(entries, [[VALUE], [own]], [[at["scaled"](I, J), at["M"](I, J)]]),
                    ],
                ),
            ],
        )
    ]


def _solved(loops: _Loops, n: int, array: str, count: int, first: Whole) -> list[Statement]:
    """L D Lᵀ X = what ``count`` columns of an array hold, from column ``first``, in place."""
    if count == 0:
        return []
    sums = SUMS[:count]

    def row(i: Whole) -> list[Place]:
        return cells(array, count, first, i)

    def scaled(values: Any, inverse: Any) -> list[list[Scalar]]:
        return [[x * inverse[0] for x in values]]

    back = whole(n - 1) - I
    return [
        For(
            "i",
            whole(0),
            whole(n),
            [
                _copied(loops, row(I), sums),
                For("k", whole(0), I, [_less_product(loops, Element("M", K, I), row(K), sums)]),
                _copied(loops, sums, row(I)),
            ],
        ),
        For(
            "i",
            whole(0),
            whole(n),
            [
                loops.step(scaled, [row(back), [Element("pivots", back)]], [sums]),
                For("k", back + 1, whole(n), [_less_product(loops, Element("M", back, K), row(K), sums)]),
                _copied(loops, sums, row(back)),
            ],
        ),
    ]


def _unit_rows(loops: _Loops, n: int) -> list[Statement]:
    """The unit matrix in columns 2n to 3n of X."""
    zero = loops.step(lambda: [[0.0]], [], [[Element("X", J + 2 * n, I)]])
    one = loops.step(lambda: [[1.0]], [], [[Element("X", I + 2 * n, I)]])
    return [For("i", whole(0), whole(n), [For("j", whole(0), whole(n), [zero]), one])]


def _written(loops: _Loops, outputs: Sequence[str], n: int) -> list[Statement]:
    """The blocks of X to the outputs; the last, M⁻¹, has its upper half copied to the lower."""
    by_q, by_qd, by_tau = outputs
    rows: list[Statement] = [
        For(
            "j",
            whole(0),
            whole(n),
            [
                _copied(loops, [Element("X", J + k * n, I)], [Element(key, I * n + J)])
                for k, key in enumerate((by_q, by_qd))
            ],
        ),
        For(
            "j",
            I,
            whole(n),
            [
                loops.step(
                    lambda x: [[x[0], x[0]]],
                    [[Element("X", J + 2 * n, I)]],
                    [[Element(by_tau, I * n + J), Element(by_tau, J * n + I)]],
                )
            ],
        ),
    ]
    return [For("i", whole(0), whole(n), rows)]


LOOPED: dict[str, Callable[[Function, Setting, Dtype], ProcedureNest]] = {
    "christoffel": _christoffel,
    "forward_dynamics_derivatives": _forward_derivatives,
}
