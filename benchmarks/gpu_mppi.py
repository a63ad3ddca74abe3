"""Sampling control (MPPI) on a GPU beside the CPU: the same bits, and the time for a plan.

    python benchmarks/gpu_mppi.py [--robot panda] [--samples 1024,16384] [--horizon 32] [--calls 20]

Needs CuPy and an NVIDIA GPU. A plan is one call of ``Mppi.plan`` with the state on the device: rollouts with costs,
least cost, weighted mean of the torques drawn again, and the plan back on the host.
"""

from __future__ import annotations

import argparse
import time

import cupy
import numpy as np

import linkwise as lw
from linkwise.optimal import Effort, JointTracking, Mppi, Problem


def compared(mppi: Mppi, states: dict[str, tuple]) -> str:
    """The first step of an improvement whose bits differ; empty: none."""
    problem, kernels, plan = mppi.problem, mppi.kernels, mppi.limited(mppi._first(states["CPU"][0]))
    x = {where: mppi._joined(state, plan) for where, state in states.items()}
    numbers = np.repeat(mppi._numbers_of(0), mppi.hold, axis=0)
    table = np.concatenate([np.repeat(plan, mppi.hold, axis=0), problem.p[:-1], numbers], axis=1)
    found: dict[str, dict[str, np.ndarray]] = {where: {} for where in states}
    for where, start in x.items():
        fixed = {key: mppi._constants(start)[key] for key in ("noise", "stream", "spread")}
        for steps in (1, 2, problem.horizon):
            given = {"x": start, "cost": [0.0], "stage": table[:steps].ravel(), **fixed}
            final, _ = kernels.rollout(given, steps=steps, dtype=mppi.dtype)
            found[where] |= {f"{name} after {steps} steps": cupy.asnumpy(final[name]) for name in final}
        costs = mppi.costs(start, plan, problem.p, 0)
        found[where]["costs"] = cupy.asnumpy(costs)
        same = costs if where == "CPU" else cupy.asarray(found["CPU"]["costs"])
        least, sums = mppi.sums(same, plan, problem.p, 0)
        found[where] |= {"least": cupy.asnumpy(least), "sums": cupy.asnumpy(sums)}
    for name, here in found["CPU"].items():
        there = found["GPU"][name]
        if here.tobytes() != there.tobytes():
            at = np.argwhere(here != there)
            first = tuple(at[0]) if len(at) else ()
            return (
                f"{name}: {len(at)} of {here.size} numbers, at {first}: {here[first]!r} and {there[first]!r}"
            )
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robot", default="panda")
    parser.add_argument("--samples", default="1024,16384")
    parser.add_argument("--horizon", type=int, default=32)
    parser.add_argument("--calls", type=int, default=20)
    given = parser.parse_args()
    robot = lw.load(given.robot)
    q, qd = robot.neutral, np.zeros(robot.dof)
    target = q + 0.3
    problem = Problem(
        robot,
        horizon=given.horizon,
        step=0.02,
        costs=[
            JointTracking(target=target, weight=10.0, velocity=0.0, velocity_weight=0.5),
            Effort(weight=1e-3),
        ],
        terminal=[JointTracking(target=target, weight=100.0, velocity=0.0, velocity_weight=10.0)],
    )
    print(f"{robot.name}, {given.horizon} steps; bits: plans after 3 calls on the CPU and on the GPU")
    for dtype in ("float64", "float32"):
        for samples in map(int, given.samples.split(",")):
            mppi = Mppi(problem, samples=samples, temperature=1.0, hold=2, dtype=dtype)
            states = {"CPU": (q.astype(dtype), qd.astype(dtype))}
            states["GPU"] = tuple(cupy.asarray(x) for x in states["CPU"])
            plans, seconds = {}, {}
            for where, state in states.items():
                plan, u = None, None
                for draw in range(3):
                    plan = mppi.plan(*state, u, draw=draw)
                    u = plan.u
                plans[where] = plan
                times = []
                for draw in range(given.calls):
                    begin = time.perf_counter()
                    mppi.plan(*state, u, draw=draw)
                    times.append(time.perf_counter() - begin)
                seconds[where] = float(np.median(times))
            if stages_differ := compared(mppi, states):
                print(f"{dtype} {samples:6d} samples: differ first in {stages_differ}")
            a, b = plans["CPU"], plans["GPU"]
            equal = a.u.tobytes() == b.u.tobytes() and (a.cost, a.least) == (b.cost, b.least)
            print(
                f"{dtype} {samples:6d} samples: {'same bits' if equal else 'BITS DIFFER'}; "
                + ", ".join(f"{where} {1e3 * each:.3f} ms" for where, each in seconds.items())
                + f"; rollouts per second on the GPU {samples / seconds['GPU']:.3g}"
            )


if __name__ == "__main__":
    main()
