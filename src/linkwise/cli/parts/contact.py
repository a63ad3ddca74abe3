"""What ``linkwise simulate --contact`` adds: where a robot starts, how its joints are held, tables of contacts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from linkwise.cli.support.output import Table, number, show
from linkwise.control import Controller

if TYPE_CHECKING:
    from linkwise.robot.robot import Robot
    from linkwise.simulate import Result

STIFF = 0.2  # stiffness of a joint relative to the largest that a step of the PD law is stable with
JOINT_PD = "joint_pd"


class JointPD(Controller):
    """Springs and dampers at the joints that have motors; a free base has none."""

    def control(self, links, gains, q, qd, reference, memory, period):
        places = _places(self.robot)
        tau: list[Any] = [0.0] * self.robot.dof
        for position, rate in places:
            tau[rate] = (
                gains["kp"][rate] * (reference.q[position] - q[position]) - gains["kd"][rate] * qd[rate]
            )
        return tau, list(memory)


def joint_pd(robot: Robot, q: np.ndarray, frequency: float, damping: float, step: float) -> JointPD:
    """A PD law with gains from the inertia that every joint moves, within what the step allows.

    Args:
        robot: the robot.
        q: where it is held, shape (nq,).
        frequency: natural frequency [rad/s].
        damping: of the gains.
        step: of the law [s].
    """
    inertia = np.diagonal(robot.mass_matrix(q))
    least = 1.0 / np.diagonal(robot.inverse_mass_matrix(q))
    kp = np.minimum(frequency**2 * inertia, STIFF * least / step**2)
    kd = np.minimum(2.0 * damping * frequency * inertia, 2.0 * STIFF * least / step)
    return JointPD(robot, {"kp": kp, "kd": kd})


def position(robot: Robot, given: Sequence[float] | None, option: str) -> np.ndarray:
    """--from with a number for every position; else the neutral position, raised until the robot touches the ground."""
    if given is not None:
        if len(given) != robot.nq:
            raise click.UsageError(
                f"{option}: expected {robot.nq} numbers (positions of the robot); got {len(given)}"
            )
        return np.array(given, dtype=float)
    q = robot.neutral
    if robot.coordinate_joints[0].type == "floating" and robot.contact_names:
        gaps = robot.contact_gaps(q)
        q[2] -= min(gaps)
    return q


def columns(found: Result) -> dict[str, np.ndarray]:
    """Forces of the candidates in their axes: f1x, f1y, f1n, f2x …"""
    forces = np.asarray(found.contact_forces)
    return {
        f"f{k + 1}{axis}": forces[:, k, i] for k in range(forces.shape[1]) for i, axis in enumerate("xyn")
    }


def summary(found: Result) -> None:
    """A table of the contacts that touched."""
    forces, slip, depth = found.contact_forces, found.slip, found.penetration
    rows = [
        [
            name,
            number(forces[:, k, 2].max()),
            number(forces[-1, k, 2]),
            number(slip[:, k].max()),
            number(depth[:, k].max()),
        ]
        for k, name in enumerate(found.robot.contact_names)
        if forces[:, k, 2].max() > 0.0
    ]
    title = f"contacts; residual at most {found.residual.max():.0e}" if rows else "nothing touched"
    show(Table(title, ["contact", ">largest [N]", ">last [N]", ">slip [m/s]", ">depth [m]"], rows))


def _places(robot: Robot) -> list[tuple[int, int]]:
    """Numbers of position and velocity of joints with one axis."""
    places: list[tuple[int, int]] = []
    q = v = 0
    for joint in robot.coordinate_joints:
        if joint.nq == 1:
            places.append((q, v))
        q, v = q + joint.nq, v + joint.dof
    return places
