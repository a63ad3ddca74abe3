"""From a log file to a trusted robot and its C code: read, identify, save, compile, call.

The log is simulated, so that the truth is known: an arm with friction whose inertias differ from what its file says by up to a
third follows an exciting motion. Its positions and torques are written as CSV with noise. Nothing else is used below.
"""

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from figures import panels

import linkwise as lw
from linkwise.identify import Noise, excite, identify, read_log, simulated_log

rng = np.random.default_rng(21)
truth = lw.load("puma260")
prior = truth.with_parameters(truth.parameters * rng.uniform(0.75, 1.33, truth.parameters.size))

folder = Path(tempfile.mkdtemp())
motions = [excite(prior, duration=8.0, starts=1, iterations=45, seed=seed).trajectory for seed in (0, 1)]
for name, motion in zip(("train", "test"), motions, strict=True):
    log = Noise(1e-5, 0.03).added(simulated_log(truth, motion, 8.0, rate=500.0), rng)
    head = ",".join(["t", *(f"q{k}" for k in range(1, 7)), *(f"tau{k}" for k in range(1, 7))])
    table = np.column_stack([log.t, log.q, log.tau])
    np.savetxt(folder / f"{name}.csv", table, delimiter=",", header=head, comments="")

train, test = (read_log(folder / f"{name}.csv", prior) for name in ("train", "test"))
found = identify(prior, train, validation=test, friction="coulomb")
print("processing:", "; ".join(found.signals[0].record))
print("joint                ", *prior.joint_names)
for text, judged in (("file", found.of_prior[0]), ("identified", found.of_robot[0])):
    print(f"{text:<12} residual %", *(f"{value:6.1f}" for value in judged.relative))
reduced = found.reduction
print(f"{reduced.base_count} base parameters, {len(reduced.significance.labels)} significant:", end=" ")
print(f"{reduced.operations_before} → {reduced.operations}")

found.save(folder / "arm.urdf")
found.write_code(folder / "arm.c")
again = lw.load(folder / "arm.urdf")
q, qd, qdd = rng.uniform(-1, 1, (3, 200, 6))
exact = truth.inverse_dynamics(q, qd, qdd)
assert np.allclose(again.inverse_dynamics(q, qd, qdd), found.robot.inverse_dynamics(q, qd, qdd), atol=1e-9)
if compiler := shutil.which("gcc") or shutil.which("clang") or shutil.which("cc"):
    flags = [
        "-std=c99",
        "-O2",
        "-shared",
        "-fPIC",
        "-o",
        str(folder / "arm.so"),
        str(folder / "arm.c"),
        "-lm",
    ]
    subprocess.run([compiler, *flags], check=True)
    function, six, tau = (
        ctypes.CDLL(str(folder / "arm.so")).inverse_dynamics,
        ctypes.c_double * 6,
        np.zeros((200, 6)),
    )
    for k in range(200):
        function(six(*q[k]), six(*qd[k]), six(*qdd[k]), out := six())
        tau[k] = out
    error = np.linalg.norm(tau - exact, axis=0) / np.linalg.norm(exact, axis=0)
    print("C code against the truth, %:", (100 * error).round(2))
    assert (error < 0.05).all()
shutil.rmtree(folder)

axes = panels(
    2, 3, "A motion that was not used: measured torque, the file's, the identified robot's [N·m]", (13, 6)
)
if axes is not None:
    judged = found.of_robot[0]
    for k, axis in enumerate(axes):
        axis.plot(judged.t, judged.measured[:, k], color="0.7", label="measured")
        axis.plot(judged.t, found.of_prior[0].predicted[:, k], "--", label="file")
        axis.plot(judged.t, judged.predicted[:, k], label="identified")
        axis.set(title=prior.joint_names[k], xlabel="t [s]")
    axes[0].legend()
assert (np.array(found.of_robot[0].relative) < 6.0).all()
