"""Whole-body control for C packages: one sample of it, and the targets that a motion of the joints means."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from linkwise.control.whole_body import MotionLimits, PoseTask, PostureTask, WholeBody
from linkwise.embedded.entry import Entry, EntryError, Options
from linkwise.robot.robot import Robot

WORDS = {
    "targets": "of all tasks, one after the other: value, rate, acceleration of each; whole_body_targets gives them",
    "gains": "weight, k_p [1/s^2] and k_d [1/s] of every task, row by row",
    "stance": "1 for supports that stand, 0 for those in the air",
    "start": "next_start of the last sample; zeros at first",
    "forces": "of the points of the supports [N]: tangent, tangent, normal",
    "errors": "largest error of every task [its acceleration; N for forces]",
    "report": "residual: largest violation of the optimality conditions; slip: largest acceleration of a support; "
    "beyond: how much too fast a joint is to keep its limits; avoidable: share of the sum of squares of missed "
    "limits that other torques might avoid at most; near 0 limits contradict, near 1 steps were too few",
    "active": "1 for limits that are reached: upper and lower torques, friction, upper and lower accelerations",
    "next_start": "to be given to the next sample as start",
}
"""What arguments are."""


def whole_body_entries(robot: Robot, options: Options) -> list[Entry]:
    """Whole-body control of an arm: the pose of a frame, then a posture, within torque, speed and position limits.

    Args:
        robot: the robot.
        options: frame, frequency, period, torque_limits, dtype.
    """
    if options.payload:
        raise EntryError("whole_body takes no payload at run time: generate it without --payload")
    if robot.nq != robot.dof:
        raise EntryError(
            f"{robot.name}: whole_body is for joints with one coordinate each; control.WholeBody with "
            "supports gives its C as kernel().source('c')"
        )
    frequency = options.highest_frequency
    tasks = [
        PoseTask(options.frame or robot.default_frame(), frequency=frequency),
        PostureTask(frequency=0.5 * frequency),
    ]
    limits = MotionLimits(torque=options.torque_limits, period=options.period)
    return law_entries(WholeBody(robot, tasks, limits), options)


def law_entries(law: WholeBody, options: Options) -> list[Entry]:
    """A whole-body controller as functions of a package: ``whole_body`` and ``whole_body_targets``.

    Args:
        law: the controller.
        options: dtype.
    """
    robot, dtype = law.robot, options.dtype
    summary = (
        f"whole-body control of {robot.name}: torques for the tasks {', '.join(law.task_names)} within "
        f"{len(law.limit_names)} limits, {law.iterations} steps of the solver; use the torques if the residual is small"
    )

    def states(count: int) -> Mapping[str, np.ndarray]:
        rng = np.random.default_rng(1)
        n = robot.dof
        q = np.array([robot.integrate(robot.neutral, 0.5 * rng.normal(size=n)) for _ in range(count)])
        ahead = np.array([robot.integrate(x, 0.2 * rng.normal(size=n)) for x in q])
        values = {
            "q": q, "qd": 0.3 * rng.normal(size=(count, n)), "targets": law.targets(ahead),
            "gains": np.tile(law.default_gains.ravel(), (count, 1)), "stance": np.ones((count, len(law.supports))),
            "start": np.zeros((count, law.rows.count)),
        }  # fmt: skip
        return {name: values[name] for name in law.input_shapes()}

    numbers = {"LIMITS": len(law.limit_names), "TASKS": len(law.tasks)}
    tables = {"gains": law.default_gains.ravel()}
    about = f"targets of whole_body that a motion of the joints of {robot.name} means"
    sample = Entry(
        "whole_body",
        summary,
        law.kernel(dtype, constant_time=True),
        dtype,
        definitions=numbers,
        tables=tables,
        words=WORDS,
        states=states,
    )
    return [sample, Entry("whole_body_targets", about, law.reference_kernel(dtype), dtype, words=WORDS)]
