"""Every function of large robots: compiled or not, how long the first call takes, and a call beside Pinocchio.

    python benchmarks/large_robots.py [--robots icub,talos_full_v2] [--bases fixed,floating] [--functions christoffel]
    python benchmarks/large_robots.py --quick

The robots are those of the package example-robot-data; followers (mimic joints of Romeo and Talos) are coupled.
``first``: seconds of the processor to trace and to compile, without a cache. ``call``: the fastest of many calls with
one state. Pinocchio computes its function of the same file, in which every joint moves by itself. ``error``: the
largest difference from the same algorithm run on NumPy arrays, relative to the largest number. The exit status is 1
where a function is not compiled, or differs.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROBOTS = ("g1_29dof_with_hand_rev_1_0", "icub", "romeo", "talos_full_v2", "tiago")
AGREE = 1e-9  # relative to the largest number; Romeo's mass matrix is nearly singular
ITERATIONS = {
    "iterated_forward_dynamics": 1e-5
}  # functions that end when they are accurate enough: what is agreed
OF_CONSTRAINTS = ("constrain", "delassus", "impact")  # functions that need constraints


def path_of(name: str) -> Path:
    """The file of a robot of example-robot-data."""
    files = importlib.metadata.distribution("example-robot-data").files or []
    return next(Path(str(file.locate())) for file in files if file.name == f"{name}.urdf")


def fastest(call: Callable[[], Any], seconds: float) -> float:
    """Microseconds of the fastest call within some time, of at least 20."""
    best, calls, end = float("inf"), 0, time.perf_counter() + seconds
    while time.perf_counter() < end or calls < 20:
        start = time.perf_counter()
        call()
        best, calls = min(best, time.perf_counter() - start), calls + 1
    return 1e6 * best


def pinocchio_calls(path: Path, base: str) -> dict[str, Callable[[], Any]]:
    """Pinocchio's functions at a random state, by the names that they have here."""
    import pinocchio as pin

    from linkwise.bench.pinocchio_calls import calls_of

    joint = pin.JointModelFreeFlyer() if base == "floating" else None
    model = pin.buildModelFromUrdf(str(path), *([joint] if joint else []))
    data, rng = model.createData(), np.random.default_rng(0)
    q = pin.integrate(model, pin.neutral(model), rng.uniform(-0.5, 0.5, model.nv))
    v, a = rng.normal(size=(2, model.nv))
    frame = len(model.frames) - 1
    return calls_of(pin, model, data, q, v, a) | {
        "regressor": lambda: pin.computeJointTorqueRegressor(model, data, q, v, a),
        "pose": lambda: pin.framesForwardKinematics(model, data, q),
        "jacobian": lambda: pin.computeFrameJacobian(model, data, q, frame),
        "centroidal_momentum": lambda: pin.computeCentroidalMomentum(model, data, q, v),
        "centroidal_matrix": lambda: pin.ccrba(model, data, q, v),
        "difference": lambda: pin.difference(model, q, q),
    }


def measured(robot: Any, name: str, seconds: float) -> tuple[str, float, float, float] | None:
    """(form, seconds to the first result, microseconds a call, error) of a function; None: it is not compiled."""
    from linkwise.functions import arrays
    from linkwise.functions.table import Setting
    from linkwise.robot import kernels

    frame = robot.link_names[-1]
    function, setting, algorithm = kernels._settled(name, Setting(robot, frame=frame), None)
    if not kernels.compiles(function, setting, algorithm):
        return None
    kernel = kernels.kernel(function, setting, algorithm)
    rng = np.random.default_rng(0)
    sizes = dict(kernel.inputs)
    given = {
        key: robot.random(rng) if size == robot.nq and key in ("q", "other") else rng.normal(size=size)
        for key, size in sizes.items()
    }
    start = time.process_time()
    result = kernel(*given.values())
    first = time.process_time() - start
    kernel.native("float64", 1)  # not the code that is there first because it is compiled in less time
    form = kernels.form(function, setting, algorithm) or ""
    call = fastest(lambda: kernel(*given.values()), seconds)
    reference = arrays.run_on_arrays(function, setting, algorithm, given).values()
    results = result if isinstance(result, tuple) else (result,)
    if name in ITERATIONS:  # how many steps it takes depends on the last bits
        results, reference = results[:1], list(reference)[:1]
    error = max(
        float(np.abs(ours - theirs).max() / max(1e-300, np.abs(theirs).max()))
        for ours, theirs in zip(results, reference, strict=True)
    )
    return form, first, call, error


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robots", default=",".join(ROBOTS))
    parser.add_argument("--bases", default="fixed,floating")
    parser.add_argument("--functions", default="", help="some of the functions; by default all")
    parser.add_argument("--seconds", type=float, default=0.2, help="of each timing")
    parser.add_argument("--quick", action="store_true", help="one small robot, one function")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.robots, chosen.bases, chosen.functions, chosen.seconds = "tiago", "fixed", "christoffel", 0.01
    with tempfile.TemporaryDirectory() as cache:
        os.environ["LINKWISE_CACHE"] = cache
        return table(chosen)


def table(chosen: argparse.Namespace) -> int:
    """Measure and print one row after the other."""
    import linkwise as lw
    from linkwise.functions.table import FUNCTIONS

    failures = 0
    print(
        f"{'robot':28}{'base':10}{'function':30}{'form':9}{'first s':>8}{'call µs':>9}{'Pin. µs':>9}{'error':>10}"
    )
    for name in chosen.robots.split(","):
        for base in chosen.bases.split(","):
            path = path_of(name)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", lw.ModelWarning)
                robot = lw.load(path, base=base)
            theirs = pinocchio_calls(path, base)
            for function in FUNCTIONS:
                if chosen.functions and function not in chosen.functions.split(","):
                    continue
                if function.startswith(OF_CONSTRAINTS) or (function == "christoffel" and base == "floating"):
                    continue
                row = measured(robot, function, chosen.seconds)
                if row is None:
                    print(f"{name:28}{base:10}{function:30}NOT COMPILED")
                    failures += 1
                    continue
                form, first, call, error = row
                wrong = not (error <= ITERATIONS.get(function, AGREE) or np.isnan(error))
                failures += wrong
                peer = f"{fastest(theirs[function], chosen.seconds):9.1f}" if function in theirs else 9 * " "
                print(
                    f"{name:28}{base:10}{function:30}{form:9}{first:8.1f}{call:9.1f}{peer}{error:10.0e}"
                    + ("  DIFFERS" if wrong else ""),
                    flush=True,
                )
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
