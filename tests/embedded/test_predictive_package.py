"""Predictive control as a C package: sizes, memory, bits, and a controller in C that reaches its target."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import linkwise as lw
from linkwise.embedded import Options, Package, entries
from linkwise.optimal import reaching
from linkwise.optimal.dynamics import PARTS_FROM
from linkwise.optimal.predictive.plans import REPORT

LIMITS = (30.0, 9.0)


@pytest.fixture(scope="module")
def robot():
    return lw.load("two_link")


@pytest.fixture(scope="module")
def folder(robot, tmp_path_factory):
    path = tmp_path_factory.mktemp("predictive") / "package"
    options = Options(horizon=5, step=0.03, iterations=1, frequency=10.0, torque_limits=LIMITS)
    Package(robot, ("mpc", "gravity_torques"), options, count=8).write(path)
    return path


def test_the_header_has_sizes_and_places(robot, folder):
    text = (folder / "include/two_link.h").read_text()
    problem = reaching(robot, horizon=5, step=0.03, torque_limits=np.array(LIMITS))
    assert "#define TWO_LINK_MPC_HORIZON 5\n" in text
    assert f"#define TWO_LINK_MPC_ROW {problem.np}\n" in text
    for name in problem.parameters:
        place = f"TWO_LINK_MPC_AT_{name.replace('.', '_').upper()} {problem.where(name).start}\n"
        assert f"#define {place}" in text
    assert "double room[TWO_LINK_MPC_ROOM]" in text or "double room[" in text
    assert "#define TWO_LINK_MPC_ROOM " in text
    source = (folder / "src/two_link_mpc.c").read_text()
    assert "malloc" not in source


@pytest.mark.skipif(shutil.which("gcc") is None or shutil.which("make") is None, reason="needs gcc and make")
def test_the_self_test_has_equal_bits(folder):
    done = subprocess.run(
        ["make", "-s", "check", "CFLAGS=-O0"], cwd=folder, capture_output=True, text=True, timeout=200
    )
    assert "all bits equal" in done.stdout, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_a_controller_of_these_functions_reaches_its_target(robot, folder, tmp_path):
    library = tmp_path / "mpc.so"
    sources = sorted(str(path) for path in (folder / "src").glob("*.c"))
    flags = ["-O0", "-shared", "-fPIC", f"-I{folder / 'include'}", f"-I{folder / 'src'}", "-o", str(library)]
    subprocess.run(["gcc", *flags, *sources, "-lm"], check=True, timeout=200)
    code = ctypes.CDLL(str(library))
    problem = reaching(robot, horizon=5, step=0.03, torque_limits=np.array(LIMITS))
    N, n, row = 5, 2, problem.np
    parameters = np.array((ctypes.c_double * ((N + 1) * row)).in_dll(code, "two_link_mpc_parameters"))
    parameters = parameters.reshape(N + 1, row)
    target = np.array([0.3, -0.3])
    parameters[:, problem.where("joints.target")] = target
    low, high = (
        np.ascontiguousarray(parameters[0, problem.where(f"torque.{side}")]) for side in ("lower", "upper")
    )
    np.testing.assert_array_equal(high, LIMITS)
    x, mu, report = np.zeros(2 * n), np.zeros(1), np.zeros(len(REPORT))
    states, torques, gains, tau = (
        np.zeros((N + 1, 2 * n)),
        np.zeros((N, n)),
        np.zeros((N, n, 2 * n)),
        np.zeros(n),
    )
    new_states, new_torques = np.zeros_like(states), np.zeros_like(torques)
    room, late, none = np.zeros(100_000), np.zeros(1), np.zeros(1)

    def call(name, *arrays):
        getattr(code, f"two_link_{name}")(*(ctypes.c_void_p(a.ctypes.data) for a in arrays))

    for _ in range(200):
        call("mpc", x, parameters, states, torques, late, mu, new_states, new_torques, gains, report, room)
        assert report[REPORT.index("usable")] == 1.0
        mu[0], late[0] = report[REPORT.index("regularisation")], 0.005 / 0.03
        call("mpc_torques", x, new_states, new_states[1:], none, new_torques, gains, low, high, tau)
        states[:], torques[:] = new_states, new_torques
        x[n:] += 0.005 * robot.forward_dynamics(x[:n], x[n:], tau)
        x[:n] += 0.005 * x[n:]
        assert (np.abs(tau) <= LIMITS).all()
    np.testing.assert_allclose(x[:n], target, atol=0.02)
    call(
        "mpc_torques",
        np.full(2 * n, np.nan),
        new_states,
        new_states[1:],
        none,
        new_torques,
        gains,
        low,
        high,
        tau,
    )
    np.testing.assert_array_equal(tau, new_torques[0])


def test_a_plan_from_a_bad_reading_is_not_sound():
    entry = entries(lw.load("two_link"), ["mpc"], Options(horizon=4))[0]
    good = {name: values[:1] for name, values in entry.states(8).items()}
    names = [name for name, _ in entry.kernel.outputs]
    for place in range(4):
        for bad in (np.nan, np.inf, 1e308):
            start = good["start"].copy()
            start[0, place] = bad
            found = dict(zip(names, entry.kernel(*{**good, "start": start}.values()), strict=True))
            assert found["report"][0, REPORT.index("sound")] == 0.0
            assert found["report"][0, REPORT.index("usable")] == 0.0


def test_torques_of_a_plan_are_finite_within_their_limits_and_say_so():
    entry = entries(lw.load("two_link"), ["mpc"], Options(horizon=4))[1]
    rng = np.random.default_rng(1)
    good = {name: rng.uniform(-1, 1, size) for name, size in entry.kernel.inputs}
    good |= {"lower": np.full(2, -0.5), "upper": np.full(2, 0.5)}
    assert entry.kernel(*good.values())[1] == 0.0
    for name in ("measured", "planned", "following", "torque", "gain"):
        for place in range(len(good[name])):
            for bad in (np.nan, np.inf, -np.inf):
                given = {**good, name: good[name].copy()}
                given[name][place] = bad
                tau, fault = entry.kernel(*given.values())
                assert (np.abs(tau) <= 0.5).all()
                assert fault == 1.0


@pytest.mark.parametrize("most", [1e3, 2.0])
def test_default_parameters_hold_a_large_arm_at_its_target_in_every_row(most):
    robot = lw.general_chain(PARTS_FROM)
    entry = entries(robot, ["mpc"], Options(horizon=4, torque_limits=(most,) * PARTS_FROM))[0]
    problem = reaching(robot, horizon=4, torque_limits=np.full(PARTS_FROM, most))
    rows = entry.tables["parameters"].reshape(5, problem.np)
    rest = rows[:, problem.where("joints.target")]
    np.testing.assert_array_equal(rest, np.tile(rest[0], (5, 1)))
    held = np.clip(robot.gravity_torques(rest), -most, most)
    assert np.abs(held).max() > 1.0
    np.testing.assert_allclose(rows[:, problem.where("effort.target")], held, rtol=1e-9, atol=1e-9)
