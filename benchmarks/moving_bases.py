"""Robots with floating bases beside Pinocchio, in one run on one core, in float64; and on a GPU.

    python benchmarks/moving_bases.py [FILE.urdf ...] [--states 256,4096] [--rounds 9] [--json FILE] [--quick]
    python benchmarks/moving_bases.py --gpu [FILE.urdf] [--gpu-states 4194304] [--json FILE] [--quick]

Without files the robots are those of the package example-robot-data where it is installed: Go2, ANYmal, G1 and Talos.
Results are compared before anything is timed. Batches: Pinocchio's rnea and aba by ``rneaInParallel`` and
``abaInParallel`` with one thread, crba and ``constraintDynamics`` in a loop of calls. Constrained: the feet of a
quadruped hold points (four), those of humanoids poses (two leaves). Cold: seconds of a new process with an
empty cache from the loaded robot to the first result, on the clock and of the processor. On a GPU bytes per second are
compared with those of a copy.
"""

from __future__ import annotations

import argparse
import functools
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw
from linkwise import compat
from linkwise.bench.clock import is_busy, medians, one_core
from linkwise.compiler.runtime import host
from linkwise.functions.table import FUNCTIONS as FUNCTIONS_HERE

ROBOTS = ("go2_description/urdf/go2.urdf", "anymal_b_simple_description/robots/anymal.urdf")
ROBOTS += ("g1_description/urdf/g1_29dof_rev_1_0.urdf", "talos_data/robots/talos_reduced.urdf")
FUNCTIONS = {"inverse_dynamics": "rnea", "forward_dynamics": "aba", "mass_matrix": "crba"}
AGREE = 1e-8  # relative; forward dynamics relative to its largest acceleration
CPU_GOALS = {"batch": 30.0, "one state": 5.0, "constrained": 15.0}


def example_robots() -> list[Path]:
    """The default robots that are installed."""
    try:
        files = importlib.metadata.distribution("example-robot-data").files or []
    except importlib.metadata.PackageNotFoundError:
        return []
    found = [Path(str(file.locate())).resolve() for file in files if file.name.endswith(".urdf")]
    return [path for ending in ROBOTS for path in found if str(path).endswith(ending)]


def made_up(path: Path) -> Path:
    """A small robot with a heavy base, for a quick run."""
    arm = lw.random_robot(1, 3, tree=True)
    heavy = lw.Inertia.from_com(5.0, (0.0, 0.0, 0.0), (0.1, 0.2, 0.3))
    links = [replace(link, inertia=heavy) if link.name == arm.base else link for link in arm.links]
    lw.save(lw.Robot("walker", links, arm.joints), path)
    return path


# -- the two engines --------------------------------------------------------------------------------------------------


