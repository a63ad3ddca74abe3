"""The reduced model: significant parameters only, as a robot whose generated code is short."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.compiler.operations import Operations
from linkwise.identify.base import base_of
from linkwise.identify.estimators import Estimator
from linkwise.identify.friction import friction_named
from linkwise.identify.regression import Observer
from linkwise.identify.representable import robot_of
from linkwise.identify.significance import Rule, Significance
from linkwise.robot import Robot


@dataclass(frozen=True)
class Reduction:
    """What stayed and why, the robot with that alone, and what one evaluation of its inverse dynamics costs.

    ``relative`` (n,) are residuals of the regression in per cent with all base parameters and with the significant
    ones.
    """

    significance: Significance
    robot: Robot
    base_count: int
    operations: Operations
    operations_before: Operations
    relative_before: np.ndarray
    relative: np.ndarray


def reduce(observer: Observer, full: Robot, rule: Rule, estimator: Estimator) -> Reduction:
    """Drop insignificant base parameters of links, rotors, viscous and Coulomb friction, fit again, make a robot of it.

    ``full`` is the robot before, for comparing costs. Base parameters are put where their label says, so single links
    of the reduced robot need not be possible bodies; their torques are what counts.
    """
    coupled = len(observer.axes) - observer.robot.dof
    friction = friction_named("smooth", observer.robot.dof, coupled)
    regression = observer.regression(friction)
    base = base_of(observer.robot, observer.axes, friction)
    independent = regression.pick(base.columns)
    before = estimator(independent)
    found = rule(independent, before, estimator)
    x = np.zeros(len(regression.labels))
    for label, value in zip(found.labels, found.estimate.x, strict=True):
        x[regression.labels.index(label)] = value
    robot = robot_of(observer, x, regression.terms)._with(reduced=True)
    size = np.linalg.norm(regression.tau, axis=0)
    return Reduction(
        found,
        robot,
        len(base),
        robot.kernel("inverse_dynamics").operations,
        full.kernel("inverse_dynamics").operations,
        100 * np.linalg.norm(independent.residuals(before.x), axis=0) / size,
        100 * np.linalg.norm(regression.residuals(x), axis=0) / size,
    )
