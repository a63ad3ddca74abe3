"""Optimal motion: a problem of costs and limits, solved by differential dynamic programming (FDDP)."""

from linkwise.optimal.arguments import ProblemError
from linkwise.optimal.costs import (
    Cost,
    Effort,
    JointTracking,
    Own,
    Smoothness,
    SphereAvoidance,
    TipTracking,
    TipVelocity,
)
from linkwise.optimal.limits import KeepOut, Limit, StateLimits, TipLimits
from linkwise.optimal.problem import Problem

__all__ = [
    "Cost",
    "Effort",
    "JointTracking",
    "KeepOut",
    "Limit",
    "Own",
    "Problem",
    "ProblemError",
    "Smoothness",
    "SphereAvoidance",
    "StateLimits",
    "TipLimits",
    "TipTracking",
    "TipVelocity",
]
