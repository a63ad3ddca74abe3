"""Online moves beside Ruckig: durations of random targets, limits, and the time of a plan in C.

    python benchmarks/online_moves.py [--targets 100000] [--joints 1 7] [--seed 0] [--json]

Every state, target and limit is drawn at random; states may be beyond the limits (the joints brake first). A third of
the targets has a velocity and an acceleration. "Equal": durations differ by at most 1e-9 of the larger one. Limits
are checked at 100 times of every move after braking. Times in C are processor time of the generated functions, compiled
by gcc -O2 -march=native, called for one joint after the other, and with joints as lanes of vectors (source("c",
lanes=8), or 4 without AVX-512), and of online_move of a package (linkwise generate ROBOT online, built by make), which
takes and gives rows of joints; those of Ruckig are what it measures inside its call.
Without Ruckig (pip install ruckig) its columns are empty.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise.embedded.package import Package
from linkwise.motion.online import kernels

NAMES = (*kernels.STATE, *kernels.TARGET, *kernels.LIMITS)


@dataclass(frozen=True)
class Row:
    joints: int
    targets: int
    faults: int
    beyond_limits: float  # largest relative excess over a limit after braking
    missed: float  # largest relative distance from a target at the end
    batch: float  # [s] per target, one thread: durations and plan
    c_code: float  # [s] per target in C: durations and plan, one joint after the other
    c_lanes: float  # [s] per target in C with joints as lanes
    package: float  # [s] per target by online_move of a package
    c_again: float  # [s] per plan in C with joints as lanes for a duration that is known, as in the cycles that follow
    peer: float = np.nan  # [s] per target, mean
    peer_median: float = np.nan  # [s]
    peer_compared: int = 0
    equal: int = 0
    shorter: int = 0  # than the peer's
    longer: int = 0
    largest_difference: float = np.nan  # relative


def tasks(count: int, joints: int, seed: int) -> dict[str, np.ndarray]:
    """States, targets and limits, shape (count, joints) each."""
    rng = np.random.default_rng(seed)
    shape = (count, joints)
    high_v, low_v = rng.uniform(0.5, 3, shape), -rng.uniform(0.5, 3, shape)
    high_a, low_a, jerk = rng.uniform(1, 10, shape), -rng.uniform(1, 10, shape), rng.uniform(5, 100, shape)
    moving = rng.random((count, 1)) < 1 / 3
    af = np.where(moving, rng.uniform(low_a, high_a), 0.0)
    turn = af**2 / (2 * jerk)
    low, high = np.where(af > 0, low_v + turn, low_v), np.where(af < 0, high_v - turn, high_v)
    af = np.where(low < high, af, 0.0)
    low, high = np.where(af == 0, low_v, low), np.where(af == 0, high_v, high)
    values = (
        rng.normal(size=shape),
        1.2 * rng.uniform(low_v, high_v),
        1.2 * rng.uniform(low_a, high_a),
        rng.normal(size=shape),
        np.where(moving, rng.uniform(low, high), 0.0),
        af,
        *(high_v, low_v, high_a, low_a, jerk),
    )
    return dict(zip(NAMES, values, strict=True))


def planned(given: dict[str, np.ndarray]) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """(durations, plan) of joints that arrive together."""
    shape = given["q"].shape
    lanes = [a.reshape(-1, 1) for a in given.values()]
    T = np.zeros(shape[0])
    for _ in range(40):
        before = T
        at_least = np.repeat(T, shape[1])[:, np.newaxis]
        T = kernels.earliest_kernel()(*lanes, at_least, threads=1).reshape(shape).max(axis=1)
        plan = kernels.plan_kernel()(*lanes, np.repeat(T, shape[1])[:, np.newaxis], threads=1)
        if not plan[3].any() or np.array_equal(T, before):
            break
    return T, plan


def excess(given: dict[str, np.ndarray], T: np.ndarray, plan: tuple[np.ndarray, ...]) -> tuple[float, float]:
    """(largest relative excess over a limit, largest relative distance from the target)."""
    lanes = {name: a.reshape(-1) for name, a in given.items()}
    times = np.repeat(T, given["q"].shape[1])
    durations, jerks, weight, _ = plan
    start = [lanes[name][:, np.newaxis] for name in kernels.STATE]
    tables = (durations, jerks, weight[:, np.newaxis])
    braked, worst = durations[:, :3].sum(axis=1), 0.0
    for share in np.linspace(0, 1, 100):
        t = braked + share * (times - braked)
        q, qd, qdd = kernels.state_kernel()(t[:, np.newaxis], *start, *tables)
        speed = lanes["velocity_upper"] - lanes["velocity_lower"] + np.abs(lanes["qd"])
        force = lanes["acceleration_upper"] - lanes["acceleration_lower"] + np.abs(lanes["qdd"])
        parts = (
            (qd - lanes["velocity_upper"]) / speed,
            (lanes["velocity_lower"] - qd) / speed,
            (qdd - lanes["acceleration_upper"]) / force,
            (lanes["acceleration_lower"] - qdd) / force,
        )
        worst = max(worst, *(float(part.max()) for part in parts))
    missed = np.abs(q - lanes["target"]) / (np.abs(q) + speed * times)
    return worst, float(missed.max())


_CLOCK = """
#include <stdio.h>
#include <time.h>

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
"""


@cache
def lanes() -> int:
    """Doubles in a register of this processor."""
    macros = subprocess.run(
        ["gcc", "-march=native", "-dM", "-E", "-x", "c", "/dev/null"], capture_output=True, text=True
    )
    return 8 if "__AVX512F__" in macros.stdout else 4


def time_in_c(given: dict[str, np.ndarray], repeats: int = 5) -> float:
    """Time of durations and plan of one target in C, one joint after the other [s]; NaN without gcc."""
    count, joints = given["q"].shape
    count = min(count, 2000)
    values = np.stack([a[:count] for a in given.values()], axis=-1)  # (count, joints, 11)
    arguments = ", ".join(f"x + {k}" for k in range(len(NAMES)))
    main = f"""
