"""A legged robot follows commanded velocities: observation, reward, commands and noise of MuJoCo Playground's
``Go1JoystickFlatTerrain`` (K. Zakka et al., "MuJoCo Playground", 2025; google-deepmind/mujoco_playground,
``locomotion/go1/joystick.py``), for any robot with a floating base and feet.

What differs: feet alone touch the ground, so an episode also ends where the body comes low; the last action is part of
the observation at once; new commands come after 1 to 9 s, evenly; dry friction of joints is a ramp.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwise.control.activations import exp
from linkwise.environments.draws import Draw
from linkwise.environments.tasks import PDTargets, Push, Scalars, State, Task, clipped, square
from linkwise.errors import ModelError
from linkwise.model.contacts import Contact
from linkwise.model.shapes import Shape
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar, cos, maximum, minimum, sin, sqrt, where

WEIGHTS = {
    "tracking_linear": 1.0,
    "tracking_angular": 0.5,
    "vertical_velocity": -0.5,
    "roll_and_pitch_rates": -0.05,
    "orientation": -5.0,
    "joint_limits": -1.0,
    "posture": 0.5,
    "termination": -1.0,
    "standing_still": -1.0,
    "torques": -0.0002,
    "action_rate": -0.01,
    "energy": -0.001,
    "foot_clearance": -2.0,
    "foot_height": -0.2,
    "foot_slip": -0.1,
    "air_time": 0.1,
}
"""Of the terms of the reward, per second; the input ``weights`` changes them."""
NOISE = {"velocity": 0.1, "gyro": 0.2, "gravity": 0.05, "joint_position": 0.03, "joint_velocity": 1.5}
SIGMA = 0.25
DRY = "coulomb_friction"
TOUCHING = 1e-4  # [N]: a foot with more is on the ground


@dataclass(frozen=True)
class Legged:
    """What the task needs to know about a robot."""

    name: str
    feet: tuple[tuple[str, tuple[float, float, float]], ...]
    """Link and place in it [m] of every sphere that touches the ground; those of one link are a foot."""
    radius: float
    """Of these spheres [m]."""
    posture: tuple[float, ...]
    """Of the driven joints [rad], in the order of the robot."""
    height: float
    """Of the base in that posture [m]."""
    lowest: float
    """Height of the base at which an episode ends [m]."""
    base: str
    kp: float | tuple[float, ...] = 35.0
    kd: float | tuple[float, ...] = 0.5
    action_scale: float = 0.5
    torque_limits: float | tuple[float, ...] = math.inf
    posture_weights: tuple[float, ...] = (1.0, 1.0, 0.1)
    """Repeated over the joints."""
    foot_height: float = 0.1
    """Of a swinging foot [m]."""
    command: tuple[float, float, float] = (1.5, 0.8, 1.2)
    """Largest commanded velocities: forward, sideways [m/s], turning [rad/s]."""
    command_chances: tuple[float, float, float] = (0.9, 0.25, 0.5)
    """That a part of a new command is not zero."""
    air_time: float = 0.1
    """Of a foot, from which it is rewarded [s]."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Of terms of the reward that differ from ``WEIGHTS``."""
    accuracy: float = 1e-3
    """Of contacts."""

    @property
    def groups(self) -> list[list[int]]:
        """The spheres of every foot."""
        links = list(dict.fromkeys(link for link, _ in self.feet))
        return [[k for k, (link, _) in enumerate(self.feet) if link == own] for own in links]


@dataclass(frozen=True, eq=False)
class Terrain:
    """A height field under the robots; every candidate has an operation for each of its points, so it is small."""

    heights: Any
    """[m], shape (x, y)."""
    size: tuple[float, float]
    """Extent along x and y [m], about the origin."""


def with_feet(robot: Robot, legged: Legged, terrain: Terrain | None = None) -> Robot:
    """The robot with its feet as the only contacts, on level ground or on a height field.

    Args:
        robot: as its file has it.
        legged: where its feet are.
        terrain: None for level ground.
    """
    names = {*robot.link_names}
    for link, _ in legged.feet:
        if link not in names:
            raise ModelError(f"{robot.name}: no link {link!r}, which has a foot of {legged.name}")
    if not any(joint.type == "floating" for joint in robot.coordinate_joints):
        robot = robot.with_base("floating")
    if terrain is None:
        contacts = [
            Contact(link, offset=place, radius=legged.radius, friction=0.8, name=f"foot{k}")
            for k, (link, place) in enumerate(legged.feet)
        ]
        return robot.with_contacts(contacts)
    world = robot.link_names[0]
    spheres = [Shape.sphere(link, legged.radius, offset=place) for link, place in legged.feet]
    field = Shape.height_field(world, terrain.heights, terrain.size)
    links = dict.fromkeys(link for link, _ in legged.feet)
    return robot.with_contacts([*spheres, field, *(Contact(link, world, friction=0.8) for link in links)])


