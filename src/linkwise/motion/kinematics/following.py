"""Joint positions along a path of a frame: one branch of an arm, with its derivatives.

From grid point to grid point the joints move as little as possible, q′ = J⁺ V, and are corrected onto the path. A curve
g(s) of quintic pieces goes through the grid points. Between them q(s) is the position on the path next to g(s):

    pose(q) = path(s),   N (q − g(s)) = 0,

where the rows of N are the directions, constant in a cell, in which the arm can move without its frame; an arm of at
most six joints has none. The derivatives of q follow from those of the two equations, so they are those of the
positions also where an arm has more joints than the path needs.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from linkwise.errors import LinkwiseError
from linkwise.motion.kinematics.inverse import UnreachableError, inverse_kinematics
from linkwise.motion.kinematics.rotations import rotation_vector
from linkwise.motion.polynomial import quintic_coefficients
from linkwise.motion.splines import cubic_spline
from linkwise.motion.trajectory import Moment
from linkwise.robot.robot import Robot

if TYPE_CHECKING:
    from linkwise.motion.cartesian import Path

GRID_POINTS = 201
SINGULAR = 1e-4  # smallest singular value of the Jacobian at which a path counts as singular
JUMP = 0.5  # [rad or m] between neighbouring grid points: the arm has changed its branch
FAR = 0.05  # [rad or m] between neighbouring grid points: more points are put between them
FINER = 8  # so many times as many
CORRECTIONS = 20  # steps of Newton's method at most
CLOSE = 1e-13  # [rad or m]: the last of them
REACHED = 1e-10  # [rad and m]: distance from the path at which a position is on it


class SingularPathError(LinkwiseError, ArithmeticError):
    """A Cartesian path passes a singular configuration; the message states where."""


class Branch:
    """Positions of the joints for s from 0 to 1.

    Args:
        robot: the robot.
        path: of the frame.
        frame: the frame; None: the only leaf.
        start: positions that are tried first at the start of the path, shape (n,), or None.
    """

    def __init__(self, robot: Robot, path: Path, frame: str | None, start: np.ndarray | None):
        self.robot, self.path, self.frame = robot, path, frame
        joints = robot.coordinate_joints
        self.lower, self.upper = (
            np.array([getattr(joint.limits, side) for joint in joints]) for side in ("lower", "upper")
        )
        self.grid = np.linspace(0.0, 1.0, GRID_POINTS)
        first = self._found(0.0, start, 16)
        q = self._flow(first)
        if q is None:
            q = self._followed(first)
        else:
            self.s, self.at_grid = self.grid, q
        self._connect(q)

    @property
    def redundant(self) -> bool:
        """Whether the arm has more joints than the path needs."""
        return self.free.shape[-2] > 0

    def _flow(self, q: np.ndarray) -> np.ndarray | None:
        """Positions at all grid points by the method of Runge and Kutta, then corrected together.

        None where joints move far between grid points, or the correction does not succeed within the joint limits.
        """
        grid, positions = self.grid, [q]
        h = grid[1]
        rates = self._rates(np.linspace(0.0, 1.0, 2 * GRID_POINTS - 1))
        for first, between, last in zip(rates[:-1:2], rates[1::2], rates[2::2], strict=True):
            a = self._least(q, first)
            b = self._least(q + 0.5 * h * a, between)
            c = self._least(q + 0.5 * h * b, between)
            d = self._least(q + h * c, last)
            step = h / 6 * (a + 2 * b + 2 * c + d)
            if not np.abs(step).max() < FAR:
                return None
            q = q + step
            positions.append(q)
        corrected, left = self._corrected(np.array(positions), grid)
        smallest = np.linalg.svd(self.robot.jacobian(corrected, self.frame), compute_uv=False)[:, -1]
        good = (left <= REACHED).all() and self._allowed(corrected) and (smallest >= SINGULAR).all()
        return corrected if good and np.abs(np.diff(corrected, axis=0)).max() < FAR else None

    def _allowed(self, q: np.ndarray) -> bool:
        """Whether positions are within the joint limits."""
        return bool(((q >= self.lower - 1e-12) & (q <= self.upper + 1e-12)).all())

    def _followed(self, first: np.ndarray) -> np.ndarray:
        """Positions at the grid points and between them where joints move far, each from the one before."""
        s, q = [0.0], [first]
        self.at_grid = [first]
        for before, after in pairwise(self.grid.tolist()):
            inner, positions = [after], [self._next(q[-1], before, after)]
            if np.abs(positions[0] - q[-1]).max() > FAR:
                inner, positions = np.linspace(before, after, FINER + 1), [q[-1]]
                for one, following in pairwise(inner.tolist()):
                    positions.append(self._next(positions[-1], one, following))
                inner, positions = inner[1:].tolist(), positions[1:]
            if np.abs(positions[-1] - q[-1]).max() > JUMP:
                raise SingularPathError(f"the joints would have to jump at {after:.0%} of the way")
            s += inner
            q += positions
            self.at_grid.append(q[-1])
        self.s = np.array(s)
        return np.array(q)

    def _found(self, s: float, start: np.ndarray | None, starts: int) -> np.ndarray:
        """Positions within the joint limits by inverse kinematics."""
        rotation, position, _, _ = self.path.at(np.array(s))
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = rotation, position
        try:
            solution = inverse_kinematics(self.robot, pose, frame=self.frame, start=start, starts=starts)
        except UnreachableError as error:
            raise UnreachableError(f"no joint positions for {s:.0%} of the way: {error}") from None
        self._check_regular(float(solution.smallest_singular_value), s)
        return solution.q

    def _check_regular(self, smallest: float, s: float) -> None:
        if smallest < SINGULAR:
            raise SingularPathError(
                f"the path is singular at {s:.0%} of its way (smallest singular value "
                f"{smallest:.2g}): joint speeds are unbounded there"
            )

    def _next(self, q: np.ndarray, s: float, following: float) -> np.ndarray:
        """Positions at the following grid point: a step of the midpoint rule, corrected onto the path."""
        h = following - s
        rates = self._rates(np.array([s, s + 0.5 * h]))
        guess = q + h * self._least(q + 0.5 * h * self._least(q, rates[0]), rates[1])
        positions, left = self._corrected(guess[np.newaxis], np.array([following]))
        if left[0] > REACHED or not self._allowed(positions):
            return self._found(following, np.clip(guess, self.lower, self.upper), 1)
        smallest = np.linalg.svd(self.robot.jacobian(positions[0], self.frame), compute_uv=False)[-1]
        self._check_regular(float(smallest), following)
        return positions[0]

    def _least(self, q: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """The least joint rates with which the frame has this velocity."""
        return np.linalg.lstsq(self.robot.jacobian(q, self.frame), rates, rcond=1e-12)[0]

    def _rates(self, s: np.ndarray) -> np.ndarray:
        """Velocity of the frame by s, angular then linear, (..., 6)."""
        first = self.path.at(s)[2]
        return np.concatenate([np.broadcast_to(self.path.turning, first.shape), first], axis=-1)

    def _error(self, q: np.ndarray, s: np.ndarray) -> np.ndarray:
        """From the frame to the path, angular then linear, (..., 6)."""
        rotation, position, _, _ = self.path.at(s)
        pose = self.robot.pose(q, self.frame)
        turn = rotation @ np.swapaxes(pose[..., :3, :3], -1, -2)
        return np.concatenate([rotation_vector(turn), position - pose[..., :3, 3]], axis=-1)

    def _corrected(
        self, q: np.ndarray, s: np.ndarray, free: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Positions on the path next to q (points, n), by Newton's method, and what is left of the error, (points,).

        ``free``: N at the points, (points, n − 6, n); by default each step is the least one.
        """
        goal, q = q, q.copy()
        open_ = np.arange(len(q))
        for _ in range(CORRECTIONS):
            error = self._error(q[open_], s[open_])
            J = self.robot.jacobian(q[open_], self.frame)
            if free is None:
                step = (np.linalg.pinv(J, rcond=1e-12) @ error[..., np.newaxis])[..., 0]
            else:
                N = free[open_]
                aside = (N @ (goal[open_] - q[open_])[..., np.newaxis])[..., 0]
                step = _solved(np.concatenate([J, N], axis=-2), np.concatenate([error, aside], axis=-1))
            size = np.abs(step).max(axis=-1)
            q[open_] += step * np.minimum(1.0, JUMP / np.maximum(size, 1e-300))[:, np.newaxis]
            open_ = open_[size > CLOSE]
            if not open_.size:
                break
        return q, np.abs(self._error(q, s)).max(axis=-1)

    def _connect(self, q: np.ndarray) -> None:
        """The curve g through the grid points, and N of the cells.

        Its derivatives are those of a spline, corrected to velocity and acceleration of the frame.
        """
        s, n = self.s, self.robot.dof
        _, first, second = cubic_spline(s, q, velocity=None).at(s)
        J = self.robot.jacobian(q, self.frame)
        inverse = np.linalg.pinv(J, rcond=1e-12)
        first = first + _times(inverse, self._rates(s) - _times(J, first))
        second = second + _times(inverse, self._bends(q, first, s) - _times(J, second))
        self.span = np.diff(s)
        parts = (each for at in (slice(None, -1), slice(1, None)) for each in (q[at], first[at], second[at]))
        self.pieces = np.moveaxis(quintic_coefficients(self.span[:, np.newaxis], *parts), 0, 1)
        between = self._curve(np.arange(len(self.span)), 0.5 * self.span)[0]
        self.free = np.zeros((len(self.span), 0, n))
        if n > 6:
            self.free = np.linalg.svd(self.robot.jacobian(between, self.frame))[2][:, 6:]

    def _bends(self, q: np.ndarray, first: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Acceleration of the frame by s, without J̇ q′."""
        second = self.path.at(s)[3]
        return np.concatenate([np.zeros_like(second), second], axis=-1) - self.robot.jacobian_rate(
            q, first, self.frame
        )

    def _curve(self, cell: np.ndarray, local: np.ndarray) -> list[np.ndarray]:
        """g, g′ and g″."""
        values, c, t = [], self.pieces[cell], local[..., np.newaxis]
        for _ in range(3):
            value = c[..., -1, :]
            for k in reversed(range(c.shape[-2] - 1)):
                value = value * t + c[..., k, :]
            values.append(value)
            c = np.arange(1, c.shape[-2])[:, np.newaxis] * c[..., 1:, :]
        return values

    def at(self, s: np.ndarray) -> Moment:
        """q and its first two derivatives by s, (..., n)."""
        flat = s.reshape(-1)
        cell = np.clip(np.searchsorted(self.s, flat, side="right") - 1, 0, len(self.span) - 1)
        g, first, second = self._curve(cell, flat - self.s[cell])
        N = self.free[cell]
        q, left = self._corrected(g, flat, N)
        if (lost := left > REACHED).any():
            where = flat[int(np.argmax(lost))]
            raise SingularPathError(
                f"the joints move too quickly at {where:.1%} of the way to be followed there"
            )
        rows = np.concatenate([self.robot.jacobian(q, self.frame), N], axis=-2)
        first = _solved(rows, np.concatenate([self._rates(flat), _times(N, first)], axis=-1))
        second = _solved(rows, np.concatenate([self._bends(q, first, flat), _times(N, second)], axis=-1))
        return Moment(*(part.reshape(*s.shape, -1) for part in (q, first, second)))


def _times(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (A @ b[..., np.newaxis])[..., 0]


def _solved(A: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The solution of square equations; of more equations than joints that of least squares."""
    if A.shape[-1] == A.shape[-2]:
        return np.linalg.solve(A, right[..., np.newaxis])[..., 0]
    return _times(np.linalg.pinv(A, rcond=1e-12), right)
