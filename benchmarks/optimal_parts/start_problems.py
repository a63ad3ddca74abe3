"""Problems whose starts are varied: swing-ups, an arm among obstacles, gaits of a quadruped, a humanoid."""

from __future__ import annotations

import importlib.metadata
import warnings
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise import optimal
from linkwise.optimal import gaits
from linkwise.optimal.solver import first_guess
from optimal_parts.problems import HOME, cut_to, standing


@dataclass(frozen=True)
class Varied:
    """A problem, and how far its starts and first guesses are spread."""

    problem: optimal.Problem
    positions: float
    """Standard deviation of the first positions along the velocity coordinates [rad or m]."""
    velocities: float
    """Of the first velocities [rad/s or m/s]."""
    torques: float
    """Of the first guess of the torques [N·m or N]."""
    varied: np.ndarray | float = 1.0
    """1 for velocity coordinates that begin with other numbers, else 0."""

    def starts(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(states (count, horizon + 1, ns), torques (count, horizon, m), starts (count, ns))."""
        p = self.problem
        d = p.dynamics
        q = np.asarray(
            p.robot.integrate(p.x0[: d.nq], self.varied * self.positions * rng.normal(size=(count, d.dof)))
        )
        rates = p.x0[d.nq :] + self.varied * self.velocities * rng.normal(size=(count, d.dof))
        x0 = np.concatenate([q, rates], axis=1)
        xs = np.repeat(x0[:, None], p.horizon + 1, axis=1)
        xs[:, 1:, d.nq :] = 0.0
        held = first_guess(p)[1]
        return xs, held + self.torques * rng.normal(size=(count, p.horizon, p.nu)), x0


def cart_pole(horizon: int = 100) -> Varied:
    """A pole on a cart swings up; only the cart has a motor."""
    cart = lw.Inertia.from_com(1.0, (0.0, 0.0, 0.0), np.diag([0.01] * 3))
    pole = lw.Inertia.from_com(0.1, (0.0, 0.0, -0.5), np.diag([2e-3, 2e-3, 1e-5]))
    joints = [
        lw.Joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0), limits=lw.Limits(-10.0, 10.0)),
        lw.Joint("pivot", "continuous", "cart", "pole", axis=(0, 1, 0)),
    ]
    robot = lw.Robot(
        "cart and pole", [lw.Link("world"), lw.Link("cart", cart), lw.Link("pole", pole)], joints
    )
    return Varied(_swing(robot, ["rail"], [0.0, np.pi], horizon, 0.05), 0.3, 0.3, 1.0)


def acrobot(horizon: int = 100) -> Varied:
    """Two links swing up; only the joint between them has a motor."""
    rod = lw.Inertia.from_com(1.0, (0.0, 0.0, -0.5), np.diag([0.083, 0.083, 1e-3]))
    joints = [
        lw.Joint("shoulder", "continuous", "world", "upper", axis=(0, 1, 0)),
        lw.Joint("elbow", "continuous", "upper", "lower", lw.Transform.from_rpy((0, 0, -1.0)), (0, 1, 0)),
    ]
    robot = lw.Robot("acrobot", [lw.Link("world"), lw.Link("upper", rod), lw.Link("lower", rod)], joints)
    return Varied(_swing(robot, ["elbow"], [np.pi, 0.0], horizon, 0.04), 0.3, 0.3, 1.0)


def _swing(
    robot: lw.Robot, motors: list[str], upright: list[float], horizon: int, step: float
) -> optimal.Problem:
    return optimal.Problem(
        robot,
        horizon=horizon,
        step=step,
        start=(np.zeros(2), np.zeros(2)),
        costs=[
            optimal.JointTracking(upright, 0.1, velocity=0.0, velocity_weight=0.01),
            optimal.Effort(0.01),
        ],
        terminal=[optimal.JointTracking(upright, 100.0, velocity=0.0, velocity_weight=10.0, name="end")],
        motors=motors,
        torque_limits=False,
    )


def obstacles(horizon: int = 60) -> Varied:
    """A Panda reaches past two spheres."""
    robot = lw.load("panda")
    target = np.asarray(robot.pose(HOME))[:3, 3] + (0.05, 0.5, -0.1)
    still = optimal.JointTracking(HOME, 1e-2, velocity=0.0, velocity_weight=1e-2)
    on = [(robot.frame_names[-1], (0.0, 0.0, 0.0), 0.08)]
    middle = np.asarray(robot.pose(HOME))[:3, 3] + (0.05, 0.25, -0.05)
    away = [
        optimal.SphereAvoidance(middle + shift, 0.08, on=on, margin=0.04, weight=2e3, name=f"sphere{k}")
        for k, shift in enumerate(([0.0, 0.0, 0.0], [0.0, 0.1, 0.2]))
    ]
    problem = optimal.Problem(
        robot,
        horizon=horizon,
        step=0.02,
        start=(HOME, np.zeros(7)),
        costs=[optimal.TipTracking(target, 1.0), still, optimal.Effort(1e-5), *away],
        terminal=[optimal.TipTracking(target, 1e3, name="end"), replace(still, name="posture")],
        friction=False,
        torque_limits=False,
    )
    return Varied(problem, 0.2, 0.2, 2.0)


def gait(name: str, horizon: int | None = None) -> Varied:
    """A gait of a quadruped, feet held by the rule of accelerations, without limits of friction and torques."""
    robot, feet = standing()
    start = np.concatenate([[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], np.tile([0.0, 0.7, -1.4], 4)])
    start[2] = -min(np.asarray(robot.pose(start, frame=foot))[2, 3] for foot in feet)
    made = getattr(gaits, name)(robot, feet=feet, start=start)
    schedule = made.dynamics.contacts
    stages = made.horizon if horizon is None else horizon
    end = [replace(cost, name="end") for cost in made.terminal]
    problem = optimal.Problem(
        robot,
        horizon=stages,
        step=made.step,
        start=(start, np.zeros(robot.dof)),
        costs=[cut_to(cost, stages) for cost in made.costs],
        terminal=end,
        contacts=replace(schedule, active=schedule.table(made.horizon)[:stages], hold="acceleration"),
        torque_limits=False,
        friction=False,
    )
    return Varied(problem, 0.0, 0.1, 2.0)


def humanoid(motion: str, horizon: int = 30) -> Varied:
    """Talos on flat feet squats, or reaches to the side with one hand."""
    robot, q = talos()
    soles = ["left_sole_link", "right_sole_link"]
    weight = np.concatenate([[10.0] * 3, [1.0] * 3, np.full(robot.dof - 6, 0.1)])
    posture = optimal.JointTracking(q, weight, velocity=0.0, velocity_weight=0.01)
    end = optimal.JointTracking(q, weight, velocity=0.0, velocity_weight=1.0, name="end")
    com = np.asarray(robot.center_of_mass(q))
    if motion == "squat":
        goal = [optimal.CenterOfMass(com - [0.0, 0.0, 0.15], 1e4, name="lower")]
    else:
        hand = "gripper_left_base_link"
        place = np.asarray(robot.pose(q, frame=hand))[:3, 3] + (0.2, 0.15, 0.3)
        goal = [optimal.TipTracking(place, 1e4, frame=hand, name="hand"), optimal.CenterOfMass(com, 1e3)]
    problem = optimal.Problem(
        robot,
        horizon=horizon,
        step=0.03,
        start=(q, np.zeros(robot.dof)),
        costs=[posture, optimal.Effort(1e-4)],
        terminal=[end, *goal],
        contacts=optimal.ContactSchedule(soles, 1.0, surface=True, hold="acceleration"),
        torque_limits=False,
        friction=False,
    )
    names = [joint.name for joint in robot.coordinate_joints for _ in range(joint.dof)]
    above = np.array(
        [float(name.startswith(("arm", "torso", "head"))) for name in names]
    )  # the feet stay at rest
    return Varied(problem, 0.1, 0.1, 2.0, above)


def talos() -> tuple[lw.Robot, np.ndarray]:
    """Talos of example-robot-data, and positions in which it stands on bent knees."""
    files = importlib.metadata.distribution("example-robot-data").files or []
    path = next(Path(str(file.locate())) for file in files if file.name == "talos_reduced.urdf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.ModelWarning)
        robot = lw.load(path, base="floating")
    q = np.array(robot.neutral)
    names = [name for joint in robot.coordinate_joints[1:] for name in [joint.name]]
    bent = {"3": -0.41, "4": 0.86, "5": -0.45}
    for k, name in enumerate(names):
        if name.startswith("leg_") and name.split("_")[2] in bent:
            q[7 + k] = bent[name.split("_")[2]]
        if name.startswith("arm_") and name.split("_")[2] == "4":
            q[7 + k] = -0.6
    q[2] -= np.asarray(robot.pose(q, frame="left_sole_link"))[2, 3]
    return robot, q


PROBLEMS = {
    "cart-pole": cart_pole,
    "acrobot": acrobot,
    "obstacles": obstacles,
    **{name: partial(gait, name) for name in ("walk", "trot", "bound", "jump")},
    **{name: partial(humanoid, name) for name in ("squat", "reach")},
}
