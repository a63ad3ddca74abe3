"""Instrumental variables (IDIM-IV: Janot, Vandanjon and Gautier 2014).

Noise in positions is also in the columns, and biases least squares. Instruments are columns that have the signal but
not the noise: those along a simulated motion, in which the robot with the current parameters follows the (strongly
smoothed) recorded motion under a controller. Parameters and simulation are renewed in turn until they stay the same.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from linkwise.core.products import length as vector_length
from linkwise.identify.errors import IdentificationError
from linkwise.identify.estimation.coloured import uncertainty
from linkwise.identify.estimation.estimate import Estimate
from linkwise.identify.estimation.physical import physical_from_gram
from linkwise.identify.estimation.prior import prior_bodies, scale_of
from linkwise.identify.estimation.regression import Observer, Regression
from linkwise.identify.estimation.representable import robot_of
from linkwise.identify.estimation.solvers import column_lengths, condition
from linkwise.identify.estimation.weights import iterated_weights
from linkwise.identify.recordings.derivatives import central_difference, low_pass
from linkwise.identify.recordings.signals import Signals
from linkwise.robot.robot import Robot
from linkwise.solve import linear
from linkwise.solve.linear import product

SMOOTHER = 6.0  # the reference is cut at the signals' cut-off divided by this: five times the motion band
BANDWIDTH = 60.0  # [rad/s] of the simulated controller
STEP = 1e-3  # [s] of the simulation, at most
TOLERANCE = 1e-3
ITERATIONS = 10


def instrumental(
    regression: Regression, *, iterations: int = ITERATIONS, bandwidth: float = BANDWIDTH
) -> Estimate:
    """Parameters of a regression with independent columns, made by an ``Observer``: the estimator "idim-iv".

    The simulated robot has the viscous and Coulomb friction nearest to the terms of the regression.
    """
    observer, carried = regression.observer, regression.carried
    if observer is None:
        raise IdentificationError("instruments: the regression must come from an Observer, with all samples")
    friction = tuple(
        tuple(term for a, term in regression.terms if a == axis) for axis in range(len(observer.axes))
    )
    whole = observer.regression(friction, carried)
    places = [whole.labels.index(label) for label in regression.labels]
    prior = prior_bodies(observer.robot)
    prior = scale_of(observer, prior) * prior
    x, weights = iterated_weights(regression)
    size = vector_length(regression.tau * weights)
    Z = regression.Y  # columns as their own instruments: least squares
    for number in range(1, iterations + 1):
        filled = np.zeros(len(whole.labels))
        filled[places] = x
        robot = robot_of(observer, _possible(whole, weights, filled, prior), whole.terms)
        simulated = [follow(robot, s, bandwidth) for s in observer.signals]
        Z = Observer(observer.robot, simulated).regression(friction, carried).Y[..., places]
        before, (x, _) = x, _solution(regression, Z, weights)
        change = vector_length((x - before) * column_lengths(regression.compressed(weights)[0]))
        if change <= TOLERANCE * size:
            return replace(
                with_instruments(regression, Z, weights), notes=(f"converged after {number} simulations",)
            )
    note = f"not converged after {iterations} simulations"
    return replace(with_instruments(regression, Z, weights), notes=(note,))


def _possible(regression: Regression, weights: np.ndarray, x: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """The possible parameters whose torques are nearest to those of x: only such a robot can be simulated."""
    gram, _ = regression.gram(weights)
    rotors = [k for k, label in enumerate(regression.labels) if label.endswith(".rotor_inertia")]
    return physical_from_gram(gram, product(gram, x), prior, nonnegative=rotors).x


def steppable(robot: Robot) -> Robot:
    """With rotors heavy enough that friction does not stop a joint within a step; its motion hardly changes."""
    floors = {
        f"{joint.name}.rotor_inertia": max(joint.rotor_inertia, 4 * STEP * joint.viscous_friction)
        for joint in robot.moving_joints
    }
    return robot.with_parameters(floors)


def with_instruments(regression: Regression, Z: np.ndarray, weights: np.ndarray) -> Estimate:
    """x = (ZᵀΩY)⁻¹ZᵀΩτ for instruments Z (N, n, p) and joints weighted by ``weights`` (n,)."""
    x, inverse = _solution(regression, Z, weights)
    covariance, spare = uncertainty(regression, weights, x, inverse, Z)
    freedom = max(len(regression) - len(x) / regression.dof, 1.0)
    sigma = np.sqrt((regression.residuals(x) ** 2).sum(axis=0) / freedom)
    return Estimate(
        "idim-iv",
        regression.labels,
        x,
        covariance,
        sigma,
        1.0 / sigma,
        condition(regression.compressed(weights)[0]),
        len(regression),
        freedom=spare,
    )


def _solution(regression: Regression, Z: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(x, (ZᵀΩY)⁻¹)"""
    W, y = regression.stacked(weights)
    V = (Z * weights[:, None]).reshape(W.shape)
    length, size = column_lengths(W), column_lengths(V)
    cross = product((V / size).T, W / length)
    s = linear.singular_values(cross)
    if not s[0] < 1e12 * s[-1]:
        raise IdentificationError(
            "instruments do not excite all parameters: the simulated motion differs too much"
        )
    inverse = linear.inverse(cross) / length[:, None] / size
    return product(inverse, product(V.T, y)), inverse


def follow(robot: Robot, signals: Signals, bandwidth: float = BANDWIDTH) -> Signals:
    """The motion of a robot that follows a recorded one, without its noise: simulated in closed loop."""
    from linkwise.control import ComputedTorque, Gains
    from linkwise.motion import Samples, through_samples
    from linkwise.simulate import simulate

    smooth = low_pass(signals.q, signals.rate, signals.cutoff / SMOOTHER)
    velocity = central_difference(smooth, signals.rate)
    period = 1.0 / signals.rate
    t = np.arange(len(smooth)) * period
    reference = through_samples(Samples(t, smooth, velocity, central_difference(velocity, signals.rate)))
    robot = steppable(robot)
    law = ComputedTorque(robot, Gains.from_frequency(bandwidth))
    fine = math.ceil(period / STEP)
    run = simulate(robot, law, reference, duration=len(t) * period, step=period / fine, every=fine)
    if not np.isfinite(run.q).all():
        raise IdentificationError("instruments: the simulated robot does not follow the recorded motion")
    qdd = robot.forward_dynamics(run.q, run.qd, run.tau)
    return replace(signals, q=run.q, qd=run.qd, qdd=qdd, speeds=None)