static double data[{count}][{joints}][{len(NAMES)}];
int main(void)
{{
    FILE *f = fopen("data.bin", "rb");
    if (f == NULL || fread(data, sizeof data, 1, f) != 1) return 1;
    double best = 1e30, sum = 0.0, durations[20], jerks[20], weight[1], new[1];
    for (int repeat = 0; repeat < {repeats}; ++repeat) {{
        const double begin = seconds();
        for (int k = 0; k < {count}; ++k) {{
            double T = 0.0, last;
            int again;
            do {{
                last = T;
                again = 0;
                for (int joint = 0; joint < {joints}; ++joint) {{
                    const double *x = data[k][joint];
                    online_earliest({arguments}, &T, new);
                    T = new[0];
                }}
                for (int joint = 0; joint < {joints}; ++joint) {{
                    const double *x = data[k][joint];
                    again |= online_plan({arguments}, &T, durations, jerks, weight);
                    sum += weight[0];
                }}
            }} while (again && T > last);
        }}
        const double t = seconds() - begin;
        if (t < best) best = t;
    }}
    printf("%.17g %g\\n", best / {count}, sum);
    return 0;
}}
"""
    return _run_c(main, values, {})[0]


def time_in_lanes(given: dict[str, np.ndarray], repeats: int = 5) -> tuple[float, float]:
    """Times of durations and plan, and of a plan alone, with joints as lanes [s]; NaN without gcc."""
    if shutil.which("gcc") is None:
        return float("nan"), float("nan")
    width = lanes()
    count, joints = given["q"].shape
    count, groups = min(count, 2000), -(-joints // width)
    values = np.stack([a[:count] for a in given.values()], axis=1)  # (count, 11, joints)
    values = np.pad(values, ((0, 0), (0, 0), (0, groups * width - joints)), mode="edge")
    values = values.reshape(count, len(NAMES), groups, width).swapaxes(1, 2)
    arguments = ", ".join(f"data[k][group][{k}]" for k in range(len(NAMES)))
    plan = f"online_plan({arguments}, all, durations, jerks, weight, fault);"
    main = f"""
