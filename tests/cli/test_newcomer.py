"""The path of a newcomer: a URDF and a CSV trajectory, torques, a page with plots, C code, compiled and called.

Every step is one command, run as people run it, in a folder that knows nothing of the project; every number that is
printed is compared with Pinocchio.
"""

import ctypes
import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pin = pytest.importorskip("pinocchio")

JOINTS = (  # parent's end, roll-pitch-yaw, axis, mass, centre, inertia (xx xy xz yy yz zz) about the centre
    (
        "turret",
        "revolute",
        "0 0 0.2",
        "0 0 0",
        "0 0 1",
        4.0,
        "0.01 0.02 0.1",
        "0.05 0.001 0.002 0.06 0.003 0.04",
    ),
    (
        "shoulder",
        "revolute",
        "0.1 0 0.15",
        "1.5708 0 0",
        "0 0 1",
        3.0,
        "0.2 0 0.05",
        "0.02 0 0.001 0.05 0 0.05",
    ),
    ("slide", "prismatic", "0.4 0 0", "0 1.1 0.3", "0 0 1", 1.5, "0 0.03 0.1", "0.01 0 0 0.01 0.0005 0.004"),
    ("wrist", "continuous", "0 0 0.3", "0.2 0 0", "0.6 0 0.8", 0.7, "0.02 0 0.04", "0.002 0 0 0.003 0 0.001"),
)


def urdf() -> str:
    parts = ['<robot name="newcomer"><link name="base"/>']
    parent = "base"
    for name, kind, xyz, rpy, axis, mass, com, moments in JOINTS:
        keys = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        inertia = " ".join(f'{key}="{value}"' for key, value in zip(keys, moments.split(), strict=True))
        parts.append(
            f'<link name="{name}_link"><inertial><origin xyz="{com}" rpy="0.1 0.2 0.3"/><mass value="{mass}"/>'
            f"<inertia {inertia}/></inertial></link>"
            f'<joint name="{name}" type="{kind}"><origin xyz="{xyz}" rpy="{rpy}"/><parent link="{parent}"/>'
            f'<child link="{name}_link"/><axis xyz="{axis}"/>'
            '<limit lower="-2" upper="2" effort="90" velocity="3"/></joint>'
        )
        parent = f"{name}_link"
    return "\n".join([*parts, "</robot>"])


