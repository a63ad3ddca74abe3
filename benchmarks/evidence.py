"""Bounds of generated code beside what a search finds, and random states that must not leave them.

python benchmarks/evidence.py --robots puma560 ur10e panda --dtype float32 --states 1000000
python benchmarks/evidence.py --constants

For each robot and function: the largest bound over the largest value found, over all outputs; the error bound over the
worst error found; the time; and how many of the random states, half of their numbers at the ends of the box, give an
output outside its bounds. 10⁹ states: --states 1000000000, with all cores.

--sub-boxes 1000: random sub-boxes over which mpmath's interval arithmetic encloses every value of the program; each
enclosure must lie in the bounds of the certificate. Near an extreme value a sub-box is made smaller, because plain
intervals are wider than the values in them.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import linkwise as lw
from linkwise import evidence
from linkwise.compiler.ir.graph import CONDITIONS
from linkwise.embedded import Options
from linkwise.embedded.entries import entries
from linkwise.evidence import patterns, precise
from linkwise.evidence.certified_bounds import straight_line

FUNCTIONS = ("inverse_dynamics", "gravity_torques", "computed_torque", "mass_matrix", "jacobian")
CHUNK = 100_000
AGAIN = 100
"""Chunks from the same random numbers, in other combinations."""
PARTS = (1e-2, 1e-3, 1e-4, 1e-6, 1e-9, 0.0)
"""Widths of sub-boxes, as parts of the box."""


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


def wrong_sub_boxes(
    robot: lw.Robot, certificate: evidence.Certificate, dtype: str, count: int
) -> tuple[int, float]:
    """How many random sub-boxes have a value outside its bounds, and the median width, as a part of the box."""
    function = certificate.function
    entry = next(e for e in entries(robot, (function,), Options(dtype=dtype)) if e.name == function)
    program = straight_line(entry.program)
    turns = patterns.find(program)
    ranges = {node: (low, high) for node, low, high in certificate.nodes}
    outputs = [node for nodes in program.values for node in nodes]
    rows = list(zip(outputs, certificate.outputs, strict=True))
    whole = certificate.box.bounds
    drawn = certificate.box.draw(np.random.default_rng(1), count, corners=0.3)
    wrong, widths = 0, []
    for k in range(count):
        for part in PARTS:
            sides = {}
            for name, (low, high) in whole.items():
                half = part * (high - low) / 2
                sides[name] = (
                    np.maximum(drawn[name][k] - half, low),
                    np.minimum(drawn[name][k] + half, high),
                )
            found = precise.over(program, evidence.Box(sides), turns)
            inside = all(
                ranges[n.index][0] <= float(v.a) and float(v.b) <= ranges[n.index][1]
                for n, v in found.items()
                if n.index in ranges and n.op not in CONDITIONS
            )
            inside &= all(o.low <= float(found[n].a) and float(found[n].b) <= o.high for n, o in rows)
            if inside:
                break
        wrong += not inside
        widths.append(part)
    return wrong, float(np.median(widths)) if widths else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robots", nargs="+", default=["puma560", "ur10e"])
    parser.add_argument("--functions", nargs="+", default=list(FUNCTIONS))
    parser.add_argument("--dtype", default="float32", choices=["float32", "float64"])
    parser.add_argument("--states", type=int, default=100_000, help="random states of each function")
    parser.add_argument("--sub-boxes", type=int, default=0, help="sub-boxes that mpmath checks")
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
    head = ("range / found", "error / found", "worst error bound", "states outside", "sub-boxes outside", "s")
    print(f"| robot | function | {' | '.join(head)} |")
    print(f"|---|---|{'---:|' * len(head)}")
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
            boxes, width = wrong_sub_boxes(robot, c, options.dtype, options.sub_boxes)
            print(
                f"| {name} | {function} | {ranges:.2f} | {errors:.1f} | {worst:.2g} | {wrong} of {options.states} | "
                f"{boxes} of {options.sub_boxes} (width {width:.0e}) | {c.seconds:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
