"""Robots under predictive control walk in MuJoCo and in the contact simulation, and are pushed once.

    python benchmarks/walking.py --go2 go2.xml [--robots solo12 anymal] [--seconds 10] [--push 6] [--simulations mujoco]
    python benchmarks/walking.py --robots g1_legs --velocity 0.2 --seconds 4 --push 0

A plan at 50 Hz by real-time iteration, followed from 20 ms after its readings on, and a whole-body law at 1 kHz
(``linkwise.optimal.Walking``). The push, in N·s, is to the left and lasts 0.1 s in the middle of the walk. Printed: how
far the robot came, its mean speed after the first second, the least cosine of its tilt, and the processor time of
planning and law for a second of the walk; below 1, one core keeps up. ``--go2`` is the Go2's file in MuJoCo's own
collection; other robots are those of example-robot-data, in MuJoCo as this project writes them. ``g1`` is the Unitree
G1 with 29 joints, ``g1_legs`` the same with its waist and arms locked.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw
from linkwise import optimal
from linkwise.simulate import Plant, Push, simulate

PERIOD, LONG = 0.001, 0.1  # of the whole-body law, of the push [s]
FRICTION = 0.8  # of the ground; controllers count on 0.6


@dataclass(frozen=True)
class Quadruped:
    """What is known of a robot beside its file: frames of the feet, joints in which it stands, radius of the feet."""

    feet: tuple[str, ...]
    joints: tuple[float, ...]
    radius: float
    torque: float | tuple[float, ...]
    files: tuple[str, ...] = ()


ROBOTS = {
    "solo12": Quadruped(
        ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"),
        (0.0, 0.8, -1.6, 0.0, 0.8, -1.6, 0.0, -0.8, 1.6, 0.0, -0.8, 1.6), 0.016, 2.7, ("solo12.urdf",),
    ),
    "anymal": Quadruped(
        ("LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT"),
        (0.0, 0.7, -1.2, 0.0, -0.7, 1.2, 0.0, 0.7, -1.2, 0.0, -0.7, 1.2), 0.03, 60.0, ("anymal.urdf",),
    ),
    "hyq": Quadruped(
        ("lf_foot", "rf_foot", "lh_foot", "rh_foot"),
        (0.0, 0.75, -1.5, 0.0, 0.75, -1.5, 0.0, -0.75, 1.5, 0.0, -0.75, 1.5), 0.02, 150.0, ("hyq_no_sensors.urdf",),
    ),
}  # fmt: skip
SOLE = ((-0.05, 0.025, -0.03), (-0.05, -0.025, -0.03), (0.12, 0.03, -0.03), (0.12, -0.03, -0.03))
G1 = {
    "hip_pitch": -0.3,
    "knee": 0.6,
    "ankle_pitch": -0.3,
    "left_shoulder_roll": 0.2,
    "right_shoulder_roll": -0.2,
}
"""Joints in which the G1 stands; the others at zero."""
HUMANOIDS = {"g1": False, "g1_legs": True}
"""Whether waist and arms are locked."""
GO2 = Quadruped((), (0.0, 0.9, -1.8) * 4, 0.022, (23.7, 23.7, 45.43) * 4)


def from_example_robot_data(name: str) -> lw.Robot:
    """A quadruped of example-robot-data with its feet as contacts."""
    known = ROBOTS[name]
    files = importlib.metadata.distribution("example-robot-data").files or []
    path = next(Path(str(file.locate())) for file in files if file.name in known.files)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.ModelWarning)
        robot = lw.load(path, base="floating")
    return robot.with_contacts(
        [lw.Contact(foot, radius=known.radius, friction=FRICTION) for foot in known.feet]
    )


def g1(locked: bool) -> tuple[lw.Robot, Quadruped]:
    """The G1 of example-robot-data with the corners of its soles as contacts."""
    files = importlib.metadata.distribution("example-robot-data").files or []
    path = next(Path(str(file.locate())) for file in files if file.name == "g1_29dof_rev_1_0.urdf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.ModelWarning)
        robot = lw.load(path, base="floating")
    stand = {
        joint.name: next((angle for key, angle in G1.items() if key in joint.name), 0.0)
        for joint in robot.coordinate_joints[1:]
    }
    if locked:
        legs = ("hip", "knee", "ankle")
        above = {name: stand.pop(name) for name in [*stand] if not any(part in name for part in legs)}
        robot = robot.lock(above)
    links = [f"{side}_ankle_roll_link" for side in ("left", "right")]
    robot = robot.with_contacts(
        [lw.Contact(link, points=SOLE, radius=0.005, friction=FRICTION) for link in links]
    )
    return robot, Quadruped((), tuple(stand.values()), 0.005, tuple(robot.effort_limits[6:]))


def go2(path: str) -> lw.Robot:
    """The Go2 of MuJoCo's collection with its feet as contacts."""
    place, legs = (-0.002, 0.0, -0.213), ("FL", "FR", "RL", "RR")
    given: dict[str, Any] = {"offset": place, "radius": GO2.radius, "friction": FRICTION}
    feet = [lw.Contact(f"{leg}_calf", name=f"{leg}_foot", **given) for leg in legs]
    return lw.load(path).with_contacts(feet)


