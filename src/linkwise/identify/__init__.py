"""From a recording of a moving robot to a model of it.

log = lw.identify.read_log("run.csv", robot)
found = lw.identify.identify(robot, log)
found.save("arm.urdf"); found.write_code("arm.c"); found.write_report("arm.html")
"""

from linkwise.arguments.explained import explain
from linkwise.arguments.guesses import answer_for
from linkwise.collision import Box, Room, Tool
from linkwise.control import ExtendedKalmanFilter, Filtered, Followed, RecursiveLeastSquares
from linkwise.errors import MissingExtraError
from linkwise.identify.calibration import Calibration, calibrate
from linkwise.identify.campaign import Coverage, Noise, coverage, simulated_log
from linkwise.identify.elasticity import Elasticity, Resonance, elastic_joints, resonances
from linkwise.identify.errors import IdentificationError, IdentificationWarning, LogError
from linkwise.identify.estimation.estimate import Estimate
from linkwise.identify.estimation.estimators import (
    ESTIMATORS,
    idim_iv,
    ordinary,
    ridge,
    robust,
    total,
    weighted,
)
from linkwise.identify.estimation.fitting import Fit, fit
from linkwise.identify.estimation.friction import MODELS, Friction, Term, friction_named
from linkwise.identify.estimation.friction_choice import choose_friction
from linkwise.identify.estimation.lag import Lag, estimate_lag
from linkwise.identify.estimation.physical import physical
from linkwise.identify.estimation.prior import prior_bodies
from linkwise.identify.estimation.rank import base_by_rank
from linkwise.identify.estimation.regression import Observer, Regression
from linkwise.identify.estimation.significance import by_contribution, by_statistics
from linkwise.identify.excitation.limits import MotionLimits
from linkwise.identify.excitation.motions import Excited, excite
from linkwise.identify.excitation.standing import StandingMotion, excite_standing
from linkwise.identify.judging.validation import Validation, validate
from linkwise.identify.loop.closed_loop import ClosedLoopIdentification, cloe, didim
from linkwise.identify.payload import DriveGains, Payload, drive_gains, identify_payload
from linkwise.identify.pipeline import Stages, all_estimates, base_values, identify
from linkwise.identify.recordings.layout import Layout
from linkwise.identify.recordings.log import Log
from linkwise.identify.recordings.logs import read_log
from linkwise.identify.recordings.pose_tables import read_poses
from linkwise.identify.recordings.signals import Signals, condition
from linkwise.identify.recordings.transmission import Transmission
from linkwise.identify.result import Identification
from linkwise.identify.walking.log import WalkingLog
from linkwise.identify.walking.result import WalkingIdentification

__all__ = [
    "ESTIMATORS",
    "MODELS",
    "Box",
    "Calibration",
    "ClosedLoopIdentification",
    "Coverage",
    "DriveGains",
    "Elasticity",
    "Estimate",
    "Excited",
    "ExtendedKalmanFilter",
    "Filtered",
    "Fit",
    "Followed",
    "Friction",
    "Identification",
    "IdentificationError",
    "IdentificationWarning",
    "Lag",
    "Layout",
    "Log",
    "LogError",
    "MissingExtraError",
    "MotionLimits",
    "Noise",
    "Observer",
    "Payload",
    "RecursiveLeastSquares",
    "Regression",
    "Resonance",
    "Room",
    "Signals",
    "Stages",
    "StandingMotion",
    "Term",
    "Tool",
    "Transmission",
    "Validation",
    "WalkingIdentification",
    "WalkingLog",
    "all_estimates",
    "base_by_rank",
    "base_values",
    "by_contribution",
    "by_statistics",
    "calibrate",
    "choose_friction",
    "cloe",
    "condition",
    "coverage",
    "didim",
    "drive_gains",
    "elastic_joints",
    "estimate_lag",
    "excite",
    "excite_standing",
    "fit",
    "friction_named",
    "identify",
    "identify_payload",
    "idim_iv",
    "ordinary",
    "physical",
    "prior_bodies",
    "read_log",
    "read_poses",
    "resonances",
    "ridge",
    "robust",
    "simulated_log",
    "total",
    "validate",
    "weighted",
]

explain(globals(), "identify")
answer_for(__name__)
