"""Cold starts: how long a new process takes to its first torques.

``main`` runs in the new process and prints JSON: seconds to load the robot (for other libraries with their import;
NumPy and Linkwise are there already) and for the first call after that.
"""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import numpy as np

from linkwise.core import children


def measure(name: str, urdf: Path, cache: Path) -> dict[str, float] | None:
    """{"load": seconds, "first call": seconds} in a new process; None if the library is not here or fails."""
    program = "import sys; from linkwise.bench import cold; cold.main(*sys.argv[1:])"
    command = children.command(program, name, str(urdf))
    environment = children.environment({"LINKWISE_CACHE": str(cache)})
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    return json.loads(ran.stdout.splitlines()[-1]) if ran.returncode == 0 else None


def import_seconds() -> float:
    """``import linkwise`` in a new process, NumPy included; the best of three."""
    code = "import time; start = time.perf_counter(); import linkwise; print(time.perf_counter() - start)"
    run, environment = children.command(code), children.environment()
    return min(
        float(subprocess.run(run, check=True, capture_output=True, text=True, env=environment).stdout)
        for _ in range(3)
    )


def main(name: str, path: str) -> None:
    """Load the robot, compute torques once, say how long each took."""
    from linkwise.bench.peers import find
    from linkwise.bench.subject import Subject
    from linkwise.robot.loading import load

    start = time.perf_counter()
    robot = load(path)
    loaded = time.perf_counter()
    zeros = np.zeros((1, robot.dof))
    states = {"q": zeros, "qd": zeros, "qdd": zeros, "tau": zeros}
    if name != "linkwise":
        start = time.perf_counter()
    peers, missing = find(Subject(robot, Path(path)), [name])
    if missing:
        raise SystemExit(str(missing))
    if name != "linkwise":
        loaded = time.perf_counter()
    begin = time.perf_counter()
    task = peers[0].one("inverse_dynamics", states)
    if task is None:
        raise SystemExit("no inverse dynamics")
    task.run()
    print(json.dumps({"load": loaded - start, "first call": time.perf_counter() - begin}))