class Newcomer:
    """A folder with an arm and a motion, Pinocchio's answers, and a shell."""

    def __init__(self, folder: Path):
        self.folder = folder
        (folder / "arm.urdf").write_text(urdf())
        self.model = pin.buildModelFromUrdf(str(folder / "arm.urdf"))
        self.data = self.model.createData()
        self.t = np.arange(60) / 50.0
        phase = np.multiply.outer(self.t, [2.0, 3.0, 1.0, 4.0]) + np.arange(4)
        rate = np.array([2.0, 3.0, 1.0, 4.0])
        self.q, self.qd, self.qdd = (
            0.8 * np.sin(phase),
            0.8 * rate * np.cos(phase),
            -0.8 * rate**2 * np.sin(phase),
        )
        names = [f"{kind}{k}" for kind in ("q", "qd", "qdd") for k in range(1, 5)]
        table = np.column_stack([self.t, self.q, self.qd, self.qdd])
        np.savetxt(
            folder / "motion.csv",
            table,
            delimiter=",",
            header=",".join(["t", *names]),
            comments="",
            fmt="%.17g",
        )
        self.tau = np.array([self.torque(*row) for row in zip(self.q, self.qd, self.qdd, strict=True)])

    def torque(self, q, qd, qdd) -> np.ndarray:
        turned = np.concatenate(
            [q[:3], [np.cos(q[3]), np.sin(q[3])]]
        )  # Pinocchio's coordinates of an endless joint
        return pin.rnea(self.model, self.data, turned, np.asarray(qd), np.asarray(qdd)).copy()

    def run(self, *arguments: str) -> str:
        environment = {**os.environ, "LINKWISE_CACHE_DIR": str(self.folder / "cache")}
        ran = subprocess.run(
            [sys.executable, "-m", "linkwise", *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            env=environment,
        )
        assert ran.returncode == 0, ran.stderr
        assert ran.stderr == ""
        return ran.stdout


@pytest.fixture(scope="module")
def user(tmp_path_factory) -> Newcomer:
    return Newcomer(tmp_path_factory.mktemp("newcomer"))


def numbers(text: str) -> list[float]:
    return [float(word) for word in re.findall(r"[-−]?\d+\.?\d*(?:e[-+]\d+)?", text.replace("−", "-"))]


def test_load(user):
    """linkwise info arm.urdf"""
    said = user.run("info", "arm.urdf")
    first = said.splitlines()[0]
    assert first.startswith("newcomer: 4 moving joints")
    assert numbers(first)[-1] == pytest.approx(pin.computeTotalMass(user.model), rel=1e-3)
    for name, *_ in JOINTS:
        assert name in said


def test_torques(user):
    """linkwise inverse arm.urdf --trajectory motion.csv: a table on standard output."""
    said = user.run("inverse", "arm.urdf", "--trajectory", "motion.csv")
    lines = said.splitlines()
    assert lines[0] == "t,tau1,tau2,tau3,tau4"
    values = np.array([[float(cell) for cell in line.split(",")] for line in lines[1:]])
    np.testing.assert_array_equal(values[:, 0], user.t)
    np.testing.assert_allclose(values[:, 1:], user.tau, rtol=1e-11, atol=1e-11)


def test_see_them(user):
    """linkwise inverse … --report page.html: a summary, and a page with plots."""
    said = user.run(
        "inverse", "arm.urdf", "--trajectory", "motion.csv", "--report", "page.html", "--out", "tau.csv"
    )
    peaks, sizes = np.abs(user.tau).max(axis=0), np.sqrt((user.tau**2).mean(axis=0))
    names = [name for name, *_ in JOINTS]
    rows = [line.split() for line in said.splitlines() if line.strip() and line.split()[0] in names]
    assert len(rows) == 4
    for k, row in enumerate(rows):
        assert row[0] == JOINTS[k][0]
        assert float(row[1]) == pytest.approx(peaks[k], rel=6e-4)
        assert float(row[2]) == pytest.approx(sizes[k], rel=6e-4)
        assert row[4] == ("N" if JOINTS[k][1] == "prismatic" else "N·m")
    page = (user.folder / "page.html").read_text(encoding="utf-8")
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    cells = [html.unescape(cell) for cell in re.findall(r"<td[^>]*>([^<]*)</td>", page)]
    shown = {number for cell in cells for number in numbers(cell)}
    for peak in peaks:
        assert any(number == pytest.approx(peak, rel=6e-4) for number in shown)


def test_generate_compile_and_call(user):
    """linkwise generate arm.urdf inverse_dynamics --out arm.c; cc; ctypes."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    said = user.run("generate", "arm.urdf", "inverse_dynamics", "--out", "arm.c", "--header")
    assert "written: arm.c, arm.h" in said
    build = [
        compiler,
        "-O2",
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-shared",
        "-fPIC",
        "arm.c",
        "-o",
        "arm.so",
        "-lm",
    ]
    subprocess.run(build, cwd=user.folder, check=True)
    function = ctypes.CDLL(str(user.folder / "arm.so")).newcomer_inverse_dynamics
    declared = (user.folder / "arm.h").read_text()
    assert "newcomer_inverse_dynamics" in declared
    function.restype = None
    found = np.zeros(4)
    for row in range(0, 60, 7):
        arrays = [np.ascontiguousarray(x[row]) for x in (user.q, user.qd, user.qdd)]
        function(*(a.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for a in (*arrays, found)))
        np.testing.assert_allclose(found, user.tau[row], rtol=1e-11, atol=1e-11)


def test_a_program_without_python(user):
    """linkwise generate … --main: a program that reads states and prints torques, all bits of them."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    user.run("generate", "arm.urdf", "inverse_dynamics", "--main", "--out", "program.c")
    subprocess.run([compiler, "-O2", "-o", "program", "program.c", "-lm"], cwd=user.folder, check=True)
    states = np.column_stack([user.q, user.qd, user.qdd])[:10]
    text = "\n".join(" ".join(map(repr, row)) for row in states.tolist())
    ran = subprocess.run([user.folder / "program"], input=text, capture_output=True, text=True, check=True)
    printed = np.array([[float(word) for word in line.split()] for line in ran.stdout.splitlines()])
    np.testing.assert_allclose(printed, user.tau[:10], rtol=1e-11, atol=1e-11)


def test_back_again(user):
    """linkwise forward: the accelerations of the motion from its torques."""
    user.run("inverse", "arm.urdf", "--trajectory", "motion.csv", "--states", "--out", "states.csv")
    said = user.run("forward", "arm.urdf", "--torques", "states.csv")
    values = np.array([[float(cell) for cell in line.split(",")] for line in said.splitlines()[1:]])
    np.testing.assert_allclose(values[:, 1:], user.qdd, rtol=1e-9, atol=1e-9)
