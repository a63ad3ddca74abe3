"""Whole-body control: tasks, limits and contacts as one quadratic programme of fixed length."""

from linkwise.control.whole_body.law import WholeBody, WholeBodySolution
from linkwise.control.whole_body.limits import MotionLimits, Support
from linkwise.control.whole_body.separations import Separation, separations_of
from linkwise.control.whole_body.tasks import (
    AngularMomentumTask,
    CenterOfMassTask,
    ForceTask,
    PointTask,
    PoseTask,
    PostureTask,
    Task,
    TaskError,
)
from linkwise.control.whole_body.tracking import WholeBodyTracking

__all__ = [
    "AngularMomentumTask",
    "CenterOfMassTask",
    "ForceTask",
    "MotionLimits",
    "PointTask",
    "PoseTask",
    "PostureTask",
    "Separation",
    "Support",
    "Task",
    "TaskError",
    "WholeBody",
    "WholeBodySolution",
    "WholeBodyTracking",
    "separations_of",
]