def controller(robot: lw.Robot, known: Quadruped, **options: Any) -> optimal.Walking:
    """The walking controller of a robot."""
    torque = np.full(robot.dof, 1e6)
    torque[6:] = known.torque
    return optimal.Walking(robot, stand=known.joints, torque_limits=torque, **options)


class Timed:
    """A controller and its processor time; the first call, which compiles, is not counted."""

    def __init__(self, walk: optimal.Walking):
        self.walk, self.spent = walk, 0.0
        walk(0.0, walk.feet.stand, np.zeros(walk.robot.dof))
        walk.reset()

    def __call__(self, t: float, q: Any, qd: Any, reference: Any = None) -> np.ndarray:
        begin = time.process_time()
        tau = self.walk(float(t), np.asarray(q), np.asarray(qd))
        self.spent += time.process_time() - begin
        return tau


def in_simulation(timed: Timed, robot: lw.Robot, seconds: float, push: float) -> np.ndarray:
    """Positions every 10 ms in the contact simulation of this project."""
    stand, base = timed.walk.feet.stand, robot.coordinate_joints[0].child
    begin = 0.5 * seconds
    wrench = (0.0, 0.0, 0.0, 0.0, push / LONG, 0.0)
    plant = Plant(robot, push=Push(wrench=wrench, frame=base, begin=begin, end=begin + LONG - 1e-9))
    return simulate(plant, timed, stand, duration=seconds, step=PERIOD, every=10, q=stand).q


def mujoco_model(robot: lw.Robot, file: str | None) -> Any:
    """The robot in MuJoCo: its own file without meshes, or ours with spheres as feet; and a floor."""
    import mujoco

    if file is not None:
        from walk_in_mujoco import loaded

        return loaded(file)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.ExportWarning)
        lw.save(robot.with_contacts(()), Path(folder, "robot.xml"))
        spec = mujoco.MjSpec.from_file(str(Path(folder, "robot.xml")))
    slide = [FRICTION, 0.005, 1e-4]
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[50, 50, 0.1], friction=slide)
    for contact in robot.contacts:
        k, pose = robot.locate(contact.frame)
        for point in contact.points or [contact.offset]:
            center = pose.rotation @ np.asarray(point) + pose.translation
            spec.body(robot.moving_joints[k].child).add_geom(
                type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[contact.radius, 0, 0], pos=center.tolist(), friction=slide,
                contype=2, conaffinity=1, mass=0.0,
            )  # fmt: skip
    model = spec.compile()
    model.opt.timestep, model.opt.cone = PERIOD, mujoco.mjtCone.mjCONE_ELLIPTIC
    return model


