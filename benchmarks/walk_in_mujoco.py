"""A policy that was learned with ``lw.environments`` walks in MuJoCo: its own contacts, elliptic cones, 1 kHz.

    python benchmarks/walk_in_mujoco.py --robot go2.xml --policy go2.npz [--trials 100] [--seconds 20]

Every trial draws a command, the friction of the feet (0.5 to 1.0) and a payload (0 to 2 kg). The policy is unchanged:
50 Hz, the same observation without noise, the same gains. A robot that leans by more than 60° or sinks below half its
height has fallen. Meshes, which only show, are left out of the file; a floor is added.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise.environments.tasks import Drives


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robot", required=True)
    parser.add_argument("--policy", required=True)
    parser.add_argument("--task", default="go2_joystick")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    task = lw.environments.task(given.task, robot=given.robot)
    policy = lw.environments.Policy.load(given.policy)
    rng = np.random.default_rng(given.seed)
    limits = np.ravel(task.inputs["command_limits"])
    walked, errors = 0, []
    for trial in range(given.trials):
        command = rng.uniform(-limits, limits)
        friction, payload = rng.uniform(0.5, 1.0), rng.uniform(0.0, 2.0)
        time, error = trial_of(given.robot, task, policy, command, friction, payload, given.seconds)
        walked += time >= given.seconds
        errors.append(error)
        if time < given.seconds:
            print(
                f"trial {trial}: fell after {time:.2f} s, command {np.round(command, 2)}, friction {friction:.2f}, "
                f"payload {payload:.2f} kg"
            )
    error = np.nanmedian(np.array(errors), axis=0)
    print(
        f"{walked} of {given.trials} walked for {given.seconds:g} s; median errors of the mean velocity: "
        f"{error[0]:.3f} m/s forward, {error[1]:.3f} m/s sideways, {error[2]:.3f} rad/s"
    )


def trial_of(
    path: str,
    task: lw.environments.Task,
    policy: lw.environments.Policy,
    command: np.ndarray,
    friction: float,
    payload: float,
    seconds: float,
) -> tuple[float, np.ndarray]:
    """(time until the robot fell or the end [s], errors of its mean velocity)."""
    import mujoco

    model = loaded(path)
    feet = model.geom_priority == 1
    model.geom_friction[feet, 0] = friction
    base = int(model.jnt_bodyid[0])
    model.body_mass[base] += payload
    data = mujoco.MjData(model)
    mujoco.mj_setConst(model, data)
    assert task.initial is not None
    data.qpos[:] = task.initial
    data.qpos[3:7] = (1.0, 0.0, 0.0, 0.0)
    drives = Drives.of(task.robot, task.control)
    kp, kd, neutral, scale = (drives.numbers[key] for key in ("kp", "kd", "neutral", "scale"))
    limit, last, speeds = drives.numbers["limits"], np.zeros(drives.count), []
    for step in range(round(seconds / task.period)):
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, data.qpos[3:7])
        turn = turn.reshape(3, 3)
        linear, angular = turn.T @ data.qvel[:3], data.qvel[3:6].copy()
        if turn[2, 2] < 0.5 or data.qpos[2] < 0.5 * task.initial[2]:
            return step * task.period, np.full(3, np.nan)
        if step * task.period > 2.0:
            speeds.append([linear[0], linear[1], angular[2]])
        seen = np.concatenate(
            [linear, angular, -turn[2], data.qpos[7:] - neutral, data.qvel[6:], last, command]
        )
        last = policy(seen).astype(float)
        target = np.clip(neutral + scale * last, drives.lower, drives.upper)
        for _ in range(round(task.period / model.opt.timestep)):
            torque = kp * (target - data.qpos[7:]) - kd * data.qvel[6:]
            data.qfrc_applied[6:] = np.clip(torque, -limit, limit)
            mujoco.mj_step(model, data)
    return seconds, np.abs(np.mean(speeds, axis=0) - command)


def loaded(path: str):
    """The file as MuJoCo's model without its meshes, with a floor."""
    import mujoco

    text = Path(path).read_text(encoding="utf-8")
    text = re.sub(r"<mesh\b[^>]*/>", "", text)
    text = re.sub(r'<geom\b[^>]*class="visual[^"]*"[^>]*/>', "", text)
    text = re.sub(r'<geom\b[^>]*\bmesh="[^>]*/>', "", text)
    text = re.sub(r"<keyframe>.*?</keyframe>", "", text, flags=re.DOTALL)
    text = re.sub(r"<actuator>.*?</actuator>", "", text, flags=re.DOTALL)
    text = re.sub(r"<sensor>.*?</sensor>", "", text, flags=re.DOTALL)
    floor = '<geom name="floor" type="plane" size="0 0 1" friction="1"/>'
    text = text.replace("<worldbody>", "<worldbody>" + floor, 1)
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.timestep, model.opt.cone = 0.001, mujoco.mjtCone.mjCONE_ELLIPTIC
    return model


if __name__ == "__main__":
    main()
