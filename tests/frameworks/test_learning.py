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


@pytest.fixture
def one_thread():
    """Small networks: threads of PyTorch would only wait for each other beside other tests."""
    torch = pytest.importorskip("torch")
    count = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(count)


def falls(policy, observation, step):
    """How many of 64 poles fall in 200 steps."""
    count = 0
    for _ in range(200):
        observation, terminated = step(policy(observation))
        count += int(terminated.sum())
    return count


def test_rsl_rl_learns(one_thread):
    torch = pytest.importorskip("torch")
    runners = pytest.importorskip("rsl_rl.runners")
    torch.manual_seed(0)
    vector = lw.environments.rsl_rl_env(lw.environments.make("cart_pole", num_envs=64, arrays="torch"))
    network = {"class_name": "MLPModel", "hidden_dims": [32, 32], "activation": "tanh"}
    spread = {"class_name": "GaussianDistribution", "init_std": 1.0, "std_type": "scalar"}
    settings = {
        "num_steps_per_env": 32, "save_interval": 1000, "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "algorithm": {"class_name": "PPO", "learning_rate": 3e-3, "schedule": "fixed", "entropy_coef": 0.0},
        "actor": {**network, "distribution_cfg": spread}, "critic": network, "logger": "tensorboard",
    }  # fmt: skip
    runner = runners.OnPolicyRunner(vector, settings, log_dir=None, device="cpu")

    def step(action):
        observation, _, done, extras = vector.step(action)
        return observation, done.bool() & ~extras["time_outs"]

    with torch.no_grad():
        before = falls(runner.get_inference_policy(), vector.reset()[0], step)
    runner.learn(20, init_at_random_ep_len=True)
    with torch.no_grad():
        after = falls(runner.get_inference_policy(), vector.reset()[0], step)
    assert after < before / 3


def test_rsl_rl_begins_episodes_at_steps_that_are_set():
    torch = pytest.importorskip("torch")
    pytest.importorskip("rsl_rl")
    vector = lw.environments.rsl_rl_env(lw.environments.make("cart_pole", num_envs=4, arrays="torch"))
    with torch.inference_mode():
        vector.step(torch.zeros(4, 1))
    assert vector.episode_length_buf.tolist() == [1, 1, 1, 1]
    vector.episode_length_buf = torch.tensor([0, vector.max_episode_length - 1, 3, 5])
    _, _, done, extras = vector.step(torch.zeros(4, 1))
    assert done.tolist() == extras["time_outs"].long().tolist() == [0, 1, 0, 0]
    assert vector.episode_length_buf.tolist() == [1, 0, 4, 6]


def test_skrl_learns(one_thread, tmp_path):
    torch = pytest.importorskip("torch")
    pytest.importorskip("skrl")
    from skrl.agents.torch.ppo import PPO, PPO_CFG
    from skrl.memories.torch import RandomMemory
    from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
    from skrl.trainers.torch import SequentialTrainer

    torch.manual_seed(0)
    env = lw.environments.skrl_env(lw.environments.make("cart_pole", num_envs=64, arrays="torch"))
    spaces = {
        "observation_space": env.observation_space,
        "state_space": None,
        "action_space": env.action_space,
    }

    def layers(outputs):
        return torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.Tanh(), torch.nn.Linear(32, outputs))

    class Acting(GaussianMixin, Model):
        def __init__(self):
            Model.__init__(self, **spaces, device="cpu")
            GaussianMixin.__init__(self)
            self.net, self.log_std = layers(1), torch.nn.Parameter(torch.zeros(1))

        def compute(self, inputs, role=""):
            return self.net(inputs["observations"]), {"log_std": self.log_std}

    class Value(DeterministicMixin, Model):
        def __init__(self):
            Model.__init__(self, **spaces, device="cpu")
            DeterministicMixin.__init__(self)
            self.net = layers(1)

        def compute(self, inputs, role=""):
            return self.net(inputs["observations"]), {}

    settings = PPO_CFG(rollouts=32, learning_epochs=5, mini_batches=4, learning_rate=3e-3)
    settings.experiment.directory, settings.experiment.write_interval = str(tmp_path), 0
    settings.experiment.checkpoint_interval = 0
    models = {"policy": Acting(), "value": Value()}
    memory = RandomMemory(memory_size=32, num_envs=64, device="cpu")
    agent = PPO(models=models, memory=memory, cfg=settings, **spaces, device="cpu")

    def step(action):
        observation, _, terminated, _, _ = env.step(action)
        return observation, terminated

    with torch.no_grad():
        before = falls(models["policy"].net, env.reset()[0], step)
    options = {
        "timesteps": 640,
        "disable_progressbar": True,
        "environment_info": "log",
        "close_environment_at_exit": False,
    }
    SequentialTrainer(env=env, agents=agent, cfg=options).train()
    with torch.no_grad():
        after = falls(models["policy"].net, env.reset()[0], step)
    assert after < before / 3