def task(
    robot: Robot,
    legged: Legged,
    *,
    noise: bool = True,
    weights: Mapping[str, float] | None = None,
    terrain: Terrain | None = None,
) -> Task:
    """The task for one robot.

    Args:
        robot: as its file has it.
        legged: what the task needs to know about it.
        noise: whether sensors have noise.
        weights: of terms of the reward, in place of ``WEIGHTS``.
        terrain: a height field; None: level ground. Robots begin above its highest point.
    """
    made = with_feet(robot, legged, terrain)
    above = 0.0 if terrain is None else float(np.max(terrain.heights))
    lowest = legged.lowest + (0.0 if terrain is None else float(np.min(terrain.heights)))
    dry, made = _without_dry_friction(made)
    control = PDTargets(
        legged.kp,
        legged.kd,
        legged.posture,
        legged.action_scale,
        legged.torque_limits,
        dry_friction=dry.tolist(),
    )
    functions = _Joystick(legged, made, np.asarray(legged.posture), legged.height + above, lowest)
    count, feet = len(legged.posture), len(legged.groups)
    limits = [float(x) for x in legged.command]
    return Task(
        f"{legged.name}_joystick",
        made,
        control,
        functions.observe,
        functions.reward,
        functions.terminate,
        functions.reset,
        step=0.004,
        substeps=5,
        episode_length=1000,
        memory={"command": 3, "until": 1, "last": count, "air": feet, "touched": feet, "peak": feet},
        update=functions.update,
        inputs={
            "command_limits": limits,
            "command_chances": legged.command_chances,
            "noise": 1.0 if noise else 0.0,
            "weights": list((WEIGHTS | dict(legged.weights) | dict(weights or {})).values()),
        },
        randomise={
            "contact_friction": (0.4, 1.0),
            "payload": (-1.0, 2.0),
            "kp": (0.9, 1.1),
            "kd": (0.9, 1.1),
        },
        payload_frame=legged.base,
        push=Push(0.5, 4.0),
        accuracy=legged.accuracy,
        least_reward=0.0,
        source="MuJoCo Playground, Go1JoystickFlatTerrain",
        initial=np.array([0.0, 0.0, legged.height, 0.0, 0.0, 0.0, 1.0, *legged.posture]),
    )


def _without_dry_friction(robot: Robot) -> tuple[np.ndarray, Robot]:
    """(Coulomb friction of the driven joints, the robot without it): the drives have it as a ramp."""
    names = [joint.name for joint in robot.coordinate_joints if joint.dof == joint.nq == 1]
    values = dict(zip(robot.parameter_labels, robot.parameters, strict=True))
    dry = np.array([float(values.get(f"{name}.{DRY}", 0.0)) for name in names])
    changed = {f"{name}.{DRY}": 0.0 for name, force in zip(names, dry, strict=True) if force}
    return dry, robot.with_parameters(changed) if changed else robot


