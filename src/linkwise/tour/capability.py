"""How much a robot can hold, and where.

At rest the torques are linear in the load: τ = g(q) + m·a(q) with a = −J_vᵀ·gravity per kilogram at the tip. So a
formula gives the largest mass that keeps every joint within its effort limit; it is evaluated at many random positions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.errors import LinkwiseError
from linkwise.model.coordinates import check_motors
from linkwise.robot.robot import Robot
from linkwise.tour.held import held_still, positions_within_limits, tool_link

DOUBTFUL_PAYLOAD = (
    "By its effort limits it would hold more than its own mass everywhere, which hardly any arm does: limits in the "
    "file may be placeholders. Compare them with the data sheets of the motors."
)
POSITIONS = 20_000
ACROSS, UP = 22, 30  # cells of the map


@dataclass(frozen=True)
class Capability:
    """Payloads over the workspace, by distance from the base axis and height of the load."""

    frame: str
    """The link at whose origin the load hangs."""
    held: list[str]
    """Free joints that were held still."""
    names: tuple[str, ...]
    gravity: np.ndarray
    """Largest torque that holds each joint without load [N·m or N], shape (n,)."""
    limits: np.ndarray
    """Effort limits, shape (n,); infinite where the file has none."""
    payload: np.ndarray
    """Largest mass [kg] at each position, shape (positions,); empty where no joint of the chain has a limit."""
    limiting: np.ndarray
    """The joint that limits it, an index, shape (positions,)."""
    radius: np.ndarray
    height: np.ndarray
    mass: float
    """Of the moving links [kg]."""

    def holds(self, share: float) -> float:
        """The mass [kg] that this share of all positions holds."""
        return float(np.quantile(self.payload, 1.0 - share))

    @property
    def doubtful(self) -> bool:
        """Whether every position holds more than the robot's own mass."""
        return bool(self.payload.size) and bool(self.payload.min() > self.mass)

    def stretched(self) -> float:
        """The least mass [kg] among the five percent of positions that reach furthest."""
        return float(self.payload[self.radius >= np.quantile(self.radius, 0.95)].min())

    def map(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(edges of distance, edges of height, least payload of each cell); NaN where no position came."""
        x, y = _edges(self.radius, ACROSS), _edges(self.height, UP)
        least = np.full((UP, ACROSS), np.inf)
        columns = np.clip(np.searchsorted(x, self.radius, side="right") - 1, 0, ACROSS - 1)
        rows = np.clip(np.searchsorted(y, self.height, side="right") - 1, 0, UP - 1)
        np.minimum.at(least, (rows, columns), self.payload)
        return x, y, np.where(np.isfinite(least), least, np.nan)


def payload_capability(
    robot: Robot, frame: str | None = None, *, positions: int = POSITIONS, seed: int = 0
) -> Capability:
    """The payload that a robot holds at rest, at random positions within its limits.

    Args:
        robot: the robot; floating, planar and ball joints are held still.
        frame: the link or frame that carries the load; by default the end of the longest chain.
        positions: number of positions.
        seed: of the random positions.

    Raises:
        LinkwiseError: no joint moves, the robot has closed loops, or there is no gravity.
    """
    if robot.constraints:
        raise LinkwiseError("its loops are closed: the torques that hold it depend on the constraints")
    check_motors(robot, "payload")
    arm, held = held_still(robot)
    weight = np.array(arm.gravity)
    if not weight.any():
        raise LinkwiseError("there is no gravity")
    tip = tool_link(arm) if frame is None else frame
    q = positions_within_limits(arm, positions, seed)
    gravity = arm.gravity_torques(q)
    per_kilogram = -(weight @ arm.jacobian(q, tip)[:, 3:, :])
    place = arm.pose(q, tip)[:, :3, 3]
    up = -weight / np.linalg.norm(weight)
    height = place @ up
    radius = np.linalg.norm(place - height[:, np.newaxis] * up, axis=1)
    limits = arm.effort_limits
    payload, limiting = _largest(gravity, per_kilogram, limits)
    most = np.abs(gravity).max(axis=0)
    mass = sum(link.inertia.mass for link in arm.links if link.name != arm.base)
    return Capability(tip, held, arm.joint_names, most, limits, payload, limiting, radius, height, mass)


def _largest(
    gravity: np.ndarray, per_kilogram: np.ndarray, limits: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Largest mass at each position and the joint that limits it; joints that do not feel the load do not count."""
    felt = np.abs(per_kilogram) > 1e-9
    chain = felt.any(axis=0) & np.isfinite(limits)
    if not chain.any():
        return np.zeros(0), np.zeros(0, dtype=int)
    with np.errstate(divide="ignore", invalid="ignore"):
        each = (limits - gravity * np.sign(per_kilogram)) / np.abs(per_kilogram)
    each = np.where(felt & chain, np.maximum(each, 0.0), np.inf)
    each = np.where(chain & (np.abs(gravity) > limits), 0.0, each)  # it cannot hold itself
    return each.min(axis=1), each.argmin(axis=1)


def _edges(values: np.ndarray, cells: int) -> np.ndarray:
    low, high = float(values.min()), float(values.max())
    if high - low < 1e-6:
        low, high = low - 0.05, high + 0.05
    return np.linspace(low, high, cells + 1)
