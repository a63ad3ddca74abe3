"""Bounds of generated code beside what a search finds, and random states that must not leave them.

python benchmarks/evidence.py --robots puma560 ur10e panda --dtype float32 --states 1000000
python benchmarks/evidence.py --constants

For each robot and function: the largest bound over the largest value found, over all outputs; the error bound over the
worst error found; the time; and how many of the random states, half of their numbers at the ends of the box, give an
output outside its bounds. 10⁹ states: --states 1000000000, with all cores.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import linkwise as lw
from linkwise import evidence
from linkwise.embedded import Options
from linkwise.embedded.entries import entries

FUNCTIONS = ("inverse_dynamics", "gravity_torques", "computed_torque", "mass_matrix", "jacobian")
CHUNK = 100_000
AGAIN = 100
"""Chunks from the same random numbers, in other combinations."""


def outside(robot: lw.Robot, certificate: evidence.Certificate, dtype: str, states: int) -> int:
    """How many random states have an output outside its bounds."""
    function = certificate.function
    entry = next(e for e in entries(robot, (function,), Options(dtype=dtype)) if e.name == function)
    names = [name for name, _ in entry.kernel.inputs]
    low = np.array([o.low - o.error for o in certificate.outputs])
    high = np.array([o.high + o.error for o in certificate.outputs])
    rng = np.random.default_rng(0)
    wrong, done = 0, 0
    twice: dict[str, np.ndarray] = {}
    while done < states:
        count = min(CHUNK, states - done)
        if done % (AGAIN * CHUNK) == 0:
            drawn = certificate.box.draw(rng, CHUNK)
            twice = {name: np.concatenate([x, x]).astype(dtype) for name, x in drawn.items()}
        # new states from the same numbers: every column is moved by another distance
        moved = {name: np.empty((count, x.shape[1]), dtype) for name, x in twice.items()}
        for name, x in moved.items():
            for k, offset in enumerate(rng.integers(0, CHUNK, x.shape[1])):
                x[:, k] = twice[name][offset : offset + count, k]
        results = entry.kernel(*(moved[name] for name in names))
        parts = results if isinstance(results, tuple) else (results,)
        flat = [np.asarray(x).reshape(count, -1) for x in parts]
        least, most = (np.concatenate([f(x, axis=0) for x in flat]).astype(float) for f in (np.min, np.max))
        if not ((least >= low) & (most <= high)).all():  # NaN is outside, too
            values = np.concatenate([x.astype(float) for x in flat], axis=1)
            wrong += int((~((values >= low) & (values <= high))).any(axis=1).sum())
        done += count
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robots", nargs="+", default=["puma560", "ur10e"])
    parser.add_argument("--functions", nargs="+", default=list(FUNCTIONS))
    parser.add_argument("--dtype", default="float32", choices=["float32", "float64"])
    parser.add_argument("--states", type=int, default=100_000, help="random states of each function")
    parser.add_argument("--seconds", type=float, default=60.0, help="for the bounds of one output")
    parser.add_argument(
        "--constants", action="store_true", help="constants of the equation of motion instead"
    )
    options = parser.parse_args()
    if options.constants:
        print(
            "| robot | λ_min, bound | λ_min, found | λ_max, bound | λ_max, found | gravity, bound | found | k_c | s |"
        )
        print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
        for name in options.robots:
            begin = time.perf_counter()
            c = evidence.constants(lw.load(name))
            least = f"{c.least_inertia:.4g}" if c.definite else "not shown"
            cells = (
                c.least_inertia_found,
                c.most_inertia,
                c.most_inertia_found,
                c.gravity,
                c.gravity_found,
                c.coriolis,
            )
            numbers = " | ".join(f"{x:.4g}" for x in cells)
            print(f"| {name} | {least} | {numbers} | {time.perf_counter() - begin:.0f} |", flush=True)
        return
    print("| robot | function | range / found | error / found | worst error bound | states outside | s |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for name in options.robots:
        robot = lw.load(name)
        for function in options.functions:
            made = Options(dtype=options.dtype)
            c = evidence.certify(robot, function, options=made, seconds=options.seconds)
            moving = [o for o in c.outputs if max(abs(o.low), abs(o.high)) > 1e-9]
            ranges = max((o.tightness for o in moving), default=1.0)
            errors = max((o.error_tightness for o in moving if o.worst.value > 0), default=1.0)
            worst = max(o.error for o in c.outputs)
            wrong = outside(robot, c, options.dtype, options.states)
            print(
                f"| {name} | {function} | {ranges:.2f} | {errors:.1f} | {worst:.2g} | {wrong} of {options.states} | "
                f"{c.seconds:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
