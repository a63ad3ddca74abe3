"""Feet, what their forces do to the coordinates, and rows in which these forces are gone.

Y θ = S τ + Σ Jᵀ f holds with any forces f of the feet that are held. With rows divided by the standard deviations D of
their errors, Q an orthonormal basis of the columns of D⁻¹ Jᵀ and P = 1 − Q Qᵀ,

    P D⁻¹ Y θ = P D⁻¹ S τ,

which has no forces in it: foot forces need not be measured, and of all unbiased estimates with unknown forces this is
the one of least variance. A foot that counts as held but touches nothing costs rows and nothing else (its force is
zero); one that counts as free but touches something is an error. So a foot is free only where nothing says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.identify.errors import IdentificationError
from linkwise.model.joint import bodies_behind
from linkwise.robot.robot import Robot

LARGE = 6  # joints between base and foot from which the foot has an area: moments act on it as well
BLOCK = 40000  # numbers that are projected together
DEPENDENT = (
    1e-9  # length of what is left of a column beside those before, relative to it, that counts as nothing
)
_FOOT = "foot|feet|toe|sole|hoof|paw"
_SECOND = "ankle|_tip$|contact"


@dataclass(frozen=True)
class Foot:
    """What touches the ground: points of a frame, spheres of a radius [m] about them; ``area``: moments act on it."""

    name: str
    frame: str
    offset: tuple[float, ...] = (0.0, 0.0, 0.0)
    radius: float = 0.0
    area: bool = False

    @property
    def rows(self) -> int:
        """Numbers of a force, or of a force and a moment."""
        return 6 if self.area else 3


def feet_of(robot: Robot, given: Sequence[str] | None = None) -> tuple[Foot, ...]:
    """The feet of a robot: as given, else its contacts with the ground, else frames at its ends that are called so.

    Args:
        robot: with a floating base.
        given: names of frames, each with an optional point in it: ``FL_calf:0,0,-0.213``.
    """
    if given:
        return tuple(_foot_of_text(robot, text) for text in given)
    found = _feet_of_contacts(robot) or _by_name(robot)
    if not found:
        raise IdentificationError(
            f"{robot.name}: its feet are not known: no contacts with the ground, no frames that are called foot, toe, "
            'sole or ankle; name them (feet=["FRAME", "FRAME:x,y,z"], --feet)'
        )
    return found


def _foot_of_text(robot: Robot, text: str) -> Foot:
    frame, _, place = text.partition(":")
    if frame not in robot.frame_names:
        raise IdentificationError(f"feet: no frame {frame!r}; valid: {', '.join(robot.frame_names)}")
    try:
        numbers = tuple(float(x) for x in re.split("[,;/ ]+", place.strip())) if place else (0.0, 0.0, 0.0)
    except ValueError:
        numbers = ()
    if len(numbers) not in (3, 4):
        raise IdentificationError(f"feet: {text!r}: expected FRAME or FRAME:x,y,z or FRAME:x,y,z,radius [m]")
    return Foot(frame, frame, numbers[:3], numbers[3] if len(numbers) == 4 else 0.0, _has_area(robot, frame))


def _feet_of_contacts(robot: Robot) -> tuple[Foot, ...]:
    """Feet by the contacts of the robot with the ground; several points of one body are an area."""
    points: dict[int, list[Foot]] = {}
    for contact in robot.contacts or ():
        if contact.other is not None or contact.nearest is not None:
            continue
        body = robot.locate(contact.frame)[0]
        if body <= 0:
            continue
        name = contact.name or contact.frame
        spheres = [
            (shape.offset, shape.sizes[0] if shape.kind == "sphere" else 0.0) for shape in contact.shapes
        ]
        spheres = spheres or [(point, contact.radius) for point in contact.points or ((0.0, 0.0, 0.0),)]
        area = contact.edges is not None or any(shape.kind != "sphere" for shape in contact.shapes)
        for place, radius in spheres:
            points.setdefault(body, []).append(Foot(name, contact.frame, tuple(place), radius, area))
    return tuple(
        own[0] if len(own) == 1 else Foot(own[0].name, own[0].frame, area=True) for own in points.values()
    )


def _by_name(robot: Robot) -> tuple[Foot, ...]:
    """Feet by the names of frames, one for each body at an end of the tree."""
    inner = {robot.carrier(joint.parent)[0] for joint in robot.moving_joints}
    for pattern in (_FOOT, _SECOND):
        found: dict[int, str] = {}
        for name in robot.frame_names:
            body = robot.locate(name)[0]
            if body > 0 and body not in inner and re.search(pattern, name.lower()):
                found.setdefault(body, name)
        if len(found) > 1:
            return tuple(Foot(name, name, area=_has_area(robot, name)) for name in found.values())
    return ()


def _has_area(robot: Robot, frame: str) -> bool:
    """Whether a foot hangs on so many joints that it can be laid flat on the ground."""
    return sum(body > 0 for body in bodies_behind(robot, robot.locate(frame)[0])) >= LARGE


def jacobians(robot: Robot, foot: Foot, q: np.ndarray, up: np.ndarray) -> np.ndarray:
    """Columns of a foot's forces in the rows of the equation of motion, Jᵀ, shape (N, dof, 3 or 6).

    Args:
        robot: the robot.
        foot: the foot.
        q: positions of all coordinates, (N, nq).
        up: direction against gravity, (N, 3): the ground is below a sphere.
    """
    J = np.asarray(robot.jacobian(q, frame=foot.frame))
    angular, linear = J[:, :3], J[:, 3:]
    if any(foot.offset) or foot.radius:
        R = np.asarray(robot.pose(q, frame=foot.frame))[:, :3, :3]
        arm = (R * np.asarray(foot.offset)).sum(axis=-1) - foot.radius * up
        linear = linear + np.cross(angular, arm[:, :, None], axis=1)
    columns = np.concatenate([linear, angular], axis=1) if foot.area else linear
    return np.swapaxes(columns, 1, 2)


def orthonormal(columns: np.ndarray) -> np.ndarray:
    """Orthonormal columns (N, rows, k) that span those of ``columns``; zero where one depends on those before it.

    Args:
        columns: shape (N, rows, k).
    """
    Q = columns.copy()
    size = np.sqrt((columns**2).sum(axis=1))
    for k in range(Q.shape[2]):
        for _ in range(2):  # twice is enough (Kahan and Parlett)
            along = (Q[:, :, :k] * Q[:, :, k : k + 1]).sum(axis=1)
            Q[:, :, k] -= (Q[:, :, :k] * along[:, None, :]).sum(axis=2)
        left = np.sqrt((Q[:, :, k] ** 2).sum(axis=1))
        kept = left > DEPENDENT * np.maximum(size[:, k], 1e-300)
        Q[:, :, k] = np.where(kept[:, None], Q[:, :, k] / np.where(kept, left, 1.0)[:, None], 0.0)
    return Q


def projected(Q: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(1 − Q Qᵀ) of every sample's rows (N, rows) or (N, rows, p).

    Args:
        Q: orthonormal or zero columns, (N, rows, k).
        rows: shape (N, rows) or (N, rows, p).
    """
    left = (rows[..., None] if rows.ndim == 2 else rows).copy()
    block = max(1, BLOCK // max(1, left[0].size)) if len(left) else 1
    for first in range(0, len(left), block):  # so that a block stays in the cache of the processor
        part, own = left[first : first + block], Q[first : first + block]
        for k in range(Q.shape[2]):
            column = own[:, :, k, None]
            part -= column * (column * part).sum(axis=1, keepdims=True)
    return left[..., 0] if rows.ndim == 2 else left


__all__ = ["Foot", "feet_of", "jacobians", "orthonormal", "projected"]
