"""Collision checks and planning, beside coal: ``python benchmarks/planning.py validity plans check first-use``.

``validity``: nanoseconds a configuration, with self-collision and 20 obstacles, on one core, for random configurations
and for groups of 16 along an edge; coal (part of Pinocchio) on the meshes of the same file and the same pairs; seconds
of processor time from loading the file to the first result; VAMP's own checks with ``--vamp FOLDER``. ``plans``:
problems with boxes, a table, shelves and a cage: solved, times; a problem that is shown to have no solution is named
and replaced by another one. ``check``: motions of these problems by coal on the meshes and by
Pinocchio's torques. ``first-use``: seconds from the start of a process with an empty cache to the first checked batch,
for the given robots or, with ``--robots all``, for every file of example-robot-data and the bundled robots; the slowest
comes last.

Robots are files below ``--models FOLDER``, of the package example-robot-data, or bundled ones, which have no meshes.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("LINKWISE_THREADS", "1")

import numpy as np
from planning_parts.first_use import print_first_uses
from planning_parts.meshes import Meshes, loaded
from planning_parts.problems import SCENES, problem, reach_of
from planning_parts.separated import why_separated
from planning_parts.vamp import ROBOTS, joints_of, measured

import linkwise as lw
from linkwise.collision import Sphere, Validity, World, spheres_of, validity_of
from linkwise.collision.clearance import position_range
from linkwise.collision.validity.kernel import BoundWorld
from linkwise.motion import plan

OBSTACLES = 20
Result = tuple[str, float, float]  # status, wall time of the search [s], processor time of all [s]
GROUP = 16
COUNTS = {"panda": 59}  # as many as VAMP has


def main() -> None:
    options = _options()
    if "first-use" in options.parts:
        _first_uses(options)
    if not {"validity", "plans", "check"} & set(options.parts):
        return
    robots = {name: _robot(name, options.models) for name in options.robots.split(",")}
    if "validity" in options.parts:
        print(
            "robot                    joints spheres   random   edges   with small spheres: random   edges [ns]   "
            "coal [ns]   first use [s]   VAMP: one alone   edges [ns]"
        )
        for name, (robot, file) in robots.items():
            with tempfile.TemporaryDirectory() as folder:  # nothing is known of the robot
                os.environ["LINKWISE_CACHE"] = folder
                _validity(name, robot, file, options)
    if "plans" in options.parts:
        print(
            "robot                    scene     problems  solved  in 0.1 s"
            "   search [µs]: median  p95   whole [ms of processor time]: median  p95"
        )
        for name, (robot, file) in robots.items():
            scenes = [_plans(name, robot, file, scene, options) for scene in options.scenes.split(",")]
            _row(name, "all", [result for results in scenes for result in results])
    if "check" in options.parts:
        for name, (robot, file) in robots.items():
            _check(name, robot, file, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", default=["validity", "plans"])
    parser.add_argument(
        "--robots", default="panda,ur5_joint_limited_robot,kinova,xarm7,z1,ur10_joint_limited_robot"
    )
    parser.add_argument("--models", type=Path, help="folder with further URDF files")
    parser.add_argument(
        "--part", default="1/1", help="of the robots of first-use: 2/3 is the second third of them"
    )
    parser.add_argument("--vamp", type=Path, help="VAMP's unpacked source: its checks of its robots beside")
    parser.add_argument("--scenes", default=",".join(SCENES))
    parser.add_argument("--states", type=int, default=8192)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--coal", type=int, default=300, help="configurations that coal checks")
    parser.add_argument("--problems", type=int, default=25, help="of each scene")
    parser.add_argument("--points", type=int, default=10_000, help="of each motion that is checked")
    return parser.parse_args()


def _files() -> list[Path]:
    """URDF files of example-robot-data."""
    try:
        files = importlib.metadata.distribution("example-robot-data").files or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return sorted(Path(str(each.locate())) for each in files if each.name.endswith(".urdf"))


def _first_uses(options: argparse.Namespace) -> None:
    """A row for each robot, and the slowest."""
    if options.robots == "all":
        rows = [
            (f"{file.parts[-3].removesuffix('_description')}/{file.stem}", str(file)) for file in _files()
        ]
        rows += [(name, name) for name in lw.robots()]
    else:
        files = {name: _file(name, options.models) for name in options.robots.split(",")}
        rows = [(name, str(file or name)) for name, file in files.items()]
    number, count = (int(each) for each in options.part.split("/"))
    rows = rows[number - 1 :: count]
    print_first_uses(rows)


def _file(name: str, models: Path | None) -> Path | None:
    """The file of a robot, None for a bundled one."""
    file = next(iter(sorted(models.rglob(f"{name}.urdf"))), None) if models is not None else None
    file = file or next((each for each in _files() if each.stem == name), None)
    if file is None and name not in lw.robots():
        raise SystemExit(f"{name}: no such file; install example-robot-data or give --models FOLDER")
    return file


def _robot(name: str, models: Path | None) -> tuple[lw.Robot, Path | None]:
    """A robot, and its file where it has meshes."""
    file = _file(name, models)
    return (lw.load(name), None) if file is None else (loaded(name, file), file)


def _validity(name: str, robot: lw.Robot, file: Path | None, options: argparse.Namespace) -> None:
    reach = reach_of(robot)
    begin = time.process_time()
    fresh = loaded(name, file) if file else robot
    count = COUNTS.get(name)
    checks = Validity(fresh, spheres=spheres_of(fresh, count=count))
    lower, upper = position_range(robot, None, None)
    rng = np.random.default_rng(0)
    away = rng.normal(size=(OBSTACLES, 3))
    away *= (rng.uniform(0.35, 1.0, OBSTACLES) * reach / np.linalg.norm(away, axis=1))[:, None]
    world = World([Sphere(each, 0.08 * reach) for each in away])
    q = rng.uniform(lower, upper, (options.states, robot.nq))
    checks.in_collision(q[:GROUP], world)
    first = time.process_time() - begin
    starts, ends = q[: len(q) // GROUP, None], q[-(len(q) // GROUP) :, None]
    way = (ends - starts) / np.linalg.norm(ends - starts, axis=-1, keepdims=True)
    edges = (starts + np.linspace(0.0, 1.0, GROUP)[:, None] * way).reshape(-1, robot.nq)
    bound = BoundWorld(world, "float32")
    alone = Validity(fresh, spheres=checks.spheres, divided=False)
    times = [
        _fastest(lambda rows=rows, of=of: of.collision_kernel(rows, bound, 1), options.repeats) / len(rows)
        for of in (alone, checks)
        for rows in (q.astype(np.float32), edges.astype(np.float32))
    ]
    coal = _coal(file, robot, world, q[: options.coal])
    vamp = ""
    if options.vamp is not None and name in ROBOTS:
        order = [robot.joint_names.index(joint) for joint in joints_of(options.vamp, name)]
        along, _, one, _ = measured(options.vamp, name, edges[:, order], world, options.repeats)
        vamp = f"{one:16.0f}{along:11.0f}"
    print(
        f"{name:25s}{robot.dof:5d}{len(checks.spheres):8d}{1e9 * times[0]:10.0f}{1e9 * times[1]:8.0f}"
        f"{1e9 * times[2]:10.0f}{1e9 * times[3]:8.0f}"
        f"{coal:>18s}{first:12.1f}{vamp}",
        flush=True,
    )


def _coal(file: Path | None, robot: lw.Robot, world: World, q: np.ndarray) -> str:
    if file is None:
        return "no meshes"
    if not len(q):
        return "not asked for"
    try:
        meshes = Meshes(file, robot, world)
    except ImportError:
        return "not installed"
    rows = meshes.positions(q)
    begin = time.perf_counter()
    for row in rows:
        meshes.pin.computeCollisions(meshes.model, meshes.data, meshes.geometry, meshes.placed, row, True)
    return f"{1e9 * (time.perf_counter() - begin) / len(q):.0f}"


def _fastest(call: Callable[[], Any], repeats: int) -> float:
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return best


def _plans(
    name: str, robot: lw.Robot, file: Path | None, scene: str, options: argparse.Namespace
) -> list[Result]:
    """Of each problem the status, and the quickest of three searches and of three whole plans: their results are the
    same, and the quickest is the least disturbed by other work. Another problem stands in for one that is shown to have
    no solution."""
    reach = reach_of(robot)
    results: list[Result] = []
    for number in range(3 * options.problems):
        if len(results) == options.problems:
            break
        given = problem(robot, scene, number, reach)
        if given is None:
            continue
        if not results:  # compile everything once
            plan(robot, given.start, given.goal, given.world, acceleration=20.0)
        plan(robot, given.start, given.start, given.world, timing=False)  # the tables of this world
        taken = []
        for _ in range(3):
            begin = time.thread_time()
            found = plan(robot, given.start, given.goal, given.world, acceleration=20.0)
            taken.append((found.seconds["search"], time.thread_time() - begin))
            if not found:
                break
        if not found:
            reason = why_separated(Meshes(file, robot, given.world), given) if file is not None else None
            print(f"  {name} {scene} {number}: {found.status}: {reason or found.message}")
            if reason is not None:
                continue
        results.append((found.status, *(min(each) for each in zip(*taken, strict=True))))
    _row(name, scene, results)
    return results


def _row(name: str, scene: str, results: list[Result]) -> None:
    if not results:
        print(f"{name:25s}{scene:12s} no problem has a free start and goal")
        return
    solved = [result for result in results if result[0] == "solved"]
    quick = sum(search < 0.1 for _, search, _ in solved)
    cells = [f"{1e6 * value:.0f}" for value in np.quantile([result[1] for result in results], [0.5, 0.95])]
    cells += [f"{1e3 * value:.1f}" for value in np.quantile([result[2] for result in results], [0.5, 0.95])]
    print(
        f"{name:25s}{scene:10s}{len(results):8d}{len(solved):8d}{quick:10d}"
        f"{cells[0]:>21s}{cells[1]:>8s}{cells[2]:>18s}{cells[3]:>6s}",
        flush=True,
    )


def _check(name: str, robot: lw.Robot, file: Path | None, options: argparse.Namespace) -> None:
    if file is None:
        print(f"{name}: no meshes, nothing to check")
        return
    reach, motions, points, touching, beyond = reach_of(robot), 0, 0, 0, 0.0
    least = np.inf
    for scene in options.scenes.split(","):
        for number in range(options.problems):
            given = problem(robot, scene, number, reach)
            if given is None:
                continue
            found = plan(robot, given.start, given.goal, given.world, acceleration=20.0)
            if found.motion is None:
                continue
            meshes = Meshes(file, robot, given.world)
            t = np.linspace(0.0, found.motion.duration, options.points)
            moment = found.motion.at(t)
            touching += meshes.touching_along(moment.q)
            beyond = max(beyond, float((np.abs(meshes.torques(moment)) / robot.effort_limits).max()))
            least = min(
                least, float((validity_of(robot).distance(moment.q, given.world) - found.clearance).min())
            )
            motions, points = motions + 1, points + len(t)
    print(
        f"{name}: {motions} motions, {points} points: {touching} collisions of the meshes, largest torque "
        f"{beyond:.7f} of the limit, clearance at least {1e3 * least:.3f} mm above the proved one"
    )


if __name__ == "__main__":
    main()
