"""A recording of a robot with a floating base: its joints, and what was recorded of base and feet."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from linkwise.identify.errors import LogError
from linkwise.identify.recordings.log import Log
from linkwise.robot.robot import Robot

BASE_FIELDS = {
    "base_position": 3,
    "base_orientation": 4,
    "base_velocity": 3,
    "base_angular_velocity": 3,
    "gyro": 3,
    "accelerometer": 3,
}
"""What may be recorded of a base, and how many numbers each has."""
FEET_FIELDS = ("contacts", "foot_forces")


def is_floating(robot: Robot) -> bool:
    """Whether the first joint of a robot is a floating base.

    Args:
        robot: any robot.
    """
    joints = robot.coordinate_joints
    return bool(joints) and joints[0].type == "floating"


def joints_alone(robot: Robot) -> Robot:
    """The same robot with its base held, whose coordinates are those of the joints.

    Args:
        robot: with a floating base.
    """
    return robot.lock({robot.coordinate_joints[0].name: robot.neutral[:7]})  # type: ignore[dict-item]


@dataclass(frozen=True, repr=False)
class WalkingLog(Log):
    """Joint positions and torques over time, and the motion of the base.

    All of the base is optional, but its acceleration must follow from something: an accelerometer with a gyroscope, or
    velocities or positions with orientations. ``base_position`` (N, 3) [m] in the world; ``base_orientation`` (N, 4),
    the quaternion (x, y, z, w) from base to world; ``base_velocity`` (N, 3) [m/s] of the base's origin in world axes;
    ``base_angular_velocity`` (N, 3) [rad/s] in axes of the base; ``gyro`` (N, 3) [rad/s] and ``accelerometer`` (N, 3)
    [m/s²], which shows +9.81 upwards at rest, both in axes of the base and at its origin, or in those of a frame of the
    robot whose name has "imu" in it. ``contacts`` (N, feet): not 0 where a foot touches the ground. ``foot_forces``
    (N, feet) [N] are vertical forces, for deciding which feet touch; nothing else depends on them. ``feet`` are the
    names of the feet where the columns have some.
    """

    base_position: np.ndarray | None = None
    base_orientation: np.ndarray | None = None
    base_velocity: np.ndarray | None = None
    base_angular_velocity: np.ndarray | None = None
    gyro: np.ndarray | None = None
    accelerometer: np.ndarray | None = None
    contacts: np.ndarray | None = None
    foot_forces: np.ndarray | None = None
    feet: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        super().__post_init__()
        for key, width in {**BASE_FIELDS, "contacts": 0, "foot_forces": 0}.items():
            value = getattr(self, key)
            if value is None:
                continue
            value = np.ascontiguousarray(value, dtype=float)
            wanted = (len(self.t), width or (value.shape[1] if value.ndim == 2 else 0))
            if value.shape != wanted or not wanted[1]:
                raise LogError(
                    f"{self.name}: {key}: expected shape ({len(self.t)}, {width or 'feet'}), got {value.shape}"
                )
            if not np.isfinite(value).all():
                raise LogError(f"{self.name}: {key} contains numbers that are not finite")
            object.__setattr__(self, key, value)
        if not self.feels and (self.base_orientation is None or not self.travels):
            raise LogError(
                f"{self.name}: the motion of the base does not follow from this recording: needed are accelerometer "
                "and gyro, or the orientation of the base with its velocity or position"
            )

    @property
    def feels(self) -> bool:
        """Whether an inertial measurement unit was recorded."""
        turns = self.gyro is not None or self.base_angular_velocity is not None
        return self.accelerometer is not None and (turns or self.base_orientation is not None)

    @property
    def travels(self) -> bool:
        """Whether velocities or positions of the base were recorded."""
        return self.base_velocity is not None or self.base_position is not None

    def _pick(self, which: slice, note: str) -> WalkingLog:
        cut = {
            key: getattr(self, key)[which]
            for key in ("t", "q", "tau", "qd", *BASE_FIELDS, *FEET_FIELDS)
            if getattr(self, key) is not None
        }
        return replace(self, notes=(*self.notes, note), **cut)
