"""Bounds of the divisors of forward dynamics, which interval arithmetic cannot keep away from 0.

The recursion divides by d_i, the inertia that joint i feels when the joints behind it are free. These are the pivots of
the mass matrix, eliminated from the tips to the base: d_i = min over x of zᵀMz with z = (1, x) on joint i and those
behind it. So

- d_i is at least the inertia of link i alone about its own joint, for all positions;
- d_i is concave in M. Between the points of a grid M is an interpolation plus E with xᵀEx ≥ −Σ δ_j·x_j²
  (``motion_constants``), so that the smallest pivot of M − diag(δ) at a point is a lower bound;
- zᵀM(q)z with any fixed z is an upper bound.

Which divisor of a program is which pivot is found from their values at random states of the box, to ten digits. Bounds
have a margin for constants of the program that are rounded otherwise than those of the mass matrix.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linkwise.compiler.ir.graph import Node
from linkwise.compiler.ir.program import Program
from linkwise.compiler.ir.schedule import LoopRegion
from linkwise.evidence import search, shared_energy
from linkwise.evidence.box import Box
from linkwise.evidence.forms import analyse
from linkwise.evidence.intervals import Interval
from linkwise.evidence.motion_constants import MassMatrices
from linkwise.evidence.suprema import supremum
from linkwise.robot.robot import Robot

_STATES = 16
"""Random states at which divisors are compared with pivots."""
_ALIKE = 1e-10
_MARGIN = 1e-8
"""Of bounds, relative: more than rounding of pivots of matrices whose scaled eigenvalues are above ``_REGULAR``."""
_REGULAR = 1e-6
_POINTS = 3000
"""Of the grid of mass matrices."""


def divisors(robot: Robot, program: Program, box: Box) -> dict[Node, Interval]:
    """Intervals of those divisors of a program that are pivots of the mass matrix, up to the sign.

    Args:
        robot: the robot.
        program: straight-line.
        box: of its inputs.
    """
    divided = list(dict.fromkeys(node.args[1] for node in program.nodes() if node.op == "div"))
    divided = [node for node in divided if node.op not in ("const", "input")]
    n = robot.dof
    if not divided or "q" not in box.bounds or len(box.bounds["q"][0]) != n:
        return {}
    kernel: Any = robot.kernel("mass_matrix")
    masses = kernel.program("float64")
    if not isinstance(masses, Program) or any(isinstance(item, LoopRegion) for item in masses.body):
        return {}
    states = box.draw(np.random.default_rng(0), _STATES, corners=0.0)
    expected = pivots(np.asarray(robot.mass_matrix(states["q"]), dtype=float))
    values = search.exact(program, states, None, divided)[0].astype(float)
    known: dict[Node, Interval] = {}
    bounds: list[Interval] | None = None
    for node, found in zip(divided, values.T, strict=True):
        for joint in range(n):
            sign = 1.0 if found[0] > 0 else -1.0
            if np.allclose(sign * found, expected[:, joint], rtol=_ALIKE, atol=0.0):
                bounds = pivot_bounds(robot, masses, box) if bounds is None else bounds
                low, high = bounds[joint]
                known[node] = (low, high) if sign > 0 else (-high, -low)
                break
    return known


def pivots(matrices: np.ndarray) -> np.ndarray:
    """Pivots of symmetric matrices (states, n, n), eliminated from the last joint to the first: (states, n).

    Args:
        matrices: mass matrices.
    """
    left, n = matrices.copy(), matrices.shape[1]
    for k in reversed(range(n)):
        column = left[:, :k, k]
        left[:, :k, :k] -= column[:, :, None] * column[:, None, :] / left[:, k, k][:, None, None]
    return np.diagonal(left, axis1=1, axis2=2).copy()


def pivot_bounds(robot: Robot, masses: Program, box: Box) -> list[Interval]:
    """Lower and upper bound of every pivot over the positions of a box.

    Args:
        robot: the robot.
        masses: the program of its mass matrix.
        box: with the positions q.
    """
    n = robot.dof
    forms = analyse(masses, Box({"q": box.bounds["q"]}))
    least = _of_grid(MassMatrices(forms, n, _POINTS))
    least = np.maximum(least, shared_energy.own_inertias(robot))
    middle = np.asarray(robot.mass_matrix(box.middle("q")), dtype=float)
    lower, upper = forms.angle_bounds()
    found = []
    for joint in range(n):
        rest = slice(joint + 1, n)
        z = np.concatenate(
            [np.zeros(joint), [1.0], -np.linalg.solve(middle[rest, rest], middle[rest, joint])]
        )
        total = None
        for i in range(joint, n):
            for j in range(joint, n):
                term = forms.form(masses.values[0][i * n + j])
                assert term is not None
                total = term.scaled(z[i] * z[j]) if total is None else total + term.scaled(z[i] * z[j])
        assert total is not None
        most = supremum(total, lower, upper, variables=len(forms.variables), tolerance=0.05, seconds=1.0).high
        found.append((float(least[joint]) * (1.0 - _MARGIN), most * (1.0 + _MARGIN)))
    return [(low, high) if 0.0 < low <= high else (-math.inf, math.inf) for low, high in found]


def _of_grid(grid: MassMatrices) -> np.ndarray:
    """The smallest pivots of M − diag(δ) at the points of a grid; 0 where that is not positive definite."""
    least = np.full(grid.n, math.inf)
    for some in grid.blocks():
        for joint in range(grid.n):
            part = some[:, joint:, joint:] - np.diag(grid.lost(joint))
            scale = np.sqrt(grid.sizes[joint:])
            if np.linalg.eigvalsh(part / np.outer(scale, scale))[:, 0].min() > _REGULAR:
                least[joint] = min(least[joint], float(pivots(part)[:, 0].min()))
            else:
                least[joint] = 0.0
    return least
