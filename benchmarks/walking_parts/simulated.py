"""Recordings of robots that stand, sway and step in MuJoCo, with the noise of real sensors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

STEP = 0.001  # [s] of the simulation
EVERY = 2  # steps from sample to sample: 500 Hz
SETTLE = 1.0  # [s] before the recording begins
NOISE = {"position": 1e-4, "velocity": 0.01, "torque": 0.02, "gyro": 0.01, "accelerometer": 0.1}
"""Standard deviations: rad, rad/s, part of each torque's root mean square, rad/s, m/s²."""
PLACE, TURN = 1e-3, 2e-3  # of a state estimator: standard deviations of positions [m] and of quaternions
WRONG = 0.05  # of the contact flags

QUADRUPED = """
<mujoco model="quadruped"><compiler angle="radian"/><option cone="elliptic"/>
<default><joint damping="0.2" armature="0.005" frictionloss="0.1"/></default>
<worldbody><body name="base" pos="0 0 0.32"><freejoint/>
<inertial pos="0.01 0 0" mass="6" diaginertia="0.02 0.08 0.09"/>
<site name="imu" pos="-0.02 0 0.03"/>{legs}</body></worldbody></mujoco>
"""
LEG = """
<body name="{n}_hip" pos="{x} {y} 0"><joint name="{n}_a" axis="1 0 0" range="-1 1"/>
<inertial pos="0 {s} 0" mass="0.6" diaginertia="0.0006 0.0006 0.0005"/>
<body name="{n}_thigh" pos="0 {w} 0"><joint name="{n}_b" axis="0 1 0" range="-1.5 3.4"/>
<inertial pos="0 0 -0.04" mass="0.9" diaginertia="0.005 0.005 0.001"/>
<body name="{n}_calf" pos="0 0 -0.2"><joint name="{n}_c" axis="0 1 0" range="-2.7 -0.6"/>
<inertial pos="0 0 -0.1" mass="0.2" diaginertia="0.0015 0.0015 0.0001"/>
<geom name="{n}_ball" type="sphere" size="0.02" pos="0 0 -0.2"/></body></body></body>
"""


def small_quadruped() -> str:
    """A robot of our own, for trying the script without files of others."""
    legs = [("FL", 1, 1), ("FR", 1, -1), ("RL", -1, 1), ("RR", -1, -1)]
    text = "".join(LEG.format(n=n, x=0.18 * a, y=0.05 * b, s=0.005 * b, w=0.08 * b) for n, a, b in legs)
    return QUADRUPED.format(legs=text)


def without_meshes(path: str) -> str:
    """A file of MuJoCo without what needs other files."""
    text = Path(path).read_text()
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r"<mesh\b[^>]*/>", "", text)
    text = re.sub(r'<geom\b[^>]*\bmesh="[^>]*/>', "", text)
    return re.sub(r"<keyframe>.*?</keyframe>", "", text, flags=re.S)


@dataclass
class Body:
    """A robot in MuJoCo: its text, posture, gains, and the points of its feet, {name: (body, place, radius)}."""

    text: str
    stand: np.ndarray
    height: float
    gains: tuple[float, float]
    feet: dict[str, tuple[str, tuple[float, float, float], float]]
    steps: bool
    imu: str
    lift: float = 0.3  # of the second joint of a leg in a swing [rad]

    def model(self):
        """MuJoCo's model with a floor, motors and sensors."""
        import mujoco

        spec = mujoco.MjSpec.from_string(self.text)
        spec.option.timestep = STEP
        # else damping times the step is added to the inertia of every joint: another robot than that of the file
        spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_EULERDAMP
        spec.worldbody.add_geom(
            name="floor",
            type=mujoco.mjtGeom.mjGEOM_PLANE,
            size=[0, 0, 1],
            friction=[0.9, 0.02, 0.01],
            condim=3,
        )
        for actuator in list(spec.actuators):
            spec.delete(actuator)
        for sensor in list(spec.sensors):
            spec.delete(sensor)
        for joint in spec.joints:
            if joint.type == mujoco.mjtJoint.mjJNT_HINGE:
                motor = spec.add_actuator(name=joint.name, target=joint.name)
                motor.trntype = mujoco.mjtTrn.mjTRN_JOINT
                joint.actfrclimited = False
        for kind, name in (("GYRO", "gyro"), ("ACCELEROMETER", "accelerometer")):
            spec.add_sensor(
                name=name,
                type=getattr(mujoco.mjtSensor, f"mjSENS_{kind}"),
                objtype=mujoco.mjtObj.mjOBJ_SITE,
                objname=self.imu,
            )
        return spec.compile(), spec


