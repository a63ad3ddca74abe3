"""Five problems of optimal motion that are often shown: reach, swing up, throw, turn in flight, trot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import linkwise as lw
from linkwise import optimal
from linkwise.optimal import gaits

HOME = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])


def reach(horizon: int = 50, limited: bool = False) -> optimal.Problem:
    """A Panda moves its flange to a pose 0.4 m away within half a second."""
    robot = lw.load("panda")
    target = np.asarray(robot.pose(HOME)).copy()
    target[:3, 3] += (0.1, 0.35, -0.15)
    still = optimal.JointTracking(HOME, 1e-2, velocity=0.0, velocity_weight=1e-2)
    return optimal.Problem(
        robot,
        horizon=horizon,
        step=0.01,
        start=(HOME, np.zeros(7)),
        costs=[optimal.TipTracking(target, 1.0, 0.1), still, optimal.Effort(1e-5)],
        terminal=[optimal.TipTracking(target, 1e3, 1e2), still],
        friction=False,
        torque_limits=limited,
    )


def swing_up(horizon: int = 100) -> optimal.Problem:
    """A pendulum that its motor cannot lift directly: it swings up and stays there."""
    rod = lw.Inertia.from_com(1.0, (0.0, 0.0, -0.5), np.diag([0.02, 0.02, 0.001]))
    robot = lw.Robot(
        "pendulum",
        [lw.Link("world"), lw.Link("rod", rod)],
        [lw.Joint("pivot", "revolute", "world", "rod", axis=(0, 1, 0))],
    )
    upright = [np.pi]
    return optimal.Problem(
        robot,
        horizon=horizon,
        step=0.025,
        start=([0.0], [0.0]),
        costs=[
            optimal.JointTracking(upright, 1e-2, velocity=0.0, velocity_weight=1e-3),
            optimal.Effort(1e-2),
        ],
        terminal=[optimal.JointTracking(upright, 1e2, velocity=0.0, velocity_weight=1e1)],
        torque_limits=2.5,
    )


def throw(horizon: int = 50) -> optimal.Problem:
    """A Panda with 1 kg at its flange gives it a velocity at a point, where it would be released."""
    robot = lw.load("panda").with_payload(1.0, (0.0, 0.0, 0.05), np.diag([1e-3, 1e-3, 1e-3]))
    release = np.asarray(robot.pose(HOME))[:3, 3] + (0.1, 0.0, 0.15)
    velocity = [0.0, 0.0, 0.0, 1.0, 0.0, 1.0]
    moving = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    posture = optimal.JointTracking(HOME, 0.1, velocity=0.0, velocity_weight=0.1)
    return optimal.Problem(
        robot,
        horizon=horizon,
        step=0.01,
        start=(HOME, np.zeros(7)),
        costs=[posture, optimal.Effort(1e-4)],
        terminal=[
            optimal.TipTracking(release, 1e3),
            optimal.TipVelocity(velocity, 1e2 * np.array(moving)),
            posture,
        ],
        friction=False,
        torque_limits=False,
    )


def quadruped() -> lw.Robot:
    """A trunk of 10 kg with four legs of three joints; dimensions as those of small quadrupeds."""
    trunk = lw.Inertia.from_com(8.0, (0.0, 0.0, 0.0), np.diag([0.05, 0.15, 0.18]))
    hip = lw.Inertia.from_com(0.6, (0.0, 0.0, 0.0), np.diag([8e-4, 8e-4, 8e-4]))
    thigh = lw.Inertia.from_com(0.9, (0.0, 0.0, -0.05), np.diag([5e-3, 5e-3, 1e-3]))
    shank = lw.Inertia.from_com(0.2, (0.0, 0.0, -0.1), np.diag([1.5e-3, 1.5e-3, 5e-5]))
    links = [lw.Link("world"), lw.Link("trunk", trunk)]
    joints = [lw.Joint("root_joint", "floating", "world", "trunk")]
    for name, x, y in (("FL", 0.2, 0.05), ("FR", 0.2, -0.05), ("RL", -0.2, 0.05), ("RR", -0.2, -0.05)):
        side = np.sign(y)
        links += [
            lw.Link(f"{name}_hip", hip),
            lw.Link(f"{name}_thigh", thigh),
            lw.Link(f"{name}_shank", shank),
        ]
        at = [
            lw.Transform(np.eye(3), place)
            for place in ((x, y, 0.0), (0.0, 0.09 * side, 0.0), (0.0, 0.0, -0.2))
        ]
        limits = lw.Limits(effort=25.0)
        joints += [
            lw.Joint(f"{name}_roll", "revolute", "trunk", f"{name}_hip", at[0], (1, 0, 0), limits=limits),
            lw.Joint(
                f"{name}_pitch", "revolute", f"{name}_hip", f"{name}_thigh", at[1], (0, 1, 0), limits=limits
            ),
            lw.Joint(
                f"{name}_knee", "revolute", f"{name}_thigh", f"{name}_shank", at[2], (0, 1, 0), limits=limits
            ),
        ]
    return lw.Robot("quadruped", links, joints)


def flight(horizon: int = 25) -> optimal.Problem:
    """A quadruped in the air, thrown up and pitching, lands with its trunk level and its legs bent."""
    robot = quadruped()
    bent = np.tile([0.0, 0.7, -1.4], 4)
    start = np.concatenate([[0.0, 0.0, 0.4], [0.0, 0.05, 0.0, np.sqrt(0.9975)], np.tile([0.0, 0.6, -1.2], 4)])
    rates = np.concatenate([[0.1, -0.2, 0.1], [0.5, 0.0, 1.5], np.zeros(12)])
    end = np.concatenate([[0.25, 0.0, 0.45], [0.0, 0.0, 0.0, 1.0], bent])
    weight = np.concatenate([[3.0] * 3, [1e-3] * 3, [1.0] * 12])
    return optimal.Problem(
        robot,
        horizon=horizon,
        step=0.02,
        start=(start, rates),
        costs=[
            optimal.JointTracking(end, 0.1 * weight, velocity=0.0, velocity_weight=0.03),
            optimal.Effort(1e-3),
        ],
        terminal=[optimal.JointTracking(end, 10.0 * weight, velocity=0.0, velocity_weight=1e-2 * weight)],
        torque_limits=False,
    )


def trot(horizon: int | None = None) -> optimal.Problem:
    """The same quadruped on the ground: one trot at 0.5 m/s, feet held by the rule of accelerations, as Crocoddyl does,
    without limits of friction and torques, which it has not or treats as costs."""
    robot, feet = standing()
    start = np.concatenate([[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], np.tile([0.0, 0.7, -1.4], 4)])
    start[2] = -min(np.asarray(robot.pose(start, frame=foot))[2, 3] for foot in feet)
    gait = gaits.trot(robot, feet=feet, start=start)
    stages = gait.horizon if horizon is None else horizon
    schedule = gait.dynamics.contacts
    held = replace(schedule, active=schedule.table(gait.horizon)[:stages], hold="acceleration")
    target = optimal.JointTracking(start, 10.0, velocity=0.0, velocity_weight=1.0, name="end")
    return optimal.Problem(
        robot,
        horizon=stages,
        step=gait.step,
        start=(start, np.zeros(robot.dof)),
        costs=[cut_to(cost, stages) for cost in gait.costs],
        terminal=gait.terminal if horizon is None else [target],
        contacts=held,
        torque_limits=False,
        friction=False,
    )


def standing() -> tuple[lw.Robot, list[str]]:
    """The quadruped with a frame at the end of every shank."""
    robot = quadruped()
    feet = ["FL", "FR", "RL", "RR"]
    below = lw.Transform(np.eye(3), (0.0, 0.0, -0.2))
    links = [*robot.links, *(lw.Link(f"{foot}_foot") for foot in feet)]
    ends = [lw.Joint(f"{foot}_end", "fixed", f"{foot}_shank", f"{foot}_foot", below) for foot in feet]
    return lw.Robot("quadruped", links, [*robot.joints, *ends]), [f"{foot}_foot" for foot in feet]


def cut_to(cost: optimal.Cost, stages: int) -> optimal.Cost:
    """A cost with tables as long as another horizon."""
    tables = {key: value[: stages + 1] for key, value in vars(cost).items() if getattr(value, "ndim", 0) == 2}
    return replace(cost, **tables)


PROBLEMS = {"reach": reach, "swing_up": swing_up, "throw": throw, "flight": flight, "trot": trot}
