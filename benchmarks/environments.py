"""Environments for learning: policy steps a second, their bits on a GPU and on the CPU, and MuJoCo's rollout.

    python benchmarks/environments.py [--task go2_joystick --robot go2.xml] [--envs 4096] [--steps 100] [--device cuda]
    python benchmarks/environments.py --task go2_joystick --robot go2.xml --device cuda --bits 1000 --steps 1000

A policy step has all physics steps of the task, sensors, observation, reward, ends and resets. Actions are random, or
zero (standing). ``--bits N`` steps N environments on the device and on the CPU and compares every number. MuJoCo, where
it is installed: the same robot and feet with position actuators, ``mujoco.rollout`` on one thread, physics alone.
``--c N`` steps N environments by C that gcc compiles and compares every number.
``--playground 8192`` steps as many environments of MuJoCo Playground in the same run.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from environments_parts import playground

import linkwise as lw


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--task", default="cart_pole")
    parser.add_argument("--robot", help="file of a robot that is not bundled")
    parser.add_argument("--envs", default="4096", help="numbers of environments, with commas")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--bits", type=int, help="replay so many environments on the device and on the CPU")
    parser.add_argument("--c", type=int, help="step so many environments by generated C and on the CPU")
    parser.add_argument("--no-mujoco", action="store_true")
    parser.add_argument("--playground", help="numbers of environments of MuJoCo Playground, with commas")
    given = parser.parse_args()
    options = {} if given.robot is None else {"robot": given.robot}
    task = lw.environments.task(given.task, **options)
    if given.bits:
        compare_bits(task, given)
        return
    if given.c:
        compare_c(task, given)
        return
    began = time.perf_counter()
    for count in map(int, given.envs.split(",")):
        env = lw.environments.Environment(task, count, device=given.device, threads=given.threads)
        for what in ("standing", "random actions"):
            rate, reward, ended = measured(env, given.steps, what == "standing")
            physics = rate * task.substeps
            print(
                f"{given.task} {count:7} environments, {env.dtype}, {given.device}, {what:14}: "
                f"{rate / 1e6:9.4f} million policy steps/s, {physics / 1e6:9.4f} million physics steps/s "
                f"(reward {reward:.4f}, {ended:.4f} ended a step, broken {env.broken}; "
                f"{time.perf_counter() - began:.1f} s since the start)",
                flush=True,
            )
    if given.device == "cpu" and not given.no_mujoco and task.robot.contact_parts:
        compare_mujoco(task, rate)
    for count in map(int, (given.playground or "").split(",") if given.playground else ()):
        made = playground.measured(count, given.steps)
        if isinstance(made, str):
            print(made)
            return
        peer, substeps = made
        print(
            f"MuJoCo Playground {playground.TASK}, {count} environments, random actions: {peer / 1e6:.4f} "
            f"million policy steps/s of {substeps} physics steps; {rate / peer:.0f} times as many above",
            flush=True,
        )


def measured(env: lw.environments.Environment, steps: int, standing: bool) -> tuple[float, float, float]:
    """(policy steps a second, mean reward, part of the episodes that ended in the last step)."""
    rng = np.random.default_rng(0)
    shape = (env.num_envs, env.action_size)
    actions = [
        env._placed(np.zeros(shape) if standing else rng.uniform(-1.0, 1.0, shape))
        for _ in range(1 if standing else 16)
    ]
    env.reset(seed=0)
    for k in range(25):  # until the robots stand, or have begun to fall
        made = env.advance(actions[k % len(actions)])
    synchronise(env)
    start = time.perf_counter()
    for k in range(steps):
        made = env.advance(actions[k % len(actions)])
    synchronise(env)
    rate = env.num_envs * steps / (time.perf_counter() - start)
    return rate, float(made.reward.mean()), float(made.ends[:, 0].mean())


def synchronise(env: lw.environments.Environment) -> None:
    """Wait for the device."""
    if env.kind == "torch" and env.device != "cpu":
        import torch

        torch.cuda.synchronize()
    elif env.kind == "cupy":
        import cupy

        cupy.cuda.get_current_stream().synchronize()


def compare_bits(task: lw.environments.Task, given: argparse.Namespace) -> None:
    """The same seed and actions on the device and on the CPU: every number of every step."""
    from linkwise.environments.arrays import on_host

    there = lw.environments.Environment(task, given.bits, device=given.device)
    here = lw.environments.Environment(task, given.bits, threads=os.cpu_count())
    rng, different, ends = np.random.default_rng(1), 0, 0.0
    there.reset(seed=7)
    here.reset(seed=7)
    first = on_host(there.state).tobytes() == here.state.tobytes()
    for k in range(given.steps):
        action = rng.uniform(-1.0, 1.0, (given.bits, here.action_size)).astype(np.float32)
        one, two = there.advance(there._placed(action)), here.advance(action)
        pairs = [*zip(one, two, strict=True), (there.state, here.state)]
        same = np.ones(given.bits, bool)
        for a, b in pairs:
            rows = [np.ascontiguousarray(on_host(x)).reshape(given.bits, -1).view(np.uint32) for x in (a, b)]
            same &= (rows[0] == rows[1]).all(axis=1)
        different += int((~same).sum())
        ends += float((two.ends[:, 0] + two.ends[:, 1]).sum())
        if different:
            print(f"step {k}: {int((~same).sum())} environments differ")
            break
    replayed = there.replay(7, np.zeros((given.bits, 10, here.action_size), np.float32))
    again = here.replay(7, np.zeros((given.bits, 10, here.action_size), np.float32))
    rolled = on_host(replayed.observation).tobytes() == again.observation.tobytes()
    print(
        f"{given.bits} environments, {given.steps} steps, {ends:.0f} episodes that ended: first states equal: {first}, "
        f"rows that differ: {different}, replay in one launch equal: {rolled}"
    )


def compare_c(task: lw.environments.Task, given: argparse.Namespace) -> None:
    """The same seed and actions by C that gcc compiles, one environment after the other, and in one call of Python."""
    compiler = shutil.which("gcc")
    if compiler is None:
        print("gcc is not installed")
        return
    env = lw.environments.Environment(task, given.c, threads=os.cpu_count())
    kernel = env.kernels.step
    with tempfile.TemporaryDirectory(prefix="linkwise-environments-") as folder:
        source, library = Path(folder) / "step.c", Path(folder) / "step.so"
        source.write_text(kernel.source("c"), encoding="utf-8")
        flags = ["-std=c99", "-O1", "-mfma", "-ffp-contract=off", "-shared", "-fPIC"]
        subprocess.run([compiler, *flags, "-o", str(library), str(source), "-lm"], check=True)
        function = getattr(ctypes.CDLL(str(library)), kernel.name)
    env.reset(seed=7)
    rng, state, different, ends = np.random.default_rng(1), env.state.copy(), 0, 0.0
    packed, streams = (
        np.ascontiguousarray(np.broadcast_to(x, (given.c, np.shape(x)[-1])))
        for x in (env._packed, env._streams)
    )
    outputs = [np.empty((given.c, *shape), np.float32) for _, shape in kernel.outputs]
    scratch = np.empty(1 << 20, np.float32)  # for programs with loops; others do not look at it
    for _ in range(given.steps):
        action = rng.uniform(-1.0, 1.0, (given.c, env.action_size)).astype(np.float32)
        wanted = [*env.advance(action)]
        for k in range(given.c):
            rows = [array[k : k + 1] for array in (state, action, packed, streams, *outputs)]
            function(*(ctypes.c_void_p(row.ctypes.data) for row in (*rows, scratch)))
        made = [np.ascontiguousarray(env.state), *(np.ascontiguousarray(x) for x in wanted)]
        equal = [
            a.tobytes() == np.asarray(b, np.float32).tobytes() for a, b in zip(outputs, made, strict=True)
        ]
        different += not all(equal)
        ends += float(np.asarray(wanted[2])[:, :2].sum())
        state = outputs[0].copy()
    print(
        f"C beside the CPU: {given.c} environments, {given.steps} steps, {ends:.0f} episodes that "
        f"ended, steps that differ: {different}"
    )


def compare_mujoco(task: lw.environments.Task, rate: float) -> None:
    """MuJoCo's rollout of the same robot, on one thread."""
    try:
        import mujoco
        from mujoco import rollout
    except ModuleNotFoundError:
        print("MuJoCo is not installed")
        return
    from contact_parts.peers import in_mujoco

    from linkwise.environments.tasks import Drives, PDTargets

    drives = Drives.of(task.robot, task.control)
    if not isinstance(task.control, PDTargets) or task.initial is None:
        return
    kp, kd = drives.numbers["kp"], drives.numbers["kd"]
    actuators = "".join(
        f'<position joint="{name}" kp="{a}" kv="{b}"/>'
        for name, a, b in zip(drives.names, kp, kd, strict=True)
    )
    model, data = in_mujoco(task.robot, actuators=actuators)
    model.opt.timestep = task.step
    rng, policy_steps, states = np.random.default_rng(0), 50, 32
    data.qpos[:] = task.initial
    data.qpos[3:7] = (1.0, 0.0, 0.0, 0.0)
    mujoco.mj_step(model, data, nstep=100)
    size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    start = np.zeros(size)
    mujoco.mj_getState(model, data, start, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    neutral, scale = drives.numbers["neutral"], drives.numbers["scale"]
    control = neutral + scale * rng.uniform(-1.0, 1.0, (states, policy_steps, drives.count))
    control = np.repeat(control, task.substeps, axis=1)
    rollout.rollout(model, [data], np.tile(start, (states, 1)), control[:, : 2 * task.substeps])
    began = time.perf_counter()
    rollout.rollout(model, [data], np.tile(start, (states, 1)), control)
    found = states * policy_steps / (time.perf_counter() - began)
    print(
        f"MuJoCo {mujoco.__version__} rollout, one thread, random actions, physics alone: {found / 1e6:.4f} million "
        f"policy steps/s; {rate / found:.1f} times as many above"
    )


if __name__ == "__main__":
    main()
