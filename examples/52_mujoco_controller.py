"""A generated controller inside MuJoCo: C code as the engine's control callback, once in every step of 1 ms.

The callback is compiled with MuJoCo's headers. The arm follows a quintic move; the callback measures its own time.
"""

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import mujoco
import numpy as np

import linkwise as lw
from linkwise.embedded import Options, Package

STEPS, MOVE = 1500, 1.0  # steps of 1 ms; duration of the move [s]
CALLBACK = """
#include <mujoco/mujoco.h>
#include <time.h>
#include "arm.h"
double start[ARM_N], end[ARM_N], duration[1], taken[10000]; /* taken: [s] of every call */
int calls;
void control(const mjModel *model, mjData *data)
{
    double q[ARM_N], qd[ARM_N], qdd[ARM_N];
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    arm_trajectory(&data->time, duration, start, end, q, qd, qdd);
    arm_computed_torque_with(&arm_computed_torque_defaults, data->qpos, data->qvel, q, qd, qdd, data->qfrc_applied);
    clock_gettime(CLOCK_MONOTONIC, &after);
    taken[calls++] = (double)(after.tv_sec - before.tv_sec) + 1e-9 * (double)(after.tv_nsec - before.tv_nsec);
}
"""
if (compiler := shutil.which("gcc") or shutil.which("clang")) is None:
    raise SystemExit(print("no C compiler here, so the controller cannot be compiled"))
robot = lw.load("panda")
package = Package(robot, ["trajectory", "computed_torque"], Options(frequency=30.0), prefix="arm", count=1)
with tempfile.TemporaryDirectory() as folder:
    package.write(Path(folder, "arm"))
    Path(folder, "control.c").write_text(CALLBACK)
    includes = [f"-I{folder}/arm/include", f"-I{Path(mujoco.__file__).parent / 'include'}"]
    sources = [f"{folder}/control.c", *map(str, Path(folder, "arm", "src").glob("*.c"))]
    command = [compiler, "-O2", "-shared", "-fPIC", *includes, *sources, "-lm", "-o", f"{folder}/control.so"]
    subprocess.run(command, check=True)
    library = ctypes.CDLL(command[-1])
    lw.save(robot, Path(folder, "arm.xml"))
    model = mujoco.MjModel.from_xml_path(f"{folder}/arm.xml")

data, model.opt.timestep = mujoco.MjData(model), 1e-3
first, last = np.array([[0.0, -0.4, 0.0, -1.8, 0.0, 1.6, 0.0], [0.8, 0.1, -0.4, -2.4, 0.5, 2.5, -0.7]])
for name, values in (("start", first), ("end", last), ("duration", [MOVE])):
    (ctypes.c_double * len(values)).in_dll(library, name)[:] = values
data.qpos[:] = first
mujoco.set_mjcb_control(ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(("control", library)))
positions = np.empty((STEPS, robot.dof))
for k in range(STEPS):
    mujoco.mj_step(model, data)
    positions[k] = data.qpos
mujoco.set_mjcb_control(None)
s = np.minimum(1e-3 * np.arange(1, STEPS + 1)[:, None] / MOVE, 1.0)
error = np.abs(positions - first - (last - first) * (10 * s**3 - 15 * s**4 + 6 * s**5)).max()
taken = np.array((ctypes.c_double * STEPS).in_dll(library, "taken")) * 1e6
print(f"{STEPS} steps of 1 ms, largest error of tracking {error:.1e} rad; time of the controller:")
print(f"median {np.median(taken):.1f} us, slowest {taken.max():.1f} us, {(taken > 1e3).sum()} beyond 1 ms")
assert ctypes.c_int.in_dll(library, "calls").value == STEPS, "one call in every step of the engine"
assert error < 1e-3