def record(body: Body, seconds: float, seed: int) -> dict[str, np.ndarray]:
    """A noisy recording and what is behind it: arrays by the names of a log; ``true_*`` without noise."""
    import mujoco

    model, _ = body.model()
    data = mujoco.MjData(model)
    data.qpos[2], data.qpos[7:] = body.height, body.stand
    rng = np.random.default_rng(seed)
    motion = Motion(body, rng)
    feet = list(body.feet)
    owner = {model.body(name).id: k for k, (name, _, _) in enumerate(body.feet.values())}
    floor = model.geom("floor").id
    kept: dict[str, list[np.ndarray]] = {}
    weights, before = motion.weights(), None
    for count in range(round((SETTLE + seconds) / STEP)):
        t = count * STEP - SETTLE
        wanted, rate = motion.at(t)
        wanted = wanted + balance(body, data)
        data.ctrl[:] = body.gains[0] * weights * (wanted - data.qpos[7:]) + body.gains[1] * (
            rate - data.qvel[6:]
        )
        if t < 0 or count % EVERY:
            mujoco.mj_step(model, data)
            before = data.actuator_force.copy()
            continue
        mujoco.mj_forward(model, data)
        forces = np.zeros((len(feet), 3))
        for k in range(data.ncon):
            contact = data.contact[k]
            pair = [contact.geom1, contact.geom2]
            if floor in pair:
                link = model.geom_bodyid[pair[1 - pair.index(floor)]]
                if link in owner:
                    local = np.zeros(6)
                    mujoco.mj_contactForce(model, data, k, local)
                    forces[owner[link]] += contact.frame.reshape(3, 3).T @ local[:3]
        row = {
            "t": np.array([t]),
            "q": data.qpos[7:].copy(),
            "dq": data.qvel[6:].copy(),
            # torques are held for a step: about this moment their mean is that of the steps before and after
            "tau": 0.5 * (data.actuator_force + (data.actuator_force if before is None else before)),
            "base_pos": data.qpos[:3].copy(),
            "base_quat": data.qpos[3:7].copy(),
            "base_vel": data.qvel[:3].copy(),
            "true_acc": data.qacc.copy(),
            "true_spin": data.qvel[3:6].copy(),
            "imu_gyro": data.sensor("gyro").data.copy(),
            "imu_acc": data.sensor("accelerometer").data.copy(),
            "true_forces": forces.reshape(-1),
        }
        for key, value in row.items():
            kept.setdefault(key, []).append(value)
        mujoco.mj_step(model, data)
        if data.qpos[2] < 0.5 * body.height:
            raise RuntimeError(f"the robot fell at {t:.2f} s")
    found = {key: np.array(value) for key, value in kept.items()}
    found["t"] = found["t"][:, 0]
    return noisy(found, rng, len(feet))


def balance(body: Body, data) -> np.ndarray:
    """A correction of the posture by the tilt of the base: hips of a quadruped, ankles of a humanoid."""
    w, x, y, z = data.qpos[3:7]
    roll, pitch = 2 * (w * x + y * z), 2 * (w * y - z * x)
    rolls, pitches, _ = data.qvel[3:6]
    change = np.zeros(len(body.stand))
    if body.steps:
        change[0::3] -= 0.3 * roll + 0.03 * rolls
        change[1::3] += 0.3 * pitch + 0.03 * pitches
    else:
        for leg in (0, 6):
            change[leg + 4] += 1.0 * pitch + 0.15 * pitches
            change[leg + 5] += 1.0 * roll + 0.15 * rolls
    return change


def noisy(clean: dict[str, np.ndarray], rng: np.random.Generator, feet: int) -> dict[str, np.ndarray]:
    """The recording as sensors see it; what it was is kept as ``true_*``."""
    found = dict(clean)
    for key in ("q", "dq", "tau", "base_pos", "base_quat"):
        found[f"true_{key}"] = clean[key]

    def added(key: str, size) -> None:
        found[key] = clean[key] + size * rng.normal(size=clean[key].shape)

    added("q", NOISE["position"])
    added("dq", NOISE["velocity"])
    added("tau", NOISE["torque"] * np.sqrt((clean["tau"] ** 2).mean(axis=0)))
    added("imu_gyro", NOISE["gyro"])
    added("imu_acc", NOISE["accelerometer"])
    added("base_pos", PLACE)
    added("base_vel", 0.02)
    added("base_quat", TURN)
    found["base_quat"] = found["base_quat"] / np.linalg.norm(found["base_quat"], axis=1, keepdims=True)
    flags = np.linalg.norm(clean["true_forces"].reshape(-1, feet, 3), axis=2) > 1.0
    found["true_contacts"] = flags
    found["contacts"] = (flags ^ (rng.uniform(size=flags.shape) < WRONG)).astype(float)
    return found


