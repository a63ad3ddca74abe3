"""Predictive control on the page: drag a target, and the arm follows as fast as its torque limits allow."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.model import Transform
from linkwise.optimal import Predictive
from linkwise.simulate.loop import step_kernel
from linkwise.view.scene import quaternion
from linkwise.view.tabs.running import FRAME, Running

HORIZON, STEP = 12, 0.04  # plans of about half a second
SUBSTEP = 2e-3  # [s] of the simulated arm
SAMPLE = 8e-3  # [s] from one plan to the next


class DraggedTarget(Running):
    """A folder of the control tab with a handle for the target of the tip."""

    folder, label, hint = "Predictive control", "drag a target", "the arm follows at its limits"
    law: Predictive | None = None

    def build(self) -> None:
        self.frequency = self.gui.add_slider(
            "quickness [rad/s]", min=2.0, max=20.0, step=1.0, initial_value=8.0
        )

    def start(self) -> None:
        """A controller for the arm with its load, and a handle at its tip."""
        page = self.page
        robot = page.live.with_load()
        free = robot.with_contacts(())  # plans are of free motion
        self.law = Predictive(
            free, horizon=HORIZON, step=STEP, frequency=self.frequency.value, tip=True, frame=page.live.tip
        )
        self.law.aim({"joints.target": page.live.q})
        self.moves = step_kernel(robot)
        self.q, self.qd, self.time = np.array(page.live.q), np.zeros(robot.dof), 0.0
        pose = page.live.tip_pose(self.q)
        self.show_handle("/target", pose)
        self.aim(pose[:3, 3], quaternion(pose[:3, :3]))
        self.law(0.0, self.q, self.qd)  # compiles

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

    def frame(self) -> None:
        tau = self.advance(FRAME)
        self.page.pose(self.q, tau)
