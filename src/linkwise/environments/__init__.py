"""Environments for reinforcement learning: physics, sensors, reward and reset of a policy step in one kernel."""

from linkwise.arguments.explained import explain
from linkwise.arguments.guesses import answer_for
from linkwise.control.policy import Policy
from linkwise.environments.draws import Draw
from linkwise.environments.environment import Environment, Rollout, Step
from linkwise.environments.named import make, names, task
from linkwise.environments.task import PDTargets, Push, State, Task, Torques

__all__ = [
    "Draw",
    "Environment",
    "PDTargets",
    "Policy",
    "Push",
    "Rollout",
    "State",
    "Step",
    "Task",
    "Torques",
    "make",
    "names",
    "task",
]

explain(globals(), "environments")
answer_for(__name__)
