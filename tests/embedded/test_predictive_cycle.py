"""The whole cycle of predictive control in C, beside the Python controller: read, check, plan, limit, stop."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.embedded import Options, Package
from linkwise.optimal import Predictive
from linkwise.simulate.loop import step_kernel

PERIOD, LIMITS = 5e-3, (30.0, 9.0)
STATUSES = ("planned", "kept", "stopped", "not converging")


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    folder = tmp_path_factory.mktemp("cycle")
    options = Options(horizon=5, step=0.03, iterations=1, frequency=10.0, torque_limits=LIMITS)
    Package(lw.load("two_link"), ("mpc",), options, count=4).write(folder / "package")
    sources = [*sorted((folder / "package/src").glob("*.c")), Path(__file__).with_name("mpc_cycle.c")]
    flags = ["-O1", "-ffp-contract=off", "-Wall", "-shared", "-fPIC", f"-I{folder / 'package/include'}"]
    library = folder / "cycle.so"
    subprocess.run(
        ["gcc", *flags, f"-I{folder / 'package/src'}", "-o", library, *sources, "-lm"],
        check=True,
        timeout=200,
    )
    return ctypes.CDLL(str(library))


def sensors(kind):
    """What is read of a state, by its time."""

    def seen(t, q, qd):
        q, qd = q.copy(), qd.copy()
        if kind == "frozen" and t >= 0.3:
            q[1], qd[1] = seen.__dict__.setdefault("kept", q[1]), 0.0
        if kind == "jump" and t >= 0.3:
            q[0] += 0.4
        if (kind == "nan" and t >= 0.3) or (kind == "one nan" and 0.3 <= t < 0.3 + 2.5 * PERIOD):
            q[0] = np.nan
        return q, qd

    return seen


@pytest.mark.parametrize(
    ("kind", "target", "seconds", "ends"),
    [
        ("none", (0.5, -0.4), 1.0, "planned"),
        ("one nan", (0.5, -0.4), 0.6, "planned"),
        ("nan", (0.5, -0.4), 0.6, "stopped"),
        ("jump", (0.5, -0.4), 0.6, "stopped"),
        ("frozen", (0.5, -0.4), 0.8, "stopped"),
        ("pushed", (1.4, 0.0), 4.0, "not converging"),
    ],
)
def test_a_cycle_in_c_is_that_of_python(code, kind, target, seconds, ends):
    robot = lw.load("two_link")
    law = Predictive(robot, horizon=5, step=0.03, frequency=10.0, torque_limits=np.array(LIMITS))
    law.aim({"joints.target": target})
    code.reset()
    code.aim((ctypes.c_double * 2)(*target))
    q, qd, plant, seen = np.zeros(2), np.zeros(2), step_kernel(robot), sensors(kind)
    tau = np.zeros(2)
    statuses = set()
    for k in range(int(seconds / PERIOD)):
        t = k * PERIOD
        state = [np.ascontiguousarray(part) for part in seen(t, q, qd)]
        status = code.cycle(
            ctypes.c_double(t), *(ctypes.c_void_p(part.ctypes.data) for part in (*state, tau))
        )
        expected = law(t, *state)
        statuses.add(law.status)
        assert STATUSES[status] == law.status, t
        np.testing.assert_allclose(tau, expected, rtol=1e-12, atol=1e-12)
        push = 4.0 * np.sin(20.0 * t) if kind == "pushed" else 0.0  # somebody moves the arm to and fro
        for _ in range(2):
            q, qd = plant(q, qd, expected + [push, 0.0], np.array([0.5 * PERIOD]))
    assert law.status == ends
    assert "kept" in statuses or kind in ("none", "frozen", "pushed")
    assert (np.abs(q - target) < 0.02).all() or ends != "planned" or kind == "one nan"