def in_mujoco(timed: Timed, model: Any, seconds: float, push: float) -> np.ndarray:
    """Positions every 10 ms in MuJoCo."""
    import mujoco

    data, stand, rows = mujoco.MjData(model), timed.walk.feet.stand, []
    data.qpos[:] = [*stand[:3], stand[6], *stand[3:6], *stand[7:]]
    body, turn, begin = int(model.jnt_bodyid[0]), np.zeros(9), 0.5 * seconds
    for step in range(round(seconds / PERIOD)):
        t = step * PERIOD
        q = np.concatenate([data.qpos[:3], data.qpos[4:7], data.qpos[3:4], data.qpos[7:]])
        mujoco.mju_quat2Mat(turn, data.qpos[3:7])
        qd = np.concatenate([data.qvel[3:6], turn.reshape(3, 3).T @ data.qvel[:3], data.qvel[6:]])
        data.qfrc_applied[6:] = timed(t, q, qd)[6:]
        data.xfrc_applied[body, 1] = push / LONG if begin <= t < begin + LONG else 0.0
        if step % 10 == 0:
            rows.append(q)
            if tilt(q) < 0.3:
                break
        mujoco.mj_step(model, data)
    return np.array(rows)


def tilt(q: np.ndarray) -> Any:
    """Cosine of the angle between the trunk's vertical and the world's."""
    return 1.0 - 2.0 * (q[..., 3] ** 2 + q[..., 4] ** 2)


def judged(q: np.ndarray, stand: np.ndarray, seconds: float) -> tuple[bool, float, float]:
    """(whether it did not fall, mean speed after the first second [m/s], least cosine of the tilt)."""
    fell = len(q) < round(seconds / PERIOD) // 10 or tilt(q).min() < 0.5 or q[:, 2].min() < 0.5 * stand[2]
    first = min(100, len(q) // 2)
    speed = (q[-1, 0] - q[first, 0]) / (0.01 * max(len(q) - 1 - first, 1))
    return not fell, float(speed), float(tilt(q).min())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--go2", help="go2.xml of MuJoCo's collection")
    parser.add_argument("--robots", nargs="*", default=[], choices=(*ROBOTS, *HUMANOIDS))
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--velocity", type=float, default=0.5, help="forward [m/s]")
    parser.add_argument(
        "--push", type=float, default=6.0, help="[N·s] for a robot of 15 kg, others by their mass"
    )
    parser.add_argument(
        "--simulations", nargs="*", default=["mujoco", "linkwise"], choices=("mujoco", "linkwise")
    )
    parser.add_argument("--gait", default="trot")
    given = parser.parse_args()
    chosen: dict[str, tuple[lw.Robot, Quadruped, str | None]] = {}
    if given.go2:
        chosen["go2"] = (go2(given.go2), GO2, given.go2)
    for name in given.robots:
        known = g1(HUMANOIDS[name]) if name in HUMANOIDS else (from_example_robot_data(name), ROBOTS[name])
        chosen[name] = (*known, None)
    if not chosen:
        print("no robot: give --go2 FILE or --robots")
    for name, (robot, known, file) in chosen.items():
        mass = sum(link.inertia.mass for link in robot.links)
        push = given.push * mass / 15.2
        begin = time.process_time()
        options: dict[str, Any] = {"gait": given.gait, "velocity": (given.velocity, 0.0, 0.0)}
        if name in HUMANOIDS:
            options |= {"gait": optimal.Gait([[0], [1]], 0.4, 0.1), "begin": 0.5, "horizon": 40}
        timed = Timed(controller(robot, known, **options))
        print(
            f"{name}: {mass:.1f} kg, push of {push:.1f} N·s, compiled in {time.process_time() - begin:.1f} s"
        )
        for simulation in given.simulations:
            timed.walk.reset()
            timed.spent = 0.0
            if simulation == "mujoco":
                try:
                    model = mujoco_model(robot, file)
                except (ImportError, lw.LinkwiseError) as error:
                    print(f"  not in MuJoCo: {error}")
                    continue
                q = in_mujoco(timed, model, given.seconds, push)
            else:
                q = in_simulation(timed, robot, given.seconds, push)
            stood, speed, least = judged(q, timed.walk.feet.stand, given.seconds)
            print(
                f"  {simulation:9} {'walked' if stood else 'FELL'} {q[-1, 0]:.2f} m in {0.01 * len(q):.1f} s, "
                f"{speed:.3f} m/s, {q[-1, 1]:+.2f} m aside, cosine of the tilt at least {least:.3f}, processor time "
                f"{timed.spent / (0.01 * len(q)):.2f} s per second, {timed.walk.failures} of {timed.walk.plans} plans "
                "not used"
            )


if __name__ == "__main__":
    main()
