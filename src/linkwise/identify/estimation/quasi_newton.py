"""The quasi-Newton method with limited memory (L-BFGS), with the same bits on every processor.

SciPy's hands its products to a BLAS library, whose rounding depends on the processor: after a hundred steps that is
another motion. Steps are searched by bisection for the weak Wolfe conditions (Lewis and Overton 2013), which also
works where a function has edges, as the condition number of a matrix has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from linkwise.solve.linear import dot

DECREASE, CURVATURE = 1e-4, 0.9  # of the Wolfe conditions
TRIALS = 25  # of step lengths
FLAT = 1e-6  # a largest entry of the gradient, relative to the value, that ends the search
SMALL = 1e-8  # a relative decrease in ``STALLED`` steps that ends the search
STALLED = 5

Cost = Callable[[np.ndarray], tuple[float, np.ndarray]]


@dataclass(frozen=True)
class Minimum:
    """Where a search ended. ``converged``: at a point from which no step decreases the function any more, or hardly;
    not at the limit of iterations."""

    x: np.ndarray
    value: float
    converged: bool
    iterations: int


def minimize(cost: Cost, x: np.ndarray, iterations: int, memory: int = 20) -> Minimum:
    """A local minimum of a function.

    Args:
        cost: gives the value and the gradient (k,) at x (k,).
        x: where to begin, shape (k,).
        iterations: steps at most.
        memory: how many steps are remembered.
    """
    value, gradient = cost(x)
    steps: list[np.ndarray] = []
    changes: list[np.ndarray] = []
    values = [value]
    for number in range(iterations):
        if np.abs(gradient).max(initial=0.0) <= FLAT * max(abs(value), 1.0):
            return Minimum(x, value, True, number)
        direction = -_times_inverse(gradient, steps, changes)
        slope = dot(direction, gradient)
        if not slope < 0.0:  # rounding has spoilt the memory
            steps, changes, direction = [], [], -gradient
            slope = -dot(gradient, gradient)
        first = 1.0 if steps else 1.0 / max(1.0, float(np.sqrt(dot(gradient, gradient))))
        moved = _step(cost, x, value, direction, slope, first)
        if moved is None:
            if not steps:
                return Minimum(x, value, True, number)
            steps, changes = [], []  # once more along the gradient
            continue
        new, value, new_gradient = moved
        step, change = new - x, new_gradient - gradient
        if dot(step, change) > 0.0:
            steps, changes = [*steps, step][-memory:], [*changes, change][-memory:]
        x, gradient = new, new_gradient
        values.append(value)
        before = values[-1 - STALLED] if len(values) > STALLED else np.inf
        if before - value <= SMALL * max(abs(value), 1.0):
            return Minimum(x, value, True, number + 1)
    return Minimum(x, value, False, iterations)


def _times_inverse(gradient: np.ndarray, steps: list[np.ndarray], changes: list[np.ndarray]) -> np.ndarray:
    """The gradient times the inverse Hessian matrix that the last steps tell (Nocedal's two loops)."""
    found = gradient.copy()
    factors: list[float] = []
    for step, change in zip(reversed(steps), reversed(changes), strict=True):
        factors.append(dot(step, found) / dot(step, change))
        found -= factors[-1] * change
    if steps:
        found *= dot(steps[-1], changes[-1]) / dot(changes[-1], changes[-1])
    for step, change, factor in zip(steps, changes, reversed(factors), strict=True):
        found += (factor - dot(change, found) / dot(step, change)) * step
    return found


def _step(
    cost: Cost, x: np.ndarray, value: float, direction: np.ndarray, slope: float, size: float
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """The next point with its value and gradient; None where no step decreases the function."""
    low, high = 0.0, np.inf
    best: tuple[np.ndarray, float, np.ndarray] | None = None
    for _ in range(TRIALS):
        new = x + size * direction
        found, gradient = cost(new)
        if not found <= value + DECREASE * size * slope:
            high = size
        else:
            best = new, found, gradient
            if dot(gradient, direction) >= CURVATURE * slope:
                return best
            low = size
        size = 0.5 * (low + high) if np.isfinite(high) else 2.0 * low
    return best