class Pair:
    """A robot in Linkwise and in Pinocchio, with the same random states."""

    def __init__(self, path: Path, states: int):
        import pinocchio as pin

        self.pin: Any = pin
        self.robot = lw.load(path, base="floating")
        self.model: Any = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
        self.model.gravity.linear = np.array(self.robot.gravity)
        self.model.armature = np.zeros(self.model.nv)
        names = [name for name in self.robot.parameter_labels if name.endswith(("rotor_inertia", "friction"))]
        self.robot = self.robot.with_parameters(dict.fromkeys(names, 0.0))
        self.data = self.model.createData()
        self.them = compat.coordinates(self.robot, "pinocchio", self.model)
        rng = np.random.default_rng(0)
        q = self.robot.random(rng, states)
        qd, qdd = rng.normal(size=(2, states, self.robot.dof))
        self.given = {"q": q, "qd": qd, "qdd": qdd, "tau": self.robot.inverse_dynamics(q, qd, qdd)}
        self.theirs = {
            "q": self.them.positions(q),
            "qd": self.them.velocities(q, qd),
            "qdd": self.them.accelerations(q, qd, qdd),
            "tau": self.them.torques(q, self.given["tau"]),
        }

    def inputs(self, function: str, given: dict[str, np.ndarray]) -> list[np.ndarray]:
        names = {"inverse_dynamics": ("q", "qd", "qdd"), "mass_matrix": ("q",)}
        return [given[name] for name in names.get(function, ("q", "qd", "tau"))]

    def ours(self, function: str, batch: bool) -> Callable[[], Any]:
        given = self.inputs(function, self.given)
        method = getattr(self.robot, function)
        if not batch:
            one = [np.ascontiguousarray(x[0]) for x in given]
            method(*one)
            return _bound(getattr(self.robot, function), one)
        out = method(*given)
        return lambda: method(*given, out=out)

    def pinocchio(self, function: str, batch: bool) -> Callable[[], Any]:
        call = getattr(self.pin, FUNCTIONS[function])
        given = self.inputs(function, self.theirs)
        if not batch:
            return _bound(call, [self.model, self.data, *(np.ascontiguousarray(x[0]) for x in given)])
        if function == "mass_matrix":
            rows = list(given[0])
            return lambda: [call(self.model, self.data, row) for row in rows]
        parallel = getattr(self.pin, FUNCTIONS[function] + "InParallel")
        pool = self.pin.ModelPool(self.model, 1)
        columns = [np.asfortranarray(x.T) for x in given]
        out = np.empty(columns[1].shape, order="F")
        return lambda: parallel(1, pool, *columns, out)

    def check(self) -> None:
        """Both engines agree on the first states."""
        for function, name in FUNCTIONS.items():
            ours = getattr(self.robot, function)(*(x[:3] for x in self.inputs(function, self.given)))
            for k in range(3):
                given = [x[k] for x in self.inputs(function, self.theirs)]
                result = np.array(getattr(self.pin, name)(self.model, self.data, *given))
                q, qd = self.given["q"][k], self.given["qd"][k]
                if function == "mass_matrix":
                    back = self.them.own_matrix(q, np.triu(result) + np.triu(result, 1).T)
                elif function == "forward_dynamics":
                    back = self.them.own_accelerations(q, qd, result)
                else:
                    back = self.them.own_torques(q, result)
                _agree(f"{self.robot.name}, {function}", ours[k], back)

    def constrained(self) -> tuple[int, dict[str, Callable[[], Any]], Callable[[], Any]]:
        """(rows, ours by algorithm, Pinocchio's): forward dynamics of the batch with held feet."""
        pin, robot, model = self.pin, self.robot, self.model
        leaves = _feet(robot)
        points = len(leaves) > 2 or robot.dof < 24
        kind = pin.ContactType.CONTACT_3D if points else pin.ContactType.CONTACT_6D
        if (
            not points
        ):  # held poses: Pinocchio holds the spatial acceleration, which differs where the frame moves
            self.given["qd"], self.theirs["qd"] = 0.0 * self.given["qd"], 0.0 * self.theirs["qd"]
        contacts = pin.StdVec_RigidConstraintModel()
        held = []
        for leaf in leaves:
            frame = model.frames[model.getFrameId(leaf)]
            contact = pin.RigidConstraintModel(
                kind, model, frame.parentJoint, frame.placement, pin.ReferenceFrame.LOCAL
            )
            contacts.append(contact)
            held.append(lw.Point(leaf, (0.0, 0.0, 0.0)) if points else lw.Weld(leaf, np.eye(4)))
        robot = robot.with_constraints(held)
        data = [contact.createData() for contact in contacts]
        datas = pin.StdVec_RigidConstraintData()
        for each in data:
            datas.append(each)
        pin.initConstraintDynamics(model, self.data, contacts, datas)
        settings = pin.ProximalSettings(1e-12, 1e-10, 10)
        rows = list(zip(*self.inputs("forward_dynamics", self.theirs), strict=True))

        def theirs() -> list[Any]:
            return [pin.constraintDynamics(model, self.data, *row, contacts, datas, settings) for row in rows]

        given = self.inputs("forward_dynamics", self.given)
        ours = {}
        for algorithm in FUNCTIONS_HERE["constrained_forward_dynamics"].algorithms:
            found = robot.forward_dynamics(*given, algorithm=algorithm)
            for k, row in enumerate(rows[:3]):
                result = pin.constraintDynamics(model, self.data, *row, contacts, datas, settings)
                back = self.them.own_accelerations(self.given["q"][k], self.given["qd"][k], np.array(result))
                _agree(f"{robot.name}, constrained forward dynamics by {algorithm}", found[k], back, 1e-5)
            ours[algorithm] = functools.partial(robot.forward_dynamics, *given, algorithm=algorithm)
        return robot.constraint_rows, ours, theirs


def _bound(call: Callable[..., Any], arguments: list[Any]) -> Callable[[], Any]:
    if len(arguments) == 1:
        (a,) = arguments
        return lambda: call(a)
    if len(arguments) == 3:
        a, b, c = arguments
        return lambda: call(a, b, c)
    return lambda: call(*arguments)


def _feet(robot: lw.Robot) -> list[str]:
    """Four leaves that are called feet, else two that are called feet, soles or ankles, else the last two."""
    named = [
        [name for name in robot.leaf_names if word in name.lower()] for word in ("foot", "sole", "ankle")
    ]
    feet = next((names for names in named if len(names) in (2, 4)), list(robot.leaf_names))
    return feet if len(feet) == 4 else feet[-2:]


def _agree(what: str, ours: np.ndarray, theirs: np.ndarray, tolerance: float = AGREE) -> None:
    off = np.abs(ours - theirs).max() / max(1.0, np.abs(theirs).max())
    if not off <= tolerance:
        raise SystemExit(f"{what}: differs from Pinocchio by {off:.1e}")


# -- measuring --------------------------------------------------------------------------------------------------------

_COLD = """
import json, sys, time
import numpy as np
import linkwise as lw
robot = lw.load(sys.argv[1], base="floating")
q, zero = robot.neutral, np.zeros(robot.dof)
found = {}
for name in ("inverse_dynamics", "forward_dynamics", "mass_matrix"):
    given = (q,) if name == "mass_matrix" else (q, zero, zero)
    start, worked = time.perf_counter(), time.process_time()
    getattr(robot, name)(*given)
    found[name] = time.perf_counter() - start, time.process_time() - worked
print(json.dumps(found))
"""


