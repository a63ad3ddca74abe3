"""Sliders for joints and load, and a handle that drags the tip."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from linkwise.model import Transform
from linkwise.model.checks import masslessness
from linkwise.motion import inverse_kinematics
from linkwise.report.svg import escape
from linkwise.view.dials import dials_of, positions, values_of
from linkwise.view.live import heaviest_load
from linkwise.view.scene import quaternion
from linkwise.view.tabs.push import Push
from linkwise.view.tabs.tab import Tab

STEP = 0.1  # of a slider [° or mm]


class JointsTab(Tab):
    """Positions, load, and the tip."""

    title = "Joints"

    def build(self) -> None:
        page, live = self.page, self.page.live
        self.moving = False  # True while the program itself sets the sliders
        if (without := masslessness(page.robot)) is not None:
            self.warning = self.gui.add_html(_warned(without))
        self.sliders: list[Any] = []
        self.dials = dials_of(page.robot)
        for k, (dial, value) in enumerate(zip(self.dials, values_of(page.robot, live.q), strict=True)):
            low, high = dial.shown
            slider = self.gui.add_slider(
                f"{dial.name} [{dial.symbol}]",
                min=low,
                max=high,
                step=STEP,
                initial_value=min(max(round(float(value) * dial.unit, 1), low), high),
                hint=f"{dial.joint.type}, {'degrees' if dial.revolute else 'millimetres'}",
            )
            slider.on_update(lambda _event, k=k, unit=dial.unit: self.slid(k, unit))
            self.sliders.append(slider)
        if live.carries:
            self.load = self.gui.add_slider(
                "load [kg]",
                min=0.0,
                max=heaviest_load(live),
                step=0.1,
                initial_value=0.0,
                hint="a ball at the tip",
            )
            self.load.on_update(lambda _event: None if self.moving else page.carry(self.load.value))
        self.free = next((joint for joint in page.robot.coordinate_joints if joint.free), None)
        if self.free is not None:
            self.gui.add_markdown(
                "Motions and controllers: for robots whose joints have one coordinate each."
            )
        if page.robot.constraints:
            self.gui.add_markdown("Loops are closed: other joints follow the one that is moved.")
        with self.gui.add_folder("Tip"):
            if len(page.robot.leaf_names) > 1:
                self.tips = self.gui.add_dropdown("frame", page.robot.leaf_names, initial_value=live.tip)
                self.tips.on_update(lambda _event: self.other_tip())
            if self.free is None:
                self.drag = self.gui.add_checkbox(
                    "drag the tip", initial_value=False, hint="the joints follow by inverse kinematics"
                )
                self.turns = self.gui.add_checkbox("keep its orientation", initial_value=False)
            else:
                self.drag = self.gui.add_checkbox(
                    f"drag {self.free.child}", initial_value=False, hint=f"the link behind {self.free.name}"
                )
                self.turns = self.gui.add_checkbox("turn it, too", initial_value=True)
        self.drag.on_update(lambda _event: self.show_handle())
        self.turns.on_update(lambda _event: self.show_handle())
        self.page.handles.append((self.drag, self.show_handle))
        buttons = self.gui.add_button_group("position", ("zero", "random", "stretched"))
        buttons.on_click(lambda event: self.go(event.target.value))
        self.push = Push(page, self.gui)
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
        values = values_of(self.page.robot, self.page.live.q)
        for other, (dial, slider) in enumerate(zip(self.dials, self.sliders, strict=True)):
            if dial.joint is self.dials[k].joint:  # the turns of an orientation belong together
                values[other] = dial.inside(slider.value / dial.unit)
        self.page.pose(self.page.live.closed(positions(self.page.robot, values)))

    def go(self, where: str) -> None:
        live = self.page.live
        if where == "random":
            q = live.random(None)
        elif where == "stretched":
            q = _most_torque(live)
        else:
            q = positions(self.page.robot, np.clip(np.zeros(len(live.lower)), live.lower, live.upper))
        self.page.pose(live.closed(q))

    def follow(self, q: np.ndarray) -> None:
        """Set sliders and handle to the robot's position."""
        self.moving = True
        try:
            if self.page.live.carries and self.load.value != self.page.live.load:
                self.load.value = min(self.page.live.load, self.load.max)
            if not self._same_position(q):
                self._set_sliders(np.asarray(q))
        finally:
            self.moving = False
        if self.handle is not None and self.target is None:
            self.put_handle(q)

    def _set_sliders(self, q: np.ndarray) -> None:
        values = values_of(self.page.robot, q)
        for dial, slider, each in zip(self.dials, self.sliders, values, strict=True):
            value = float(each) * dial.unit
            if abs(slider.value - value) > STEP:
                slider.value = round(min(max(value, slider.min), slider.max), 1)

    def _same_position(self, q: np.ndarray) -> bool:
        """Whether the sliders already mean this orientation: every orientation has two triples of roll, pitch and
        yaw."""
        if self.free is None:
            return False
        shown = [slider.value / dial.unit for dial, slider in zip(self.dials, self.sliders, strict=True)]
        off = self.page.robot.difference(positions(self.page.robot, np.array(shown)), np.asarray(q))
        return bool(np.abs(off).max() < 1e-3)

    # -- the tip ------------------------------------------------------------------------------------------------------

    def show_handle(self) -> None:
        if self.handle is not None:
            self.handle.remove()
            self.handle = None
        if not self.drag.value:
            return
        self.page.only_handle(self.drag)
        self.handle = self.page.server.scene.add_transform_controls(
            "/tip",
            scale=0.28 * self.page.scene.bones.reach,
            disable_rotations=not self.turns.value,
            depth_test=False,
        )
        self.put_handle(self.page.live.q)
        self.handle.on_update(self.dragged)

    def put_handle(self, q: np.ndarray) -> None:
        pose = self.page.live.tip_pose(q) if self.free is None else self.page.robot.pose(q, self.free.child)
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
                self.page.pose(self.page.live.closed(self.reach(*wanted)))
        finally:
            self.solving.release()
        if (
            getattr(event, "phase", "end") == "end"
        ):  # the target may be out of reach: return the handle to the tip
            self.put_handle(self.page.live.q)

    def reach(self, position: np.ndarray, wxyz: np.ndarray) -> np.ndarray:
        """Joint positions that bring the tip nearest to a target, starting from the present ones."""
        live = self.page.live
        if self.free is not None:
            return self._placed(position, wxyz)
        if not self.turns.value:
            target, task = position, "position"
        else:
            from linkwise.compat import matrix_from_quaternion

            target, task = np.eye(4), "pose"
            target[:3, :3], target[:3, 3] = matrix_from_quaternion(wxyz), position
        solution = inverse_kinematics(
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
        return np.clip(solution.q, live.lower, live.upper)

    def _placed(self, position: np.ndarray, wxyz: np.ndarray) -> np.ndarray:
        """The present position with the link behind the ball or floating joint put at a pose."""
        robot, free, q = self.page.robot, self.free, np.array(self.page.live.q)
        assert free is not None
        target = Transform.from_quaternion(tuple(position), tuple(wxyz))
        pose = robot.pose(q, free.parent)
        above = Transform(pose[:3, :3], pose[:3, 3]) @ free.origin
        own = above.inverse() @ target
        at = sum(joint.nq for joint in robot.coordinate_joints[: robot.coordinate_joints.index(free)])
        if free.type == "floating":
            q[at : at + 3] = own.translation
        if self.turns.value:
            w, x, y, z = quaternion(own.rotation)
            q[at + free.nq - 4 : at + free.nq] = x, y, z, w
        return q


def _most_torque(live: Any) -> np.ndarray:
    """The one of 2000 random positions with the largest gravity torque relative to its scale."""
    some = live.random(2, 2000)
    return some[int(np.argmax((np.abs(live.gravity(some)) / live.scale).max(axis=1)))]


def _warned(text: str) -> str:
    """A warning as HTML. Not Markdown: the page runs what is between braces in that."""
    return f'<div style="padding:.6em"><b>Warning:</b> {escape(text)}.</div>'
