"""The poses of a tool with errors of geometry: the chain from a measuring device to what it sees.

    T = base · Π_i [ origin_i · error_i · motion_i(q_i) ] · last · tool

``base`` is the robot's base in the frame of the device, ``tool`` what is measured in the frame that is named. An error
is a small motion of the origin of a joint, in the axes of its child link before it turns. Motions of joints do not
depend on errors, so they are computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from linkwise.model.joint import Joint, bodies_behind
from linkwise.model.transform import Transform
from linkwise.motion.kinematics.rotations import rotation_vector, turn_about
from linkwise.robot.robot import Robot

AXES = "xyz"
ALIGNED = 1.0 - 1e-9  # entry of a unit vector from which it lies along a coordinate axis


@dataclass(frozen=True)
class GeometricParameter:
    """One error: of which element (0: base, 1 … : joints, last: tool), a turn or a shift, about or along an axis."""

    label: str
    group: str
    element: int
    turns: bool
    axis: tuple[float, float, float]

    @property
    def unit(self) -> str:
        return "rad" if self.turns else "m"


@dataclass(frozen=True, eq=False)
class KinematicChain:
    """The chain of one robot at measured positions: ``elements`` (joints + 2) are poses (4, 4) that may be corrected,
    ``motions`` (joints, N, 4, 4) the joints' motions, each followed by what is fixed to the child, (4, 4) in
    ``rest``."""

    joints: tuple[Joint, ...]
    elements: tuple[np.ndarray, ...]
    motions: np.ndarray
    rest: tuple[np.ndarray, ...]

    @classmethod
    def of(
        cls, robot: Robot, q: np.ndarray, frame: str, base: np.ndarray, tool: np.ndarray
    ) -> KinematicChain:
        """The chain of the joints that move a frame, as the robot's file has it."""
        joints, last = path_to(robot, frame)
        origins, motions, rest = [], [], []
        before = robot.base
        for joint in joints:
            _, fixed = robot.carrier(joint.parent)
            rest.append(fixed.matrix)
            start = robot.pose(q, frame=joint.parent) @ joint.origin.matrix
            origins.append(joint.origin.matrix)
            motions.append(_inverse(start) @ robot.pose(q, frame=joint.child))
            before = joint.child
        assert before == (joints[-1].child if joints else robot.base)
        rest.append(last.matrix)
        count = len(q)
        moved = np.stack(motions) if motions else np.zeros((0, count, 4, 4))
        return cls(tuple(joints), (base, *origins, tool), moved, tuple(rest))

    def before(self) -> list[np.ndarray]:
        """The pose (N, 4, 4) of every element's frame, after the element: where its error acts."""
        count = self.motions.shape[1]
        found = [np.broadcast_to(self.elements[0], (count, 4, 4))]
        here = found[0]
        for place in range(len(self.joints)):
            here = here @ self.rest[place] @ self.elements[place + 1]
            found.append(here)
            here = here @ self.motions[place]
        found.append(here @ self.rest[-1] @ self.elements[-1])
        return found

    def poses(self) -> np.ndarray:
        """What is measured, (N, 4, 4)."""
        return self.before()[-1]

    def slopes(self, parameters: Sequence[GeometricParameter]) -> tuple[np.ndarray, np.ndarray]:
        """(turns, shifts) of the measured pose per unit of each parameter, (N, 3, p) each, in the device's axes."""
        frames = self.before()
        end = frames[-1][:, :3, 3]
        turns = np.zeros((len(end), 3, len(parameters)))
        shifts = np.zeros_like(turns)
        for k, each in enumerate(parameters):
            frame = frames[each.element]
            along = frame[:, :3, :3] @ np.array(each.axis)
            if each.turns:
                turns[..., k] = along
                shifts[..., k] = np.cross(along, end - frame[:, :3, 3])
            else:
                shifts[..., k] = along
        return turns, shifts

    def corrected(self, parameters: Sequence[GeometricParameter], step: np.ndarray) -> KinematicChain:
        """The chain with further small errors."""
        shifts = np.zeros((len(self.elements), 3))
        turns = np.zeros_like(shifts)
        for each, value in zip(parameters, step.tolist(), strict=True):
            (turns if each.turns else shifts)[each.element] += value * np.array(each.axis)
        errors = np.tile(np.eye(4), (len(self.elements), 1, 1))
        errors[:, :3, :3], errors[:, :3, 3] = turn_about(turns), shifts
        return replace(self, elements=tuple(T @ E for T, E in zip(self.elements, errors, strict=True)))

    def errors_from(self, other: KinematicChain, parameters: Sequence[GeometricParameter]) -> np.ndarray:
        """The parameters (p,) that lead from another chain to this one."""
        found = []
        for each in parameters:
            error = _inverse(other.elements[each.element]) @ self.elements[each.element]
            vector = rotation_vector(error[:3, :3]) if each.turns else error[:3, 3]
            found.append(float(vector @ np.array(each.axis)))
        return np.array(found)

    def robot(self, given: Robot) -> Robot:
        """The robot with the origins of this chain; what is fixed and what inertias are stay as they are."""
        found = {
            joint.name: Transform(T[:3, :3], T[:3, 3])
            for joint, T in zip(self.joints, self.elements[1:-1], strict=True)
        }
        joints = [
            replace(joint, origin=found[joint.name]) if joint.name in found else joint
            for joint in given.joints
        ]
        return given._with(joints=joints)  # pyright: ignore[reportPrivateUsage]