static double data[{count}][{groups}][{len(NAMES)}][{width}];
static double slowest[{count}];
int main(void)
{{
    FILE *f = fopen("data.bin", "rb");
    if (f == NULL || fread(data, sizeof data, 1, f) != 1) return 1;
    double best = 1e30, best_again = 1e30, sum = 0.0, durations[160], jerks[160], weight[8], fault[8], new[8], all[8];
    for (int repeat = 0; repeat < {repeats}; ++repeat) {{
        double begin = seconds();
        for (int k = 0; k < {count}; ++k) {{
            double T = 0.0, last;
            int again;
            do {{
                last = T;
                again = 0;
                for (int group = 0; group < {groups}; ++group) {{
                    for (int lane = 0; lane < {width}; ++lane) all[lane] = T;
                    online_earliest({arguments}, all, new);
                    for (int lane = 0; lane < {width}; ++lane) T = new[lane] > T ? new[lane] : T;
                }}
                for (int lane = 0; lane < {width}; ++lane) all[lane] = T;
                for (int group = 0; group < {groups}; ++group) {{
                    {plan}
                    for (int lane = 0; lane < {width}; ++lane) again |= fault[lane] > 0.0;
                    sum += weight[0];
                }}
            }} while (again && T > last);
            slowest[k] = T;
        }}
        double t = seconds() - begin;
        if (t < best) best = t;
        begin = seconds();
        for (int k = 0; k < {count}; ++k) {{
            for (int lane = 0; lane < {width}; ++lane) all[lane] = slowest[k];
            for (int group = 0; group < {groups}; ++group) {{
                {plan}
                sum += weight[0];
            }}
        }}
        t = seconds() - begin;
        if (t < best_again) best_again = t;
    }}
    printf("%.17g %.17g %g\\n", best / {count}, best_again / {count}, sum);
    return 0;
}}
"""
    both, again, *_ = _run_c(main, values, {"lanes": width})
    return both, again


def time_in_package(given: dict[str, np.ndarray], repeats: int = 5) -> float:
    """Time of durations and plan of one target by the function of all joints of a package [s]; NaN without make."""
    if shutil.which("make") is None or shutil.which("cc") is None:
        return float("nan")
    count, joints = given["q"].shape
    count = min(count, 2000)
    values = np.stack([a[:count] for a in given.values()], axis=1)  # (count, 11, joints)
    arguments = ", ".join(f"data[k][{k}]" for k in range(len(NAMES)))
    main = f"""
