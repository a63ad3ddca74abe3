"""The reduced model: significant parameters only, as a robot whose generated code is short."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.compiler.ir.operations import Operations
from linkwise.functions.base_parameters import BaseParameters
from linkwise.identify.estimation.fitting import Fit
from linkwise.identify.estimation.physical import physical_from_gram
from linkwise.identify.estimation.regression import Observer
from linkwise.identify.estimation.representable import robot_of
from linkwise.identify.estimation.significance import Significance
from linkwise.robot.robot import Robot
from linkwise.solve.linear import product


@dataclass(frozen=True)
class Reduction:
    """What stayed and why, the robot with that alone, and what one evaluation of its inverse dynamics costs.

    ``relative`` (n,) are residuals of the regression in per cent with the significant parameters, ``relative_before``
    those of the whole model.
    """

    significance: Significance
    robot: Robot
    base_count: int
    operations: Operations
    operations_before: Operations
    relative_before: np.ndarray
    relative: np.ndarray


def reduce(
    observer: Observer,
    whole: Fit,
    full: Robot,
    base: BaseParameters,
    found: Significance,
    prior: np.ndarray,
    strength: float,
) -> Reduction:
    """Fit the significant base parameters of the whole model again as it was fitted, and make a robot of them.

    The fit is physically consistent: there are possible links, with friction that brakes, which have these base
    parameters. Base parameters are put where their label says, so single links of the reduced robot need not be
    possible bodies; their torques are what counts.

    Args:
        observer: the recordings.
        whole: the fit of the whole model.
        full: its robot, for comparing costs.
        base: its base parameters.
        found: which of them are significant.
        prior: parameters of the links that are known before, shape (n, 10).
        strength: weight of the prior.
    """
    regression = whole.regression
    x = np.zeros(len(regression.labels))
    x[np.array(base.columns)[list(found.kept)]] = _significant_parameters(whole, base, found, prior, strength)
    robot = robot_of(observer, x, regression.terms)._with(reduced=True)
    size = np.maximum(np.sqrt((regression.tau**2).sum(axis=0)), 1e-300)
    return Reduction(
        found,
        robot,
        len(base),
        robot.kernel("inverse_dynamics").operations,
        full.kernel("inverse_dynamics").operations,
        100 * np.sqrt((regression.residuals(whole.x) ** 2).sum(axis=0)) / size,
        100 * np.sqrt((regression.residuals(x) ** 2).sum(axis=0)) / size,
    )


def _significant_parameters(
    whole: Fit, base: BaseParameters, found: Significance, prior: np.ndarray, strength: float
) -> np.ndarray:
    """Significant base parameters of possible links that fit best where only these cause torques."""
    columns, rows = np.array(base.columns)[list(found.kept)], base.combination[list(found.kept)]
    gram, right = whole.regression.gram(whole.weights)
    gram, right = (
        product(rows.T, product(gram[np.ix_(columns, columns)], rows)),
        product(rows.T, right[columns]),
    )
    x = physical_from_gram(gram, right, prior, strength=strength, nonnegative=whole.nonnegative).x
    return product(rows, x)
