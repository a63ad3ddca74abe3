"""A small robot with four legs, its motion on any feet, and recordings of it: fast to compile, fully known."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise.identify.walking import rotations
from linkwise.identify.walking.contacts import feet_of, jacobians

URDF = """<robot name="walker"><link name="trunk">{body}</link>{legs}</robot>"""
INERTIAL = (
    '<inertial><origin xyz="{c}"/><mass value="{m}"/>'
    '<inertia ixx="{x}" ixy="0" ixz="0" iyy="{y}" iyz="0" izz="{z}"/></inertial>'
)
LEG = """
<joint name="{n}_hip" type="revolute"><parent link="trunk"/><child link="{n}_thigh"/><origin xyz="{x} {y} 0"/>
<axis xyz="1 0 0"/><limit lower="-2" upper="2" effort="50" velocity="20"/></joint><link name="{n}_thigh">{thigh}</link>
<joint name="{n}_knee" type="revolute"><parent link="{n}_thigh"/><child link="{n}_shank"/><origin xyz="0 0 -0.2"/>
<axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="50" velocity="20"/></joint><link name="{n}_shank">{shank}</link>
<joint name="{n}_ankle" type="fixed"><parent link="{n}_shank"/><child link="{n}_foot"/><origin xyz="0.02 0 -0.22"/>
</joint><link name="{n}_foot"/>
"""
FEET = ("FL", "FR", "RL", "RR")
FIELDS = ("t", "q", "dq", "tau", "base_pos", "base_quat", "base_vel", "imu_gyro", "imu_acc", "contacts")


def urdf() -> str:
    """The robot as a file."""
    places = [(0.2, 0.12), (0.2, -0.12), (-0.2, 0.12), (-0.2, -0.12)]
    thigh = INERTIAL.format(c="0 0.01 -0.08", m=0.8, x=0.004, y=0.0045, z=0.001)
    shank = INERTIAL.format(c="0.005 0 -0.1", m=0.3, x=0.0012, y=0.0012, z=0.0001)
    legs = "".join(
        LEG.format(n=n, x=x, y=y, thigh=thigh, shank=shank) for n, (x, y) in zip(FEET, places, strict=True)
    )
    return URDF.format(body=INERTIAL.format(c="0.01 0 0.02", m=6.0, x=0.03, y=0.08, z=0.09), legs=legs)


def walker_of(folder: Path) -> lw.Robot:
    """The robot from its file, which is written into ``folder``."""
    path = folder / "walker.urdf"
    path.write_text(urdf())
    return lw.load(path, base="floating")


def true_robot(robot: lw.Robot, seed: int = 0) -> lw.Robot:
    """Other bodies, with friction and rotors."""
    rng = np.random.default_rng(seed)
    given = {}
    for k, body in enumerate(robot.labelled_bodies()):
        factor = rng.uniform(0.75, 1.25)
        values = factor * np.asarray(body.parameters)
        given |= dict(zip(robot.parameter_labels[10 * k : 10 * k + 10], values.tolist(), strict=True))
    for name in robot.joint_names[1:]:
        given |= {
            f"{name}.viscous_friction": 0.1,
            f"{name}.coulomb_friction": 0.15,
            f"{name}.friction_speed": 0.02,
        }
        given[f"{name}.rotor_inertia"] = 0.004
    return robot.with_parameters(given)


def waves(rng: np.random.Generator, t: np.ndarray, count: int, size: float) -> list[np.ndarray]:
    """Sums of sines (N, count) with their first and second derivatives."""
    found = [np.zeros((len(t), count)) for _ in range(3)]
    for _ in range(4):
        w, p = 2 * np.pi * rng.uniform(0.2, 1.4, count), rng.uniform(0, 2 * np.pi, count)
        a = size * rng.normal(size=count)
        phase = w * t[:, None] + p
        for x, part in zip(found, (np.sin(phase), w * np.cos(phase), -(w**2) * np.sin(phase)), strict=True):
            x += a * part
    return found


def recording(
    truth: lw.Robot,
    *,
    seconds: float = 8.0,
    rate: float = 250.0,
    seed: int = 1,
    noise: float = 0.0,
    wrong: float = 0.0,
    hanging: bool = False,
    carrying: float = 0.76,
) -> dict[str, np.ndarray]:
    """Arrays of a recording: one foot after the other swings, or all of them while the base is held by something.

    ``carrying`` is the share of the time in which a foot stands; from 1 on, none of them lifts."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(seconds * rate)) / rate
    joints = truth.dof - 6
    q, qd, qdd = waves(rng, t, joints, 0.2)
    place, speed, pull = waves(rng, t, 3, 0.03)
    half = waves(rng, t, 3, 0.06)
    if hanging:
        place, speed, pull = (0.0 * x for x in (place, speed, pull))
        half = [half[0][:1] + 0.0 * half[0], 0.0 * half[1], 0.0 * half[2]]
    ends = [
        np.concatenate([x, np.full((len(t), 1), one)], axis=1)
        for x, one in zip(half, (1.0, 0.0, 0.0), strict=True)
    ]
    u, ud, udd = unit_curve(*ends)
    spin, spin_rate = rotations.angular_velocity(u, ud), rotations.angular_velocity(u, udd)
    R = rotations.matrices(u)
    down = rotations.turned_back(R, np.broadcast_to(truth.gravity, (len(t), 3)))
    acceleration = rotations.turned_back(R, pull)
    states = (
        np.concatenate([place, u, q], axis=1),
        np.concatenate([spin, np.zeros_like(spin), qd], axis=1),
        np.concatenate([spin_rate, acceleration, qdd], axis=1),
    )
    needed = np.asarray(truth.inverse_dynamics(*states))
    feet = feet_of(truth)
    touching = (0.9 * t[:, None] + np.arange(len(feet)) / len(feet)) % 1.0 < carrying
    if hanging:
        touching[:] = False
    up = np.broadcast_to((0.0, 0.0, 1.0), (len(t), 3))
    J = np.concatenate(
        [jacobians(truth, f, states[0], up) * touching[:, k, None, None] for k, f in enumerate(feet)], 2
    )
    force = np.zeros(J.shape[::2])
    if not hanging:
        carries = np.linalg.pinv(J[:, :6])
        inner = 5.0 * waves(rng, t, J.shape[2], 1.0)[0][..., None]  # feet also push against each other
        force = (carries @ (needed[:, :6, None] - J[:, :6] @ inner) + inner)[..., 0]
    tau = (needed - (J @ force[..., None])[..., 0])[:, 6:]
    flags = touching ^ (rng.uniform(size=touching.shape) < wrong)
    size = noise * np.sqrt((tau**2).mean(axis=0))
    return {
        "t": t,
        "q": q,
        "dq": qd + noise * 0.02 * rng.normal(size=q.shape),
        "tau": tau + size * rng.normal(size=tau.shape),
        "base_pos": place,
        "base_quat": u,
        "base_vel": speed,
        "imu_gyro": spin + noise * 0.3 * rng.normal(size=spin.shape),
        "imu_acc": acceleration - down + noise * 3.0 * rng.normal(size=spin.shape),
        "contacts": flags.astype(float),
        "touching": touching.astype(float),
        "states": np.concatenate(states, axis=1),
    }


def unit_curve(x: np.ndarray, xd: np.ndarray, xdd: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x / ‖x‖ with its derivatives."""
    n = np.sqrt((x**2).sum(axis=1, keepdims=True))
    nd = (x * xd).sum(axis=1, keepdims=True) / n
    ndd = ((xd**2).sum(axis=1, keepdims=True) + (x * xdd).sum(axis=1, keepdims=True) - nd**2) / n
    return x / n, xd / n - x * nd / n**2, xdd / n - 2 * xd * nd / n**2 - x * ndd / n**2 + 2 * x * nd**2 / n**3
