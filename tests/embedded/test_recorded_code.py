"""Packages, real-time programs, bounds and units of systems: their parts and numbers beside what is recorded."""

from __future__ import annotations

import ctypes
import os
import re
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw
from linkwise import evidence
from linkwise.compiler.ir import interpret
from linkwise.embedded import ENTRIES, Options, Package, entries, trajectories
from linkwise.embedded.arguments import typical
from linkwise.environments import Environment, PDTargets, Policy, Task, Torques
from linkwise.motion import FourierSeries, jerk_limited, quintic, ramp
from linkwise.realtime import TwoRatePrograms, limits, split
from linkwise.realtime.plant import callbacks
from linkwise.systems import Fmu, Ros2Controller, variables
from recorded import Scenarios, packed, told
from recorded_robots import ROBOTS, limited, two_link

scenarios = Scenarios("code")
INTEGER = re.compile(r"(?<![\w.])\d+(?![\w.])")
WORD = re.compile(r"[A-Za-z_]+|[-+*/<>=?:;]")


@cache
def two() -> lw.Robot:
    friction = {"joint1.viscous_friction": 0.4, "joint2.coulomb_friction": 0.3}
    return limited(two_link()).with_parameters(friction)


OPTIONS = Options(frequency=7.0, damping=0.8, period=0.004)
FUNCTIONS = (
    "inverse_dynamics",
    "mass_matrix",
    "pose",
    "gravity_torques",
    "computed_torque",
    "safe_stop",
    "online",
)
MORE = (
    "momentum_observer",
    "state_observer",
    "kalman_filter",
    "gravity_pd",
    "cartesian_impedance",
    "guarded_controller",
)


@scenarios
def entries_of_packages():
    """What functions take, give and are, and the results that the self-test of a package expects."""
    found: dict[str, Any] = {"names": " ".join(sorted(ENTRIES))}
    for name in (*FUNCTIONS, *MORE):
        said = told(entries, two(), [name], OPTIONS)
        if said != "no error":
            found[name] = said
            continue
        for entry in entries(two(), [name], OPTIONS):
            kernel = entry.kernel
            parts = {key: np.asarray(value, float) for key, value in entry.parameters.items()}
            parts |= {f"table {key}": np.asarray(value, float) for key, value in entry.tables.items()}
            parts |= {f"example {key}": np.asarray(value, float) for key, value in entry.examples.items()}
            found[entry.name] = packed(parts) | {
                "summary": entry.summary,
                "definitions": " ".join(f"{key}={value}" for key, value in sorted(entry.definitions.items())),
                "inputs": " ".join(f"{each[0]} {each[1]}" for each in getattr(kernel, "inputs", ())),
                "outputs": " ".join(f"{each[0]} {each[1]}" for each in getattr(kernel, "outputs", ())),
            }
    return found


