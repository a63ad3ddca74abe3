"""Numbers that are none in results: what they mean, as an error that names the joint or the frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.compiler.runtime.arrays import Array, is_numeric
from linkwise.errors import SingularError

if TYPE_CHECKING:
    from linkwise.robot.robot import Robot


def check_derivatives(robot: Robot, by_q: Any, given: Mapping[str, Any]) -> None:
    """Raise SingularError where the derivatives of accelerations under constraints do not exist."""
    if not (robot.constraints and is_numeric(by_q) and np.isnan(by_q).any()):
        return
    if all(np.isfinite(np.asarray(value, dtype=float)).all() for value in given.values()):
        raise SingularError(
            f"{robot.name}: accelerations have no derivatives by q in some state: its constraints hold fewer "
            "directions there than beside it (robot.constraint_jacobian(q) loses rank)"
        )


def check_task(robot: Robot, result: Any, q: Array, frame: str | None) -> None:
    """Raise SingularError where a frame cannot be moved in all directions."""
    if is_numeric(result) and np.isnan(result).any():
        look_at(robot, result, {"q": q})
        if np.isfinite(np.asarray(q, dtype=float)).all():
            raise SingularError(
                f"{robot.name}: {frame_of(robot, frame)!r} cannot be moved in all six directions in some state, "
                "so its task inertia is infinite; look at the rank of robot.jacobian(q)"
            )


def frame_of(robot: Robot, frame: str | None) -> str:
    """A frame by name; by default the only leaf."""
    return robot.default_frame() if frame is None else frame


def look_at(robot: Robot, result: Any, given: Mapping[str, Any]) -> None:
    """A NaN that the inputs do not explain comes from a singular mass matrix: say so, and name the joint."""
    if is_numeric(result) and np.isnan(result).any():
        from linkwise.robot import diagnose

        diagnose.singular(robot, result, given)
