"""The directions of friction along a motion, for joints that remember them (see ``joint_laws.direction``)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.compiler.kernel import Kernel
from linkwise.compiler.program import Program, trace
from linkwise.errors import ShapeError
from linkwise.joint_laws.direction import DISTANCE, MEMORY, direction
from linkwise.model import Model
from linkwise.model.coordinates import check_one_axis
from linkwise.scalar import Scalar, maximum, minimum


def next_directions(model: Model, dtype: str = "float64") -> Kernel:
    """The kernel (directions, step, qd) → directions: what a step of positions [rad or m] makes of them.

    A joint without a ``presliding_distance`` has no memory: its direction follows from its speed ``qd`` alone.
    """
    check_one_axis(model, "directions of friction")
    joints, n = model.coordinate_joints, model.dof

    def function(directions: Sequence[Scalar], step: Sequence[Scalar], qd: Sequence[Scalar]) -> list[Scalar]:
        found: list[Scalar] = []
        for joint, d, moved, speed in zip(joints, directions, step, qd, strict=True):
            distance = joint.number(DISTANCE)
            if distance:
                found.append(minimum(maximum(d + moved / distance, -1.0), 1.0))
            else:
                found.append(direction(joint, speed))
        return found

    sizes = {"directions": n, "step": n, "qd": n}
    shapes: dict[str, tuple[int, ...]] = {"next_directions": (n,)}

    def build(precision: Any) -> Program:
        return trace(function, sizes, shapes, name="next_directions", dtype=precision)

    identity = hashlib.sha256(repr(("next_directions", model.content())).encode()).digest()
    made = Kernel("next_directions", sizes.items(), shapes.items(), dtype, build, identity)
    made.origin = (next_directions, (model, dtype))
    return made


def directions_along(model: Model, q: Any, qd: Any, start: Any = None) -> np.ndarray:
    """Directions of friction at the samples of a motion, shape (..., samples, n); see ``Robot.directions``."""
    q, qd = np.broadcast_arrays(np.asarray(q, dtype=float), np.asarray(qd, dtype=float))
    if q.ndim < 2 or q.shape[-1] != model.dof:
        raise ShapeError(f"q: expected shape (..., samples, {model.dof}), got {q.shape}")
    found = np.zeros(q.shape)
    if not q.shape[-2]:
        return found
    following, steps = next_directions(model), np.diff(q, axis=-2)
    # what happened before is not known: by default as if the first step had been made once before
    before = steps[..., 0, :] if steps.shape[-2] else np.zeros_like(q[..., 0, :])
    nothing = np.zeros_like(before)
    state = following(nothing, before, qd[..., 0, :]) if start is None else np.asarray(start, dtype=float)
    found[..., 0, :] = state
    for k in range(steps.shape[-2]):
        found[..., k + 1, :] = following(found[..., k, :], steps[..., k, :], qd[..., k + 1, :])
    return found


def remembers(model: Model) -> bool:
    """Whether friction of a joint depends on the motion before."""
    return any(joint.number(DISTANCE) for joint in model.moving_joints)


def torques_along(robot: Any, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    """Inverse dynamics at the samples (..., samples, n) of a motion, with friction that remembers it."""
    if not remembers(robot):
        return robot.inverse_dynamics(q, qd, qdd)
    return robot.kernel("inverse_dynamics", inputs=(MEMORY,))(q, qd, qdd, directions_along(robot, q, qd))