def path_to(robot: Robot, frame: str) -> tuple[list[Joint], Transform]:
    """The moving joints from the base to a frame, and the pose of the frame in the child of the last one."""
    body, pose = robot.locate(frame)
    return [robot.moving_joints[k] for k in reversed(bodies_behind(robot, body))], pose


def geometric_parameters(joints: Sequence[Joint]) -> list[GeometricParameter]:
    """All errors of a chain, in the order in which they are taken: base, tool, zeros of the joints, their origins.

    Errors that the ones before can cause as well are left out later, so this order decides what carries the blame.
    """
    found = [*_whole("base", 0), *_whole("tool", len(joints) + 1)]
    rest: list[GeometricParameter] = []
    for place, joint in enumerate(joints, 1):
        for axis, name in _directions(joint.axis):
            own = abs(float(np.dot(axis, joint.axis))) > ALIGNED
            for turns in (True, False):
                if own and turns == joint.turns:
                    found.append(
                        GeometricParameter(f"{joint.name}.offset", "offsets", place, turns, joint.axis)
                    )
                else:
                    label = f"{joint.name}.{'r' if turns else ''}{name}"
                    rest.append(GeometricParameter(label, "origins", place, turns, axis))
    return [*found, *rest]


def _whole(name: str, element: int) -> list[GeometricParameter]:
    units = [tuple(float(k == j) for j in range(3)) for k in range(3)]
    return [
        GeometricParameter(f"{name}.{'r' if turns else ''}{letter}", name, element, turns, axis)  # type: ignore
        for turns in (False, True)
        for letter, axis in zip(AXES, units, strict=True)
    ]


def _directions(axis: Sequence[float]) -> list[tuple[tuple[float, float, float], str]]:
    """Three unit vectors, one of them the axis of the joint, with their names."""
    along = np.asarray(axis, dtype=float)
    nearest = int(np.argmax(np.abs(along)))
    if abs(along[nearest]) > ALIGNED:
        return [(tuple(row), letter) for row, letter in zip(np.eye(3).tolist(), AXES, strict=True)]  # type: ignore
    first = np.cross(along, np.eye(3)[(nearest + 1) % 3])
    first /= np.linalg.norm(first)
    rows = (first, np.cross(along, first), along)
    return [(tuple(row.tolist()), name) for row, name in zip(rows, ("u", "v", "w"), strict=True)]


def _inverse(T: np.ndarray) -> np.ndarray:
    """Of poses (..., 4, 4)."""
    found = np.zeros_like(T)
    R = np.swapaxes(T[..., :3, :3], -1, -2)
    found[..., :3, :3], found[..., 3, 3] = R, 1.0
    found[..., :3, 3] = -(R @ T[..., :3, 3, None])[..., 0]
    return found
