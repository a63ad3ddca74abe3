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
from linkwise.control.switched import Switched
from linkwise.control.task_space import (
    Avoiding,
    CartesianAdmittance,
    CartesianImpedance,
    HandGuiding,
    HybridForceMotion,
    OperationalSpace,
    usual_inertia,
)
from linkwise.control.whole_body import (
    AngularMomentumTask,
    CenterOfMassTask,
    ForceTask,
    MotionLimits,
    PointTask,
    PoseTask,
    PostureTask,
    Separation,
    Support,
    Task,
    TaskError,
    WholeBody,
    WholeBodySolution,
    WholeBodyTracking,
    separations_of,
)

__all__ = [
    "CALLED",
    "CONTROLLERS",
    "AngularMomentumTask",
    "Avoiding",
    "CartesianAdmittance",
    "CartesianImpedance",
    "CenterOfMassTask",
    "ComputedTorque",
    "ConstantTorque",
    "Controller",
    "ExtendedKalmanFilter",
    "FeedForward",
    "Filtered",
    "Followed",
    "ForceTask",
    "Gains",
    "GravityPD",
    "Guarded",
    "HandGuiding",
    "HybridForceMotion",
    "IntegralTracking",
    "MomentumObserver",
    "MotionLimits",
    "Observed",
    "OperationalSpace",
    "Passive",
    "PointTask",
    "PointToPoint",
    "Policy",
    "PoseTask",
    "PostureTask",
    "RecursiveLeastSquares",
    "Reference",
    "Separation",
    "StateObserver",
    "Support",
    "Switched",
    "Task",
    "TaskError",
    "Tracking",
    "WholeBody",
    "WholeBodySolution",
    "WholeBodyTracking",
    "named",
    "separations_of",
    "usual_inertia",
]

explain(globals(), "control")
answer_for(__name__)
