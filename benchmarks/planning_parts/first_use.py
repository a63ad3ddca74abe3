"""First use of a robot file: a process of its own with an empty cache, from the import to the first checked batch.

``python benchmarks/planning_parts/first_use.py FILE`` is that process; it prints a line of JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass

STATES = 16  # of the first batch
OBSTACLES = 20


@dataclass(frozen=True)
class FirstUse:
    """Seconds of one first use.

    ``wall``: from the start of the process to its result; ``loaded``, ``spheres``, ``pairs``, ``checked``: wall times
    of the parts after the import; ``processor``: processor time of all threads after the import; ``error``: why the
    robot has no checks, else empty.
    """

    name: str
    joints: int = 0
    spheres: int = 0
    wall: float = 0.0
    parts: tuple[float, ...] = ()
    processor: float = 0.0
    error: str = ""


def first_use(name: str, given: str, *, threads: str | None = None) -> FirstUse:
    """Measures the first use of a file, or of a bundled robot, in a process of its own.

    Args:
        name: of the row.
        given: the file, or the name of a bundled robot.
        threads: number of threads; by default all cores.
    """
    with tempfile.TemporaryDirectory() as folder:
        chosen = {} if threads is None else {"LINKWISE_THREADS": threads}
        kept = {key: value for key, value in os.environ.items() if key != "LINKWISE_THREADS"}
        environment = kept | chosen | {"LINKWISE_CACHE": folder}
        begin = time.perf_counter()
        child = subprocess.Popen(
            [sys.executable, __file__, given], stdout=subprocess.PIPE, text=True, env=environment
        )
        assert child.stdout is not None
        line = child.stdout.readline()  # background work, such as better code, goes on after it
        wall = time.perf_counter() - begin
        child.kill()
        child.wait()
        child.stdout.close()
    if not line:
        raise SystemExit(f"{name}: the process ended without a result")
    found = json.loads(line)
    return FirstUse(name, wall=wall, **found | {"parts": tuple(found.get("parts", ()))})


def print_first_uses(rows: list[tuple[str, str]]) -> None:
    """Prints the first use of robots, and the slowest of them.

    Args:
        rows: names, and files or names of bundled robots.
    """
    print(
        "first use                                joints spheres   wall [s]   of it: load  spheres  pairs"
        "  compile, check   processor [s]"
    )
    slowest, count = FirstUse(""), 0
    for name, given in rows:
        found = first_use(name, given)
        if found.error:
            print(f"{name:40s}{found.joints:7d}  {found.error}", flush=True)
            continue
        parts = "".join(f"{each:9.2f}" for each in found.parts)
        print(
            f"{name:40s}{found.joints:7d}{found.spheres:8d}{found.wall:11.2f}{parts:>48s}{found.processor:14.2f}",
            flush=True,
        )
        slowest, count = max(slowest, found, key=lambda each: each.wall), count + 1
    print(f"slowest of {count}: {slowest.name} {slowest.wall:.2f} s")


def _measured(given: str) -> dict[str, object]:
    """Numbers of this process."""
    import numpy as np

    import linkwise as lw
    from linkwise.collision import Sphere, Validity, World, spheres_of
    from linkwise.collision.clearance import position_range

    begin, moments = time.process_time(), [time.perf_counter()]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lw.ModelWarning)
            robot = lw.load(given)
    except lw.LinkwiseError as error:  # such as the frame without a link of one of these files
        return {"error": str(error)}
    moments.append(time.perf_counter())
    if robot.nq != robot.dof or not robot.nq:
        return {"joints": robot.dof, "error": "ball or floating joints" if robot.nq else "no moving joint"}
    spheres = spheres_of(robot)
    moments.append(time.perf_counter())
    checks = Validity(robot, spheres=spheres)
    moments.append(time.perf_counter())
    rng = np.random.default_rng(0)
    world = World([Sphere(rng.uniform(-1.0, 1.0, 3), 0.05) for _ in range(OBSTACLES)])
    lower, upper = position_range(robot, None, None)
    checks.in_collision(rng.uniform(lower, upper, (STATES, robot.nq)), world)
    moments.append(time.perf_counter())
    return {
        "joints": robot.dof,
        "spheres": len(spheres),
        "parts": np.diff(moments).tolist(),
        "processor": time.process_time() - begin,
    }


if __name__ == "__main__":
    print(json.dumps(_measured(sys.argv[1])), flush=True)
