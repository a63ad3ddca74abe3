"""Other robots beside the one that the page is about, for instance the same one before and after identification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.geometry.visuals import Looks, read_looks
from linkwise.model.coordinates import velocity_coordinates
from linkwise.view.bars import bars
from linkwise.view.live import Live
from linkwise.view.scene import RobotScene

if TYPE_CHECKING:
    from linkwise.robot.robot import Robot
    from linkwise.view.page import Page

APART = 0.35  # between neighbours, as a fraction of the reach


class Beside:
    """A robot that follows the page's robot if it has as many coordinates; otherwise it stays at its start."""

    def __init__(self, page: Page, robot: Robot, root: str, offset: np.ndarray, bars_handle: Any):
        self.live = Live(robot)
        self.follows = robot.nq == page.robot.nq
        if self.follows:
            self.live.q = page.live.q
        looks = read_looks(robot.source[0], robot.source[1:]) if robot.source else Looks()
        self.scene = RobotScene(page.server, robot, looks, root, offset=offset)
        for group in (
            "ellipsoids",
            "masses",
            "frames",
            "names",
            "skeleton" if self.scene.has_meshes else "joints",
        ):
            self.scene.show(group, False)
        self.bars = bars_handle
        self.scene.move(self.live.q)

    def follow(self, q: np.ndarray) -> None:
        """Take the position of the page's robot."""
        robot = self.live.robot
        if self.follows:
            self.live.q = q
            self.scene.move(q)
        if not robot.dof:
            return
        torques = self.live.gravity()
        self.scene.colour(torques / self.live.scale)
        caption = f"{robot.name}: gravity torques"
        self.bars.content = bars(velocity_coordinates(robot), torques, self.live.scale, caption)


def beside(page: Page, robots: Sequence[Robot]) -> list[Beside]:
    """Put robots in a row, along the page's horizontal direction that is nearest to y."""
    row: list[Beside] = []
    low, high = page.scene.box(page.live.q)
    across = np.array([0.0, 1.0, 0.0]) if abs(page.up[1]) < 0.9 else np.array([1.0, 0.0, 0.0])
    place = float(high @ across)
    for k, robot in enumerate(robots):
        with page.torques:
            handle = page.server.gui.add_html("")
        made = Beside(page, robot, f"/beside{k}", np.zeros(3), handle)
        low, high = made.scene.box(made.live.q)
        place += APART * made.scene.bones.reach - float(low @ across)
        made.scene.put(place * across)
        place += float(high @ across)
        row.append(made)
    return row
