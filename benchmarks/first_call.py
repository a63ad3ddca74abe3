"""How long the first call of every method takes, with an empty cache.

Each call runs in a child of its own, forked from a process that has imported Linkwise and loaded the robot and compiled
nothing. Without ``--robot``: a Panda, chains, and what example-robot-data has of humanoids, hands and quadrupeds.

    python benchmarks/first_call.py [--robot panda --robot arm.urdf:floating ...] [--function pose ...] [--batch 64]
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import time
from typing import Any

os.environ["LINKWISE_CACHE"] = ""

import numpy as np

import linkwise as lw
from linkwise.bench import calls
from linkwise.robot.methods import Method

LIMIT = 1.0  # [s]
EXAMPLES = (
    ("talos_reduced.urdf", ""),
    ("talos_reduced.urdf", ":floating"),
    ("allegro_right_hand.urdf", ""),
    ("go2.urdf", ":floating"),
)


def robots(names: list[str]) -> dict[str, lw.Robot]:
    found = {}
    for name in names or ["panda", "chain:30", *_examples()]:
        kind, _, rest = name.partition(":")
        if kind == "chain":
            found[name] = lw.general_chain(int(rest), base_offsets=False)
        else:
            found[name.rpartition("/")[2]] = lw.load(kind, base=rest or "fixed")
    return found


def _examples() -> list[str]:
    """Files of the wheel example-robot-data, where it is installed."""
    try:
        files = importlib.metadata.distribution("example-robot-data").files or []
    except importlib.metadata.PackageNotFoundError:
        return []
    paths = {file.name: str(file.locate()) for file in files if file.suffix == ".urdf"}
    return [paths[name] + base for name, base in EXAMPLES if name in paths]


def first_call(robot: lw.Robot, name: str, batch: tuple[int, ...]) -> dict[str, Any]:
    """Seconds of the first call in a child, and of the processor; or the error that it gives."""
    args = calls.states(robot, getattr(lw.Robot, name), *batch)
    options = {"frame": robot.link_names[-1]} if "frame" in getattr(lw.Robot, name).places else {}
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            start, processor = time.perf_counter(), time.process_time()
            try:
                getattr(robot, name)(*args, **options)
                found = {"seconds": time.perf_counter() - start, "processor": time.process_time() - processor}
            except lw.LinkwiseError as error:
                found = {"error": str(error)}
            os.write(write, json.dumps(found).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robot", action="append", default=[], help="name, file, file:floating or chain:N")
    parser.add_argument("--function", action="append", default=[])
    parser.add_argument("--batch", type=int, default=0, help="states; 0: one state without a batch")
    parser.add_argument("--repeats", type=int, default=1, help="the best of so many counts")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    batch = (given.batch,) if given.batch else ()
    rows = []
    for label, robot in robots(given.robot).items():
        for name in given.function or [n for n in dir(lw.Robot) if isinstance(getattr(lw.Robot, n), Method)]:
            tries = [first_call(robot, name, batch) for _ in range(given.repeats)]
            best = min(tries, key=lambda found: found.get("processor", 0.0))
            rows.append({"robot": label, "dof": robot.dof, "function": name, **best})
            if not given.json and "seconds" in best:
                late = "  !" if best["seconds"] > LIMIT else ""
                print(
                    f"{label:28s} {name:30s} {best['seconds']:7.3f} s  processor {best['processor']:7.3f}{late}",
                    flush=True,
                )
    if given.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
