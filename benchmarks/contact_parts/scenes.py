"""Scenes of the benchmarks of contact: the Panda with a gripper that holds a cube, and a stack of boxes."""

from __future__ import annotations

import os
import re
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import linkwise as lw

STEP = 0.002
FRICTION = 0.8
EDGE = 0.04  # of the cube [m]
GRIP = 20.0  # force of each finger [N]
ARM = (0.0, -0.3, 0.0, -2.2, 0.0, 2.0, 0.785)
PAD = (0.018, 0.008, 0.018)
PAD_AT = (0.0, 0.004, 0.045)
Law = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Scene:
    """A scene, where it starts, its control law over batches, sizes of its kicks, and its geoms in MuJoCo by body."""

    robot: lw.Robot
    start: np.ndarray
    law: Law
    kicks: np.ndarray
    geoms: dict[str, str]


def gripper() -> Scene:
    """The Panda with a hand, two fingers with pads, and a cube in the air between them."""
    arm = lw.load("panda")
    links = [*arm.links, lw.Link("hand", lw.Inertia.from_com(0.73, (-0.01, 0, 0.03), (1e-3, 2.5e-3, 1.7e-3)))]
    turn = lw.Transform.from_rpy((0, 0, 0), (0, 0, -np.pi / 4))
    joints = [*arm.joints, lw.Joint("hand_joint", "fixed", "panda_link8", "hand", turn)]
    pads = []
    for side, yaw in (("left", 0.0), ("right", np.pi)):
        links.append(lw.Link(f"{side}_finger", lw.Inertia.from_com(0.1, (0, 0.01, 0.03), (8e-5, 8e-5, 2e-5))))
        place = lw.Transform.from_rpy((0, 0, 0.0584), (0, 0, yaw))
        range_ = lw.Limits(lower=0.0, upper=0.04)
        joints.append(
            lw.Joint(
                f"{side}_joint", "prismatic", "hand", f"{side}_finger", place, (0.0, 1.0, 0.0), limits=range_
            )
        )
        pads.append(lw.Shape.box(f"{side}_finger", PAD, offset=PAD_AT, friction=FRICTION))
    robot = lw.Robot("panda_gripper", links, joints).with_contacts(pads)
    cube = lw.Body.box((EDGE, EDGE, EDGE), mass=0.1, name="cube", friction=FRICTION)
    touching = [lw.Contact(f"{side}_finger", "cube") for side in ("left", "right")]
    scene = lw.Scene([robot, cube], contacts=touching)
    hand = robot.pose(np.array([*ARM, 0.02, 0.02]), frame="hand")
    middle = hand @ np.array([0.0, 0.0, 0.0584 + PAD_AT[2], 1.0])
    turned = lw.Transform(hand[:3, :3], middle[:3])
    q = scene.neutral.copy()
    q[:9] = [*ARM, 0.5 * EDGE, 0.5 * EDGE]
    q[9:12], q[12:16] = middle[:3], _quaternion(turned.rotation)
    stiff = np.array([400.0] * 4 + [50.0, 40.0, 10.0])
    damping = np.array([20.0] * 4 + [1.0, 1.0, 0.2])

    def law(x: np.ndarray, v: np.ndarray) -> np.ndarray:
        tau = scene.gravity_torques(x)
        tau[..., 9:] = 0.0
        tau[..., :7] += stiff * (q[:7] - x[..., :7]) - damping * v[..., :7]
        tau[..., 7:9] -= GRIP + 5.0 * v[..., 7:9]
        return tau

    kicks = np.array([8.0] * 4 + [4.0] * 3 + [3.0, 3.0] + [0.01] * 3 + [0.3] * 3)
    size, at = _text(0.5 * np.array(PAD)), _text(PAD_AT)
    pad = f'<geom type="box" size="{size}" pos="{at}" mass="0" contype="1" conaffinity="0" {_rubs()}/>'
    box = f'<geom type="box" size="{_text([EDGE / 2] * 3)}" mass="0" contype="0" conaffinity="3" {_rubs()}/>'
    return Scene(scene, q, law, kicks, {"left_finger": pad, "right_finger": pad, "cube": box})


def stack(count: int = 4) -> Scene:
    """Boxes on each other and on the ground."""
    edges = (0.2, 0.2, 0.1)
    bodies = [lw.Body.box(edges, mass=1.0, name=f"box{k}", friction=FRICTION) for k in range(count)]
    touching = [lw.Contact("box0"), *(lw.Contact(f"box{k + 1}", f"box{k}") for k in range(count - 1))]
    scene = lw.Scene([*bodies, lw.Ground(friction=FRICTION)], contacts=touching)
    q = scene.neutral.copy()
    for k in range(count):
        q[7 * k + 2] = 0.05 + 0.1 * k
    size = _text(0.5 * np.array(edges))
    box = f'<geom type="box" size="{size}" mass="0" contype="3" conaffinity="3" {_rubs()}/>'
    kicks = np.tile([0.3] * 3 + [5.0] * 3, count)
    return Scene(scene, q, lambda x, v: np.zeros_like(v), kicks, {f"box{k}": box for k in range(count)})


