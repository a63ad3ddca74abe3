"""One physically consistent fit of links and friction, with weights and loads that follow from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.core.summaries import Summarised
from linkwise.identify.estimation.friction import AxisSignals, Friction, column
from linkwise.identify.estimation.physical import STRENGTH, coordinates, physical
from linkwise.identify.estimation.regression import Carried, Observer, Regression
from linkwise.solve import linear
from linkwise.solve.linear import product

PASSES = 4
EXACT = 1e-5  # residuals under this part of the torques weigh no more: nothing measured is as exact
CONSTANT = 0.3  # of a torque: a constant part of it that is plausible, where weight explains nearly the same
SAME = 1e-9  # of unit columns, below which they count as dependent


@dataclass(frozen=True, repr=False)
class Fit(Summarised):
    """Parameters x of all columns of a regression, and the weights (n,) of its joints."""

    x: np.ndarray
    weights: np.ndarray
    regression: Regression
    friction: Friction

    @property
    def links(self) -> np.ndarray:
        """Inertial parameters, (10 n,)."""
        return self.x[: self.regression.links]

    @property
    def nonnegative(self) -> list[int]:
        """Columns whose parameters must not be negative, see ``never_negative``."""
        return never_negative(self.regression)

    @property
    def carried(self) -> Carried:
        """What the axes carry besides friction."""
        return Carried.of(self.regression, self.x)

    def steady_friction(self, axis: int, speeds: np.ndarray, load: float) -> np.ndarray:
        """Torque of all friction terms of an axis at constant speeds (points,), position zero, under a load.

        Args:
            axis: number of the axis.
            speeds: [rad/s or m/s], shape (points,).
            load: torque that the gear transmits [N·m or N].
        """
        v = speeds[:, None]
        zero = np.zeros_like(v)
        total = zero.copy()
        coefficients = self.x[self.regression.links :]
        widths = {term.width for _, term in self.regression.terms if term.width}
        steady = AxisSignals(zero, v, zero, np.full_like(v, load), dict.fromkeys(widths, np.sign(v)))
        for (a, term), value in zip(self.regression.terms, coefficients, strict=True):
            if a == axis and term.kind not in ("rotor_inertia", "stiffness"):
                total += value * column(steady, term)
        return total[:, 0]


def never_negative(regression: Regression) -> list[int]:
    """Columns whose parameters must not be negative: friction only brakes, and rotors have mass."""
    return [
        k
        for k, (_, term) in enumerate(regression.terms, regression.links)
        if term.dissipates or term.kind == "rotor_inertia"
    ]


def fit(
    observer: Observer,
    friction: Friction,
    prior: np.ndarray,
    *,
    strength: float = STRENGTH,
    start: Fit | None = None,
    passes: int = PASSES,
) -> Fit:
    """Weighted, physically consistent least squares; each pass renews the weights and the torques that load the gears.

    Friction only brakes: coefficients of terms that dissipate are not negative, nor are rotor inertias. Offsets that
    torques do not tell apart from other parameters are small, see ``constants``.

    Args:
        observer: the recordings.
        friction: friction terms of every axis.
        prior: parameters of the links that are known before, shape (n, 10).
        strength: weight of the prior.
        start: a fit to begin with.
        passes: number of passes.
    """
    carried = Carried(prior.reshape(-1)) if start is None else start.carried
    size = np.sqrt((observer.tau**2).mean(axis=0))
    floor = np.maximum(EXACT * size, 1e-9 * max(float(size.max()), 1e-300))
    weights = 1.0 / np.maximum(size, floor) if start is None else start.weights
    depends = any(term.kind == "load" for terms in friction for term in terms)
    regression = observer.regression(friction, carried)
    never = never_negative(regression)
    sizes = observer.axis_sizes
    x = np.zeros(len(regression.labels))
    for number in range(passes):
        if depends and number:
            regression = observer.regression(friction, carried)
        small = constants(regression, weights, sizes, prior, strength)
        x = physical(regression, weights, prior, strength=strength, nonnegative=never, small=small).x
        carried = Carried.of(regression, x)
        before, weights = weights, 1.0 / np.maximum(regression.spread(x), floor)
        if not depends and np.allclose(weights, before, rtol=1e-3):
            break
    return Fit(x, weights, regression, friction)


def constants(
    regression: Regression, weights: np.ndarray, sizes: np.ndarray, prior: np.ndarray, strength: float
) -> dict[int, float]:
    """How large the constant parts of torques may be [N·m or N], by their columns.

    As large as the torques, unless links near the prior explain nearly the same: weight of a joint that moves little.
    What the model leaves of the torques then appears in the constant, enlarged by 1/√share of it that is its own, and
    weight is wrong by as much, which other poses show. So the constant may only be as large as √share.

    Args:
        regression: the columns and torques.
        weights: of the joints, shape (n,).
        sizes: root mean square of the torque of every axis, shape (axes,).
        prior: parameters of the links that are known before, shape (n, 10).
        strength: weight of the prior.
    """
    placed = enumerate(regression.terms, regression.links)
    axes = {k: axis for k, (axis, term) in placed if term.kind == "offset"}
    if not axes:
        return {}
    chosen = [*range(regression.links), *axes]
    gram = regression.gram(weights)[0][np.ix_(chosen, chosen)]
    T = coordinates(gram, prior)
    known = np.full(len(chosen), SAME)
    known[: prior.size] += strength  # the second derivative of the distance to the prior
    own = 1.0 / np.diag(linear.inverse(product(product(T.T, gram), T) + np.diag(known)))[prior.size :]
    return {
        k: max(float(sizes[axis]), 1e-9) * min(1.0, CONSTANT * float(np.sqrt(share)))
        for (k, axis), share in zip(axes.items(), own, strict=True)
    }
