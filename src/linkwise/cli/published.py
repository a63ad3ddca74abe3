"""Operation counts that the papers print, for an arm of n revolute joints; sines and cosines are not among them.

Divisions are counted as multiplications. "general": any twist angles; "perpendicular": adjacent axes are parallel or
perpendicular. Every count is for arms with all offsets and all ten parameters of every link.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Count = Callable[[int], tuple[int, int]]  # n -> (multiplications, additions)


@dataclass(frozen=True)
class Published:
    """One printed count."""

    function: str
    algorithm: str
    axes: str
    source: str
    count: Count
    joints: int | None = None  # printed for this number of joints only
    robot: str | None = None  # printed for this robot only


PUBLISHED = (
    Published("inverse_dynamics", "newton_euler", "general", "Khosla", lambda n: (678, 521), joints=6),
    Published("inverse_dynamics", "newton_euler", "perpendicular", "Khosla", lambda n: (500, 403), joints=6),
    Published(
        "inverse_dynamics",
        "newton_euler",
        "general",
        "Luh–Walker–Paul",
        lambda n: (121 * n - 112, 90 * n - 82),
    ),
    Published(
        "inverse_dynamics", "boundary_value", "general", "Kozłowski", lambda n: (142 * n - 151, 109 * n - 134)
    ),
    Published(
        "inverse_dynamics",
        "boundary_value",
        "perpendicular",
        "Kozłowski",
        lambda n: (106 * n - 113, 89 * n - 102),
    ),
    Published(
        "inverse_dynamics", "gibbs_appell", "general", "Valera", lambda n: (121 * n - 136, 91 * n - 116)
    ),
    Published("forward_dynamics", "kalman", "general", "Kozłowski", lambda n: (270 * n - 359, 264 * n - 411)),
    Published("forward_dynamics", "kalman", "general", "Brandl", lambda n: (250 * n - 222, 220 * n - 198)),
    Published(
        "forward_dynamics",
        "conjugate_gradient",
        "general",
        "Fijany–Scheid",
        lambda n: (47 * n * n + 177 * n - 117, 46 * n * n + 118 * n - 87),
    ),
    Published(
        "coefficients",
        "compound_link",
        "perpendicular",
        "Izaguirre",
        lambda n: (98, 70),
        robot="puma260",
    ),
    Published(
        "velocity_torques",
        "velocity_recursion",
        "perpendicular",
        "Izaguirre",
        lambda n: (140, 110),
        robot="puma260",
    ),
)


def published(function: str, algorithm: str, axes: str, n: int, robot: str) -> list[tuple[str, int, int]]:
    """(source, multiplications, additions) of each printed count for such an arm.

    Where nothing was printed for parallel and perpendicular axes, the count for any axes stands in, and says so.
    """
    fitting = [
        row
        for row in PUBLISHED
        if (row.function, row.algorithm) == (function, algorithm)
        and row.joints in (None, n)
        and row.robot in (None, robot)
        and n >= 3
    ]
    special = [row for row in fitting if row.axes == axes]
    mark = "" if special else " (any axes)"
    return [(row.source + mark, *row.count(n)) for row in special or fitting]
