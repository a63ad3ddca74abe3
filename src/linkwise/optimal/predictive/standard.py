"""The problem behind predictive control by name: reach a target and stay there, with a bandwidth in place of weights.

The cost ∫ ½ (|e|² + (2/ω²) |ė|² + (1/ω⁴) |q̈|²) dt has the optimal accelerations q̈ = −(ω² e + 2ω ė): every joint moves
by the critically damped law of a natural frequency ω, whatever inertias, gravity and friction are. The terminal cost is
the diagonal of its value function. Limits of torques are kept exactly.

A cost of torques in place of accelerations would make it expensive to stand where gravity is larger, or to move against
viscous friction: arms with much of both would approach their targets slowly. For robots of ``PARTS_FROM`` joints and
more, whose derivatives are computed in loops that costs have no part in, it is one all the same: |M⁻¹ (τ − g)|² of the
state that the arm is in (``effort.scale``, ``effort.target``), which ``Predictive`` sets in every sample.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.optimal import arguments
from linkwise.optimal.arguments import ProblemError
from linkwise.optimal.costs import Cost, JointTracking, ScaledEffort, Smoothness, TipTracking
from linkwise.optimal.dynamics import PARTS_FROM
from linkwise.optimal.problem import Problem
from linkwise.robot.robot import Robot

JOINTS, TIP, EFFORT = "joints", "tip", "effort"
"""Names of the costs."""
FREQUENCY = 10.0
"""[rad/s], by default."""
EDGE = 0.1
"""Part of the range of a joint that counts as near its limit."""
CRUISE = 0.85
"""Of the speed limits, at which a target that is far away is approached."""
UNLIMITED = 3.0
"""[rad/s or m/s] in place of larger limits, for targets that are poses."""
POSTURE = 1e-3
"""Weight of the joints' rest position beside that of the tip, so that redundant joints do not drift."""


def reaching(
    robot: Robot,
    *,
    horizon: int = 20,
    step: float = 0.02,
    frequency: float = FREQUENCY,
    frame: str | None = None,
    tip: bool = False,
    torque_limits: Any = True,
    **options: Any,
) -> Problem:
    """A problem for predictive control; its targets are run-time parameters ``joints.target`` or ``tip.target``.

    Args:
        robot: the robot.
        horizon: number of steps.
        step: duration of one [s].
        frequency: natural frequency of the motion far from all limits [rad/s].
        frame: whose pose is the target, with ``tip``; by default the only leaf.
        tip: whether the target is a pose of a frame, in place of joint positions.
        torque_limits: as for ``Problem``.
        options: further arguments of ``Problem``.
    """
    if robot.nq != robot.dof:
        raise ProblemError(f"{robot.name}: predictive control by name is for joints with one coordinate each")
    w = arguments.number("frequency", frequency, above=0.0)
    if frame is not None:  # without ``tip`` it is not used, but a wrong name is a mistake all the same
        robot.locate(frame)
    rest = rest_of(robot)
    own = POSTURE if flag("tip", tip) else 1.0
    costs: list[Cost] = [
        JointTracking(target=rest, weight=own, velocity=0.0, velocity_weight=2.0 / w**2, name=JOINTS)
    ]
    terminal: list[Cost] = [
        JointTracking(
            target=rest, weight=2.0 / w * own, velocity=0.0, velocity_weight=2.0 / w**3, name=JOINTS
        )
    ]
    if tip:
        pose = np.asarray(robot.pose(rest, frame))
        scale = 1.0 / max(float(np.linalg.norm(pose[:3, 3])), 0.1) ** 2
        for factor, found in ((1.0, costs), (2.0 / w, terminal)):
            found.append(
                TipTracking(
                    target=pose, position=4.0 * scale * factor, orientation=factor, frame=frame, name=TIP
                )
            )
    problem = Problem(
        robot,
        horizon=horizon,
        step=step,
        costs=[*costs, _effort(robot, w)],
        terminal=terminal,
        torque_limits=torque_limits,
        **{"implicit_damping": True, **options},
    )
    if f"{EFFORT}.scale" not in problem.parameters:
        return problem
    driven = list(problem.dynamics.driven)
    mobility = np.linalg.pinv(np.asarray(robot.mass_matrix(rest)), rcond=1e-9, hermitian=True)
    return problem.with_values({f"{EFFORT}.scale": (mobility[np.ix_(driven, driven)] / w**2).ravel()})


def _effort(robot: Robot, frequency: float) -> Cost:
    """The cost of moving: of accelerations of the joints that have motors; see the top of this file."""
    if robot.dof >= PARTS_FROM:
        return ScaledEffort(name=EFFORT)
    driven = [joint.name not in robot.passive for joint in robot.coordinate_joints for _ in range(joint.dof)]
    return Smoothness(weight=np.where(driven, 1.0 / frequency**4, 0.0), name=EFFORT)


def target_distance(speed: np.ndarray, frequency: float) -> np.ndarray:
    """Distance of a target from which the law of a natural frequency moves at ``CRUISE`` of a speed, (n,).

    Args:
        speed: limits of speed [rad/s or m/s], (n,).
        frequency: ω [rad/s].
    """
    return 2.0 * CRUISE / frequency * speed


def rest_of(robot: Robot) -> np.ndarray:
    """A position to rest at (n,): neutral, or the middle of the range of a joint that is near its limits there."""
    limits, neutral = robot.limits, np.asarray(robot.neutral, dtype=float)
    width = limits.upper - limits.lower
    margin = np.where(np.isfinite(width), EDGE * width, 0.0)
    inside = (limits.lower + margin < neutral) & (neutral < limits.upper - margin)
    with np.errstate(invalid="ignore"):
        return np.where(inside, neutral, 0.5 * (limits.lower + limits.upper))


def tip_distance(problem: Problem, speed: np.ndarray, frequency: float) -> np.ndarray:
    """Largest distance [m] and angle [rad] of a pose that a plan sees: what the slowest joints can follow.

    Args:
        problem: with a pose as its target.
        speed: limits of speed [rad/s or m/s], (n,).
        frequency: ω [rad/s].
    """
    place = problem.p[0, problem.where(f"{TIP}.position")]
    angle = float(
        target_distance(np.minimum(speed, UNLIMITED).min(initial=UNLIMITED, keepdims=True), frequency)[0]
    )
    return np.array([0.5 * angle * max(float(np.linalg.norm(place)), 0.1), angle])
