"""Sliders for joints and load, and a handle that drags the tip."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

from linkwise.model.checks import masslessness
from linkwise.motion import inverse_kinematics
from linkwise.view.scene import quaternion
from linkwise.view.tabs.tab import Tab

HEAVIEST = 20.0  # [kg]: range of the load without effort limits
STEP = 0.1  # of a slider [° or mm]


class JointsTab(Tab):
    """Positions, load, and the tip."""

    title = "Joints"

    def build(self) -> None:
        page, live = self.page, self.page.live
        self.moving = False  # True while the program itself sets the sliders
        if (without := masslessness(page.robot)) is not None:
            self.warning = self.gui.add_markdown(f"**Warning:** {without}.")
        self.sliders: list[Any] = []
        for k, joint in enumerate(page.robot.coordinate_joints):
            degrees = 180.0 / math.pi if joint.revolute else 1000.0
            low, high = float(live.lower[k]) * degrees, float(live.upper[k]) * degrees
            slider = self.gui.add_slider(
                joint.name,
                min=math.floor(low * 10) / 10,
                max=math.ceil(high * 10) / 10,
                step=STEP,
                initial_value=round(float(live.q[k]) * degrees, 1),
                hint=f"{joint.type}, {'degrees' if joint.revolute else 'millimetres'}",
            )
            slider.on_update(lambda _event, k=k, degrees=degrees: self.slid(k, degrees))
            self.sliders.append(slider)
        if live.carries:
            self.load = self.gui.add_slider(
                "load [kg]",
                min=0.0,
                max=_heaviest(page),
                step=0.1,
                initial_value=0.0,
                hint="a ball at the tip",
            )
            self.load.on_update(lambda _event: None if self.moving else page.carry(self.load.value))
        with self.gui.add_folder("Tip"):
            if len(page.robot.leaf_names) > 1:
                self.tips = self.gui.add_dropdown("frame", page.robot.leaf_names, initial_value=live.tip)
                self.tips.on_update(lambda _event: self.other_tip())
            self.drag = self.gui.add_checkbox(
                "drag the tip", initial_value=False, hint="the joints follow by inverse kinematics"
            )
            self.turns = self.gui.add_checkbox("keep its orientation", initial_value=False)
        self.drag.on_update(lambda _event: self.show_handle())
        self.turns.on_update(lambda _event: self.show_handle())
        buttons = self.gui.add_button_group("position", ("zero", "random", "stretched"))
        buttons.on_click(lambda event: self.go(event.target.value))
        self.handle: Any = None
        self.target: tuple[np.ndarray, np.ndarray] | None = None
        self.solving = threading.Lock()
        page.followers.append(self.follow)

    def other_tip(self) -> None:
        with self.page.lock:
            self.page.live.choose(self.tips.value)
            self.page.carry(self.page.live.load)
            self.show_handle()

    def slid(self, k: int, degrees: float) -> None:
        if self.moving:
            return
        q = np.array(self.page.live.q)
        q[k] = self.sliders[k].value / degrees
        self.page.pose(q)

    def go(self, where: str) -> None:
        live = self.page.live
        if where == "random":
            q = np.random.default_rng().uniform(live.lower, live.upper)
        elif where == "stretched":
            q = _most_torque(live)
        else:
            q = np.clip(np.zeros(self.page.robot.dof), live.lower, live.upper)
        self.page.pose(q)

    def follow(self, q: np.ndarray) -> None:
        """Set sliders and handle to the robot's position."""
        self.moving = True
        try:
            if self.page.live.carries and self.load.value != self.page.live.load:
                self.load.value = min(self.page.live.load, self.load.max)
            for k, joint in enumerate(self.page.robot.coordinate_joints):
                value = float(q[k]) * (180.0 / math.pi if joint.revolute else 1000.0)
                slider = self.sliders[k]
                if abs(slider.value - value) > STEP:
                    slider.value = round(min(max(value, slider.min), slider.max), 1)
        finally:
            self.moving = False
        if self.handle is not None and self.target is None:
            self.put_handle(q)

    # -- the tip ------------------------------------------------------------------------------------------------------

    def show_handle(self) -> None:
        if self.handle is not None:
            self.handle.remove()
            self.handle = None
        if not self.drag.value:
            return
        self.handle = self.page.server.scene.add_transform_controls(
            "/tip",
            scale=0.28 * self.page.scene.bones.reach,
            disable_rotations=not self.turns.value,
            depth_test=False,
        )
        self.put_handle(self.page.live.q)
        self.handle.on_update(self.dragged)

    def put_handle(self, q: np.ndarray) -> None:
        pose = self.page.live.tip_pose(q)
        self.handle.position = pose[:3, 3]
        self.handle.wxyz = quaternion(pose[:3, :3])

    def dragged(self, event: Any) -> None:
        """Move to the latest target; targets that arrive while solving are skipped."""
        self.target = np.array(event.target.position), np.array(event.target.wxyz)
        if not self.solving.acquire(blocking=False):
            return
        try:
            while self.target is not None:
                wanted, self.target = self.target, None
                self.page.pose(self.reach(*wanted))
        finally:
            self.solving.release()
        if (
            getattr(event, "phase", "end") == "end"
        ):  # the target may be out of reach: return the handle to the tip
            self.put_handle(self.page.live.q)

    def reach(self, position: np.ndarray, wxyz: np.ndarray) -> np.ndarray:
        """Joint positions that bring the tip nearest to a target, starting from the present ones."""
        live = self.page.live
        if not self.turns.value:
            target, task = position, "position"
        else:
            from linkwise.compat import matrix_from_quaternion

            target, task = np.eye(4), "pose"
            target[:3, :3], target[:3, 3] = matrix_from_quaternion(wxyz), position
        found = inverse_kinematics(
            self.page.robot,
            target,
            frame=live.tip,
            start=live.q,
            task=task,
            starts=1,
            iterations=30,
            tolerance=1e-5,
            strict=False,
        )
        return np.clip(found.q, live.lower, live.upper)


def _heaviest(page: Any) -> float:
    """Range of the load slider: twice the load that brings the weakest joint to its effort limit."""
    live = page.live
    efforts = page.robot.effort_limits
    some = np.random.default_rng(1).uniform(live.lower, live.upper, (64, page.robot.dof))
    per_kilogram = np.abs(live.payload_torques(some)).max(axis=0)
    known = np.isfinite(efforts) & (per_kilogram > 1e-6)
    if not known.any():
        return HEAVIEST
    return float(np.clip(np.ceil(2 * (efforts[known] / per_kilogram[known]).min()), 1.0, 200.0))


def _most_torque(live: Any) -> np.ndarray:
    """The one of 2000 random positions with the largest gravity torque relative to its scale."""
    some = np.random.default_rng(2).uniform(live.lower, live.upper, (2000, live.robot.dof))
    return some[int(np.argmax((np.abs(live.gravity(some)) / live.scale).max(axis=1)))]
