"""Predictive control at 1 kHz on one core: a plan every millisecond, and who missed deadlines.

A simulated Panda goes back and forth between two positions. The synchronous task applies torques with feedback every
millisecond; the plan is improved by one iteration every millisecond. Missed deadlines are attributed: ours (the
processor was used for more than a period) or the scheduler's (the thread was not running). All threads are bound to one
core, which others may use, too.

    python benchmarks/mpc_realtime.py [--seconds 60] [--robot panda] [--horizon 20] [--step 0.02] [--json]
"""

from __future__ import annotations

import argparse
import json
import os

import numpy as np

import linkwise as lw
from linkwise.optimal.predictive.standard import rest_of
from linkwise.realtime import PredictiveController

SWING = 0.15  # [rad or m] on both sides of the rest position
EVERY = 1.5  # [s] from one target to the next


def stolen(core: int) -> float:
    """Time [s] that the host of a virtual machine took of this core, since the machine was started."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            row = next(line.split() for line in file if line.startswith(f"cpu{core} "))
        return int(row[8]) / os.sysconf("SC_CLK_TCK")
    except (OSError, StopIteration, IndexError, ValueError):
        return float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--robot", default="panda")
    parser.add_argument("--horizon", type=int, default=20)
    parser.add_argument("--step", type=float, default=0.02)
    parser.add_argument("--period", type=float, default=1e-3)
    parser.add_argument("--core", type=int, help="default: the last one that may be used")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    robot = lw.load(given.robot)
    described = {"horizon": given.horizon, "step": given.step, "frequency": 8.0}
    rest = rest_of(robot)
    limits = {"effort": np.where(np.isfinite(robot.effort_limits), robot.effort_limits, 100.0)}
    inside = np.minimum(robot.limits.upper - rest, rest - robot.limits.lower) > 3 * SWING
    swing = np.where(inside, SWING, 0.0)  # joints at the edge of their range rest
    controller = PredictiveController(
        robot, described=described, period=given.period, deadlines=0, limits=limits
    )
    changes = [
        (k * EVERY, {"joints.target": rest + (-1) ** k * swing})
        for k in range(int(given.seconds / EVERY) + 1)
    ]
    controller.programs.source()  # generated before the process is bound to one core
    core = 0
    if hasattr(os, "sched_setaffinity"):
        usable = os.sched_getaffinity(0)
        core = max(usable) if given.core is None else given.core
        if core not in usable:
            parser.error(f"--core {core}: this process may use {', '.join(map(str, sorted(usable)))}")
        os.sched_setaffinity(0, {core})
    before = stolen(core)
    report = controller.run(given.seconds, changes=changes)
    lost = stolen(core) - before
    plans = controller.plans
    late = (np.array([0.0]) if not len(report.rows) else report.late) * 1e6
    found = {
        "robot": robot.name,
        "horizon": given.horizon,
        "reason": report.reason,
        "priority": report.priority,
        "cycles": len(report.rows),
        "missed": report.missed,
        "jitter_us": [float(np.percentile(late, p)) for p in (50, 99, 100)],
        "plans": plans.iterations,
        "plans_failed": plans.failed,
        "plans_late_ours": plans.late_ours,
        "plans_late_scheduler": plans.late_scheduler,
        "iteration_us": [1e6 * plans.mean_time, 1e6 * plans.largest_time],
        "stolen_s": lost,
        "oldest_plan_ms": float(report.plan_age.max() * 1e3) if len(report.rows) else 0.0,
    }
    if given.json:
        print(json.dumps(found, indent=2))
        return
    print(report.summary())
    print(
        f"plans: {plans.iterations}, one iteration of {given.horizon} steps each; processor time mean "
        f"{found['iteration_us'][0]:.1f} µs, largest {found['iteration_us'][1]:.1f} µs; {plans.failed} failed"
    )
    print(
        f"plans that were late: {plans.late_ours} ours, {plans.late_scheduler} the scheduler's; "
        f"oldest plan in use {found['oldest_plan_ms']:.2f} ms"
    )
    print(f"the host took {lost:.2f} s of this core; the clocks of threads count that as theirs")


if __name__ == "__main__":
    main()
