"""A quadruped for ``held_torques.py`` that pushes itself around on its feet, faster than its joints may turn."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise import control
from whole_body_parts.four_legs import four_legs, round_feet
from whole_body_parts.held_sample import PARTS, PERIOD

RADIUS, HEIGHT, SPEED, EVERY = 0.02, 0.30, 2.0, 25
FINER = 16


class Legs:
    """The robot, its controller, and targets of its centre of mass that change."""

    def __init__(self):
        limits = {"lower": -2.6, "upper": 2.6, "velocity": SPEED, "effort": 40.0}
        self.robot = four_legs(**limits).with_contacts(round_feet(RADIUS))
        knee = 2.0 * np.arccos((HEIGHT - RADIUS) / 0.4)
        self.stand = np.array([0.0, 0.0, HEIGHT, 0.0, 0.0, 0.0, 1.0, *([0.0, 0.5 * knee, -knee] * 4)])
        tasks = [
            control.CenterOfMassTask(frequency=30.0),
            control.PoseTask("body", "turn", weight=0.3, frequency=30.0),
            control.PostureTask(weight=1e-3, frequency=8.0),
            control.ForceTask(weight=1e-5),
        ]
        supports = [
            control.Support(f"foot{leg}", radius=RADIUS, friction=0.6, smallest=1.0) for leg in range(4)
        ]
        self.law = control.WholeBody(
            self.robot, tasks, control.MotionLimits(period=PERIOD), supports=supports, damping=10.0
        )
        self.home, self.start, self.rng = self.law.targets(self.stand), None, np.random.default_rng(0)

    def sample(self, k: int, q: np.ndarray, qd: np.ndarray) -> control.WholeBodySolution:
        """Sample k of one state."""
        if k % EVERY == 0:
            self.targets = self.home.copy()
            part = self.law.target_slices()[0][0]
            self.targets[part] += self.rng.uniform(-1.0, 1.0, 3) * (0.08, 0.06, 0.05)
        solution, self.start = self.law.solve(q, qd, self.targets, start=self.start)
        return solution


def in_simulation(samples: int) -> tuple[np.ndarray, np.ndarray]:
    """(largest speed in a sample as a share of the limit, less one; what was told), in the contact simulation."""
    legs = Legs()
    q, qd, excess, told = legs.stand, np.zeros(legs.robot.dof), [], []
    for k in range(samples):
        solution, most = legs.sample(k, q, qd), 0.0
        for _ in range(PARTS):
            q, qd, _ = legs.robot.contact_step(q, qd, solution.tau, step=PERIOD / PARTS)
            most = max(most, np.abs(qd[6:]).max())
        excess.append(most / SPEED - 1.0)
        told.append(float(solution.beyond))
    return np.array(excess), np.array(told)


def in_mujoco(samples: int) -> tuple[np.ndarray, np.ndarray]:
    """The same in MuJoCo, whose contacts are springs: stiff ones and a finer grid."""
    import mujoco

    legs = Legs()
    with tempfile.TemporaryDirectory() as folder:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lw.ExportWarning)  # MJCF has no limits of speed
            lw.save(legs.robot.with_contacts(()), Path(folder, "legs.xml"))
        spec = mujoco.MjSpec.from_file(str(Path(folder, "legs.xml")))
    touching = {"friction": [0.8, 0.005, 1e-4], "solref": [0.0005, 1.0], "condim": 3}
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 0.1], **touching)
    for leg in range(4):
        spec.body(f"knee{leg}").add_geom(
            type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[RADIUS, 0, 0], pos=[0, 0, -0.2], contype=2, conaffinity=1,
            mass=0.0, **touching,
        )  # fmt: skip
    model = spec.compile()
    model.opt.timestep = PERIOD / FINER
    model.opt.cone, model.opt.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 100.0  # friction that does not creep
    data = mujoco.MjData(model)
    data.qpos[:] = [*legs.stand[:3], legs.stand[6], *legs.stand[3:6], *legs.stand[7:]]
    body = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, "body")
    mujoco.mj_forward(model, data)
    excess, told = [], []
    for k in range(samples):
        q = np.concatenate([data.qpos[:3], data.qpos[4:7], data.qpos[3:4], data.qpos[7:]])
        R, v, most = data.xmat[body].reshape(3, 3), data.qvel, 0.0
        solution = legs.sample(k, q, np.concatenate([v[3:6], R.T @ v[:3], v[6:]]))
        data.qfrc_applied[6:] = solution.tau[6:]
        for _ in range(FINER):
            mujoco.mj_step(model, data)
            most = max(most, np.abs(data.qvel[6:]).max())
        excess.append(most / SPEED - 1.0)
        told.append(float(solution.beyond))
    return np.array(excess), np.array(told)