class Motion:
    """Sums of sines of joints about a posture; quadrupeds lift diagonal pairs of feet in turn."""

    def __init__(self, body: Body, rng: np.random.Generator):
        self.body, n = body, len(body.stand)
        self.patterns = _quadruped_patterns() if body.steps else _humanoid_patterns(n)
        count = len(self.patterns)
        size = 0.05 if body.steps else 0.06
        self.amplitudes = size * rng.uniform(0.4, 1.0, (count, 3)) / np.array([1.0, 1.6, 2.4])
        self.frequencies = rng.uniform(0.15, 1.1, (count, 3))
        self.phases = rng.uniform(0, 2 * np.pi, (count, 3))
        self.gait = rng.uniform(1.3, 1.7)

    def weights(self) -> np.ndarray:
        return np.ones(len(self.body.stand))

    def at(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        ramp = np.clip((t + SETTLE) / SETTLE, 0.0, 1.0)
        w = 2 * np.pi * self.frequencies
        x = (self.amplitudes * np.sin(w * t + self.phases)).sum(axis=1)
        xd = (self.amplitudes * w * np.cos(w * t + self.phases)).sum(axis=1)
        q, qd = ramp * x @ self.patterns, ramp * xd @ self.patterns
        if self.body.steps and t > 0:
            for leg in range(4):
                s = (self.gait * t + 0.5 * (leg in (1, 2))) % 1.0
                if s < 0.35:  # swing
                    lift = np.sin(np.pi * s / 0.35) ** 2
                    q[3 * leg + 1 : 3 * leg + 3] += lift * self.body.lift * np.array([1.0, -2.0])
        return self.body.stand + q, qd


def _quadruped_patterns() -> np.ndarray:
    """Ways to sway: roll, pitch, height, forward and sideways, turn."""
    front, left = np.array([1, 1, -1, -1.0]), np.array([1, -1, 1, -1.0])
    rows = []
    for a, b, c in (
        (np.ones(4), 0, 0),
        (front, 0, 0),
        (0, np.ones(4), 0),
        (0, front, 0),
        (0, np.ones(4), -2 * np.ones(4)),
        (0, front, -2 * front),
        (0, left, -2 * left),
        (0, front * left, -2 * front * left),
        (0, left, 0),
    ):
        rows.append(np.stack([np.broadcast_to(x, 4) * np.ones(4) for x in (a, b, c)], axis=1).reshape(-1))
    return np.array(rows) * 0.9


def _humanoid_patterns(n: int) -> np.ndarray:
    """Squats and sway of two legs with six joints each, pitch, roll, yaw, knee, pitch, roll; others on their own."""
    legs = {"squat": (0, -1, 0, 0, 2, -1, 0), "roll": (1, 0, 1, 0, 0, 0, -1)}
    rows = []
    for sign, *pattern in legs.values():
        row = np.zeros(n)
        row[:6] = pattern
        row[6:12] = pattern
        rows.append(0.6 * row)
        assert sign in (0, 1)
    for k in range(12, n):
        row = np.zeros(n)
        row[k] = 4.0 if k > 14 else 1.0
        rows.append(row)
    return np.array(rows)


def go2(path: str) -> Body:
    feet = {leg: (f"{leg}_calf", (-0.002, 0.0, -0.213), 0.022) for leg in ("FL", "FR", "RL", "RR")}
    return Body(without_meshes(path), np.tile([0.0, 0.9, -1.8], 4), 0.29, (120.0, 3.0), feet, True, "imu")


def small() -> Body:
    feet = {leg: (f"{leg}_calf", (0.0, 0.0, -0.2), 0.02) for leg in ("FL", "FR", "RL", "RR")}
    return Body(small_quadruped(), np.tile([0.0, 0.8, -1.6], 4), 0.31, (150.0, 3.0), feet, True, "imu", 0.12)


def g1(path: str) -> Body:
    feet = {side: (f"{side}_ankle_roll_link", (0.0, 0.0, 0.0), 0.0) for side in ("left", "right")}
    leg = [-0.3, 0.0, 0.0, 0.6, -0.3, 0.0]
    arms = [0.2, 0.3, 0.0, 0.9, 0.0, 0.0, 0.0, 0.2, -0.3, 0.0, 0.9, 0.0, 0.0, 0.0]
    stand = np.array([*leg, *leg, 0.0, 0.0, 0.0, *arms])
    return Body(without_meshes(path), stand, 0.765, (400.0, 8.0), feet, False, "imu_in_pelvis")
