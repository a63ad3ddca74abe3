"""Environments as CUDA kernels, run on the CPU: the bits of the CPU's own kernels."""

import numpy as np
from pretended import Pretended

import linkwise as lw
from linkwise.environments import Environment, Policy


def pretend(value):
    return Pretended(np.asarray(value))


def test_a_step_on_a_gpu_has_the_bits_of_the_cpu(pretended):
    env = Environment(lw.environments.task("cart_pole"), 40)
    env.inputs["episode_length"] = 5
    env.reset(seed=8)
    rng = np.random.default_rng(2)
    for k in range(8):
        action = rng.uniform(-1.0, 1.0, (40, 1)).astype(np.float32)
        action[3] = np.nan if k == 2 else 0.5
        given = (env.state.copy(), action, env._packed, env._streams)
        made = env.advance(action)
        there = env.kernels.step(*(pretend(value) for value in given))
        for a, b in zip(there, (env.state, *made), strict=True):
            assert a.array.tobytes() == np.asarray(b).tobytes()
    assert env.broken == 1


def test_a_policy_on_a_gpu_has_the_bits_of_the_cpu(pretended):
    rng = np.random.default_rng(3)
    for sizes in ((4, 8, 2), (40, 64, 64, 6)):
        policy = Policy.random(sizes, seed=1)
        seen = rng.normal(size=(35, sizes[0])).astype(np.float32)
        there = policy.kernel()(pretend(seen), pretend(policy.weights))
        assert there.array.tobytes() == policy(seen).tobytes()


def test_a_replay_on_a_gpu_has_the_bits_of_the_cpu(pretended):
    env = Environment(lw.environments.task("cart_pole"), 33)
    actions = np.random.default_rng(4).uniform(-1.0, 1.0, (33, 6, 1)).astype(np.float32)
    wanted = env.replay(2, actions)
    env.reset(2)
    given = {
        "state": env.state,
        "inputs": env._packed,
        "stream": env._streams,
        "action": actions.reshape(33, 6),
    }
    there = {name: pretend(value) for name, value in given.items()}
    final, written = env.kernels.replayed(there, steps=6, dtype="float32")
    assert final["state"].array.tobytes() == np.ascontiguousarray(wanted.final_state).tobytes()
    assert written["record_observation"].array.tobytes() == wanted.observation.tobytes()
