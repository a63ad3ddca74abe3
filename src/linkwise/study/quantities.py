"""Meaning of numbers: dimensions and units of everything that a study can hold."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from linkwise import joint_laws
from linkwise.model import LABELS
from linkwise.robot.robot import Robot

JOINT = "joint"


@dataclass(frozen=True)
class Quantity:
    """A named array with a value per point: its shape there, the names of its axes, its unit."""

    name: str
    shape: tuple[int, ...]
    axes: tuple[str, ...]
    unit: str = ""
    text: str = field(default="", compare=False)
    entries: tuple[str, ...] = ()
    """Names of the elements of a vector that has some of its own."""

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def labels(self, robot: Robot) -> list[str]:
        """A name for every element, row by row."""
        if self.entries:
            return [f"{self.name}.{entry}" for entry in self.entries]
        names = [""]
        for axis, n in zip(self.axes, self.shape, strict=True):
            entries = robot.joint_names if axis.rstrip("_") == JOINT and n == robot.dof else range(n)
            names = [f"{name}.{entry}" for name in names for entry in entries]
        return [f"{self.name}{name}" for name in names]


def per_joint(robot: Robot, revolute: str, prismatic: str) -> str:
    """The unit of a quantity with a value per joint."""
    kinds = {joint.revolute for joint in robot.coordinate_joints}
    return {frozenset({True}): revolute, frozenset({False}): prismatic}.get(
        frozenset(kinds), f"{revolute} or {prismatic}"
    )


STATES = {
    "q": ("rad", "m", "joint position"),
    "qd": ("rad/s", "m/s", "joint velocity"),
    "qdd": ("rad/s²", "m/s²", "joint acceleration"),
    "tau": ("N·m", "N", "joint torque"),
}
_PARAMETERS = {
    **dict.fromkeys(LABELS, "kg·m²"),
    "m": "kg",
    **dict.fromkeys(("hx", "hy", "hz"), "kg·m"),
    **{name: units[0] for name, units in joint_laws.UNITS.items()},
}
PAYLOAD = {
    "payload": (10, "kg, kg·m, kg·m²", "payload: m hx hy hz Ixx Ixy Ixz Iyy Iyz Izz"),
    "payload.mass": (1, "kg", "mass of the payload"),
    "payload.com": (3, "m", "centre of mass of the payload"),
    "payload.inertia": (6, "kg·m²", "inertia of the payload about its centre of mass"),
}

# output of a function -> its axes and (revolute, prismatic) units or one unit
_OUTPUTS: dict[str, tuple[tuple[str, ...], str | tuple[str, str]]] = {
    "tau": ((JOINT,), ("N·m", "N")),
    "qdd": ((JOINT,), ("rad/s²", "m/s²")),
    "error": ((), "1"),
    "iterations": ((), "1"),
    "mass_matrix": ((JOINT, "joint_"), "kg·m²"),
    "inverse_mass_matrix": ((JOINT, "joint_"), "1/(kg·m²)"),
    "gravity_torques": ((JOINT,), ("N·m", "N")),
    "coriolis_matrix": ((JOINT, "joint_"), "N·m·s/rad"),
    "christoffel": ((JOINT, "joint_", "joint__"), "kg·m²"),
    "kinetic_energy": ((), "J"),
    "potential_energy": ((), "J"),
    "pose": (("row", "column"), "m"),
    "jacobian": (("twist", JOINT), "m"),
    "velocity": (("twist",), "rad/s, m/s"),
    "regressor": ((JOINT, "parameter"), ""),
}


def variable(
    robot: Robot, name: str, size: int, scalar: bool, unit: str | None, labels: tuple[str, ...] = ()
) -> Quantity:
    """The quantity that a variable is; ``labels`` are the parameters of the robot that it sets."""
    text, entries = "", ()
    if len(labels) > 1:
        units = {_PARAMETERS.get(label.rsplit(".", 1)[-1], "") for label in labels}
        usual_unit, axis, entries = units.pop() if len(units) == 1 else "", f"{name}_label", labels
    elif name in STATES:
        revolute, prismatic, text = STATES[name]
        usual_unit, axis = per_joint(robot, revolute, prismatic), JOINT
    elif name in PAYLOAD:
        _, usual_unit, text = PAYLOAD[name]
        axis = f"{name}_element"
    elif name == "wrench":
        usual_unit, axis, text = "N·m, N", "twist", "moment and force on the frame"
    else:
        usual_unit, axis = _PARAMETERS.get(name.rsplit(".", 1)[-1], ""), f"{name}_element"
    if size == robot.dof and axis == f"{name}_element":
        axis = JOINT
    shape, axes = ((), ()) if scalar else ((size,), (axis,))
    return Quantity(name, shape, axes, usual_unit if unit is None else unit, text, entries)


def output(robot: Robot, name: str, kind: str, shape: tuple[int, ...], text: str = "") -> Quantity:
    """The quantity that an output of a function is; ``kind`` is what the function calls it."""
    axes, unit = _OUTPUTS.get(kind, (None, ""))
    if axes is None or len(axes) != len(shape):
        return derived(robot, name, shape)
    if isinstance(unit, tuple):
        unit = per_joint(robot, *unit)
    return Quantity(name, shape, axes, unit, text)


def derived(robot: Robot, name: str, shape: tuple[int, ...], unit: str = "") -> Quantity:
    """A result of a user's function: an axis whose length is the number of joints is labelled with the joints."""
    axes = tuple(
        JOINT if n == robot.dof and shape.index(n) == k else f"{name}_axis{k}" for k, n in enumerate(shape)
    )
    return Quantity(name, shape, axes, unit)
