"""Predictive control on the page: drag a target, and the arm follows as fast as its torque limits allow."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.errors import LinkwiseError
from linkwise.model import Transform
from linkwise.optimal import Predictive
from linkwise.report.svg import escape
from linkwise.simulate.loop import step_kernel
from linkwise.view.scene import quaternion

if TYPE_CHECKING:
    from linkwise.view.page import Page

HORIZON, STEP = 12, 0.04  # plans of about half a second
SUBSTEP = 2e-3  # [s] of the simulated arm
SAMPLE = 8e-3  # [s] from one plan to the next
FRAME = 1 / 30  # [s]


class DraggedTarget:
    """A folder of the control tab with a handle for the target, and a thread that simulates the arm in real time.

    Args:
        page: the page.
    """

    def __init__(self, page: Page):
        self.page, self.gui = page, page.server.gui
        with self.gui.add_folder("Predictive control"):
            self.on = self.gui.add_checkbox(
                "drag a target", initial_value=False, hint="the arm follows at its limits"
            )
            self.frequency = self.gui.add_slider(
                "quickness [rad/s]", min=2.0, max=20.0, step=1.0, initial_value=8.0
            )
            self.says = self.gui.add_html("")
        self.on.on_update(lambda _event: self.switch())
        self.page.handles.append((self.on, self.switch))
        self.law: Predictive | None = None
        self.handle: Any = None
        self._running = threading.Event()
        self._thread: threading.Thread | None = None

    def switch(self) -> None:
        """Start or stop as the checkbox says."""
        if not self.on.value:
            self.stop()
            return
        self.page.only_handle(self.on)
        try:
            self.start()
        except (LinkwiseError, ValueError) as error:
            self.says.content = _html(escape(error))
            return
        self._running.set()
        self._thread = threading.Thread(target=self._run, name="linkwise-predictive", daemon=True)
        self._thread.start()

    def start(self) -> None:
        """A controller for the arm with its load, and a handle at its tip."""
        page = self.page
        self.says.content = _html("preparing the controller …")
        robot = page.live.with_load()
        self.law = Predictive(
            robot, horizon=HORIZON, step=STEP, frequency=self.frequency.value, tip=True, frame=page.live.tip
        )
        self.law.aim({"joints.target": page.live.q})
        self.moves = step_kernel(robot)
        self.q, self.qd, self.time = np.array(page.live.q), np.zeros(robot.dof), 0.0
        self.handle = page.server.scene.add_transform_controls(
            "/target", scale=0.28 * page.scene.bones.reach, depth_test=False
        )
        pose = page.live.tip_pose(self.q)
        self.handle.position, self.handle.wxyz = pose[:3, 3], quaternion(pose[:3, :3])
        self.handle.on_update(lambda event: self.aim(event.target.position, event.target.wxyz))
        self.aim(pose[:3, 3], quaternion(pose[:3, :3]))
        self.law(0.0, self.q, self.qd)  # compiles
        self.says.content = _html("drag the handle in the scene")

    def aim(self, position: Any, wxyz: Any) -> None:
        """Another target for the tip."""
        placed = Transform.from_quaternion(np.asarray(position, dtype=float), np.asarray(wxyz, dtype=float))
        target = np.eye(4)
        target[:3, :3], target[:3, 3] = placed.rotation, placed.translation
        if self.law is not None and np.isfinite(target).all():
            self.law.aim({"tip.target": target})

    def advance(self, seconds: float) -> np.ndarray:
        """Simulate the arm for a while; the last torques [N·m or N]."""
        assert self.law is not None
        tau = np.zeros_like(self.qd)
        for _ in range(max(1, round(seconds / SAMPLE))):
            tau = self.law(self.time, self.q, self.qd)
            for _ in range(round(SAMPLE / SUBSTEP)):
                q, qd = self.moves(self.q, self.qd, tau, np.array([SUBSTEP]))
                limits = self.page.robot.limits
                inside = np.clip(q, limits.lower, limits.upper)
                self.q, self.qd = inside, np.where(inside == q, qd, 0.0)  # stops take the velocity away
            self.time += SAMPLE
        return tau

    def stop(self) -> None:
        """End the simulation and remove the handle."""
        self._running.clear()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=2.0)
        if self.handle is not None:
            self.handle.remove()
            self.handle = None
        self.says.content = ""

    def _run(self) -> None:
        while self._running.is_set():
            begin = time.perf_counter()
            tau = self.advance(FRAME)
            self.page.pose(self.q, tau)
            time.sleep(max(0.0, FRAME - (time.perf_counter() - begin)))


def _html(text: str) -> str:
    return f'<div class="lw-result" style="padding:.3em .8em;font-size:.85em">{text}</div>'
