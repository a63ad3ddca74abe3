"""Processor time from a robot to machine code, phase by phase, with an empty cache.

    python benchmarks/compile_times.py [trot humanoid contact:legs contact:FILE:FEET:RADIUS:ANGLES plan:baxter ...]
        [--width 4] [--text FOLDER]

``trot`` is one iteration for a quadruped's trot of 50 stages, ``humanoid`` one for ``simple_humanoid`` of
example-robot-data with 20 stages, ``contact`` a step with contact (robots of ``contact.py``), ``plan`` the first check
of a configuration of a robot of example-robot-data (loading, spheres, compilation), ``ROBOT:FUNCTION`` a function. Each
program is made in a child process of its own. ``load`` makes the robot or the problem, with the small functions that it
calls for that (feet of a gait); ``all`` is what comes after it. Columns are seconds without the phases inside:
``trace`` is what is left of the time until the program is known. ``--width`` compiles for blocks of so many states.
``--text`` writes the LLVM text of each program to a file, to compare versions of the compiler.
"""

from __future__ import annotations

import argparse
import functools
import importlib.metadata
import os
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["LINKWISE_CACHE"] = ""
os.environ["LINKWISE_BACKGROUND"] = "0"

import numpy as np

import linkwise as lw
from linkwise.compiler.emit import blocks
from linkwise.compiler.ir import operations, program, rules
from linkwise.compiler.runtime import machine

DEFAULT = ("trot", "humanoid", "contact:legs", "panda:forward_dynamics")
PHASES: dict[str, tuple[Any, str]] = {
    "simplify": (program, "simplified_nodes"),
    "expand": (program, "expand"),
    "fuse": (program, "fuse"),
    "schedule": (program, "schedule"),
    "verify": (program, "verify"),
    "count": (operations, "count"),
    "text": (blocks, "module"),
    "LLVM": (machine, "compile_text"),
}


class Clock:
    """Processor time by phase, without that of phases inside."""

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self._now, self._since = "trace", time.process_time()

    def enter(self, phase: str) -> str:
        """Another phase begins; gives the one before."""
        time_now = time.process_time()
        self.spent[self._now] += time_now - self._since
        before, self._now, self._since = self._now, phase, time_now
        return before

    def of(self, phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose time counts for a phase."""

        @functools.wraps(function)
        def timed(*args: Any, **options: Any) -> Any:
            before = self.enter(phase)
            self.calls[phase] += 1
            try:
                return function(*args, **options)
            finally:
                self.enter(before)

        return timed


def kernel_of(name: str) -> Any:
    """The kernel that a name on the command line stands for, not traced yet."""
    kind, _, rest = name.partition(":")
    if kind == "trot":
        from optimal_parts.problems import trot

        return lw.optimal.iteration(trot(), iterations=1)
    if kind == "humanoid":
        from large_robots import path_of

        robot = lw.load(path_of("simple_humanoid"), base="floating")
        track = functools.partial(lw.optimal.JointTracking, robot.neutral, velocity=0.0, velocity_weight=0.1)
        problem = lw.optimal.Problem(
            robot,
            horizon=20,
            step=0.01,
            costs=[track(weight=1.0), lw.optimal.Effort(1e-3)],
            terminal=[track(weight=10.0)],
            torque_limits=False,
            friction=False,
        )
        return lw.optimal.iteration(problem, iterations=1)
    if kind == "contact":
        from contact_parts.robots import loaded

        robot, _ = loaded(rest)
        return robot.kernel("contact_step")
    return lw.load(kind).kernel(rest)


def first_use(name: str) -> None:
    """Load a file, cover its links with spheres and check configurations."""
    from linkwise.collision import Sphere, Validity, World

    files = importlib.metadata.distribution("example-robot-data").files or []
    file = next(Path(str(each.locate())) for each in files if each.name == f"{name}.urdf")
    from planning_parts.meshes import loaded

    os.environ["LINKWISE_BACKGROUND"] = "1"  # as users have it
    robot = loaded(name, file)
    checks = Validity(robot)
    world = World([Sphere((0.5 + 0.1 * k, 0.3, 0.2), 0.1) for k in range(20)])
    checks.in_collision(np.tile(robot.neutral, (16, 1)), world)


def measured(name: str, width: int, folder: Path | None) -> None:
    """Make a program and print its times."""
    begin = time.process_time()
    kernel = None if name.startswith("plan:") else kernel_of(name)
    load = time.process_time() - begin
    clock = Clock()
    for phase, (module, attribute) in PHASES.items():
        setattr(module, attribute, clock.of(phase, getattr(module, attribute)))
    rules._Pass.run = clock.of("simplify", rules._Pass.run)
    begin = time.process_time()
    if kernel is None:
        first_use(name.removeprefix("plan:"))
        lines = 0
    else:
        kernel.program("float64")
        text = kernel.native_program("float64").text(width)
        machine.compile_text(text)
        lines = text.count("\n")
        if folder is not None:
            (folder / re.sub(r"\W+", "_", Path(name).name)).with_suffix(f".{width}.ll").write_text(text)
    clock.enter("end")
    total = time.process_time() - begin
    cells = "".join(f"{clock.spent[phase]:9.2f}" for phase in ("trace", *PHASES))
    print(
        f"{Path(name).name[:24]:24s}{load:8.2f}{total:8.2f}{cells}{lines:9d} lines, "
        f"{clock.calls['schedule']} graphs, {clock.calls['simplify'] - clock.calls['schedule']} passes",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("programs", nargs="*", default=DEFAULT)
    parser.add_argument("--width", type=int, default=1)
    parser.add_argument("--text", type=Path)
    given = parser.parse_args()
    if given.text is not None:
        given.text.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", lw.ModelWarning)
    columns = "".join(f"{phase:>9s}" for phase in ("trace", *PHASES))
    print(f"{'':24s}{'load':>8s}{'all':>8s}{columns}", flush=True)
    for name in given.programs:
        child = os.fork()
        if child == 0:
            try:
                measured(name, given.width, given.text)
            except Exception as error:
                print(f"{name}: {error}", file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            raise SystemExit(f"{name} failed")


if __name__ == "__main__":
    main()