@dataclass(frozen=True, eq=False)
class _Joystick:
    """The functions of the task."""

    legged: Legged
    robot: Robot
    posture: np.ndarray
    start: float
    """Height of the base at the begin [m]."""
    lowest: float

    def observe(self, state: State, draw: Draw) -> Sequence[Scalar]:
        angular, linear = state.base_velocity
        level = state.inputs["noise"][0]
        parts = (
            (linear, NOISE["velocity"]),
            (angular, NOISE["gyro"]),
            (state.gravity, NOISE["gravity"]),
            (self._away(state), NOISE["joint_position"]),
            (state.qd[6:], NOISE["joint_velocity"]),
        )
        found: Scalars = []
        for values, size in parts:
            found += [x + level * draw.noise(size) for x in values]
        return [*found, *state.memory["last"], *state.memory["command"]]

    def reward(self, state: State) -> Mapping[str, Scalar]:
        legged, period = self.legged, 0.02
        angular, linear = state.base_velocity
        world_angular, world_linear = state.base_velocity_in_world
        command, away = state.memory["command"], self._away(state)
        moving = where(square(command) > 1e-4, 1.0, 0.0)
        height, touching = self._heights(state), self._touching(state)
        landed = self._landed(state, touching)
        air = [x + period for x in state.memory["air"]]
        speeds = [square(state.slip[own[0]][:2]) for own in legged.groups]
        along = [command[k] - linear[k] for k in (0, 1)]
        posture_weights = np.resize(legged.posture_weights, len(away))
        values: dict[str, Scalar] = {
            "tracking_linear": exp(-square(along) * (1.0 / SIGMA)),
            "tracking_angular": exp(-square([command[2] - angular[2]]) * (1.0 / SIGMA)),
            "vertical_velocity": square([world_linear[2]]),
            "roll_and_pitch_rates": square(world_angular[:2]),
            "orientation": square(state.gravity[:2]),
            "joint_limits": self._beyond(state),
            "posture": exp(-_sum(float(w) * x * x for w, x in zip(posture_weights, away, strict=True))),
            "termination": state.terminated,
            "standing_still": (1.0 - moving) * _sum(abs(x) for x in away),
            "torques": sqrt(square(state.torque) + 1e-12) + _sum(abs(x) for x in state.torque),
            "action_rate": square([a - b for a, b in zip(state.action, state.memory["last"], strict=True)]),
            "energy": _sum(abs(x * v) for x, v in zip(state.torque, state.qd[6:], strict=True)),
            "foot_clearance": _sum(
                abs(h - legged.foot_height) * sqrt(sqrt(v + 1e-12))
                for h, v in zip(height, speeds, strict=True)
            ),
            "foot_height": moving
            * _sum(
                first * square([peak * (1.0 / legged.foot_height) - 1.0])
                for first, peak in zip(landed, state.memory["peak"], strict=True)
            ),
            "foot_slip": moving * _sum(v * on for v, on in zip(speeds, touching, strict=True)),
            "air_time": moving
            * _sum((time - legged.air_time) * first for time, first in zip(air, landed, strict=True)),
        }
        weights = state.inputs["weights"]
        return {name: (period * weights[k]) * values[name] for k, name in enumerate(WEIGHTS)}

    def terminate(self, state: State) -> Any:
        return (state.gravity[2] > -0.5) | (state.q[2] < self.lowest)

    def update(self, state: State, draw: Draw) -> Mapping[str, Sequence[Scalar]]:
        touching, height = self._touching(state), self._heights(state)
        left = state.memory["until"][0] - 1.0
        now = where(left < 0.5, 1.0, 0.0)
        fresh = self._command(state.inputs, draw)
        command = [
            where(now * draw.chance(0.5) > 0.5, new, old)
            for new, old in zip(fresh, state.memory["command"], strict=True)
        ]
        return {
            "command": command,
            "until": [where(now > 0.5, draw.uniform(50.0, 450.0), left)],
            "last": state.action,
            "air": [(t + 0.02) * (1.0 - on) for t, on in zip(state.memory["air"], touching, strict=True)],
            "touched": touching,
            "peak": [
                maximum(p, h) * (1.0 - on)
                for p, h, on in zip(state.memory["peak"], height, touching, strict=True)
            ],
        }

    def reset(self, draw: Draw, inputs: Mapping[str, Scalars]) -> Mapping[str, Sequence[Scalar]]:
        half = draw.uniform(-0.5 * math.pi, 0.5 * math.pi)
        spread = self.posture
        place = [draw.uniform(-0.5, 0.5), draw.uniform(-0.5, 0.5), self.start + 0.0 * half]
        limits = inputs["command_limits"]
        return {
            "q": [
                *place,
                *(0.0, 0.0, sin(half), cos(half)),
                *(float(x) + draw.noise(0.1) for x in spread),
            ],
            "qd": [*(draw.noise(0.5) for _ in range(6)), *(0.0 for _ in spread)],
            "command": [draw.uniform(-x, x) for x in limits],
            "until": [draw.uniform(50.0, 450.0)],
        }

    def _command(self, inputs: Mapping[str, Scalars], draw: Draw) -> Scalars:
        return [
            draw.uniform(-x, x) * draw.chance(chance)
            for x, chance in zip(inputs["command_limits"], inputs["command_chances"], strict=True)
        ]

    def _away(self, state: State) -> Scalars:
        return [x - float(p) for x, p in zip(state.q[7:], self.posture, strict=True)]

    def _touching(self, state: State) -> Scalars:
        """1 for feet on the ground."""
        forces = [_sum(state.forces[k][2] for k in own) for own in self.legged.groups]
        return [where(force > TOUCHING, 1.0, 0.0) for force in forces]

    def _heights(self, state: State) -> Scalars:
        """Of the lowest point of every foot [m]."""
        gaps = state.gaps()
        found: Scalars = []
        for own in self.legged.groups:
            lowest = gaps[own[0]]
            for k in own[1:]:
                lowest = minimum(lowest, gaps[k])
            found.append(lowest)
        return found

    def _landed(self, state: State, touching: Sequence[Scalar]) -> Scalars:
        """1 for feet that touch first after a swing."""
        either = [maximum(now, was) for now, was in zip(touching, state.memory["touched"], strict=True)]
        return [where(air > 0.0, on, 0.0) for air, on in zip(state.memory["air"], either, strict=True)]

    def _beyond(self, state: State) -> Scalar:
        """How far joints are beyond 95 % of their ranges [rad]."""
        total: Scalar = 0.0
        ranges = [joint.limits for joint in self.robot.coordinate_joints if joint.dof == joint.nq == 1]
        for x, limits in zip(state.q[7:], ranges, strict=True):
            if math.isfinite(limits.lower) and math.isfinite(limits.upper):
                low, high = 0.95 * float(limits.lower), 0.95 * float(limits.upper)
                total = total + clipped(low - x, 0.0, math.inf) + clipped(x - high, 0.0, math.inf)
        return total


def _sum(values: Any) -> Scalar:
    total: Scalar = 0.0
    for value in values:
        total = total + value
    return total
