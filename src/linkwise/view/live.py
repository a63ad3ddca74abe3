"""State of the page: joint positions, payload, and gravity torques from compiled kernels."""

from __future__ import annotations

import math

import numpy as np

from linkwise.algorithms import joint_terms
from linkwise.functions import FUNCTIONS, Setting, mechanism_of
from linkwise.kernels import is_straight
from linkwise.robot import Robot

TURN, SLIDE = math.pi, 1.0  # ranges of joints without limits [rad], [m]
LOAD_DENSITY = 2700.0  # [kg/m³]: a payload is a ball of aluminium
SAMPLES = 512  # random positions from which the scale of a bar is estimated if there is no effort limit


class Live:
    """A robot at a position q (n,), with a load [kg] at the origin of the frame ``tip``."""

    def __init__(self, robot: Robot, tip: str | None = None):
        self.robot = robot
        self.lower, self.upper = ranges(robot)
        self.q = home(robot)
        self.load = 0.0
        self.choose(robot.leaf_names[0] if tip is None else tip)
        self.scale = self._scale()

    def choose(self, tip: str) -> None:
        """Attach the load to another frame."""
        body, _ = self.robot.locate(tip)
        self.tip = tip
        self.carries = body >= 0 and is_straight(FUNCTIONS["gravity_torques"], Setting(self.robot))
        if self.carries:
            self._gravity = self.robot.kernel("gravity_torques", inputs=("payload",), frame=tip)

    def payload_torques(self, q: np.ndarray) -> np.ndarray:
        """Gravity torques caused by one kilogram at the tip [N·m/kg or N/kg], shape (..., n)."""
        return self._gravity(q, self.payload(1.0)) - self._gravity(q, self.payload(0.0))

    def payload(self, mass: float | None = None) -> np.ndarray:
        """Ten inertial parameters of the load in the frame of the tip."""
        mass = self.load if mass is None else mass
        moment = 0.4 * mass * ball_radius(mass) ** 2
        return np.array([mass, 0, 0, 0, moment, 0, 0, moment, 0, moment])

    def gravity(self, q: np.ndarray | None = None) -> np.ndarray:
        """Gravity torques of the robot with its load [N·m or N], shape (..., n)."""
        q = self.q if q is None else q
        if self.carries:
            return self._gravity(q, self.payload())
        return self.robot.gravity_torques(q) if self.robot.dof else np.zeros(np.shape(q))

    def torques(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Torques along a motion with the load [N·m or N], shape (..., n)."""
        if not self.carries:
            return self.robot.inverse_dynamics(q, qd, qdd)
        return self.robot.kernel("inverse_dynamics", inputs=("payload",), frame=self.tip)(
            q, qd, qdd, self.payload()
        )

    def with_load(self) -> Robot:
        """Copy of the robot with the load as its payload."""
        if not self.load:
            return self.robot
        moment = self.payload()[4]
        return self.robot.with_payload(self.load, (0, 0, 0), (moment, moment, moment), frame=self.tip)

    def tip_pose(self, q: np.ndarray | None = None) -> np.ndarray:
        return self.robot.pose(self.q if q is None else q, self.tip)

    def _scale(self) -> np.ndarray:
        """Torque of a full bar per joint: the effort limit, otherwise the largest gravity and friction torque."""
        efforts = self.robot.effort_limits
        if not self.robot.dof:
            return efforts
        some = np.random.default_rng(0).uniform(self.lower, self.upper, (SAMPLES, self.robot.dof))
        links, unit_speed = mechanism_of(self.robot), [1.0] * self.robot.dof
        friction = np.array(joint_terms.friction(links, home(self.robot).tolist(), unit_speed), dtype=float)
        most = np.abs(self.gravity(some)).max(axis=0) + friction
        floor = 1e-3 * max(float(most.max()), 1e-9)
        return np.where(np.isfinite(efforts), efforts, np.maximum(most, floor))


def ranges(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """(lower, upper) of every joint [rad or m]; a default range where there is no limit."""
    lower = [_bound(joint.limits.lower, -1.0, joint.revolute) for joint in robot.coordinate_joints]
    upper = [_bound(joint.limits.upper, 1.0, joint.revolute) for joint in robot.coordinate_joints]
    return np.array(lower), np.maximum(np.array(upper), np.array(lower) + 1e-6)


def _bound(limit: float, sign: float, revolute: bool) -> float:
    if math.isfinite(limit) and (not revolute or abs(limit) <= 4 * math.pi):
        return limit
    return sign * (TURN if revolute else SLIDE)


def home(robot: Robot) -> np.ndarray:
    """Initial position: zero where that is within the range, otherwise the middle of the range."""
    lower, upper = ranges(robot)
    inside = (lower <= 0.0) & (upper >= 0.0)
    return np.where(inside, 0.0, (lower + upper) / 2)


def ball_radius(mass: float) -> float:
    """Radius of an aluminium ball of this mass [m]."""
    return (3.0 * mass / (4.0 * math.pi * LOAD_DENSITY)) ** (1.0 / 3.0)
