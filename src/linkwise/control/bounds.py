"""The rule for bad numbers in controllers: torques are finite and within their limits whatever the inputs are.

Functions of the dynamics pass NaN on to every output that depends on it. A torque that goes to a motor must not be
NaN, so controllers have this rule: where a torque of the law is not a finite number, because a reading, a reference or
a memory was none, no joint gets the torque of the law in this sample, and the output ``fault`` says so. It is a traced
function, so Python, C, FMUs and controllers of ROS 2 have the same rule and the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from linkwise.scalar import Condition, Scalar, all_of, where

LARGEST = 3e38
"""A number of larger magnitude counts as infinite, in float64 as in float32."""


@dataclass(frozen=True)
class Command:
    """What a controller gives for one sample, all of them finite numbers."""

    tau: list[Scalar]
    """Torques within their limits [N·m or N]; zeros where there is a fault and the law says nothing else."""
    memory: list[Scalar]
    """For the next sample; after a fault that of the last one."""
    fault: Scalar
    """1 where a number that the law needs or would remember is not finite, else 0."""


def is_finite(x: Scalar) -> Condition:
    """Whether a scalar is a number, and not an infinite one."""
    magnitude: Any = abs(x)
    return magnitude <= LARGEST


def all_finite(values: Sequence[Scalar]) -> Condition:
    """Whether all scalars are finite; there must be at least one."""
    return reduce(all_of, map(is_finite, values))


def or_zero(x: Scalar) -> Scalar:
    """A scalar, zero if it is not finite."""
    return where(is_finite(x), x, 0.0)


def commanded(
    wanted: Sequence[Scalar],
    limited: Sequence[Scalar],
    following: Sequence[Scalar],
    memory: Sequence[Scalar],
    valid: Sequence[Condition] = (),
) -> Command:
    """The rule.

    Args:
        wanted: torques of the law, n scalars.
        limited: the same within their limits.
        following: the law's next memory.
        memory: the one before.
        valid: further conditions, those of limits that are inputs; there is a fault where one does not hold.
    """
    if not wanted:
        return Command([], list(following), 0.0)
    good = reduce(all_of, valid, all_finite([*wanted, *following]))
    return Command(
        [where(good, t, 0.0) for t in limited],
        [where(good, new, or_zero(old)) for new, old in zip(following, memory, strict=True)],
        where(good, 0.0, 1.0),
    )


def bounded(torque: Scalar, limit: Scalar) -> Scalar:
    """A torque within ± its limit [N·m or N], which may be infinite; NaN stays NaN."""
    if isinstance(limit, float) and np.isinf(limit):
        return torque
    # one after the other: C compilers make a maximum and a minimum of it
    value: Any = torque
    value = where(value < -limit, -limit, value)
    return where(value > limit, limit, value)
