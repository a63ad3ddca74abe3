"""Inverse kinematics in closed form: all branches of an arm, and the one nearest to a position, as kernels.

``arm_geometry`` says which arms have one, ``subproblems`` has the equations. An arm of seven joints keeps one of them
where it is told; the search over many targets tries several positions of it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.compiler.kernel import Kernel, traced_kernel
from linkwise.errors import ModelError, ShapeError
from linkwise.model.checks import check_outside_loops
from linkwise.motion import arguments
from linkwise.motion.arguments import check_robot, matrices
from linkwise.motion.kinematics import arm_geometry
from linkwise.motion.kinematics.arm_geometry import Arm, known_arm
from linkwise.motion.kinematics.damped_least_squares import residual
from linkwise.motion.kinematics.rotations import check_poses
from linkwise.motion.kinematics.subproblems import (
    Branch,
    Turn,
    Vector,
    add,
    applied,
    minus,
    solutions,
    turned,
)
from linkwise.robot.kernels import made_once
from linkwise.robot.robot import Robot
from linkwise.scalar import (
    Condition,
    Scalar,
    atan2,
    clipped,
    cos,
    maximum,
    minimum,
    rint,
    sin,
    summed,
    where,
    while_loop,
)

TURN = 2.0 * np.pi
SLACK = 1e-9  # [rad]: a solution on a limit may lie beyond it by round-off
FAR = 1e9
ALMOST = 1e-12  # of ρ: branches on a limit count; what an arctangent says decides in the end
OUTWARD, SPREAD, CLOSEST = (
    "nearest",
    "spread",
    "closest",
)  # positions of the locked joint, see ``nearest_kernel``
ANGLES = 24.0  # that are tried, over its range
SPREAD_ANGLES = 64.0
GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)  # multiples of it, without their whole parts, lie apart from each other
REFERENCE = 0.37  # [rad]: position of the locked joint at which meeting points are computed


def closed_form_inverse_kinematics(
    robot: Robot, target, *, frame: str | None = None, locked: Any = None
) -> np.ndarray:
    """All joint positions that bring a frame to the poses (..., 4, 4): shape (..., 8, n), within (−π, π].

    NaN where a solution does not exist. The order for a wrist whose axes meet is: two for the waist, two for the elbow,
    two for the wrist. In a singular pose (wrist straight, or above the waist) one of infinitely many is given, and
    round-off leaves up to 1e-6 rad or m to the target, which ``inverse_kinematics`` takes away. An arm without a closed
    form raises ModelError.

    Args:
        robot: an arm of six or seven turning joints: axes 4, 5, 6 through one point and 2 parallel to 3 or meeting 1
            (from either end), or axes 2, 3, 4 parallel and 5 meeting 6.
        target: poses, shape (..., 4, 4).
        frame: the frame that is brought there; by default the only leaf.
        locked: position of the joint that stays where it is [rad], shape (...), for arms of seven joints; see
            ``locked_joint``. By default 0.
    """
    check_robot(robot)
    check_outside_loops(robot, "inverse kinematics", [frame])
    arm = _arm(robot, frame)
    target = matrices("target", target, 4, 4)
    check_poses("target", target)
    batch = target.shape[:-2]
    angle = arguments.finite("locked", 0.0 if locked is None else locked)
    if locked is not None and arm.locked is None:
        raise ValueError(f"locked: {robot.name} has six joints; all of them are solved for")
    try:
        angle = np.broadcast_to(angle, batch)
    except ValueError:
        raise ShapeError(f"locked: expected a shape that broadcasts to {batch}, got {angle.shape}") from None
    rows = np.ascontiguousarray(target[..., :3, :]).reshape(*batch, 12)
    q, missed = branches_kernel(robot, frame)(rows, np.array(angle)[..., np.newaxis])
    wrapped = np.pi - np.mod(np.pi - q, TURN)
    return np.where((missed <= 0.0)[..., np.newaxis], wrapped, np.nan)


def locked_joint(robot: Robot, frame: str | None = None) -> str | None:
    """The joint of an arm of seven joints that stays where it is told in its closed form; None for six joints.

    Args:
        robot: an arm with a closed form.
        frame: the frame that is brought to poses.
    """
    check_robot(robot)
    arm = _arm(robot, frame)
    return None if arm.locked is None else robot.coordinate_joints[arm.coordinates[arm.locked]].name


def has_closed_form(robot: Robot, frame: str | None) -> bool:
    """Whether the arm has a closed form, with this frame."""
    return not isinstance(known_arm(robot, frame), ModelError)


def _arm(robot: Robot, frame: str | None) -> Arm:
    arm = known_arm(robot, frame)
    if isinstance(arm, ModelError):
        raise arm
    return arm


def branches_kernel(robot: Robot, frame: str | None) -> Kernel:
    """(target, locked) -> (q of all branches, missed): a branch that misses by more than 0 is no solution."""
    arm = _arm(robot, frame)
    n = robot.dof

    def function(target: list[Scalar], locked: list[Scalar]) -> Any:
        found = _branches(arm, target, locked[0])
        return [_all_coordinates(arm, n, branch, locked[0]) for branch in found], [b.missed for b in found]

    key, sizes, shapes = (
        ("closed_form_branches", frame),
        {"target": 12, "locked": 1},
        {"q": (8, n), "missed": (8,)},
    )
    return made_once(
        robot, key, lambda r: traced_kernel(key[0], function, sizes, shapes, "float64", (r.content(), key))
    )


def nearest_kernel(robot: Robot, frame: str | None, *, search: str = OUTWARD) -> Kernel:
    """(target, near, lower, upper) -> (q, error): of all branches within the limits the one nearest to a position.

    An arm of seven joints gets the first position of its locked joint that has one (``search``: OUTWARD, from the
    nearest on, or SPREAD, which finds one sooner), or the best of all that are tried (CLOSEST). ``error``: (angular,
    linear) that is left, as the robot's own kinematics have it; large where there is no branch.
    """
    return made_once(robot, (f"closed_form_{search}", frame), lambda own: _nearest_kernel(own, frame, search))


def _nearest_kernel(robot: Robot, frame: str | None, search: str) -> Kernel:
    arm, name = _arm(robot, frame), f"closed_form_{search}"
    n = robot.dof

    def function(target: list[Scalar], near: list[Scalar], lower: list[Scalar], upper: list[Scalar]) -> Any:
        middle = [clipped(x, a, b) for x, a, b in zip(near, lower, upper, strict=True)]
        ranges = [Range.about(middle[k], lower[k], upper[k]) for k in arm.coordinates]

        def at(angle: Scalar) -> tuple[Scalar, list[Scalar]]:
            return _nearest(ranges, _all_turns(arm, target, angle))

        if arm.locked is None:
            away, values = at(0.0)
        else:
            place = arm.coordinates[arm.locked]
            away, values = _over_angles(
                at, 2 * len(ranges), middle[place], lower[place], upper[place], search
            )
        q, inside = _placed(arm, values, middle, lower, upper)
        error = residual(robot.pose(np.array(q, dtype=object), frame), target)
        return q, [where((away < FAR) & inside, e, FAR) for e in error]

    sizes = {"target": 12, "near": n, "lower": n, "upper": n}
    shapes = {"q": (n,), "error": (6,)}
    return traced_kernel(name, function, sizes, shapes, "float64", (robot.content(), frame, name))


@dataclass(frozen=True)
class Range:
    """The limits of a joint as seen from a position.

    Angles t from there are compared by ρ(t) = 1 − cos t, from half a turn on 3 + cos t: it grows with t, and of a
    cosine and a sine it needs no arctangent.
    """

    here: Turn
    above: Scalar
    """ρ of the way to the upper limit."""
    below: Scalar
    """ρ of the way to the lower limit."""

    @classmethod
    def about(cls, here: Scalar, lower: Scalar, upper: Scalar) -> Range:
        return cls((cos(here), sin(here)), _grown(upper - here) + ALMOST, _grown(here - lower) + ALMOST)

    def way(self, turn: Turn) -> Scalar:
        """ρ of the shorter way to a turn that stays within the limits; FAR where both leave them."""
        (c, s), (c0, s0) = turn, self.here
        short = 1.0 - (c * c0 + s * s0)
        long = 4.0 - short
        upwards = s * c0 - c * s0 >= 0.0
        ahead, behind = where(upwards, self.above, self.below), where(upwards, self.below, self.above)
        return where(short <= ahead, short, where(long <= behind, long, FAR))


def _grown(t: Scalar) -> Scalar:
    """ρ(t)."""
    t = minimum(t, TURN)
    c = cos(t)
    return where(t > np.pi, 3.0 + c, 1.0 - c)


def _over_angles(
    at: Callable[[Scalar], tuple[Scalar, list[Scalar]]],
    size: int,
    begin: Scalar,
    lower: Scalar,
    upper: Scalar,
    search: str,
) -> tuple[Scalar, list[Scalar]]:
    """``at`` the first angle of the locked joint that has a branch within the limits, or at the best of all angles.

    Args:
        at: an angle -> (way to its nearest branch, FAR where there is none; the branch, ``size`` numbers).
        size: of a branch.
        begin: the angle that is tried first.
        lower: limit of the angle.
        upper: limit of the angle.
        search: OUTWARD to both sides, SPREAD over the whole range, or CLOSEST: all of OUTWARD's, the best one.
    """
    low, high = maximum(lower, begin - np.pi), minimum(upper, begin + np.pi)
    width = high - low
    most = SPREAD_ANGLES if search == SPREAD else ANGLES

    def active(count: Scalar, away: Scalar, *branch: Scalar) -> Condition:
        return count < most if search == CLOSEST else (count < most) & (away >= FAR)

    def body(count: Scalar, away: Scalar, *branch: Scalar) -> tuple[Scalar, ...]:
        if search == SPREAD:
            part = GOLDEN * count
            part = part - rint(part)
        else:
            half = 0.5 * count
            ahead = rint(half) - half  # 0 for even numbers
            steps = where(abs(ahead) > 0.25, half + 0.5, -half)
            part = steps * (1.0 / ANGLES)
        angle = begin + part * width
        angle = where(angle > high, angle - width, where(angle < low, angle + width, angle))
        way, other = at(angle)
        if search == CLOSEST:
            better = way < away
            way = where(better, way, away)
            other = [where(better, new, old) for new, old in zip(other, branch, strict=True)]
        return count + 1.0, way, *other

    zero = 0.0 * begin
    start = (zero, zero + FAR, *[zero] * size)
    _, away, *branch = while_loop(active, body, start, uneven=search != CLOSEST)
    return away, branch


def _nearest(ranges: list[Range], branches: list[tuple[Scalar, list[Turn]]]) -> tuple[Scalar, list[Scalar]]:
    """(way, turns) of the branch within the limits whose longest way is the shortest; FAR where there is none."""
    best: Scalar = 0.0 * ranges[0].above + FAR
    chosen: list[Scalar] = [0.0] * (2 * len(ranges))
    for missed, turns in branches:
        ways = [of.way(turn) for of, turn in zip(ranges, turns, strict=True)]
        longest = where(missed <= 0.0, functools.reduce(maximum, ways), FAR)
        better = longest < best
        best = where(better, longest, best)
        values = [value for turn in turns for value in turn]
        chosen = [where(better, new, old) for new, old in zip(values, chosen, strict=True)]
    return best, chosen


def _placed(
    arm: Arm, values: list[Scalar], near: list[Scalar], lower: list[Scalar], upper: list[Scalar]
) -> tuple[list[Scalar], Condition]:
    """(q, whether it is within the limits) of turns, as near to a position as limits allow."""
    q, inside = list(near), None
    for k, place in enumerate(arm.coordinates):
        a, b = lower[place], upper[place]
        x = atan2(values[2 * k + 1], values[2 * k])
        x = x + TURN * rint((near[place] - x) * (1.0 / TURN))
        x = where(x > b + SLACK, x - TURN, where(x < a - SLACK, x + TURN, x))
        reached = (x >= a - SLACK) & (x <= b + SLACK)
        inside = reached if inside is None else inside & reached
        q[place] = clipped(x, a, b)
    assert inside is not None
    return q, inside


def _branches(arm: Arm, target: list[Scalar], angle: Scalar) -> list[Branch]:
    """All branches of six turns, in the order in which the chain is solved."""
    Rt, pt = [target[4 * i : 4 * i + 3] for i in range(3)], [target[4 * i + 3] for i in range(3)]
    R0, p0 = arm.pose[:3, :3].tolist(), arm.pose[:3, 3].tolist()
    R: list[Vector] = [[summed(row[k] * R0[j][k] for k in range(3)) for j in range(3)] for row in Rt]
    p = minus(pt, applied(R, p0))
    axes, points = arm_points(arm)
    if arm.locked is not None:
        axis, centre = arm.axes[arm.locked].tolist(), arm.points[arm.locked].tolist()
        turn = (cos(angle), sin(angle))
        for k in range(arm.locked, 6):
            axes[k] = turned(axis, turn, axes[k])
            points[k] = add(turned(axis, turn, minus(points[k], centre)), centre)
        p = add(p, applied(R, centre))
        R = [turned(axis, turn, row) for row in R]
        p = minus(p, applied(R, centre))
    if arm.reversed:
        R = [[R[j][i] for j in range(3)] for i in range(3)]
        p = [-x for x in applied(R, p)]
        axes, points = [[-x for x in axis] for axis in axes[::-1]], points[::-1]
    return solutions(arm.kind, axes, points, R, p)


def arm_points(arm: Arm) -> tuple[list[Vector], list[Vector]]:
    """(axes, points) of the six joints with the locked one at zero; axes that meet have the point where they do."""
    axes, points = arm_geometry.chain(arm, arm.locked, REFERENCE, arm.reversed)
    points = points.copy()
    if arm.kind == arm_geometry.THREE_PARALLEL:
        points[4:] = arm_geometry.meeting_point(points[4:], axes[4:])
    else:
        points[3:] = arm_geometry.meeting_point(points[3:], axes[3:])
    if arm.kind == arm_geometry.WRIST_MEETING:
        points[:2] = arm_geometry.meeting_point(points[:2], axes[:2])
    if arm.reversed:
        axes, points = -axes[::-1], points[::-1]
    if arm.locked is not None:
        back = arm_geometry.turn_about(-REFERENCE * arm.axes[arm.locked])
        centre = arm.points[arm.locked]
        axes, points = axes.copy(), points.copy()
        axes[arm.locked :] = axes[arm.locked :] @ back.T
        points[arm.locked :] = (points[arm.locked :] - centre) @ back.T + centre
    return axes.tolist(), points.tolist()


def _turns(arm: Arm, branch: Branch, angle: Scalar) -> list[Turn]:
    """One turn for each axis of the arm, the locked one among them."""
    turns = [*(branch.turns[::-1] if arm.reversed else branch.turns)]
    return (
        turns
        if arm.locked is None
        else [*turns[: arm.locked], (cos(angle), sin(angle)), *turns[arm.locked :]]
    )


def _all_turns(arm: Arm, target: list[Scalar], angle: Scalar) -> list[tuple[Scalar, list[Turn]]]:
    """(missed, turns) of all branches."""
    return [(branch.missed, _turns(arm, branch, angle)) for branch in _branches(arm, target, angle)]


def _all_coordinates(arm: Arm, n: int, branch: Branch, angle: Scalar) -> list[Scalar]:
    q: list[Scalar] = [0.0] * n
    for axis, (place, (c, s)) in enumerate(zip(arm.coordinates, _turns(arm, branch, angle), strict=True)):
        q[place] = angle if axis == arm.locked else atan2(s, c)
    return q


__all__ = [
    "branches_kernel",
    "closed_form_inverse_kinematics",
    "has_closed_form",
    "locked_joint",
    "nearest_kernel",
]
