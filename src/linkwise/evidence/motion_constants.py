"""Constants of the equation of motion that robust and adaptive control ask for, as bounds over all joint positions.

For all positions within the joint limits and all velocities x, y:

    λ_least·|x|² ≤ xᵀM(q)x ≤ λ_most·|x|²,  |g(q)| ≤ k_gravity,  |C(q, x)y| ≤ k_coriolis·|x|·|y|

Between the points of a grid, the mass matrix differs from its multilinear interpolation by E with |E_ij| ≤ e_ij, and an
interpolation has eigenvalues between those of the corners. xᵀEx is at most Σ_i d_i·x_i² with d_i = Σ_j e_ij·t_j/t_i,
for any t > 0, so that the eigenvalues of M ∓ diag(d) at the points bound those of M everywhere. The smallest eigenvalue
has a second bound, from the energies of pairs of links (``shared_energy``); the better one counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.evidence import shared_energy
from linkwise.evidence.box import box_of
from linkwise.evidence.forms import Forms, analyse
from linkwise.evidence.series import Series
from linkwise.evidence.suprema import Lattice, Region, curvatures, largest, supremum
from linkwise.robot.robot import Robot

_BLOCK = 1 << 14


@dataclass(frozen=True)
class Constants:
    """Bounds of the equation of motion of one robot over its joint limits.

    Args:
        robot: its name.
        least_inertia: lower bound of the smallest eigenvalue of the mass matrix [kg·m² or kg]; not above 0: positive
            definiteness was not shown.
        least_inertia_found: the smallest at a point of the grid.
        most_inertia: upper bound of the largest eigenvalue [kg·m² or kg].
        most_inertia_found: the largest at a point of the grid.
        gravity: bound of |g(q)| [N·m or N].
        gravity_found: the largest at a point of the grid.
        coriolis: bound k of |C(q, x)y| ≤ k·|x|·|y| [kg·m² or kg].
        points: of the grid of the mass matrix.
    """

    robot: str
    least_inertia: float
    least_inertia_found: float
    most_inertia: float
    most_inertia_found: float
    gravity: float
    gravity_found: float
    coriolis: float
    points: int

    @property
    def definite(self) -> bool:
        """Whether the mass matrix was shown to be positive definite for all positions."""
        return self.least_inertia > 0.0


def constants(robot: Robot, *, points: int = 200_000) -> Constants:
    """Bounds of the equation of motion over all positions within the joint limits.

    Args:
        robot: the robot; positions of joints without limits are within ±π.
        points: of the grid of the mass matrix, at most; more give closer bounds.

    Raises:
        EvidenceError: the functions of the robot are not straight-line code.
    """
    masses = _analysed(robot, "mass_matrix")
    (least, least_found), most, count = _eigenvalues(masses, robot.dof, points)
    least = max(least, shared_energy.least_inertia(robot))
    gravity, found = _gravity(_analysed(robot, "gravity_torques"))
    return Constants(robot.name, least, least_found, *most, gravity, found, _coriolis(robot), count)


def _analysed(robot: Robot, function: str) -> Forms:
    kernel: Any = robot.kernel(function)
    program = kernel.program("float64")
    return analyse(program, box_of(robot, program.inputs))


def _series(forms: Forms) -> list[Series]:
    found = [forms.form(node) for nodes in forms.program.values for node in nodes]
    assert all(s is not None for s in found)
    return [s for s in found if s is not None]


class MassMatrices:
    """The mass matrix at the points of a grid, and what it may differ from its interpolation between them.

    Args:
        forms: of the mass matrix over a box.
        n: the number of joints.
        points: of the grid, at most.
    """

    def __init__(self, forms: Forms, n: int, points: int):
        entries = _series(forms)
        region, variables = Region(*forms.angle_bounds()), len(forms.variables)
        used = sorted({j for s in entries for j in s.angles()})
        widths, self.n = region.widths, n
        self.sizes = np.array(
            [max(largest(entries[i * n + i], region, variables, 0.3), 1e-300) for i in range(n)]
        )
        # a symmetric matrix has equal nodes
        known = {id(s): curvatures(s, region, variables)[used] for s in entries}
        bends = np.array([known[id(s)] for s in entries]).reshape(n * n, len(used))
        scaled = bends / np.sqrt(np.outer(self.sizes, self.sizes)).reshape(-1, 1)
        cells = _cells(widths[used], scaled.max(axis=0, initial=0.0), points)
        steps = widths[used] / cells
        self.between = (bends @ (steps**2 / 8)).reshape(n, n)
        # what is not a function of angles alone (positions of sliding joints) counts with its size
        self.between += np.array([_of_variables(s) + s.error for s in entries]).reshape(n, n)
        self.axes = [region.points(j, int(k)) for j, k in zip(used, cells, strict=True)]
        self.grids = [Lattice(_of_angles(s), used) for s in entries]

    def lost(self, first: int = 0) -> np.ndarray:
        """d of xᵀEx ≤ Σ d_i·x_i², for the joints from one on."""
        sizes = self.sizes[first:]
        between = self.between[first:, first:]
        return (between * np.sqrt(np.outer(sizes, 1 / sizes))).sum(axis=1) * (1 + 1e-9)

    def blocks(self) -> Iterator[np.ndarray]:
        """(points, n, n), some points at a time."""
        for parts in zip(*(g.values(self.axes) for g in self.grids), strict=True):
            table = np.stack([values.sum(axis=0) for _, values in parts], axis=-1).reshape(-1, self.n, self.n)
            for start in range(0, len(table), _BLOCK):
                yield table[start : start + _BLOCK]


def _eigenvalues(forms: Forms, n: int, points: int) -> tuple[tuple[float, float], tuple[float, float], int]:
    """(bound, found) of the smallest and of the largest eigenvalue, and the number of points."""
    grid = MassMatrices(forms, n, points)
    d = grid.lost()
    found = [math.inf, -math.inf, math.inf, -math.inf]
    count = 0
    for some in grid.blocks():
        count += len(some)
        middle = np.linalg.eigvalsh(some)
        low, high = np.linalg.eigvalsh(some - np.diag(d)), np.linalg.eigvalsh(some + np.diag(d))
        found[0] = min(found[0], float(low[:, 0].min()))
        found[1] = max(found[1], float(high[:, -1].max()))
        found[2] = min(found[2], float(middle[:, 0].min()))
        found[3] = max(found[3], float(middle[:, -1].max()))
    slack = 1e-10 * found[1]  # rounding of eigenvalues of small symmetric matrices and of their elements
    return (found[0] - slack, found[2]), (found[1] + slack, found[3]), count


def _of_angles(series: Series) -> Series:
    """The part without other variables."""
    parts = {m: p for m, p in series.parts.items() if m == ()}
    return Series(series.packing, parts, series.degree)


def _of_variables(series: Series) -> float:
    return sum(float(np.abs(c).sum()) for m, (_, c) in series.parts.items() if m)


def _cells(widths: np.ndarray, bends: np.ndarray, points: int) -> np.ndarray:
    """Cells along each angle: about equal errors, and not more points than wanted."""
    if not len(widths):
        return np.ones(0, dtype=int)
    shape = widths * np.sqrt(np.maximum(bends, 1e-12))
    scale = (points / float(np.prod(shape))) ** (1 / len(shape))
    cells = np.maximum(1, np.floor(shape * scale)).astype(int)
    while np.prod(cells + 1.0) > points and cells.max() > 1:
        cells[np.argmax(cells)] -= 1
    return cells


def _gravity(forms: Forms) -> tuple[float, float]:
    """(bound, found) of the length of the gravity torques."""
    total: Series | None = None
    for s in _series(forms):
        square = s * s
        total = square if total is None else total + square
    assert total is not None
    lower, upper = forms.angle_bounds()
    found = supremum(total, lower, upper, variables=len(forms.variables), tolerance=0.05)
    reached = float(total(found.most[0], found.most[1]))
    return math.sqrt(max(found.high, 0.0)) * (1 + 1e-12), math.sqrt(max(reached, 0.0))


def _coriolis(robot: Robot) -> float:
    """From bounds of every Christoffel symbol: the largest singular value of the (n, n²) matrix of them."""
    forms = _analysed(robot, "christoffel")
    n = robot.dof
    symbols = _series(forms)
    region, variables = Region(*forms.angle_bounds()), len(forms.variables)
    known = {
        id(s): largest(s, region, variables, 0.3) for s in symbols
    }  # a symbol and its mirror image are one node
    table = np.array([known[id(s)] for s in symbols]).reshape(n, n * n)
    return float(np.linalg.norm(table, 2)) * (1 + 1e-9)
