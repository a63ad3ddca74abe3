"""Whole-body control while torques are held for a sample: which limits of joints are passed, and what is told.

    python benchmarks/held_torques.py [--samples 2000] [--robots panda ur10e iiwa14] [--quick]

Motions to far targets that change, within velocity limits and those of positions; the robot is integrated at a quarter
of the sample. A quadruped pushes itself around in the contact simulation and in MuJoCo (where that is installed). Then
limits that contradict each other, which are missed as little as possible: the same cost by scipy's L-BFGS-B.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys

import numpy as np
from scipy.optimize import minimize
from whole_body_parts.held_legs import SPEED, in_mujoco, in_simulation
from whole_body_parts.held_sample import PERIOD, moved

import linkwise as lw
from linkwise import control

STATES, EVERY = 8, 35
PASSED, TOLD = 2e-3, 1e-6
"""A sample passes a limit by more than this share of it; it is told by more than this [rad/s]."""
SPEEDS = (None, 6.0, 30.0)
FASTEST = 10.0
"""Limit of joints that state none [rad/s]."""


def arm(name: str, speed: float | None, samples: int) -> dict[str, float]:
    """What an arm does."""
    robot, rng = lw.load(name), np.random.default_rng(1)
    limit = np.minimum(robot.limits.velocity, FASTEST) if speed is None else np.full(robot.dof, speed)
    law = control.WholeBody(
        robot, [control.PostureTask(frequency=30.0)], control.MotionLimits(velocity=limit, period=PERIOD)
    )
    q, qd, start = robot.random(rng, STATES), np.zeros((STATES, robot.dof)), None
    excess, out, told = [], [], []
    for k in range(-(-samples // STATES)):
        if k % EVERY == 0:
            targets = law.targets(robot.random(rng, STATES))
        solution, start = law.solve(q, qd, targets, start=start)
        speeds, places = moved(robot, q, qd, solution.tau)
        # a joint that begins beyond its limit, which was told one sample before, counts at the end
        fastest = np.where(np.abs(qd) > limit, np.abs(speeds[-1]), np.abs(speeds).max(axis=0))
        excess.append((fastest / limit - 1.0).max(axis=1))
        q, qd = places[-1], speeds[-1]
        out.append(np.maximum(robot.limits.lower - places, places - robot.limits.upper).max(axis=(0, 2)))
        told.append(solution.beyond)
    return judged(np.concatenate(excess), np.concatenate(out), np.concatenate(told))


def judged(excess: np.ndarray, out: np.ndarray, told: np.ndarray) -> dict[str, float]:
    """Numbers of samples: passed, passed and not told, told although nothing is passed."""
    over, marked = (excess > PASSED) | (out > 1e-4), told > TOLD
    return {
        "samples": len(told), "largest": 100.0 * max(excess.max(), 0.0), "passed": int(over.sum()),
        "silent": int((over & ~marked).sum()), "told": int(marked.sum()),
        "eager": int((marked & (excess <= 0.0) & (out <= 0.0)).sum()),
    }  # fmt: skip


def weak(name: str, states: int) -> np.ndarray:
    """What bounds of an arm that cannot carry its weight are missed by (sum of squares), over the least one by scipy,
    in random states."""
    robot, rng = lw.load(name), np.random.default_rng(2)
    weight = np.abs(robot.gravity_torques(robot.random(rng, 200))).max(axis=0)
    speed = np.minimum(robot.limits.velocity, FASTEST)
    limits = control.MotionLimits(
        torque=np.maximum(0.3 * weight, 0.5), velocity=speed, period=PERIOD, ahead=False
    )
    law = control.WholeBody(robot, [control.PostureTask(frequency=6.0)], limits)
    torque, ratios = np.asarray(law.bounds.torque), []
    while len(ratios) < states:
        q, qd = robot.random(rng), 0.9 * speed * rng.uniform(-1.0, 1.0, robot.dof)
        solution, _ = law.solve(q, qd, law.targets(q))
        bounds = np.array([law.bounds.accelerations(k, q[k], qd[k]) for k in range(robot.dof)])
        inverse = np.linalg.inv(robot.mass_matrix(q))
        free = -inverse @ robot.bias_torques(q, qd)

        def cost(share: np.ndarray, A=inverse * torque, free=free, bounds=bounds) -> tuple[float, np.ndarray]:
            a = A @ share + free
            missed = np.maximum(a - bounds[:, 1], 0.0) - np.maximum(bounds[:, 0] - a, 0.0)
            return 0.5 * float(missed @ missed), A.T @ missed

        ours = cost(solution.tau / torque)[0]
        if ours < 1e-6:
            continue  # they do not contradict
        found = min(
            minimize(
                cost, x, jac=True, method="L-BFGS-B", bounds=[(-1.0, 1.0)] * robot.dof,
                options={"maxiter": 5000, "maxfun": 20000, "ftol": 1e-16, "gtol": 1e-10},
            ).fun
            for x in (np.zeros(robot.dof), solution.tau / torque)
        )  # fmt: skip
        ratios.append(ours / found)
    return np.array(ratios)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robots", nargs="+", default=["panda", "ur10e", "iiwa14"])
    parser.add_argument("--samples", type=int, default=2000, help="of every row")
    parser.add_argument("--states", type=int, default=25, help="in which limits contradict each other")
    parser.add_argument("--quick", action="store_true", help="80 samples, 3 states")
    chosen = parser.parse_args()
    samples, states = (80, 3) if chosen.quick else (chosen.samples, chosen.states)
    print(
        "| | velocity limit | largest excess | samples that pass a limit | … not told | told | … nothing passed |"
    )
    print("|---|---|---|---|---|---|---|")

    def row(name: str, limit: str, found: dict[str, float]) -> None:
        of = f"{found['passed']} of {found['samples']}"
        cells = (
            name,
            limit,
            f"{found['largest']:.3f} %",
            of,
            *(found[k] for k in ("silent", "told", "eager")),
        )
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)

    for name in chosen.robots:
        for speed in SPEEDS:
            row(name, "its own" if speed is None else f"{speed:g} rad/s", arm(name, speed, samples))
    runs = {"quadruped, contact simulation": in_simulation}
    if importlib.util.find_spec("mujoco"):
        runs["quadruped, MuJoCo"] = in_mujoco
    for name, run in runs.items():
        excess, told = run(samples)
        row(name, f"{SPEED:g} rad/s", judged(excess, np.full(len(told), -1.0), told))
    print()
    for name in chosen.robots:
        ratios = weak(name, states)
        print(
            f"{name}, torques of 30 % of its weight, {len(ratios)} states: what bounds are missed by ", end=""
        )
        print(f"over the least: median {np.median(ratios) - 1.0:.1e}, worst {ratios.max() - 1.0:.1e} more")
    return 0


if __name__ == "__main__":
    sys.exit(main())
