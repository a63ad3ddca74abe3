"""Which of the published operation counts belong to which of our algorithms; the counts themselves are in the records.

Sines and cosines are not among them, divisions are counted as multiplications.
"""

from __future__ import annotations

from linkwise.records.published import FIJANY, IZAGUIRRE, KOZLOWSKI, PUBLISHED, VALERA, Published

JOINTS = 6  # of the arms for which numbers, not formulas, were printed

# (function, algorithm): (task in the records, source, how its place in the paper begins)
OURS: dict[tuple[str, str], tuple[tuple[str, str, str], ...]] = {
    ("inverse_dynamics", "newton_euler"): (
        ("inverse_dynamics", "Khosla 1986", ""),
        ("inverse_dynamics", "Luh–Walker–Paul 1980", "Valera's count"),
    ),
    ("inverse_dynamics", "boundary_value"): (("inverse_dynamics", KOZLOWSKI, ""),),
    ("inverse_dynamics", "gibbs_appell"): (("inverse_dynamics", VALERA, "Table 3"),),
    ("forward_dynamics", "kalman"): (
        ("forward_dynamics", KOZLOWSKI, ""),
        ("forward_dynamics", "Brandl–Johanni–Otter 1986", ""),
    ),
    ("forward_dynamics", "conjugate_gradient"): (("conjugate_gradient", FIJANY, ""),),
    ("coefficients", "compound_link"): (("coefficients", IZAGUIRRE, ""),),
    ("velocity_torques", "velocity_recursion"): (("velocity_torques", IZAGUIRRE, ""),),
}


def published(function: str, algorithm: str, axes: str, n: int, robot: str) -> list[tuple[str, int, int]]:
    """(source, multiplications, additions) of each printed count for an arm of n revolute joints.

    ``axes``: "general" or "perpendicular", as the papers classify arms. Where nothing was printed for parallel and
    perpendicular axes, the count for any axes is given instead, and marked.
    """
    wanted = OURS.get((function, algorithm), ()) if n >= 3 else ()
    rows = [row for mark in wanted for row in PUBLISHED if _is(row, mark) and (row.is_formula or n == JOINTS)]
    special = [row for row in rows if row.robot in (axes, robot)]
    if special:
        return [_named(row, "", n) for row in special]
    return [_named(row, " (any axes)", n) for row in rows if row.robot == "general"]


def _is(row: Published, mark: tuple[str, str, str]) -> bool:
    task, source, where = mark
    return row.task == task and row.source == source and row.where.startswith(where)


def _named(row: Published, remark: str, n: int) -> tuple[str, int, int]:
    multiplications, additions = row.at(n)
    assert additions is not None
    return row.source.rpartition(" ")[0].removesuffix(" et al.") + remark, multiplications, additions
