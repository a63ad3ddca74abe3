"""What gains and limits at run time cost: generated C of every controller with settings as arguments and as constants.

    python benchmarks/run_time_gains.py [--robots panda,ur10e] [--repeats 15] [--calls 20000] [--allowed 5]

Both functions are in one program (gcc -O2 -march=native) and are timed in turn; the ratio is that of their fastest
blocks of calls in processor time. States change from call to call. The last columns are kernels for a batch of 4096
states on one thread, settings the same for all states and a row for each; "reading" is what rows of the same settings
cost a kernel that adds its inputs up and does nothing else, in units of the law's time: no law can have less. The
script fails where the median over all controllers of a robot, of one state or of a batch with the same settings,
exceeds the allowed share.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

os.environ.setdefault("LINKWISE_BACKGROUND", "0")  # no code that was compiled quickly is measured

import linkwise as lw
from linkwise.compiler.emit.c import STATUS
from linkwise.control import CONTROLLERS, named
from linkwise.control.controller import traced_kernel

PERIOD, STATES, BATCH = 1e-3, 64, 4096
DRIVER = """
#include <time.h>
#define N {n}
#define NQ {nq}
{declared}
static double seconds(void)
{{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}}
void timed(const double *q, const double *qd, const double *r, {given}long calls, double *taken, double *sum)
{{
    double tau[N], next[{memory} + 1], memory[{memory} + 1] = {{0}};
    static double tables[{tables} + 1];
    (void)next; (void)memory; (void)tables;
    double begin = seconds();
    for (long k = 0; k < calls; ++k) {{
        long s = k % {states};
        (void)fixed(q + s * NQ, qd + s * N, r + s * NQ, qd + s * N, qd + s * N{kept}, tau{following}{worked});
        *sum += tau[0];
    }}
    double middle = seconds();
    for (long k = 0; k < calls; ++k) {{
        long s = k % {states};
        (void)tuned(q + s * NQ, qd + s * N, r + s * NQ, qd + s * N, qd + s * N{kept}{passed}, tau{following}{worked});
        *sum += tau[0];
    }}
    taken[0] = middle - begin;
    taken[1] = seconds() - middle;
}}
"""


def measured(robot: lw.Robot, name: str, repeats: int, calls: int) -> tuple[float, float]:
    """[ns] of a call with constants, and the ratio of run-time settings to it."""
    law = named(name, robot, frequency=10.0 if CONTROLLERS[name].feedback else None, torque_limits=80.0)
    kernels = {
        "fixed": law.kernel(PERIOD, fault=True),
        "tuned": law.kernel(PERIOD, fault=True, tunable=True),
    }
    settings, m = law.settings(), law.memory_size
    assert STATUS == "fault"
    texts = {key: kernel.source("c", function_name=key) for key, kernel in kernels.items()}
    declared = "\n".join(
        kernel.source("c", function_name=key, header=True) for key, kernel in kernels.items()
    )
    tables = re.findall(r"double tables\[(\d+)\]", declared)  # memory that loops need
    driver = DRIVER.format(
        n=robot.dof,
        nq=robot.nq,
        declared=declared,
        memory=m,
        states=STATES,
        given="".join(f"const double *{key}, " for key in settings),
        passed="".join(f", {key}" for key in settings),
        kept=", memory" if m else "",
        following=", next" if m else "",
        tables=max([0, *map(int, tables)]),
        worked=", tables" if tables else "",
    )
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(STATES, size)) for size in (robot.nq, robot.dof, robot.nq)]
    arrays += list(settings.values())
    with tempfile.TemporaryDirectory() as folder:
        for key, text in {**texts, "driver": driver}.items():
            Path(folder, f"{key}.c").write_text(text)
        command = ["gcc", "-O2", "-march=native", "-ffp-contract=off", "-shared", "-fPIC", "-o", "t.so"]
        subprocess.run([*command, *(f"{key}.c" for key in (*texts, "driver")), "-lm"], cwd=folder, check=True)
        code = ctypes.CDLL(str(Path(folder, "t.so")))
    taken, total = np.zeros(2), np.zeros(1)
    times = []
    for _ in range(repeats):
        pointers = [ctypes.c_void_p(np.ascontiguousarray(a).ctypes.data) for a in arrays]
        code.timed(
            *pointers,
            ctypes.c_long(calls),
            ctypes.c_void_p(taken.ctypes.data),
            ctypes.c_void_p(total.ctypes.data),
        )
        times.append(taken.copy())
    fixed, tuned = np.min(times, axis=0)
    return 1e9 * fixed / calls, tuned / fixed


def reader(kernel, settings, motors: int):
    """A kernel with the inputs of another one whose torques are sums of them."""
    sizes = dict(kernel.inputs)

    def added(**given) -> dict:
        columns = list(given.values())
        return {"tau": [sum(column[k % len(column)] for column in columns) for k in range(motors)]}

    return traced_kernel("reader", added, sizes, {"tau": (motors,)}, "float64", None, list(settings))


def batched(robot: lw.Robot, name: str, repeats: int) -> tuple[float, float, float, float]:
    """[ns] for a state of a batch with constants, ratios of run-time settings to it: the same for all; one row each;
    and the share that reading these rows takes."""
    law = named(name, robot, frequency=10.0 if CONTROLLERS[name].feedback else None, torque_limits=80.0)
    rng, settings, n = np.random.default_rng(0), law.settings(), robot.dof
    sizes = (robot.nq, n, robot.nq, n, n)
    states = [rng.normal(size=(BATCH, size)) for size in sizes]
    states += [np.zeros((BATCH, law.memory_size))] * bool(law.memory_size)
    measured = [settings[name] for name in law.signals]
    fixed, tuned = law.kernel(PERIOD), law.kernel(PERIOD, tunable=True)
    same = list(settings.values())
    rows = [np.tile(values, (BATCH, 1)) for values in same]
    readers = [reader(kernel, settings, n) for kernel in (fixed, tuned)]
    calls = [(fixed, measured), (tuned, same), (tuned, rows), (readers[0], measured), (readers[1], rows)]
    outs = [fixed(*states, *measured)] * 3 + [readers[0](*states, *measured)] * 2
    times = np.full(5, np.inf)
    for _ in range(4 * repeats):
        for k, (kernel, given) in enumerate(calls):
            begin = time.perf_counter()
            kernel(*states, *given, out=outs[k], threads=1)
            times[k] = min(times[k], time.perf_counter() - begin)
    reading = (times[4] - times[3]) / times[0]
    return 1e9 * times[0] / BATCH, times[1] / times[0], times[2] / times[0], reading


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robots", default="panda,ur10e,puma560,two_link")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--allowed", type=float, default=5.0, help="[%%]")
    options = parser.parse_args()
    print(
        "robot      controller         constants [ns]   run-time settings   batch [ns]   the same   a row each"
        "   reading"
    )
    wrong = []
    for name in options.robots.split(","):
        robot, ratios, of_batches = lw.load(name), [], []
        for law, kind in CONTROLLERS.items():
            if not kind.feedback:
                continue
            fixed, ratio = measured(robot, law, options.repeats, options.calls)
            ratios.append(ratio)
            of_one, same, each, reading = batched(robot, law, options.repeats)
            of_batches.append(same)
            print(
                f"{name:10s} {law:18s} {fixed:10.1f}         {100 * (ratio - 1):+6.1f} %"
                f"           {of_one:9.1f}   {100 * (same - 1):+6.1f} %   {100 * (each - 1):+6.1f} %"
                f"   {100 * reading:+6.1f} %",
                flush=True,
            )
        medians = 100 * (np.median([ratios, of_batches], axis=1) - 1)
        print(f"{name:10s} median {medians[0]:+34.1f} %   in a batch {medians[1]:+13.1f} %")
        wrong += [name] if medians.max() > options.allowed else []
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