def cold(path: Path) -> dict[str, tuple[float, float]]:
    """Seconds on the clock and of the processor to the first result of each function, with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "LINKWISE_CACHE": cache}
        command = [sys.executable, "-W", "ignore", "-c", _COLD, str(path)]
        ran = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return json.loads(ran.stdout)


def measure(path: Path, sizes: list[int], rounds: int) -> dict[str, Any]:
    """Everything of one robot."""
    found: dict[str, Any] = {"file": path.name, "cold": cold(path)}
    pairs = {states: Pair(path, states) for states in sizes}
    one = pairs[sizes[0]]
    found |= {"robot": one.robot.name, "dof": one.robot.dof}
    one.check()
    with one_core():
        for function in FUNCTIONS:
            calls = [one.ours(function, False), one.pinocchio(function, False)]
            found[f"{function}, one state"] = _row(*medians(calls, rounds))
            for states, pair in pairs.items():
                calls = [pair.ours(function, True), pair.pinocchio(function, True)]
                found[f"{function}, batch of {states}"] = _row(*(t / states for t in medians(calls, rounds)))
        rows, ours, theirs = one.constrained()
        times = [t / sizes[0] for t in medians([*ours.values(), theirs], rounds)]
        for algorithm, seconds in zip(ours, times, strict=False):
            found[f"constrained, {algorithm}"] = {"rows": rows, **_row(seconds, times[-1])}
    return found


def _row(ours: float, theirs: float) -> dict[str, float]:
    return {"ns": 1e9 * ours, "pinocchio_ns": 1e9 * theirs, "ratio": theirs / ours}


def show(found: dict[str, Any]) -> None:
    print(f"\n{found['robot']}: {found['dof']} velocities; cores have {host.vector_bits()}-bit vectors")
    for key, row in found.items():
        if isinstance(row, dict) and "ratio" in row:
            goal = next(value for kind, value in CPU_GOALS.items() if kind in key)
            rows = f" ({row['rows']} rows)" if "rows" in row else ""
            print(
                f"  {key + rows:38s} {row['ns']:10.0f} ns   Pinocchio {row['pinocchio_ns']:10.0f} ns   "
                f"{row['ratio']:6.1f}x  (goal {goal:g}x)"
            )
    times = [
        f"{name} {clock:.2f} ({work:.2f} of the processor)" for name, (clock, work) in found["cold"].items()
    ]
    print(f"  cold [s]: {', '.join(times)}")


# -- GPU --------------------------------------------------------------------------------------------------------------


def on_gpu(path: Path, states: int, quick: bool) -> dict[str, Any]:
    """Functions of one robot on the GPU, beside a copy."""
    from gpu_parts.functions import check_bits, time_function
    from gpu_parts.measuring import Size, copy_bandwidth, kernel_of

    Size.quick = quick
    robot = lw.load(path, base="floating")
    found: dict[str, Any] = {"robot": robot.name, "dof": robot.dof, "copy": copy_bandwidth()}
    counts = {"inverse_dynamics": states, "forward_dynamics": states, "mass_matrix": states // 4}
    counts |= {"inverse_dynamics_derivatives": states // 8, "forward_dynamics_derivatives": states // 8}
    for name, count in counts.items():
        for dtype in ("float32", "float64"):
            kernel = kernel_of(robot, name)
            if kernel is None:
                continue
            start = time.perf_counter()
            row = time_function(kernel, dtype, max(count, 1))
            row["share_of_copy"] = row["bytes_per_second"] / found["copy"]
            row["compile_s"] = time.perf_counter() - start
            row["different_from_cpu"] = check_bits(kernel, dtype, min(count, 20_000))
            found[f"{name}, {dtype}"] = row
            print(
                f"  {name + ', ' + dtype:42s} {row['per_second'] / 1e9:8.3f} G/s   "
                f"{100 * row['share_of_copy']:5.1f} % of a copy   {row['different_from_cpu']} bits differ from the CPU",
                flush=True,
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--states", default="256,4096", help="batches, separated by commas")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--gpu-states", type=int, default=1 << 22)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--quick", action="store_true", help="a few states: the figures mean nothing then")
    options = parser.parse_args()
    files = options.files or example_robots()[: 1 if options.gpu else None]
    if options.quick and not options.files:
        files = [made_up(Path(tempfile.mkdtemp()) / "walker.urdf")]
    if not files:
        raise SystemExit("no robots: give URDF files, or install example-robot-data")
    sizes = [16] if options.quick else [int(size) for size in options.states.split(",")]
    rounds = 1 if options.quick else options.rounds
    if is_busy():
        print("other processes are computing: the figures are rough")
    found = []
    for path in files:
        if options.gpu:
            print(path.stem)
            found.append(on_gpu(path, 64 if options.quick else options.gpu_states, options.quick))
        else:
            found.append(measure(path, sizes, rounds))
            show(found[-1])
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
