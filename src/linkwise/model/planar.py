"""A joint that moves in a plane, as two slides and a turn: the coordinates (x, y, θ).

The slides are along two axes of the plane that do not turn with the link; the turn is about the plane's normal. Two
links without mass lie between the joints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linkwise.core.products import length, times
from linkwise.model.joint import Joint, Limits
from linkwise.model.transform import Transform

ENDINGS = ("x", "y", "theta")  # of the names of the three joints


def planar_joints(
    name: str,
    parent: str,
    child: str,
    between: str,
    unused: Callable[[str], str],
    *,
    origin: Transform | None = None,
    normal: Sequence[float] = (0.0, 0.0, 1.0),
    limits: Limits | None = None,
    **friction: Any,
) -> tuple[list[str], list[Joint]]:
    """The names of the two links ``between`` the ends and the joints ``name_x``, ``name_y`` and ``name_theta``.

    ``unused`` turns a name into one that is free. Limits of position are left out: the formats do not say of which of
    the three they are.
    """
    x, y = in_plane(normal)
    links = [unused(f"{between}_{ending}") for ending in ENDINGS[:2]]
    names = [unused(f"{name}_{ending}") for ending in ENDINGS]
    ends = [parent, *links, child]
    kinds = ("prismatic", "prismatic", "continuous")
    axes = (x, y, (float(normal[0]), float(normal[1]), float(normal[2])))
    limits = Limits() if limits is None else Limits(velocity=limits.velocity, effort=limits.effort)
    joints = [
        Joint(
            *(names[k], kinds[k], ends[k], ends[k + 1]),
            origin=origin if k == 0 and origin is not None else Transform.identity(),
            axis=axes[k],
            limits=limits,
            **friction,
        )
        for k in range(3)
    ]
    return links, joints


def in_plane(normal: Sequence[float]) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """The x and y axes of the plane with this unit normal: x is the coordinate axis that follows the one nearest to
    the normal (x after z, y after x, z after y), made perpendicular to it; y = normal × x."""
    z = np.array(normal, dtype=float)
    x = np.eye(3)[(int(np.argmax(np.abs(z))) + 1) % 3]
    x = x - times(x, z) * z
    x = x / length(x)
    y = np.cross(z, x)
    return _triple(x), _triple(y)


def _triple(v: np.ndarray) -> tuple[float, float, float]:
    x, y, z = (v + 0.0).tolist()  # no negative zeros
    return x, y, z
