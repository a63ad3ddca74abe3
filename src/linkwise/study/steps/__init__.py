"""What a study computes, step by step: functions of the robot, formulas, Python functions, simulations,
identifications.
"""

from linkwise.study.steps.base import Step
from linkwise.study.steps.read import read

__all__ = ["Step", "read"]
