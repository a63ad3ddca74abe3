"""Real-time control with two rates: a synchronous task that never waits, background tasks for the
coefficients.
"""

from linkwise.arguments.explained import explain
from linkwise.realtime.build import BuildError
from linkwise.realtime.limits import SettingsError
from linkwise.realtime.plant import Fault, PlantDriver, SimulatedPlant
from linkwise.realtime.predictive import PlanCounts, PredictiveController
from linkwise.realtime.program import TwoRatePrograms
from linkwise.realtime.puma import PumaDriver
from linkwise.realtime.report import Report, StoppedError
from linkwise.realtime.runtime import TwoRateController
from linkwise.realtime.split import split_error, split_torques

__all__ = [
    "BuildError",
    "Fault",
    "PlanCounts",
    "PlantDriver",
    "PredictiveController",
    "PumaDriver",
    "Report",
    "SettingsError",
    "SimulatedPlant",
    "StoppedError",
    "TwoRateController",
    "TwoRatePrograms",
    "split_error",
    "split_torques",
]

explain(globals(), "realtime")
