"""What ``time_optimal`` returns: motions along paths, which limit is active where, and why a path has none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.core.summaries import Summarised, Summary
from linkwise.core.upper import upper
from linkwise.motion.limits import LimitError
from linkwise.motion.shortest_time.cells import Cells
from linkwise.motion.shortest_time.path_limits import Limits
from linkwise.motion.trajectory import Moment, Trajectory

if TYPE_CHECKING:
    from linkwise.report import Plot

ACTIVE = 0.999  # of a limit: from here on it counts as active


class InfeasiblePathError(LimitError):
    """No motion along a path keeps the limits.

    ``fraction`` of the path's length at which that shows, ``joint`` and ``quantity`` of the limit, ``limit``, and what
    would be ``needed``; None where that is not one joint's limit.
    """

    def __init__(
        self,
        message: str,
        fraction: float | None = None,
        joint: str | None = None,
        quantity: str | None = None,
        limit: float | None = None,
        needed: float | None = None,
    ):
        super().__init__(message)
        self.fraction, self.joint, self.quantity = fraction, joint, quantity
        self.limit, self.needed = limit, needed


@dataclass(frozen=True)
class ActiveLimit:
    """A limit that is used up from one time to another."""

    begin: float
    """[s]"""
    end: float
    """[s]"""
    joint: str
    """The joint, or "tip"."""
    quantity: str
    """torque, velocity, acceleration, or tip speed."""

    def __str__(self) -> str:
        return f"{self.begin:.4f} … {self.end:.4f} s: {self.quantity} of {self.joint}"


class TimeOptimal(Trajectory):
    """A motion along a path in the shortest time under limits; ``time_optimal`` makes it.

    Args:
        limits: the limits that it keeps.
        cells: the grid along the path.
        x: squares of the speed along the path at the grid points, shape (cells + 1,).
    """

    def __init__(self, limits: Limits, cells: Cells, x: np.ndarray):
        self.limits, self.cells, self.x = limits, cells, x
        self.robot, self.dof = limits.robot, len(limits.velocity)
        self.grid = grid_times(x, cells.lengths)
        self.begin, self.end = 0.0, float(self.grid[-1])

    @property
    def along(self) -> Any:
        return self.cells.along

    def _inside(self, t: np.ndarray) -> Moment:
        cell = np.clip(np.searchsorted(self.grid, t, side="right") - 1, 0, len(self.x) - 2)
        h, first, last = self.cells.lengths[cell], self.x[cell], self.x[cell + 1]
        u, rate = (last - first) / (2 * h), np.sqrt(first)
        local, left = t - self.grid[cell], self.grid[cell + 1] - t
        rho = np.clip(local * (rate + 0.5 * u * local) / h, 0.0, 1.0)
        q, tangent, bend = self.cells.at(cell, rho)
        rate = np.maximum(np.where(local < left, rate + u * local, np.sqrt(last) - u * left), 0.0)
        return Moment(
            q,
            tangent * rate[..., np.newaxis],
            tangent * u[..., np.newaxis] + bend * (rate * rate)[..., np.newaxis],
        )

    def corners(self) -> np.ndarray:
        """The times of the grid points: accelerations jump there."""
        return self.grid

    def usage(self, t) -> dict[str, np.ndarray]:
        """Fractions of the limits in use at the times t [s], (...).

        "torque", "velocity" and "acceleration", each (..., n), and "tip speed", (...), where it has a limit.
        """
        moment, limits = self.at(t), self.limits
        tau = self.robot.inverse_dynamics(*moment, friction=limits.friction)
        low, high = limits.torque
        fractions = {
            "torque": np.maximum(tau / high, tau / low),
            "velocity": np.abs(moment.qd) / limits.velocity,
            "acceleration": np.abs(moment.qdd) / limits.acceleration,
        }
        if np.isfinite(limits.tip_speed):
            jacobian = self.robot.jacobian(moment.q, limits.frame)[..., 3:, :]
            tip = np.linalg.norm(np.einsum("...ij,...j->...i", jacobian, moment.qd), axis=-1)
            fractions["tip speed"] = tip / limits.tip_speed
        return fractions

    @property
    def active(self) -> list[ActiveLimit]:
        """Which limit is used up when, in the order of time; at nearly every time there is one."""
        middle = self.grid[:-1, np.newaxis] + np.diff(self.grid)[:, np.newaxis] * np.array(
            [1e-6, 0.5, 1 - 1e-6]
        )
        intervals = []
        for quantity, values in self.usage(middle).items():
            columns = values.max(axis=1).reshape(len(middle), -1).T
            names = self.robot.joint_names if len(columns) == self.dof else ["tip"]
            for name, column in zip(names, columns, strict=True):
                edges = np.flatnonzero(
                    np.diff(np.concatenate([[False], column > ACTIVE, [False]]).astype(int))
                )
                intervals += [
                    ActiveLimit(float(self.grid[a]), float(self.grid[b]), name, quantity)
                    for a, b in edges.reshape(-1, 2)
                ]
        return sorted(intervals, key=lambda each: (each.begin, each.end))

    def plot_limits(self, points: int = 401) -> Plot:
        """Fractions of the limits in use over time, a curve for each joint.

        Args:
            points: number of samples.
        """
        t = np.linspace(self.begin, self.end, points)
        return upper("report").usage_plot(t, self.usage(t), self.robot)


Found = tuple[float, Callable[[], TimeOptimal]]


def grid_times(x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Times at grid points of x there, (..., cells + 1)."""
    speed = np.sqrt(x)
    times = np.zeros(x.shape)
    with np.errstate(divide="ignore"):
        np.cumsum(2 * lengths / (speed[..., 1:] + speed[..., :-1]), axis=-1, out=times[..., 1:])
    return times


class TimeOptimalMotions(Summarised):
    """Motions along many paths: ``motions[k]`` is that of path k, or raises the error that says why there is none.

    Args:
        found: for each path its duration [s] and a function that makes the motion; or the error.
    """

    def __init__(self, found: Sequence[Found | InfeasiblePathError]):
        self._found = list(found)
        self.failures = [each if isinstance(each, InfeasiblePathError) else None for each in self._found]
        """Why a path has no motion; None for those that have one."""
        self.durations = np.array(
            [np.nan if isinstance(each, InfeasiblePathError) else each[0] for each in self._found]
        )
        """[s], NaN where a path has no motion; shape (paths,)."""

    def __len__(self) -> int:
        return len(self._found)

    def __getitem__(self, k: int) -> TimeOptimal:
        motion = self._found[k]
        if isinstance(motion, InfeasiblePathError):
            raise motion
        return motion[1]()

    def __iter__(self) -> Iterator[TimeOptimal]:
        return (self[k] for k in range(len(self)))

    def _summary(self) -> Summary:
        good = self.durations[np.isfinite(self.durations)]
        rows = [
            [
                len(self),
                len(self) - len(good),
                *(f"{f(good):.4g}" if len(good) else "" for f in (np.min, np.median, np.max)),
            ]
        ]
        columns = (">paths", ">without a motion", ">shortest [s]", ">median [s]", ">longest [s]")
        return Summary(f"TimeOptimalMotions: {len(self)} paths", columns, rows, [])
