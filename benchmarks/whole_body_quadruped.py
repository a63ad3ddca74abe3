"""A quadruped stands, squats, lifts a leg and is pushed: whole-body control in the contact simulation and, as C, in
MuJoCo.

In every sample of 2 ms one quadratic programme gives the torques of twelve motors: the centre of mass and the body
follow a plan, forces stay inside friction pyramids, torques within their limits. The same kernel runs in Python and,
generated as C, in MuJoCo (where that and a C compiler are installed). Prints how far the robot was from its plan;
``--picture FILE`` writes an SVG of it.
"""

import argparse
import ctypes
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path

import numpy as np
from whole_body_parts.four_legs import four_legs, round_feet

import linkwise as lw
from linkwise import control
from linkwise.simulate import Plant, Push, simulate

PERIOD, DURATION = 0.002, 6.5
SQUAT, LIFT, PUSH = (0.5, 2.5), (2.8, 5.0), 5.4  # [s]
FORCE, LONG = 300.0, 0.01  # of the push to the side [N], [s]: ten times 300 N·ms


def smooth(t: float, begin: float, end: float) -> np.ndarray:
    """From 0 to 1 with zero rates at both ends: value, rate, acceleration."""
    s, h = np.clip((t - begin) / (end - begin), 0.0, 1.0), end - begin
    return np.array(
        [s**3 * (10 - 15 * s + 6 * s * s), 30 * (s * (1 - s)) ** 2 / h, 60 * s * (1 - s) * (1 - 2 * s) / h**2]
    )


robot = four_legs(lower=-2.6, upper=2.6, velocity=20.0, effort=40.0).with_contacts(round_feet())
knee = 2.0 * np.arccos((0.30 - 0.02) / 0.4)
stand = np.concatenate([[0.0, 0.0, 0.30, 0.0, 0.0, 0.0, 1.0], np.tile([0.0, 0.5 * knee, -knee], 4)])
law = control.WholeBody(
    robot,
    [
        control.CenterOfMassTask(weight=1.0, frequency=12.0),
        control.PoseTask("body", "turn", weight=0.3, frequency=12.0),
        control.PointTask("foot3", weight=0.5, frequency=25.0),
        control.PostureTask(weight=1e-3, frequency=8.0),
        control.ForceTask(weight=1e-5),
    ],
    control.MotionLimits(period=PERIOD),
    supports=[control.Support(f"foot{leg}", radius=0.02, friction=0.6, smallest=1.0) for leg in range(4)],
    damping=10.0,
)
home = law.targets(stand)
com, turn, foot, posture, force = law.target_slices()
SHIFT = np.array([0.035, 0.02, 0.0])  # towards the three feet that stay


