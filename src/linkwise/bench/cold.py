"""Cold starts: how long a new process takes to its first torques.

Run as ``python -m linkwise.bench.cold NAME FILE``, it prints JSON: seconds to load the robot (for other libraries with
their import; NumPy and Linkwise are there already) and for the first call after that.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np


def measure(name: str, urdf: Path, cache: Path) -> dict[str, float] | None:
    """{"load": seconds, "first call": seconds} in a new process; None if the library is not here or fails."""
    command = [sys.executable, "-m", "linkwise.bench.cold", name, str(urdf)]
    environment = {**os.environ, "LINKWISE_CACHE": str(cache)}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    return json.loads(ran.stdout.splitlines()[-1]) if ran.returncode == 0 else None


def import_seconds() -> float:
    """``import linkwise`` in a new process, NumPy included; the best of three."""
    code = "import time; start = time.perf_counter(); import linkwise; print(time.perf_counter() - start)"
    run = [sys.executable, "-c", code]
    return min(
        float(subprocess.run(run, check=True, capture_output=True, text=True).stdout) for _ in range(3)
    )


def main(name: str, path: str) -> None:
    """Load the robot, compute torques once, say how long each took."""
    from linkwise.bench.peers import find
    from linkwise.bench.subject import Subject
    from linkwise.loading import load

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


if __name__ == "__main__":
    main(*sys.argv[1:])
