"""Springs and dampers that an MJCF file gives by a time constant and a damping ratio: ``springdamper`` of a joint.

MuJoCo's compiler chooses stiffness and damping so that the joint alone, with the inertia that it feels where all others
are free to move, has this time constant τ and damping ratio ζ: with 1/I the mean of the diagonal of M⁻¹ over the
joint's velocities, in the pose that the file draws, k = I/(τ ζ)² and d = 2 I/τ. Rotor inertias count, also those of
tendons.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from linkwise.model.joint import Joint
from linkwise.model.model import Model
from linkwise.model.motors import Motor
from linkwise.model.transform import Transform

Given = Mapping[str, tuple[float, float]]
"""Time constant [s] and damping ratio of joints by name."""


def with_springdampers(
    model: Model,
    motors: Iterable[Motor],
    given: Given,
    drawn: Callable[[str], Transform],
    *,
    springs: bool,
    dampers: bool,
) -> Sequence[Joint]:
    """The joints of a robot with these springs and dampers in place of others; ``drawn`` gives the pose of a link as
    the file draws it, ``springs`` and ``dampers`` say whether the file's switches leave them on."""
    if not given:
        return model.joints
    inertias = _felt_inertias(model, motors, functools.cache(drawn))
    changed: list[Joint] = []
    for joint in model.joints:
        if joint.name in given:
            (time, ratio), inertia = given[joint.name], inertias[joint.name]
            if dampers:
                joint = replace(joint, viscous_friction=2 * inertia / time)
            if springs:
                joint = replace(joint, terms={**joint.terms, "stiffness": inertia / (time * ratio) ** 2})
        changed.append(joint)
    return changed


def _felt_inertias(
    model: Model, motors: Iterable[Motor], drawn: Callable[[str], Transform]
) -> dict[str, float]:
    """The inertia of each moving joint where all others are free [kg·m² or kg]; of several axes, as MuJoCo averages."""
    moving = model.moving_joints
    ends = np.cumsum([joint.dof for joint in moving])
    own = {joint.name: slice(end - joint.dof, end) for joint, end in zip(moving, ends, strict=True)}
    matrix = np.diag(np.concatenate([[joint.rotor_inertia] * joint.dof for joint in moving]))
    above = {joint.child: joint for joint in model.joints}
    for link in model.links:
        columns = np.zeros((6, len(matrix)))
        name = link.name
        while name in above:
            if above[name].moves:
                columns[:, own[above[name].name]] = _axes(above[name], drawn(name))
            name = above[name].parent
        matrix += (
            columns.T @ _spatial_inertia(link.inertia.expressed_in(drawn(link.name)).parameters) @ columns
        )
    for motor in motors:
        row = np.zeros(len(matrix))
        for name, factor in motor.joints.items():
            row[own[name]] = factor
        matrix += motor.rotor_inertia * np.outer(row, row)
    free = np.diag(np.linalg.inv(matrix))
    return {joint.name: 1.0 / float(free[own[joint.name]].mean()) for joint in moving}


def _axes(joint: Joint, pose: Transform) -> np.ndarray:
    """Motions (angular, linear) of a body about the origin of the world, one column for each velocity of the joint,
    whose child stands at ``pose``."""
    axes = pose.rotation if joint.free else (pose.rotation @ np.array(joint.axis))[:, None]
    turning = np.vstack([axes, np.cross(pose.translation, axes.T).T])
    sliding = np.vstack([np.zeros_like(axes), axes])
    if joint.type == "floating":
        return np.hstack([turning, sliding])
    return sliding if joint.slides else turning


def _spatial_inertia(parameters: Sequence[float]) -> np.ndarray:
    m, x, y, z, xx, xy, xz, yy, yz, zz = parameters
    H = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    moments = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return np.block([[moments, H], [H.T, m * np.eye(3)]])