SCENES = {"gripper": gripper, "stack": stack}


def scene_states(scene: Scene, count: int, steps: int = 400):
    """(q, qd, tau, impulses of the step before) of scenes that are kicked every 40 ms, half of them by a fifth."""
    rng = np.random.default_rng(0)
    robot = scene.robot
    kernel = robot.kernel("contact_step", inputs="start_impulse")
    q, qd = np.repeat(scene.start[None], count, 0), np.zeros((count, robot.dof))
    sizes = np.where(np.arange(count) % 2, 0.2, 1.0)[:, None]
    impulse, push = np.zeros((count, 3 * len(robot.contact_names))), np.zeros((count, robot.dof))
    kept = []
    for k in range(steps):
        if k % 20 == 0:
            push = sizes * scene.kicks * rng.normal(size=(count, robot.dof))
        tau = scene.law(q, qd) + (push if k % 60 < 20 else 0.0)
        if k % 10 == 5:
            kept.append((q, qd, tau, impulse))
        q, qd, impulse = kernel(q, qd, tau, impulse)
        impulse = impulse.reshape(count, -1)
    return tuple(np.concatenate(part) for part in zip(*kept, strict=True))


def scene_in_mujoco(scene: Scene, elliptic: bool = False):
    """(model, data, coordinates) of the same scene in MuJoCo, with boxes as geoms."""
    import mujoco

    from linkwise.robot.engine_coordinates import coordinates

    handle, path = tempfile.mkstemp(suffix=".xml")
    os.close(handle)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lw.save(scene.robot, path)
    with open(path) as file:
        text = file.read()
    os.remove(path)
    ground = f'<geom type="plane" size="0 0 1" contype="2" conaffinity="0" {_rubs()}/>'
    text = re.sub(r"<worldbody>", "<worldbody>" + ground, text, count=1)
    for body, geom in scene.geoms.items():
        text, found = re.subn(rf'(<body name="{body}"[^>]*>)', rf"\1{geom}", text, count=1)
        assert found, body
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.timestep, model.opt.cone = STEP, int(elliptic)
    return model, mujoco.MjData(model), coordinates(scene.robot, "mujoco", model)


def time_of_scene_in_mujoco(scene: Scene, rounds: int, elliptic: bool) -> tuple[float, float]:
    """(µs a step while the scene is kicked, mean number of contacts)."""
    import mujoco

    model, data, between = scene_in_mujoco(scene, elliptic)
    rng = np.random.default_rng(0)
    best, contacts = np.inf, []
    for _ in range(rounds):
        mujoco.mj_resetData(model, data)
        data.qpos[:] = between.positions(scene.start)
        spent = 0.0
        for k in range(400):
            q = between.own_positions(data.qpos)
            tau = scene.law(q, between.own_velocities(q, data.qvel))
            if k % 60 < 20:
                tau = tau + 0.2 * scene.kicks * rng.normal(size=len(tau))
            data.qfrc_applied[:] = between.torques(q, tau)
            start = time.process_time()
            mujoco.mj_step(model, data)
            spent += time.process_time() - start
            contacts.append(data.ncon)
        best = min(best, spent / 400)
    return best * 1e6, float(np.mean(contacts))


def _rubs() -> str:
    return f'condim="3" friction="{FRICTION} 0 0"'


def _text(numbers) -> str:
    return " ".join(f"{x:.12g}" for x in numbers)


def _quaternion(rotation: np.ndarray) -> np.ndarray:
    """(x, y, z, w) of a rotation with a real part above zero, or the largest component first."""
    trace = [
        1.0 + s @ np.diagonal(rotation) for s in np.array([(1, -1, -1), (-1, 1, -1), (-1, -1, 1), (1, 1, 1)])
    ]
    k = int(np.argmax(trace))
    r = rotation
    w = np.array([r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]])
    if k == 3:
        found = np.array([*w, trace[3]])
    else:
        i, j = (k + 1) % 3, (k + 2) % 3
        found = np.zeros(4)
        found[k], found[i], found[j], found[3] = trace[k], r[i, k] + r[k, i], r[j, k] + r[k, j], w[k]
    return found / np.linalg.norm(found)
