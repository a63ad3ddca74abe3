"""Loops over links with floating, ball and helical joints: results, bits of every target, derivatives."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise import Joint, Link, Robot
from linkwise.compiler import shapes
from linkwise.compiler.emit.cuda import source as cuda
from linkwise.compiler.ir import interpret
from linkwise.compiler.ir.sweeps import SweptProgram
from linkwise.functions import arrays
from linkwise.functions.table import FUNCTIONS, Setting
from linkwise.robot import kernels
from strategies import body, direction, pose

sys.path.append(str(Path(__file__).parent / "gpu"))
from on_cpu import COMPILER, OnCpu

SWEPT = [(name, algorithm) for name, function in FUNCTIONS.items() for algorithm in function.swept]
KINDS = ("floating", "revolute", "ball", "helical", "prismatic", "revolute")


@pytest.fixture
def everything_is_long(monkeypatch):
    monkeypatch.setattr(kernels, "STRAIGHT_LINE_LIMIT", 0)


def robot_of(*, tree: bool) -> Robot:
    """Every kind of joint, in a chain or a tree, with rotors, friction and springs."""
    rng = np.random.default_rng(5)
    links, joints = [Link("base")], []
    for k, kind in enumerate(KINDS):
        parent = links[int(rng.integers(0, len(links))) if tree else -1].name
        joints.append(
            Joint(f"joint{k}", kind, parent, f"link{k}", pose(rng), axis=direction(rng),
                  pitch=0.2 if kind == "helical" else 0.0, rotor_inertia=float(rng.uniform(0.1, 0.2)),
                  viscous_friction=0.3, coulomb_friction=(0.1, 0.2))
        )  # fmt: skip
        links.append(Link(f"link{k}", body(rng)))
    return Robot("mixed", links, joints, gravity=(1.0, -3.0, -9.0))


def states(robot: Robot, count: int, dtype="float64") -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    rates = rng.uniform(-1, 1, (3, count, robot.dof)).astype(dtype)
    return {
        "q": robot.random(rng, count).astype(dtype),
        **dict(zip(("qd", "qdd", "tau"), rates, strict=True)),
    }


def swept(robot: Robot, name: str, algorithm: str, dtype: str = "float64"):
    kernel = kernels.kernel(FUNCTIONS[name], Setting(robot), algorithm)
    program = kernel.program(dtype)
    assert isinstance(program, SweptProgram)
    return kernel, program


@pytest.mark.usefixtures("everything_is_long")
@pytest.mark.parametrize(("name", "algorithm"), SWEPT)
def test_against_the_array_path(name, algorithm):
    for tree in (False, True) if algorithm in ("newton_euler", "kalman") else (True,):
        robot = robot_of(tree=tree)
        given = {key: value for key, value in states(robot, 5).items() if key in FUNCTIONS[name].inputs}
        kernel, _ = swept(robot, name, algorithm)
        found = kernel(*given.values())
        (expected,) = arrays.run_on_arrays(FUNCTIONS[name], Setting(robot), algorithm, given).values()
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-11 * np.abs(expected).max())
        np.testing.assert_array_equal(kernel(*(value[3] for value in given.values())), found[3])


@pytest.mark.usefixtures("everything_is_long")
@pytest.mark.parametrize(
    ("name", "algorithm"),
    [("inverse_dynamics_derivatives", "gibbs_appell"), ("forward_dynamics_derivatives", "kalman")],
)
def test_derivatives_are_along_velocities(name, algorithm):
    """Against written-out code; directions are those of the velocity coordinates."""
    robot = robot_of(tree=True)
    given = [value for key, value in states(robot, 3).items() if key in FUNCTIONS[name].inputs]
    found = swept(robot, name, algorithm)[0](*given)
    setting = Setting(robot)
    expected = arrays.run_on_arrays(
        FUNCTIONS[name], setting, algorithm, dict(zip(FUNCTIONS[name].inputs, given, strict=True))
    )
    for ours, theirs in zip(found, expected.values(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10 * np.abs(theirs).max())


@pytest.mark.usefixtures("everything_is_long")
@pytest.mark.parametrize(
    ("name", "algorithm", "tree"),
    [("inverse_dynamics", "newton_euler", False), ("forward_dynamics", "kalman", True)],
)
def test_every_target_has_the_same_bits(tmp_path, name, algorithm, tree):
    """The interpreter, C by gcc and CUDA's text return what the machine code returns."""
    robot = robot_of(tree=tree)
    kernel, program = swept(robot, name, algorithm)
    given = [states(robot, 3)[key] for key in FUNCTIONS[name].inputs]
    found = kernel(*given)
    memory = {key: value[1].copy() for key, value in zip(FUNCTIONS[name].inputs, given, strict=True)}
    ((output, _),) = program.outputs
    memory[output] = np.empty(robot.dof)
    interpret.run_nest(shapes.nest(program), memory)
    np.testing.assert_array_equal(memory[output], found[1])
    if COMPILER is not None:
        on_cpu = OnCpu(cuda.module(program), tmp_path, 4, 4)
        out = np.full(found.shape, np.inf)
        on_cpu([out], given, [value.shape[1] for value in given] + [3], 3, False, 1)
        np.testing.assert_array_equal(out, found)
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    (tmp_path / "robot.c").write_text(kernel.source("c", function_name="accelerate"))
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-O2", "-fPIC"]
    command += ["-mfma", "-shared", str(tmp_path / "robot.c"), "-o", str(tmp_path / "robot.so"), "-lm"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    call = ctypes.CDLL(str(tmp_path / "robot.so")).accelerate
    out, room = np.empty(robot.dof), np.empty(program.scratch_scalars(1))
    call(*(ctypes.c_void_p(x.ctypes.data) for x in (*(x[2] for x in given), out, room)))
    np.testing.assert_array_equal(out, found[2])


def test_a_long_chain_on_a_floating_base_comes_back_from_its_torques():
    chain = lw.general_chain(150, seed=3)
    chain = Robot("chain", [Link(chain.base, body(np.random.default_rng(0))), *chain.links[1:]], chain.joints)
    robot = chain.with_base("floating")
    rng = np.random.default_rng(0)
    q = robot.random(rng, 3)
    qd, qdd = rng.uniform(-1, 1, (2, 3, robot.dof))
    assert isinstance(robot.kernel("forward_dynamics").program(), SweptProgram)
    tau = robot.inverse_dynamics(q, qd, qdd)
    found = robot.forward_dynamics(q, qd, tau)
    np.testing.assert_allclose(robot.inverse_dynamics(q, qd, found), tau, atol=1e-9 * np.abs(tau).max())


@pytest.mark.usefixtures("everything_is_long")
def test_what_has_no_loops_is_computed_on_arrays_or_says_so():
    robot = robot_of(tree=False)
    coupled = robot.with_constraints([lw.Coupling("joint5", "joint1", ratio=0.5)])
    given = states(coupled, 2)
    tau = coupled.inverse_dynamics(given["q"], given["qd"], given["qdd"])
    found = coupled.forward_dynamics(given["q"], given["qd"], tau)
    np.testing.assert_allclose(found, given["qdd"], rtol=1e-6, atol=1e-6)
    q, qd, _, tau = states(robot, 2).values()
    with pytest.raises(lw.ModelError, match="joint0 neither turns about nor slides along one axis"):
        robot.forward_dynamics(q, qd, tau, algorithm="parallel_scan")
