"""Controllers, written over abstract scalars: they run on numbers, compile to kernels, and fuse into
simulations.
"""

from linkwise.arguments.explained import explain
from linkwise.arguments.guesses import answer_for
from linkwise.control.controller import Controller, Reference
from linkwise.control.feed_forward import FeedForward
from linkwise.control.gains import Gains
from linkwise.control.gravity_pd import GravityPD
from linkwise.control.guarded import Guarded
from linkwise.control.inverse_dynamics import ComputedTorque, IntegralTracking, PointToPoint, Tracking
from linkwise.control.kalman_filter import ExtendedKalmanFilter, Filtered
from linkwise.control.momentum_observer import MomentumObserver, Observed
from linkwise.control.named import CALLED, CONTROLLERS, named
from linkwise.control.passive import ConstantTorque, Passive
from linkwise.control.policy import Policy
from linkwise.control.recursive_least_squares import Followed, RecursiveLeastSquares
from linkwise.control.state_observer import StateObserver

__all__ = [
    "CALLED",
    "CONTROLLERS",
    "ComputedTorque",
    "ConstantTorque",
    "Controller",
    "ExtendedKalmanFilter",
    "FeedForward",
    "Filtered",
    "Followed",
    "Gains",
    "GravityPD",
    "Guarded",
    "IntegralTracking",
    "MomentumObserver",
    "Observed",
    "Passive",
    "PointToPoint",
    "Policy",
    "RecursiveLeastSquares",
    "Reference",
    "StateObserver",
    "Tracking",
    "named",
]

explain(globals(), "control")
answer_for(__name__)
