"""Optimal motion: a problem of costs and limits, solved by differential dynamic programming (FDDP)."""

from linkwise.arguments.explained import explain
from linkwise.arguments.guesses import answer_for
from linkwise.optimal import gaits
from linkwise.optimal.arguments import ProblemError
from linkwise.optimal.contact_schedule import ContactSchedule
from linkwise.optimal.contact_terms import CenterOfMass, ConePenalty, ContactForces, FrictionCone
from linkwise.optimal.costs import (
    Cost,
    Effort,
    JointTracking,
    Own,
    ScaledEffort,
    Smoothness,
    SphereAvoidance,
    TipTracking,
    TipVelocity,
)
from linkwise.optimal.iteration import iteration
from linkwise.optimal.limits import KeepOut, Limit, StateLimits, TipLimits
from linkwise.optimal.many import Solutions, solve_many
from linkwise.optimal.obstacles import SphereClearance
from linkwise.optimal.path_integral.mppi import Mppi, SampledPlan
from linkwise.optimal.predictive.controller import Predictive
from linkwise.optimal.predictive.standard import reaching
from linkwise.optimal.problem import Problem
from linkwise.optimal.result import Missed, Solution, Violated
from linkwise.optimal.solver import solve
from linkwise.optimal.through_contact import ThroughContact
from linkwise.optimal.timings import Duration, Timings
from linkwise.optimal.walking.controller import Walking
from linkwise.optimal.walking.gait import Gait

__all__ = [
    "CenterOfMass",
    "ConePenalty",
    "ContactForces",
    "ContactSchedule",
    "Cost",
    "Duration",
    "Effort",
    "FrictionCone",
    "Gait",
    "JointTracking",
    "KeepOut",
    "Limit",
    "Missed",
    "Mppi",
    "Own",
    "Predictive",
    "Problem",
    "ProblemError",
    "SampledPlan",
    "ScaledEffort",
    "Smoothness",
    "Solution",
    "Solutions",
    "SphereAvoidance",
    "SphereClearance",
    "StateLimits",
    "ThroughContact",
    "Timings",
    "TipLimits",
    "TipTracking",
    "TipVelocity",
    "Violated",
    "Walking",
    "gaits",
    "iteration",
    "reaching",
    "solve",
    "solve_many",
]

explain(globals(), "optimal")
answer_for(__name__)
