"""Optimal motion beside Crocoddyl and IPOPT: the same optimum, and the time of an iteration.

Seven problems (a Panda reaches a pose, a pendulum swings up under a limit of its torque, a Panda throws a payload, a
quadruped turns in flight, a quadruped trots, Talos squats and reaches to the side) are stated once and given to
Crocoddyl, which has its own dynamics and costs, and to IPOPT through CasADi, with exact Hessians of our functions. All
begin with the same guess. Then iterations of those of them that are in ``TIMED`` are timed beside Crocoddyl's FDDP: one
thread, one process, interleaved, the best of many. A peer that is not installed is named and left out, and so is Talos
without its file (pip install crocoddyl==3.2.1 pin==4.0.0 casadi example-robot-data).

    python benchmarks/optimal_peers.py [--problems reach throw] [--repeats 20] [--no-times] [--json FILE]
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import sys
import time
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from optimal_parts.problems import PROBLEMS as OF_OUR_ROBOTS
from optimal_parts.start_problems import humanoid

from linkwise import optimal
from linkwise.compiler.runtime import host
from linkwise.optimal.descent import LENGTHS, kernel_of
from linkwise.optimal.solver import first_guess

PROBLEMS: dict[str, Any] = OF_OUR_ROBOTS | {
    f"talos_{motion}": lambda horizon=30, motion=motion: humanoid(motion, horizon).problem
    for motion in ("squat", "reach")
}
TIMED = ("reach", "trot", "talos_squat", "talos_reach")
STOP = 1e-9  # |Qu|² at which Crocoddyl's iterations are timed no further
CLOSE = 1e-6  # relative difference of costs up to which two optima are the same


def compared(name: str, peers: dict[str, bool], short: bool) -> dict[str, Any]:
    """Costs of all solvers for one problem."""
    problem = PROBLEMS[name](horizon=5) if short else PROBLEMS[name]()
    guess = first_guess(problem)
    begin = time.perf_counter()
    ours = optimal.solve(problem, iterations=500, tolerance=1e-11)
    row: dict[str, Any] = {"problem": name, "cost": ours.cost, "iterations": ours.iterations}
    row |= {"converged": ours.converged, "gap": ours.gap, "seconds": time.perf_counter() - begin}
    print(f"{name}: cost {ours.cost:.10g} after {ours.iterations} iterations; {ours.message}", flush=True)
    solvers: dict[str, Any] = {}
    if peers["crocoddyl"]:
        from optimal_parts.in_crocoddyl import InCrocoddyl

        solvers["Crocoddyl"] = InCrocoddyl(problem).solve
    if peers["casadi"] and problem.dynamics.contacts is None:
        from optimal_parts import in_ipopt

        solvers["IPOPT"] = partial(in_ipopt.solve, problem)
    for who, solver in solvers.items():
        row[who] = _told(who, solver(*guess), ours.cost)
        if abs(row[who]["difference"]) > CLOSE:  # another local optimum: is ours one for this solver too?
            row[f"{who} from our motion"] = _told(
                f"{who} from our motion", solver(ours.states, ours.tau), ours.cost
            )
    return row


def _told(who: str, found: tuple[float, int, str], ours: float) -> dict[str, Any]:
    cost, count, status = found
    difference = (cost - ours) / abs(ours)
    print(
        f"    {who}: cost {cost:.10g}, relative difference {difference:+.1e}, {count} iterations, {status}",
        flush=True,
    )
    return {"cost": cost, "iterations": count, "difference": difference, "status": status}


def timed(problem: optimal.Problem, repeats: int, peers: dict[str, bool]) -> dict[str, float]:
    """Milliseconds of an iteration, ours and Crocoddyl's, interleaved: of ``solve`` with 40 iterations and what is
    around them, and of the compiled iteration of one problem and of 64. Fewer than 40 where Crocoddyl needs fewer."""
    xs, us = first_guess(problem)
    count, many = 40, 64
    kernel = kernel_of(problem, 1, LENGTHS)
    for width in (1,) if kernel.one_by_one else (1, host.lanes("float64")):  # compiled before the clock runs
        kernel.native("float64", width)
    given = [array.ravel() for array in (problem.x0, problem.p, xs, us, np.zeros(1))]
    batch = [np.tile(array, (many, 1)) for array in given]
    run: dict[str, Any] = {
        "linkwise": lambda: optimal.solve(problem, iterations=count, tolerance=1e-300).iterations,
        "its iteration": lambda: len(kernel(*given, threads=1)) // 4,
        "of 64": lambda: many * len(kernel(*batch, threads=1)) // 4,
    }
    if peers["crocoddyl"]:
        from optimal_parts.in_crocoddyl import InCrocoddyl

        other = InCrocoddyl(problem)
        solver, states, torques = other.solver(STOP), [*other.converted(xs)], [*us]
        solver.solve(states, torques, count, False, 1e-9)
        count = solver.iter  # beyond its end every step length would be tried in vain

        def theirs() -> int:
            solver.solve(states, torques, count, False, 1e-9)
            return solver.iter

        run["crocoddyl"] = theirs
    best = dict.fromkeys(run, np.inf)
    for function in run.values():
        function()
    for _ in range(repeats):
        for name, function in run.items():
            begin = time.thread_time()
            done = function()
            best[name] = min(best[name], (time.thread_time() - begin) / done * 1e3)
    return best


def available() -> list[str]:
    """Problems of robots whose files are there."""
    try:
        importlib.metadata.distribution("example-robot-data")
    except importlib.metadata.PackageNotFoundError:
        print("example-robot-data is not installed: no comparison of Talos")
        return list(OF_OUR_ROBOTS)
    return list(PROBLEMS)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", nargs="+", choices=list(PROBLEMS), default=available())
    parser.add_argument("--repeats", type=int, default=20, help="of the timing")
    parser.add_argument("--no-times", action="store_true")
    parser.add_argument("--short", action="store_true", help="horizons of 5 steps, to try the script")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    peers = {name: find_spec(name) is not None for name in ("crocoddyl", "casadi")}
    for name, there in peers.items():
        if not there:
            print(f"{name} is not installed: no comparison with it")
    found: dict[str, Any] = {"problems": [compared(name, peers, options.short) for name in options.problems]}
    if not options.no_times:
        for name in (name for name in options.problems if name in TIMED):
            problem = PROBLEMS[name]()
            found[f"milliseconds of {name}"] = best = timed(problem, options.repeats, peers)
            print(
                f"one iteration, {name}, horizon {problem.horizon}, one thread: "
                + ", ".join(f"{k} {v:.3f} ms" for k, v in best.items())
            )
            if "crocoddyl" in best:
                times = [f"{k} {best['crocoddyl'] / v:.2f}" for k, v in best.items() if k != "crocoddyl"]
                print(f"    Crocoddyl's time over it: {', '.join(times)}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