@scenarios
def states_of_self_tests():
    """The states in which the self-test of a package calls its functions, those of files and tables, too."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "policy.npz"
        policy = Policy.random((5, 4, 2), 3)
        spread = np.linspace(0.5, 2.0, len(policy.weights))
        replace(policy, weights=(policy.weights + 0.1) * spread).save(weights)
        options = replace(OPTIONS, weights=weights)
        for name in (
            *FUNCTIONS,
            *MORE,
            "policy",
            "inverse_kinematics",
            "whole_body",
            "recursive_least_squares",
        ):
            said = told(entries, two(), [name], options)
            if said != "no error":
                found[name] = said
                continue
            for entry in entries(two(), [name], options):
                given = (
                    typical(two(), entry, dict(entry.kernel.inputs), 4)
                    if entry.states is None
                    else entry.states(4)
                )
                found[entry.name] = packed({key: np.asarray(value, float) for key, value in given.items()})
    return found


def text_of(text: str) -> dict[str, Any]:
    """How many of each word, and the sum of whole numbers; times, digests and versions are not among them."""
    text = re.sub(r"\b[0-9a-f]{10,}\b|\d+\.\d+(?:\.\d+)+\S*|\d{4}-\d\d-\d\d\S*", "", text)
    words = WORD.findall(text)
    names = sorted({word for word in words if words.count(word) > 2})
    whole = [int(each) for each in INTEGER.findall(text)]
    numbers = [float(words.count(word)) for word in names] + [float(sum(whole)), float(text.count("\n"))]
    return packed({"": np.array(numbers)}) | {"words": " ".join(names)}


@scenarios
def files_of_packages():
    found: dict[str, Any] = {}
    for name, options in {
        "plain": {},
        "short": {"fma": False, "constant_time": True, "prefix": "arm", "count": 3},
    }.items():
        package = Package(two(), ["mass_matrix", "computed_torque"], OPTIONS, **options)
        files = package.files() if callable(getattr(package, "files", None)) else {}
        files = files or getattr(package, "contents", {})
        found[name] = {key: text_of(value) for key, value in sorted(files.items()) if isinstance(value, str)}
    motion = quintic([0.1, 0.2], [0.7, -0.4], 1.0)
    for constant_time in (False, True):
        timed = Package(
            two(), ["trajectory"], replace(OPTIONS, trajectory=motion), constant_time=constant_time
        )
        found[f"trajectory {constant_time}"] = text_of(timed.functions[0].text)
    with tempfile.TemporaryDirectory() as folder:
        mask = os.umask(0o027)
        package.write(Path(folder) / "made")
        mode = (Path(folder) / "made").stat().st_mode & 0o777
        found["written"] = [float(mode), float(os.umask(mask)), float(len(list(Path(folder).rglob("*.c"))))]
    return found


@scenarios
def bounds():
    robot = two_link()
    options = Options()
    found: dict[str, Any] = {}
    for name in ("gravity_torques", "mass_matrix"):
        for fma in (True, False):
            done = evidence.certify(robot, name, options=options, fma=fma, velocity=2.0)
            rows = [[each.low, each.high, each.error, each.tightness] for each in done.outputs]
            found[f"{name} {fma}"] = {"rows": rows, "verdict": done.verdict, "holds": done.holds}
    constants = evidence.constants(robot, points=2000)
    names = ("least_inertia", "most_inertia", "gravity", "coriolis")
    found["constants"] = [getattr(constants, each) for each in names]
    kernel = robot.kernel("gravity_torques")
    box = evidence.box_of(robot, kernel.program("float64").inputs, velocity=3.0, acceleration=2.0)
    fixed = evidence.fixed_point(kernel.program("float64"), box)
    states = box.draw(np.random.default_rng(3), 4)
    given = {key: values[0] for key, values in fixed.given(states).items()}
    found["fixed"] = {key: np.asarray(value, float) for key, value in fixed.run(given).items()}
    found["errors"] = [list(each) for each in fixed.errors]
    found["drawn"] = states
    return found


@scenarios(tolerance=1e-7)
def real_time_programs():
    programs = TwoRatePrograms(two(), period=0.002)
    found: dict[str, Any] = {"dof": float(programs.dof)}
    for name in ("inertia", "velocity", "synchronous"):
        program = programs.program(name)
        rng = np.random.default_rng(7)
        inputs = [rng.uniform(0.1, 0.9, size) for _, size in program.inputs]
        results = interpret.run(program, *inputs)
        found[name] = packed([np.asarray(each, float) for each in results])
        found[name] |= {"inputs": str(program.inputs), "outputs": str(program.outputs)}
        found[name] |= {"counts": str(program.operations)}
    return found


@scenarios
def limits_and_errors_of_real_time_loops():
    robot = two()
    given = {"speed": 3.0, "effort": [7.0, 9.0], "following": 0.3, "lower": [-0.5, -0.7]}
    slide = lw.random_robot(3, 2, joints="P")
    move = quintic([0.1, -0.2], [0.9, 0.7], 0.3, begin=0.05)
    t = np.linspace(0.05, 0.35, 7)
    return {
        "usual": limits.joint_limits(robot, None, simulated=False),
        "given": limits.joint_limits(robot, given, simulated=True),
        "slides": limits.joint_limits(slide, None, simulated=True),
        "hardware": told(limits.joint_limits, slide, None, simulated=False),
        "unknown": told(limits.joint_limits, robot, {"jerk": 1.0}, simulated=True),
        "count": told(limits.joint_limits, robot, {"speed": [1.0, 2.0, 3.0]}, simulated=True),
        "order": told(limits.joint_limits, robot, {"lower": 9.0}, simulated=True),
        "zero": told(limits.joint_limits, robot, {"frozen": [0.1, 0.0]}, simulated=True),
        "times": [limits.positive_time("period", 0.3), limits.stop_duration(0.0), limits.stop_duration(60.0)],
        "no time": told(limits.positive_time, "period", 0.0) + told(limits.positive_time, "period", "long"),
        "too long": told(limits.stop_duration, 60.1) + told(limits.stop_duration, -0.1),
        "torques": split.split_torques(robot, move, t, 0.02),
        "late": split.split_torques(robot, move, t, 0.02, latency=0.013),
        "error": split.split_error(robot, move, 0.03, latency=0.01, rate=200.0),
    }


@scenarios
def trajectories_of_packages():
    start, end = np.array([0.3, -0.4]), np.array([-0.5, 0.7])
    found: dict[str, Any] = {}
    for name, made in {
        "quintic": quintic(start, end, 0.7, begin=0.2),
        "jerk": jerk_limited(start, end, velocity=0.9, acceleration=2.0, jerk=9.0),
        "ramp": ramp(start, end, 0.7, begin=0.1),
        "fourier": FourierSeries(start, [end, start], [start, end], 2.3),
    }.items():
        t = trajectories.times_of(made)
        found[name] = {"times": t}
        for constant in (False, True):
            kernel, words = trajectories.trajectory_kernel(made, "float64", constant)
            found[name][f"values {constant}"] = packed([np.asarray(part) for part in kernel(t[:, None])])
            found[name]["words"] = words
    found["joints"] = told(trajectories.check_joints, two(), quintic([0.1], [0.2], 1.0))
    found["close"] = told(trajectories.trajectory_kernel, quintic(start, end, 1e-7, begin=100.0), "float32")
    return found


@scenarios
def systems():
    """What units and controllers for other programs say of themselves, and their code."""
    robot, found = two(), {}
    for name, version in (
        ("forward_dynamics", "2.0"),
        ("integral_tracking", "3.0"),
        ("state_observer", "2.0"),
    ):
        made = Fmu(robot, name, OPTIONS, version=version)
        found[f"{name} {version}"] = {path: text_of(text) for path, text in sorted(made.files.items())}
        found[f"{name} states"] = " ".join(each.name for each in made.model.states)
    controller = Ros2Controller(
        robot, "computed_torque", OPTIONS, package="arm", maintainer="A B <a@b.org>", license="MIT"
    )
    found["ros2"] = {path: text_of(text) for path, text in sorted(controller.files.items())}
    found["package"] = controller.files["package.xml"]
    for title, size in (
        ("q", 2),
        ("qd", 2),
        ("qdd", 2),
        ("tau", 2),
        ("payload", 10),
        ("memory", 3),
        ("period", 1),
    ):
        rows = variables.scalars(robot, title, size)
        found[f"of {title}"] = " | ".join(str(row) for row in rows)
    return found


@scenarios
def robots_that_are_refused():
    """What packages, units and loops say of robots of every shape, one without joints among them."""
    fixed = lw.Robot("fixed", [lw.Link("base"), lw.Link("tool")], [lw.Joint("weld", "fixed", "base", "tool")])
    robots = {"fixed": fixed} | {name: ROBOTS[name]() for name in ("floating", "linkage", "touching")}
    names = ("inverse_dynamics", "contact_step", "constraint_forces", "closed_loop", "whole_body")
    found: dict[str, Any] = {}
    for name, robot in robots.items():
        said = {each: told(entries, robot, [each], Options()) for each in names}
        said |= {f"unit {each}": told(Fmu, robot, each) for each in ("forward_dynamics", "closed_loop")}
        said["ros2"] = told(Ros2Controller, robot, "gravity_pd")
        said["two rates"] = told(TwoRatePrograms, robot, period=0.002)
        said["plant"] = told(TwoRatePrograms, two(), period=0.002, plant=robot)
        found[name] = said
    return found


class Driver:
    """A plant that reads what it is told."""

    dof = 2

    def __init__(self, *read: Any):
        self.given, self.torques = read, []

    def read(self, cycle: int) -> Any:
        return [part() if callable(part) else part for part in self.given]

    def write(self, tau: Any) -> None:
        self.torques.append(np.asarray(tau).tolist())
        if tau[0] > 5.0:
            raise OSError("lost")

    def brake(self) -> bool:
        return self.given[0][0] > 0.0


@scenarios
def drivers_of_plants():
    """What the runtime hears of a driver: 0, or a number below it where the plant is lost."""
    found: dict[str, Any] = {}
    for name, given in {
        "good": ([0.1, 0.2], [0.3, 0.4], [True, False]),
        "resting": ([-0.1, 0.2], [0.3, 0.4], [False, False]),
        "too few": ([0.1], [0.3, 0.4], [True, False]),
        "too many": ([0.1, 0.2], [0.3, 0.4, 0.5], [True, False]),
        "no numbers": ([0.1, "a"], [0.3, 0.4], [True, False]),
        "no flags": ([0.1, 0.2], [0.3, 0.4], []),
    }.items():
        driver = Driver(*given)
        read, write, brake = callbacks(driver)
        q, qd, hot, tau = (
            (ctypes.c_double * 2)(),
            (ctypes.c_double * 2)(),
            (ctypes.c_int32 * 2)(9, 9),
            (ctypes.c_double * 3)(1.0, 2.0, 3.0),
        )
        said = [read(None, 3, q, qd, hot), write(None, tau), brake(None)]
        tau[0] = 7.0
        said.append(write(None, tau))
        found[name] = [
            *map(float, said),
            *q,
            *qd,
            *map(float, hot),
            *driver.torques[0],
            float(len(driver.torques)),
        ]
    return found


def observe(state: Any, draw: Any) -> list[Any]:
    return [*(x + draw.noise(0.01) for x in (*state.q, *state.qd)), state.time]


def reward(state: Any) -> dict[str, Any]:
    return {
        "reach": -(state.q[0] - 0.3) * (state.q[0] - 0.3),
        "effort": -0.01 * state.torque[0] * state.torque[0],
    }


def reset(draw: Any, inputs: Any) -> dict[str, Any]:
    return {"q": [draw.uniform(-0.3, 0.3), draw.normal()], "qd": [0.1, -0.2]}


def task_of(robot: lw.Robot, drives: Any, **options: Any) -> Task:
    given: dict[str, Any] = {
        "step": 0.005,
        "substeps": 2,
        "episode_length": 5,
        "randomise": {"payload": (0.0, 0.5), "kp": (0.5, 1.5)} if isinstance(drives, PDTargets) else {},
        "payload_frame": "link2",
        "delay": (0, 2),
        "least_reward": -3.0,
    }
    return Task("reach", robot, drives, observe, reward, lambda s: s.q[1] > 1.4, reset, **(given | options))


@scenarios
def environments():
    found: dict[str, Any] = {}
    rng = np.random.default_rng(2)
    for name, drives in {
        "targets": PDTargets(30.0, [2.0, 1.0], 0.1, [0.5, 0.4], dry_friction=0.2),
        "torques": Torques([9.0, 4.0]),
    }.items():
        task = task_of(two(), drives)
        env = Environment(task, 3)
        env.reset(seed=4)
        rows = []
        for _ in range(7):
            made = env.advance(rng.uniform(-1.0, 1.0, (3, 2)).astype(np.float32))
            rows.append([np.asarray(each, float) for each in made if each is not None])
        found[name] = packed({"rows": rows, "state": np.asarray(env.state, float)})
    policy = Policy.random((5, 4, 2), 3)
    return found | {"policy": np.asarray(policy.weights, float)}


@scenarios
def refusals():
    robot = two()
    return {
        "function": told(entries, robot, ["inverse"], OPTIONS),
        "twice": told(entries, robot, ["pose", "pose"], OPTIONS),
        "frequency": told(entries, robot, ["computed_torque"], Options(frequency=[1.0, 2.0, 3.0])),
        "frame": told(entries, robot, ["pose"], Options(frame="hand")),
        "trajectory": told(entries, robot, ["trajectory"], OPTIONS),
        "prefix": told(Package, robot, ["pose"], OPTIONS, prefix="1 a"),
        "none": told(Package, robot, [], OPTIONS),
        "certify": told(evidence.certify, robot, "inverse"),
        "velocity": told(evidence.certify, robot, "inverse_dynamics", velocity=-1.0),
        "drives": told(lambda: Environment(task_of(robot, PDTargets([1.0, 2.0, 3.0], 1.0)), 2)),
        "joints": told(lambda: Environment(task_of(robot, PDTargets(1.0, 1.0, joints=("elbow",))), 2)),
    }


test_results_are_those_recorded = scenarios.test()
test_every_record_has_its_scenario = scenarios.test_of_records()
