"""Closed-loop simulation: controller, sensors, drives, friction, dynamics and integrator in one compiled
loop.
"""

from linkwise.arguments.explained import explain
from linkwise.arguments.guesses import answer_for
from linkwise.errors import SimulationWarning
from linkwise.simulate.adaptive import simulate_adaptive
from linkwise.simulate.arguments import SimulationError
from linkwise.simulate.code import source
from linkwise.simulate.plant import Drives, Plant, Push, Sensors
from linkwise.simulate.reference import Moves
from linkwise.simulate.result import Result
from linkwise.simulate.run import simulate

__all__ = [
    "Drives",
    "Moves",
    "Plant",
    "Push",
    "Result",
    "Sensors",
    "SimulationError",
    "SimulationWarning",
    "simulate",
    "simulate_adaptive",
    "source",
]

explain(globals(), "simulate")
answer_for(__name__)
