"""Planning on the page: drag a target of the tip, see the plan, play it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.collision import HalfSpace, World
from linkwise.errors import LinkwiseError
from linkwise.model import Transform
from linkwise.motion import MotionPlan, Trajectory, plan
from linkwise.report.svg import escape
from linkwise.view.scene import quaternion

if TYPE_CHECKING:
    from linkwise.view.page import Page

SHOWN = 60  # points of the tip's path
ACCELERATION = 20.0  # [rad/s² or m/s²]
COLOUR = (46, 125, 50)


class PlannedTarget:
    """A folder of the motion tab with a handle for the target of the tip.

    Args:
        page: the page.
        load: is called with a motion that was planned.
    """

    def __init__(self, page: Page, load: Callable[[Trajectory], None]):
        self.page, self.gui, self.load = page, page.server.gui, load
        with self.gui.add_folder("Plan"):
            self.on = self.gui.add_checkbox(
                "drag a target", initial_value=False, hint="a motion to it that touches nothing is planned"
            )
            self.says = self.gui.add_html("")
        self.on.on_update(lambda _event: self.switch())
        self.page.handles.append((self.on, self.switch))
        self.handle: Any = None
        self.line: Any = None
        self.found: MotionPlan | None = None
        self._target: tuple[np.ndarray, np.ndarray] | None = None
        self._planning = threading.Lock()

    @property
    def world(self) -> World:
        """The floor and the boxes of the page."""
        clearance = self.page.clearance
        if clearance is None:
            return World()
        room = clearance.room
        floor = [] if room.floor is None else [HalfSpace(self.page.up.tolist(), room.floor)]
        return World([*room.forbidden, *floor])

    def switch(self) -> None:
        """Show or remove the handle, as the checkbox says."""
        for each in (self.handle, self.line):
            if each is not None:
                each.remove()
        self.handle = self.line = None
        self.says.content = ""
        if not self.on.value:
            return
        self.page.only_handle(self.on)
        pose = self.page.live.tip_pose(self.page.live.q)
        self.handle = self.page.server.scene.add_transform_controls(
            "/planned", scale=0.28 * self.page.scene.bones.reach, depth_test=False
        )
        self.handle.position, self.handle.wxyz = pose[:3, 3], quaternion(pose[:3, :3])
        self.handle.on_update(lambda event: self.dragged(event.target.position, event.target.wxyz))

    def dragged(self, position: Any, wxyz: Any) -> None:
        """Plan to the latest target; targets that arrive meanwhile are skipped.

        Args:
            position: of the tip [m].
            wxyz: its quaternion.
        """
        self._target = np.array(position), np.array(wxyz)
        if not self._planning.acquire(blocking=False):
            return
        try:
            while self._target is not None:
                wanted, self._target = self._target, None
                self._plan(*wanted)
        finally:
            self._planning.release()

    def _plan(self, position: np.ndarray, wxyz: np.ndarray) -> None:
        live, robot = self.page.live, self.page.robot
        if not np.isfinite([*position, *wxyz]).all():
            return
        goal = Transform.from_quaternion(tuple(position), tuple(wxyz))
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = goal.rotation, goal.translation
        try:
            found = plan(robot, live.q, pose, self.world, frame=live.tip, acceleration=ACCELERATION)
        except (LinkwiseError, ValueError) as error:
            self._say(str(error))
            return
        self.found = found
        if found.motion is None:
            self._say(f"{found.status}: {found.message}")
            return
        t = np.linspace(found.motion.begin, found.motion.end, SHOWN)
        points = np.array([live.tip_pose(q)[:3, 3] for q in found.motion.at(t).q])
        if self.line is not None:
            self.line.remove()
        self.line = self.page.server.scene.add_line_segments(
            "/plan", np.stack([points[:-1], points[1:]], axis=1), colors=COLOUR
        )
        self._say(
            f"{found.motion.duration:.2f} s; {100 * found.clearance:.1f} cm are kept to obstacles and between links"
        )
        self.load(found.motion)

    def _say(self, text: str) -> None:
        self.says.content = f'<div style="padding:.2em .8em;font-size:.8em;opacity:.9">{escape(text)}</div>'
