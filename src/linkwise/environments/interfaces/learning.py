"""Vector environments of rsl_rl and skrl: PyTorch tensors on the device of the environment."""

from __future__ import annotations

from typing import Any

from linkwise.environments.environment import Environment
from linkwise.errors import ArgumentError, MissingExtraError


def rsl_rl_env(env: Environment) -> Any:
    """An environment as ``rsl_rl.env.VecEnv``; observations are a ``TensorDict`` with "policy" where rsl_rl wants that.

    Args:
        env: with arrays of PyTorch.
    """
    _check(env, "rsl_rl_env")
    try:
        from rsl_rl.env import VecEnv
    except ModuleNotFoundError:
        raise MissingExtraError("rsl_rl is not installed: pip install rsl-rl-lib") from None
    import torch

    try:
        from tensordict import TensorDict
    except ModuleNotFoundError:
        TensorDict = None

    at = env.program.parts["step"].first

    class LinkwiseVecEnv(VecEnv):
        """Environments of Linkwise for rsl_rl."""

        def __init__(self) -> None:
            self.num_envs, self.num_actions, self.device = env.num_envs, env.action_size, env.device
            self.num_obs, self.cfg = env.observation_size, {"task": env.task.name}
            self.max_episode_length = int(env.inputs["episode_length"][0])
            self._seen = env.reset(seed=env.seed)

        @property
        def episode_length_buf(self) -> Any:
            """Steps of the running episodes; rsl_rl sets it to begin at random steps."""
            return env.state[:, at].long()

        @episode_length_buf.setter
        def episode_length_buf(self, steps: Any) -> None:
            # a copy: rsl_rl steps in inference mode, and a tensor that was made there may not be changed in place
            state = env.state.clone()
            state[:, at] = torch.as_tensor(steps, device=state.device).to(state.dtype)
            env.state = state

        def reset(self) -> Any:
            self._seen = env.reset()
            return self.get_observations(), {}

        def get_observations(self) -> Any:
            if TensorDict is None:
                return self._seen
            return TensorDict({"policy": self._seen}, batch_size=[env.num_envs])

        def step(self, actions: Any) -> Any:
            self._seen, reward, terminated, truncated, info = env.step(actions)
            done = terminated | truncated
            log = {"/broken": info["broken"].float().mean(), **_means(env, info["terms"])}
            extras = {"time_outs": truncated, "log": log}
            return self.get_observations(), reward, done.long(), extras

    return LinkwiseVecEnv()


def skrl_env(env: Environment) -> Any:
    """An environment as ``skrl.envs.wrappers.torch.Wrapper``.

    Args:
        env: with arrays of PyTorch.
    """
    _check(env, "skrl_env")
    try:
        from skrl.envs.wrappers.torch import Wrapper
    except ModuleNotFoundError:
        raise MissingExtraError("skrl is not installed: pip install skrl") from None
    from linkwise.environments.interfaces.vector import spaces

    observation_space, action_space = spaces(env)

    class LinkwiseWrapper(Wrapper):
        """Environments of Linkwise for skrl."""

        num_envs = env.num_envs
        num_agents = 1
        device = env.device
        state_space = None
        observation_space = None
        action_space = None

        def __init__(self) -> None:
            self._env = self._unwrapped = env

        def reset(self) -> tuple[Any, dict[str, Any]]:
            return env.reset(), {}

        def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
            seen, reward, terminated, truncated, info = env.step(actions)
            return (
                seen,
                reward[:, None],
                terminated[:, None],
                truncated[:, None],
                {"log": _means(env, info["terms"])},
            )

        def state(self) -> Any:
            return None

        def render(self, *_: Any, **__: Any) -> None:
            return None

        def close(self) -> None:
            return None

    LinkwiseWrapper.observation_space, LinkwiseWrapper.action_space = observation_space, action_space
    return LinkwiseWrapper()


def _means(env: Environment, terms: Any) -> dict[str, Any]:
    """The mean of each term of the reward over all environments."""
    return {f"reward/{name}": value for name, value in zip(env.term_names, terms.mean(0), strict=True)}


def _check(env: Environment, name: str) -> None:
    if env.kind != "torch":
        raise ArgumentError(
            f"{name}: expected an environment with PyTorch's tensors, make(…, arrays='torch')"
        )
