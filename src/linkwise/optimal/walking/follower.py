"""The whole-body law that follows a plan of walking, in every sample."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.control.controller import limits_of_torque
from linkwise.control.whole_body.law import WholeBody
from linkwise.control.whole_body.limits import MotionLimits, Support
from linkwise.control.whole_body.tasks import ForceTask, PointTask, PoseTask, PostureTask
from linkwise.core.once import once
from linkwise.optimal.dynamics import smoothed
from linkwise.robot.user import kernel_of

if TYPE_CHECKING:
    from linkwise.optimal.walking.feet import Feet

UNUSED = 1e-9  # weight of tasks that do not count
FINDING = 0.4  # [m/s], in units of √(height): speed with which a foot that should stand looks for the ground
NEAR = 0.03  # of the standing height: a foot that should stand and is lower than this does
SMOOTH = 0.02  # [s]: dry friction that is compensated changes its direction as in steps of this duration
SOLVED = 1e-6  # of the weight, from 1 on: residual of the law above which its torques are not used
SURE = 40  # iterations of the interior-point method, for samples that the active-set method does not solve
FADED = 0.95  # of the torques of the last sample, where this one has none
SHARE = 1e-6  # weight of equal shares of the robot's weight


class Follower:
    """Torques from a plan.

    Args:
        feet: of the robot.
        friction: coefficient of the ground.
        torque_limits: as for ``MotionLimits``.
    """

    def __init__(self, feet: Feet, friction: float, torque_limits: Any):
        robot = feet.robot
        base = robot.coordinate_joints[0].child
        self.feet, self.robot = feet, robot
        mass = sum(link.inertia.mass for link in robot.links)
        self.weight = 9.81 * mass
        foot = PointTask if feet.corners is None else PoseTask
        corners = [((0.0, 0.0, 0.0),)] * len(feet.names) if feet.corners is None else feet.corners.tolist()
        least = 0.01 * self.weight if feet.corners is None else 0.0  # soles push inside cones of wrenches
        tasks = [
            PoseTask(base, weight=1.0, frequency=8.0, name="trunk"),
            *(foot(name, weight=1.0, frequency=25.0) for name in feet.names),
            PostureTask(weight=1e-3, frequency=8.0),
            ForceTask(weight=SHARE / mass**2),
        ]
        supports = [
            Support(name, own, radius=feet.radius, friction=friction, smallest=least)
            for name, own in zip(feet.names, corners, strict=True)
        ]
        limits = MotionLimits(torque=torque_limits, period=0.005)
        self.law = WholeBody(robot, tasks, limits, supports=supports, damping=10.0)
        # forces on two soles depend on each other: of a walking biped's samples a tenth has more limits active at once
        # than what they limit has directions, which leaves nothing of the digits of the active-set method
        self.surer = WholeBody(
            robot, tasks, limits, supports=supports, damping=10.0, iterations=SURE, method="interior_point"
        )
        self._limits = limits_of_torque(robot, torque_limits)
        self._slices = self.law.target_slices()
        self._solved = SOLVED * max(1.0, self.weight)
        self._near = feet.radius + NEAR * float(feet.stand[2])
        self._finding = FINDING * float(np.sqrt(feet.stand[2]))
        self.reset()

    def reset(self) -> None:
        """Forget the last sample."""
        self.start = self.law.cold_start
        self.accelerations = np.zeros(self.robot.dof)
        self.torques, self.unsolved = np.zeros(self.robot.dof), 0

    def __call__(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        plan: tuple[np.ndarray, np.ndarray, np.ndarray],
        held: np.ndarray,
        swings: Mapping[int, Sequence[Any]],
    ) -> np.ndarray:
        """Torques of a sample [N·m or N], (n,); those of the last one, faded, where the law has no solution
        (``unsolved`` counts these samples).

        Args:
            q: measured positions, (nq,).
            qd: measured velocities, (n,).
            plan: positions, velocities and accelerations of the plan now.
            held: 1 for feet that shall stand, (feet,).
            swings: place, velocity, acceleration and orientation of every other foot, by its number.
        """
        law = self.law
        targets, gains, stance = law.targets(*plan), law.default_gains.copy(), held.copy()
        for k, name in enumerate(self.feet.names):
            if k in swings:
                self._aim(targets, k, *swings[k])
                continue
            T = np.asarray(self.robot.pose(q, name))
            if T[2, 3] > self._near:  # it has missed the ground: straight down
                stance[k] = 0.0
                half = 0.5 * math.atan2(T[1, 0], T[0, 0])
                level = (0.0, 0.0, math.sin(half), math.cos(half))
                self._aim(targets, k, T[:3, 3], (0.0, 0.0, -self._finding), np.zeros(3), level)
            else:
                gains[1 + k, 0] = UNUSED
        targets[self._slices[-1][0]][-3:] = (0.0, 0.0, self.weight / max(1.0, stance.sum()))
        given = {"gains": gains, "stance": stance}
        solution, self.start = law.solve(q, qd, targets, **given, start=self.start)
        if not float(solution.residual) <= self._solved:
            solution, _ = self.surer.solve(q, qd, targets, **given)
            self.start = law.cold_start
        self.solution, self.accelerations = solution, solution.qdd
        tau = solution.tau + self._friction(q, qd)
        tau[:6] = 0.0
        if not (np.isfinite(tau).all() and float(solution.residual) <= self._solved):
            self.unsolved += 1
            tau = FADED * self.torques
        self.torques = np.clip(tau, -self._limits, self._limits)
        return self.torques.copy()

    def _aim(self, targets: np.ndarray, k: int, place: Any, velocity: Any, pull: Any, turn: Any) -> None:
        """Set the targets of a foot."""
        value, rate, acceleration = self._slices[1 + k]
        if self.feet.corners is None:
            targets[value], targets[rate], targets[acceleration] = place, velocity, pull
        else:
            still = (0.0, 0.0, 0.0)
            targets[value] = [*place, *turn]
            targets[rate], targets[acceleration] = [*still, *velocity], [*still, *pull]

    @once
    def _friction(self) -> Any:
        """Friction of the joints at a state, which the law does not know of [N·m or N]."""
        robot, rest = smoothed(self.robot, SMOOTH, None), np.zeros(self.robot.dof)

        def friction(q: Any, qd: Any) -> Any:
            with_it, without = (robot.inverse_dynamics(q, qd, rest, friction=flag) for flag in (True, False))
            return with_it - without

        return kernel_of(friction, {"q": (robot.nq,), "qd": (robot.dof,)})
