"""From a log file to a trusted robot and its C code: read, identify, save, compile, call.

The log is simulated, so that the truth is known: an arm with friction whose parameters differ from what its file says
by up to a third follows an exciting motion, and positions and torques are written as CSV, with noise.
"""

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from figures import panels

import linkwise as lw
from linkwise.identify import Noise, condition, excite, identify, read_log, simulated_log, validate

rng, folder = np.random.default_rng(21), Path(tempfile.mkdtemp())
truth = lw.load("puma260")
prior = truth.with_parameters(truth.parameters * rng.uniform(0.75, 1.33, truth.parameters.size))
head = ",".join(["t", *(f"q{k}" for k in range(1, 7)), *(f"tau{k}" for k in range(1, 7))])
for seed, name in enumerate(("train", "test")):
    motion = excite(prior, duration=8.0, starts=1, iterations=80, seed=seed).trajectory
    log = Noise(1e-5, 0.03).added(simulated_log(truth, motion, 8.0, rate=500.0), rng)
    table = np.column_stack([log.t, log.q, log.tau])
    np.savetxt(folder / f"{name}.csv", table, delimiter=",", header=head, comments="")

train, test = (read_log(folder / f"{name}.csv", prior) for name in ("train", "test"))
found = identify(prior, train, validation=test, friction="coulomb")
found.save(folder / "arm.urdf")
found.write_code(folder / "arm.c")

before, after, reduced = found.of_prior[0], found.validations[0], found.reduction
print("processing:", "; ".join(found.signals[0].record))
print("residual of the test run by the file, %:            ", before.relative.round(1))
print("residual of the test run by the identified robot, %:", after.relative.round(1))
print(f"{reduced.base_count} base parameters, {len(reduced.significance.labels)} significant")
print(f"inverse dynamics: {reduced.operations_before} → {reduced.operations}")

q, qd, qdd = states = rng.uniform(-1, 1, (3, 200, 6))
exact = truth.inverse_dynamics(*states)
again = lw.load(folder / "arm.urdf")
assert np.allclose(again.inverse_dynamics(*states), found.robot.inverse_dynamics(*states), atol=1e-9)
if compiler := shutil.which("gcc") or shutil.which("clang") or shutil.which("cc"):
    source, library = str(folder / "arm.c"), str(folder / "arm.so")
    subprocess.run(
        [compiler, "-std=c99", "-O2", "-shared", "-fPIC", source, "-o", library, "-lm"], check=True
    )
    function, six, tau = ctypes.CDLL(library).inverse_dynamics, ctypes.c_double * 6, []
    for k in range(200):
        function(six(*q[k]), six(*qd[k]), six(*qdd[k]), out := six())
        tau.append(list(out))
    error = np.linalg.norm(np.array(tau) - exact, axis=0) / np.linalg.norm(exact, axis=0)
    print("C code of the reduced robot against the truth, %:   ", (100 * error).round(2))
    assert (error < 0.02).all()
shutil.rmtree(folder)

axes = panels(2, 3, "A motion that was not used: torques [N·m]", (14, 6))
if axes is not None:
    for k, axis in enumerate(axes):
        axis.plot(after.t, after.measured[:, k], color="0.75", label="measured")
        axis.plot(before.t, before.predicted[:, k], "--", label="by the file")
        axis.plot(after.t, after.predicted[:, k], label="by the identified robot")
        axis.set(title=prior.joint_names[k], xlabel="t [s]")
    axes[0].figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=3)
best = validate(truth, condition(test)).relative  # noise of 3 %, and reversals of friction between samples
assert (after.relative < 1.1 * best).all(), "more is left than by the true robot"
assert (after.relative < before.relative).all()
