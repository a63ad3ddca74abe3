"""Whole-body control on the page: a robot stands on its feet while its trunk is dragged."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.control import ForceTask, MotionLimits, PoseTask, PostureTask, Support, WholeBody
from linkwise.view.stance import standing
from linkwise.view.tabs.running import FRAME, Running
from linkwise.view.tabs.tab import Tab

STEP = 2e-3  # [s] of the simulation and of the law
SHARE = 0.75  # of the friction of the contacts that the law uses
FASTEST, TURNING = 0.25, 1.0  # [m/s], [rad/s]: how fast the target of the trunk follows the handle
FALLEN = 0.5  # cosine of the tilt
SWAY = 0.5  # how far the trunk is moved to the side, as a part of the distance from the middle to the feet
LOWEST, HIGHEST = 0.6, 1.12  # heights of the trunk, as parts of that at which it stands
TILT = 0.4  # [rad]


class StandingBody(Running):
    """A folder with a handle for the pose of the trunk; arrows are the forces of the contacts."""

    folder, label, hint = (
        "Whole body",
        "stand, drag the body",
        "whole-body control within friction cones and torque limits, simulated with contact",
    )
    law: WholeBody | None = None

    def start(self) -> None:
        """The law for the feet of the robot, which stands on them."""
        page = self.page
        feet = standing(page.robot, page.live.q)
        self.robot = robot = feet.robot
        mass = sum(link.inertia.mass for link in robot.links)
        corners = [((0.0, 0.0, 0.0),)] * len(feet.names) if feet.corners is None else feet.corners.tolist()
        friction = SHARE * min(x for x in (each.friction for each in robot.contacts) if x is not None)
        self.law = WholeBody(
            robot,
            [
                PoseTask(robot.coordinate_joints[0].child, weight=1.0, frequency=20.0, name="trunk"),
                PostureTask(weight=1e-3, frequency=8.0),
                ForceTask(weight=1e-2 / mass**2),
            ],
            MotionLimits(period=STEP),
            supports=[
                Support(name, own, radius=feet.radius, friction=friction)
                for name, own in zip(feet.names, corners, strict=True)
            ],
            damping=10.0,
        )
        self.stand, self.q, self.qd = feet.stand, feet.stand.copy(), np.zeros(robot.dof)
        self.target, self.wanted = feet.stand[:7].copy(), feet.stand[:7].copy()
        self.memory = self.law.cold_start
        wide = np.ptp(feet.places[:, :2], axis=0) / 2.0 + feet.radius
        if feet.corners is not None:
            wide = wide + np.abs(feet.corners[..., :2]).max(axis=(0, 1))
        reach = np.array([*(SWAY * wide), 0.0])
        self.box = feet.stand[:3] - reach, feet.stand[:3] + reach
        self.box[0][2], self.box[1][2] = LOWEST * feet.stand[2], HIGHEST * feet.stand[2]
        self.show_handle("/trunk", robot.coordinate_joints[0].motion(feet.stand[:7].tolist()).matrix, 0.5)
        self.advance(STEP)  # compiles

    def aim(self, position: Any, wxyz: Any) -> None:
        """Another pose of the trunk."""
        w, x, y, z = np.asarray(wxyz, dtype=float)
        wanted = np.array([*np.asarray(position, dtype=float), x, y, z, w])
        if not np.isfinite(wanted).all() or not np.linalg.norm(wanted[3:]) > 0.0:
            return
        wanted[:3] = np.clip(wanted[:3], *self.box)
        angle = turn_between(self.stand[3:7], wanted[3:])
        wanted[3:] = between(self.stand[3:7], wanted[3:], min(1.0, TILT / max(angle, 1e-9)))
        self.wanted = wanted

    def advance(self, seconds: float) -> np.ndarray:
        """Simulate for a while; the last torques [N·m or N]. The target goes to the handle at ``FASTEST`` at most."""
        assert self.law is not None
        tau = np.zeros(self.robot.dof)
        for _ in range(max(1, round(seconds / STEP))):
            self._follow()
            targets = self.law.targets(np.concatenate([self.target, self.stand[7:]]))
            solution, self.memory = self.law.solve(self.q, self.qd, targets, start=self.memory)
            tau = solution.tau
            self.q, self.qd, self.impulse = self.robot.contact_step(self.q, self.qd, tau, step=STEP)
        return tau

    def _follow(self) -> None:
        """One step of the target towards the handle."""
        away = self.wanted[:3] - self.target[:3]
        share = min(1.0, FASTEST * STEP / max(float(np.linalg.norm(away)), 1e-9))
        self.target[:3] += share * away
        angle = turn_between(self.target[3:], self.wanted[3:])
        self.target[3:] = between(
            self.target[3:], self.wanted[3:], min(1.0, TURNING * STEP / max(angle, 1e-9))
        )

    @property
    def upright(self) -> bool:
        """Whether the trunk is not far from upright."""
        x, y = self.q[3:5]
        return bool(1.0 - 2.0 * (x * x + y * y) / float(self.q[3:7] @ self.q[3:7]) > FALLEN)

    def forces(self) -> tuple[np.ndarray, np.ndarray]:
        """Points of the contacts [m] and forces on the robot [N] in base axes, both (k, 3)."""
        frames = self.robot.contact_frames(self.q)
        return frames[:, :3, 3], np.einsum("kij,kj->ki", frames[:, :3, :3], self.impulse) / STEP

    def frame(self) -> None:
        tau = self.advance(FRAME)
        self.page.pose(self.q, tau)
        points, forces = self.forces()
        self.page.scene.arrows(points, forces)
        pressing = forces[forces[:, 2] > 0.0, 2]
        if self.upright:
            each = ", ".join(f"{force:.0f}" for force in pressing)
            self.say(f"the ground carries {each} N, together {pressing.sum():.0f} N")
        else:
            self._running.clear()
            self.say("it fell: switch off and on again")

    def stop(self) -> None:
        super().stop()
        with self.page.lock:
            self.page.scene.arrows(np.zeros((0, 3)), np.zeros((0, 3)))


def turn_between(first: np.ndarray, second: np.ndarray) -> float:
    """The angle between two orientations as quaternions [rad]."""
    cosine = abs(float(first @ second)) / float(np.linalg.norm(first) * np.linalg.norm(second))
    return 2.0 * float(np.arccos(min(1.0, cosine)))


def between(first: np.ndarray, second: np.ndarray, share: float) -> np.ndarray:
    """An orientation on the shorter way from one quaternion to another."""
    end = second / np.linalg.norm(second)
    mixed = (1.0 - share) * first + share * (end if end @ first >= 0.0 else -end)
    return mixed / np.linalg.norm(mixed)


class BodyTab(Tab):
    """Tasks of robots that stand on the ground."""

    title = "Body"

    def build(self) -> None:
        self.standing = StandingBody(self.page)

    def close(self) -> None:
        self.standing.stop()
