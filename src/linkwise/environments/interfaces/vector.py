"""Gymnasium's ``VectorEnv``: NumPy arrays, episodes begin again in the step in which they end."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.environments.environment import Environment
from linkwise.errors import MissingExtraError


def gymnasium_vector(env: Environment) -> Any:
    """An environment as ``gymnasium.vector.VectorEnv``.

    Args:
        env: on the CPU, with NumPy's arrays.
    """
    gymnasium = _imported()
    if env.kind != "numpy":
        raise MissingExtraError(
            "gymnasium_vector: Gymnasium has NumPy's arrays; make the environment with device='cpu'"
        )

    class LinkwiseVectorEnv(gymnasium.vector.VectorEnv):
        """Environments of Linkwise side by side."""

        metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP, "render_modes": []}  # noqa: RUF012

        def __init__(self) -> None:
            self.env, self.num_envs = env, env.num_envs
            self.single_observation_space, self.single_action_space = spaces(env)
            batch = gymnasium.vector.utils.batch_space
            self.observation_space = batch(self.single_observation_space, env.num_envs)
            self.action_space = batch(self.single_action_space, env.num_envs)
            self._next_seed = 0

        def reset(self, *, seed: Any = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
            if isinstance(seed, (list, tuple)):
                seed = seed[0]
            if seed is None:
                seed, self._next_seed = self._next_seed, self._next_seed + 1
            return env.reset(seed=int(seed)), {}

        def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
            observation, reward, terminated, truncated, info = env.step(actions)
            done = terminated | truncated
            found: dict[str, Any] = {"broken": info["broken"], "_broken": info["broken"]}
            if done.any():
                found["final_obs"] = _rows(info["final_observation"], done)
                found["_final_obs"] = done
                found["final_info"] = {"return": info["return"], "length": info["length"]}
                found["_final_info"] = done
            return observation, reward.astype(np.float64), terminated, truncated, found

    return LinkwiseVectorEnv()


def gymnasium_env(env: Environment) -> Any:
    """One environment as ``gymnasium.Env``: it does not begin again by itself.

    Args:
        env: with ``num_envs=1`` and NumPy's arrays.
    """
    gymnasium = _imported()
    if env.num_envs != 1 or env.kind != "numpy":
        raise MissingExtraError("gymnasium_env: expected one environment with NumPy's arrays, num_envs=1")

    class LinkwiseEnv(gymnasium.Env):
        """One environment of Linkwise."""

        metadata = {"render_modes": []}  # noqa: RUF012

        def __init__(self) -> None:
            self.observation_space, self.action_space = spaces(env)

        def reset(self, *, seed: Any = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
            super().reset(seed=seed)
            drawn = int(self.np_random.integers(2**31)) if seed is None else int(seed)
            return env.reset(seed=drawn)[0], {}

        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            _, reward, terminated, truncated, info = env.step(np.asarray(action)[np.newaxis])
            seen = info["final_observation"][0]
            return seen, float(reward[0]), bool(terminated[0]), bool(truncated[0]), {}

    return LinkwiseEnv()


def spaces(env: Environment) -> tuple[Any, Any]:
    """Observation and action of one environment as spaces of Gymnasium."""
    box = _imported().spaces.Box
    dtype = np.dtype(env.dtype).type
    return (
        box(-np.inf, np.inf, (env.observation_size,), dtype),
        box(-1.0, 1.0, (env.action_size,), dtype),
    )


def _imported() -> Any:
    try:
        import gymnasium
        import gymnasium.vector
    except ModuleNotFoundError:
        raise MissingExtraError("Gymnasium is not installed: pip install gymnasium") from None
    return gymnasium


def _rows(values: np.ndarray, done: np.ndarray) -> np.ndarray:
    """An array of objects: the rows of environments whose episode ended, else None."""
    rows = np.full(len(done), None, dtype=object)
    for k in np.flatnonzero(done):
        rows[k] = values[k]
    return rows
