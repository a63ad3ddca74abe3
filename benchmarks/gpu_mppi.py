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
            a, b = plans["CPU"], plans["GPU"]
            equal = a.u.tobytes() == b.u.tobytes() and (a.cost, a.least) == (b.cost, b.least)
            print(
                f"{dtype} {samples:6d} samples: {'same bits' if equal else 'BITS DIFFER'}; "
                + ", ".join(f"{where} {1e3 * each:.3f} ms" for where, each in seconds.items())
                + f"; rollouts per second on the GPU {samples / seconds['GPU']:.3g}"
            )


if __name__ == "__main__":
    main()
