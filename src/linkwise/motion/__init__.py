"""Motions of the joints over time, their limits, and the joint positions of Cartesian poses."""

from linkwise.arguments.explained import explain
from linkwise.arguments.guesses import answer_for
from linkwise.motion.cartesian import CartesianMove, arc, line
from linkwise.motion.elastic import ElasticMotion, ElasticMotionError, nonic
from linkwise.motion.files import read_csv, write_csv
from linkwise.motion.fourier import FourierSeries
from linkwise.motion.kinematics.closed_form import closed_form_inverse_kinematics, locked_joint
from linkwise.motion.kinematics.inverse import Solution, UnreachableError, inverse_kinematics
from linkwise.motion.kinematics.rotations import euler_zyz, rotation_vector, turn_about, zyz_angles
from linkwise.motion.kinematics.several_frames import FramesSolution, reach_frames
from linkwise.motion.limits import LimitError, Violation, check, require
from linkwise.motion.online.moves import Online, OnlineMoveError
from linkwise.motion.online.plans import OnlineMove, OnlinePlan
from linkwise.motion.online.through import OnlineSequence
from linkwise.motion.planning.constraint import Keep
from linkwise.motion.planning.planner import MotionPlan, plan
from linkwise.motion.polynomial import PiecewisePolynomial, hold, quintic, ramp
from linkwise.motion.profiles import jerk_limited, trapezoidal
from linkwise.motion.shortest_time.optimal_jerk import JerkLimited
from linkwise.motion.shortest_time.optimal_motion import (
    ActiveLimit,
    InfeasiblePathError,
    TimeOptimal,
    TimeOptimalMotions,
)
from linkwise.motion.shortest_time.optimal_timing import time_optimal
from linkwise.motion.splines import cubic_spline, quintic_spline, through_samples
from linkwise.motion.tabulated import pieces
from linkwise.motion.timing import fastest, slowed
from linkwise.motion.trajectory import Moment, Samples, Trajectory

__all__ = [
    "ActiveLimit",
    "CartesianMove",
    "ElasticMotion",
    "ElasticMotionError",
    "FourierSeries",
    "FramesSolution",
    "InfeasiblePathError",
    "JerkLimited",
    "Keep",
    "LimitError",
    "Moment",
    "MotionPlan",
    "Online",
    "OnlineMove",
    "OnlineMoveError",
    "OnlinePlan",
    "OnlineSequence",
    "PiecewisePolynomial",
    "Samples",
    "Solution",
    "TimeOptimal",
    "TimeOptimalMotions",
    "Trajectory",
    "UnreachableError",
    "Violation",
    "arc",
    "check",
    "closed_form_inverse_kinematics",
    "cubic_spline",
    "euler_zyz",
    "fastest",
    "hold",
    "inverse_kinematics",
    "jerk_limited",
    "line",
    "locked_joint",
    "nonic",
    "pieces",
    "plan",
    "quintic",
    "quintic_spline",
    "ramp",
    "reach_frames",
    "read_csv",
    "require",
    "rotation_vector",
    "slowed",
    "through_samples",
    "time_optimal",
    "trapezoidal",
    "turn_about",
    "write_csv",
    "zyz_angles",
]

explain(globals(), "motion")
answer_for(__name__)
