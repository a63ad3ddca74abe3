"""Free bodies that a robot holds: their velocities relative to the link that carries what they touch.

A cube between two fingers touches links whose last common link is the hand H. Its velocity u relative to the hand takes
the place of its own, v_f = u + X v_H with the velocity X v_H of the hand at the body, in the axes of the body. Contacts
with the fingers then move with u and with the joints between hand and fingers alone: the joints of the arm have no part
in them. In these coordinates

    M' = | M_aa + Xᵀ M_ff X   Xᵀ M_ff |
         | M_ff X             M_ff    |                                                                             (1)

Coordinates that no contact, stop or friction is about are eliminated once, before the first step of an iteration:
S = M'_rr − M'_re M'_ee⁻¹ M'_er is all that contacts feel of them. Impulses are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from linkwise.algorithms import dense
from linkwise.algorithms.contact.candidates import Candidate
from linkwise.algorithms.contact.filtered import Touching
from linkwise.algorithms.kinematics import Pose, axis_in_base
from linkwise.joint_laws import is_zero
from linkwise.model.mechanism import Mechanism
from linkwise.scalar import Scalar, stage

Rows = list[list[Scalar]]


@dataclass(frozen=True, eq=False)
class _Carried:
    """A free body: its six coordinates, those of the joints that move its carrier, and X."""

    body: int
    own: list[int]
    behind: list[int]
    X: Rows


def reduced(
    links: Mechanism,
    frames: Sequence[Pose],
    candidates: Sequence[Candidate],
    problem: Touching,
    is_held: bool = False,
) -> tuple[Touching, Callable[[Sequence[Scalar]], list[Scalar]]]:
    """(the same problem in fewer coordinates, what turns velocities into these coordinates).

    Args:
        links: of the scene.
        frames: poses whose axes the velocities are along.
        candidates: what may touch what.
        problem: in the velocities of all coordinates.
        is_held: whether constraints or joints that follow others couple coordinates; bodies keep theirs then.
    """
    with stage("relative velocities"):
        carried = [] if is_held else _carried(links, frames, candidates)
        M = _relative_inertia(problem.M, carried)
        rows = [list(row) for row in problem.rows]
        turning = [[list(row) for row in each.rows] for each in problem.turning]
        for each in carried:
            for k, candidate in enumerate(candidates):
                if each.body in (candidate.body, candidate.other):
                    _clear(rows[3 * k : 3 * k + 3], each.behind)
            for part, own in zip(problem.turning, turning, strict=True):
                touching = candidates[part.contact]
                if each.body in (touching.body, touching.other):
                    _clear(own, each.behind)
        used = [
            *rows,
            *problem.joint_rows,
            *(row for own in turning for row in own),
            *(r for p in problem.patches for r in p.rows),
        ]
        left = [k for k in range(len(M)) if not all(is_zero(row[k]) for row in used)]
        S = _without(M, [k for k in range(len(M)) if k not in left])

    def restricted(v: Sequence[Scalar]) -> list[Scalar]:
        y = list(v)
        for each in carried:
            behind = [v[k] for k in each.behind]
            for k, row in zip(each.own, each.X, strict=True):
                y[k] = v[k] - dense.dot(row, behind)
        return [y[k] for k in left]

    def columns(all_rows: Rows) -> Rows:
        return [[row[k] for k in left] for row in all_rows]

    smaller = replace(
        problem,
        M=columns([S[k] for k in left]),
        rows=columns(rows),
        joint_rows=columns(problem.joint_rows),
        turning=[
            replace(each, rows=columns(own)) for each, own in zip(problem.turning, turning, strict=True)
        ],
        patches=[replace(patch, rows=columns(patch.rows)) for patch in problem.patches],
    )
    return smaller, restricted


def _carried(links: Mechanism, frames: Sequence[Pose], candidates: Sequence[Candidate]) -> list[_Carried]:
    """Free bodies that touch links of one branch and nothing that is fixed."""
    first = links.first_coordinates()
    found: list[_Carried] = []
    for body, link in enumerate(links):
        if not link.floating or link.children:
            continue
        others = _others(candidates, body)
        if not others or -1 in others or any(each.body in others for each in found):
            continue
        chains = [{k, *links.ancestors(k)} for k in others]
        shared = set[int].intersection(*chains)
        if not shared:
            continue
        pose, own = frames[body], list(range(first[body], first[body] + 6))
        behind = [(k, axis) for k in sorted(shared) for axis in links[k].axes]
        axes = [axis_in_base(axis, pose) for axis in link.axes]
        moved = [axis_in_base(axis, frames[k], pose.position) for k, axis in behind]
        turning = [[axis.angular.dot(each.angular) for each in moved] for axis in axes[:3]]
        moving = [[axis.linear.dot(each.linear) for each in moved] for axis in axes[3:]]
        places = [first[k] + i for k in sorted(shared) for i in range(len(links[k].axes))]
        found.append(_Carried(body, own, places, [*turning, *moving]))
    return found


def _others(candidates: Sequence[Candidate], body: int) -> set[int]:
    """Links that a body may touch, −1 for what is fixed or not known before."""
    others: set[int] = set()
    for each in candidates:
        if each.pool:
            if any(body == one.body for one in each.pool):
                others.add(-1)
        elif each.body == body:
            others.add(-1 if each.other is None else each.other)
        elif each.other == body:
            others.add(each.body)
    return others


def _relative_inertia(M: Rows, carried: Sequence[_Carried]) -> Rows:
    """(1)."""
    inertia = [list(row) for row in M]
    for each in carried:
        block = [[inertia[i][j] for j in each.own] for i in each.own]
        columns = dense.transposed(each.X)
        pushed = [[dense.dot(row, column) for row in block] for column in columns]  # (M_ff X)ᵀ
        for place, i in enumerate(each.behind):
            for j, value in zip(each.own, pushed[place], strict=True):
                inertia[i][j] = inertia[j][i] = value
            for other in range(place + 1):
                j = each.behind[other]
                inertia[i][j] = inertia[j][i] = inertia[i][j] + dense.dot(columns[other], pushed[place])
    return inertia


def _clear(rows: Rows, places: Sequence[int]) -> None:
    for row in rows:
        for k in places:
            row[k] = 0.0


def _without(M: Rows, eliminated: Sequence[int]) -> Rows:
    """S: the matrix after these coordinates are eliminated, from the last to the first."""
    S, gone = [list(row) for row in M], set[int]()
    for k in reversed(eliminated):
        gone.add(k)
        inverse = 1.0 / S[k][k]
        others = [i for i in range(len(S)) if i not in gone and not is_zero(S[i][k])]
        for place, i in enumerate(others):
            factor = S[i][k] * inverse
            for j in others[: place + 1]:
                S[i][j] = S[j][i] = S[i][j] - factor * S[k][j]
    return S
