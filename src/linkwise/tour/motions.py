"""A fast motion of a robot within the limits of its file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise import motion
from linkwise.collision.heights import lowest_points, meshes_of, outermost
from linkwise.errors import LinkwiseError
from linkwise.motion.limits import LimitError
from linkwise.motion.trajectory import Trajectory
from linkwise.robot.robot import Robot
from linkwise.tour.held import held_still, positions_within_limits

POINTS = 301
CANDIDATES, TRIES = 200, 12
ON_THE_WAY = 40  # positions at which the height of the robot is looked at
WITHOUT_LIMITS = 2.0  # [s] of a motion that no limit bounds


@dataclass(frozen=True)
class FastMotion:
    """A motion from rest to rest, with its torques."""

    robot: Robot
    """The robot that moves: free joints are held still."""
    how: str
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    bounded_by: str
    """The joint and the limit that it reaches; empty where the file has no limits."""
    trajectory: Trajectory
    """The motion itself, of the robot that moves."""

    @property
    def duration(self) -> float:
        return float(self.t[-1])


def fast_motion(robot: Robot) -> FastMotion:
    """A motion between two positions that the robot can hold, as fast as effort and velocity limits allow.

    Args:
        robot: the robot; floating, planar and ball joints are held still.

    Raises:
        LinkwiseError: no joint moves, the robot has closed loops, or it cannot hold itself.
    """
    if robot.constraints:
        raise LinkwiseError("its loops are closed: a motion must keep its constraints")
    arm, _ = held_still(robot)
    for first, last in _ends(arm):
        try:
            return _between(arm, first, last)
        except LimitError:  # it cannot be held somewhere on the way
            continue
    raise LinkwiseError("the effort limits are too small to hold the robot at the positions that were tried")


def _between(arm: Robot, first: list[float], last: list[float]) -> FastMotion:
    """Time-optimal where the file has effort limits; else a quintic, as fast as velocity limits allow."""
    quintic = motion.quintic(first, last, WITHOUT_LIMITS)
    try:
        quick = motion.fastest(quintic, arm)
    except LimitError:
        raise
    except ValueError as error:
        if "no limit bounds" not in str(error):
            raise
        return _sampled(arm, quintic, "no limits in the file, so in 2 s")
    try:
        best = motion.time_optimal(arm, [first, last])
    except (LinkwiseError, ValueError):  # no effort limits, or a robot that it does not take
        return _sampled(arm, quick, "a quintic in the shortest time that the limits allow")
    assert isinstance(best, Trajectory)
    how = f"time-optimal along a straight line of the joints; a quintic takes {quick.duration:.3g} s"
    return _sampled(arm, best, how)


def _ends(arm: Robot) -> list[tuple[list[float], list[float]]]:
    """Pairs of positions that the robot can hold, far apart; first those whose straight way is above the floor: the
    origin of the base, or the lowest point at rest."""
    q = np.clip(positions_within_limits(arm, CANDIDATES, seed=1), -1.2, 1.2)
    lower = np.array([min(joint.limits.lower, joint.limits.upper) for joint in arm.coordinate_joints])
    upper = np.array([max(joint.limits.lower, joint.limits.upper) for joint in arm.coordinate_joints])
    q = np.clip(q, lower, upper)  # ranges that do not contain zero
    corners = outermost(meshes_of(arm))
    floor = min(0.0, float(lowest_points(arm, np.array(arm.neutral)[None], corners)[0]))
    above = q[lowest_points(arm, q, corners) >= floor]
    q = above if len(above) > 1 else q
    load = np.abs(arm.gravity_torques(q)) / np.maximum(arm.effort_limits, 1e-12)
    q = q[np.argsort(load.max(axis=1), kind="stable")][: 2 * TRIES]
    part = np.linspace(0.0, 1.0, ON_THE_WAY)[:, None]
    free: list[tuple[list[float], list[float]]] = []
    others: list[tuple[list[float], list[float]]] = []
    for first in q[:TRIES]:
        for last in sorted(q, key=lambda other: -float(np.abs(other - first).sum()))[:TRIES]:
            if np.array_equal(first, last):
                continue
            low = float(lowest_points(arm, first + part * (last - first), corners).min())
            (free if low >= floor else others).append((first.tolist(), last.tolist()))
            if low >= floor:
                break
    return [*free, *others[:TRIES]]


def _sampled(arm: Robot, trajectory: Trajectory, how: str) -> FastMotion:
    t = np.linspace(trajectory.begin, trajectory.begin + trajectory.duration, POINTS)
    q, qd, qdd = trajectory.at(t)
    tau = arm.inverse_dynamics(q, qd, qdd)
    shares = []
    for what, values, limits in (("effort", tau, arm.effort_limits), ("velocity", qd, arm.velocity_limits)):
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(np.isfinite(limits) & (limits > 0), np.abs(values).max(axis=0) / limits, 0.0)
        shares += [(float(share[k]), f"{what} of {name}") for k, name in enumerate(arm.joint_names)]
    most = max(shares)
    return FastMotion(arm, how, t - t[0], q, qd, tau, most[1] if most[0] > 0 else "", trajectory)
