"""Environments inside Gymnasium, PyTorch and JAX."""

import warnings

import numpy as np
import pytest

import linkwise as lw

ACTIONS = np.random.default_rng(0).uniform(-1.0, 1.0, (12, 6, 1)).astype(np.float32)


@pytest.fixture(scope="module")
def wanted():
    env = lw.environments.make("cart_pole", num_envs=6)
    env.reset(seed=4)
    return [np.asarray(env.advance(action).observation) for action in ACTIONS]


def test_gymnasiums_own_check():
    pytest.importorskip("gymnasium")
    from gymnasium.utils.env_checker import check_env

    for name in ("cart_pole", "acrobot", "panda_reach"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # observations have no bounds
            check_env(lw.environments.gymnasium_env(lw.environments.make(name)), skip_render_check=True)


def test_gymnasiums_vector(wanted):
    gymnasium = pytest.importorskip("gymnasium")
    vector = lw.environments.gymnasium_vector(lw.environments.make("cart_pole", num_envs=6))
    counted = gymnasium.wrappers.vector.RecordEpisodeStatistics(vector)
    seen, _ = counted.reset(seed=4)
    assert vector.observation_space.contains(seen)
    for action, observation in zip(ACTIONS, wanted, strict=True):
        seen, reward, terminated, truncated, info = counted.step(action)
        assert seen.tobytes() == observation.tobytes()
        assert reward.dtype == np.float64
        assert terminated.dtype == truncated.dtype == bool
    vector.env.inputs["episode_length"] = 1
    *_, truncated, info = vector.step(ACTIONS[0])
    assert truncated.all()
    assert all(vector.single_observation_space.contains(row) for row in info["final_obs"])


def test_torch_has_the_same_bits(wanted):
    torch = pytest.importorskip("torch")
    env = lw.environments.make("cart_pole", num_envs=6, arrays="torch")
    env.reset(seed=4)
    for action, observation in zip(ACTIONS, wanted, strict=True):
        made = env.advance(torch.from_numpy(action))
        assert made.observation.numpy().tobytes() == observation.tobytes()
    out = [torch.empty_like(env.state), *(torch.empty_like(part) for part in made)]
    address = out[1].data_ptr()
    assert env.advance(torch.zeros(6, 1), out=out).observation.data_ptr() == address  # no copy
    *_, terminated, truncated, info = env.step(torch.zeros(6, 1))
    assert terminated.dtype == truncated.dtype == torch.bool
    assert info["terms"].shape == (6, 1)


def test_jax_steps_inside_jit(wanted):
    jax = pytest.importorskip("jax")
    functional = lw.environments.Functional(lw.environments.make("cart_pole", num_envs=6, arrays="jax"))
    state, step = functional.reset(4), jax.jit(functional.step)
    for action, observation in zip(ACTIONS, wanted, strict=True):
        state = step(state, jax.numpy.asarray(action))
        assert np.asarray(state.obs).tobytes() == observation.tobytes()
    assert set(state.metrics) == {"reward/reward"}


def test_adapters_say_what_to_install():
    pytest.importorskip("torch")
    env = lw.environments.make("cart_pole", num_envs=2, arrays="torch")
    for adapter, package in ((lw.environments.rsl_rl_env, "rsl_rl"), (lw.environments.skrl_env, "skrl")):
        try:
            __import__(package)
        except ModuleNotFoundError:
            with pytest.raises(lw.MissingExtraError, match="pip install"):
                adapter(env)
