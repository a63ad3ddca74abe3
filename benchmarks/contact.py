"""Steps with contact beside MuJoCo's, in one run on one core: quadrupeds whose four feet touch a plane.

For each robot: operations; microseconds a step in a batch of states that move (the best of ``--rounds``), for one state
called from Python, and of ``mj_step`` for the same masses, joints, feet, friction and step; how many times faster;
quantiles of the residual of the laws over states of robots that are kicked and fall; seconds of processor time of the
first call. MuJoCo's contact is soft (default solver and cone; ``--elliptic`` for the other one), so it is a comparison
of cost: its feet creep, and its residual has another meaning. Robots of MuJoCo are written by Linkwise (``lw.save``)
with spheres at the same places; springs and dampers of its joints take the place of the PD law. ``--table`` prints
residuals for several numbers of sweeps and Newton's steps instead.

    python benchmarks/contact.py [--robots legs FILE.urdf:FOOT,FOOT,FOOT,FOOT:RADIUS ...] [--quick] [--table]
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
import time
import warnings

import numpy as np

import linkwise as lw
from linkwise.algorithms.contact import effort
from linkwise.algorithms.contact.solver import Effort
from linkwise.model.inertia import LABELS

STEP = 0.002
FRICTION = 0.8


def legs() -> tuple[lw.Robot, np.ndarray]:
    """A body with four legs of three joints, and how it stands."""
    links = [lw.Link("body", lw.Inertia.from_com(8.0, (0, 0, 0), (0.1, 0.2, 0.25)))]
    joints = []
    x_axis, y_axis = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
    for leg, (x, y) in enumerate(((0.2, 0.1), (0.2, -0.1), (-0.2, 0.1), (-0.2, -0.1))):
        parent, at = "body", (x, y, 0.0)
        for part, axis, length in (("side", x_axis, 0.0), ("hip", y_axis, 0.2), ("knee", y_axis, 0.2)):
            name = f"{part}{leg}"
            links.append(lw.Link(name, lw.Inertia.from_com(0.5, (0, 0, -0.5 * length), (2e-3, 2e-3, 5e-4))))
            joints.append(
                lw.Joint(name + "_joint", "revolute", parent, name, lw.Transform.from_rpy(at), axis)
            )
            parent, at = name, (0.0, 0.0, -length)
    feet = [lw.Contact(f"knee{leg}", offset=(0, 0, -0.2), radius=0.02, friction=FRICTION) for leg in range(4)]
    return lw.Robot("legs", links, joints).with_base("floating").with_contacts(feet), np.tile(
        [0.0, 0.3, -0.6], 4
    )


def loaded(text: str) -> tuple[lw.Robot, np.ndarray]:
    """A robot from FILE:FOOT,FOOT,…:RADIUS:ANGLE,ANGLE,… (the angles that one leg stands with)."""
    if text == "legs":
        return legs()
    path, feet, radius, angles = text.split(":")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        robot = possible(lw.load(path, base="floating"))
    touching = [lw.Contact(foot, radius=float(radius), friction=FRICTION) for foot in feet.split(",")]
    stand = np.array([float(x) for x in angles.split(",")])
    return robot.with_contacts(touching), np.tile(stand, (robot.dof - 6) // len(stand))


def possible(robot: lw.Robot) -> lw.Robot:
    """The robot with moments of inertia that a body can have, which MuJoCo asks for."""
    values = dict(zip(robot.parameter_labels, robot.parameters.tolist(), strict=True))
    for joint in robot.moving_joints:
        names = [f"{joint.body_link}.{name}" for name in LABELS]
        while lw.Inertia.from_parameters([values[name] for name in names]).violations():
            more = 0.02 * sum(values[names[k]] for k in (4, 7, 9))
            for k in (4, 7, 9):
                values[names[k]] += more
    return robot.with_parameters(values)


def moving_states(robot: lw.Robot, stand: np.ndarray, count: int, steps: int = 400):
    """States of robots that stand under a PD law, are kicked every 40 ms, and fall."""
    rng = np.random.default_rng(0)
    n = robot.dof - 6
    q = np.repeat(np.concatenate([robot.neutral[:7], stand])[None], count, 0)
    q[:, 2] -= robot.contact_gaps(q).min(axis=1) - 0.005
    q[:, 3:6] += 0.03 * rng.normal(size=(count, 3))
    qd = 0.3 * rng.normal(size=(count, robot.dof))
    effort_limit = 0.15 * 9.81 * sum(link.inertia.mass for link in robot.links)
    kept = []
    kick = np.zeros((count, n))
    for k in range(steps):
        if k % 20 == 0:
            kick = effort_limit * rng.normal(size=(count, n))
        law = 4.0 * effort_limit * (stand - q[:, 7:]) - 0.1 * effort_limit * qd[:, 6:]
        tau = np.concatenate([np.zeros((count, 6)), np.clip(law + kick, -effort_limit, effort_limit)], axis=1)
        if k % 40 == 25:
            kept.append((q, qd, tau))
        q, qd, _ = robot.contact_step(q, qd, tau)
    return tuple(np.concatenate(part) for part in zip(*kept, strict=True))


def best_time(call, rounds: int, count: int) -> float:
    """Processor time of one of ``count`` steps [µs]."""
    best = np.inf
    for _ in range(rounds):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best / count * 1e6


def in_mujoco(robot: lw.Robot, elliptic: bool):
    """The same robot in MuJoCo, with a plane and spheres at its feet."""
    import mujoco

    handle, path = tempfile.mkstemp(suffix=".xml")
    os.close(handle)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lw.save(robot, path)
    with open(path) as file:
        text = file.read()
    os.remove(path)
    ground = f'<geom type="plane" size="0 0 1" friction="{FRICTION} 0 0"/>'
    text = re.sub(r"<worldbody>", "<worldbody>" + ground, text, count=1)
    for contact in robot.contacts:
        link, place = _link_of(robot, contact)
        numbers = " ".join(f"{x:.12g}" for x in place)
        sphere = (
            f'<geom type="sphere" size="{contact.radius}" pos="{numbers}" mass="0" friction="{FRICTION} 0 0" '
            'contype="2" conaffinity="1"/>'
        )
        text, found = re.subn(rf'(<body name="{link}"[^>]*>)', rf"\1{sphere}", text, count=1)
        assert found, link
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.timestep = STEP
    model.opt.cone = int(elliptic)
    return model, mujoco.MjData(model)


def _link_of(robot: lw.Robot, contact: lw.Contact) -> tuple[str, np.ndarray]:
    """The moving link that carries a contact, and where on it."""
    body, pose = robot.locate(contact.frame)
    return robot.moving_joints[body].child, pose.rotation @ np.array(contact.offset) + pose.translation


def time_of_mujoco(robot: lw.Robot, stand: np.ndarray, rounds: int, elliptic: bool) -> tuple[float, float]:
    """(µs a step while the robot stands and is kicked, mean number of contacts)."""
    import mujoco

    model, data = in_mujoco(robot, elliptic)
    rng = np.random.default_rng(0)
    q = np.concatenate([robot.neutral[:7], stand])
    height = -robot.contact_gaps(q).min()
    limit = 0.15 * 9.81 * sum(link.inertia.mass for link in robot.links)
    model.jnt_stiffness[1:], model.qpos_spring[7:], model.dof_damping[6:] = 4.0 * limit, stand, 0.1 * limit
    best, contacts = np.inf, []
    for _ in range(rounds):
        mujoco.mj_resetData(model, data)
        data.qpos[:3], data.qpos[3], data.qpos[7:] = (0.0, 0.0, height), 1.0, stand
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


def quantiles(residual: np.ndarray) -> str:
    parts = " ".join(f"{np.quantile(residual, x):.0e}" for x in (0.5, 0.99, 0.999, 1.0))
    return f"{parts} ({(residual < 1e-6).mean():.2%} under 1e-6)"


def table(robot: lw.Robot, states) -> None:
    """Residuals for several efforts."""
    for tried in (
        Effort(4, 0),
        Effort(8, 0),
        Effort(2, 1),
        Effort(3, 1),
        Effort(4, 1),
        Effort(3, 2),
        Effort(4, 2),
        Effort(6, 3),
    ):
        marked = robot.with_contacts(
            [*robot.contacts, lw.Ground(height=1e-12 * (1 + tried.sweeps + tried.newton_steps))]
        )
        effort.SINGLE = effort.REDUNDANT = {effort.DEFAULT_ACCURACY: tried}
        count = marked.kernel("contact_step").operations
        found = f"{count.multiplications:6d} multiplications, residuals {quantiles(marked.contact_residual(*states))}"
        print(f"{tried.sweeps:3d} sweeps, {tried.newton_steps} Newton's steps: {found}")


def measured(robot: lw.Robot, stand: np.ndarray, states, options: argparse.Namespace) -> None:
    """Print times and residuals of one robot."""
    q, qd, tau = states
    robot.compile("contact_step")
    batch = best_time(lambda: robot.contact_step(q, qd, tau, threads=1), options.rounds, len(q))
    one = [np.ascontiguousarray(part[0]) for part in states]
    single = best_time(lambda: [robot.contact_step(*one) for _ in range(200)], options.rounds, 200)
    print(f"  residuals {quantiles(robot.contact_residual(q, qd, tau))}, {len(q)} states")
    print(f"  batch {batch:.3f} us a step, one state from Python {single:.2f} us")
    try:
        theirs, contacts = time_of_mujoco(robot, stand, options.rounds, options.elliptic)
    except (ImportError, lw.ModelError) as error:
        print(f"  no MuJoCo: {error}")
        return
    print(
        f"  MuJoCo {theirs:.2f} us a step, {contacts:.1f} contacts: "
        f"{theirs / batch:.1f} times the batch, {theirs / single:.1f} times one state"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robots", nargs="*", default=["legs"])
    parser.add_argument("--states", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--elliptic", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.states, options.rounds = 20, 1
    for text in options.robots:
        robot, stand = loaded(text)
        start = time.process_time()
        robot.contact_step(
            np.concatenate([robot.neutral[:7], stand]), np.zeros(robot.dof), np.zeros(robot.dof)
        )
        first = time.process_time() - start
        print(f"{robot.name}: {robot.kernel('contact_step').operations}")
        print(f"  first call {first:.2f} s of processor time")
        states = moving_states(robot, stand, options.states, 40 if options.quick else 400)
        if options.table:
            table(robot, states)
        else:
            measured(robot, stand, states, options)


if __name__ == "__main__":
    main()
