"""What new result arrays cost: batches with results in new arrays beside the same calls that write into given ones.

For each function and number of states: size of the results, processor time of a call with new arrays, of one with
``out=``, their ratio, and how many pages the system had to clear for a call. Each row is a process of its own, as
what a process allocated before decides what its next arrays cost.

    python benchmarks/result_memory.py [--states 1500 6000 20000] [--quick]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

import numpy as np

import linkwise as lw

FUNCTIONS = ("contact_step", "inverse_dynamics", "mass_matrix", "forward_dynamics_derivatives")


def row(name: str, count: int, rounds: int) -> str:
    """The figures of one function."""
    rng = np.random.default_rng(0)
    robot = lw.quadruped() if name == "contact_step" else lw.load("panda")
    given = [robot.random(rng, count), *(rng.normal(size=(count, robot.dof)) for _ in range(2))]
    call, inputs = getattr(robot, name), given[: 1 if name == "mass_matrix" else 3]
    result = call(*inputs, threads=1)
    new, pages, into = [], [], []
    for _ in range(rounds):
        before, start = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, time.process_time()
        result = call(*inputs, threads=1)
        new.append(time.process_time() - start)
        pages.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    for _ in range(rounds):
        start = time.process_time()
        call(*inputs, threads=1, out=result)
        into.append(time.process_time() - start)
    parts = result if isinstance(result, tuple) else (result,)
    size, times = sum(part.nbytes for part in parts) / 1e6, [1e6 * np.median(x) for x in (new, into)]
    return (
        f"{name} {count}: {size:.2f} MB, new {times[0]:.1f} us, given {times[1]:.1f} us, "
        f"ratio {times[0] / times[1]:.2f}, {np.median(pages):.0f} pages"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--states", type=int, nargs="*", default=[1500, 6000, 20000])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--function", choices=FUNCTIONS, help="this one, in this process")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.states, options.rounds = [1500], 2
    for name in [options.function] if options.function else FUNCTIONS[:: 3 if options.quick else 1]:
        for count in options.states:
            if options.function:
                print(row(name, count, options.rounds))
                continue
            command = [sys.executable, __file__, "--function", name, "--states", str(count)]
            subprocess.run([*command, "--rounds", str(options.rounds)], check=True)


if __name__ == "__main__":
    main()
