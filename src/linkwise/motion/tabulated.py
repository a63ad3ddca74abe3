"""Any motion with an end as polynomial pieces: what tables of controllers hold."""

from __future__ import annotations

import math

import numpy as np

from linkwise.motion import arguments
from linkwise.motion.polynomial import PiecewisePolynomial, quintic_coefficients
from linkwise.motion.trajectory import Trajectory, check_trajectory

MOST_PIECES = 4096
_INWARD = 1e-9  # of a piece: where values at its ends are taken, since derivatives may jump there


def pieces(trajectory: Trajectory, tolerance: float = 1e-8) -> PiecewisePolynomial:
    """The motion as pieces of polynomials: itself where it has such, else quintic pieces between its corners.

    Args:
        trajectory: a motion with an end.
        tolerance: largest error of positions [rad or m] in the middle of pieces.

    Raises:
        ValueError: the motion has no end, or would need more than 4096 pieces.
    """
    check_trajectory(trajectory)
    tolerance = arguments.number("tolerance", tolerance, positive=True)
    if isinstance(trajectory, PiecewisePolynomial):
        return trajectory
    if not math.isfinite(trajectory.duration):
        raise ValueError(f"{type(trajectory).__name__}: a motion without end is no list of pieces")
    corners = np.unique(trajectory.corners())
    parts, count = 1, len(corners) - 1
    while parts * count <= MOST_PIECES:
        inner = np.linspace(corners[:-1], corners[1:], parts, endpoint=False, axis=1).ravel()
        quintics = _through(trajectory, np.append(inner, corners[-1]))
        middle = 0.5 * (quintics.times[:-1] + quintics.times[1:])
        if np.abs(quintics.at(middle).q - trajectory.at(middle).q).max() <= tolerance:
            return quintics
        parts *= 2
    raise ValueError(
        f"{type(trajectory).__name__}: more than {MOST_PIECES} pieces for an error of {tolerance:g} rad or m"
    )


def _through(trajectory: Trajectory, times: np.ndarray) -> PiecewisePolynomial:
    """A quintic between every two times."""
    length = np.diff(times)
    first = trajectory.at(times[:-1] + _INWARD * length)
    last = trajectory.at(times[1:] - _INWARD * length)
    coefficients = quintic_coefficients(length[:, np.newaxis], *first, *last)
    return PiecewisePolynomial(times, np.moveaxis(coefficients, 0, 1))