#include "arm.h"
static double data[{count}][{len(NAMES)}][{joints}];
int main(void)
{{
    FILE *f = fopen("data.bin", "rb");
    if (f == NULL || fread(data, sizeof data, 1, f) != 1) return 1;
    double best = 1e30, sum = 0.0, durations[20 * {joints}], jerks[20 * {joints}], weight[{joints}], T[1];
    const double shortest[1] = {{0.0}};
    for (int repeat = 0; repeat < {repeats}; ++repeat) {{
        const double begin = seconds();
        for (int k = 0; k < {count}; ++k) {{
            sum += arm_online_move({arguments}, shortest, T, durations, jerks, weight);
            sum += T[0];
        }}
        const double t = seconds() - begin;
        if (t < best) best = t;
    }}
    printf("%.17g %g\\n", best / {count}, sum);
    return 0;
}}
"""
    with tempfile.TemporaryDirectory() as folder:
        package = Package(lw.random_robot(0, joints), ["online"], prefix="arm", count=1)
        package.write(Path(folder, "arm"))
        Path(folder, "main.c").write_text(_CLOCK + main)
        values.tofile(Path(folder, "data.bin"))
        subprocess.run(["make", "-C", "arm"], cwd=folder, check=True, capture_output=True)
        link = ["cc", "-O2", "-Iarm/include", "-o", "main", "main.c", "arm/build/libarm.a", "-lm"]
        subprocess.run(link, cwd=folder, check=True, capture_output=True)
        out = subprocess.run(["./main"], cwd=folder, check=True, capture_output=True, text=True).stdout
    return float(out.split()[0])


def _run_c(main: str, values: np.ndarray, options: dict[str, int]) -> list[float]:
    """What a program prints that calls both functions; NaN without gcc."""
    if shutil.which("gcc") is None:
        return [float("nan")] * 3
    made = [kernel.source("c", **options) for kernel in (kernels.earliest_kernel(), kernels.plan_kernel())]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "main.c").write_text("".join(made) + _CLOCK + main)
        values.tofile(Path(folder, "data.bin"))
        compile_ = ["gcc", "-O2", "-march=native", "-o", "main", "main.c", "-lm"]
        subprocess.run(compile_, cwd=folder, check=True, capture_output=True)
        out = subprocess.run(["./main"], cwd=folder, check=True, capture_output=True, text=True).stdout
    return [float(word) for word in out.split()]


def beside(given: dict[str, np.ndarray], T: np.ndarray) -> dict[str, float]:
    """Ruckig's durations and times; empty without it."""
    try:
        import ruckig
    except ImportError:
        return {}
    count, joints = given["q"].shape
    generator, out, task = (
        ruckig.Ruckig(joints, 1e-3),
        ruckig.OutputParameter(joints),
        ruckig.InputParameter(joints),
    )
    names = (
        *("current_position", "current_velocity", "current_acceleration"),
        *("target_position", "target_velocity", "target_acceleration"),
        *("max_velocity", "min_velocity", "max_acceleration", "min_acceleration", "max_jerk"),
    )
    durations, times = np.full(count, np.nan), np.full(count, np.nan)
    for k in range(count):
        for name, values in zip(names, given.values(), strict=True):
            setattr(task, name, values[k].tolist())
        if generator.update(task, out) in (ruckig.Result.Working, ruckig.Result.Finished):
            durations[k], times[k] = out.trajectory.duration, 1e-6 * out.calculation_duration
    known = np.isfinite(durations)
    difference = (T - durations)[known] / np.maximum(T, durations)[known]
    return {
        "peer": float(np.nanmean(times)),
        "peer_median": float(np.nanmedian(times)),
        "peer_compared": int(known.sum()),
        "equal": int((np.abs(difference) <= 1e-9).sum()),
        "shorter": int((difference < -1e-9).sum()),
        "longer": int((difference > 1e-9).sum()),
        "largest_difference": float(np.abs(difference).max()),
    }


def measure(joints: int, targets: int, seed: int) -> Row:
    """All figures for one number of joints."""
    given = tasks(targets, joints, seed)
    T, plan = planned({name: a[:4096] for name, a in given.items()})
    batch = np.inf
    for _ in range(3):  # a better compiled version replaces the first one in the background
        begin = time.process_time()
        T, plan = planned(given)
        batch = min(batch, (time.process_time() - begin) / targets)
    worst, missed = excess(given, T, plan)
    faults = int(plan[3].sum())
    lanes_, again = time_in_lanes(given)
    times = (batch, time_in_c(given), lanes_, time_in_package(given), again)
    return Row(joints, targets, faults, worst, missed, *times, **beside(given, T))  # type: ignore[arg-type]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--targets", type=int, default=100_000)
    parser.add_argument("--joints", type=int, nargs="+", default=[1, 7])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    rows = [measure(joints, chosen.targets, chosen.seed) for joints in chosen.joints]
    if chosen.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    for row in rows:
        print(
            f"{row.joints} joints, {row.targets} targets: {row.faults} without a move; beyond a limit by "
            f"{row.beyond_limits:.1e}, from the target {row.missed:.1e} (relative)"
        )
        print(
            f"  time of a plan: {1e6 * row.c_code:.2f} µs in C, {1e6 * row.c_lanes:.2f} µs with joints as lanes "
            f"({1e6 * row.c_again:.2f} µs where the duration is known), {1e6 * row.package:.2f} µs in a package, "
            f"{1e6 * row.batch:.2f} µs in a batch, one core"
        )
        if row.peer_compared:
            print(
                f"  Ruckig: {1e6 * row.peer_median:.2f} µs median, {1e6 * row.peer:.2f} µs mean; {row.equal} of "
                f"{row.peer_compared} durations equal, {row.shorter} shorter here, {row.longer} longer; largest "
                f"relative difference {row.largest_difference:.1e}"
            )
        else:
            print("  Ruckig is not installed (pip install ruckig)")


if __name__ == "__main__":
    main()
