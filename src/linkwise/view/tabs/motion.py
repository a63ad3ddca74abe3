"""Play a motion and show its torques."""

from __future__ import annotations

import numpy as np

from linkwise.motion import Trajectory
from linkwise.report.svg import escape
from linkwise.view import motions
from linkwise.view.player import Player, Recording
from linkwise.view.plotted import Plot
from linkwise.view.tabs.planned import PlannedTarget
from linkwise.view.tabs.tab import Tab

ROWS_PER_SECOND = 100.0
GIVEN = "the given motion"


class MotionTab(Tab):
    """Choice of motion, player, torque plot."""

    title = "Motion"

    def build(self) -> None:
        names = ("to and fro", "random points")
        if self.page.motion is not None:
            names = (GIVEN, *names)
        self.choice = self.gui.add_dropdown("motion", names)
        self.button = self.gui.add_button("Play")
        self.time = self.gui.add_slider("time [s]", min=0.0, max=1.0, step=0.01, initial_value=0.0)
        self.speed = self.gui.add_dropdown("speed [×]", ("1", "0.5", "0.25", "2"))
        self.plot = Plot(self.gui)
        self.note = self.gui.add_html("")
        self.planned = PlannedTarget(self.page, self.prepare)
        self.recording: Recording | None = None
        self.player = Player(self.show, self.stopped)
        self.seeking = True  # False while the program itself sets the slider
        self.seed = 0
        self.choice.on_update(lambda _event: self.choose())
        self.button.on_click(lambda _event: self.toggle())
        self.speed.on_update(lambda _event: setattr(self.player, "speed", float(self.speed.value)))
        self.time.on_update(lambda _event: self.seek())

    def choose(self) -> None:
        """Compute the chosen motion from the present position, and its torques."""
        page = self.page
        self.player.pause()
        if self.choice.value == GIVEN:
            motion = page.motion
        elif self.choice.value == "random points":
            self.seed += 1
            motion = motions.random_points(page.robot, page.live.q, page.scene.shown, seed=self.seed)
        else:
            motion = motions.to_and_fro(page.robot, page.live.q, page.scene.shown)
        assert motion is not None
        self.prepare(motion)

    def prepare(self, motion: Trajectory) -> None:
        """Compute the torques of a motion, and show it."""
        page = self.page
        samples = motion.sampled(points=max(2, min(5000, int(motion.duration * ROWS_PER_SECOND))))
        tau = page.live.torques(samples.q, samples.qd, samples.qdd)
        self.load(Recording(samples.t - samples.t[0], samples.q, tau))

    def load(self, recording: Recording) -> None:
        robot = self.page.robot
        self.recording = recording
        self.player.moment, self.player.duration = 0.0, recording.duration
        self.time.max = round(recording.duration, 2)
        limits = [(-effort, effort) for effort in robot.effort_limits]
        self.plot.draw(recording.t, recording.tau, robot.joint_names, _label(robot), limits)
        self.note.content = _peaks(robot, recording.tau)

    def toggle(self) -> None:
        if self.player.playing:
            self.player.pause()
            self.stopped()
            return
        if self.recording is None:
            self.choose()
        self.button.label = "Pause"
        self.player.play()

    def stopped(self) -> None:
        self.button.label = "Play"

    def seek(self) -> None:
        if self.seeking and self.recording is not None and not self.player.playing:
            self.player.moment = float(self.time.value)
            self.show(self.player.moment)

    def show(self, moment: float) -> None:
        if self.recording is None:
            return
        q, tau, _ = self.recording.at(moment)
        self.seeking = False
        try:
            with self.page.server.atomic():
                self.page.pose(q, tau)
                self.time.value = min(moment, self.time.max)
                self.plot.at(moment)
        finally:
            self.seeking = True

    def close(self) -> None:
        self.player.close()


def _peaks(robot, tau: np.ndarray) -> str:
    """Text that names the joint nearest to its effort limit."""
    peaks = np.abs(tau).max(axis=0)
    efforts = robot.effort_limits
    k = int(np.argmax(peaks / efforts)) if np.isfinite(efforts).any() else int(np.argmax(peaks))
    part = f", {peaks[k] / efforts[k]:.0%} of its limit" if np.isfinite(efforts[k]) else ""
    unit = "N·m" if robot.coordinate_joints[k].revolute else "N"
    text = f"largest: {escape(robot.joint_names[k])} with {peaks[k]:.4g} {unit}{part}"
    return f'<div style="padding:.2em .8em;font-size:.8em;opacity:.9">{text}</div>'


def _label(robot) -> str:
    turns = [joint.revolute for joint in robot.coordinate_joints]
    return "torque [N·m]" if all(turns) else "torque or force [N·m or N]" if any(turns) else "force [N]"
