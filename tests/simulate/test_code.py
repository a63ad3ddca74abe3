"""A closed loop as C: the bits of ``simulate``."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import linkwise as lw
from linkwise import control, motion
from linkwise.simulate import Plant, Sensors, simulate, source
from linkwise.simulate.loop import ClosedLoop

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]


def arm():
    robot = lw.load("puma560")
    controller = control.ComputedTorque(robot, control.Gains.from_frequency(10.0))
    return robot, controller, motion.quintic(np.zeros(6), np.full(6, 0.3), 0.02), {}


def floating_loop():
    """A floating base, a follower, and a tip that is held; the initial state is given."""
    robot = lw.planar_chain(3).with_base("floating").with_payload(3.0, inertia=(0.5, 0.6, 0.7), frame="base")
    robot = robot.with_constraints([lw.Coupling("joint3", "joint2", -0.5)])
    q = robot.integrate(robot.neutral, np.linspace(0.1, 0.5, robot.dof))
    robot = robot.with_constraints([lw.Point("tip", robot.pose(q, "tip")[:3, 3])])
    return robot, control.ConstantTorque(robot, np.linspace(-1.0, 1.0, robot.dof)), None, {"q": q}


@pytest.mark.parametrize("case", [arm, floating_loop])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_c_returns_the_bits_of_simulate(tmp_path, monkeypatch, compiler, case):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    robot, controller, move, start = case()
    seen = {}
    kernel = ClosedLoop.kernel

    def watched(self):
        found = kernel(self)

        def call(given, **options):
            seen.update(given=given, interface=self.interface)
            return found(given, **options)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(ClosedLoop, "kernel", watched)
        result = simulate(
            robot, controller, move, duration=0.02, integrator="semi_implicit_euler", every=3, **start
        )
    text = source(robot, controller, move, integrator="semi_implicit_euler", function_name="closed_loop")
    assert "Parameters of this loop: step = [0.001]" in text.replace("\n * ", " ")
    (tmp_path / "loop.c").write_text(text)
    command = [
        compiler,
        *STRICT,
        "-O1",
        "-march=native",
        "-shared",
        "-fPIC",
        "loop.c",
        "-o",
        "loop.so",
        "-lm",
    ]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    interface = seen["interface"]
    names = [*interface.carried, *interface.parameters, *interface.feeds]
    arrays = {name: np.array(np.asarray(seen["given"][name]).ravel(), float) for name in names}
    arrays |= {name: np.full((7, *shape), np.inf) for name, shape in interface.written.items()}
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays.values()]
    ctypes.CDLL(str(tmp_path / "loop.so")).closed_loop(*pointers, ctypes.c_long(20), ctypes.c_long(3))
    np.testing.assert_array_equal(arrays["record_q"], result.q)
    np.testing.assert_array_equal(arrays["record_tau"], result.tau)
    np.testing.assert_array_equal(arrays["q"], result.final_q)


def test_source_of_other_loops():
    robot = lw.load("puma560")
    gains = control.Gains.from_frequency(10.0)
    plant = Plant(robot, sensors=Sensors(position_noise=1e-4))
    text = source(
        plant, control.GravityPD(robot, gains), control_period=2e-3, delay=1, vary=["payload"], main=True
    )
    assert "int main(void)" in text
    assert "payload" in text
    assert "for (;;)" in text  # integration steps inside of a control period
    assert "__global__" in source(
        robot, control.GravityPD(robot, gains), target="cuda", function_name="own_name"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"integrator": "euler"}, "integrator: no 'euler'"),
        ({"record": ["speed"]}, "record: no 'speed'"),
        ({"step": 0.0}, "step: expected finite numbers above 0"),
        ({"controller": lambda t, q, qd, r: q}, "a Python function has no source code"),
        ({"controller": control.Passive(lw.load("panda"))}, "its model has 7 joints, the plant has 6"),
        ({"target": "fortran"}, "target: no 'fortran'"),
    ],
)
def test_what_cannot_be_written_is_named(change, message):
    robot = lw.load("puma560")
    given = {"controller": control.Passive(robot), **change}
    with pytest.raises((lw.LinkwiseError, ValueError, TypeError), match=message):
        source(robot, given.pop("controller"), **given)
