"""The directions of friction along a motion, for joints that remember them (see ``joint_laws.direction``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.compiler.kernel import Kernel, traced_kernel
from linkwise.compiler.runtime.arrays import as_reals
from linkwise.errors import ShapeError
from linkwise.joint_laws.direction import DISTANCE, MEMORY, direction
from linkwise.model import Joint, Model
from linkwise.model.coordinates import check_one_axis
from linkwise.scalar import Scalar, maximum, minimum


def friction_axes(model: Model) -> list[tuple[Joint, list[tuple[int, float]]]]:
    """What has friction of its own, with (coordinate, factor) of its position: joints, then motors of several."""
    number = {name: k for k, name in enumerate(model.joint_names)}
    motors = {motor.name: motor for motor in model.motors}
    return [(joint, [(number[joint.name], 1.0)]) for joint in model.coordinate_joints] + [
        (joint, [(number[name], factor) for name, factor in motors[joint.name].joints.items()])
        for joint in model.moving_joints
        if joint.name in motors
    ]


def _along(row: list[tuple[int, float]], values: Sequence[Any]) -> Any:
    """The weighted sum of coordinates; a joint's own as it is."""
    parts = [values[k] if factor == 1.0 else factor * values[k] for k, factor in row]
    return sum(parts[1:], start=parts[0])


def next_directions(model: Model, dtype: str = "float64") -> Kernel:
    """The kernel (directions, step, qd) → directions: what a step of positions [rad or m] makes of them.

    A joint without a ``presliding_distance`` has no memory: its direction follows from its speed ``qd`` alone. Motors
    that move several joints come behind the joints, in ``directions`` only.
    """
    check_one_axis(model, "directions of friction")
    n, axes = model.dof, friction_axes(model)

    def function(directions: Sequence[Scalar], step: Sequence[Scalar], qd: Sequence[Scalar]) -> list[Scalar]:
        found: list[Scalar] = []
        for (joint, row), d in zip(axes, directions, strict=True):
            distance = joint.number(DISTANCE)
            if distance:
                found.append(minimum(maximum(d + _along(row, step) / distance, -1.0), 1.0))
            else:
                found.append(direction(joint, _along(row, qd)))
        return found

    sizes = {"directions": len(axes), "step": n, "qd": n}
    shapes: dict[str, tuple[int, ...]] = {"next_directions": (len(axes),)}

    content = ("next_directions", model.content())
    made = traced_kernel("next_directions", function, sizes, shapes, dtype, content)
    made.origin = (next_directions, (model, dtype))
    return made


def directions_along(model: Model, q: Any, qd: Any, start: Any = None) -> np.ndarray:
    """Directions of friction at the samples of a motion; see ``Robot.directions``."""
    given = {"q": as_reals("q", q).astype(float), "qd": as_reals("qd", qd).astype(float)}
    for name, values in given.items():
        if values.ndim < 2 or values.shape[-1] != model.dof:
            raise ShapeError(f"{name}: expected shape (..., samples, {model.dof}), got {values.shape}")
    q, qd = np.broadcast_arrays(*given.values())
    axes = friction_axes(model)
    p = _of_axes(axes, q)
    found = _by_speed(axes, _of_axes(axes, qd))
    distances = np.array([joint.number(DISTANCE) for joint, _ in axes])
    slow = distances > 0.0
    first = None if start is None else np.asarray(start, dtype=float)
    found[..., slow] = remembered(p[..., slow], distances[slow], None if first is None else first[..., slow])
    if first is not None and q.shape[-2]:
        found[..., 0, :] = first
    return found


def _of_axes(axes: Sequence[tuple[Joint, list[tuple[int, float]]]], x: np.ndarray) -> np.ndarray:
    """Positions or speeds of all axes with friction, from those of coordinates (..., n)."""
    each: Any = np.moveaxis(x, -1, 0)
    return np.stack([_along(row, each) for _, row in axes], axis=-1) if axes else x


def _by_speed(axes: Sequence[tuple[Joint, list[tuple[int, float]]]], speeds: np.ndarray) -> np.ndarray:
    """Directions that follow from speeds alone, (..., axes)."""
    found = np.empty(speeds.shape)
    for k, (joint, _) in enumerate(axes):
        speed: Any = speeds[..., k]
        along: Any = direction(joint, speed)
        found[..., k] = along
    return found


def remembered(q: np.ndarray, distances: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """Directions with a memory at the samples of positions, shape (..., samples, n): d ← clip(d + Δq/δ, −1, 1).

    ``distances`` are δ, shape (..., n). What happened before is not known: without ``start`` it is as if the first step
    had been made once before.
    """
    steps = np.diff(q, axis=-2) / distances[..., None, :]
    d = np.zeros((*steps.shape[:-2], q.shape[-2], q.shape[-1]))
    if not q.shape[-2]:
        return d
    if start is not None:
        d[..., 0, :] = start
    elif steps.shape[-2]:
        d[..., 0, :] = np.clip(steps[..., 0, :], -1.0, 1.0)
    for k in range(steps.shape[-2]):
        d[..., k + 1, :] = np.minimum(np.maximum(d[..., k, :] + steps[..., k, :], -1.0), 1.0)
    return d


def remembers(model: Model) -> bool:
    """Whether friction of a joint depends on the motion before."""
    return any(joint.number(DISTANCE) for joint in model.moving_joints)


def torques_along(robot: Any, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    """Inverse dynamics at the samples (..., samples, n) of a motion, with friction that remembers it."""
    if not remembers(robot):
        return robot.inverse_dynamics(q, qd, qdd)
    return robot.kernel("inverse_dynamics", inputs=(MEMORY,))(q, qd, qdd, directions_along(robot, q, qd))


def torque_range(
    robot: Any, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, slowest: float, *, in_order: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """(lower, upper) torques (..., n) with which a state agrees: friction of what rests may have any direction.

    Args:
        robot: the robot.
        q: positions, (..., n).
        qd: velocities, (..., n).
        qdd: accelerations, (..., n).
        slowest: speed [rad/s or m/s] up to which an axis rests.
        in_order: the states are samples of one motion, (..., samples, n).
    """
    q, qd, qdd = np.broadcast_arrays(*(np.asarray(x, dtype=float) for x in (q, qd, qdd)))
    axes = friction_axes(robot)
    speeds = _of_axes(axes, qd)
    rests = np.abs(speeds) <= slowest
    along = directions_along(robot, q, qd) if in_order else _by_speed(axes, speeds)
    torques = robot.kernel("inverse_dynamics", inputs=(MEMORY,))
    middle = np.where(rests, 0.0, along)
    base = torques(q, qd, qdd, middle)
    lower, upper = base.copy(), base.copy()
    for k in range(len(axes)):
        mine = rests & (np.arange(len(axes)) == k)
        if mine.any():
            ends = [torques(q, qd, qdd, np.where(mine, end, middle)) - base for end in (1.0, -1.0)]
            lower += np.minimum(*ends)
            upper += np.maximum(*ends)
    return lower, upper