def plan(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Targets, gains and which feet stand."""
    targets, gains, stance = home.copy(), law.default_gains.copy(), np.ones(4)
    down = smooth(t, SQUAT[0], SQUAT[0] + 1.0) - smooth(t, SQUAT[1] - 1.0, SQUAT[1])
    aside = smooth(t, LIFT[0], LIFT[0] + 0.7) - smooth(t, LIFT[1] - 0.7, LIFT[1])
    up = smooth(t, LIFT[0] + 0.8, LIFT[0] + 1.1) - smooth(t, LIFT[1] - 1.1, LIFT[1] - 0.8)
    for k, part in enumerate(com):
        targets[part] += np.array([0.0, 0.0, -0.08]) * down[k] + SHIFT * aside[k]
    for k, part in enumerate(foot):
        targets[part] += np.array([0.0, 0.0, 0.06]) * up[k]
    in_air = LIFT[0] + 0.8 < t < LIFT[1] - 0.8
    stance[3] = 0.0 if in_air else 1.0
    gains[2, 0] = gains[2, 0] if in_air else 1e-9
    return targets, gains, stance


class Law:
    """The controller with its memory; ``solve`` is the kernel or its C code."""

    def __init__(self, solve):
        self.solve, self.start, self.slowest = solve, law.cold_start, 0.0

    def __call__(self, t, q, qd, reference=None):
        targets, gains, stance = plan(float(t))
        found = self.solve(q, qd, targets, gains, stance, self.start)
        self.start = found["next_start"]
        return found["tau"]


def by_kernel(*given):
    kernel = law.kernel()
    return dict(zip((name for name, _ in kernel.outputs), kernel(*given), strict=True))


def by_c(folder: str):
    """The generated C, compiled; no memory is allocated in it."""
    kernel, library = law.kernel(), str(Path(folder) / "whole_body.so")
    source = Path(folder) / "whole_body.c"
    source.write_text(kernel.source("c"), encoding="utf-8")
    subprocess.run(
        ["cc", "-std=c99", "-O2", "-shared", "-fPIC", str(source), "-lm", "-o", library], check=True
    )
    function = getattr(ctypes.CDLL(library), kernel.name)
    outputs = {name: np.empty(shape) for name, shape in kernel.outputs}
    scratch = np.empty(max(1, sum(a.columns for a in kernel.program().arrays if a.kind == "scratch")))

    def solve(*given):
        arrays = [*(np.ascontiguousarray(x, dtype=float) for x in given), *outputs.values(), scratch]
        function(*(ctypes.c_void_p(array.ctypes.data) for array in arrays))
        return {name: values.copy() for name, values in outputs.items()}

    return solve


def in_mujoco(solve) -> tuple[np.ndarray, np.ndarray]:
    """Times and positions of the robot in MuJoCo, with a ground and spheres as feet."""
    import mujoco

    with tempfile.TemporaryDirectory() as folder:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lw.ExportWarning)  # MJCF has no limits of speed
            lw.save(robot.with_contacts(()), Path(folder, "legs.xml"))
        spec = mujoco.MjSpec.from_file(str(Path(folder, "legs.xml")))
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 0.1], friction=[0.8, 0.005, 1e-4])
    for leg in range(4):
        knee_body = spec.body(f"knee{leg}")
        knee_body.add_geom(
            type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.02, 0, 0], pos=[0, 0, -0.2], friction=[0.8, 0.005, 1e-4],
            contype=2, conaffinity=1, mass=0.0,
        )  # fmt: skip
    model = spec.compile()
    model.opt.timestep = PERIOD / 4
    data, controller = mujoco.MjData(model), Law(solve)
    data.qpos[:] = [*stand[:3], stand[6], *stand[3:6], *stand[7:]]
    body = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, "body")
    times, rows = [], []
    for step in range(round(DURATION / PERIOD)):
        t, v = step * PERIOD, data.qvel
        q = np.concatenate([data.qpos[:3], data.qpos[4:7], data.qpos[3:4], data.qpos[7:]])
        R = data.xmat[body].reshape(3, 3) if step else np.eye(3)
        tau = controller(t, q, np.concatenate([v[3:6], R.T @ v[:3], v[6:]]))
        data.qfrc_applied[6:] = tau[6:]
        data.xfrc_applied[body, :3] = (0.0, FORCE if PUSH <= t < PUSH + LONG - 1e-9 else 0.0, 0.0)
        times.append(t), rows.append(q)
        for _ in range(4):
            mujoco.mj_step(model, data)
    return np.array(times), np.array(rows)


def judged(name: str, t: np.ndarray, q: np.ndarray) -> None:
    """What happened, in one line; the robot must not have fallen."""
    upright = 1.0 - 2.0 * (q[:, 3] ** 2 + q[:, 4] ** 2)
    wanted = np.array([plan(x)[0][com[0]] for x in t])
    error = np.abs(robot.center_of_mass(q) - wanted).max(axis=1)
    lifted = robot.pose(q, "foot3")[:, 2, 3].max() - 0.02
    before, after = t < PUSH, t >= PUSH
    print(
        f"{name}: centre of mass within {1e3 * error[before].max():.1f} mm of the plan before the push, ",
        end="",
    )
    print(f"{1e3 * error[after].max():.1f} mm after it, {1e3 * error[-1]:.1f} mm at the end; ", end="")
    print(f"foot lifted {1e3 * lifted:.0f} mm; cosine of the tilt at least {upright.min():.4f}")
    assert upright.min() > 0.95, "it fell"
    assert error[-1] < 0.02
    assert lifted > 0.04


def picture(runs: dict, path: Path) -> None:
    """Height of the centre of mass and of the lifted foot over time, as SVG."""
    wide, high, lines = 640, 220, []
    for number, (name, (t, q)) in enumerate(runs.items()):
        for color, z in zip(
            (("#1f6feb", "#d1541f"), ("#7aa7f5", "#f0a684"))[number],
            (robot.center_of_mass(q)[:, 2], robot.pose(q, "foot3")[:, 2, 3]),
            strict=True,
        ):
            places = " ".join(
                f"{wide * a / DURATION:.1f},{high - 650 * b:.1f}" for a, b in zip(t, z, strict=True)
            )
            lines.append(
                f'<polyline points="{places}" fill="none" stroke="{color}"><title>{name}</title></polyline>'
            )
    words = f'<text x="8" y="16" font-size="12">centre of mass and foot 3 [m]; push at {PUSH} s</text>'
    box = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}">{words}{"".join(lines)}</svg>'
    path.write_text(box + chr(10), encoding="utf-8")


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--picture", type=Path)
chosen = parser.parse_args()
push = Push(wrench=(0.0, 0.0, 0.0, 0.0, FORCE, 0.0), frame="body", begin=PUSH, end=PUSH + LONG - 1e-9)
result = simulate(
    Plant(robot, push=push), Law(by_kernel), stand, duration=DURATION, step=PERIOD, every=5, q=stand
)
judged("contact simulation", result.t, result.q)
runs = {"contact simulation": (result.t, result.q)}
try:
    import mujoco  # noqa: F401
except ImportError:
    print("MuJoCo is not installed, so the C code is not tried in it")
else:
    if shutil.which("cc") is None:
        print("no C compiler here, so the C code is not tried in MuJoCo")
    else:
        with tempfile.TemporaryDirectory() as folder:
            runs["MuJoCo, controller in C"] = in_mujoco(by_c(folder))
        judged("MuJoCo, controller in C", *runs["MuJoCo, controller in C"])
if chosen.picture:
    picture(runs, chosen.picture)
