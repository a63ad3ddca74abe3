"""The two-rate loop on this machine: the synchronous task alone, and 1 kHz for a minute with a simulated PUMA
260.

Every missed deadline is attributed: ours (the cycle used the processor for more than a period), the plant's
(its driver slept), or the scheduler's (the thread was woken late or was not running). Then the price of the
split: the error of its torques against exact inverse dynamics as the background slows down from 1 kHz to 50
Hz.

    python benchmarks/realtime.py [--seconds 60] [--period 0.001] [--background 0.02] [--json] [--plot FILE]
"""

from __future__ import annotations

import argparse
import json

import numpy as np

import linkwise as lw
from linkwise import motion
from linkwise.control import Gains
from linkwise.realtime import Report, TwoRateController, split_error

RATES = (1000, 500, 200, 100, 50)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--period", type=float, default=1e-3)
    parser.add_argument("--background", type=float, default=0.02)
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--plot", metavar="FILE", help="jitter histogram and error of the split, with matplotlib"
    )
    given = parser.parse_args()

    robot = lw.load("puma260")
    wave = motion.FourierSeries(
        np.zeros(6), [[0.4, 0.3, 0.3, 0.4, 0.4, 0.4]], [[0.1, 0.0, 0.1, 0.0, 0.1, 0.0]], 4.0
    )
    controller = TwoRateController(
        robot, Gains.from_frequency(15.0), period=given.period, background=given.background, deadlines=0
    )
    task = controller.time_synchronous()
    report = controller.run(wave, given.seconds)
    fast = motion.quintic(np.zeros(6), np.full(6, np.pi / 2), 0.5)  # 180 °/s on the way
    # a coefficient is at least one sample old when it is used
    errors = {rate: float(split_error(robot, fast, 1 / rate, latency=1e-3).max()) for rate in RATES}
    if given.plot:
        draw(given.plot, report, errors)
    if given.json:
        print(
            json.dumps(
                {
                    "task_ns": {
                        "median": 1e9 * float(np.median(task)),
                        "p99": 1e9 * float(np.percentile(task, 99)),
                    },
                    "cycles": len(report.rows),
                    "reason": report.reason,
                    "priority": report.priority,
                    "jitter_us": [float(np.percentile(report.late, p)) * 1e6 for p in (50, 99, 100)],
                    "missed": report.missed,
                    "histogram": report.histogram(),
                    "split_error": errors,
                },
                indent=2,
            )
        )
        return
    print(f"synchronous task, PUMA 260, generated C: median {np.median(task) * 1e9:.1f} ns, "
          f"99 % {np.percentile(task, 99) * 1e9:.1f} ns (goal: 200)")  # fmt: skip
    print(report.summary())
    for name, count in report.histogram():
        print(f"  {name:>14} {count:7d}")
    print("error of the split, relative to the largest torque of the joint, fast 90° move of all joints:")
    for rate, error in errors.items():
        print(f"  background at {rate:5d} Hz   {error:8.2%}")


def draw(path: str, report: Report, errors: dict[int, float]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    _, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    late = np.maximum(report.late * 1e6, 0.5)
    left.hist(late, bins=np.geomspace(0.5, max(late.max(), 1000) * 1.05, 60), color="#0072b2")
    left.set(xscale="log", yscale="log", xlabel="begin of a cycle after its time [µs]", ylabel="cycles")
    left.set_title(f"jitter, {len(late)} cycles of {report.period * 1e3:g} ms")
    right.semilogx(list(errors), [100 * e for e in errors.values()], "o-", color="#d55e00")
    right.set(
        xlabel="background rate [Hz]",
        ylabel="largest torque error [%]",
        title="error of the split, fast 90° move",
    )
    right.grid(which="both", alpha=0.3)
    plt.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
