"""Write the smallest C program for one robot, compile it, and call it: the same bits as in Python."""

import ctypes
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import linkwise as lw

robot = lw.load("puma560")
q, qd, qdd = np.random.default_rng(8).normal(size=(3, robot.dof))

with tempfile.TemporaryDirectory() as folder:
    source, library = Path(folder) / "puma560.c", Path(folder) / "puma560.so"
    command = [
        "linkwise",
        "generate",
        "puma560",
        "inverse_dynamics",
        "--name",
        "torques",
        "--out",
        str(source),
    ]
    if shutil.which("linkwise") is None:
        command[:1] = [sys.executable, "-m", "linkwise"]
    print(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())

    compiler = shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")
    if compiler is None:
        print("no C compiler here; the source begins:\n" + source.read_text()[:400])
        raise SystemExit(0)
    flags = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, str(source), "-o", str(library), "-lm"], check=True)

    torques = ctypes.CDLL(str(library)).torques
    six = ctypes.c_double * 6
    tau = six()
    torques(six(*q), six(*qd), six(*qdd), tau)

expected = robot.inverse_dynamics(q, qd, qdd)
print("C:     ", np.array(tau))
print("Python:", expected)
assert list(tau) == expected.tolist(), "not one bit may differ"
