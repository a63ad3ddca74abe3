"""The same robots in MuJoCo, and the time of its steps."""

from __future__ import annotations

import os
import re
import tempfile
import time
import warnings

import numpy as np

import linkwise as lw
from contact_parts.robots import FRICTION, total_mass

STEP = 0.002


def in_mujoco(robot: lw.Robot, elliptic: bool = False, options: str = "", actuators: str = ""):
    """(model, data) of the same robot with a plane, and spheres at the candidates of contact.

    Args:
        robot: with contacts.
        elliptic: whether its friction cones are elliptic.
        options: further attributes of the geoms that touch.
        actuators: elements of <actuator>.
    """
    import mujoco

    handle, path = tempfile.mkstemp(suffix=".xml")
    os.close(handle)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lw.save(robot, path)
    with open(path) as file:
        text = file.read()
    os.remove(path)
    ground = f'<geom type="plane" size="0 0 1" friction="{FRICTION} 0 0" {options}/>'
    text = re.sub(r"<worldbody>", "<worldbody>" + ground, text, count=1)
    for contact in robot.contacts:
        body, pose = robot.locate(contact.frame)
        link = robot.moving_joints[body].child
        friction = f"{contact.friction} 0 0"
        for place, radius in _spheres(contact):
            numbers = " ".join(f"{x:.12g}" for x in pose.rotation @ np.array(place) + pose.translation)
            sphere = (
                f'<geom type="sphere" size="{radius}" pos="{numbers}" mass="0" friction="{friction}" '
                f'contype="2" conaffinity="1" priority="1" {options}/>'
            )
            text, count = re.subn(rf'(<body name="{link}"[^>]*>)', rf"\1{sphere}", text, count=1)
            assert count, link
    if actuators:
        text = text.replace("</mujoco>", f"<actuator>{actuators}</actuator></mujoco>")
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.timestep = STEP
    model.opt.cone = int(elliptic)
    return model, mujoco.MjData(model)


def _spheres(contact: lw.Contact):
    """Centres and radii; points and corners of boxes are spheres of a millimetre inside of them."""
    radius = contact.radius or 1e-3
    inside = 0.0 if contact.radius else 1e-3
    if contact.edges is None:
        return [((x, y, z + inside), radius) for x, y, z in contact.points or ()]
    half = [0.5 * edge - inside for edge in contact.edges]
    signs = [(a, b, c) for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)]
    centre = np.array(contact.offset)
    return [(tuple(centre + np.array(sign) * half), radius) for sign in signs]


def time_of_mujoco(robot: lw.Robot, stand: np.ndarray, rounds: int, elliptic: bool) -> tuple[float, float]:
    """(µs a step while the robot stands and is kicked, mean number of contacts)."""
    import mujoco

    model, data = in_mujoco(robot, elliptic)
    rng = np.random.default_rng(0)
    q = np.concatenate([robot.neutral[:7], stand])
    height = -robot.contact_gaps(q).min()
    limit = 0.15 * 9.81 * total_mass(robot)
    model.jnt_stiffness[1:], model.qpos_spring[7:], model.dof_damping[6:] = 4.0 * limit, stand, 0.1 * limit
    best, contacts = np.inf, []
    for _ in range(rounds):
        mujoco.mj_resetData(model, data)
        data.qpos[:3], data.qpos[3], data.qpos[7:] = (0.0, 0.0, q[2] + height), 1.0, stand
        mujoco.mj_step(model, data, nstep=200)
        spent = 0.0
        for _ in range(20):
            data.qfrc_applied[6:] = 0.2 * limit * rng.normal(size=len(stand))
            start = time.process_time()
            mujoco.mj_step(model, data, nstep=20)
            spent += time.process_time() - start
            contacts.append(data.ncon)
        best = min(best, spent / 400)
    return best * 1e6, float(np.mean(contacts))
