"""Optimal motion from many randomised starts beside Crocoddyl and IPOPT: share converged, iterations, time, costs.

Nine problems (a cart with a pole and an acrobot swing up, an arm reaches among obstacles, a quadruped walks, trots,
bounds and jumps, a humanoid squats and reaches) begin with random states and random torques. ``solve_many`` has all
starts at once, one thread. Crocoddyl's FDDP gets the same first guesses one by one, IPOPT through CasADi only problems
without contacts. A peer that is not installed is named and left out. The humanoid is that of example-robot-data.

Where costs differ from Crocoddyl's and nothing touches, ours is started at its result: "stays" counts those that are
optima for ours, too. Then the start gets ``--lanes`` first guesses at once, and "higher with lanes" counts those whose
best cost is still above Crocoddyl's.

    python benchmarks/optimal_starts.py [--problems acrobot trot] [--starts 200] [--peer-starts 200] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from importlib.metadata import PackageNotFoundError
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from optimal_parts.start_problems import PROBLEMS, Varied

from linkwise import optimal
from linkwise.compiler.runtime import host
from linkwise.optimal.descent import LENGTHS, kernel_of

CLOSE = 1e-6  # relative difference of costs up to which two optima are the same


def ours(varied: Varied, guesses: tuple[np.ndarray, ...], most: int) -> dict[str, np.ndarray]:
    """Costs, iterations and whether they converged, of all starts; seconds of one."""
    xs, us, x0 = guesses
    options = {"start": x0, "states": xs, "torques": us, "threads": 1}
    for width in (1, host.lanes("float64")):  # compiled before the clock runs
        for curved in (False, True)[: 1 + varied.problem.dynamics.bends]:
            kernel_of(varied.problem, 1, LENGTHS, curved).native("float64", width)
    optimal.solve_many(varied.problem, iterations=1, **options)
    begin = time.thread_time()
    found = optimal.solve_many(varied.problem, iterations=most, **options)
    seconds = np.full(len(x0), (time.thread_time() - begin) / len(x0))
    return {
        "cost": found.cost, "converged": found.converged, "iterations": found.steps_taken, "seconds": seconds
    }  # fmt: skip


def theirs(who: str, varied: Varied, guesses: tuple[np.ndarray, ...], most: int) -> dict[str, np.ndarray]:
    """The same of a peer."""
    rows, trajectories = [], []
    solver = None
    if who == "IPOPT":
        from optimal_parts.in_ipopt import InIpopt

        solver = InIpopt(varied.problem, most)
    for xs, us, x0 in zip(*guesses, strict=True):
        nq = varied.problem.dynamics.nq
        problem = varied.problem.with_values({}, start=(x0[:nq], x0[nq:]))
        if who == "Crocoddyl":
            from optimal_parts.in_crocoddyl import InCrocoddyl

            made = InCrocoddyl(problem)
            begin = time.thread_time()
            cost, count, status = made.solve(xs, us, most, stop=1e-9)
            seconds = time.thread_time() - begin
            converged = status == "converged"
            trajectories.append(made.trajectory)
        else:
            assert solver is not None
            begin = time.thread_time()
            cost, count, status = solver.solve(x0, xs, us)
            seconds = time.thread_time() - begin
            converged = status == "Solve_Succeeded"
        rows.append((cost, converged, count, seconds))
    cost, converged, count, seconds = map(np.array, zip(*rows, strict=True))
    found = {"cost": cost, "converged": converged, "iterations": count, "seconds": seconds}
    if trajectories:
        found["states"], found["torques"] = map(np.array, zip(*trajectories, strict=True))
    return found


def differing(
    varied: Varied,
    guesses: tuple[np.ndarray, ...],
    own: dict[str, np.ndarray],
    found: dict[str, np.ndarray],
    options: argparse.Namespace,
) -> dict[str, int]:
    """Where costs differ: whether results of the peer are optima of ours, and what several guesses at once give."""
    count = len(found["cost"])
    both = found["converged"] & own["converged"][:count]
    some = np.flatnonzero(
        both & (np.abs(found["cost"] - own["cost"][:count]) > CLOSE * np.abs(found["cost"]))
    )
    if not some.size:
        return {}
    xs, us, x0 = (part[some] for part in guesses)
    theirs = found["cost"][some]
    given = {"start": x0, "states": found["states"][some], "torques": found["torques"][some]}
    again = optimal.solve_many(varied.problem, iterations=options.iterations, threads=1, **given)
    stays = again.converged & (np.abs(again.cost - theirs) <= CLOSE * np.abs(theirs))
    rng = np.random.default_rng(1)
    spread = varied.torques * 2.0 ** rng.uniform(-1, 2, (len(some), options.lanes, 1, 1))
    torques = us[:, None] + spread * rng.normal(size=(len(some), options.lanes, *us.shape[1:]))
    torques[:, 0] = us
    lanes = optimal.solve_many(
        varied.problem,
        start=x0[:, None],
        states=xs[:, None],
        torques=torques,
        iterations=options.iterations,
        threads=1,
    )
    best = np.where(lanes.converged, lanes.cost, np.inf).min(axis=1)
    return {
        "different": len(some),
        "stays": int(stays.sum()),
        "higher with lanes": int((best - theirs > CLOSE * np.abs(theirs)).sum()),
        "lower with lanes": int((theirs - best > CLOSE * np.abs(theirs)).sum()),
    }


def row_of(who: str, found: dict[str, np.ndarray], reference: dict[str, np.ndarray] | None) -> dict[str, Any]:
    """What is printed and kept of a solver."""
    good = found["converged"]
    row: dict[str, Any] = {"solver": who, "starts": len(good), "converged": float(good.mean())}
    row["iterations"] = float(np.median(found["iterations"]))
    row["milliseconds"] = 1e3 * float(np.median(found["seconds"]))
    row["best"] = float(found["cost"][good].min()) if good.any() else float("nan")
    row["median"] = float(np.median(found["cost"][good])) if good.any() else float("nan")
    if reference is not None:
        count = len(good)
        own = reference["cost"][:count]
        both = good & reference["converged"][:count]
        difference = ((found["cost"] - own) / np.abs(own))[both]
        row |= {"both": int(both.sum()), "same": int((np.abs(difference) <= CLOSE).sum())}
        row |= {
            "ours lower": int((difference > CLOSE).sum()),
            "ours higher": int((difference < -CLOSE).sum()),
        }
    return row


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", nargs="+", choices=list(PROBLEMS), default=list(PROBLEMS))
    parser.add_argument("--starts", type=int, default=200)
    parser.add_argument("--peer-starts", type=int, help="how many of them peers get; by default all")
    parser.add_argument("--iterations", type=int, default=500, help="most of a start")
    parser.add_argument("--lanes", type=int, default=64, help="first guesses of a start whose cost differs")
    parser.add_argument("--horizon", type=int, help="of all problems, to try the script")
    parser.add_argument("--no-ipopt", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    peers = {"Crocoddyl": find_spec("crocoddyl") is not None, "IPOPT": find_spec("casadi") is not None}
    for who, there in peers.items():
        if not there:
            print(f"{who} is not installed: no comparison with it")
    rows = []
    for name in options.problems:
        try:
            varied = PROBLEMS[name]() if options.horizon is None else PROBLEMS[name](horizon=options.horizon)
        except PackageNotFoundError as missing:
            print(f"{name}: {missing.name} is not installed")
            continue
        guesses = varied.starts(options.starts, np.random.default_rng(0))
        own = ours(varied, guesses, options.iterations)
        rows.append({"problem": name, **row_of("linkwise", own, None)})
        print(rows[-1], flush=True)
        few = tuple(part[: options.peer_starts] for part in guesses)
        for who, there in peers.items():
            if not there or (who == "IPOPT" and (options.no_ipopt or varied.problem.dynamics.contacts)):
                continue
            found = theirs(who, varied, few, options.iterations)
            rows.append({"problem": name, **row_of(who, found, own)})
            if who == "Crocoddyl" and not varied.problem.dynamics.contacts:
                rows[-1] |= differing(varied, guesses, own, found, options)
            print(rows[-1], flush=True)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
