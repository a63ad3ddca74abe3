"""``reset`` and ``step`` as pure functions of a state, as Brax and MuJoCo Playground have them: for ``jax.jit``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwise.environments import draws
from linkwise.environments.environment import Environment
from linkwise.environments.stepped import ENDS
from linkwise.errors import ArgumentError


@dataclass
class BraxState:
    """All environments at one time: a tree of arrays for JAX."""

    pipeline_state: Any
    """(envs, numbers)."""
    obs: Any
    reward: Any
    done: Any
    metrics: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)

    def replace(self, **changes: Any) -> BraxState:
        """A copy with other values."""
        return BraxState(**(self.__dict__ | changes))


class Functional:
    """An environment without a state of its own.

    Args:
        env: whose task, number, arrays, device and inputs are used.
    """

    def __init__(self, env: Environment):
        if env.kind == "jax":
            _register()
        self.env = env
        self.observation_size, self.action_size = env.observation_size, env.action_size

    def reset(self, seed: int) -> BraxState:
        """The first states of a seed.

        Args:
            seed: a whole number; JAX's keys are arrays and have their own random numbers.
        """
        if not isinstance(seed, (int, np.integer)):
            raise ArgumentError(f"reset: expected a whole number as seed, got {type(seed).__name__}")
        env = self.env
        numbers = np.arange(env.first, env.first + env.num_envs)
        stream = env._placed(draws.environment_streams(int(seed), numbers))
        zero = env._placed(np.zeros((env.num_envs, 1)))
        state, observation = env.kernels.begin(env._packed, stream, zero)
        none = zero[:, 0]
        return BraxState(state, observation, none, none, {}, {"stream": stream})

    def step(self, state: BraxState, action: Any) -> BraxState:
        """One policy step; episodes that end begin again."""
        env, stream = self.env, state.info["stream"]
        made = env.kernels.step(state.pipeline_state, action, env._packed, stream)
        following, observation, reward, ends, final, terms = made
        flags = {name: ends[..., k] for k, name in enumerate(ENDS)}
        metrics = {f"reward/{name}": terms[..., k] for k, name in enumerate(env.term_names)}
        info = {"stream": stream, "truncation": flags["truncated"], "final_obs": final}
        done = flags["terminated"] + flags["truncated"]
        return BraxState(following, observation, reward, done, metrics, info)


_registered = False


def _register() -> None:
    """Let JAX go through states of environments."""
    global _registered
    if _registered:
        return
    from jax.tree_util import register_pytree_node

    keys = tuple(BraxState.__dataclass_fields__)
    register_pytree_node(
        BraxState,
        lambda state: (tuple(getattr(state, key) for key in keys), None),
        lambda _, parts: BraxState(*parts),
    )
    _registered = True


__all__ = ["BraxState", "Functional"]
