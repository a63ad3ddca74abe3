"""About how many operations functions of a robot take, from the number of its links and of pairs that carry each other.

What is compiled as straight-line code and what as loops is decided by that, see ``kernels.form``.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.model import Model


class Cost(NamedTuple):
    """About how many operations a function takes, measured on chains and trees."""

    link: int = 0  # for every link
    pair: int = 0  # for every two links of which one carries the other, counted twice, and for every link
    dense: int = 0  # for every two coordinates of one tree: where an inverse fills all of a matrix
    triple: int = 0  # for every link and pair


ONE_PASS = Cost(link=400)


def extent(model: Model) -> tuple[int, int, int]:
    """What the fields of ``Cost`` are multiplied by: n, n² and n² for a chain of n links, less for trees.

    A floating joint counts as two links, because its link has six axes.
    """
    known = model.__dict__.get("_extent")
    if known is None:
        above = {joint.child: joint for joint in model.joints}
        depths: dict[str, int] = {}  # of the link behind a joint, by the joint's name
        trees: dict[str, str] = {}  # the first moving joint below, by the joint's name
        coordinates: dict[str, int] = {}
        links = pairs = 0
        for joint in model.moving_joints:
            below = above.get(joint.parent)
            while below is not None and not below.moves:
                below = above.get(below.parent)
            weight = -(-joint.dof // 3)
            carried = depths[below.name] if below else 0
            depths[joint.name] = carried + weight
            links += weight
            pairs += weight * (2 * carried + weight)
            tree = trees[joint.name] = trees[below.name] if below else joint.name
            coordinates[tree] = coordinates.get(tree, 0) + joint.dof
        known = model.__dict__["_extent"] = (links, pairs, sum(n * n for n in coordinates.values()))
    return known


SOLVED_ROWS = (
    "consistent_inverse",
    "constraint_forces",
    "constrained_forward_dynamics",
    "constraint_residuals",
    "constraint_rank",
    "delassus_matrix",
    "impact",
)
"""Functions that multiply rows by M⁻¹: those of a frame or of constraints."""


def solved_rows(model: Model, name: str) -> int | None:
    """How many rows are multiplied by M⁻¹ row by row; None: they are multiplied by all of it."""
    from linkwise.algorithms.kalman import solves_rows

    rows = 6 if name == "consistent_inverse" else model.constraint_rows
    coupled = any(relation is not None for relation in model.followed)
    return rows if solves_rows(model.dof, rows, coupled) else None


def is_chain(model: Model) -> bool:
    """Whether every moving link carries the next one, by joints with one axis each."""
    links, pairs, _ = extent(model)
    return pairs == links * links and links == model.dof
