"""How a joint can always stop: speeds from which it can, torques that share their limits, and the stop itself.

A joint at a distance d from the end of its range may be so fast that it can stop there with the deceleration b that the
torques leave to all joints at once:

    v = κ d where that is enough, else v² = 2 b d − (b/κ)²

κ is a quarter of the rate at which speeds are followed, so that the approach is critically damped and does not
overshoot. Speeds are followed by accelerations; where torque limits do not allow all of them, those that keep joints
in their range come first. Everything is arithmetic over scalars.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from linkwise.algorithms import dense
from linkwise.optimal.predictive import watching
from linkwise.scalar import Scalar, clipped, maximum, minimum, sqrt, where

if TYPE_CHECKING:
    from linkwise.algorithms.dense import Rows

SPEED_SHARE = 0.9
"""Of the speed limit that plans may use: the rest is for what the model and the sensors miss."""
APPROACH = 0.3
"""Of the distance to a limit of speed that a sample may use: models of half the inertia, and a sample of delay, do not
overshoot."""
BRAKING_SHARE = 0.5
"""Of the torque that is left, with which a joint must be able to stop."""
RETURN_SHARE = 0.3
"""Of the speed, with which a joint beyond its range comes back."""
SWEEPS = 3
"""Of the iteration that shares torque limits among joints."""
STOP_RATE = 20.0
"""[1/s] at which velocities decay in the stop."""
SLACK = 0.02
"""Of the speed limit, by which the check may be missed before all joints are braked."""


def speeds_that_stop(
    q: Scalar, brake: Scalar, h: Scalar, lowest: Scalar, highest: Scalar, speed: Scalar
) -> tuple[Scalar, Scalar]:
    """Least and largest speed from which a joint can stop within its range.

    Far from its end v² = 2 b d; near it v = κ d, which a speed that is followed at a finite rate approaches critically
    damped, without overshoot. Beyond it a joint comes back, at most as fast as it can stop.
    """
    share, slope = SPEED_SHARE * speed, 0.25 * APPROACH / h
    corner = brake / slope

    def towards(distance: Scalar) -> Scalar:
        linear = maximum(slope * distance, -minimum(corner, RETURN_SHARE * share))
        far = linear > corner
        parabola = sqrt(where(far, 2.0 * brake * distance - corner * corner, corner * corner))
        return minimum(share, where(far, parabola, linear))

    return -towards(q - lowest), towards(highest - q)


def decelerations(M: Rows, reserve: Sequence[Scalar]) -> list[Scalar]:
    """Decelerations of all joints that torques within the reserve can make together, whatever their signs are.

    A motor that cannot even hold its joint is not counted.
    """
    alone = [r / row[i] for i, (row, r) in enumerate(zip(M, reserve, strict=True))]
    share: Scalar = 1.0 + 0.0 * alone[0]
    for row, r in zip(M, reserve, strict=True):
        used = dense.dot([abs(m) for m in row], alone)
        share = where((r > 0.0) & (r < share * used), r / where(used > 0.0, used, 1.0), share)
    return [BRAKING_SHARE * share * a for a in alone]


def within(torques: Sequence[Scalar], least: Sequence[Scalar], most: Sequence[Scalar]) -> list[Scalar]:
    return [clipped(t, a, b) for t, a, b in zip(torques, least, most, strict=True)]


def nearest(
    M: Rows,
    bias: Sequence[Scalar],
    accelerations: Sequence[Scalar],
    least: Sequence[Scalar],
    most: Sequence[Scalar],
) -> list[Scalar]:
    """Torques for accelerations; where that of a motor is not enough, its own joint falls behind and no other one.

    Sweeps of Gauss and Seidel's method for M a + b within the limits.
    """
    a = list(accelerations)
    for _ in range(SWEEPS):
        for i, row in enumerate(M):
            torque = dense.dot(row, a) + bias[i]
            a[i] = a[i] + (clipped(torque, least[i], most[i]) - torque) / row[i]
    return within([dense.dot(row, a) + b for row, b in zip(M, bias, strict=True)], least, most)


def part_towards(
    start: Sequence[Scalar], end: Sequence[Scalar], least: Sequence[Scalar], most: Sequence[Scalar]
) -> Scalar:
    """How far torques may go from some within their limits towards others: 0 to 1."""
    part: Scalar = 1.0 + 0.0 * start[0]
    for a, b, low, high in zip(start, end, least, most, strict=True):
        step = b - a
        room = where(step > 0.0, high - a, a - low)
        size = abs(step)
        part = where(part * size > room, room / where(size > 0.0, size, 1.0), part)
    return maximum(part, 0.0 * part)


def missed(
    ahead: Sequence[tuple[Scalar, Scalar]],
    v: Sequence[Scalar],
    accelerations: Sequence[Scalar],
    h: Scalar,
    speed: Sequence[Scalar],
) -> Scalar:
    """1 where accelerations lead some joint out of its speeds ``ahead``."""
    missed: Scalar = 0.0 * h
    for (slow, fast), x, a, limit in zip(ahead, v, accelerations, speed, strict=True):
        after = x + h * a
        slack = SLACK * clipped(limit, 0.0, watching.USUAL_SPEED)
        top, bottom = maximum(fast, x) + slack, minimum(slow, x) - slack
        missed = where((after <= top) & (after >= bottom), missed, 1.0)
    return missed


def stop_rate(
    M: Rows,
    bias: Sequence[Scalar],
    v: Sequence[Scalar],
    least: Sequence[Scalar],
    most: Sequence[Scalar],
    h: Scalar,
    driven: Sequence[int],
) -> Scalar:
    """The largest k of q̈ = −k q̇ that the limits allow."""
    momentum = [dense.dot(row, v) for row in M]
    k = minimum(STOP_RATE + 0.0 * h, APPROACH / h)
    for i in driven:
        p, size = momentum[i], abs(momentum[i])
        left = where(p > 0.0, bias[i] - least[i], most[i] - bias[i])
        left = where(left > 0.0, left, 0.0)
        # left < k·size: the limit decides
        k = where(left < k * size, left / where(size > 0.0, size, 1.0), k)
    return k
