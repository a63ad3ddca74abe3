"""The total mass of a robot that walks, and whether its recordings show it.

It is a sum of base parameters, but rows without foot forces may hardly depend on it: where all feet stand, where the
robot hangs. Least squares leave such a direction out, so its deviation says nothing there; the information of the
columns does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.functions.base_parameters import BaseParameters
from linkwise.identify.estimation.estimate import Estimate
from linkwise.identify.estimation.regression import Regression
from linkwise.identify.estimation.solvers import column_lengths
from linkwise.model.inertia import LABELS
from linkwise.robot.robot import Robot
from linkwise.solve import linear
from linkwise.solve.linear import product

KNOWN = 0.2  # part of the mass that its interval may reach to both sides where it is called seen
LEAST = 1e-9  # singular value of unit columns, of the largest, below which nothing is known
REACH = 1.96  # standard deviations of a 95 % interval


@dataclass(frozen=True)
class TotalMass:
    """Mass [kg] of the saved robot, ``reach`` of its 95 % interval to both sides, and that of the robot as given."""

    value: float
    reach: float
    given: float

    @property
    def seen(self) -> bool:
        """Whether the recordings tell it."""
        return self.reach <= KNOWN * self.value

    @property
    def text(self) -> str:
        """For people: the mass with its interval, or that it was not seen and why."""
        if self.seen:
            return f"total mass {self.value:.4g} ± {self.reach:.2g} kg ({self.given:.4g} kg as given)"
        return (
            f"the total mass is not seen in these recordings: {self.value:.3g} kg follows from the masses that were "
            f"given ({self.given:.3g} kg in all), so do not rely on it; feet must lift while others carry"
        )

    @property
    def doubt(self) -> str:
        """The same where it was not seen, else nothing."""
        return "" if self.seen else self.text

    def plain(self) -> dict[str, float | bool]:
        """For JSON."""
        return {"value": self.value, "reach": self.reach, "given": self.given, "seen": self.seen}


def total_mass(
    robot: Robot,
    given: Robot,
    base: BaseParameters,
    independent: Regression,
    estimated: Estimate,
    x: np.ndarray,
) -> TotalMass:
    """The mass that is saved, with what recordings say about it.

    Args:
        robot: the identified robot.
        given: the robot as it was given.
        base: its base parameters.
        independent: the regression with the columns of ``base``.
        estimated: from it.
        x: all parameters as they are saved, in the order of the columns of the whole regression.
    """
    saved, before = (sum(body.mass for body in each.labelled_bodies()) for each in (robot, given))
    masses = np.array([float(label.rpartition(".")[2] == LABELS[0]) for label in base.parameter_labels])
    c = linear.solve_least_squares(base.combination.T, masses, LEAST)  # masses together as base parameters
    if np.abs(product(base.combination.T, c) - masses).max() > LEAST:
        return TotalMass(saved, float("inf"), before)
    off = linear.dot(c, product(base.combination, x) - estimated.x)
    reach = float(np.hypot(REACH * _deviation(independent, estimated, c), off))
    return TotalMass(saved, reach, before)


def _deviation(independent: Regression, estimated: Estimate, c: np.ndarray) -> float:
    """Standard deviation of c·β: of white noise by the information of the columns, times what correlated errors add."""
    W, _ = independent.compressed(estimated.weights)
    lengths = column_lengths(W)
    s, Vt = linear.svd(W / lengths)
    s = np.maximum(s, LEAST * s[0])
    variances = product((Vt**2).T, 1.0 / s**2) / lengths**2
    own = float((product(Vt, c / lengths) ** 2 / s**2).sum())
    # what is hardly seen has no covariance in the estimate: the usual parameter tells how errors are correlated
    return float(np.sqrt(own * np.median(np.diag(estimated.covariance) / variances)))


__all__ = ["TotalMass", "total_mass"]
