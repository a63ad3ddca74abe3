"""Closed-loop simulation, beside MuJoCo in the same run.

A Panda follows a quintic move under computed torque, RK4 at 1 kHz, on one core: a batch of robots, and one
alone. Beside it MuJoCo's ``rollout`` steps the same arm (from a URDF that Linkwise writes) with RK4, without
contacts and without a controller, which would cost it more. First both fall freely from the same states, to
show that they compute the same motion. Times are processor time of the one thread, so that other work on the
machine does not count; the best of interleaved repeats. Contact is not part of our steps.

    python benchmarks/simulation.py [--robots 1024] [--steps 200] [--repeats 7] [--json]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise import control, motion
from linkwise.simulate import simulate

HOME = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
STEP = 1e-3


def mujoco_rollout(robot: lw.Robot, q: np.ndarray, steps: int) -> tuple[Callable[[], np.ndarray], str]:
    """(a function that steps all robots and gives their final positions, MuJoCo's version)."""
    import mujoco
    from mujoco import rollout

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arm.urdf"
        lw.save(robot, path)
        model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.timestep = STEP
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    off = mujoco.mjtDisableBit
    model.opt.disableflags |= int(off.mjDSBL_CONTACT) | int(off.mjDSBL_CONSTRAINT)
    data = mujoco.MjData(model)
    state = np.zeros((len(q), mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
    state[:, 1 : 1 + robot.dof] = q

    def run() -> np.ndarray:
        found, _ = rollout.rollout(model, data, state, nstep=steps)
        return found[:, -1, 1 : 1 + robot.dof]

    return run, mujoco.__version__


def seconds(work: Callable[[], object]) -> float:
    begin = time.thread_time()
    work()
    return time.thread_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robots", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()

    robot = lw.load("panda")
    rng = np.random.default_rng(0)
    q = HOME + rng.uniform(-0.3, 0.3, (given.robots, robot.dof))
    duration = given.steps * STEP
    move = motion.quintic(HOME, HOME + 0.4, 1.0)
    gains = control.Gains.from_frequency(10.0)
    passive, torque, gravity = (
        control.Passive(robot),
        control.ComputedTorque(robot, gains),
        control.GravityPD(robot, gains),
    )
    batch = {"duration": duration, "step": STEP, "every": given.steps, "threads": 1, "q": q}
    cases = {
        "computed torque, RK4": lambda: simulate(robot, torque, move, **batch),
        "passive, RK4": lambda: simulate(robot, passive, **batch),
        "PD with gravity, semi-implicit Euler": lambda: simulate(
            robot, gravity, move, integrator="semi_implicit_euler", **batch
        ),
        "computed torque, RK4, float32": lambda: simulate(robot, torque, move, dtype="float32", **batch),
    }
    peer, version = mujoco_rollout(robot, q, given.steps)
    difference = float(np.abs(cases["passive, RK4"]().final_q - peer()).max())
    best = dict.fromkeys((*cases, "MuJoCo rollout, RK4"), np.inf)
    for work in cases.values():
        work()  # compiled
    for _ in range(given.repeats):
        for name, work in (*cases.items(), ("MuJoCo rollout, RK4", peer)):
            best[name] = min(best[name], seconds(work))
    ns = {name: 1e9 * time_ / (given.robots * given.steps) for name, time_ in best.items()}
    alone = lambda: simulate(robot, torque, move, duration=5.0, step=STEP, every=10, q=HOME)  # noqa: E731
    alone()
    one = min(seconds(alone) for _ in range(given.repeats))
    report = {
        "robot": robot.name,
        "robots": given.robots,
        "steps": given.steps,
        "mujoco": version,
        "largest difference to MuJoCo, falling freely [rad]": difference,
        "ns per robot step": {name: round(value, 1) for name, value in ns.items()},
        "times MuJoCo": round(ns["MuJoCo rollout, RK4"] / ns["computed torque, RK4"], 1),
        "one robot, times real time": round(5.0 / one, 1),
    }
    if given.json:
        print(json.dumps(report, indent=2))
        return
    print(f"Panda, {given.robots} robots, {given.steps} steps of 1 ms, one thread, float64 unless said")
    for name, value in ns.items():
        print(f"  {name:<40} {value:9.1f} ns per robot and step   {1e3 / value:8.3f} M steps/s")
    print(f"  falling freely, largest difference to MuJoCo {version}: {difference:.1e} rad")
    print(f"computed torque, RK4: {report['times MuJoCo']} times MuJoCo's rollout (goal: 30)")
    print(
        f"one robot, computed torque, RK4 at 1 kHz: {report['one robot, times real time']} times real time (goal: 500)"
    )


if __name__ == "__main__":
    main()
