"""State of the page: joint positions, payload, and gravity torques from compiled kernels."""

from __future__ import annotations

import math

import numpy as np

from linkwise.errors import ConstraintError
from linkwise.functions.arrays import run_on_arrays
from linkwise.functions.table import FUNCTIONS, Setting
from linkwise.geometry.posture import first_position
from linkwise.robot.kernels import is_straight
from linkwise.robot.robot import Robot
from linkwise.view.dials import dials_of, positions, values_of

LOAD_DENSITY = 2700.0  # [kg/m³]: a payload is a ball of aluminium
HEAVIEST = 20.0  # [kg]: range of the load without effort limits
SAMPLES = 512  # random positions from which the scale of a bar is estimated if there is no effort limit


class Live:
    """A robot at a position q (nq,), with a load [kg] at the origin of the frame ``tip``.

    ``lower`` and ``upper`` are the ranges of its sliders, see ``dials``.
    """

    def __init__(self, robot: Robot, tip: str | None = None):
        self.robot = robot
        self.lower, self.upper = ranges(robot)
        self.q = home(robot)
        self.q = self.closed(self.q)
        self.load = 0.0
        self.pushed: str | None = None  # the frame that an external force pulls at
        self.force = np.zeros(3)  # [N] in base axes, at the origin of that frame
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

    def closed(self, q: np.ndarray) -> np.ndarray:
        """The position near q (nq,) that meets the constraints; the present one where there is none."""
        if not self.robot.constraints:
            return q
        try:
            return self.robot.meet_constraints(q)
        except ConstraintError:
            return self.q

    def holding(self) -> np.ndarray:
        """Torques that hold the robot with its load against gravity and the external force [N·m or N], shape (n,)."""
        torques = self.gravity()
        if self.pushed is None or not np.any(self.force):
            return torques
        return torques - self.robot.jacobian(self.q, self.pushed)[3:].T @ self.force

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
        some = self.random(0, SAMPLES)
        most = np.abs(self.gravity(some)).max(axis=0) + self._friction()
        floor = 1e-3 * max(float(most.max()), 1e-9)
        return np.where(np.isfinite(efforts), efforts, np.maximum(most, floor))

    def _friction(self) -> np.ndarray:
        """Friction of every velocity at speed 1, without compiling anything."""
        still, row = np.zeros(self.robot.dof), FUNCTIONS["inverse_dynamics"]
        given = {"q": home(self.robot), "qd": still + 1.0, "qdd": still}
        with_friction, without = (
            run_on_arrays(row, Setting(self.robot, friction=each), row.default, given)["tau"]
            for each in (True, False)
        )
        return with_friction - without

    def random(self, seed: int | None, count: int | None = None) -> np.ndarray:
        """Positions within the ranges, shape (nq,) or (count, nq)."""
        shape = self.lower.shape if count is None else (count, *self.lower.shape)
        return positions(self.robot, np.random.default_rng(seed).uniform(self.lower, self.upper, shape))


def ranges(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """(lower, upper) of every slider [rad or m]; a default range where there is no limit."""
    dials = dials_of(robot)
    return np.array([dial.lower for dial in dials]), np.array([dial.upper for dial in dials])


def home(robot: Robot) -> np.ndarray:
    """Initial position: that of a keyframe, else bent, above the floor; within the ranges of the sliders."""
    return positions(robot, np.clip(values_of(robot, first_position(robot)), *ranges(robot)))


def ball_radius(mass: float) -> float:
    """Radius of an aluminium ball of this mass [m]."""
    return (3.0 * mass / (4.0 * math.pi * LOAD_DENSITY)) ** (1.0 / 3.0)


def heaviest_load(live: Live) -> float:
    """Range of the load slider [kg]: twice the load that brings the weakest joint to its effort limit."""
    efforts = live.robot.effort_limits
    some = live.random(1, 64)
    per_kilogram = np.abs(live.payload_torques(some)).max(axis=0)
    known = np.isfinite(efforts) & (per_kilogram > 1e-6)
    if not known.any():
        return HEAVIEST
    return float(np.clip(np.ceil(2 * (efforts[known] / per_kilogram[known]).min()), 1.0, 200.0))
