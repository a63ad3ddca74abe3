"""The robot as payload and motion see it: free joints held still, and the link that carries the load."""

from __future__ import annotations

import re

import numpy as np

from linkwise.errors import LinkwiseError
from linkwise.robot.robot import Robot

GRIPS = re.compile(
    "grip|finger|thumb|jaw|knuckle|claw", re.IGNORECASE
)  # names of joints of grippers and hands


def held_still(robot: Robot) -> tuple[Robot, list[str]]:
    """The robot with floating, planar and ball joints locked where they are at rest, and the names of these joints.

    Raises:
        LinkwiseError: nothing else moves.
    """
    neutral, at, positions = robot.neutral, 0, {}
    for joint in robot.coordinate_joints:
        if joint.free:
            positions[joint.name] = neutral[at : at + joint.nq]
        at += joint.nq
    held = robot.lock(positions) if positions else robot
    if held.dof == 0:
        raise LinkwiseError("no joint moves but floating, planar or ball joints, which are held still here")
    return held, list(positions)


def tool_link(robot: Robot) -> str:
    """The link that carries a load: the leaf with the most moving joints before it. Where fingers branch off a link
    and have no more joints than the arm before them, or joints are named after grippers, the link before: a gripper
    holds its load between the fingers."""
    joints = {joint.child: joint for joint in robot.joints}
    children: dict[str, list[str]] = {}
    for joint in robot.joints:
        children.setdefault(joint.parent, []).append(joint.child)

    def chain(link: str) -> list[str]:
        found = [link]
        while found[-1] in joints:
            found.append(joints[found[-1]].parent)
        return found[::-1]  # from the base

    def moving(links: list[str]) -> int:
        return sum(joints[link].moves for link in links if link in joints)

    def branches(link: str) -> bool:
        """Whether two or more of the links behind this one have moving joints."""
        return sum(any_moves(child) for child in children.get(link, [])) > 1

    def any_moves(link: str) -> bool:
        todo = [link]
        while todo:
            here = todo.pop()
            if joints[here].moves:
                return True
            todo += children.get(here, [])
        return False

    leaves = [link.name for link in robot.links if link.name not in children]
    path = chain(max(leaves, key=lambda leaf: moving(chain(leaf))))
    grips = [k for k, link in enumerate(path) if link in joints and GRIPS.search(joints[link].name)]
    moved = [k for k in grips if joints[path[k]].moves]
    if moved and moving(path[: moved[0]]) >= moving(path[moved[0] :]):
        path = path[: moved[0]]
    for number, link in enumerate(path):
        before, behind = moving(path[: number + 1]), moving(path[number + 1 :])
        if branches(link) and before >= behind > 0:
            return link
    return path[-1]


def positions_within_limits(robot: Robot, count: int, seed: int = 0) -> np.ndarray:
    """Random positions, shape (count, n): within the limits, half a turn or 0.5 m where there are none."""
    rng = np.random.default_rng(seed)
    reach = np.array([np.pi if joint.revolute else 0.5 for joint in robot.coordinate_joints])
    lower = np.array([joint.limits.lower for joint in robot.coordinate_joints])
    upper = np.array([joint.limits.upper for joint in robot.coordinate_joints])
    lower, upper = np.minimum(lower, upper), np.maximum(lower, upper)
    low = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - 2 * reach, -reach))
    high = np.where(np.isfinite(upper), upper, np.where(np.isfinite(lower), lower + 2 * reach, reach))
    narrow = np.maximum(low, np.minimum(-reach, high - 1e-3)), np.minimum(high, np.maximum(reach, low + 1e-3))
    return rng.uniform(*narrow, (count, robot.dof))
