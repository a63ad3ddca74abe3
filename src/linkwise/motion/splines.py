"""Through via points: cubic splines (continuous acceleration) and quintic ones (continuous jerk and its
derivative).
"""

from __future__ import annotations

import numpy as np

from linkwise.errors import ShapeError
from linkwise.files.tables import bounds
from linkwise.motion import arguments
from linkwise.motion.polynomial import PiecewisePolynomial, quintic_coefficients
from linkwise.motion.trajectory import Samples
from linkwise.solve import linear

LARGE = 600  # equations from which LAPACK solves them: faster, but with the rounding of the processor


def cubic_spline(times, points, *, velocity: tuple | None = (0.0, 0.0)) -> PiecewisePolynomial:
    """A cubic spline, twice continuously differentiable.

    Args:
        times: [s], shape (m,).
        points: positions [rad or m], shape (m, n).
        velocity: at the first and the last point, two numbers or two vectors; None: zero acceleration there instead.
    """
    times, points = _checked(times, points)
    m, n = points.shape
    bounds.check(f"the equations of a spline through {m} points", m**2)
    h = np.diff(times)
    slope = np.diff(points, axis=0) / h[:, np.newaxis]
    # unknown: the velocities at the points; equal accelerations on both sides of each of them
    A, right = np.zeros((m, m)), np.zeros((m, n))
    for k in range(1, m - 1):
        before, after = 1 / h[k - 1], 1 / h[k]
        A[k, k - 1 : k + 2] = before, 2 * (before + after), after
        right[k] = 3 * (slope[k - 1] * before + slope[k] * after)
    if velocity is None:
        A[0, :2], right[0] = (2, 1), 3 * slope[0]
        A[-1, -2:], right[-1] = (1, 2), 3 * slope[-1]
    else:
        A[0, 0] = A[-1, -1] = 1
        right[0], right[-1] = arguments.pair("velocity", velocity, n)
    v = _solved(A, right)
    H = h[:, np.newaxis]
    with np.errstate(all="ignore"):  # what leaves the range of numbers is refused by PiecewisePolynomial
        second, third = (3 * slope - 2 * v[:-1] - v[1:]) / H, (v[:-1] + v[1:] - 2 * slope) / H / H
    coefficients = np.stack([points[:-1], v[:-1], second, third], axis=1)
    return PiecewisePolynomial(times, coefficients)


def quintic_spline(
    times, points, *, velocity: tuple = (0.0, 0.0), acceleration: tuple = (0.0, 0.0)
) -> PiecewisePolynomial:
    """A quintic spline, four times continuously differentiable.

    Args:
        times: [s], shape (m,).
        points: positions [rad or m], shape (m, n).
        velocity: at the first and the last point, two numbers or two vectors.
        acceleration: likewise.
    """
    times, points = _checked(times, points)
    m, n = points.shape
    bounds.check(f"the equations of a spline through {m} points", (2 * m) ** 2)
    h = np.diff(times)
    # unknown: velocity and acceleration at every point; equal third and fourth derivatives on both sides
    A, right = np.zeros((2 * m, 2 * m)), np.zeros((2 * m, n))
    for k in range(1, m - 1):
        for derivative, row in ((3, 2 * k), (4, 2 * k + 1)):
            (qa, va, aa, qb, vb, ab), (qc, vc, ac, qd, vd, ad) = (
                _derivative_weights(h[k - 1], derivative, at_end=True),
                _derivative_weights(h[k], derivative, at_end=False),
            )
            A[row, 2 * k - 2 : 2 * k + 4] = va, aa, vb - vc, ab - ac, -vd, -ad
            right[row] = -(qa * points[k - 1] + (qb - qc) * points[k] - qd * points[k + 1])
    A[0, 0] = A[1, 1] = A[-2, -2] = A[-1, -1] = 1
    right[0], right[-2] = arguments.pair("velocity", velocity, n)
    right[1], right[-1] = arguments.pair("acceleration", acceleration, n)
    solution = _solved(A, right)
    return _hermite(times, points, solution[0::2], solution[1::2])


def through_samples(samples: Samples) -> PiecewisePolynomial:
    """Quintic pieces with exactly the positions, velocities and accelerations of the samples."""
    if not isinstance(samples, Samples):
        raise TypeError(f"samples: expected Samples, got {type(samples).__name__}")
    times, q = _checked(samples.t, samples.q)
    return _hermite(times, q, *(_like(name, getattr(samples, name), q) for name in ("qd", "qdd")))


def _like(name: str, values, q: np.ndarray) -> np.ndarray:
    array = arguments.finite(name, values)
    if array.shape != q.shape:
        raise ShapeError(f"{name}: expected shape {q.shape} as q, got {array.shape}")
    return array


def _solved(A: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The solution of a spline's equations; none where times are so near or far that they are lost in round-off."""
    try:
        with np.errstate(all="ignore"):
            solution = (linear.solve if len(A) <= LARGE else np.linalg.solve)(A, right)
    except np.linalg.LinAlgError:
        solution = np.full_like(right, np.nan)
    if not np.isfinite(solution).all():
        raise ValueError("times, points: the distances are too different for a spline")
    return solution


def _hermite(times, q, qd, qdd) -> PiecewisePolynomial:
    h = np.diff(times)[:, np.newaxis]
    pieces = quintic_coefficients(h, q[:-1], qd[:-1], qdd[:-1], q[1:], qd[1:], qdd[1:])
    return PiecewisePolynomial(times, np.moveaxis(pieces, 0, 1))


def _derivative_weights(T: float, derivative: int, *, at_end: bool) -> np.ndarray:
    """How (q0, v0, a0, q1, v1, a1) enter a derivative of their quintic at one of its ends."""
    columns = quintic_coefficients(T, *np.eye(6))  # coefficient k of the quintic for each unit vector
    t = T if at_end else 0.0
    total = np.zeros(6)
    for k in range(derivative, 6):
        falling = np.prod(np.arange(k - derivative + 1, k + 1))
        total += falling * columns[k] * t ** (k - derivative)
    return total


def _checked(times, points) -> tuple[np.ndarray, np.ndarray]:
    times, points = arguments.finite("times", times), arguments.finite("points", points)
    if points.ndim == 1:
        points = points[:, np.newaxis]
    if times.ndim != 1 or points.ndim != 2 or len(times) != len(points) or len(times) < 2:
        raise ShapeError(
            f"times, points: expected shapes (m,) and (m, n), m ≥ 2; got {times.shape} and {points.shape}"
        )
    late = np.flatnonzero(np.diff(times) <= 0)
    if late.size:
        raise ValueError(
            f"times: expected ascending times, but times[{late[0] + 1}] = {times[late[0] + 1]:g} is not later"
        )
    return times, points
