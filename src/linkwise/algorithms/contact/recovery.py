"""What gaps add to the velocities of contacts and stops: equations (3) and (4) of ``law``."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Protocol

from linkwise.algorithms import dense
from linkwise.algorithms.contact.candidates import Candidate, Touch
from linkwise.scalar import Scalar, all_of, maximum, minimum, stage, where

RECOVERED = 0.2
"""β: part of a depth that is recovered in a step; errors of constraints decay alike."""
RESTING_SPEED = 0.002
"""s₀ [m/s or rad/s]."""
RECOVERY_SPEED = 0.1
"""s [m/s or rad/s]: a robot that starts deep in the ground is not thrown out of it."""


def biases(
    touches: Sequence[Touch], candidates: Sequence[Candidate], before: Sequence[Scalar], h: Scalar
) -> tuple[list[Scalar], list[Scalar]]:
    """(what is added to the velocities of all rows, compliance of every contact)."""
    with stage("contact bias"):
        bias: list[Scalar] = [0.0] * len(before)
        compliance: list[Scalar] = [0.0] * len(touches)
        common = _common_gaps(touches, candidates, h)
        for k, (touch, each) in enumerate(zip(touches, candidates, strict=True)):
            bias[3 * k + 2] = bias_of(touch.gap, before[3 * k + 2], each.restitution, h, common.get(k))
            if each.stiffness is not None:
                bias[3 * k + 2], compliance[k] = _soft(touch.gap, each.stiffness, each.damping, h)
        return bias, compliance


def _common_gaps(touches: Sequence[Touch], candidates: Sequence[Candidate], h: Scalar) -> dict[int, Scalar]:
    """Gaps m of (3) of candidates that others of the same two bodies are with: the mean of those that are within
    2 s₀ h of the lowest one, and the own gap of the others."""
    together: dict[tuple[int, int | None], list[int]] = {}
    for k, each in enumerate(candidates):
        if not each.pool:
            together.setdefault((each.body, each.other), []).append(k)
    common: dict[int, Scalar] = {}
    for own in together.values():
        if len(own) == 1:
            continue
        gaps = [touches[k].gap for k in own]
        limit = functools.reduce(minimum, gaps) + (2.0 * RESTING_SPEED) * h
        near = [where(gap < limit, 1.0, 0.0) for gap in gaps]
        mean = dense.dot(near, gaps) / sum(near[1:], start=near[0])
        common |= {k: where(gap < limit, mean, gap) for k, gap in zip(own, gaps, strict=True)}
    return common


def bias_of(
    gap: Scalar, approach: Scalar, restitution: float, h: Scalar, common: Scalar | None = None
) -> Scalar:
    """(3)."""
    rate = 1.0 / h
    closing = rate * (gap if common is None else common)
    inside = maximum(RECOVERED * closing, -RECOVERY_SPEED)
    if common is None:
        bias = where(gap > 0.0, closing, inside)
    else:
        tilt = rate * (gap - common)
        bias = maximum(inside, closing - (1.0 - RECOVERED) * RESTING_SPEED)
        bias = bias + maximum(tilt - RESTING_SPEED, 0.0) + minimum(RECOVERED * (tilt + RESTING_SPEED), 0.0)
    if restitution == 0.0:
        return bias
    hits = all_of(approach < 0.0, bias + approach <= 0.0)
    # what is inside and would come out faster than it bounces does so
    return where(hits, minimum(restitution * approach, bias), bias)


def _soft(gap: Scalar, stiffness: float, damping: float, h: Scalar) -> tuple[Scalar, Scalar]:
    """(bias, R): w_n + R p_n + bias = 0 is a spring and a damper, p_n = −h (k (g + h w_n) + d w_n), at the end of the
    step. What is still open may close freely."""
    firm = stiffness * h + damping
    return where(gap > 0.0, gap / h, (stiffness / firm) * gap), 1.0 / (h * firm)


class Range(Protocol):
    """A range that ends somewhere, and how its ends bounce."""

    @property
    def lower(self) -> float: ...

    @property
    def upper(self) -> float: ...

    @property
    def restitution(self) -> float: ...


def ends(stop: Range, place: Scalar, rate: Scalar, h: Scalar) -> tuple[Scalar | None, Scalar | None]:
    """Bounds of the velocity after the step by the ends of a range, None where it has none."""
    lower = upper = None
    if stop.lower > -float("inf"):
        lower = -bias_of(place - stop.lower, rate, stop.restitution, h)
    if stop.upper < float("inf"):
        upper = bias_of(stop.upper - place, -rate, stop.restitution, h)
    return lower, upper
