"""Batches on several threads: time a state, efficiency, and the machine's copy speed beside them.

For each function, batch and number of threads: the best of several interleaved rounds, results written to arrays that
exist already. Every turn calls three times: "first" is the best of the first calls, which find the threads asleep, the
other figures are of the calls after them. Efficiency is the time on one thread over (threads x time). Functions that
write much reach the memory's speed before the processors' (the mass matrix of a large batch); for them the bytes moved
in a second stand beside what NumPy's copies reach on as many threads.

    python benchmarks/threads.py [--robot panda] [--states 4096,65536,1000000] [--threads 1,2,4] [--rounds 15]
                                 [--function forward_dynamics] [--json]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import linkwise as lw
from linkwise.compiler.runtime import threads

CALLS = 3  # of one turn
FUNCTIONS = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "inverse_dynamics_derivatives")


def best_of(actions: list[Callable[[], object]], rounds: int) -> list[tuple[float, float]]:
    """The shortest time [s] of each action, of first calls and of calls right after another; they take turns, so that
    all see the same machine."""
    best = [(float("inf"), float("inf"))] * len(actions)
    for _ in range(rounds):
        for k, action in enumerate(actions):
            times = []
            for _ in range(CALLS):
                start = time.perf_counter()
                action()
                times.append(time.perf_counter() - start)
            best[k] = min(best[k][0], times[0]), min(best[k][1], *times[1:])
    return best


def copy_speed(number: int, rounds: int) -> float:
    """Bytes read and written in a second by NumPy's copies of a large array, on so many threads."""
    source, target = np.ones(1 << 25), np.empty(1 << 25)
    parts = list(zip(np.array_split(target, number), np.array_split(source, number), strict=True))
    with ThreadPoolExecutor(number) as pool:
        ((_, seconds),) = best_of([lambda: list(pool.map(lambda pair: np.copyto(*pair), parts))], rounds)
    return 2 * source.nbytes / seconds


def measured(robot: lw.Robot, name: str, states: int, numbers: list[int], rounds: int) -> list[dict]:
    """A row for each number of threads."""
    kernel = robot.kernel(name)
    rng = np.random.default_rng(0)
    given = [rng.uniform(-1.0, 1.0, (states, size)) for _, size in kernel.inputs]
    made = kernel(*given, threads=1)
    moved = sum(a.nbytes for a in (*given, *(made if isinstance(made, tuple) else (made,))))
    actions = [lambda number=number: kernel(*given, out=made, threads=number) for number in numbers]
    for action in actions:
        action()
    seconds = best_of(actions, rounds)
    return [
        {
            "function": name,
            "states": states,
            "threads": number,
            "ns": 1e9 * own / states,
            "first_ns": 1e9 * first / states,
            "efficiency": seconds[0][1] / (own * number),
            "gigabytes_per_second": 1e-9 * moved / own,
        }
        for number, (first, own) in zip(numbers, seconds, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robot", default="panda")
    parser.add_argument("--states", default="4096,65536,1000000")
    parser.add_argument("--threads", default="")
    parser.add_argument("--function", action="append", help="may be repeated; default: four of them")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    cores = threads.available()
    numbers = [int(n) for n in options.threads.split(",") if n] or [
        n for n in (1, 2, 4, 8, 16, 32, 64) if n <= cores
    ]
    if numbers[0] != 1:
        numbers.insert(0, 1)  # what the others are compared with
    robot = lw.load(options.robot)
    copies = {number: 1e-9 * copy_speed(number, options.rounds) for number in numbers}
    rows = [
        row
        for name in options.function or FUNCTIONS
        for states in map(int, options.states.split(","))
        for row in measured(robot, name, states, numbers, options.rounds)
    ]
    if options.json:
        print(json.dumps({"robot": options.robot, "cores": cores, "copy": copies, "rows": rows}, indent=1))
        return
    print(f"{options.robot}, {cores} cores; efficiency is against one thread, GB/s beside NumPy's copy")
    print(
        f"{'function':30}{'states':>9}{'threads':>8}{'first':>9}{'ns/state':>10}{'efficiency':>11}{'GB/s':>8}{'copy':>8}"
    )
    for row in rows:
        print(
            f"{row['function']:30}{row['states']:9}{row['threads']:8}{row['first_ns']:9.2f}{row['ns']:10.2f}{row['efficiency']:11.2f}"
            f"{row['gigabytes_per_second']:8.1f}{copies[row['threads']]:8.1f}"
        )


if __name__ == "__main__":
    main()
