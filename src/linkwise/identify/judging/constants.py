"""Constant torques of axes: which of them are certain, and how large the others may be.

Where a joint turns through a small angle its weight is nearly a constant, and least squares divide it between links and
a constant as noise decides. Along the recording the sum is right; elsewhere it is not. Most drives have constants of a
few per cent of their torque, so that is the prior of those that the recording knows less well than that. A prior counts
like one sample of independent errors. Errors of a recording last longer than a sample: as many samples as the variance
of a constant is larger than that of independent errors count like one.
"""

from __future__ import annotations

import numpy as np

from linkwise.identify.estimation.estimate import Estimate
from linkwise.identify.estimation.fitting import Fit
from linkwise.identify.estimation.regression import Observer, Regression
from linkwise.identify.estimation.solvers import column_lengths
from linkwise.solve.linear import pseudo_inverse, triangle

LARGE = 0.25  # of a joint's torque (root mean square), from which a constant part of it is certain, less its doubt
SURE = 3.0  # standard deviations from zero, beyond which a constant is what the recording says
USUAL = 0.05  # of a joint's torque: constants of most drives
REVERSALS = 4  # of a joint's direction, from which a constant part of its torque is told from friction
LABEL = "torque_offset"


def certain_constants(observer: Observer, found: Fit, estimated: Estimate) -> dict[int, float]:
    """Large constant parts of torques [N·m or N] by the numbers of their joints.

    By least squares, less three standard deviations, and in the fit they are more than ``LARGE`` of the joint's torque.
    Friction that differs by direction has a small one.

    Args:
        observer: the recordings.
        found: a fit that takes constants to be as large as torques.
        estimated: by least squares.
    """
    free = dict(zip(estimated.labels, zip(estimated.x, estimated.deviations, strict=True), strict=True))
    fitted = dict(zip(found.regression.labels, found.x.tolist(), strict=True))
    certain = {}
    for j, (name, tau) in enumerate(zip(observer.robot.joint_names, observer.tau.T, strict=True)):
        if sum(_reversals(signals.qd[:, j]) for signals in observer.signals) < REVERSALS:
            continue  # friction in one direction is a constant as well
        value, deviation = free.get(f"{name}.{LABEL}", (0.0, 0.0))
        here = fitted.get(f"{name}.{LABEL}", 0.0)
        least = LARGE * float(np.sqrt((tau**2).mean()))
        if abs(value) - 3.0 * deviation > least and abs(here) > least:
            certain[j] = here
    return certain


def usual_constants(
    observer: Observer, regression: Regression, estimated: Estimate, certain: dict[int, float]
) -> np.ndarray:
    """How large constants of all axes may be, for the argument ``offsets`` of ``fit``, shape (axes,).

    Args:
        observer: the recordings.
        regression: with independent columns.
        estimated: from it.
        certain: constants that may be as large as torques; others may if they are ``SURE``
            or known to ``USUAL``.
    """
    W, _ = regression.compressed(estimated.weights)
    length = column_lengths(W)
    half = pseudo_inverse(triangle(W / length)) / length[:, None]
    independent = (half**2).sum(axis=1)  # variances if every sample had an error of its own
    sizes = observer.axis_sizes.copy()
    for k, label in enumerate(estimated.labels):
        name, _, kind = label.rpartition(".")
        axis = observer.names.index(name) if kind == LABEL else -1
        deviation = float(estimated.deviations[k])
        sure = abs(float(estimated.x[k])) > SURE * deviation or deviation < USUAL * sizes[axis]
        if axis >= 0 and not sure and axis not in certain:
            like_one = max(1.0, float(estimated.covariance[k, k] / max(independent[k], 1e-300)))
            sizes[axis] *= USUAL / np.sqrt(like_one)
    return sizes


def _reversals(qd: np.ndarray) -> int:
    """How often a joint changes its direction; speeds below a tenth of its largest do not count."""
    sign = np.sign(qd[np.abs(qd) > 0.1 * float(np.abs(qd).max(initial=0.0))])
    return int((np.diff(sign) != 0.0).sum())


__all__ = ["certain_constants", "usual_constants"]
