"""Environments for reinforcement learning: physics, sensors, reward and reset of a policy step in one kernel."""

from linkwise.arguments.explained import explain
from linkwise.arguments.guesses import answer_for
from linkwise.control.policy import Policy
from linkwise.environments.draws import Draw
from linkwise.environments.environment import Environment, Rollout, Step
from linkwise.environments.interfaces.functional import BraxState, Functional
from linkwise.environments.interfaces.learning import rsl_rl_env, skrl_env
from linkwise.environments.interfaces.vector import gymnasium_env, gymnasium_vector
from linkwise.environments.named import make, names, task
from linkwise.environments.page import write_episode
from linkwise.environments.ready.joystick import Legged, Terrain
from linkwise.environments.tasks import PDTargets, Push, State, Task, Torques

__all__ = [
    "BraxState",
    "Draw",
    "Environment",
    "Functional",
    "Legged",
    "PDTargets",
    "Policy",
    "Push",
    "Rollout",
    "State",
    "Step",
    "Task",
    "Terrain",
    "Torques",
    "gymnasium_env",
    "gymnasium_vector",
    "make",
    "names",
    "rsl_rl_env",
    "skrl_env",
    "task",
    "write_episode",
]

explain(globals(), "environments")
answer_for(__name__)
