"""Reinforcement learning with environments that are one kernel: ``ppo.py`` beside this file is all of the learning.

python examples/60_learn_to_walk.py                                  cart-pole on the CPU
python examples/60_learn_to_walk.py panda_reach --seconds 50         an arm reaches for targets, on the CPU
python examples/60_learn_to_walk.py go2_joystick --robot go2_mjx.xml --device cuda --seconds 55 --out go2.npz
linkwise generate go2_mjx.xml policy --weights go2.npz --dtype float32 --out go2_policy      the network in C
"""

import argparse
import importlib.util
import json
import sys
from pathlib import Path

if importlib.util.find_spec("torch") is None:
    print("this example needs PyTorch: pip install torch")
    sys.exit(0)

import numpy as np
import ppo

import linkwise as lw

SETTINGS = {
    "cart_pole": ppo.Settings(envs=256, horizon=32, hidden=(32, 32), discount=0.99, enough=400.0),
    "panda_reach": ppo.Settings(envs=512, horizon=16, discount=0.95),
    "go2_joystick": ppo.Settings(envs=8192, hidden=(256, 128, 64), entropy=0.01),
}


def curriculum(env, over):
    """Slow commands and small penalties first: standing still is the best that a beginner finds otherwise."""
    if "command_limits" in env.task.inputs:
        grown = min(1.0, over / 0.6)
        free = [name.startswith(("tracking", "termination", "air_time")) for name in env.term_names]
        weights = np.array(env.task.inputs["weights"])
        env.inputs["weights"] = np.where(free, weights, (0.1 + 0.9 * grown) * weights)
        env.inputs["command_limits"] = (0.4 + 0.6 * grown) * np.array(env.task.inputs["command_limits"])


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("task", nargs="?", default="cart_pole")
parser.add_argument("--robot", help="file of a robot that is not bundled")
parser.add_argument("--device", default="cpu")
parser.add_argument("--seconds", type=float, default=50.0, help="wall time of learning")
for name in ("seed", "envs"):
    parser.add_argument(f"--{name}", type=int, default=0)
parser.add_argument("--terms", action="store_true", help="print the terms of the reward")
parser.add_argument("--out", help="write the policy here (NPZ), and its curve beside it (JSON)")
given = parser.parse_args()
settings = SETTINGS.get(given.task, ppo.Settings())
settings.envs = given.envs or settings.envs
options = {} if given.robot is None else {"robot": given.robot}
env = lw.environments.make(given.task, settings.envs, device=given.device, arrays="torch", **options)
agent, curve = ppo.train(env, settings, given.seconds, given.seed, terms=given.terms, curriculum=curriculum)
policy = agent.exported()
if given.out:
    policy.save(given.out)
    Path(given.out).with_suffix(".json").write_text(json.dumps(curve), encoding="utf-8")

env = lw.environments.make(given.task, 64, **options)
seen, total, ended = env.reset(seed=1000), 0.0, 0
for _ in range(500):
    seen, reward, terminated, _, _ = env.step(policy(seen))
    total, ended = total + float(reward.mean()), ended + int(terminated.sum())
print(f"the exported policy on the CPU: {total / 500:.4f} reward a step, {ended} episodes of 64 ended early")
assert given.task != "cart_pole" or given.seconds < 30 or ended < 10, "the pole falls"
